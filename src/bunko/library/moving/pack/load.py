"""Load the documents of a pack into a tool, chunking and embedding them again where the settings differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bunko.embedders import as_remote, embed_and_check
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import embed_documents
from bunko.ingest.prepare import pack_terms
from bunko.ingest.run import make_batches
from bunko.library.moving.pack.file import Pack
from bunko.library.moving.pack.records import PackRecord
from bunko.protocols import Chunker, Embedder, SentenceEmbedder, Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import NO_OBSERVER, ImportProgress, Observer
from bunko.types import Report, Tool
from bunko.types.build_info import BuildInfo
from bunko.types.records import EmbeddingUsage, PreparedDocument

if TYPE_CHECKING:
    from bunko.types import SentenceVectors, Vectors

# Parts that do not affect the chunks.
_NOT_CHUNKING_PARTS = {"words", "grams", "embedder"}


def load_pack(
    store: Store,
    target: Tool,
    pack: Pack,
    chunker_settings: ChunkerSettings,
    embedder: Embedder | None,
    build_info: BuildInfo,
    *,
    observer: Observer = NO_OBSERVER,
) -> Report:
    """Load a pack's documents into a tool; chunks, terms and vectors built with other settings are computed again."""
    different = (
        pack.tool.built.differences(build_info) | build_info.differences(pack.tool.built) | pack.tool.built.other.keys()
    )
    chunker = chunker_settings.build() if different - _NOT_CHUNKING_PARTS else None
    report, remote = Report(added=pack.documents), as_remote(embedder)
    import_progress = ImportProgress(0, pack.documents, 0, 0, 0)
    for batch in make_batches(pack.records(), lambda record: len(record.prepared.document.text.text)):
        pack_embedder = _PackEmbedder(embedder) if embedder is not None else None
        documents = []
        for record in batch:
            if pack_embedder is not None and "embedder" not in different:
                pack_embedder.add_vectors(record)
            documents.append(_prepare_document(record.prepared, chunker, new_terms="words" in different))
        calls_before = remote.stats.calls if remote else 0
        embedded = embed_documents(store, pack_embedder, documents)
        usage = {}
        if pack_embedder is not None and pack_embedder.embedded_count:
            texts = pack_embedder.embedded_count
            calls = remote.stats.calls - calls_before if remote else -(-texts // pack_embedder.batch_size)
            usage[pack_embedder.name] = EmbeddingUsage(texts, calls)
        store.documents.write(
            target.id,
            upsert=embedded.documents,
            vectors=embedded.vectors,
            sentences=embedded.sentences,
            usage=usage,
        )
        reach_failpoint("pack.batch")
        report.total_chunks += sum(len(prepared.chunks) for prepared in documents)
        report.embedded += pack_embedder.embedded_count if pack_embedder is not None else 0
        import_progress = replace(
            import_progress, files=import_progress.files + len(documents), chunks=report.total_chunks
        )
        observer.on_progress(import_progress)
    if chunker is not None:
        report.notices.append("This library uses another chunker, so the documents were chunked again.")
    elif "words" in different:
        report.notices.append("This library uses another tokenizer, so the words of the texts were extracted again.")
    if report.embedded:
        report.notices.append(f"{report.embedded} texts were embedded again, because the pack has no matching vectors.")
    return report


def _prepare_document(prepared: PreparedDocument, chunker: Chunker | None, *, new_terms: bool) -> PreparedDocument:
    """Return a document with chunks of this library's chunker, if one is given, and terms that match them."""
    if chunker is None and not new_terms:
        return prepared
    document, chunks = prepared.document, prepared.chunks
    if chunker is not None:
        chunks = chunker.chunks(document.text) or chunks
    return PreparedDocument(document, chunks, pack_terms(document, chunks))


class _PackEmbedder:
    """An embedder that returns the vectors of a pack, and calls another embedder for other texts."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.size, self.noise_floor, self.embedded_count = (
            embedder.name,
            embedder.size,
            embedder.noise_floor,
            0,
        )
        self.label, self.batch_size, self.is_remote = embedder.label, embedder.batch_size, embedder.is_remote
        self._embedder, self._vectors = embedder, dict[str, "Vectors"]()
        if isinstance(embedder, SentenceEmbedder):
            self.embed_sentences = partial(self._embed_sentences, embedder)

    def add_vectors(self, record: PackRecord) -> None:
        """Add the vectors of a document."""
        if record.vectors is None or record.vectors.shape[1] != self.size:
            return
        title = record.prepared.document.text.title
        texts = (chunk.text_in_context(title) for chunk in record.prepared.chunks)
        self._vectors.update(zip(texts, record.vectors, strict=True))

    def unavailable_reason(self) -> str:
        """Return why the wrapped embedder cannot be used."""
        return self._embedder.unavailable_reason()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one row for each text."""
        new_texts = [text for text in texts if text not in self._vectors]
        if new_texts:
            self.embedded_count += len(new_texts)
            self._vectors.update(zip(new_texts, embed_and_check(self._embedder, new_texts, query=query), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def _embed_sentences(
        self, embedder: SentenceEmbedder, texts: Sequence[str]
    ) -> tuple[Vectors, list[SentenceVectors]]:
        """Compute all vectors: a pack has none of sentences, and an embedder that computes them costs nothing."""
        self.embedded_count += sum(text not in self._vectors for text in texts)
        return embedder.embed_sentences(texts)
