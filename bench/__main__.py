"""Names of benchmarks in, their tables out; without names all of them, into docs/performance.md and its plot."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from bench import growth, memos, table
from bench.libraries import Libraries
from bench.table import Result

DOCS = Path(__file__).resolve().parent.parent / "docs"
# In the order of the document.
NAMES = (
    "lexical", "vector", "embedding", "importing", "splitting", "extraction", "crawling", "rescan", "updating",
    "changing", "answering", "starting", "mcp", "growth", "evaluating", "memos",
)  # fmt: skip
WITH_FOLDERS = ("importing", "splitting", "extraction")
PEERS = ("numpy", "tantivy", "bm25s", "chromadb", "fugashi")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(NAMES)}")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="also import and split the Markdown files of DIR")
    parser.add_argument("--folder-name", default="your folder", metavar="TEXT", help="what the tables call DIR")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the generated libraries in DIR for the next run")
    asked = parser.parse_args()
    for unknown in set(asked.names) - set(NAMES):
        parser.error(f"there is no benchmark {unknown!r}; choose from {', '.join(NAMES)}")
    folders = [(asked.folder_name, asked.folder)] if asked.folder else []
    start, load = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        libraries = Libraries(asked.work or Path(place))
        results = {}
        for name in asked.names or NAMES:
            module = import_module(f"bench.{name}")
            results[name] = module.run(libraries, folders) if name in WITH_FOLDERS else module.run(libraries)
            show(name, results[name])
    if not asked.names:
        write(results, time.monotonic() - start, load)


def show(name: str, result: Result) -> None:
    """Print what a benchmark found."""
    print(f"\n{name}\n")
    for found in result.tables.values():
        print(table.markdown(found), end="\n\n")
    if result.checks:
        print(table.markdown(table.checks(result.checks)), flush=True)


def write(results: dict[str, Result], seconds: float, load: float) -> None:
    """Put all tables into the document, and draw the plot."""
    page = DOCS / "performance.md"
    text = page.read_text(encoding="utf-8")
    text = table.put(text, "machine", machine(seconds, load))
    checks = [check for result in results.values() for check in result.checks]
    text = table.put(text, "targets", table.markdown(table.checks(checks)))
    for result in results.values():
        for name, found in result.tables.items():
            text = table.put(text, name, table.markdown(found))
    page.write_text(text, encoding="utf-8")
    growth.plot(results["growth"].curves, DOCS / "performance.png")
    memos.plot(results["memos"].curves, DOCS / "memos.png")


def machine(seconds: float, load: float) -> str:
    """Return what the figures were measured with."""
    packages = ", ".join(f"{name} {version(name)}" for name in PEERS)
    return (
        f"Measured on {os.cpu_count()} cores ({platform.machine()}, {platform.system()}) with Python"
        f" {platform.python_version()}, {packages}; the whole run took {seconds / 60:.0f} minutes. Other work on"
        f" the machine when it began: a load average of {load:.1f}."
    )


if __name__ == "__main__":
    main()
