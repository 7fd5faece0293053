"""Measure the page in Chromium: from the last key to the first result, weights, a large document, and many tabs.

    python -m bench.page
    python -m bench.page --chunks 500000 --work DIR

It builds a library, serves it with `bunko serve --http`, and types queries into the page of a headless Chromium. Server
and browser share the machine. `--work` keeps the library for the next run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Page, Playwright, sync_playwright

from bench import queries
from bench.documents import write_section
from bench.page_library import LARGE_NAME, TOKEN, PageLibrary, listen, session_cookie
from bench.table import Check, Table, check, check_table, markdown, number

MIDDLE_CHUNKS, MANY_CHUNKS = 22_000, 500_000
_TARGETS_MS = {MIDDLE_CHUNKS: 60.0, MANY_CHUNKS: 150.0}
_MAX_KILOBYTES = 150.0
_TABS = 20
_KEY_MILLISECONDS = 60  # between two keys: a fast typist
_QUIET_MILLISECONDS = 400  # after an answer, before the next query
_PATIENCE_MILLISECONDS = 60_000
_FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync", "--disable-background-networking",
    "--disable-component-update",
)  # fmt: skip
_WEIGHED = {"search": "/", "results": "/?q=設定", "library": "/library", "map": "/map", "time": "/time"}

# Notes when the last key went down and when the results after it were on the screen: two frames after the change.
_WATCH_RESULTS = """() => {
    window.lastKey = 0; window.shown = 0;
    const begin = event => { window.lastKey = event.timeStamp; window.shown = 0; };
    addEventListener("keydown", begin, true);
    // What is pasted comes without a key.
    addEventListener("input", event => { if (event.timeStamp - window.lastKey > 50) begin(event); }, true);
    const isResult = node => (node.closest ? node : node.parentElement)?.closest("#results");
    new MutationObserver(changes => {
        if (window.shown || !window.lastKey || !document.querySelector("#results .result")) return;
        // An answer to the letters before the last one may come just after it.
        const shownQuery = new URLSearchParams(location.search).get("q");
        if (shownQuery !== document.getElementById("query").value) return;
        if (!changes.some(change => isResult(change.target) || [...change.addedNodes].some(isResult))) return;
        window.shown = -1;
        requestAnimationFrame(() => requestAnimationFrame(now => { window.shown = now; }));
    }).observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true });
}"""
_WAIT_FOR_RESULTS = """() => new Promise((resolve, reject) => {
    const end = performance.now() + 20000;
    const look = () => {
        if (window.shown > 0) resolve(window.shown - window.lastKey);
        else if (performance.now() > end) reject(new Error("no result within 20 s"));
        else setTimeout(look, 5);
    };
    look();
})"""
# Runs before the page: the longest time in which it could not answer to a key or a click.
_WATCH_FREEZES = """
    window.longest = 0;
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
    }).observe({ type: "longtask", buffered: true });
"""
_FETCH = """async address => {
    const start = performance.now();
    const response = await fetch(address, { cache: "no-store" });
    await response.text();
    return [response.status, performance.now() - start];
}"""


class Times(NamedTuple):
    """Milliseconds of several searches."""

    values: Sequence[float]

    @property
    def median(self) -> float:
        """The middle of them."""
        return statistics.median(self.values)

    def row(self) -> tuple[str, str, str]:
        """Return the median, the 95th percentile and the slowest."""
        ordered = sorted(self.values)
        return number(self.median), number(ordered[int(0.95 * (len(ordered) - 1))]), number(ordered[-1])


@contextmanager
def browse(playwright: Playwright, address: str) -> Iterator[BrowserContext]:
    """Start a browser that is signed in."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise SystemExit("Chromium is missing. `make chromium` installs it on Debian.")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = playwright.chromium.launch(executable_path=path, args=[*_FLAGS, *sandbox])
    try:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
        context.set_default_timeout(_PATIENCE_MILLISECONDS)
        name, value = session_cookie(address)
        context.add_cookies([{"name": name, "value": value, "url": address, "httpOnly": True, "sameSite": "Strict"}])
        yield context
    finally:
        browser.close()


