"""Load a server: many MCP clients search without a pause while an import runs, and every answer is checked.

    python -m bench.load --clients 50 --seconds 300 --workers 2
    python -m bench.load --set BUNKO_STORAGE_URL=postgresql://bunko@127.0.0.1/team --set BUNKO_STORAGE_SCHEMA=load

It builds a library, serves it with `bunko serve --http --workers N`, and imports changed pages of a second tool again
and again with `bunko import`. Clients, server and import share the machine. It ends with 1 if any answer was an error.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bench import corpus, queries
from bench.clock import environment
from bench.table import Table, markdown, number

TOKEN = "a token of this benchmark alone"
PAGES_PER_IMPORT = 40  # rewritten before each import: about 320 chunks
_START_SECONDS, _CALL_SECONDS = 60.0, 60.0


@dataclass
class Load:
    """What happened while the clients searched."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    empty: int = 0  # answers without a result
    notices: Counter[str] = field(default_factory=Counter)
    imports: int = 0
    import_errors: Counter[str] = field(default_factory=Counter)
    server_bytes: int = 0  # resident, of all processes of the server
    worker_seconds: list[float] = field(default_factory=list)  # CPU time of each worker

    def percentile(self, share: float) -> float:
        """Return the time in milliseconds that this share of the searches did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3 if ordered else 0.0

    def to_json(self) -> dict[str, object]:
        """Return the numbers for programs."""
        return {
            "searches": len(self.latencies), "searches_per_second": len(self.latencies) / max(self.seconds, 1e-9),
            "p50_ms": self.percentile(0.5), "p95_ms": self.percentile(0.95), "p99_ms": self.percentile(0.99),
            "max_ms": self.percentile(1.0), "errors": dict(self.errors), "empty": self.empty,
            "notices": dict(self.notices), "imports": self.imports, "import_errors": dict(self.import_errors),
            "server_mb": self.server_bytes / 1e6, "worker_cpu_seconds": self.worker_seconds,
        }  # fmt: skip

    def table(self) -> Table:
        """Return the numbers for people."""
        head = ("searches", "a second", "p50 ms", "p95 ms", "p99 ms", "slowest ms", "errors", "imports", "server MB")
        row = (
            f"{len(self.latencies):,}", number(len(self.latencies) / self.seconds),
            *(number(self.percentile(share)) for share in (0.5, 0.95, 0.99, 1.0)),
            str(self.errors.total() + self.import_errors.total()), str(self.imports), number(self.server_bytes / 1e6),
        )  # fmt: skip
        return Table(head, [row])


class Place:
    """A library with two tools: one that is searched, and one that is imported meanwhile."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder, self.environ = folder, environment(**environ, BUNKO_TOKEN=TOKEN, HOME=str(folder))
        self.library, self.still, self.changing = folder / "library", folder / "still", folder / "changing"
        # On a database server, a library has a folder on each machine: here, one that imports and one that serves.
        is_shared = any(name.startswith("BUNKO_STORAGE_") for name in environ)
        self.served_library = folder / "served library" if is_shared else self.library

    def build(self, chunks: int) -> None:
        """Write the pages and import both tools."""
        corpus.write(self.still, chunks)
        self.write_changes(0)
        self.run("init")
        for name, source in (("still", self.still), ("changing", self.changing)):
            self.run("tool", "add", "--name", name, "--description", name, "--source", str(source))
            self.run("import", "-n", name)

    def write_changes(self, round_index: int) -> None:
        """Write other texts into the pages of the second tool."""
        for name, text in corpus.pages(PAGES_PER_IMPORT, seed=1000 + round_index):
            path = self.changing / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> str:
        """Run a command of bunko, and return what went wrong."""
        command = [sys.executable, "-m", "bunko", *arguments, "--library", str(self.library)]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, check=False)
        if done.returncode and arguments[0] != "import":
            raise SystemExit(f"bunko {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stderr.strip().splitlines()[0] if done.returncode else ""

    def import_until(self, end: Event, load: Load) -> None:
        """Import changes again and again."""
        for round_index in itertools.count(1):
            if end.is_set():
                return
            self.write_changes(round_index)
            if problem := self.run("import", "-n", "changing", "--mode", "update"):
                load.import_errors[problem] += 1
            else:
                load.imports += 1

    @contextmanager
    def serve(self, workers: int) -> Iterator[tuple[str, int]]:
        """Serve the library; yield the address and the process id of the supervisor."""
        log = self.folder / "server.log"
        command = [sys.executable, "-m", "bunko", "serve", "--http", "--port", "0", "--workers", str(workers)]
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [*command, "--toolsets", "folder", "--library", str(self.served_library)], env=self.environ, stderr=file
            )
        try:
            yield _wait_for_address(process, log), process.pid
        finally:
            process.terminate()
            process.wait()
            sys.stderr.write("".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[1:]))


