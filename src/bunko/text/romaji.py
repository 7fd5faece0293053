"""Write names in ASCII letters: Japanese by its reading, Western letters without accents."""

from __future__ import annotations

import re

from bunko.text.language import JAPANESE_CHARS
from bunko.text.normalise import normalise, strip_accents
from bunko.text.part_of_speech import parse_readings

_JAPANESE_RUN = re.compile(f"([{JAPANESE_CHARS}]+)")
_KATAKANA = re.compile("[ァ-ヺー]+")
_VOWELS = "aiueo"
# Hepburn. A long vowel is written like a short one, as on signs and in passports: トーキョー is tokyo.
_ROMAJI = dict(
    zip(
        "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヰヱヲン"
        "ガギグゲゴザジズゼゾダヂヅデドバビブベボパピプペポヴヷヸヹヺァィゥェォャュョヮヵヶ",
        "a i u e o ka ki ku ke ko sa shi su se so ta chi tsu te to na ni nu ne no ha hi fu he ho"
        " ma mi mu me mo ya yu yo ra ri ru re ro wa i e o n"
        " ga gi gu ge go za ji zu ze zo da ji zu de do ba bi bu be bo pa pi pu pe po vu va vi ve vo"
        " a i u e o ya yu yo wa ka ke".split(),
        strict=True,
    )
)
_SMALL_VOWELS, _SMALL_YA = "ァィゥェォ", "ャュョ"
# What the others have before a small vowel is their consonant: フ is fu, ファ is fa.
_GLIDES = {"ウ": "w", "イ": "y", "ク": "kw", "グ": "gw"}
# Words that belong to the one before or after them.
_SUFFIXES, _PREFIX = ("接尾辞", "助動詞", "助詞-接続助詞"), "接頭辞"


def romanize(name: str) -> str:
    """Return a name with its words in ASCII letters, Japanese ones joined by _; what cannot be read stays as it is."""
    parts = [
        _read_run(run) if _JAPANESE_RUN.fullmatch(run) else strip_accents(run)
        for run in _JAPANESE_RUN.split(normalise(name))
        if run
    ]
    result = ""
    for part in parts:
        result += "_" if result[-1:].isalnum() and part[:1].isalnum() else ""
        result += part
    return result


def kana_to_romaji(kana: str) -> str:
    """Return katakana in Hepburn romaji."""
    syllables: list[str] = []
    for previous, char in zip(f" {kana}", kana, strict=False):
        syllable = _ROMAJI.get(char, "")
        if char in _SMALL_VOWELS + _SMALL_YA and syllables and syllables[-1]:
            syllables[-1] = _contract(previous, syllables[-1], syllable)
        else:
            syllables.append(syllable)
        if previous == "ッ" and syllable[:1] not in ("", *_VOWELS):
            syllables[-2:-1] = ["t" if syllable.startswith("ch") else syllable[0]]
    return "".join(syllables)


def _contract(base: str, syllable: str, small: str) -> str:
    """Return a syllable that a small kana follows: キ and ャ are kya, シ and ャ sha, フ and ァ fa."""
    consonant = syllable.rstrip(_VOWELS)
    if len(small) == 1:
        return _GLIDES.get(base, consonant) + small
    return consonant + (small[1:] if consonant in ("sh", "ch", "j") else small)


def _read_run(run: str) -> str:
    words: list[str] = []
    is_prefix = False
    for surface, reading, part_of_speech in parse_readings(run):
        word = reading if _KATAKANA.fullmatch(reading) else surface
        if words and (is_prefix or part_of_speech.startswith(_SUFFIXES)):
            words[-1] += word
        else:
            words.append(word)
        is_prefix = part_of_speech.startswith(_PREFIX)
    return "_".join(_KATAKANA.sub(lambda match: kana_to_romaji(match[0]), word) for word in words)


def fold_romaji(word: str) -> str:
    """Return a romanized name without long vowels: Oosaka, Ōsaka and Osaka are the same."""
    return re.sub(r"ou|oo|oh(?![aiueo])", "o", word.lower()).replace("uu", "u")
