"""Load a server: many MCP clients search without a pause while an import runs, and every answer is checked.

    python -m bench.load --clients 50 --seconds 300 --workers 2
    python -m bench.load --clients 10 50 100 200 --seconds 90 --postgres
    python -m bench.load --clients 50 --seconds 600 --postgres --disturb

It builds a library, serves it with `bunko serve --http --workers N`, and imports changed pages of a second tool again
and again with `bunko import`. The pages of the first tool stay: each answer about them must be the one that was given
before the load. A page of the second tool must be found as its last import left it, or as the next one will.
`--disturb` kills workers at random, and restarts the database. Clients, server, import and database share the machine.
It ends with 1 if an answer was wrong, an error has no reason, or something was lost or left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from bench import corpus, queries
from bench.clock import environment
from bench.table import Table, markdown, number
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder

if TYPE_CHECKING:
    from tests.scale.postgres_server import PostgresServer

TOKEN = "a token of this benchmark alone"
PAGES_PER_IMPORT = 40  # rewritten before each import: about 320 chunks; each is missing in every fifth
KNOWN_ITEMS = 100  # pages that are searched for by a sentence of theirs
_START_SECONDS, _CALL_SECONDS, _COMMAND_SECONDS = 60.0, 60.0, 300.0
_END_SECONDS = 10.0  # for processes and connections, once nobody needs them
_PAUSE_SECONDS = 0.5  # of a client after an error
_LONG_OUTAGE_SECONDS = 15.0  # longer than a search waits for its database

WORKER_KILLED, DATABASE_AWAY = "its worker was killed", "the database was away"
# What a client is told then; any other error has no reason.
_TOLD = {
    WORKER_KILLED: r"ReadError|WriteError|RemoteProtocolError|MCPError: SSE stream ended",
    DATABASE_AWAY: r"(MCPError: )?(Cannot connect to|The connection to|The tokens cannot be checked now\.)",
}
_TLS = ssl.create_default_context()  # for all clients: reading the certificates takes longer than a search
_NOTICE_SECONDS = 2.0  # after which each worker knows that its database is back: it asks once a second

Answer = list[tuple[str, str, str]]  # path, place and text of each hit


@dataclass
class Page:
    """A page of the second tool, and all that was ever written into it."""

    word: str  # in each of its sections and in no other page
    versions: list[int | None] = field(default_factory=list)  # None: it was removed
    imported: int = 0  # the one that the last import left


@dataclass
class Outage:
    """A time in which errors have a reason."""

    reason: str
    begin: float
    end: float = float("inf")
    seconds: float = 0.0  # until what was away is back


@dataclass
class Failure:
    """A search that was answered with an error, or not at all."""

    kind: str
    begin: float
    end: float
    recovery: float = 0.0  # seconds until that client has an answer again, if it had one before


@dataclass
class Load:
    """What happened while the clients searched."""

    clients: int
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # answers
    lost: list[str] = field(default_factory=list)  # documents, and what else is not as it must be at the end
    empty: int = 0  # answers without a result
    notices: Counter[str] = field(default_factory=Counter)
    reconnects: int = 0  # clients that had to be made anew after an error
    outages: list[Outage] = field(default_factory=list)
    imports: int = 0
    import_failures: list[Failure] = field(default_factory=list)
    server_bytes: list[int] = field(default_factory=list)  # resident, of all processes of the server, each second
    connections: int = 0  # of bunko to the database, at most
    server_seconds: float = 0.0  # CPU time, of workers that were killed too
    database_seconds: float = 0.0
    client_seconds: float = 0.0

    def percentile(self, share: float) -> float:
        """Return the time in milliseconds that this share of the searches did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3 if ordered else 0.0

    def reason(self, failure: Failure) -> str:
        """Return the outage that explains a failure, or an empty string."""
        for outage in self.outages:
            is_at_once = failure.begin <= outage.end and failure.end >= outage.begin
            if is_at_once and re.match(_TOLD[outage.reason], failure.kind):
                return outage.reason
        return ""

    def count(self, reason: str) -> int:
        """Return how many outages there were."""
        return sum(outage.reason == reason for outage in self.outages)

    def errors(self) -> dict[str, Counter[str]]:
        """Return the errors of clients and imports by the outage that they fell into."""
        counts: dict[str, Counter[str]] = {}
        for what, failures in (("", self.failures), ("import: ", self.import_failures)):
            for failure in failures:
                counts.setdefault(self.reason(failure), Counter())[what + failure.kind] += 1
        return counts

    @property
    def is_good(self) -> bool:
        """Return whether all answers were right, all errors have a reason, and nothing was lost."""
        return bool(self.latencies) and not (self.wrong or self.lost or self.errors().get(""))

    def to_json(self) -> dict[str, object]:
        """Return the numbers for programs."""
        searches = max(len(self.latencies), 1)
        return {
            "clients": self.clients, "seconds": self.seconds,
            "searches": len(self.latencies), "searches_per_second": len(self.latencies) / max(self.seconds, 1e-9),
            "p50_ms": self.percentile(0.5), "p90_ms": self.percentile(0.9), "p99_ms": self.percentile(0.99),
            "max_ms": self.percentile(1.0),
            "wrong": self.wrong, "lost": self.lost, "errors": self.errors().pop("", {}),
            "outages": {
                reason: {"count": self.count(reason), "errors": self.errors().get(reason, {})}
                for reason in {outage.reason for outage in self.outages}
            },
            "reconnects": self.reconnects,
            "empty": self.empty, "notices": dict(self.notices), "imports": self.imports,
            "server_mb": [size / 1e6 for size in (self.server_bytes[0], max(self.server_bytes), self.server_bytes[-1])],
            "connections": self.connections, "server_cpu_ms": self.server_seconds / searches * 1e3,
            "database_cpu_ms": self.database_seconds / searches * 1e3,
            "client_cpu_ms": self.client_seconds / searches * 1e3,
        }  # fmt: skip


