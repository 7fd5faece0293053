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
# A word is the same token with or without a space around it: GitHubで, GitHub で and "GitHub" alone.
# A run of spaces is read once, from its beginning.
_WORD_BORDERS = re.compile(rf"(?<=[{_CJK}])(?=[A-Za-z0-9])|(?<!\s)\s++(?=[{_CJK}])|^(?=[A-Za-z0-9])")

_SURROGATE = re.compile("[\ud800-\udfff]")  # halves of characters, which cannot be encoded


def space_words(text: str) -> str:
    """Return a text with a space before each Latin word and none before Japanese."""
    return _WORD_BORDERS.sub(lambda match: "" if match.group() else " ", text)


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
