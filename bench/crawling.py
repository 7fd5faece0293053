"""Measure crawling a site of 200 pages on loopback, beside plain fetching; the import is measured separately."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from bench.table import Result, Table, check, number
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.runtime.observer import Observer

PAGES = 200
CONCURRENCY = 4
ROUNDS = 9
# As much as an article of a documentation site: navigation, prose, code, a table.
SENTENCE = (
    "検索の索引は一つのファイルに書かれ、途中で電源が切れても失われない。The index is written at once or not at all. "
)


def page(page_number: int) -> bytes:
    """Return one article, with links to its neighbours."""
    menu = "".join(
        f"<li><a href='/{number}'>Article {number}</a></li>"
        for number in range(max(0, page_number - 20), min(PAGES, page_number + 20))
    )
    sections = "".join(
        f"<h2>節 {section}</h2><p>{SENTENCE * 4}</p>"
        f"<pre><code>bunko search {page_number} --top-k {section}</code></pre>"
        for section in range(8)
    )
    rows = "".join(
        f"<tr><td>設定{number}</td><td>{number * page_number}</td><td>既定の値</td></tr>" for number in range(20)
    )
    return (
        f"<!doctype html><html lang=ja><head><meta charset=utf-8><title>Article {page_number}</title></head>"
        f"<body><nav><ul>{menu}</ul></nav><main><h1>Article {page_number}</h1>{sections}"
        f"<table><tr><th>名前</th><th>値</th><th>説明</th></tr>{rows}</table></main></body></html>"
    ).encode()


def serve(pipe: Connection) -> None:
    """Serve the site until the process ends."""
    pages = {f"/{name}": page(name) for name in range(PAGES)}
    links = "".join(f"<a href='/{name}'>{name}</a> " for name in range(PAGES))
    pages["/"] = f"<html><body><main><h1>Index</h1><p>{links}</p></main></body></html>".encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self) -> None:
            body = pages.get(self.path, b"")
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pipe.send(server.server_address[1])
    server.serve_forever()


@contextmanager
def site() -> Iterator[str]:
    """Run the site in a separate process, so that it takes no time from the crawler."""
    context = get_context("spawn")
    parent_pipe, child_pipe = context.Pipe()
    process = context.Process(target=serve, args=(child_pipe,), daemon=True)
    process.start()
    try:
        yield f"127.0.0.1:{parent_pipe.recv()}"
    finally:
        process.terminate()
        process.join()


def fetch_all(host: str) -> None:
    """Fetch all pages with an HTTP client and the same number of threads, and drop them."""
    import httpx2

    with httpx2.Client(trust_env=False) as client, ThreadPoolExecutor(CONCURRENCY) as pool:
        answers = pool.map(lambda name: client.get(f"http://{host}{name}"), ["/", *(f"/{n}" for n in range(PAGES))])
        if any(answer.status_code != 200 for answer in answers):
            raise SystemExit("The site did not serve all its pages")


def open_crawler_library(folder: Path, host: str) -> Library:
    """Open a library that may crawl the site without a delay."""
    environ = {
        "BUNKO_CRAWL_ALLOWED_HOSTS": host,
        "RAG_CRAWL_DELAY_SEC": "0",
        "BUNKO_CRAWL_CONCURRENCY": str(CONCURRENCY),
        "XDG_CONFIG_HOME": str(folder),
    }
    return open_library(locate_library(library=folder, environ=environ), environ=environ)


def now() -> tuple[float, float]:
    """Return the CPU time of this process and the wall time."""
    return time.process_time(), time.perf_counter()


def measure_crawl(host: str) -> list[tuple[float, float]]:
    """Return the cost of crawling all pages, and of importing them."""
    with tempfile.TemporaryDirectory() as work_dir, open_crawler_library(Path(work_dir), host) as library:
        marks = [now()]
        imported: list[tuple[float, float]] = []
        crawl = library.web.crawl_site(
            f"http://{host}/", max_pages=PAGES + 1, observer=Observer(on_progress=lambda _: imported.append(now()))
        )
        marks += [imported[0], now()]
    if len(crawl.outcome.stored_urls) != PAGES + 1:
        raise SystemExit(f"{len(crawl.outcome.stored_urls)} of {PAGES + 1} pages were crawled")
    return [(end[0] - start[0], end[1] - start[1]) for start, end in pairwise(marks)]


def run(_: object) -> Result:
    with site() as host:
        rounds = []
        fetch_all(host)
        measure_crawl(host)
        for _round in range(ROUNDS):
            start = now()
            fetch_all(host)
            end = now()
            rounds.append([(end[0] - start[0], end[1] - start[1]), *measure_crawl(host)])
    cpu, wall = ([min(times[index] for times in column) for column in zip(*rounds, strict=True)] for index in (0, 1))
    table = Table((f"{PAGES} pages on loopback, no delay", "CPU ms", "wall ms", "× plain, CPU", "× plain, wall"))
    labels = (f"plain fetching, {CONCURRENCY} threads", "crawling: guard, robots, links, stored", "importing them")
    for index, label in enumerate(labels):
        times = (f"{cpu[index] / cpu[0]:.2f}", f"{wall[index] / wall[0]:.2f}") if index == 1 else ("", "")
        table.rows.append((label, number(cpu[index] * 1000), number(wall[index] * 1000), *times))
    return Result({"crawling": table}, [check("a crawl beside plain fetching, wall", wall[1] / wall[0], 2, "×")])