def tables(loads: list[Load]) -> list[Table]:
    """Return the numbers for people: what clients saw, and what it cost."""
    seen = Table(
        ("clients", "seconds", "searches", "a second", "p50 ms", "p90 ms", "p99 ms", "slowest ms", "wrong", "errors")
    )
    cost = Table(
        ("clients", "workers killed", "database restarted", "imports", "server MB: at first", "at most", "at the end",
         "connections", "CPU ms a search: server", "database", "clients")
    )  # fmt: skip
    for load in loads:
        seen.rows.append((
            str(load.clients), f"{load.seconds:.0f}", f"{len(load.latencies):,}",
            number(len(load.latencies) / load.seconds),
            *(number(load.percentile(share)) for share in (0.5, 0.9, 0.99, 1.0)),
            str(len(load.wrong)), str(len(load.failures)),
        ))  # fmt: skip
        cpu = (load.server_seconds, load.database_seconds, load.client_seconds)
        cost.rows.append((
            str(load.clients), str(load.count(WORKER_KILLED)), str(load.count(DATABASE_AWAY)), str(load.imports),
            *(number(size / 1e6) for size in (load.server_bytes[0], max(load.server_bytes), load.server_bytes[-1])),
            str(load.connections),
            *(number(each / max(len(load.latencies), 1) * 1e3) for each in cpu),
        ))  # fmt: skip
    return [seen, cost]