def measure_typing(page: Page, address: str, *, key_by_key: bool) -> Times:
    """Type or paste all queries; return the times from the last key to the first result on the screen."""
    page.goto(address)
    page.evaluate(_WATCH_RESULTS)
    field, times = page.locator("#query"), []
    for query in queries.all_queries():
        field.fill("")
        page.wait_for_timeout(_QUIET_MILLISECONDS)
        if key_by_key:
            # Japanese reaches a page in pieces, one for each conversion; a key at a time is more work for it.
            field.press_sequentially(query, delay=_KEY_MILLISECONDS)
        else:
            field.fill(query)
        times.append(page.evaluate(_WAIT_FOR_RESULTS))
    return Times(times)


def measure_answers(page: Page, address: str) -> Times:
    """Send all queries to the API from a page, one after another; return the times to the whole answers."""
    page.goto(address)
    times = []
    for query in queries.all_queries():
        status, milliseconds = page.evaluate(_FETCH, f"/api/v1/search?q={query}")
        if status != 200:
            raise SystemExit(f"A search ended with {status}")
        times.append(milliseconds)
    return Times(times)


def measure_weights(context: BrowserContext, address: str) -> dict[str, float]:
    """Return the kilobytes of markup, styles and scripts of each page."""
    weights = {}
    for name, path in _WEIGHED.items():
        page, sizes = context.new_page(), {}
        page.on("response", lambda response, sizes=sizes: sizes.update({response.url: len(response.body())}))
        response = page.goto(address + path)
        page.wait_for_timeout(_QUIET_MILLISECONDS)
        if response is not None and response.ok:
            weights[name] = sum(size for url, size in sizes.items() if not urlsplit(url).path.startswith("/api/")) / 1e3
        page.close()
    return weights


def measure_large_document(context: BrowserContext, address: str) -> tuple[float, float]:
    """Open a document of ten megabytes; return the milliseconds until its text is there and of the longest freeze."""
    context.add_init_script(_WATCH_FREEZES)
    page = context.new_page()
    start = time.perf_counter()
    page.goto(f"{address}/documents/large/{LARGE_NAME}")
    page.locator("#document .block").first.wait_for()
    opened = (time.perf_counter() - start) * 1e3
    for _ in range(20):
        page.mouse.wheel(0, 2000)
        page.wait_for_timeout(50)
    longest = page.evaluate("window.longest")
    page.close()
    return opened, longest


def measure_tabs(context: BrowserContext, library: PageLibrary, address: str) -> tuple[Times, Times, Times]:
    """Search beside an import: alone, beside many browsers that hear of its progress, beside many tabs that show it.

    The tabs of one browser share a stream of events, so many browsers are more work for the server.
    """
    search = context.new_page()
    alone: list[float] = []
    streams: list[float] = []
    beside: list[float] = []
    for seed in (1, 4, 7):  # in turns, so that other work on the machine meets all
        alone += _measure_during_import(context, library, search, address, seed)
        with listen(address, _TABS):
            streams += _measure_during_import(context, library, search, address, seed + 1)
        tabs = [_open_library(context, address, is_hidden=index > 0) for index in range(_TABS)]
        beside += _measure_during_import(context, library, search, address, seed + 2)
        for tab in tabs:
            tab.close()
    search.close()
    return Times(alone), Times(streams), Times(beside)


def _open_library(context: BrowserContext, address: str, *, is_hidden: bool) -> Page:
    """Open the page of the library; headless, every tab takes itself for the one in front unless it is told."""
    tab = context.new_page()
    if is_hidden:
        tab.add_init_script("Object.defineProperty(document, 'hidden', { value: true })")
    reply = tab.goto(f"{address}/library")
    if reply is None or not reply.ok:
        raise RuntimeError("there is no page of the library")
    return tab


