"""Settings and a place in, a library that can be searched and brought up to date out: the only door interfaces use."""

from __future__ import annotations

import logging
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bunko import catalog, doctor, embedders, sources
from bunko.citations import STATUSES, Verdict, verify
from bunko.errors import (
    BunkoError,
    LibraryBusy,
    LibraryError,
    LibraryMismatch,
    LibraryReadOnly,
    QueryError,
    SettingsError,
    SourceError,
    UnknownName,
)
from bunko.extract import Extract, Passage, passages, widened
from bunko.filling import fill
from bunko.home import Home
from bunko.index.live import Live
from bunko.index.snapshot import Snapshot
from bunko.ingest import ChunkerSettings, Progress, ingest
from bunko.protocols import Dated, Embedder, Found, Kept, Scan, Source, Store, StoredDocument
from bunko.refresh import Refresh
from bunko.search import LONGEST_QUERY, Request, log_answer, owned, search
from bunko.settings import Settings
from bunko.status import Details, Status, details, status
from bunko.text import grams, pieces, words
from bunko.text.normalise import printable
from bunko.timing import now
from bunko.types import Answer, Freshness, Hit, Mode, Report, Text, Tool

if TYPE_CHECKING:
    from bunko.describe import Proposal
    from bunko.pack import Pack
    from bunko.routing import Routing

_log = logging.getLogger("bunko.library")