class Place:
    """A library with two tools: one that is searched, and one that is imported meanwhile."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.environ = environment(**environ, BUNKO_TOKEN=TOKEN, HOME=str(folder))
        self.library, self.still, self.changing = folder / "library", folder / "still", folder / "changing"
        # On a database server, a library has a folder on each machine: here, one that imports and one that serves.
        is_shared = any(name.startswith("BUNKO_STORAGE_") for name in environ)
        self.served_library = folder / "served library" if is_shared else self.library
        self.pages: dict[str, Page] = {}
        self.rounds, self.token = 0, ""
        self.known: dict[str, str] = {}  # sentences, and the paths of their pages
        self.expected: dict[str, Answer] = {}  # about the first tool, by query

    def build(self, chunks: int) -> None:
        """Write the pages and import both tools."""
        corpus.write(self.still, chunks)
        paths = sorted(self.still.rglob("*.md"))
        for path in random.Random(7).sample(paths, min(KNOWN_ITEMS, len(paths))):
            sentence = re.findall(r"(?m)^## .*\n\n([^。\n]+)", path.read_text(encoding="utf-8"))[-1]
            self.known[sentence] = path.relative_to(self.still).as_posix()
        self.write_changes()
        self.run("init")
        for name, source in (("still", self.still), ("changing", self.changing)):
            self.run("tool", "add", "--name", name, "--description", name, "--source", str(source))
            self.run("import", "-n", name)
        added = [sys.executable, "-m", "bunko", "token", "add", "load", "--library", str(self.library)]
        self.token = subprocess.run(added, env=self.environ, capture_output=True, text=True, check=True).stdout.strip()

    def write_changes(self) -> None:
        """Write other texts into the pages of the second tool, and remove some."""
        version = self.rounds
        for index, (name, text) in enumerate(corpus.pages(PAGES_PER_IMPORT, seed=1000 + version)):
            page = self.pages.setdefault(f"changing/{name}", Page(f"MARK-{index:04d}"))
            path = self.changing / "changing" / name
            is_removed = (index + version) % 5 == 0
            page.versions.append(None if is_removed else version)  # before anybody can read it
            if is_removed:
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = self.folder / "page.md"  # a worker that looks at the folder just now must not read half a page
            whole.write_text(re.sub(r"(?m)^## .*$", rf"\g<0>\n\n{_mark(page.word, version)}", text), encoding="utf-8")
            whole.replace(path)
        self.rounds += 1

    def import_changes(self) -> str:
        """Import the second tool, and return what went wrong."""
        if not (problem := self.run("import", "-n", "changing", "--mode", "update")):
            for page in self.pages.values():
                page.imported = len(page.versions) - 1
        return problem

    def run(self, *arguments: str) -> str:
        """Run a command of bunko, and return what went wrong."""
        command = [sys.executable, "-m", "bunko", *arguments, "--library", str(self.library)]
        done = subprocess.run(
            command, env=self.environ, capture_output=True, text=True, check=False, timeout=_COMMAND_SECONDS
        )
        if done.returncode and arguments[0] != "import":
            raise SystemExit(f"bunko {' '.join(arguments)} ended with {done.returncode}: {done.stderr}{done.stdout}")
        return " ".join(done.stderr.partition("Error: ")[2].splitlines()) or done.stderr if done.returncode else ""

    def import_until(self, end: Event, load: Load) -> None:
        """Import changes again and again."""
        while not end.is_set():
            self.write_changes()
            begin = time.monotonic()
            if problem := self.import_changes():
                load.import_failures.append(Failure(_kind(problem), begin, time.monotonic()))
                end.wait(_PAUSE_SECONDS)
            else:
                load.imports += 1

    @contextmanager
    def serve(self, workers: int) -> Iterator[tuple[str, int]]:
        """Serve the library; yield the address and the process id of the supervisor."""
        log = self.folder / "server.log"
        command = [sys.executable, "-m", "bunko", "serve", "--http", "--port", "0", "--workers", str(workers)]
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [*command, "--toolsets", "tools", "--library", str(self.served_library)],
                env=self.environ, stdin=subprocess.DEVNULL, stderr=file,
            )  # fmt: skip
        try:
            yield _wait_for_address(process, log), process.pid
        finally:
            process.terminate()
            process.wait(_COMMAND_SECONDS)
            lines = Counter(re.sub(r"\d+", "N", line) for line in log.read_text(encoding="utf-8").splitlines()[1:])
            sys.stderr.writelines(f"server, {times} times: {line}\n" for line, times in lines.most_common(20))

    def problems(self) -> list[str]:
        """Return what differs between folders and library, and between the index that served and a new one."""
        found = []
        with open_library(paths_for_folder(self.served_library), environ=self.environ) as library:
            for tool in library.tools():
                folder = {"still": self.still, "changing": self.changing}[tool.name]
                texts = {
                    path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
                    for path in folder.rglob("*.md")
                }
                stored = {
                    uri: library.store.documents.get(tool.id, uri)
                    for uri in library.store.documents.fingerprints(tool.id)
                }
                found += [f"{tool.name}: {uri} is lost" for uri in texts.keys() - stored.keys()]
                found += [f"{tool.name}: {uri} was removed" for uri in stored.keys() - texts.keys()]
                found += [f"{tool.name}: {uri} has another text" for uri, document in stored.items()
                          if document is not None and texts.get(uri, document.text) != document.text]  # fmt: skip
            words = [*self.known, *(page.word for page in self.pages.values())]

            def answers() -> list[list[tuple[str, int, float]]]:
                hits = [library.search(word, top_k=20, refresh=False).hits for word in words]
                return [[(hit.uri, hit.chunk.index, round(hit.score, 6)) for hit in each] for each in hits]

            served = answers()
            for tool in library.tools():
                library.index.rebuild(tool.name)
            found += [
                f"a new index answers {word} otherwise"
                for word, old, new in zip(words, served, answers(), strict=True)
                if old != new
            ]
            # Generated sentences are noise: they seldom find their text by meaning.
            found += [
                f"doctor: {finding}"
                for finding in library.maintenance.diagnose()
                if finding.state == "error" and ", semantic: " not in finding.message
            ]
        return found

    def processes(self) -> list[str]:
        """Return the processes that were started for this library and live."""
        own = f"HOME={self.folder}\0".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if own in (folder / "environ").read_bytes():
                    found.append(_command(int(folder.name)))
        return found


def _mark(word: str, version: int) -> str:
    return f"{word} は第{version}版。"


def _kind(text: str) -> str:
    """Return an error without what differs each time."""
    text = re.sub(r"postgresql://\S+|/tmp/\S+", "…", text)
    return re.sub(r"\d{4,}|\d+(?=\))", "N", " ".join(text.split()))[:300]


def _wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(r"http://\S+(?=/mcp)", log.read_text(encoding="utf-8"))
        with suppress(httpx2.HTTPError):
            if found and httpx2.get(f"{found[0]}/readyz", timeout=_START_SECONDS).status_code == 200:
                return f"{found[0]}/mcp"
        time.sleep(0.05)
    raise SystemExit(f"The server did not start: {log.read_text(encoding='utf-8')}")


class Searcher:
    """One client, which knows what the answers to its queries must contain."""

    def __init__(self, place: Place, address: str, index: int, load: Load) -> None:
        self._place, self._address, self._load = place, address, load
        self._random = random.Random(index)
        self._mode = ("legacy", "auto")[index % 2]  # half of them use the older protocol
        self._failures: list[Failure] = []  # since the last answer

    async def search_for(self, seconds: float, everybody: asyncio.Barrier, start: Callable[[], None]) -> None:
        """Search for some seconds once everybody is connected; connect again if the connection is lost."""
        end = float("inf")
        while time.monotonic() < end:
            begin = time.monotonic()
            try:
                async with self._connect() as client:
                    if end == float("inf"):
                        if not await everybody.wait():
                            start()
                        end = time.monotonic() + seconds
                    while time.monotonic() < end:
                        begin = time.monotonic()
                        await self._search_something(client)
            except Exception as error:
                self._load.reconnects += 1
                await self._note_failure(_describe(error), begin)

    async def learn(self) -> None:
        """Remember the answers about the pages that stay, which nothing disturbs yet."""
        async with self._connect() as client:
            for query in (*self._place.known, *queries.all_queries()):
                result = await client.call_tool("search", {"query": query, "tool": "still"})
                if result.is_error:
                    raise SystemExit(f"The search for {query} failed: {result.content}")
                self._place.expected[query] = _hits(result.structured_content)
        for sentence, path in self._place.known.items():
            if path not in {hit[0] for hit in self._place.expected[sentence]}:
                raise SystemExit(f"{path} is not found by its sentence, {sentence}")

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {self._place.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=_CALL_SECONDS, verify=_TLS) as web,
            Client(streamable_http_client(self._address, http_client=web), mode=self._mode, cache=None) as client,
        ):
            yield client

    async def _search_something(self, client: Client) -> None:
        """Search for a page of the second tool, or for what the first one answered before."""
        if self._random.random() < 0.3:
            await self._search_changing(client, self._random.choice(list(self._place.pages)))
        else:
            await self._search_still(client, self._random.choice(list(self._place.expected)))

    async def search_all(self) -> None:
        """Search for everything once."""
        async with self._connect() as client:
            for name in self._place.pages:
                await self._search_changing(client, name)
            for query in self._place.expected:
                await self._search_still(client, query)

    async def _search_still(self, client: Client, query: str) -> None:
        found = await self._search(client, query=query, tool="still")
        if found is not None and found != self._place.expected[query]:
            self._load.wrong.append(f"{query}: {found}, not {self._place.expected[query]}")

    async def _search_changing(self, client: Client, name: str) -> None:
        page = self._place.pages[name]
        imported = page.imported
        found = await self._search(client, query=page.word)
        if found is None:
            return
        allowed = set(page.versions[imported:])
        texts = [text for path, _, text in found if path == name]
        shown = {int(version) for text in texts for version in re.findall(rf"{page.word} は第(\d+)版", text)}
        is_missing = not texts and None not in allowed
        if shown - allowed or len(shown) > 1 or is_missing or (texts and allowed == {None}):
            self._load.wrong.append(f"{page.word}: version {shown or None} of {name}, not of {allowed}")

    async def _search(self, client: Client, **arguments: str) -> Answer | None:
        """Return what is found, or None after an error from which the connection recovers."""
        begin = time.monotonic()
        try:
            result = await client.call_tool("search", arguments)
        except MCPError as error:
            if self._failures:
                raise
            await self._note_failure(f"MCPError: {error}", begin)
            return None
        if result.is_error or result.structured_content is None:
            await self._note_failure(str(getattr(result.content[0], "text", "")), begin)
            return None
        now, content = time.monotonic(), result.structured_content
        self._load.latencies.append(now - begin)
        if self._failures:
            self._failures[0].recovery = now - self._failures[0].end
            self._failures = []
        self._load.empty += not content["results"]
        self._load.notices.update(map(_kind, content.get("notices", ())))
        return _hits(content)

    async def _note_failure(self, text: str, begin: float) -> None:
        failure = Failure(_kind(text), begin, time.monotonic())
        self._load.failures.append(failure)
        self._failures.append(failure)
        await asyncio.sleep(_PAUSE_SECONDS)


def _hits(content: dict[str, Any] | None) -> Answer:
    results = content["results"] if content is not None else []
    return [(hit["file_path"], hit["citation"], hit["content"]) for hit in results]


def _describe(error: BaseException) -> str:
    """Return the errors in groups of tasks."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(_describe, error.exceptions)))
    return f"{type(error).__name__}: {error}"


