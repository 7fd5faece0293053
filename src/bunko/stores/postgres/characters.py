"""Store texts with NUL characters, which PostgreSQL refuses, and give all texts back as they were."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

# The last code points mean nothing by definition, so hardly any text has them. One that does, perhaps to do harm, gets
# them back too: only then is a stored text longer than the original.
_NUL, _ESCAPE = "\U0010fffe", "\U0010ffff"
ENCODING_CHARACTERS = _NUL + _ESCAPE
_ENCODED = {"\0": _NUL, _NUL: f"{_ESCAPE}n", _ESCAPE: f"{_ESCAPE}e"}
_DECODED = {encoded: text for text, encoded in _ENCODED.items()}
_TO_ENCODE = re.compile("|".join(_ENCODED))
_TO_DECODE = re.compile("|".join(_DECODED))


def encode_text(text: str) -> str:
    """Return a text that PostgreSQL can store."""
    if "\0" in text or _NUL in text or _ESCAPE in text:
        return _TO_ENCODE.sub(lambda match: _ENCODED[match[0]], text)
    return text


def decode_text(text: str) -> str:
    """Return a text as it was before `encode_text`."""
    if _NUL in text or _ESCAPE in text:
        return _TO_DECODE.sub(lambda match: _DECODED[match[0]], text)
    return text


def encode_values(values: Sequence[Any]) -> Sequence[Any]:
    """Return values that PostgreSQL can store."""
    return [encode_text(value) if type(value) is str else value for value in values]


def decode_rows(rows: list[tuple[Any, ...]], text_columns: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return rows as they were before `encode_values`."""
    for column in text_columns:
        # All at once, because hardly ever is there anything to do.
        if any(_NUL in text or _ESCAPE in text for row in rows if (text := row[column]) is not None):
            return [tuple(decode_text(value) if type(value) is str else value for value in row) for row in rows]
    return rows


def decoded_rows(_: object) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return what makes decoded rows of a cursor's values."""
    return lambda values: tuple(decode_text(value) if type(value) is str else value for value in values)
