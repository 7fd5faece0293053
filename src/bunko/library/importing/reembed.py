"""Replace the vectors of tools by those of another embedder, without reading their sources."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from bunko.embedders.names import display_name
from bunko.errors import BunkoError
from bunko.ingest.embed import LongTextCounter, embed_batches
from bunko.ingest.run import make_batches
from bunko.library.importing.importer import TOOL_ERROR_CODES, Importer
from bunko.library.tools import catalog
from bunko.library.tools.build_config import ToolConfig, has_vectors
from bunko.protocols import SentenceEmbedder, Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import NO_OBSERVER, ImportProgress, Observer
from bunko.types import Report, Tool, ToolFailure
from bunko.types.records import PreparedDocument

_log = logging.getLogger("bunko.library")

_READ_BATCH = 100


class Reembedder:
    """Compute new vectors for tools; the old ones are searched until the new ones are complete."""

    def __init__(self, store: Store, tool_config: ToolConfig, importer: Importer) -> None:
        self._store, self._tool_config, self._importer = store, tool_config, importer

    def reembed(
        self,
        names: Sequence[str],
        *,
        observer: Observer = NO_OBSERVER,
        keep_going: bool = False,  # report a tool that fails and continue with the next one
    ) -> Report:
        """Embed tools with the embedder of the current settings, reusing vectors from an interrupted run."""
        total = Report()
        with self._importer.write_lock(observer, tools=names):
            for name in names:
                try:
                    report = self._reembed_tool(catalog.get_tool(self._store, name), observer)
                except BunkoError as error:
                    if not keep_going or error.code not in TOOL_ERROR_CODES:
                        raise
                    total.failures.append(ToolFailure(name, error.code, error.message, error.hint))
                    continue
                total.updated += report.updated
                total.unchanged += report.unchanged
                total.total_chunks += report.total_chunks
                total.embedded += report.embedded
                total.notices += report.notices
                if report.interrupted:
                    total.interrupted = True
                    break
            self._store.vectors.delete_orphans()
        return total

    def _reembed_tool(self, tool: Tool, observer: Observer) -> Report:
        totals = self._store.stats.totals(tool.id)
        new = self._tool_config.new_build_info(tool)
        is_complete = (
            tool.built.embedder == new.embedder
            and not tool.built.lacks_vectors
            and not (
                isinstance(self._tool_config.embedder(), SentenceEmbedder) and self._store.vectors.unsplit(tool.id)
            )
        )
        if not tool.is_built or is_complete:
            self._store.vectors.unpin(tool.id)
            return Report(unchanged=totals.documents, total_chunks=totals.chunks)
        embedder_name = new.embedder
        _log.info("Embedding %s with %s", tool.name, display_name(embedder_name or ""))
        report = Report(total_chunks=totals.chunks)
        keys = self._embed_documents(
            tool, ImportProgress(0, totals.documents, 0, 0, totals.characters), report, observer
        )
        if report.interrupted:
            return report
        built = replace(tool.built, embedder=embedder_name, embedding=new.embedding, lacks_vectors=None)
        self._store.vectors.replace(tool.id, keys, built)
        self._store.vectors.unpin(tool.id)
        report.updated = totals.documents
        return self._importer.update_index(replace(tool, built=built), report)

    def _embed_documents(
        self,
        tool: Tool,
        done: ImportProgress,
        report: Report,
        observer: Observer,
    ) -> dict[str, list[bytes]]:
        """Embed the texts that have no vector yet, and return all vector keys by uri."""
        embedder = self._tool_config.embedder() if has_vectors(tool) else None
        if embedder is None:
            return {}
        long_texts = LongTextCounter(embedder)
        keys: dict[str, list[bytes]] = {}
        observer.on_progress(done)
        documents = make_batches(
            self._read_documents(tool, observer, report), lambda prepared: len(prepared.document.text.text)
        )
        batches = ((None, batch) for batch in documents)
        with closing(embed_batches(self._store, embedder, batches, owner_id=tool.id)) as stream:
            for batch in stream:
                self._store.vectors.pin(
                    tool.id, embedder.name, batch.vectors, sentences=batch.sentences, usage=batch.usage
                )
                reach_failpoint("reembed.batch")
                keys |= {prepared.document.uri: prepared.vector_keys for prepared in batch.documents}
                report.embedded += len(batch.vectors)
                done = replace(
                    done,
                    files=done.files + len(batch.documents),
                    chunks=done.chunks + sum(len(prepared.chunks) for prepared in batch.documents),
                    bytes=done.bytes + sum(len(prepared.document.text.text) for prepared in batch.documents),
                )
                observer.on_progress(done)
        report.notices += long_texts.warnings()
        return keys

    def _read_documents(self, tool: Tool, observer: Observer, report: Report) -> Iterator[PreparedDocument]:
        last = ""
        while uris := self._store.documents.uris(tool.id, after=last, limit=_READ_BATCH):
            if observer.is_cancelled():
                report.interrupted = True
                return
            yield from self._store.documents.export(tool.id, uris)
            last = uris[-1]
