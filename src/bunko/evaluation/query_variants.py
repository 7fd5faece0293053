"""A phrase in, the ways in which people would type it otherwise out: another width, form, order, script, a slip.

The same phrase gives the same variants every time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

from bunko.text.language import language
from bunko.text.normalise import normalise

_KATAKANA = re.compile(r"[ァ-ヺー]{2,}")
_HIRAGANA = re.compile(r"[ぁ-ゖー]{3,}")
_KANJI = re.compile(r"[\u3400-\u9fff々]")
_LATIN = re.compile(r"[A-Za-z]{4,}")
_LONG_LATIN = re.compile(r"[A-Za-z]{5,}")
_ASCII = re.compile(r"[!-~]")
_KANA_SHIFT = ord("ァ") - ord("ぁ")
_FULL_SHIFT = ord("！") - ord("!")
# What people type for each other.
_KANA_SLIPS = (
    ("ー", ""), ("ッ", "ツ"), ("ャ", "ヤ"), ("ュ", "ユ"), ("ョ", "ヨ"), ("ヴァ", "バ"), ("ヴィ", "ビ"),
    ("ヴ", "ブ"), ("ティ", "チ"), ("ディ", "デイ"), ("ファ", "フア"), ("フィ", "フイ"), ("フォ", "フオ"),
    ("ェ", "エ"), ("ォ", "オ"), ("っ", "つ"), ("ゃ", "や"), ("ゅ", "ゆ"), ("ょ", "よ"), ("づ", "ず"), ("ぢ", "じ"),
)  # fmt: skip
_QUESTIONS = {
    "ja": ("{}とは", "{}について教えて", "{}はどうすればいいですか", "{}を知りたい"),
    "en": ("what is {}", "how does {} work", "tell me about {}", "where can I find {}"),
}
# The sound before た, ない and ます, by the row that a verb is conjugated in.
_GODAN = {
    "カ": ("いた", "か", "き"), "ガ": ("いだ", "が", "ぎ"), "サ": ("した", "さ", "し"), "タ": ("った", "た", "ち"),
    "ナ": ("んだ", "な", "に"), "バ": ("んだ", "ば", "び"), "マ": ("んだ", "ま", "み"), "ラ": ("った", "ら", "り"),
    "ワ": ("った", "わ", "い"),
}  # fmt: skip
_SILENT = ("助詞", "助動詞", "補助記号", "記号", "空白")
_SHORTEST = 2


class _Word(NamedTuple):
    text: str
    gap: str  # the space before it
    speech: str
    finer: str
    conjugation: str
    base: str  # its dictionary form as it is spelt here
    kana: str
    origin: str  # the English it was borrowed from

    @property
    def silent(self) -> bool:
        return self.speech in _SILENT


def variants(phrase: str, english: Mapping[str, str] = {}) -> dict[str, str]:
    """Return one other way of writing for each kind that makes sense; `english` is known words → katakana."""
    text = normalise(phrase)
    found: dict[str, str] = {}
    for kind, make in _KINDS.items():
        made = _pick(kind, text, make(text, english))
        if made is not None and made.strip() and made != text:
            found[kind] = made
    return found


def loanwords(texts: Iterable[str]) -> dict[str, str]:
    """Return the English origins of the loanwords in some texts, each with its katakana."""
    found: dict[str, str] = {}
    for text in texts:
        for word in _words(normalise(text)):
            if word.origin and _KATAKANA.fullmatch(word.text):
                found.setdefault(word.origin.lower(), word.text)
    return found


def _pick(kind: str, text: str, made: Iterable[str]) -> str | None:
    every = list(dict.fromkeys(made))
    number = int.from_bytes(sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return every[number % len(every)] if every else None


def _width(text: str, _: Mapping[str, str]) -> Iterator[str]:
    if _ASCII.search(text):
        yield _ASCII.sub(lambda one: chr(ord(one[0]) + _FULL_SHIFT), text).replace(" ", "\u3000")
    if _KATAKANA.search(text):
        yield _KATAKANA.sub(lambda one: "".join(map(_narrow, one[0])), text)


@cache
def _narrow(character: str) -> str:
    """Return a katakana in half width; one with a mark becomes two."""
    return _halves().get(character, character)


@cache
def _halves() -> dict[str, str]:
    found = {unicodedata.normalize("NFKC", chr(code)): chr(code) for code in range(0xFF66, 0xFF9E)}
    for code in range(0xFF66, 0xFF9E):
        for mark in "ﾞﾟ":
            whole = unicodedata.normalize("NFKC", chr(code) + mark)
            if len(whole) == 1:
                found[whole] = chr(code) + mark
    return found


def _inflected(text: str, _: Mapping[str, str]) -> Iterator[str]:
    words = _words(text)
    for at, word in enumerate(words):
        end = at + 1
        while end < len(words) and words[end].speech == "助動詞" and not words[end].gap:
            end += 1
        for form in _forms(word):
            yield _joined(words[:at]) + word.gap + form + _joined(words[end:])
    last = words[-1] if words else None
    if last is not None and last.speech == "名詞" and last.finer == "サ変可能":
        yield from (f"{text}する", f"{text}した")
    for one in _LATIN.finditer(text):
        for form in _english_forms(one[0]):
            yield text[: one.start()] + form + text[one.end() :]


def _forms(word: _Word) -> tuple[str, ...]:
    base, kind = word.base, word.conjugation
    if len(base) < _SHORTEST:
        return ()
    if kind == "形容詞" and base.endswith("い"):
        return base[:-1] + "かった", base[:-1] + "くない", base[:-1] + "く"
    if kind == "サ行変格" and base.endswith("する"):
        return base[:-2] + "した", base[:-2] + "しない", base[:-2] + "します"
    if kind.startswith(("上一段", "下一段")) and base.endswith("る"):
        return base[:-1] + "た", base[:-1] + "ない", base[:-1] + "ます"
    row = _GODAN.get(kind.removeprefix("五段-")[:1]) if kind.startswith("五段-") else None
    if row is None:
        return ()
    past, negative, polite = row
    if base.endswith(("行く", "いく")):
        past = "った"
    return base[:-1] + past, base[:-1] + negative + "ない", base[:-1] + polite + "ます"


def _english_forms(word: str) -> Iterator[str]:
    lower = word.lower()
    if word.isupper():
        return
    if lower.endswith("ing") and len(word) > 6:
        yield word[:-3] + "ed"
    elif lower.endswith("ed") and len(word) > 5:
        yield word[:-2] + "ing"
    elif lower.endswith("ies"):
        yield word[:-3] + "y"
    elif lower.endswith(("ches", "shes", "sses", "xes")):
        yield word[:-2]
    elif lower.endswith("s") and not lower.endswith(("ss", "us", "is")):
        yield word[:-1]
    elif lower.endswith("y") and lower[-2] not in "aeiou":
        yield word[:-1] + "ies"
    elif lower.endswith(("s", "x", "z", "ch", "sh")):
        yield word + "es"
    else:
        yield word + "s"


def _reordered(text: str, _: Mapping[str, str]) -> Iterator[str]:
    parts = _segments(text)
    if len(parts) > 1:
        yield " ".join(reversed(parts))
        yield " ".join((*parts[1:], parts[0]))


def _mistyped(text: str, _: Mapping[str, str]) -> Iterator[str]:
    for one in _LONG_LATIN.finditer(text):
        word = one[0]
        at = len(word) // 2
        for made in (
            word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :],
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
        ):
            yield text[: one.start()] + made + text[one.end() :]
    for right, wrong in _KANA_SLIPS:
        if right in text:
            yield text.replace(right, wrong, 1)


def _other_script(text: str, _: Mapping[str, str]) -> Iterator[str]:
    for one in _KATAKANA.finditer(text):
        yield text[: one.start()] + _shifted(one[0], -_KANA_SHIFT) + text[one.end() :]
    words = _words(text)
    for at, word in enumerate(words):
        spelt = None
        if _HIRAGANA.fullmatch(word.text) and not word.silent:
            spelt = _shifted(word.text, _KANA_SHIFT)
        elif _KANJI.search(word.text) and word.kana:
            spelt = _shifted(word.kana, -_KANA_SHIFT)
        if spelt:
            yield _joined(words[:at]) + word.gap + spelt + _joined(words[at + 1 :])


def _shifted(kana: str, by: int) -> str:
    low, high = ("ァ", "ヶ") if by < 0 else ("ぁ", "ゖ")
    return "".join(chr(ord(one) + by) if low <= one <= high else one for one in kana)


def _borrowed(text: str, english: Mapping[str, str]) -> Iterator[str]:
    words = _words(text)
    for at, word in enumerate(words):
        other = word.origin if _KATAKANA.fullmatch(word.text) else english.get(word.text.lower(), "")
        if other:
            yield _joined(words[:at]) + word.gap + other + _joined(words[at + 1 :])


def _partial(text: str, _: Mapping[str, str]) -> Iterator[str]:
    parts = _segments(text)
    if len(parts) > 2:
        yield " ".join(parts[1:])
        yield " ".join(parts[:-1])


def _asked(text: str, _: Mapping[str, str]) -> Iterator[str]:
    yield from (form.format(text) for form in _QUESTIONS["ja" if language(text) == "ja" else "en"])


_KINDS: dict[str, Callable[[str, Mapping[str, str]], Iterator[str]]] = {
    "width": _width,
    "inflection": _inflected,
    "order": _reordered,
    "typo": _mistyped,
    "script": _other_script,
    "loanword": _borrowed,
    "part": _partial,
    "question": _asked,
}
WRITTEN = "as written"
KINDS = (WRITTEN, *_KINDS)


def _segments(text: str) -> list[str]:
    """Return the pieces of a phrase between particles, spaces and marks."""
    parts = [""]
    for word in _words(text):
        if word.silent or word.gap:
            parts.append("")
        if not word.silent:
            parts[-1] += word.text
    return [part for part in parts if part]


def _joined(words: Sequence[_Word]) -> str:
    return "".join(word.gap + word.text for word in words)


@lru_cache(5000)
def _words(text: str) -> tuple[_Word, ...]:
    found = []
    for node in _tagger()(text):
        of = node.feature
        lemma, _, origin = (of.lemma or "").partition("-")
        known = origin if origin.isascii() and origin.isalpha() else ""
        found.append(
            _Word(
                node.surface, node.white_space or "", of.pos1 or "", of.pos3 or "", _said(of.cType),
                _said(of.orthBase) or lemma, _said(of.kana), known.lower(),
            )
        )  # fmt: skip
    return tuple(found)


def _said(value: str | None) -> str:
    return "" if value in (None, "*") else str(value)


@cache
def _tagger() -> Callable[[str], Iterable[Any]]:
    import fugashi
    import unidic_lite

    folder = unidic_lite.DICDIR
    tagger: Callable[[str], Iterable[Any]] = fugashi.Tagger(f'-r "{folder}/mecabrc" -d "{folder}"')
    return tagger
