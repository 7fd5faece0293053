"""Measure the map: the time to lay out many documents, and how fluid their points move in Chromium.

    python -m bench.map
    python -m bench.map --documents 5000 --work DIR

It builds a library of short documents, lays them out in this process, serves them with `bunko serve --http`, and zooms
in and out in a headless Chromium, which draws without a graphics card. `--work` keeps the library for the next run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

from bench import corpus
from bench.documents import write_section
from bench.page import browse
from bench.page_library import PageLibrary
from bench.table import Table, markdown, number
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library

DOCUMENTS = 20_000
_CHARS = 600  # of a document: one or two chunks
_FOLDERS = 12
_FRAMES = 180
# Zooms a little with every frame, so that every frame draws all points anew; returns the milliseconds between frames.
_ZOOM = """frames => new Promise(resolve => {
    const canvas = document.getElementById("canvas");
    const box = canvas.getBoundingClientRect(), times = [];
    const middle = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    const options = { bubbles: true, cancelable: true, ...middle };
    let last = 0;
    const step = now => {
        if (last) times.push(now - last);
        last = now;
        if (times.length === frames) { resolve(times); return; }
        canvas.dispatchEvent(new WheelEvent("wheel", { ...options, deltaY: times.length % 60 < 30 ? -12 : 12 }));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""


class MapLibrary(PageLibrary):
    """A library of many short documents in some folders."""

    def build(self) -> None:
        """Write the documents and import them, unless an earlier run did."""
        built = self.folder / "built"
        if built.exists():
            return
        for position, (_, text) in enumerate(corpus.pages(self.chunks)):
            path = self.folder / "documents" / f"folder-{position % _FOLDERS}" / f"{position:05}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            header = f"---\ndate: {2014 + position % 12}-05-01\ntags: [tag{position % 30}]\n---\n"
            path.write_text(header + text[:_CHARS], encoding="utf-8")
        self._run("init")
        self._run("tool", "add", "-n", "documents", "-d", "Documents", "-s", str(self.folder / "documents"))
        self._run("import", "-n", "documents")
        built.touch()


def measure_layout(library: MapLibrary) -> tuple[float, float, float]:
    """Return the CPU and wall seconds of a map that is computed, and the CPU seconds of one that was kept."""
    paths = locate_library(library=library.library, environ=library.environ)
    for file in library.library.rglob("*-map-*.arrays"):
        file.unlink()
    times = []
    for _ in range(2):
        with open_library(paths, environ=library.environ) as opened:
            tools = opened.tools()
            start = time.process_time(), time.perf_counter()
            opened.maps.build(tools)
            times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    return *times[0], times[1][0]


def measure_drawing(context: BrowserContext, address: str) -> tuple[float, float, list[float]]:
    """Return the seconds until the map is there, the megabytes of its points, and the milliseconds between frames."""
    page = context.new_page()
    sizes: list[int] = []
    page.on("response", lambda reply: sizes.append(len(reply.body())) if "/api/v1/map" in reply.url else None)
    start = time.perf_counter()
    page.goto(f"{address}/map")
    page.locator("#legend li").first.wait_for()
    page.locator("#stage:not([aria-busy])").wait_for()
    opened = time.perf_counter() - start
    times = sorted(page.evaluate(_ZOOM, _FRAMES))
    page.close()
    return opened, sizes[0] / 1e6, times


def measure(library: MapLibrary) -> Table:
    """Measure everything."""
    table = Table(("what", "measured"))
    size = f"{library.chunks:,} documents"
    computed, wall, kept = measure_layout(library)
    table.rows += [
        (f"laying out {size}, s CPU", number(computed)),
        ("the same, s wall", number(wall)),
        ("reading the kept map, s CPU", number(kept)),
    ]
    with library.serve() as address, sync_playwright() as playwright, browse(playwright, address) as context:
        opened, megabytes, times = measure_drawing(context, address)
        median, slow = times[len(times) // 2], times[len(times) * 95 // 100]
        table.rows += [
            ("opening the page until all points are drawn, s", number(opened)),
            ("points as JSON, MB", number(megabytes)),
            ("frames a second while zooming, median", number(1000 / median)),
            ("a frame while zooming, p95, ms", number(slow)),
        ]
    return table


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.map", description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="size of the library")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the generated library in DIR for the next run")
    parser.add_argument("--write", action="store_true", help="write the table into bench/notes/page.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.work or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        library = MapLibrary(folder, options.documents)
        library.build()
        body = f"{markdown(measure(library))}\n\nLoad average before: {load:.1f}."
    print(body)
    if options.write:
        write_section("map", body)


if __name__ == "__main__":
    main()
