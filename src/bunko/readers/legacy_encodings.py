"""Guess the encoding of text that is not UTF-8: Japanese, Chinese and Western legacy encodings, and UTF-16.

Libraries that guess encodings are weak on short Japanese text. Here strict decoding and a score of how Japanese
the result looks decide.
"""

from __future__ import annotations

import re
from itertools import islice

from bunko.text.frequent_chars import is_rather_chinese, may_be_japanese

# The plain codec first; the wider one has ① and other characters that vendors added.
_JAPANESE_CODECS = (("cp932", "shift_jis_2004"), ("euc_jp", "euc_jis_2004"), ("utf-16-le",), ("utf-16-be",))
_NON_ASCII_BYTE = re.compile(rb"[\x80-\xff]")
_UTF_8_SEQUENCE = re.compile(rb"[\xe1-\xef][\x80-\xbf]{2}")
_SAMPLE_CHARS = 4000  # characters outside ASCII that are scored; scores settle after a few dozen
_NON_ASCII_CHAR = re.compile(r"[^\x00-\x7f]")
_KANA = re.compile(r"[ぁ-ゖァ-ヺー々〆、-〃「-】・！-～￠-￥]")
_HALF_WIDTH = re.compile(r"[｡-ﾟ]")
_KANJI = re.compile(r"[一-龥]")
_NEUTRAL = re.compile(r"[¢-÷‐-⏿①-⓿─-⟿〄-〠㈠-㏿Α-ωА-ё]")
# It’s in Windows-1252 is It痴 in Shift_JIS: a single kanji attached to a Latin word is a misread quote.
_STRAY_KANJI = re.compile(r"(?<=[A-Za-z])[一-龥](?![^\x00-\x7f])")
_ACCENTED_LETTER = re.compile(r"[À-ÖØ-öø-ÿŒœŠšŽžŸ](?<=[A-Za-zÀ-ž].)|[À-ÖØ-öø-ÿŒœŠšŽžŸ](?=[A-Za-zÀ-ž])", re.S)
_WESTERN_PUNCTUATION = re.compile(r"[‘’“”–—…•€£§©®™°±²³½¼¾µ«»¿¡·\xa0]|(?<!\S)[àÀéÉèêôóáíúäöåæø](?=\s|\Z)")
_MAX_WESTERN_SHARE = 0.4  # even Vietnamese or Icelandic text has fewer accents than this
_SURE_SCORE = 0.5  # right guesses score 0.7 and more, wrong ones below 0.3
_POSSIBLE_SCORE = -0.5  # half-width katakana or symbols alone, where nothing else fits


def decode_utf_16(data: bytes) -> tuple[str, str] | None:
    """Decode UTF-16 without a byte order mark: each ASCII character has a NUL, each kana the same high byte."""
    best = (_SURE_SCORE, "", "")
    for codec in ("utf-16-le", "utf-16-be"):
        text = _decode_strict(data, codec)
        if text and "\0" not in text:
            sample = text[:_SAMPLE_CHARS]
            ascii_share = 1 - len(_NON_ASCII_CHAR.findall(sample)) / len(sample)
            if 0 in data or _has_kana(sample):
                best = max(best, (ascii_share + (1 - ascii_share) * _japanese_score(sample), text, codec))
    return best[1:] if best[1] else None


def _has_kana(text: str) -> bool:
    # Any two bytes make some UTF-16 character; kana among them show that the text really is UTF-16.
    return len(_KANA.findall(text)) * 10 >= len(text)


def decode_legacy(data: bytes) -> tuple[str, str] | None:
    """Decode Japanese, Chinese or Western text, or UTF-16 without a byte order mark; return None if nothing fits."""
    best = (-9.0, "", "")
    for family in _JAPANESE_CODECS:
        for codec in family:
            if (text := _decode_strict(data, codec)) is not None:
                score = _japanese_score(text)
                if score > best[0] and (codec[:3] != "utf" or _has_kana(text)):
                    best = (score, text, codec)
                break
    japanese_sample = _sample(best[1])
    is_damaged_utf_8 = looks_like_utf_8(data)
    chinese = None if is_damaged_utf_8 else _decode_strict(data, "gb18030")
    if chinese and is_rather_chinese(_sample(chinese), japanese_sample):  # most of it is valid EUC-JP too
        return chinese, "gb18030"
    if not may_be_japanese(japanese_sample):
        best = (-9.0, "", "")  # Korean or another encoding of Chinese
    if best[0] >= _SURE_SCORE:
        return best[1], best[2]
    if is_damaged_utf_8:
        return None
    codec = "cp1252"
    western = _decode_strict(data, codec)
    if western is None:
        codec = "latin-1"
        western = data.decode(codec)
    if _western_score(western) >= _SURE_SCORE:
        return western, codec
    if best[0] > _POSSIBLE_SCORE:
        return best[1], best[2]
    return None


def may_be(text: str, codec: str) -> bool:
    """Return whether a text looks like the language of the legacy codec that decoded it; True for other codecs."""
    if codec in ("cp932", "euc_jp"):
        return may_be_japanese(_sample(text))
    return codec != "gb18030" or is_rather_chinese(_sample(text), "")


def looks_like_utf_8(data: bytes) -> bool:
    """Return whether bytes that are not valid UTF-8 are damaged UTF-8.

    A truncated or damaged file often decodes as Shift_JIS, to garbage; a real Shift_JIS file hardly contains UTF-8
    sequences.
    """
    return 2 * len(b"".join(_UTF_8_SEQUENCE.findall(data))) > len(_NON_ASCII_BYTE.findall(data))


def _decode_strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return None


def _sample(text: str) -> str:
    """Return the first characters outside ASCII."""
    return "".join(match[0] for match in islice(_NON_ASCII_CHAR.finditer(text), _SAMPLE_CHARS))


def _japanese_score(text: str) -> float:
    """Return how much the characters outside ASCII look like Japanese, up to 1."""
    sample = _sample(text)
    if not sample:
        return 1.0
    kanji = "".join(_KANJI.findall(sample))
    # In Shift_JIS the lead bytes up to 98 are the everyday kanji of level 1; the rare ones of level 2 follow.
    common_kanji = sum(lead <= 0x98 for lead in kanji.encode("shift_jis", "ignore")[::2])
    kana = len(_KANA.findall(sample))
    half_width = len(_HALF_WIDTH.findall(sample))
    other = len(sample) - kana - len(kanji) - half_width - len(_NEUTRAL.findall(sample))
    stray_kanji = len(_STRAY_KANJI.findall(text[: _SAMPLE_CHARS * 4]))
    return (kana + common_kanji - 0.5 * (len(kanji) - common_kanji) - 0.4 * half_width - other - 2 * stray_kanji) / len(
        sample
    )


def _western_score(text: str) -> float:
    """Return how much the characters outside ASCII look like accents and quotes of Western text, up to 1."""
    sample = text[: _SAMPLE_CHARS * 4]
    non_ascii = len(_NON_ASCII_CHAR.findall(sample))
    if not non_ascii:
        sample = text
        non_ascii = len(_NON_ASCII_CHAR.findall(sample))
    if non_ascii > len(sample) * _MAX_WESTERN_SHARE:
        return 0.0
    return (len(_ACCENTED_LETTER.findall(sample)) + len(_WESTERN_PUNCTUATION.findall(sample))) / max(non_ascii, 1)