# For the first time, all over again, or only what changed.
ImportMode = Literal["new", "replace", "update"]
# How long an import waits for another one to end.
_LOCK_SECONDS = 600.0
_LOCK_LOOK_SECONDS = 0.2
# An import looks whether texts can be found if at least one in so many is new.
_SELDOM = 50
# Chunks that say what a tool is about: reading more takes longer than a second and tells little more.
_SAMPLE = 400
_SMALLEST_SAMPLE = 40
# Searches that are kept: more than anybody will judge.
_MOST_KEPT = 1000
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
        own: bool = True,
        **options: Any,
    ) -> Answer:
        """Answer from one tool or all active ones, looking for changes first where that is due.

        A tool's own settings hold where it is searched alone, or with tools that have the same, unless `own` is false.
        """
        tools = self._asked(tool)
        request = self.request(query, tools=tools if own else (), mode=mode, top_k=top_k, **options)
        notices = list(self.notices)
        self._ids.update({one.name: one.id for one in tools})
        for one in tools:
            self._check_built(one)
        if refresh and not self.read_only:
            for one in tools:
                notices += self._refresh.look(one)
        request = self._within_reach(request, tools, notices)
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

    def passages(self, hits: Sequence[Hit], extract: Extract | None = None, *, given: int = 0) -> list[Passage]:
        """Return what comes back for hits: as much as is asked for, else as much as each hit's tool says."""
        return passages(hits, self.document_of, self._extract_of(extract), given=given)

    def widened(self, hits: list[Hit], extract: Extract | None = None) -> list[Hit]:
        """Return hits with as much text as is asked for, else as each hit's tool says; chunks stay as they are."""
        how = self._extract_of(extract)
        if all(how(hit) == "chunk" for hit in hits):
            return hits
        return [widened(passage) for passage in passages(hits, self.document_of, how)]

    def _extract_of(self, extract: Extract | None) -> Callable[[Hit], Extract]:
        if extract is not None:
            return lambda _: extract
        own: dict[str, Extract] = {tool.name: tool.options.get("extract", "chunk") for tool in self.tools()}
        return lambda hit: own.get(hit.tool, "chunk")

    def request(
        self,
        query: str,
        *,
        tools: Sequence[Tool] = (),
        mode: Mode | None = None,
        top_k: int | None = None,
        **options: Any,
    ) -> Request:
        """Return what the settings make of a query; the tools' own win over them, and what is given here over both.

        Two tools that want to be searched in different ways cannot be ranked together, so that then neither is heard.
        """
        chosen = self.settings.search
        base: dict[str, Any] = {name: getattr(chosen, name) for name in _REQUEST_SETTINGS}
        base |= {"mode": chosen.mode, "top_k": chosen.top_k}
        if chosen.hybrid_enabled is not None:
            base["mode"] = "hybrid" if chosen.hybrid_enabled else "semantic"
        own = [owned(tool.options.get("search")) for tool in tools]
        if own and all(one == own[0] for one in own):
            base |= own[0]
        given = options | {"mode": mode, "top_k": top_k}
        return Request(query, **(base | {name: value for name, value in given.items() if value is not None}))

    def snapshot(self, tool_ids: list[int]) -> Snapshot:
        """Return the newest state of some tools' indexes as one; call it inside the store's `reading`."""
        found = [self._index(tool_id).snapshot() for tool_id in tool_ids]
        if len(found) == 1:
            return found[0]
        return Snapshot([part for one in found for part in one.parts], self.store.generation())

    def remember(self, query: str, tool: str | None = None) -> None:
        """Keep a search that a person or an assistant made, if the settings say so; never worth waiting for."""
        text = " ".join(printable(query).split())
        if not self.settings.log.keep_searches or self.read_only or not text:
            return
        try:
            kept = self.store.keep_search(text[:LONGEST_QUERY], tool or "", now(), most=_MOST_KEPT)
        except BunkoError as error:
            _log.warning("This search was not kept: %s", error.message)
        else:
            if not kept:
                _log.debug("This search was not kept: somebody else is writing.")

    def kept(self) -> list[Kept]:
        """Return the searches that were kept, the most frequent first."""
        return self.store.kept_searches()

    def clear_kept(self) -> int:
        """Forget the searches that were kept; return how many there were."""
        return self.store.clear_searches()

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
        """Bring one tool, or all active ones, up to date with their sources, or make their index anew."""
        names = [one.name for one in self._asked(tool)]
        return self.import_tools(
            names,
            "replace" if everything else "update",
            workers=workers,
            progress=progress,
            waiting=waiting,
            stopped=stopped,
        )

    def import_tools(
        self,
        names: Sequence[str],
        mode: ImportMode = "new",
        *,
        cutting: Mapping[str, Any] | None = None,  # as `recut` gives it; not given: as each tool says
        workers: int | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Report:
        """Bring tools in for the first time, all over again, or only what changed."""
        total = Report()
        with self.writing(waiting, stopped=stopped):
            tools = [self._to_import(name, mode, cutting) for name in names]
            for one in tools:
                work = self._rebuild if mode == "replace" else self._update
                done = work(one, workers=workers, progress=progress, stopped=stopped)
                for name in ("added", "updated", "deleted", "moved", "unchanged", "total_chunks", "embedded"):
                    setattr(total, name, getattr(total, name) + getattr(done, name))
                total.problems += done.problems
                total.notices += done.notices
                if done.interrupted:
                    total.interrupted = True
                    break
        return total

    def _to_import(self, name: str, mode: ImportMode, cutting: Mapping[str, Any] | None) -> Tool:
        """Return a tool as it will be after the import, or say why it cannot be imported so."""
        tool = catalog.named(self.store, name)
        if mode == "new" and tool.imported_at:
            raise LibraryError(
                f"{name} is imported already",
                hint="Use --mode update to take in what changed, or --mode replace to do it all over.",
            )
        wanted = tool
        if cutting is not None:
            wanted = replace(tool, options=catalog.recut(tool.options, None, 0, 0) | dict(cutting))
        if mode != "replace" and tool.built and self._cutting(wanted) != self._cutting(tool):
            raise LibraryMismatch(
                f"{name} is cut another way, and one tool cannot be cut in two ways",
                hint="Use --mode replace to cut all of it anew.",
            )
        return self.store.put_tool(wanted) if wanted != tool and mode != "replace" else wanted

    def _update(self, tool: Tool, **how: Any) -> Report:
        """Absorb what changed in a tool's source."""
        self._check_built(tool)
        self.store.mark(tool.id, built=self._built(tool))
        report = self._ingest(tool, tool, **how)
        if not report.interrupted:
            self.store.mark(tool.id, imported_at=now())
        return self._finished(tool, report)

    def _rebuild(self, tool: Tool, **how: Any) -> Report:
        """Make a tool's index anew beside the old one, which answers until the new one is whole."""
        shadow = Tool(
            f"{catalog.SHADOW}{tool.name}", tool.kind, source=tool.source, active=False, built=self._built(tool)
        )
        for left in self.store.tools():
            if left.name == shadow.name and left.built != shadow.built:
                self.store.drop_tool(left.id)  # begun with other settings; one with these is gone on with
        shadow = self.store.put_tool(shadow)
        old = self._documents(tool)
        report = self._ingest(tool, shadow, **how)
        if report.interrupted:
            return report
        new = self._documents(shadow)
        self.store.swap(replace(tool, built=shadow.built, imported_at=now(), checked_at=now()), shadow)
        report.added, report.updated = len(new - old), len(new & old)
        report.deleted, report.unchanged = len(old - new), 0
        unreadable = {problem.uri for problem in report.problems} & (old - new)
        report.notices += [f"{uri} was indexed before and could not be read for the rebuild." for uri in unreadable]
        self.store.sweep()
        return self._finished(tool, report)

    def _documents(self, tool: Tool) -> set[str]:
        """Return the uris of a tool's documents, without those that failed."""
        return self.store.known(tool.id).keys() - {problem.uri for problem in self.store.failures(tool.id)}

    def fill(
        self, tool: Tool, texts: Mapping[str, Text], *, progress: Callable[[Progress], None] = lambda _: None
    ) -> Report:
        """Let a tool hold exactly these texts, named by uri; what is unchanged and cut as now is left alone."""
        with self.writing():
            old = next((one for one in self.tools() if one.name == tool.name), None)
            if old is not None and old.built and old.built != self._built(old):
                self._index(old.id).discard()
                del self._live[old.id]
                self.store.drop_tool(old.id)  # its vectors stay until the end: they are named by their text
                old = None
            kept = old or self.store.put_tool(tool)
            self.store.mark(kept.id, built=self._built(kept))
            report = fill(self.store, kept, texts, self._cutting(kept), self.embedder(), progress=progress)
            self.store.mark(kept.id, imported_at=now())
            self.store.sweep()
            return self._finished(kept, report)

    def export(self, name: str | None, path: Path) -> tuple[Tool, Path, int]:
        """Write a tool, or the only one, into a file that `import_pack` takes; return it, the file and its bytes."""
        from bunko import pack

        tool = self.only(name)
        path = path.expanduser()
        path = path / f"{catalog.safe(tool.name)}{pack.SUFFIX}" if path.is_dir() else path
        return tool, path, pack.write(self.store, tool, path)

    def import_pack(
        self,
        packed: Pack,
        *,
        name: str | None = None,
        source: Path | None = None,
        replacing: bool = False,
        progress: Callable[[Progress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
    ) -> tuple[Tool, Report]:
        """Take in a tool of another library; it is there whole in one step, and until then all is as it was."""
        from bunko.pack import take

        name = name or packed.tool.name
        with self.writing(waiting):
            tool = catalog.received(
                self.store, packed.tool, name=name, source=source, replacing=replacing, is_about=packed.is_about
            )
            cutting, built = self._cutting(tool), self._built(tool)
            cutting.build()  # says what is wrong with it before anything is written
            for left in self.store.tools():
                if left.name == f"{catalog.SHADOW}{name}":
                    self.store.drop_tool(left.id)
            # No rebuild has these facts, so that none goes on from what a killed import left.
            shadow = self.store.put_tool(Tool(f"{catalog.SHADOW}{name}", tool.kind, active=False, built={"pack": name}))
            try:
                report = take(self.store, shadow, packed, cutting, self.embedder(), built, progress=progress)
                tool = self.store.adopt(replace(tool, built=built, imported_at=now()), shadow)
            except BaseException:
                with suppress(BunkoError):
                    self.store.drop_tool(shadow.id)
                    self.store.sweep()
                raise
            self.store.sweep()
            return tool, self._indexed(tool, report)

    def _ingest(self, tool: Tool, into: Tool, *, scan: Scan | None = None, **how: Any) -> Report:
        source = self._source(tool)
        _check_there(source, tool, self._uris(tool))
        _log.info("Importing %s from %s", tool.name, tool.source)
        _log.debug("[reindex] scanning docs_dir=%s", tool.source)
        return ingest(self.store, into, source, self._cutting(tool), self._embedder_of(tool), scan=scan, **how)

    def _uris(self, tool: Tool) -> Iterator[str]:
        # Read when somebody asks for the first: that is seldom, and there may be many.
        yield from self.store.known(tool.id)

    def _finished(self, tool: Tool, report: Report) -> Report:
        """Bring the derived index up to date and check that what came in can be found."""
        if not report.interrupted:
            self._refresh.is_fresh(tool)
        return self._indexed(tool, report)

    def _indexed(self, tool: Tool, report: Report) -> Report:
        with self.store.reading():
            snapshot = self._index(tool.id).snapshot()
        self._index(tool.id).save()
        # What is small beside the whole does not change whether the whole can be found.
        if (report.added + report.updated) * _SELDOM > report.unchanged:
            report.notices += doctor.dead_ends(self.store, snapshot, tool, self._embedder_of(tool), per_language=8)
        _log.info(
            "Imported %s: %d added, %d updated, %d deleted, %d unchanged, %d chunks in all",
            tool.name, report.added, report.updated, report.deleted, report.unchanged, report.total_chunks,
        )  # fmt: skip
        return report

    def catch_up(
        self,
        name: str,
        *,
        progress: Callable[[Progress], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Report:
        """Bring one folder up to date if anything changed in it; where nothing did, nothing is written or waited for.

        So it may be called often, and by whoever watches the folder that the library itself lies in.
        """
        tool = catalog.named(self.store, name)
        self._check_built(tool)
        source, generation, known = self._source(tool), self.store.generation(), self.store.known(tool.id)
        _check_there(source, tool, known)
        scan = source.scan(known)
        if tool.imported_at and not (scan.added or scan.updated or scan.deleted or scan.touched):
            return Report(unchanged=scan.unchanged, problems=[*scan.problems, *self.store.failures(tool.id)])
        with self.writing(waiting, stopped=stopped):
            now_tool = catalog.named(self.store, name)
            same = (now_tool.id, now_tool.source, now_tool.options) == (tool.id, tool.source, tool.options)
            fresh = scan if same and self.store.generation() == generation else None
            return self._update(now_tool, scan=fresh, progress=progress, stopped=stopped)

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

    def recut(self, kind: str | None, size: int | None, overlap: int | None) -> dict[str, Any] | None:
        """Return a way of cutting for a tool; a size or an overlap alone means tokens, nothing at all means None."""
        if kind is None and size is None and overlap is None:
            return None
        kind = kind or "tokens"
        if kind != "tokens" and (size is not None or overlap is not None):
            raise SettingsError(
                f"A size in tokens does not go with the chunker {kind!r}",
                hint="Leave the size and the overlap out, or choose the chunker tokens.",
            )
        given = self.settings.chunking
        return catalog.recut({}, kind, size or given.size, given.overlap if overlap is None else overlap)

    def preview(self, tool: Tool) -> int:
        """Return how many files or entries an import of a tool would bring in."""
        scan = self._source(tool).scan({})
        return len(scan.added)

    def status(self) -> Status:
        """Return what the library holds."""
        return status(self.store, self.tools(), self._halves(), self._source, self.home.database, self._derived)

    def tool_status(self, name: str, *, page: int = 1, page_size: int = 20) -> Details:
        """Return all about one tool, with a page of its documents; its source is looked at, nothing is imported."""
        tool = catalog.named(self.store, name)
        source, half = self._source(tool), self._halves().get(name)
        return details(self.store, tool, half, source, self._derived, page=page, page_size=page_size)

    def _halves(self) -> dict[str, Tool]:
        """Return the rebuilds that have not ended, by the names of their tools."""
        begun = (tool for tool in self.store.tools() if tool.name.startswith(catalog.SHADOW))
        return {tool.name.removeprefix(catalog.SHADOW): tool for tool in begun}

    def diagnose(self) -> list[doctor.Finding]:
        """Check the file, the derived index, and that what is in the library can be found."""
        findings = doctor.storage(self.store)
        for tool in self.tools():
            findings += doctor.derived(self._index(tool.id), tool)
            with self.store.reading():
                snapshot = self._index(tool.id).snapshot()
                findings += doctor.known_items(self.store, snapshot, tool, self._embedder_of(tool))
        return findings

    def propose(self, name: str, *, language: Literal["ja", "en"] | None = None) -> Proposal:
        """Return a description of a tool made from its own documents, in the language most of them are in."""
        from bunko.describe import Proposal, describe, spoken
        from bunko.phrases import phrases

        tool = catalog.named(self.store, name)
        chunks = self._sample(tool, _SAMPLE)
        if not chunks:
            command = shlex.join(["bunko", "import", "-n", name])
            raise UnknownName(f"{name} holds no documents yet", hint=f"Bring them in with: {command}")
        others = [one for one in self.tools() if one.id != tool.id]
        against = [self._sample(one, max(_SAMPLE // len(others), _SMALLEST_SAMPLE)) for one in others]
        found = phrases(chunks, against=against)
        language = language or spoken(chunks)
        documents = self.store.totals(tool.id).documents
        return Proposal(tool, describe(tool, found, documents=documents, language=language), language, found)

    def route(self) -> Routing:
        """Say whether the active tools can be told apart by their descriptions, with questions from their headings."""
        from bunko.routing import measure, questions

        tools = self._asked(None)
        return measure(tools, {tool.name: questions(self._sample(tool, _SAMPLE)) for tool in tools})

    def only(self, name: str | None) -> Tool:
        """Return one tool: the one of that name, or the only one there is."""
        if name is not None:
            return catalog.named(self.store, name)
        tools = self.tools()
        if len(tools) != 1:
            names = ", ".join(tool.name for tool in tools) or "none yet"
            raise UnknownName("Which tool is meant?", hint=f"Name one with -n. Tools of this library: {names}.")
        return tools[0]

    def tune(self, name: str, options: Mapping[str, Any]) -> Tool:
        """Let a tool's searches have settings of their own, or none; its index stays as it is."""
        tool = catalog.named(self.store, name)
        rest = {key: value for key, value in tool.options.items() if key != "search"}
        own = owned(dict(options))
        return self.store.put_tool(replace(tool, options=rest | ({"search": own} if own else {})))

    def sample(self, name: str, most: int = _SAMPLE) -> list[Found]:
        """Return at most so many chunks of a tool, spread evenly over it, of one state with its index."""
        tool = catalog.named(self.store, name)
        self._check_built(tool)
        return self._sample(tool, most)

    def embedder_of(self, tool: Tool) -> Embedder | None:
        """Return what makes the vectors of a tool; None where it has none."""
        return self._embedder_of(tool)

    def _sample(self, tool: Tool, most: int) -> list[Found]:
        """Return at most so many chunks of a tool, spread evenly over it."""
        with self.store.reading():
            snapshot = self._index(tool.id).snapshot()
            rows = snapshot.living().tolist() if snapshot.size else []
            some = [rows[number * len(rows) // most] for number in range(most)] if len(rows) > most else rows
            ids = [snapshot.chunk_id(row) for row in some]
            found: dict[int, Found] = {}
            for at in range(0, len(ids), 200):
                found |= self.store.chunks(ids[at : at + 200])
        return [found[chunk_id] for chunk_id in ids]

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

    def tags(self, tool: str | None = None) -> list[tuple[str, int]]:
        """Return each tag of one tool, or of all active ones, and how many documents have it, the most used first."""
        number: Counter[str] = Counter()
        for one in self._looked_at(tool):
            number.update(dict(self.store.tags(one.id)))
        return sorted(number.items(), key=lambda item: (-item[1], item[0]))

    def recent(self, tool: str | None = None, *, limit: int = 10) -> list[tuple[Tool, Dated]]:
        """Return the documents of the latest dates with their tools, the latest first."""
        found = [(one, dated) for one in self._looked_at(tool) for dated in self.store.recent(one.id, limit=limit)]
        found.sort(key=lambda item: item[1].date, reverse=True)
        return found[:limit]

    def _looked_at(self, name: str | None) -> list[Tool]:
        """Return one tool, or all active ones, as fresh as a search would have them."""
        tools = self._asked(name)
        if not self.read_only:
            for tool in tools:
                self._check_built(tool)
                self._refresh.look(tool)
        return tools

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

    def _embedder_of(self, tool: Tool) -> Embedder | None:
        return None if tool.options.get("embedder") == "none" else self.embedder()

    def _within_reach(self, request: Request, tools: Sequence[Tool], notices: list[str]) -> Request:
        """Return a request that tools without vectors can answer, and say so."""
        bare = [tool.name for tool in tools if tool.options.get("embedder") == "none"]
        if request.mode == "bm25" or not bare:
            return request
        if request.mode == "semantic" and len(bare) == len(tools):
            raise QueryError(
                f"{', '.join(bare)} was imported without vectors",
                hint="Use --mode bm25, or import it again with vectors: bunko build --with-embeddings.",
            )
        notices.append(f"{', '.join(bare)} was imported without vectors, so it answers by words alone.")
        return replace(request, mode="bm25") if len(bare) == len(tools) else request

    def _asked(self, name: str | None) -> list[Tool]:
        if name is not None:
            return [catalog.named(self.store, name)]
        return [tool for tool in self.tools() if tool.active]

    def _index(self, tool_id: int) -> Live:
        if tool_id not in self._live:
            self._live[tool_id] = Live(self.store, tool_id, self._derived)
        return self._live[tool_id]

    def _source(self, tool: Tool) -> Source:
        root, own = Path(tool.source), self.home.folder
        scanner = self.settings.scanner
        ours = f"/{own.relative_to(root).as_posix()}/" if own != root and own.is_relative_to(root) else ""
        return sources.build(
            tool.kind if tool.kind in sources.KINDS else "folder",
            root,
            extensions=scanner.file_extensions,
            exclude_dirs=scanner.exclude_dirs,
            # Our own files are not documents, wherever the user put them.
            exclude=(*tool.options.get("exclude", ()), *([ours] if ours else [])),
            include=tool.options.get("include", ()),
            respect_gitignore=scanner.respect_gitignore,
            max_file_bytes=scanner.max_file_bytes,
        )

    def _cutting(self, tool: Tool) -> ChunkerSettings:
        """Return how a tool's documents are cut: as it says itself, else as the settings say."""
        chunker, tokens, own = self.settings.chunker, self.settings.chunking, tool.options
        # A memo is one thought: it is cut only where it is too long.
        kind = own.get("chunker", "entry" if tool.kind in ("memos", "jsonl") else chunker.kind)
        if kind == "tokens":
            size, overlap = own.get("chunk_size", tokens.size), own.get("chunk_overlap", tokens.overlap)
            return ChunkerSettings(kind, size=size, overlap=overlap)
        return ChunkerSettings(
            kind, chunker.max_chunk_chars, chunker.min_chunk_chars, tuple(chunker.heading_levels),
            chunker.chunk_size, chunker.chunk_overlap, chunker.row_context_size,
        )  # fmt: skip

    def _built(self, tool: Tool) -> dict[str, Any]:
        embedder, cutting = self._embedder_of(tool), self._cutting(tool)
        facts = {
            "words": words.VERSION,
            "grams": grams.VERSION,
            "chunker": {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(cutting).items()},
            "embedder": embedder.name if embedder else "none",
        }
        return facts | {"tokenizer": pieces.NAME} if cutting.kind == "tokens" else facts

    def _check_built(self, tool: Tool) -> None:
        if not tool.built:
            return
        wanted = self._built(tool)
        different = sorted(name for name in wanted if tool.built.get(name) != wanted[name])
        if not different:
            return
        command = shlex.join(self._rebuilding(tool))
        raise LibraryMismatch(
            f"{tool.name} was built with another {' and '.join(different)} than the settings name now",
            hint=f"Rebuild it with: {command}   (or bring the old settings back)",
        )

    def _rebuilding(self, tool: Tool) -> list[str]:
        if self.home.docs_dir is not None:
            return ["bunko", "reindex", *self.home.arguments(), "--force"]
        return ["bunko", "import", "-n", tool.name, "--mode", "replace", *self.home.arguments()]


def _check_there(source: Source, tool: Tool, known: Iterable[str]) -> None:
    if source.lost(known):
        raise SourceError(
            f"{tool.source} has vanished or is empty, but {tool.name} holds documents from it",
            hint="What was indexed is kept. Bring the folder back, or remove the index if it is gone for good.",
        )
