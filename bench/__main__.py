"""Run benchmarks and print their tables; without names run all and update docs/performance.md and bench/notes."""

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
from bench.documents import DOCS, NOTES, find_document, write_section
from bench.libraries import Libraries
from bench.table import Result

NAMES = (
    "lexical", "vector", "embedding", "importing", "splitting", "extraction", "crawling", "rescan", "looking",
    "updating", "changing", "answering", "starting", "mcp", "growth", "evaluating", "memos", "peers",
)  # fmt: skip
# Their environment has the clients of other engines.
APART = ("engines",)
WITH_SIZES = ("looking", "growth", "memos", "engines")
WITH_FOLDERS = ("importing", "splitting", "extraction")
PEERS = ("numpy", "tantivy", "bm25s", "chromadb", "fugashi")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(NAMES + APART)}")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="also import and split the Markdown files of DIR")
    parser.add_argument("--folder-name", default="your folder", metavar="TEXT", help="what the tables call DIR")
    parser.add_argument(
        "--judged", type=Path, action="append", default=[], metavar="DIR",
        help="also compare the engines on a judged set, the corpus.jsonl, queries.jsonl and qrels.tsv of DIR",
    )  # fmt: skip
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the generated libraries in DIR for the next run")
    parser.add_argument(
        "--write", action="store_true", help="write the tables of the named benchmarks into the documents"
    )
    parser.add_argument(
        "--large",
        action="store_true",
        help="also measure 100,000 files, 500,000 memos, 1,000,000 chunks, and engines with 250,000",
    )
    arguments = parser.parse_args()
    for unknown in set(arguments.names) - {*NAMES, *APART}:
        parser.error(f"there is no benchmark {unknown!r}; choose from {', '.join(NAMES + APART)}")
    writes = arguments.write or not arguments.names
    for folder in arguments.judged:
        if writes and not find_document(f"peers-{folder.resolve().name}"):
            parser.error(f"no note has a table for {folder.name}: name the benchmark, without --write, to print it")
    folders = [(arguments.folder_name, arguments.folder)] if arguments.folder else []
    start, load = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as work_dir:
        libraries = Libraries(arguments.work or Path(work_dir))
        results = {}
        for name in arguments.names or NAMES:
            module = import_module(f"bench.{name}")
            more = [folders] if name in WITH_FOLDERS else [arguments.large] if name in WITH_SIZES else []
            more += [arguments.judged] if name == "peers" else []
            results[name] = module.run(libraries, *more)
            print_result(name, results[name])
    if not arguments.names:
        write_documents(results, time.monotonic() - start, load)
    elif arguments.write:
        write_tables(results)


def print_result(name: str, result: Result) -> None:
    """Print the tables and checks of a benchmark."""
    print(f"\n{name}\n")
    for result_table in result.tables.values():
        print(table.markdown(result_table), end="\n\n")
    if result.checks:
        print(table.markdown(table.check_table(result.checks)), flush=True)


def write_documents(results: dict[str, Result], seconds: float, load: float) -> None:
    """Write all tables into the documents, and draw the plots."""
    write_section("machine", describe_machine(seconds, load))
    checks = [check for result in results.values() for check in result.checks]
    write_section("targets", table.markdown(table.check_table(checks)))
    write_tables(results)
    growth.plot(results["growth"].curves, DOCS / "performance.png")
    memos.plot(results["memos"].curves, NOTES / "memos.png")


def write_tables(results: dict[str, Result]) -> None:
    """Write the tables of some benchmarks into the documents; the targets are those of a whole run."""
    for result in results.values():
        for name, result_table in result.tables.items():
            write_section(name, table.markdown(result_table))


def describe_machine(seconds: float, load: float) -> str:
    """Return a sentence about the machine and the versions of the packages."""
    packages = ", ".join(f"{name} {version(name)}" for name in PEERS)
    return (
        f"Measured on {os.cpu_count()} cores ({platform.machine()}, {platform.system()}) with Python"
        f" {platform.python_version()}, {packages}; the whole run took {seconds / 60:.0f} minutes. Other work on"
        f" the machine when it began: a load average of {load:.1f}."
    )


if __name__ == "__main__":
    main()
