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

import numpy as np
import numpy.typing as npt
from playwright.sync_api import BrowserContext, sync_playwright

from bench import corpus
from bench.documents import write_section
from bench.page import browse
from bench.page_library import PageLibrary
from bench.table import Table, markdown, number
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.overview.layout import Layout

DOCUMENTS = 50_000
_CHARS = 600  # of a document: one or two chunks
_FOLDERS = 12
_FRAMES = 180
_NEIGHBOURS = 10
_SAMPLE = 1000  # documents whose neighbours are looked for
# Zooms or moves a little with every frame, so that each draws all points anew; returns the milliseconds between frames.
_FRAMES_OF = """([frames, isZooming]) => new Promise(resolve => {
    const canvas = document.getElementById("canvas");
    const box = canvas.getBoundingClientRect(), times = [];
    const middle = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    const options = { bubbles: true, cancelable: true };
    let last = 0;
    const step = now => {
        if (last) times.push(now - last);
        last = now;
        if (times.length === frames) { resolve(times); return; }
        const isBack = times.length % 60 < 30;
        canvas.dispatchEvent(isZooming
            ? new WheelEvent("wheel", { ...options, ...middle, deltaY: isBack ? -12 : 12 })
            : new KeyboardEvent("keydown", { ...options, shiftKey: true, key: isBack ? "ArrowLeft" : "ArrowRight" }));
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


def measure_layout(library: MapLibrary) -> tuple[float, float, float, float, float]:
    """Return the CPU and wall seconds of a map that is computed, the CPU seconds of one that was kept, and its quality.

    The quality is the share of the nearest documents by vector that are nearest on the map, there and by two axes.
    """
    paths = locate_library(library=library.library, environ=library.environ)
    for file in library.library.rglob("*-map-*.arrays"):
        file.unlink()
    times = []
    for _ in range(2):
        with open_library(paths, environ=library.environ) as opened:
            tools = opened.tools()
            start = time.process_time(), time.perf_counter()
            layout = opened.maps.build(tools).layout
            times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    axes = layout.reduced[:, :2].astype(np.float32)
    return *times[0], times[1][0], kept_neighbours(layout, layout.positions), kept_neighbours(layout, axes)


def kept_neighbours(layout: Layout, positions: npt.NDArray[np.float32]) -> float:
    """Return which share of the nearest documents by vector are the nearest by position."""
    vectors = layout.reduced.astype(np.float32)
    rows = np.random.default_rng(1).choice(len(vectors), min(_SAMPLE, len(vectors)), replace=False)
    shares = [len(nearest(vectors, row) & nearest(positions, row)) / _NEIGHBOURS for row in rows]
    return float(np.mean(shares))


def nearest(points: npt.NDArray[np.float32], row: int) -> set[int]:
    """Return the points that are nearest to another one."""
    distances = np.linalg.norm(points - points[row], axis=1)
    distances[row] = np.inf
    return set(np.argpartition(distances, _NEIGHBOURS)[:_NEIGHBOURS].tolist())


def measure_drawing(context: BrowserContext, address: str) -> tuple[float, float, list[float], list[float]]:
    """Return the seconds until the map is there, the megabytes of its points, and the milliseconds between frames."""
    page = context.new_page()
    sizes: list[int] = []
    page.on("response", lambda reply: sizes.append(len(reply.body())) if "/api/v1/map" in reply.url else None)
    start = time.perf_counter()
    page.goto(f"{address}/map")
    page.locator("#legend li").first.wait_for()
    page.locator("#stage:not([aria-busy])").wait_for()
    opened = time.perf_counter() - start
    zooming, moving = (sorted(page.evaluate(_FRAMES_OF, [_FRAMES, is_zooming])) for is_zooming in (True, False))
    page.close()
    return opened, sizes[0] / 1e6, zooming, moving


def measure(library: MapLibrary) -> Table:
    """Measure everything."""
    table = Table(("what", "measured"))
    size = f"{library.chunks:,} documents"
    computed, wall, kept, share, share_by_axes = measure_layout(library)
    table.rows += [
        (f"laying out {size}, s CPU", number(computed)),
        ("the same, s wall", number(wall)),
        ("reading the kept map, s CPU", number(kept)),
        ("of the ten nearest documents by vector, nearest on the map, %", number(100 * share)),
        ("the same by the first two principal axes, %", number(100 * share_by_axes)),
    ]
    with library.serve() as address, sync_playwright() as playwright, browse(playwright, address) as context:
        opened, megabytes, zooming, moving = measure_drawing(context, address)
        table.rows += [
            ("opening the page until all points are drawn, s", number(opened)),
            ("points as JSON, MB", number(megabytes)),
        ]
        for what, times in (("zooming", zooming), ("moving", moving)):
            table.rows += [
                (f"frames a second while {what}, median", number(1000 / times[len(times) // 2])),
                (f"a frame while {what}, p95, ms", number(times[len(times) * 95 // 100])),
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