async def run_clients(place: Place, address: str, seconds: float, load: Load, start: Callable[[], None]) -> None:
    """Let all clients search at the same time, and call a function when they begin."""
    begin = cpu_begin = 0.0

    def note_start() -> None:
        nonlocal begin, cpu_begin
        begin, cpu_begin = time.monotonic(), time.process_time()
        start()

    everybody = asyncio.Barrier(load.clients)
    async with asyncio.timeout(seconds + 3 * _CALL_SECONDS), asyncio.TaskGroup() as tasks:
        for index in range(load.clients):
            tasks.create_task(Searcher(place, address, index, load).search_for(seconds, everybody, note_start))
    load.seconds, load.client_seconds = time.monotonic() - begin, time.process_time() - cpu_begin


class Watch(Thread):
    """Samples the memory of the server and its connections to the database; disturbs both as planned."""

    def __init__(self, load: Load, pid: int, postgres: PostgresServer | None) -> None:
        super().__init__()
        self._load, self._pid, self._postgres = load, pid, postgres
        self._chance, self._has_ended = random.Random(7), Event()
        self._plan: list[tuple[float, Callable[[], None]]] = []
        self._server_start = self._database_start = 0.0

    def disturb(self, seconds: float) -> None:
        """Plan what happens at which second: a worker is killed, the database is restarted."""
        pause = min(30.0, seconds / 5)
        second = pause
        while second < seconds - 2:
            self._plan.append((second, self._kill_workers))
            second += pause * self._chance.uniform(0.5, 1.5)
        if self._postgres is not None:
            away = [(False, 0.0), (True, 0.0), (False, _LONG_OUTAGE_SECONDS)][: 3 if seconds >= 60 else 1]
            for number, (immediately, outage) in enumerate(away, 1):
                restart = partial(self._restart_database, immediately=immediately, outage=outage)
                self._plan.append((seconds * number / (len(away) + 1), restart))
        self._plan.sort(key=lambda step: step[0])

    def run(self) -> None:
        """Watch until it is told to stop."""
        start = time.monotonic()
        self._server_start, self._database_start = cpu_seconds(self._pid), self._database_seconds()
        while not self._has_ended.wait(1.0):
            self._load.server_bytes.append(resident_bytes(self._pid))
            if self._postgres is not None:
                self._load.connections = max(self._load.connections, len(_connections(self._postgres)))
            while self._plan and time.monotonic() - start >= self._plan[0][0]:
                self._plan.pop(0)[1]()

    def stop(self) -> None:
        """Stop, and read how much was computed."""
        self._has_ended.set()
        self.join()
        self._load.server_seconds = cpu_seconds(self._pid) - self._server_start
        self._load.database_seconds += self._database_seconds() - self._database_start

    def _database_seconds(self) -> float:
        return cpu_seconds(self._postgres.pid) if self._postgres is not None else 0.0

    def _kill_workers(self) -> None:
        # The third process keeps track of what the workers share.
        workers = [pid for pid in children(self._pid) if "spawn_main" in _command(pid)]
        victims = workers if self._chance.random() < 0.2 else [self._chance.choice(workers)] if workers else []
        for pid in victims:
            outage = Outage(WORKER_KILLED, time.monotonic())
            self._load.outages.append(outage)
            os.kill(pid, signal.SIGKILL)
            while pid in children(self._pid):
                time.sleep(0.001)  # its connections take requests until its memory is freed
            outage.end = time.monotonic()

    def _restart_database(self, *, immediately: bool, outage: float) -> None:
        assert self._postgres is not None
        self._load.database_seconds += self._database_seconds() - self._database_start
        away = Outage(DATABASE_AWAY, time.monotonic())
        self._load.outages.append(away)
        self._postgres.stop(immediately=immediately)
        if outage:
            self._kill_workers()  # the next ones start without a database
        self._has_ended.wait(outage)
        self._postgres.start()
        away.seconds, self._database_start = time.monotonic() - away.begin, 0.0
        away.end = time.monotonic() + _NOTICE_SECONDS


