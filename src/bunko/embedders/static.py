"""Finds by meaning in Japanese and English, offline; the model is our own and lies in the package.

A text is the weighted mean of the vectors of its pieces. The weights are already in the table, whose numbers are whole
and small: sums of them are exact, so that a text has the same vector in any batch, on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko import array_file
from bunko.text.normalise import normalise
from bunko.text.subwords import MODEL_PATH, replace_surrogates, space_words

if TYPE_CHECKING:
    from bunko.types import Vectors

TABLE = MODEL_PATH.with_name("static.bin")
FORMAT = 1
# More pieces than that no longer change what a text is about, and sums stay exact.
_MAX_SUBWORDS = 4000
_MAX_CHARS = 20_000
_BATCH_SIZE = 32  # texts whose pieces are counted in one table


class Static:
    """A table of pieces."""

    batch_size = 100
    is_remote = False

    def __init__(self, size: int = 256, table: Path = TABLE) -> None:
        found, stamp = _load_table(table)
        self._rows = found["rows"][:, :size]
        self._scales = np.ldexp(np.float32(1), found["shifts"])
        self.label = f"static:{stamp['name']}"
        self.name = f"{self.label}:{size}"
        self.size = size
        # Of questions about other things, four in five find nothing nearer than this; see training/LOG.md.
        self.noise_floor = 0.28
        self._tokenizer = _load_tokenizer()

    def unavailable_reason(self) -> str:
        """Return nothing: it comes with bunko."""
        return ""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return a row for each text."""
        if not texts:
            return np.zeros((0, self.size), np.float32)
        short = [normalise(replace_surrogates(text[:_MAX_CHARS])) for text in texts]
        plain = [space_words(" ".join(text.split())) for text in short]
        if len(plain) == 1:  # a list would start a thread, and a query would wait for it
            found = [self._tokenizer.encode(plain[0], return_type="numpy")]
        else:
            found = self._tokenizer.encode(plain, return_type="numpy", num_threads=1)
        found = [one[:_MAX_SUBWORDS] if len(one) else _UNKNOWN_SUBWORDS for one in found]
        if len(found) == 1:
            sums = self._subword_rows(found[0]).sum(axis=0, keepdims=True)
        else:
            sums = np.concatenate(
                [self._sum_rows(found[at : at + _BATCH_SIZE]) for at in range(0, len(found), _BATCH_SIZE)]
            )
        norms = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
        # A text of which nothing is known still has to point somewhere.
        sums[norms[:, 0] == 0, 0] = norms[norms == 0] = 1.0
        vectors: Vectors = sums / norms
        return vectors

    def _sum_rows(self, subword_ids: list[Any]) -> Vectors:
        """Return the sum of each text's rows: how often each piece occurs, times the rows of all pieces."""
        pieces = np.concatenate(subword_ids)
        present = np.zeros(len(self._rows), bool)
        present[pieces] = True
        known = np.flatnonzero(present)
        place = np.empty(len(self._rows), np.int64)
        place[known] = np.arange(len(known))
        cells = place[pieces] + np.repeat(np.arange(len(subword_ids)) * len(known), [len(one) for one in subword_ids])
        counts = np.bincount(cells, minlength=len(subword_ids) * len(known)).astype(np.float32)
        sums: Vectors = counts.reshape(len(subword_ids), len(known)) @ self._subword_rows(known)
        return sums

    def _subword_rows(self, subwords: Any) -> Vectors:
        rows: Vectors = self._rows[subwords] * self._scales[subwords, None]
        return rows


_UNKNOWN_SUBWORDS = np.zeros(1, np.int32)


@cache
def _load_table(table: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    return array_file.load_arrays(table, format_version=FORMAT, verify_checksum=False)


@cache
def _load_tokenizer() -> Any:
    from sentencepiece import SentencePieceProcessor

    tokenizer = SentencePieceProcessor(model_file=str(MODEL_PATH))
    # A space before the first word makes it the same piece as in the middle of a sentence.
    tokenizer.override_normalizer_spec(remove_extra_whitespaces=False)
    return tokenizer


def build(size: int = 256) -> Static:
    """Return the embedder; 128 numbers take half the room and find nearly as much."""
    return Static(size)
