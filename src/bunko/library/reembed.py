"""Tools in, the same documents with the vectors of another embedder out; nothing is read from their sources."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from bunko.errors import BunkoError
from bunko.failpoints import reach
from bunko.ingest.embed import TooLong, embedded
from bunko.ingest.pipeline import Progress, batches
from bunko.library import catalog
from bunko.library.build_config import Recipe
from bunko.library.importing import OWN, Importing
from bunko.protocols import Store
from bunko.records import Prepared
from bunko.types import Failure, Report, Tool

_log = logging.getLogger("bunko.library")

_READ_AT_ONCE = 100


class Reembedding:
    """Changes what made the vectors of tools: beside the old ones, which answer until the new ones are whole."""

    def __init__(self, store: Store, recipe: Recipe, importing: Importing) -> None:
        self._store, self._recipe, self._importing = store, recipe, importing

    def reembed(
        self,
        names: Sequence[str],
        *,
        progress: Callable[[Progress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        going_on: bool = False,  # a tool that fails is told of in the report, and the others are done
    ) -> Report:
        """Give tools the vectors that the settings name now; what an earlier attempt made is not made again."""
        total = Report()
        with self._importing.writing(waiting, stopped=stopped):
            for name in names:
                try:
                    done = self._one(catalog.named(self._store, name), progress, stopped)
                except BunkoError as error:
                    if not going_on or error.code not in OWN:
                        raise
                    total.failures.append(Failure(name, error.code, error.message, error.hint))
                    continue
                total.updated += done.updated
                total.unchanged += done.unchanged
                total.total_chunks += done.total_chunks
                total.embedded += done.embedded
                total.notices += done.notices
                if done.interrupted:
                    total.interrupted = True
                    break
            self._store.sweep()
        return total

    def _one(self, tool: Tool, progress: Callable[[Progress], None], stopped: Callable[[], bool]) -> Report:
        self._recipe.check(tool, vectors=False)
        totals = self._store.totals(tool.id)
        if not tool.built or not self._recipe.different(tool):
            self._store.release(tool.id)
            return Report(unchanged=totals.documents, total_chunks=totals.chunks)
        built = self._recipe.built(tool)
        _log.info("Making the vectors of %s with %s", tool.name, built["embedder"])
        report = Report(total_chunks=totals.chunks)
        keys = self._keys(tool, Progress(0, totals.documents, 0, 0, totals.characters), report, progress, stopped)
        if report.interrupted:
            return report
        self._store.rekey(tool.id, keys, tool.built | {"embedder": built["embedder"]})
        self._store.release(tool.id)
        report.updated = totals.documents
        return self._importing.indexed(tool, report)

    def _keys(
        self,
        tool: Tool,
        done: Progress,
        report: Report,
        progress: Callable[[Progress], None],
        stopped: Callable[[], bool],
    ) -> dict[str, list[bytes]]:
        """Make the vectors that are not there yet, and return the names of all by uri."""
        embedder = self._recipe.embedder_of(tool)
        if embedder is None:
            return {}
        too_long = TooLong(embedder)
        keys: dict[str, list[bytes]] = {}
        progress(done)
        documents = batches(self._documents(tool, stopped, report), lambda one: len(one.document.text.text))
        with closing(embedded(self._store, embedder, documents, list, owner=tool.id)) as stream:
            for one in stream:
                self._store.keep(tool.id, embedder.name, one.vectors, spent=one.spent)
                reach("reembed.batch")
                keys |= {prepared.document.uri: prepared.vector_keys for prepared in one.put}
                report.embedded += len(one.vectors)
                done = replace(
                    done,
                    files=done.files + len(one.put),
                    chunks=done.chunks + sum(len(prepared.chunks) for prepared in one.put),
                    bytes=done.bytes + sum(len(prepared.document.text.text) for prepared in one.put),
                )
                progress(done)
        report.notices += too_long.told()
        return keys

    def _documents(self, tool: Tool, stopped: Callable[[], bool], report: Report) -> Iterator[Prepared]:
        last = ""
        while uris := self._store.uris(tool.id, after=last, limit=_READ_AT_ONCE):
            if stopped():
                report.interrupted = True
                return
            yield from self._store.whole(tool.id, uris)
            last = uris[-1]