def _command(pid: int) -> str:
    with suppress(OSError):  # it has ended
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    # A process that the main thread of the server did not start is not listed here: the pools of imports.
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and those it started."""
    with suppress(OSError):  # it has just ended
        own_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return own_pages * os.sysconf("SC_PAGE_SIZE") + sum(map(resident_bytes, children(pid)))
    return 0


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of those it started, also of those that have ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return own + sum(map(cpu_seconds, children(pid)))
    return 0.0


def _connections(postgres: PostgresServer, *, of_ended_processes: bool = False) -> list[str]:
    """Return the names of bunko's connections, in which the process is the third word."""
    rows = postgres.execute("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'bunko %'")
    return [name for (name,) in rows if not (of_ended_processes and Path(f"/proc/{name.split()[2]}").exists())]


def _left_over(names: Callable[[], list[str]]) -> list[str]:
    """Return what is there after some seconds in which it may end."""
    deadline = time.monotonic() + _END_SECONDS
    while (left := names()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def measure(
    place: Place, *, clients: int, seconds: float, workers: int, postgres: PostgresServer | None, disturb: bool
) -> Load:
    """Serve, import and search for some seconds; then look whether everything is there, and nothing else."""
    load, end = Load(clients), Event()
    with place.serve(workers) as (address, pid):
        asyncio.run(Searcher(place, address, 0, load).learn())
        load.server_bytes.append(resident_bytes(pid))
        importing, watch = Thread(target=place.import_until, args=(end, load)), Watch(load, pid, postgres)
        if disturb:
            watch.disturb(seconds)

        def start() -> None:
            importing.start()
            watch.start()

        try:
            asyncio.run(run_clients(place, address, seconds, load, start))
        finally:
            end.set()
            if importing.ident is not None:
                watch.stop()
                importing.join()
        if problem := place.import_changes():
            load.lost.append(f"The last import ended with {problem}")
        after = Load(clients)
        asyncio.run(Searcher(place, address, 0, after).search_all())
        load.wrong += after.wrong
        load.lost += [f"{failure.kind}, after the load" for failure in after.failures]
        if postgres is not None:
            names = _left_over(partial(_connections, postgres, of_ended_processes=True))
            load.lost += [f"the connection {name} has no process" for name in names]
    load.lost += [f"the process {command} has not ended" for command in _left_over(place.processes)]
    if postgres is not None:
        names = _left_over(partial(_connections, postgres))
        load.lost += [f"the connection {name} is still open" for name in names]
    load.lost += place.problems()
    return load


@contextmanager
def start_postgres() -> Iterator[tuple[PostgresServer, dict[str, str]]]:
    """Run a PostgreSQL that writes to the disk as a real one; yield it with the settings of a new library."""
    try:
        from tests.scale.postgres_server import PostgresServer, environment
    except ImportError:
        raise SystemExit("psycopg is not installed here: make test-scale installs it.") from None
    server = PostgresServer(durable=True)
    try:
        yield server, environment(server.new_library())
    finally:
        server.remove()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[50], help="several numbers: one after another")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=10_000, help="size of the tool that is searched")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, as in BUNKO_…=…")
    parser.add_argument("--postgres", action="store_true", help="keep the library on a PostgreSQL that is started here")
    parser.add_argument("--disturb", action="store_true", help="kill workers, and restart that PostgreSQL")
    parser.add_argument("--json", action="store_true", help="a line for each number of clients")
    arguments = parser.parse_args()
    settings, loads, postgres = dict(text.split("=", 1) for text in arguments.set), [], None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if arguments.postgres:
            postgres, address = stack.enter_context(start_postgres())
            settings |= address
        place = Place(folder, {"EMBEDDING_PROVIDER": "static", **settings})
        place.build(arguments.chunks)
        for clients in arguments.clients:
            machine = os.getloadavg()[0]
            load = measure(
                place, clients=clients, seconds=arguments.seconds, workers=arguments.workers, postgres=postgres,
                disturb=arguments.disturb,
            )  # fmt: skip
            loads.append(load)
            if arguments.json:
                print(json.dumps(load.to_json(), ensure_ascii=False), flush=True)
            else:
                _report(load, machine)
    if not arguments.json:
        print("\n\n".join(map(markdown, tables(loads))))
    sys.exit(0 if all(load.is_good for load in loads) else 1)


