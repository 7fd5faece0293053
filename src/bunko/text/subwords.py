"""Split text into subword tokens: their ids for a model, or their offsets for a chunker that counts tokens.

The tokenizer (a Unigram model of Japanese and English, `training/tokenizer.py`) is part of the package.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

MODEL_PATH = Path(__file__).parent.parent / "models" / "pieces.model"
MODEL_NAME = "pieces-1"

_CJK = "\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
# Each pattern begins with the characters that it looks for, which the engine skips to.
_LATIN_AFTER_CJK = re.compile(rf"[A-Za-z0-9](?<=[{_CJK}].)")
# A run of spaces is read once, from its beginning.
_SPACES_BEFORE_CJK = re.compile(rf"\s(?<!\s\s)\s*+(?=[{_CJK}])")

_SURROGATE = re.compile("[\ud800-\udfff]")  # halves of characters, which cannot be encoded


def space_words(text: str) -> str:
    """Return a text with a space before each Latin word and none before Japanese.

    A word is the same token with or without a space around it: GitHubで, GitHub で and "GitHub" alone.
    """
    if not text.isascii():
        text = _SPACES_BEFORE_CJK.sub("", _LATIN_AFTER_CJK.sub(_put_space, text))
    return f" {text}" if text[:1].isascii() and text[:1].isalnum() else text


def _put_space(match: re.Match[str]) -> str:
    return f" {match[0]}"


def replace_surrogates(text: str) -> str:
    """Return a text of the same length, with U+FFFD for each lone surrogate."""
    return _SURROGATE.sub("\ufffd", text)


def token_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end offset of each token, in characters."""
    encoded = tokenizer().encode(replace_surrogates(text), return_type="offset_mapping")
    offsets: list[tuple[int, int]] = encoded["offsets"]
    return offsets


@cache
def tokenizer() -> SentencePieceProcessor:
    """Load the tokenizer once and return it."""
    # Imported here: a lexical search does not need it.
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_file=str(MODEL_PATH))
