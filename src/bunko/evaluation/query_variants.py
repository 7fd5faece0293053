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

from bunko.text.language import detect_language
from bunko.text.normalise import normalise

_KATAKANA = re.compile(r"[ァ-ヺー]{2,}")
_HIRAGANA = re.compile(r"[ぁ-ゖー]{3,}")
_KANJI = re.compile(r"[\u3400-\u9fff々]")
_LATIN = re.compile(r"[A-Za-z]{4,}")
_LONG_LATIN = re.compile(r"[A-Za-z]{5,}")
_ASCII = re.compile(r"[!-~]")
_KANA_SHIFT = ord("ァ") - ord("ぁ")
_FULL_WIDTH_SHIFT = ord("！") - ord("!")
# What people type for each other.
_KANA_TYPOS = (
    ("ー", ""), ("ッ", "ツ"), ("ャ", "ヤ"), ("ュ", "ユ"), ("ョ", "ヨ"), ("ヴァ", "バ"), ("ヴィ", "ビ"),
    ("ヴ", "ブ"), ("ティ", "チ"), ("ディ", "デイ"), ("ファ", "フア"), ("フィ", "フイ"), ("フォ", "フオ"),
    ("ェ", "エ"), ("ォ", "オ"), ("っ", "つ"), ("ゃ", "や"), ("ゅ", "ゆ"), ("ょ", "よ"), ("づ", "ず"), ("ぢ", "じ"),
)  # fmt: skip
_QUESTION_FORMS = {
    "ja": ("{}とは", "{}について教えて", "{}はどうすればいいですか", "{}を知りたい"),
    "en": ("what is {}", "how does {} work", "tell me about {}", "where can I find {}"),
}
# The sound before た, ない and ます, by the row that a verb is conjugated in.
_GODAN_ENDINGS = {
    "カ": ("いた", "か", "き"), "ガ": ("いだ", "が", "ぎ"), "サ": ("した", "さ", "し"), "タ": ("った", "た", "ち"),
    "ナ": ("んだ", "な", "に"), "バ": ("んだ", "ば", "び"), "マ": ("んだ", "ま", "み"), "ラ": ("った", "ら", "り"),
    "ワ": ("った", "わ", "い"),
}  # fmt: skip
_FUNCTION_POS = ("助詞", "助動詞", "補助記号", "記号", "空白")
_MIN_BASE_LENGTH = 2


class _Token(NamedTuple):
    text: str
    space_before: str  # the space before it
    part_of_speech: str
    pos_detail: str
    conjugation: str
    base_form: str  # its dictionary form as it is spelt here
    kana: str
    english_origin: str  # the English it was borrowed from

    @property
    def is_function_word(self) -> bool:
        return self.part_of_speech in _FUNCTION_POS


def variants(phrase: str, katakana_by_english: Mapping[str, str] = {}) -> dict[str, str]:
    """Return one other way of writing for each kind that makes sense; `english` is known words → katakana."""
    text = normalise(phrase)
    found: dict[str, str] = {}
    for kind, make in _VARIANT_MAKERS.items():
        made = _pick_variant(kind, text, make(text, katakana_by_english))
        if made is not None and made.strip() and made != text:
            found[kind] = made
    return found


def loanwords(texts: Iterable[str]) -> dict[str, str]:
    """Return the English origins of the loanwords in some texts, each with its katakana."""
    found: dict[str, str] = {}
    for text in texts:
        for word in _tokenize(normalise(text)):
            if word.english_origin and _KATAKANA.fullmatch(word.text):
                found.setdefault(word.english_origin.lower(), word.text)
    return found


