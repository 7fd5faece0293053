"""Settings and a place in, a library that can be searched and brought up to date out: the only door interfaces use."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bunko import catalog, doctor, embedders
from bunko.citations import STATUSES, Verdict, verify
from bunko.errors import LibraryBusy, LibraryMismatch, LibraryReadOnly, SourceError
from bunko.home import Home
from bunko.index.live import Live
from bunko.index.snapshot import Snapshot
from bunko.ingest import ChunkerSettings, Progress, ingest
from bunko.protocols import Embedder, Scan, Store, StoredDocument
from bunko.refresh import Refresh
from bunko.search import LONGEST_QUERY, Request, log_answer, search
from bunko.settings import Settings
from bunko.sources import folder as folder_source
from bunko.status import Status, status
from bunko.text import grams, words
from bunko.timing import now
from bunko.types import Answer, Freshness, Hit, Mode, Report, Tool

_log = logging.getLogger("bunko.library")

# How long an import waits for another one to end.
_LOCK_SECONDS = 600.0
_LOCK_LOOK_SECONDS = 0.2
_REQUEST_SETTINGS = (
    "fusion", "vector_weight", "k1", "b", "rrf_k", "similarity_threshold", "min_combined_score", "loanwords",
)  # fmt: skip


class Library:
    """One data directory: its tools, its documents, and the ways to ask."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        store: Store,
        *,
        read_only: bool = False,
        notices: tuple[str, ...] = (),
    ) -> None:
        self.home, self.settings, self.store, self.read_only = home, settings, store, read_only
        self.notices = notices
        derived = settings.storage.bm25_persist_dir
        self._derived = Path(derived).expanduser() if derived else home.derived
        self._live: dict[int, Live] = {}
        self._refresh = Refresh(
            store,
            self._source,
            self._absorb,
            moment=settings.search.freshness_seconds,
            patience=settings.search.freshness_wait_seconds,
        )
        self._ids: dict[str, int] = {}
        self._embedder: Embedder | None = None
        self._embedder_known = False

    # Asking

    def search(
        self,
        query: str,
        *,
        tool: str | None = None,
        mode: Mode | None = None,
        top_k: int | None = None,
        refresh: bool = True,
        **options: Any,
    ) -> Answer:
        """Answer from one tool or all active ones, looking for changes first where that is due."""
        request = self.request(query, mode=mode, top_k=top_k, **options)
        tools = self._asked(tool)
        notices = list(self.notices)
        self._ids.update({one.name: one.id for one in tools})
        for one in tools:
            self._check_built(one)
        if refresh and not self.read_only:
            for one in tools:
                notices += self._refresh.look(one)
        embedder = self.embedder() if request.mode != "bm25" else None
        names = {one.id: one.name for one in tools}
        try:
            snapshot, hits = self._found(names, embedder, request)
        except (IndexError, KeyError, ValueError):
            # A damaged derived file shows in impossible numbers; it is made anew, and anything else is our bug.
            repaired = [self._index(tool_id).repair() for tool_id in names]
            if not any(repaired):
                raise
            _log.warning("A derived index file was damaged and has been made anew from the library.")
            snapshot, hits = self._found(names, embedder, request)
        if len(query) > LONGEST_QUERY:
            notices.append(f"Only the first {LONGEST_QUERY} characters of the query were used.")
        looks = [self._refresh.last(one) for one in tools]
        freshness = Freshness(
            snapshot.generation,
            min((look.at for look in looks if look.at), default=""),
            sum(look.missing for look in looks),
        )
        if self.settings.log.debug:
            log_answer(query, hits)
        return Answer(query, request.mode, hits, snapshot.size, freshness, notices)

    def _found(self, names: dict[int, str], embedder: Embedder | None, request: Request) -> tuple[Snapshot, list[Hit]]:
        with self.store.reading():
            snapshot = self.snapshot(list(names))
            return snapshot, search(self.store, snapshot, names, embedder, request)

    def request(self, query: str, *, mode: Mode | None = None, top_k: int | None = None, **options: Any) -> Request:
        """Return what the settings make of a query; what is given here wins."""
        chosen = self.settings.search
        default: Mode = chosen.mode
        if chosen.hybrid_enabled is not None:
            default = "hybrid" if chosen.hybrid_enabled else "semantic"
        base: dict[str, Any] = {name: getattr(chosen, name) for name in _REQUEST_SETTINGS}
        given = {name: value for name, value in options.items() if value is not None}
        return Request(query, mode=mode or default, top_k=chosen.top_k if top_k is None else top_k, **(base | given))

    def snapshot(self, tool_ids: list[int]) -> Snapshot:
        """Return the newest state of some tools' indexes as one; call it inside the store's `reading`."""
        found = [self._index(tool_id).snapshot() for tool_id in tool_ids]
        if len(found) == 1:
            return found[0]
        return Snapshot([part for one in found for part in one.parts], self.store.generation())

    # Bringing up to date

    def reindex(
        self,
        *,
        tool: str | None = None,
        everything: bool = False,
        workers: int | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Report:
        """Bring one tool, or all folders, up to date with their sources."""
        total = Report()
        with self.writing(waiting, stopped=stopped):
            for one in self._asked(tool):
                work = self._rebuild if everything else self._update
                done = work(one, workers=workers, progress=progress, stopped=stopped)
                for name in ("added", "updated", "deleted", "moved", "unchanged", "total_chunks", "embedded"):
                    setattr(total, name, getattr(total, name) + getattr(done, name))
                total.problems += done.problems
                total.notices += done.notices
                total.interrupted |= done.interrupted
        return total

    def _update(self, tool: Tool, **how: Any) -> Report:
        """Absorb what changed in a tool's source."""
        self._check_built(tool)
        self.store.mark(tool.id, built=self._built())
        report = self._ingest(tool, tool, **how)
        if not report.interrupted:
            self.store.mark(tool.id, imported_at=now())
        return self._finished(tool, report)

    def _rebuild(self, tool: Tool, **how: Any) -> Report:
        """Make a tool's index anew beside the old one, which answers until the new one is whole."""
        shadow = Tool(f"{catalog.SHADOW}{tool.name}", tool.kind, source=tool.source, active=False, built=self._built())
        for left in self.store.tools():
            if left.name == shadow.name and left.built != shadow.built:
                self.store.drop_tool(left.id)  # begun with other settings; one with these is gone on with
        shadow = self.store.put_tool(shadow)
        old = self.store.known(tool.id)
        report = self._ingest(tool, shadow, **how)
        if report.interrupted:
            return report
        new = self.store.known(shadow.id)
        self.store.swap(replace(tool, built=shadow.built, imported_at=now(), checked_at=now()), shadow)
        report.added, report.updated = len(new.keys() - old.keys()), len(new.keys() & old.keys())
        report.deleted, report.unchanged = len(old.keys() - new.keys()), 0
        unreadable = {problem.uri for problem in report.problems} & old.keys() - new.keys()
        report.notices += [f"{uri} was indexed before and could not be read for the rebuild." for uri in unreadable]
        self.store.sweep()
        return self._finished(tool, report)

    def _ingest(self, tool: Tool, into: Tool, *, scan: Scan | None = None, **how: Any) -> Report:
        source = self._source(tool)
        if source.lost(self.store.known(tool.id)):
            raise SourceError(
                f"{tool.source} has vanished or is empty, but {tool.name} holds documents from it",
                hint="What was indexed is kept. Bring the folder back, or remove the index if it is gone for good.",
            )
        _log.info("Importing %s from %s", tool.name, tool.source)
        _log.debug("[reindex] scanning docs_dir=%s", tool.source)
        return ingest(self.store, into, source, self._cutting(), self.embedder(), scan=scan, **how)

    def _finished(self, tool: Tool, report: Report) -> Report:
        """Bring the derived index up to date and check that what came in can be found."""
        if not report.interrupted:
            self._refresh.is_fresh(tool)
        with self.store.reading():
            snapshot = self._index(tool.id).snapshot()
        self._index(tool.id).save()
        if report.added or report.updated:
            report.notices += doctor.dead_ends(self.store, snapshot, tool, self.embedder(), per_language=8)
        _log.info(
            "Imported %s: %d added, %d updated, %d deleted, %d unchanged, %d chunks in all",
            tool.name, report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
        )  # fmt: skip
        return report

    def _absorb(self, tool: Tool, scan: Scan, generation: int, stopped: Callable[[], bool]) -> None:
        with self.writing(seconds=self.settings.search.freshness_wait_seconds, stopped=stopped):
            # If somebody imported since we looked, what was deleted then may be back: look again.
            fresh = scan if self.store.generation() == generation else None
            self._update(self._asked(tool.name)[0], scan=fresh, stopped=stopped)

    @contextmanager
    def writing(
        self,
        waiting: Callable[[str], None] = lambda _: None,
        *,
        seconds: float = _LOCK_SECONDS,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Iterator[None]:
        """Hold the right to import: one process at a time, the next waits and says so, and can be stopped."""
        if self.read_only:
            raise LibraryReadOnly("This library is open for reading only", hint="Open it for writing to change it.")
        from filelock import FileLock, Timeout

        lock = FileLock(self.home.lock)
        deadline = time.monotonic() + seconds
        told = False
        try:
            while True:
                try:
                    lock.acquire(timeout=_LOCK_LOOK_SECONDS if told else 0)
                    break
                except Timeout:
                    if time.monotonic() >= deadline or stopped():
                        raise
                    if not told:
                        waiting("Another process is importing into this library; waiting for it to finish.")
                        told = True
        except Timeout as error:
            raise LibraryBusy(
                "Another process is importing into this library",
                hint="Wait until it is done, then try again.",
            ) from error
        except OSError as error:
            raise LibraryReadOnly(
                f"{self.home.folder} cannot be written: {error.strerror or error}",
                hint="Check who owns the folder, or choose another place with --library or --data-dir.",
            ) from error
        try:
            yield
        finally:
            lock.release()

    # Looking after

    def delete_tool(self, name: str, *, waiting: Callable[[str], None] = lambda _: None) -> None:
        """Remove a tool, its index and its derived files; the folder is left alone."""
        tool = catalog.named(self.store, name)
        with self.writing(waiting):
            catalog.delete(self.store, name)
            self.store.sweep()
        self._index(tool.id).discard()
        del self._live[tool.id]

    def preview(self, tool: Tool) -> int:
        """Return how many files an import of a tool would read."""
        scan = self._source(tool).scan({})
        return len(scan.added)

    def imported(self, name: str | None) -> bool:
        """Say whether a tool holds anything yet."""
        return any(self.store.known(tool.id) for tool in self._asked(name))

    def status(self) -> Status:
        """Return what the library holds."""
        return status(self.store, self.tools(), self.home.database, self._derived)

    def diagnose(self) -> list[doctor.Finding]:
        """Check the file, the derived index, and that what is in the library can be found."""
        findings = doctor.storage(self.store)
        for tool in self.tools():
            findings += doctor.derived(self._index(tool.id), tool)
            with self.store.reading():
                snapshot = self._index(tool.id).snapshot()
                findings += doctor.known_items(self.store, snapshot, tool, self.embedder())
        return findings

    def document_of(self, hit: Hit) -> StoredDocument | None:
        """Return the document a hit stands in."""
        if hit.tool not in self._ids:
            self._ids[hit.tool] = self._asked(hit.tool)[0].id
        return self.store.document(self._ids[hit.tool], hit.uri)

    def verify(self, citation: str, digest: str, *, tool: str | None = None) -> Verdict:
        """Say whether a cited passage still stands, looking for changes first."""
        verdicts = [Verdict("deleted", citation)]
        for one in self._asked(tool):
            if not self.read_only:
                self._refresh.look(one)
            verdicts.append(verify(self.store, one.id, citation, digest))
        # Two tools may hold a README.md: the one in which the passage stands is meant.
        return min(verdicts, key=lambda verdict: STATUSES.index(verdict.status))

    def tools(self) -> list[Tool]:
        """Return all tools, by name."""
        return catalog.tools(self.store)

    def is_importing(self) -> bool:
        """Say whether an import that a search began is still going on."""
        return self._refresh.is_importing()

    def close(self) -> None:
        """Stop what runs in the background and let go of files; what was written stays."""
        self._refresh.stop()
        self.store.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Wiring

    def embedder(self) -> Embedder | None:
        """Return the embedder the settings name, built at first use."""
        if not self._embedder_known:
            self._embedder = embedders.build(self.settings.embedding.provider)
            self._embedder_known = True
        return self._embedder

    def _asked(self, name: str | None) -> list[Tool]:
        if name is not None:
            return [catalog.named(self.store, name)]
        return [tool for tool in self.tools() if tool.active]

    def _index(self, tool_id: int) -> Live:
        if tool_id not in self._live:
            self._live[tool_id] = Live(self.store, tool_id, self._derived)
        return self._live[tool_id]

    def _source(self, tool: Tool) -> folder_source.Folder:
        root, own = Path(tool.source), self.home.folder
        scanner = self.settings.scanner
        ours = f"/{own.relative_to(root).as_posix()}/" if own != root and own.is_relative_to(root) else ""
        return folder_source.Folder(
            root,
            extensions=scanner.file_extensions,
            exclude_dirs=scanner.exclude_dirs,
            # Our own files are not documents, wherever the user put them.
            exclude=(*tool.options.get("exclude", ()), *([ours] if ours else [])),
            include=tool.options.get("include", ()),
            respect_gitignore=scanner.respect_gitignore,
            max_file_bytes=scanner.max_file_bytes,
        )

    def _cutting(self) -> ChunkerSettings:
        chunker = self.settings.chunker
        return ChunkerSettings(
            chunker.kind, chunker.max_chunk_chars, chunker.min_chunk_chars, tuple(chunker.heading_levels),
            chunker.chunk_size, chunker.chunk_overlap, chunker.row_context_size,
        )  # fmt: skip

    def _built(self) -> dict[str, Any]:
        embedder = self.embedder()
        cutting = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self._cutting()).items()}
        return {
            "words": words.VERSION,
            "grams": grams.VERSION,
            "chunker": cutting,
            "embedder": embedder.name if embedder else "none",
        }

    def _check_built(self, tool: Tool) -> None:
        if not tool.built:
            return
        wanted = self._built()
        different = sorted(name for name in wanted if tool.built.get(name) != wanted[name])
        if not different:
            return
        command = shlex.join(["bunko", "reindex", *self.home.arguments(), "--force"])
        raise LibraryMismatch(
            f"{tool.name} was built with another {' and '.join(different)} than the settings name now",
            hint=f"Rebuild it with: {command}   (or bring the old settings back)",
        )