def _report(load: Load, machine: float) -> None:
    """Print what the tables do not say."""
    print(f"{load.clients} clients. Load average before: {machine:.1f}, after: {os.getloadavg()[0]:.1f}.")
    print(f"Answers without a result: {load.empty}. Failed imports: {len(load.import_failures)}.")
    print(f"Clients made anew: {load.reconnects}.")
    for reason in (WORKER_KILLED, DATABASE_AWAY):
        failures = [failure for failure in load.failures if load.reason(failure) == reason]
        slowest = max((failure.end - failure.begin for failure in failures), default=0.0)
        until_answer = sorted(failure.recovery for failure in failures if failure.recovery) or [0.0]
        median, longest = map(number, (until_answer[len(until_answer) // 2], until_answer[-1]))
        print(f"While {reason}: {len(failures)} errors, the slowest after {number(slowest)} s;")
        print(f"  until the next answer of that client {median} s (median), {longest} s at most.")
    samples = load.server_bytes[:: max(1, len(load.server_bytes) // 10)]
    print(f"Server MB over time: {', '.join(number(size / 1e6) for size in samples)}.")
    for reason, counts in load.errors().items():
        for kind, times in counts.most_common():
            print(f"Error while {reason or 'NOTHING WAS AWAY'}, {times} times: {kind}")
    for outage in load.outages:
        if outage.reason == DATABASE_AWAY:
            errors = sum(outage.begin <= failure.end and failure.begin <= outage.end for failure in load.failures)
            print(f"The database was away for {number(outage.seconds)} s: {errors} errors.")
    for text, times in load.notices.most_common(5):
        print(f"Notice, {times} times: {text}")
    for text in load.wrong[:5] + load.lost[:20]:
        print(f"WRONG: {text:.600}")
    print(flush=True)


if __name__ == "__main__":
    main()
