"""Text in, subword pieces out: their numbers for a model, or where each stands for a chunker that counts tokens.

The tokenizer is our own (a Unigram model of Japanese and English, `training/tokenizer.py`) and lies in the package.
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
# A word is one piece whether a space stands before it or not: GitHubで, GitHub で and "GitHub" alone.
_WORD_BORDERS = re.compile(rf"(?<=[{_CJK}])(?=[A-Za-z0-9])|\s+(?=[{_CJK}])|^(?=[A-Za-z0-9])")

_SURROGATE = re.compile("[\ud800-\udfff]")  # halves of characters, which no encoding can write


def space_words(text: str) -> str:
    """Return a text with a space before each Latin word and none before Japanese."""
    return _WORD_BORDERS.sub(lambda found: "" if found.group() else " ", text)


def replace_surrogates(text: str) -> str:
    """Return a text as long as it was, with a mark for each half of a character."""
    return _SURROGATE.sub("\ufffd", text)


def token_spans(text: str) -> list[tuple[int, int]]:
    """Return where each piece of a text begins and ends, in characters."""
    found = tokenizer().encode(replace_surrogates(text), return_type="offset_mapping")
    offsets: list[tuple[int, int]] = found["offsets"]
    return offsets


@cache
def tokenizer() -> SentencePieceProcessor:
    """Return the loaded tokenizer."""
    # Loaded here: a search by words alone needs none of it.
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_file=str(MODEL_PATH))
