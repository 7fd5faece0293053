"""Find the passages that are most like a document: by its vectors, or by its key phrases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bunko.search.hits import fetch_hits
from bunko.search.keyphrases import extract_phrases
from bunko.search.rank import RankedRow
from bunko.search.request import RankRequest
from bunko.types import Hit
from bunko.types.records import ChunkRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bunko.protocols import IndexView, Store
    from bunko.types.records import PreparedDocument

# Near passages are often of one document.
_PASSAGES_PER_DOCUMENT = 8
# What a document is about is said early.
_MAX_CHUNKS = 50


def nearest_hits(
    store: Store, view: IndexView, tools: Mapping[int, str], tool_id: int, prepared: PreparedDocument, limit: int
) -> list[Hit]:
    """Return the passages that are nearest to the mean of a document's vectors, its own among them.

    Call it inside the store's `read_transaction` with a view taken there.
    """
    _, means = store.vectors.document_means(tool_id, prepared.document.uri)
    if not len(means):
        return []
    mean = (means[0] / (np.linalg.norm(means[0]) or 1.0)).astype(np.float32)
    count = _PASSAGES_PER_DOCUMENT * limit + len(prepared.chunks)
    nearest = view.nearest(mean, count).ranking
    rows = [RankedRow(row, score, 1 - score, None, None, None) for row, score in zip(*nearest, strict=True)]
    return fetch_hits(store, view, tools, RankRequest("", read_documents=True), rows)


def key_phrases(tool_id: int, prepared: PreparedDocument) -> str:
    """Return the phrases that say what a document is about."""
    document = prepared.document
    return " ".join(
        phrase.text
        for phrase in extract_phrases(
            ChunkRow(tool_id, 0, document.uri, document.text.title, "", (), "", chunk)
            for chunk in prepared.chunks[:_MAX_CHUNKS]
        )
    )