def _measure_during_import(
    context: BrowserContext, library: PageLibrary, search: Page, address: str, seed: int
) -> Sequence[float]:
    """Return the times of all searches that began while changed pages were imported."""
    library.write_changes(seed)
    search.goto(address)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    started = context.request.post(f"{address}/api/v1/tools/changing/import", headers=headers)
    if started.status != 202:
        raise SystemExit(f"The import did not start: {started.status} {started.text()[:200]}")
    times = measure_answers(search, address)
    _wait_for_job(context, address, started.json())
    return times.values


def _wait_for_job(context: BrowserContext, address: str, job: dict[str, Any]) -> None:
    identifier = job["job"]["id"] if isinstance(job["job"], dict) else job["job"]
    while context.request.get(f"{address}/api/v1/jobs/{identifier}").json()["status"] in ("queued", "running"):
        time.sleep(0.2)


def measure(library: PageLibrary) -> tuple[Table, list[Check]]:
    """Serve the library and measure everything; a part of the page that is not there is left out with a sentence."""
    table, checks = Table(("what", "median", "p95", "slowest")), []
    size = f"{library.chunks:,} chunks"
    with library.serve() as address, sync_playwright() as playwright, browse(playwright, address) as context:
        answers = measure_answers(context.new_page(), address)
        pasting = measure_typing(context.new_page(), address, key_by_key=False)
        typing = measure_typing(context.new_page(), address, key_by_key=True)
        table.rows += [
            (f"a search from the page, {size}, ms", *answers.row()),
            (f"a pasted query to its first result, {size}, ms", *pasting.row()),
            (f"last key to first result, {size}, ms", *typing.row()),
        ]
        if library.chunks in _TARGETS_MS:
            checks.append(check(f"last key to first result, {size}", typing.median, _TARGETS_MS[library.chunks], "ms"))
        for name, kilobytes in measure_weights(context, address).items():
            table.rows.append((f"weight of the page {name}, kB", number(kilobytes), "", ""))
            checks.append(check(f"weight of the page {name}", kilobytes, _MAX_KILOBYTES, "kB"))
        _attempt("a document of ten megabytes", lambda: _add_document(table, context, address))
        _attempt(f"{_TABS} tabs", lambda: _add_tabs(table, context, library, address))
    return table, checks


def _add_document(table: Table, context: BrowserContext, address: str) -> None:
    opened, longest = measure_large_document(context, address)
    table.rows += [
        ("opening a document of 10 MB, ms", number(opened), "", ""),
        ("longest freeze while it opens and scrolls, ms", number(longest), "", ""),
    ]


def _add_tabs(table: Table, context: BrowserContext, library: PageLibrary, address: str) -> None:
    alone, streams, beside = measure_tabs(context, library, address)
    table.rows += [
        ("a search during an import, ms", *alone.row()),
        (f"the same, with {_TABS} browsers that hear of its progress, ms", *streams.row()),
        (f"the same, with {_TABS} tabs of one browser, one of them in front, ms", *beside.row()),
    ]


def _attempt(what: str, add: Callable[[], None]) -> None:
    try:
        add()
    except Exception as error:
        print(f"Left out: {what}: {str(error).splitlines()[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--chunks", type=int, default=MIDDLE_CHUNKS, help="size of the library; 500000 has a target too"
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the generated library in DIR for the next run")
    parser.add_argument("--write", action="store_true", help="write the table into bench/notes/page.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = PageLibrary((arguments.work or Path(folder)) / str(arguments.chunks), arguments.chunks)
        library.build()
        load = os.getloadavg()[0]
        table, checks = measure(library)
    text = f"{markdown(table)}\n\nLoad average before: {load:.1f}."
    print(f"{text}\n\n{markdown(check_table(checks))}")
    if arguments.write:
        section = "page" if arguments.chunks == MIDDLE_CHUNKS else f"page-{arguments.chunks}"
        write_section(section, text)


if __name__ == "__main__":
    main()
