"""Estimate how many tokens a language model counts for a text, without its vocabulary."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD_HUNDREDTHS = 40  # of a token for each word, in addition to those of its letters
_LETTER_HUNDREDTHS = 16  # nothing else weighs that much
_WORDS = re.compile("[A-Za-z]+")
_SHORT_CHARS = 100
_MAX_CHAR_HUNDREDTHS = 150  # of any character, also of a letter that is a word
# Fitted to a common byte-pair vocabulary on Japanese and English texts, on the safe side for newer ones, which need
# fewer tokens for Japanese. A kanji is more than a token there, a Latin letter a sixth of one. First, last, tokens;
# later ranges override earlier ones. Each half of a surrogate pair in UTF-16 counts half.
_CHAR_TOKENS = (
    (0x0000, 0xFFFF, 1.5),
    (0x0000, 0x007F, 0.0),
    (0xD800, 0xDFFF, 0.75),
    (0xF900, 0xFFEF, 0.0),
    (0x3400, 0x9FFF, 1.4), (0xF900, 0xFAFF, 1.4),
    (0x3000, 0x3040, 0.65), (0xFF00, 0xFF65, 0.65),
    (0x3005, 0x3005, 1.4),
    (0x3041, 0x30FF, 0.9), (0xFF66, 0xFF9F, 0.9),
    (0x21, 0x2F, 0.5), (0x3A, 0x40, 0.5), (0x5B, 0x60, 0.5), (0x7B, 0x7E, 0.5),
    (0x30, 0x39, 0.6),
    (0x0A, 0x0A, 0.35), (0x09, 0x09, 0.03), (0x20, 0x20, 0.03),
    (0x41, 0x5A, _LETTER_HUNDREDTHS / 100), (0x61, 0x7A, _LETTER_HUNDREDTHS / 100),
)  # fmt: skip


@cache
def _weight_table() -> NDArray[np.uint8]:
    """Return the hundredths of a token of each UTF-16 unit: whole numbers are exact, and faster to add."""
    import numpy as np

    weights = np.zeros(0x10000, np.uint8)
    for first, last, weight in _CHAR_TOKENS:
        weights[first : last + 1] = round(weight * 100)
    return weights


@cache
def _weights() -> bytes:
    """Return the same table as bytes, which Python reads faster."""
    return _weight_table().tobytes()


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, within about a quarter for a paragraph or more."""
    if len(text) <= _SHORT_CHARS:
        # An array takes longer to create than a path or a heading to count.
        try:
            hundredths = sum(map(_weights().__getitem__, map(ord, text)))
        except IndexError:  # a character of two units
            pass
        else:
            return _round_up(hundredths + _WORD_HUNDREDTHS * len(_WORDS.findall(text)))
    # Imported here: a server lists its tools before it needs arrays.
    import numpy as np

    weights = _weight_table().take(np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2"))
    is_letter = weights == _LETTER_HUNDREDTHS
    word_count = int(np.count_nonzero(is_letter[1:] > is_letter[:-1])) + int(is_letter[0])
    return _round_up(int(weights.sum()) + _WORD_HUNDREDTHS * word_count)


def max_tokens(char_count: int) -> int:
    """Return the most tokens that `estimate_tokens` returns for a text of that many characters."""
    return _round_up(_MAX_CHAR_HUNDREDTHS * char_count)


def _round_up(hundredths: int) -> int:
    return -(-hundredths // 100)
