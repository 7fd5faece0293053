"""Generate the variants that people type of a phrase: other width, inflection, order, script, or a typo.

The same phrase always gives the same variants.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from typing import NamedTuple

from bunko.text.analyzer import load_tagger
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
# Kana that people confuse: the right spelling and the typo.
_KANA_TYPOS = (
    ("ー", ""), ("ッ", "ツ"), ("ャ", "ヤ"), ("ュ", "ユ"), ("ョ", "ヨ"), ("ヴァ", "バ"), ("ヴィ", "ビ"),
    ("ヴ", "ブ"), ("ティ", "チ"), ("ディ", "デイ"), ("ファ", "フア"), ("フィ", "フイ"), ("フォ", "フオ"),
    ("ェ", "エ"), ("ォ", "オ"), ("っ", "つ"), ("ゃ", "や"), ("ゅ", "ゆ"), ("ょ", "よ"), ("づ", "ず"), ("ぢ", "じ"),
)  # fmt: skip
_QUESTION_FORMS = {
    "ja": ("{}とは", "{}について教えて", "{}はどうすればいいですか", "{}を知りたい"),
    "en": ("what is {}", "how does {} work", "tell me about {}", "where can I find {}"),
}
# The past ending, and the kana before ない and ます, by the row that a godan verb is conjugated in.
_GODAN_ENDINGS = {
    "カ": ("いた", "か", "き"), "ガ": ("いだ", "が", "ぎ"), "サ": ("した", "さ", "し"), "タ": ("った", "た", "ち"),
    "ナ": ("んだ", "な", "に"), "バ": ("んだ", "ば", "び"), "マ": ("んだ", "ま", "み"), "ラ": ("った", "ら", "り"),
    "ワ": ("った", "わ", "い"),
}  # fmt: skip
_FUNCTION_POS = ("助詞", "助動詞", "補助記号", "記号", "空白")
_MIN_BASE_LENGTH = 2


class _Token(NamedTuple):
    text: str
    space_before: str
    part_of_speech: str
    pos_detail: str
    conjugation: str
    base_form: str  # the dictionary form in this spelling
    kana: str
    english_origin: str  # the English word that a loanword was borrowed from

    @property
    def is_function_word(self) -> bool:
        return self.part_of_speech in _FUNCTION_POS


def variants(phrase: str, katakana_by_english: Mapping[str, str] = {}) -> dict[str, str]:
    """Return one variant of the phrase for each kind that applies."""
    text = normalise(phrase)
    variant_by_kind: dict[str, str] = {}
    for kind, make_variants in _VARIANT_MAKERS.items():
        candidates = list(dict.fromkeys(make_variants(text, katakana_by_english)))
        # A hash instead of a random number, so that the choice is always the same.
        digest = int.from_bytes(sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()[:8], "big")
        variant = candidates[digest % len(candidates)] if candidates else None
        if variant is not None and variant.strip() and variant != text:
            variant_by_kind[kind] = variant
    return variant_by_kind


def loanwords(texts: Iterable[str]) -> dict[str, str]:
    """Return the loanwords of these texts: English origin → katakana."""
    katakana_by_english: dict[str, str] = {}
    for text in texts:
        for token in tokenize(normalise(text)):
            if token.english_origin and _KATAKANA.fullmatch(token.text):
                katakana_by_english.setdefault(token.english_origin.lower(), token.text)
    return katakana_by_english


def _width_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    if _ASCII.search(text):
        yield _ASCII.sub(lambda match: chr(ord(match[0]) + _FULL_WIDTH_SHIFT), text).replace(" ", "\u3000")
    if _KATAKANA.search(text):
        yield _KATAKANA.sub(lambda match: "".join(map(_half_width, match[0])), text)


@cache
def _half_width(character: str) -> str:
    """Return a katakana character in half width; one with a voiced mark becomes two characters."""
    return _half_width_map().get(character, character)


@cache
def _half_width_map() -> dict[str, str]:
    half_width = {unicodedata.normalize("NFKC", chr(code)): chr(code) for code in range(0xFF66, 0xFF9E)}
    for code in range(0xFF66, 0xFF9E):
        for mark in "ﾞﾟ":
            composed = unicodedata.normalize("NFKC", chr(code) + mark)
            if len(composed) == 1:
                half_width[composed] = chr(code) + mark
    return half_width


def _inflection_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    tokens = tokenize(text)
    for index, token in enumerate(tokens):
        # The auxiliaries after a verb or adjective belong to its old form.
        end = index + 1
        while end < len(tokens) and tokens[end].part_of_speech == "助動詞" and not tokens[end].space_before:
            end += 1
        for form in _japanese_forms(token):
            yield _replace_tokens(tokens, index, end, form)
    last = tokens[-1] if tokens else None
    if last is not None and last.part_of_speech == "名詞" and last.pos_detail == "サ変可能":
        yield from (f"{text}する", f"{text}した")
    for match in _LATIN.finditer(text):
        for form in _english_forms(match[0]):
            yield text[: match.start()] + form + text[match.end() :]


def _japanese_forms(token: _Token) -> tuple[str, ...]:
    base, kind = token.base_form, token.conjugation
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
    phrases = _content_phrases(text)
    if len(phrases) > 1:
        yield " ".join(reversed(phrases))
        yield " ".join((*phrases[1:], phrases[0]))


def _typo_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    for match in _LONG_LATIN.finditer(text):
        word = match[0]
        middle = len(word) // 2
        swapped = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
        omitted = word[:middle] + word[middle + 1 :]
        doubled = word[:middle] + word[middle] + word[middle:]
        for typo in (swapped, omitted, doubled):
            yield text[: match.start()] + typo + text[match.end() :]
    for right, wrong in _KANA_TYPOS:
        if right in text:
            yield text.replace(right, wrong, 1)


def _script_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    for match in _KATAKANA.finditer(text):
        yield text[: match.start()] + _shift_kana(match[0], -_KANA_SHIFT) + text[match.end() :]
    tokens = tokenize(text)
    for index, token in enumerate(tokens):
        spelling = None
        if _HIRAGANA.fullmatch(token.text) and not token.is_function_word:
            spelling = _shift_kana(token.text, _KANA_SHIFT)
        elif _KANJI.search(token.text) and token.kana:
            spelling = _shift_kana(token.kana, -_KANA_SHIFT)
        if spelling:
            yield _replace_tokens(tokens, index, index + 1, spelling)


def _shift_kana(kana: str, offset: int) -> str:
    low, high = ("ァ", "ヶ") if offset < 0 else ("ぁ", "ゖ")
    return "".join(chr(ord(character) + offset) if low <= character <= high else character for character in kana)


def _loanword_variants(text: str, katakana_by_english: Mapping[str, str]) -> Iterator[str]:
    tokens = tokenize(text)
    for index, token in enumerate(tokens):
        if _KATAKANA.fullmatch(token.text):
            translation = token.english_origin
        else:
            translation = katakana_by_english.get(token.text.lower(), "")
        if translation:
            yield _replace_tokens(tokens, index, index + 1, translation)


def _part_variants(text: str, _: Mapping[str, str]) -> Iterator[str]:
    phrases = _content_phrases(text)
    if len(phrases) > 2:
        yield " ".join(phrases[1:])
        yield " ".join(phrases[:-1])


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
    """Return the parts of a phrase between particles, spaces and punctuation."""
    phrases = [""]
    for token in tokenize(text):
        if token.is_function_word or token.space_before:
            phrases.append("")
        if not token.is_function_word:
            phrases[-1] += token.text
    return [phrase for phrase in phrases if phrase]


def _replace_tokens(tokens: Sequence[_Token], start: int, end: int, text: str) -> str:
    """Return the text of all tokens, with those from start to end replaced."""
    return _join_tokens(tokens[:start]) + tokens[start].space_before + text + _join_tokens(tokens[end:])


def _join_tokens(tokens: Sequence[_Token]) -> str:
    return "".join(token.space_before + token.text for token in tokens)


@lru_cache(5000)
def tokenize(text: str) -> tuple[_Token, ...]:
    """Return the words of a text with their base forms and readings."""
    tokens = []
    for node in load_tagger()(text):
        # A word that is not in the dictionary has the first five columns.
        columns = ["" if value == "*" else value for value in node.feature]
        part_of_speech, _, detail, _, conjugation, lemma, pronunciation, reading, ending = [*columns, *[""] * 4][:9]
        # UniDic writes the lemma of a loanword as "katakana-english".
        lemma, _, origin = lemma.partition("-")
        english_origin = origin.lower() if origin.isascii() and origin.isalpha() else ""
        tokens.append(
            _Token(
                text=node.surface,
                space_before=node.white_space or "",
                part_of_speech=part_of_speech,
                pos_detail=detail,
                conjugation=conjugation,
                base_form=_base_form(node.surface, ending) or lemma,
                kana=reading or pronunciation,
                english_origin=english_origin,
            )
        )
    return tuple(tokens)


def _base_form(word: str, ending: str) -> str:
    """Return the dictionary form of a word: an ending is how many characters to take away, and what to add."""
    count, _, added = ending.partition("-")
    return word[: len(word) - int(count)] + added if count else ""
