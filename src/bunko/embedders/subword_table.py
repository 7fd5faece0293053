"""Embed texts with a table of subword vectors.

The vector of a text is the weighted mean of the vectors of its subwords. The weights are part of the table. Its values
are small integers, so that sums are exact and a text has the same vector in any batch and on any machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.embedders.nearest_words import QueryWords, Table, compare, near_pairs
from bunko.errors import EmbedderError
from bunko.runtime import array_file
from bunko.runtime.package_errors import package_errors
from bunko.text.normalise import normalise
from bunko.text.sentence_codec import pack_sentences
from bunko.text.sentences import passage_ranges
from bunko.text.subwords import MODEL_PATH, replace_surrogates, space_words, split_query
from bunko.types import NearWord

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import SentenceSubwords, Vectors
    from bunko.types.records import SentenceMatch

TABLE = MODEL_PATH.with_name("static.bin")
FORMAT = 1
# More subwords than that no longer change what a text is about, and sums stay exact.
_MAX_SUBWORDS = 4000
_MAX_CHARS = 20_000
# Loading the tokenizer takes as long as splitting some hundred queries without it, each of which waits a fifth of a
# millisecond longer: a command asks one query, a server many.
_QUERIES_WITHOUT_TOKENIZER = 8
_MAX_QUERIES = 256  # whose subwords are kept
_BATCH_SIZE = 16  # texts whose subwords are counted in one matrix
# OpenBLAS computes a product of so many multiplications in one thread. Waking others costs more than they bring, and
# beside other work several times the whole: they wait for each other without giving way.
_MAX_PRODUCT = 1 << 18
# Emoji, Korean and lines of ─ all become one unknown subword: with a vector, each would be equal to any other. Passages
# in Japanese and English have a cosine of at most 0.45 with it, those in unknown characters one of at least 0.85.
_MAX_UNKNOWN_COSINE = 0.7


class Static:
    """A table of subword vectors."""

    batch_size = 100
    is_remote = False
    is_small = True  # each process may have a copy

    def __init__(self, size: int = 256, table: Path = TABLE) -> None:
        arrays, stamp = _load_table(table)
        self._rows = arrays["rows"][:, :size]
        self._scales = np.ldexp(np.float32(1), arrays["shifts"])
        self._compared = Table(self._rows, self._scales, np.zeros(len(self._rows), np.float32))
        self.label = f"static:{stamp['name']}"
        self.name = f"{self.label}:{size}"
        self.size = size
        # Three in four off-topic queries find nothing more similar than this; see training/LOG.md.
        self.noise_floor = 0.28
        self._unknown_row = _unit_rows(self._subword_rows(_UNKNOWN_SUBWORDS))[0]
        self._queries = 0  # split without the tokenizer
        self._query_ids: dict[str, npt.NDArray[np.int32]] = {}
        self._table = table

    def __reduce__(self) -> tuple[Any, ...]:
        # Another machine has the model at another path.
        return Static, (self.size,) if self._table == TABLE else (self.size, self._table)

    def unavailable_reason(self) -> str:
        """Return an empty string: this embedder is part of bunko."""
        return ""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one unit row per text."""
        if not query:
            return self.embed_sentences(texts)[0]
        sums = [self._subword_rows(self._split_query(text)).sum(axis=0) for text in texts]
        return _unit_rows(np.array(sums)) if sums else np.zeros((0, self.size), np.float32)

    def embed_sentences(self, texts: Sequence[str]) -> tuple[Vectors, list[SentenceSubwords]]:
        """Return one unit row per text, and the subwords of its passages, the sum of whose vectors the row is."""
        if not texts:
            return np.zeros((0, self.size), np.float32), []
        passages = [[text[start:end] for start, end in passage_ranges(text[:_MAX_CHARS])] or [""] for text in texts]
        ids = self._split([passage for text_passages in passages for passage in text_passages])
        sums = self._sum_texts(ids)
        lengths = np.sqrt((sums * sums).sum(axis=1))
        # A passage in characters that the table does not know has no direction: its cosine is 0.
        # Not as a product, for which OpenBLAS would wake its threads.
        lengths[np.einsum("ij,j->i", sums, self._unknown_row) > _MAX_UNKNOWN_COSINE * lengths] = np.inf
        starts = np.cumsum([0, *map(len, passages)]).tolist()
        return (
            _unit_rows(np.add.reduceat(sums, starts[:-1], axis=0)),
            [pack_sentences(ids[start:end], lengths[start:end]) for start, end in itertools.pairwise(starts)],
        )

    def compare(
        self, query: str, vector: npt.NDArray[np.float32], texts: Sequence[SentenceSubwords | str]
    ) -> tuple[list[SentenceMatch], float]:
        """Compare a query with the sentences of texts, which are split again where only the texts are known."""
        if not texts:
            return [], 0.0
        unsplit = [text for text in texts if isinstance(text, str)]
        split = iter(self.embed_sentences(unsplit)[1])
        packed = [next(split) if isinstance(text, str) else text for text in texts]
        words = self._query_words(query)
        return compare(self._compared, words, vector, packed), words.trust

    def near_words(self, query: str, text: str) -> list[NearWord]:
        """Return the words of a query that have other, near ones in the sentence of a text that counts for it."""
        pairs = near_pairs(self._compared, self._query_words(query), self.embed_sentences([text])[1][0])
        piece = load_tokenizer().id_to_piece
        return [NearWord(piece(word).lstrip("▁"), piece(near).lstrip("▁"), cosine) for word, near, cosine in pairs]

    def _query_words(self, query: str) -> QueryWords:
        known = set(self._split_query(query).tolist()).difference(_UNKNOWN_SUBWORDS.tolist())
        ids = np.array(sorted(known), np.int32)  # np.unique loads numpy.ma
        return QueryWords.of(ids, self._subword_rows(ids))

    def _split_query(self, text: str) -> npt.NDArray[np.int32]:
        """Return the subwords of a query, which is asked for when it is embedded and when it is compared."""
        ids = self._query_ids.get(text)
        if ids is None:
            if len(self._query_ids) >= _MAX_QUERIES:
                self._query_ids.clear()
            self._query_ids[text] = ids = self._split_one(text)
        return ids

    def _split_one(self, text: str) -> npt.NDArray[np.int32]:
        prepared = _prepare(text)
        if self._queries < _QUERIES_WITHOUT_TOKENIZER:
            self._queries += 1
            ids = split_query(prepared)
            if ids is not None:
                return _at_most(np.array(ids, np.int32))
        try:
            with package_errors("sentencepiece", EmbedderError):
                # Not as a list: that would start a thread, and a query would wait for it.
                return _at_most(load_tokenizer().encode(prepared, return_type="numpy"))
        except EmbedderError:
            ids = split_query(prepared)
            if ids is None:
                raise
            return _at_most(np.array(ids, np.int32))

    def _split(self, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """Return the subwords of each text."""
        with package_errors("sentencepiece", EmbedderError):
            encoded = load_tokenizer().encode(list(map(_prepare, texts)), return_type="numpy", num_threads=1)
            return list(map(_at_most, encoded))

    def _sum_texts(self, ids: list[npt.NDArray[np.int32]]) -> Vectors:
        """Return the sum of the vectors of each text's subwords."""
        batches = (ids[start : start + _BATCH_SIZE] for start in range(0, len(ids), _BATCH_SIZE))
        return np.concatenate([self._sum_rows(batch) for batch in batches])

    def _sum_rows(self, subword_ids: list[Any]) -> Vectors:
        """Return the sum of each text's rows: a matrix of subword counts times the rows of these subwords."""
        flat_ids = np.concatenate(subword_ids)
        present = np.zeros(len(self._rows), bool)
        present[flat_ids] = True
        distinct = np.flatnonzero(present)
        column = np.empty(len(self._rows), np.int64)
        column[distinct] = np.arange(len(distinct))
        cells = column[flat_ids] + np.repeat(
            np.arange(len(subword_ids)) * len(distinct), [len(ids) for ids in subword_ids]
        )
        counts = np.bincount(cells, minlength=len(subword_ids) * len(distinct)).astype(np.float32)
        counts = counts.reshape(len(subword_ids), len(distinct))
        rows = self._subword_rows(distinct)
        step = max(_MAX_PRODUCT // counts.size, 1)
        return np.concatenate([counts @ rows[:, start : start + step] for start in range(0, self.size, step)], axis=1)

    def _subword_rows(self, subwords: Any) -> Vectors:
        rows: Vectors = self._rows[subwords] * self._scales[subwords, None]
        return rows


_UNKNOWN_SUBWORDS = np.zeros(1, np.int32)


def _at_most(ids: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the first subwords of a text, and at least one."""
    return ids[:_MAX_SUBWORDS] if len(ids) else _UNKNOWN_SUBWORDS


def _prepare(text: str) -> str:
    """Return a text as the tokenizer was trained on it."""
    return space_words(" ".join(normalise(replace_surrogates(text[:_MAX_CHARS])).split()))


def _unit_rows(sums: Vectors) -> Vectors:
    norms = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
    is_zero = norms[:, 0] == 0  # a text without known subwords still needs a unit vector
    norms[is_zero] = 1.0
    units: Vectors = sums / norms
    units[is_zero, 0] = 1.0
    return units


@cache
def _load_table(table: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    return array_file.load_arrays(table, format_version=FORMAT, verify_checksum=False)


@cache
def load_tokenizer() -> Any:
    """Return the tokenizer of the model, which is built once in a process."""
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_file=str(MODEL_PATH))