def _wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(r"http://\S+(?=/mcp)", log.read_text(encoding="utf-8"))
        with suppress(httpx2.HTTPError):
            if found and httpx2.get(f"{found[0]}/readyz", timeout=_START_SECONDS).status_code == 200:
                return f"{found[0]}/mcp"
        time.sleep(0.05)
    raise SystemExit(f"The server did not start: {log.read_text(encoding='utf-8')}")


async def search_until(end: float, address: str, client_index: int, load: Load) -> None:
    """Search as one client, half of them by the older protocol, once and then until the time is over."""
    rng, all_queries = random.Random(client_index), queries.all_queries()
    mode = ("legacy", "auto")[client_index % 2]
    is_over = False
    while not is_over:
        try:
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=_CALL_SECONDS) as web,
                Client(streamable_http_client(address, http_client=web), mode=mode, cache=None) as client,
            ):
                while not is_over:
                    start = time.monotonic()
                    result = await client.call_tool("search", {"query": rng.choice(all_queries)})
                    load.latencies.append(time.monotonic() - start)
                    _check_answer(result.is_error, result.structured_content, str(result.content)[:200], load)
                    is_over = time.monotonic() >= end
        except Exception as error:
            load.errors[f"{type(error).__name__}: {error!s:.200}"] += 1
            is_over = time.monotonic() >= end


def _check_answer(is_error: bool, content: dict[str, object] | None, text: str, load: Load) -> None:
    if is_error or content is None:
        load.errors[text] += 1
        return
    load.empty += not content["results"]
    notices = content.get("notices")
    load.notices.update(str(notice) for notice in notices) if isinstance(notices, list) else None


async def run_clients(address: str, count: int, seconds: float, load: Load) -> None:
    """Let all clients search at the same time."""
    start = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for index in range(count):
            tasks.create_task(search_until(start + seconds, address, index, load))
    load.seconds = time.monotonic() - start


def _resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and those it started."""
    own_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return own_pages * os.sysconf("SC_PAGE_SIZE") + sum(map(_resident_bytes, _children(pid)))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    # A process that the main thread of the server did not start is not listed here: the pools of imports.
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def measure(place: Place, *, clients: int, seconds: float, workers: int) -> Load:
    """Serve, import and search for some seconds."""
    load, end = Load(), Event()
    with place.serve(workers) as (address, pid):
        importing = Thread(target=place.import_until, args=(end, load))
        importing.start()
        try:
            asyncio.run(run_clients(address, clients, seconds, load))
            if Path("/proc").is_dir():
                load.server_bytes = _resident_bytes(pid)
                load.worker_seconds = [_cpu_seconds(child) for child in _children(pid)]
        finally:
            end.set()
            importing.join()
    return load


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=10_000, help="size of the tool that is searched")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, as in BUNKO_…=…")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    settings = dict(text.split("=", 1) for text in arguments.set)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), {"EMBEDDING_PROVIDER": "static", **settings})
        place.build(arguments.chunks)
        load_before = os.getloadavg()[0]
        load = measure(place, clients=arguments.clients, seconds=arguments.seconds, workers=arguments.workers)
    if arguments.json:
        print(json.dumps(load.to_json(), ensure_ascii=False))
    else:
        print(markdown(load.table()))
        print(f"\nLoad average before: {load_before:.1f}. Answers without a result: {load.empty}.")
        print(f"CPU seconds of the server's processes: {', '.join(map(number, load.worker_seconds))}.")
        for title, counts in (("Error", load.errors + load.import_errors), ("Notice", load.notices)):
            for text, count in counts.most_common(5):
                print(f"{title}, {count} times: {text}")
    sys.exit(1 if load.errors or load.import_errors or not load.latencies else 0)


if __name__ == "__main__":
    main()
