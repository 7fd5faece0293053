"""Extract noun phrases from text: Japanese compounds by part of speech, English by the words between stop words.

There is no English dictionary here: a phrase is what remains between function words, verbs and punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from bunko.text import analyzer, stopwords
from bunko.text.labels import is_author, remove_hidden_chars
from bunko.text.language import JAPANESE_CHARS
from bunko.text.line_joins import join_lines
from bunko.text.normalise import normalise
from bunko.text.part_of_speech import parse_run

# Markup, code and addresses say nothing about the topic of a text.
_NON_PROSE = re.compile(
    r"^(?P<fence>```+|~~~+).*?(?:^(?P=fence)|\Z)"  # code blocks
    r"|<!--.*?(?:-->|\Z)|</?[a-zA-Z][^<>\n]{0,200}+>"  # the limits bound the time for marks that are never closed
    r"|<[a-zA-Z]{1,20}[ \t][^<>=]{0,100}+=[^<>]{0,400}+\Z"  # where a text was cut
    r"|\]\([^()\n]*\)|\b[a-z][a-z0-9+.-]{1,11}://[^\s<>「」、。]+|\bwww\.\S+"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]+\.[\w.-]+|&[a-z]{2,8};|\{[#*%.{][^}\n]{0,200}+\}+",
    re.M | re.S,
)
# The value after such a word is no topic and may be confidential.
_SECRET = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase|code)?|secret|token|credentials?|(?:api|access|private)[ _-]?key|パスワード|暗証番号"
    r"|合言葉|秘密鍵|アクセスキー|APIキー)[\"'`*]{0,3}[ \t]*(?:[:=：＝]|は|is\b)[ \t]*[\"'`*]{0,3}[^\s\"'`、。,]+"
)
_TOKEN = re.compile(
    rf"(?P<ja>[{JAPANESE_CHARS}]+)|(?P<word>[^\W_{JAPANESE_CHARS}]+(?:[-'’./+#_][^\W_{JAPANESE_CHARS}]+)*(?:\+\+|#)?)"
    r"|(?P<joint>・(?=[ァ-ヺ]))|(?P<gap> +)|(?P<cut>.)",
    re.S,
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9+#-]*(?:\.(?:js|io|ai|NET))?|[0-9]{1,2}[A-Za-z][A-Za-z]{0,8}")
_LETTER_DIGIT_BORDER = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_POSSESSIVE = re.compile(r"['’]s?$")
_KANA_OR_MARK = re.compile(r"[\u3041-\u309f\u30fc]+")
_KATAKANA = re.compile(r"[ァ-ヺー]+")
_MAX_WORD_CHARS = 24
_MAX_PHRASE_CHARS = {"ja": 20, "en": 40}
_MAX_WORDS = 4
_MAX_UNITS = 5  # a Japanese compound of more short units is a sentence without particles


class Noun(NamedTuple):
    """A noun phrase: its text, the forms of its words, and the forms of longer phrases around it."""

    text: str
    forms: tuple[str, ...]
    longer_forms: tuple[tuple[str, ...], ...] = ()


class _Unit(NamedTuple):
    text: str
    form: str
    role: str  # noun, prefix, suffix, word or common (Western), joint (・); plain: a noun that cannot begin a phrase
    has_gap: bool  # there is a space before it


def plain_text(text: str) -> str:
    """Return a text without code, markup, addresses, hidden characters and likely secrets, its lines joined."""
    return _SECRET.sub("\n", _NON_PROSE.sub("\n", remove_hidden_chars(normalise(join_lines(text)))))


def nouns(text: str) -> Iterator[Noun]:
    """Yield the noun phrases of a plain text, including phrases inside longer ones."""
    for units in _unit_runs(text):
        yield from _phrases(units)


def is_boilerplate(text: str) -> bool:
    """Return whether a heading or phrase is one that any document may have, or names an author."""
    phrase = " ".join(normalise(text).casefold().split()).strip(" :：.。")
    return phrase in stopwords.COMMON_HEADINGS or is_author(text)


def verbs(text: str) -> Iterator[str]:
    """Yield the form of each English word in the position of a verb: after to, can, you …"""
    for match in _VERB_POSITION.finditer(text):
        yield _word_form(match[1])


_VERB_POSITION = re.compile(
    r"(?i)(?<![\w-])(?:to|can|cannot|will|would|should|could|must|may|might|you|we|they|i|please|don't|doesn't|didn't|not"
    r"|let's|and then) ([a-z]{2,})(?![\w-])"
)


def _unit_runs(text: str) -> Iterator[list[_Unit]]:
    units: list[_Unit] = []
    has_gap = False
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind == "gap":
            has_gap = len(token) == 1 or not units
            if len(token) > 1 and units:  # columns
                yield units
                units = []
            continue
        token_units: list[_Unit | None] = [None]
        if kind == "ja":
            token_units = _japanese_units(token, has_gap)
        elif kind == "joint" and units and _KATAKANA.fullmatch(units[-1].text):
            token_units = [_Unit(token, token, "joint", False)]
        elif kind == "word":
            token_units = [_western_unit(token, has_gap)]
        for unit in token_units:
            if unit is not None:
                units.append(unit)
            elif units:
                yield units
                units = []
        has_gap = False
    if units:
        yield units


def _western_unit(token: str, has_gap: bool) -> _Unit | None:
    word = _POSSESSIVE.sub("", token)
    if len(word) > _MAX_WORD_CHARS or not _WORD.fullmatch(word) or len(_LETTER_DIGIT_BORDER.findall(word)) > 2:
        return None
    if word.lower() in stopwords.ENGLISH or len(word) < (3 if word.islower() else 2):
        return None
    # A long word of letters and digits is a key or a hash, hardly ever a name.
    if len(word) > 12 and any(char.isdigit() for char in word):
        return None
    return _Unit(word, _word_form(word), "common" if word.lower() in stopwords.ENGLISH_NOUNS else "word", has_gap)


def _japanese_units(run: str, has_gap: bool) -> list[_Unit | None]:
    units: list[_Unit | None] = []
    for surface, part_of_speech in parse_run(run):
        role = _role(surface, part_of_speech)
        if role == "drop" or (role == "suffix" and not (units and units[-1] is not None)):
            units.append(None)
        else:
            units.append(_Unit(surface, surface, role, has_gap and not units))
    return units


def _role(surface: str, part_of_speech: str) -> str:
    kind, _, subclass = part_of_speech.partition("-")
    if kind == "名詞":
        if "数詞" in subclass or "助動詞語幹" in subclass:
            return "drop"
        if surface in stopwords.JAPANESE or "副詞可能" in subclass or "助数詞可能" in subclass or len(surface) == 1:
            return "plain"
        # Kana nouns are mostly formal nouns, or parts of words that the dictionary does not have.
        return "plain" if _KANA_OR_MARK.fullmatch(surface) and len(surface) < 3 else "noun"
    if kind == "接尾辞" and subclass.startswith("名詞的"):
        return "suffix"
    if kind == "接頭辞":
        return "prefix"
    return "drop"


def _phrases(units: list[_Unit]) -> Iterator[Noun]:
    """Yield each range of adjacent units that is a phrase, with the phrases that are one or two units longer."""
    spans = [
        (start, end)
        for start in range(len(units))
        for end in range(start + 1, min(len(units), start + _MAX_UNITS) + 1)
        if _is_phrase(units, start, end)
    ]
    phrase_spans = set(spans)
    for start, end in spans:
        longer_forms = tuple(
            _forms(units, *span)
            for span in ((start - 1, end), (start, end + 1), (start - 2, end), (start, end + 2))
            if span in phrase_spans
        )
        yield Noun(_phrase_text(units, start, end), _forms(units, start, end), longer_forms)


def _is_phrase(units: list[_Unit], start: int, end: int) -> bool:
    """Return whether a range of units could be a phrase by itself."""
    phrase_units = units[start:end]
    if phrase_units[0].role in ("suffix", "plain", "joint") or phrase_units[-1].role in ("prefix", "joint"):
        return False
    if end < len(units) and units[end].role == "suffix":
        return False
    if start and units[start - 1].role == "prefix":
        return False
    text = _phrase_text(units, start, end)
    if is_boilerplate(text):
        return False
    is_specific = any(unit.role in ("noun", "word") for unit in phrase_units)
    if all(unit.role in ("word", "common") for unit in phrase_units):
        return (
            is_specific
            and len(phrase_units) <= _MAX_WORDS
            and len(text) <= _MAX_PHRASE_CHARS["en"]
            and all(unit.has_gap for unit in phrase_units[1:])
        )
    if len(phrase_units) == 1 and len(text) < 2:
        return False
    # 設定方法 is 設定 and 方法: a compound of common nouns alone says nothing.
    return (
        is_specific
        and len(text) <= _MAX_PHRASE_CHARS["ja"]
        and text not in stopwords.JAPANESE
        and phrase_units[-1].text not in stopwords.COMPOUND_TAILS
    )


def _phrase_text(units: list[_Unit], start: int, end: int) -> str:
    return "".join(" " * (unit.has_gap and index > 0) + unit.text for index, unit in enumerate(units[start:end]))


def _forms(units: list[_Unit], start: int, end: int) -> tuple[str, ...]:
    return tuple(unit.form for unit in units[start:end])


@lru_cache(20_000)
def _word_form(word: str) -> str:
    terms = analyzer.terms(normalise(word))
    return terms[0].spelling if terms else word.lower()
