"""Split text into subword tokens: their ids for a model, or their offsets for a chunker that counts tokens.

The tokenizer (a Unigram model of Japanese and English, `training/tokenizer.py`) is part of the package. It takes longer
to load than most searches take, so a query is split without it: its pieces lie sorted in a file (`training/pieces.py`)
that is mapped into memory. The split with the highest score is found as sentencepiece finds it, with the same rounding,
so that both return the same subwords.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bunko.runtime.array_file import load_arrays
from bunko.runtime.package_errors import package_errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy.typing as npt
    from sentencepiece import SentencePieceProcessor

MODEL_PATH = Path(__file__).parent.parent / "models" / "pieces.model"
MODEL_NAME = "pieces-1"
# The file keeps every space: with one before it, the first word of a text is the same subword as in the middle of a
# sentence. Where tokens are counted, a run of spaces is no token: serialised protocol buffers merge when they are
# joined, and this one sets `normalizer_spec.remove_extra_whitespaces`.
_COLLAPSE_SPACES = b"\x1a\x02\x20\x01"

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
    with package_errors("sentencepiece"):
        encoded = tokenizer().encode(replace_surrogates(text), return_type="offset_mapping")
        offsets: list[tuple[int, int]] = encoded["offsets"]
    return offsets


@cache
def tokenizer() -> SentencePieceProcessor:
    """Load the tokenizer once and return it."""
    # Imported here: a lexical search does not need it.
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_proto=MODEL_PATH.read_bytes() + _COLLAPSE_SPACES)


PIECES_PATH = MODEL_PATH.with_name("pieces.bin")
FORMAT = 1
# What the tokenizer's normalisation leaves as it is, except for case. With any other character, only it can tell.
_PLAIN_TEXT = re.compile(r"[ -~ぁ-ゖァ-ヺー一-鿿々、。「」・]{,500}")
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
_UNKNOWN_ID = 0
_UNKNOWN_PENALTY = 10  # of sentencepiece, for a character that is no piece


def split_query(text: str) -> list[int] | None:
    """Return the ids of a text's subwords, or None if only the tokenizer can tell."""
    if not _PLAIN_TEXT.fullmatch(text):
        return None
    return _load_pieces().split(text.lower().replace(" ", _SPACE))


class _Pieces:
    """The pieces of the tokenizer in the order of their bytes, with their ids and scores."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._texts, self._ends = arrays["texts"].tobytes(), arrays["ends"].data
        self._ids, self._scores = arrays["ids"].data, arrays["scores"].data
        self._unknown_score = _round(float(arrays["scores"].min()) - _UNKNOWN_PENALTY)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> bytes:
        return self._texts[self._ends[number - 1] if number else 0 : self._ends[number]]

    def split(self, text: str) -> list[int]:
        """Return the ids of the pieces with the highest sum of scores (Viterbi's algorithm)."""
        # For each end: the best score of a split of what is before it, and the beginning and id of its last piece.
        scores, starts, ids = [0.0] * (len(text) + 1), [-1] * (len(text) + 1), [_UNKNOWN_ID] * (len(text) + 1)
        for start in range(len(text)):
            pieces = self._pieces_at(text, start)
            if not pieces or pieces[0][0] != start + 1:
                pieces.insert(0, (start + 1, _UNKNOWN_ID, self._unknown_score))
            for end, piece_id, piece_score in pieces:
                score = _round(scores[start] + piece_score)
                if starts[end] < 0 or score > scores[end]:
                    scores[end], starts[end], ids[end] = score, start, piece_id
        split: list[int] = []
        end = len(text)
        while end:
            # Unknown characters in a row are one subword.
            if ids[end] != _UNKNOWN_ID or not split or split[-1] != _UNKNOWN_ID:
                split.append(ids[end])
            end = starts[end]
        return split[::-1]

    def _pieces_at(self, text: str, start: int) -> list[tuple[int, int, float]]:
        """Return end, id and score of the pieces that begin at a place of a text, the shortest first."""
        pieces: list[tuple[int, int, float]] = []
        first, last = 0, len(self)
        for end in range(start + 1, len(text) + 1):
            prefix = text[start:end].encode()
            first = bisect_left(self, prefix, first, last)
            last = bisect_left(self, prefix + b"\xff", first, last)
            if first == last:
                break
            if self[first] == prefix:
                pieces.append((end, self._ids[first], self._scores[first]))
        return pieces


def _round(score: float) -> float:
    """Round a score as sentencepiece does, which computes with single precision."""
    return float(np.float32(score))


@cache
def _load_pieces() -> _Pieces:
    return _Pieces(load_arrays(PIECES_PATH, format_version=FORMAT, verify_checksum=False)[0])