def _pick_variant(kind: str, text: str, candidates: Iterable[str]) -> str | None:
    every = list(dict.fromkeys(candidates))
    number = int.from_bytes(sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return every[number % len(every)] if every else None


def _width_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    if _ASCII.search(text):
        yield _ASCII.sub(lambda one: chr(ord(one[0]) + _FULL_WIDTH_SHIFT), text).replace(" ", "\u3000")
    if _KATAKANA.search(text):
        yield _KATAKANA.sub(lambda one: "".join(map(_half_width, one[0])), text)


@cache
def _half_width(character: str) -> str:
    """Return a katakana in half width; one with a mark becomes two."""
    return _half_width_map().get(character, character)


@cache
def _half_width_map() -> dict[str, str]:
    found = {unicodedata.normalize("NFKC", chr(code)): chr(code) for code in range(0xFF66, 0xFF9E)}
    for code in range(0xFF66, 0xFF9E):
        for mark in "ﾞﾟ":
            whole = unicodedata.normalize("NFKC", chr(code) + mark)
            if len(whole) == 1:
                found[whole] = chr(code) + mark
    return found


def _inflection_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    words = _tokenize(text)
    for at, word in enumerate(words):
        end = at + 1
        while end < len(words) and words[end].part_of_speech == "助動詞" and not words[end].space_before:
            end += 1
        for form in _japanese_forms(word):
            yield _join_tokens(words[:at]) + word.space_before + form + _join_tokens(words[end:])
    last = words[-1] if words else None
    if last is not None and last.part_of_speech == "名詞" and last.pos_detail == "サ変可能":
        yield from (f"{text}する", f"{text}した")
    for one in _LATIN.finditer(text):
        for form in _english_forms(one[0]):
            yield text[: one.start()] + form + text[one.end() :]


def _japanese_forms(word: _Token) -> tuple[str, ...]:
    base, kind = word.base_form, word.conjugation
    if len(base) < _MIN_BASE_LENGTH:
        return ()
    if kind == "形容詞" and base.endswith("い"):
        return base[:-1] + "かった", base[:-1] + "くない", base[:-1] + "く"
    if kind == "サ行変格" and base.endswith("する"):
        return base[:-2] + "した", base[:-2] + "しない", base[:-2] + "します"
    if kind.startswith(("上一段", "下一段")) and base.endswith("る"):
        return base[:-1] + "た", base[:-1] + "ない", base[:-1] + "ます"
    row = _GODAN_ENDINGS.get(kind.removeprefix("五段-")[:1]) if kind.startswith("五段-") else None
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


def _order_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    parts = _content_phrases(text)
    if len(parts) > 1:
        yield " ".join(reversed(parts))
        yield " ".join((*parts[1:], parts[0]))


def _typo_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    for one in _LONG_LATIN.finditer(text):
        word = one[0]
        at = len(word) // 2
        for made in (
            word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :],
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
        ):
            yield text[: one.start()] + made + text[one.end() :]
    for right, wrong in _KANA_TYPOS:
        if right in text:
            yield text.replace(right, wrong, 1)


def _script_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    for one in _KATAKANA.finditer(text):
        yield text[: one.start()] + _shift_kana(one[0], -_KANA_SHIFT) + text[one.end() :]
    words = _tokenize(text)
    for at, word in enumerate(words):
        spelt = None
        if _HIRAGANA.fullmatch(word.text) and not word.is_function_word:
            spelt = _shift_kana(word.text, _KANA_SHIFT)
        elif _KANJI.search(word.text) and word.kana:
            spelt = _shift_kana(word.kana, -_KANA_SHIFT)
        if spelt:
            yield _join_tokens(words[:at]) + word.space_before + spelt + _join_tokens(words[at + 1 :])


def _shift_kana(kana: str, offset: int) -> str:
    low, high = ("ァ", "ヶ") if offset < 0 else ("ぁ", "ゖ")
    return "".join(chr(ord(one) + offset) if low <= one <= high else one for one in kana)


def _loanword_variants(text: str, katakana_by_english: Mapping[str, str]) -> Iterator[str]:
    words = _tokenize(text)
    for at, word in enumerate(words):
        other = (
            word.english_origin if _KATAKANA.fullmatch(word.text) else katakana_by_english.get(word.text.lower(), "")
        )
        if other:
            yield _join_tokens(words[:at]) + word.space_before + other + _join_tokens(words[at + 1 :])


def _part_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    parts = _content_phrases(text)
    if len(parts) > 2:
        yield " ".join(parts[1:])
        yield " ".join(parts[:-1])


def _question_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    yield from (form.format(text) for form in _QUESTION_FORMS["ja" if detect_language(text) == "ja" else "en"])


_VARIANT_MAKERS: dict[str, Callable[[str, Mapping[str, str]], Iterator[str]]] = {
    "width": _width_variants,
    "inflection": _inflection_variants,
    "order": _order_variants,
    "typo": _typo_variants,
    "script": _script_variants,
    "loanword": _loanword_variants,
    "part": _part_variants,
    "question": _question_variants,
}
AS_WRITTEN = "as written"
VARIANT_KINDS = (AS_WRITTEN, *_VARIANT_MAKERS)


def _content_phrases(text: str) -> list[str]:
    """Return the pieces of a phrase between particles, spaces and marks."""
    parts = [""]
    for word in _tokenize(text):
        if word.is_function_word or word.space_before:
            parts.append("")
        if not word.is_function_word:
            parts[-1] += word.text
    return [part for part in parts if part]


def _join_tokens(tokens: Sequence[_Token]) -> str:
    return "".join(word.space_before + word.text for word in tokens)


@lru_cache(5000)
def _tokenize(text: str) -> tuple[_Token, ...]:
    found = []
    for node in _tagger()(text):
        of = node.feature
        lemma, _, origin = (of.lemma or "").partition("-")
        known = origin if origin.isascii() and origin.isalpha() else ""
        found.append(
            _Token(
                node.surface, node.white_space or "", of.pos1 or "", of.pos3 or "", _feature_text(of.cType),
                _feature_text(of.orthBase) or lemma, _feature_text(of.kana), known.lower(),
            )
        )  # fmt: skip
    return tuple(found)


def _feature_text(value: str | None) -> str:
    return "" if value in (None, "*") else str(value)


@cache
def _tagger() -> Callable[[str], Iterable[Any]]:
    import fugashi
    import unidic_lite

    folder = unidic_lite.DICDIR
    tagger: Callable[[str], Iterable[Any]] = fugashi.Tagger(f'-r "{folder}/mecabrc" -d "{folder}"')
    return tagger
