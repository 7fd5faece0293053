"""A pack in, its documents in a tool out: as they are if both libraries work alike, else made anew from their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.embedders import checked
from bunko.failpoints import reach
from bunko.ingest.embed import paid, with_vectors
from bunko.ingest.pipeline import ChunkerSettings, Progress, batches, packed_terms
from bunko.library.pack.file import Pack
from bunko.library.pack.records import Record
from bunko.protocols import Embedder, Store
from bunko.records import Prepared, Spent
from bunko.types import Report, Tool

if TYPE_CHECKING:
    from bunko.types import Vectors

# What does not change how documents are cut.
_NOT_CUTTING = {"words", "grams", "embedder"}


def take(
    store: Store,
    into: Tool,
    pack: Pack,
    cutting: ChunkerSettings,
    embedder: Embedder | None,
    built: Mapping[str, Any],
    *,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Report:
    """Put a pack's documents into a tool; what was made otherwise than here is made anew from their texts."""
    theirs = pack.tool.built
    different = {name for name in (built.keys() | theirs.keys()) if built.get(name) != theirs.get(name)}
    chunker = cutting.build() if different - _NOT_CUTTING else None
    report, costly = Report(added=pack.documents), paid(embedder)
    done = Progress(0, pack.documents, 0, 0, 0)
    for batch in batches(pack.records(), lambda record: len(record.prepared.document.text.text)):
        carried = _Carried(embedder) if embedder is not None else None
        put = []
        for record in batch:
            if carried is not None and "embedder" not in different:
                carried.add(record)
            document, chunks = record.prepared.document, record.prepared.chunks
            if chunker is not None:
                chunks = chunker.chunks(document.text) or chunks
            if chunker is not None or "words" in different:
                put.append(Prepared(document, chunks, packed_terms(document, chunks)))
            else:
                put.append(record.prepared)
        calls = costly.counts.calls if costly else 0
        named, vectors, _ = with_vectors(store, carried, put)
        spent = {}
        if carried is not None and carried.embedded:
            made = costly.counts.calls - calls if costly else -(-carried.embedded // carried.batch)
            spent[carried.name] = Spent(carried.embedded, made)
        store.write(into.id, put=named, vectors=vectors, spent=spent)
        reach("pack.batch")
        report.total_chunks += sum(len(one.chunks) for one in put)
        report.embedded += carried.embedded if carried is not None else 0
        done = replace(done, files=done.files + len(put), chunks=report.total_chunks)
        progress(done)
    if chunker is not None:
        report.notices.append("This library cuts documents another way: they were cut anew from their texts.")
    elif "words" in different:
        report.notices.append("This library finds words another way: they were found anew in the texts.")
    if report.embedded:
        report.notices.append(f"{report.embedded} texts were embedded here: the pack has no vectors that fit.")
    return report


class _Carried:
    """An embedder that knows the vectors a pack brought, and asks another for the rest."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.size, self.floor, self.embedded = embedder.name, embedder.size, embedder.floor, 0
        self.label, self.batch, self.remote = embedder.label, embedder.batch, embedder.remote
        self._embedder, self._known = embedder, dict[str, "Vectors"]()

    def add(self, record: Record) -> None:
        """Take note of a document's vectors."""
        if record.vectors is None or record.vectors.shape[1] != self.size:
            return
        title = record.prepared.document.text.title
        texts = (chunk.in_context(title) for chunk in record.prepared.chunks)
        self._known.update(zip(texts, record.vectors, strict=True))

    def available(self) -> str:
        """Return what the other one lacks."""
        return self._embedder.available()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one row for each text."""
        new = [text for text in texts if text not in self._known]
        if new:
            self.embedded += len(new)
            self._known.update(zip(new, checked(self._embedder, new, query=query), strict=True))
        return np.stack([self._known[text] for text in texts])
