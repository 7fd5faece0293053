"""Index the terms of our chunks with other engines: tantivy and bm25s."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bunko.indexes.embedded.postings import Postings
from bunko.indexes.embedded.snapshot import Snapshot
from bunko.types.records import QueryTerm

K1, B = 1.2, 0.75


class Tantivy:
    """An in-memory index of one segment: words with counts, n-grams by presence, and the number of each chunk."""

    def __init__(self, snapshot: Snapshot) -> None:
        import tantivy

        self._engine = tantivy
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("row", fast=True)
        for lane in ("words", "grams"):
            builder.add_text_field(lane, tokenizer_name="whitespace", index_option="freq")
        self._schema = builder.build()
        segment = snapshot.views[0].segment
        self._lanes = {"words": segment.words, "grams": segment.grams}
        index = tantivy.Index(self._schema)
        # Enough memory for everything, so that there is one segment, as in ours.
        writer = index.writer(2_000_000_000, 1)
        texts = zip(_texts(segment.words, len(segment)), _texts(segment.grams, len(segment)), strict=True)
        for row, (words, grams) in enumerate(texts):
            writer.add_document(tantivy.Document(row=row, words=words, grams=grams))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._searcher = index.searcher()

    def terms(self, terms: Sequence[QueryTerm]) -> list[tuple[str, str, float]]:
        """Return field, token and weight of each term that occurs in the index."""
        tokens = []
        for term in terms:
            lane = "grams" if term.is_gram else "words"
            ordinal = _ordinal(self._lanes[lane], term.key)
            if ordinal is not None:
                tokens.append((lane, f"{ordinal:x}", term.weight))
        return tokens

    def query(self, terms: Sequence[tuple[str, str, float]]) -> Any:
        """Return a query of tantivy."""
        query, should = self._engine.Query, self._engine.Occur.Should
        parts = []
        for lane, token, weight in terms:
            part = query.term_query(self._schema, lane, token, index_option="freq")
            parts.append((should, part if weight == 1.0 else query.boost_query(part, weight)))
        return parts[0][1] if len(parts) == 1 else query.boolean_query(parts)

    def hits(self, query: Any, k: int) -> Any:
        """Return scores and addresses of tantivy, the least it can return."""
        return self._searcher.search(query, k, count=False).hits

    def search(self, terms: Sequence[tuple[str, str, float]], k: int) -> list[tuple[int, float]]:
        """Return the numbers and scores of the best chunks."""
        hits = self.hits(self.query(terms), k)
        rows = self._searcher.fast_field_values("row", [address for _, address in hits])
        return [(row, score) for row, (score, _) in zip(rows, hits, strict=True)]


def bm25s(snapshot: Snapshot) -> tuple[Callable[[Sequence[QueryTerm]], list[int]], Callable[[list[int], int], Any]]:
    """Return a function from terms (words only) to tokens of bm25s, and one that searches them."""
    from bm25s import BM25
    from bm25s.tokenization import Tokenized

    lane = snapshot.views[0].segment.words
    engine = BM25(k1=K1, b=B, method="lucene")
    ids = [row.tolist() for row in _rows(lane, len(snapshot.views[0].segment))]
    engine.index(Tokenized(ids, {f"{ordinal:x}": ordinal for ordinal in range(len(lane.keys))}), show_progress=False)

    def tokens(terms: Sequence[QueryTerm]) -> list[int]:
        ordinals = [_ordinal(lane, term.key) for term in terms if not term.is_gram]
        return [ordinal for ordinal in ordinals if ordinal is not None]

    def search(query: list[int], k: int) -> Any:
        return engine.retrieve([query], k=k, show_progress=False)

    return tokens, search


def _ordinal(lane: Postings, key: int) -> int | None:
    index = int(lane.keys.searchsorted(np.uint64(key)))
    return index if index < len(lane.keys) and int(lane.keys[index]) == key else None


def _rows(lane: Postings, size: int) -> Iterator[Any]:
    """Yield the ordinals of the keys of each row, repeated as often as they occur."""
    keys = np.repeat(np.arange(len(lane.keys), dtype=np.int32), np.diff(lane.starts))
    order = np.argsort(lane.rows, kind="stable")
    offsets = np.searchsorted(lane.rows[order], np.arange(size + 1))
    keys = keys[order]
    counts = lane.counts[order] if len(lane.counts) else None
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        yield keys[start:end] if counts is None else np.repeat(keys[start:end], counts[start:end])


def _texts(lane: Postings, size: int) -> Iterator[str]:
    names = [f"{ordinal:x}" for ordinal in range(len(lane.keys))]
    for row in _rows(lane, size):
        yield " ".join([names[ordinal] for ordinal in row.tolist()])
