"""A small library in two languages: folders of documents, and memos with dates and tags."""

from __future__ import annotations

import shutil
from pathlib import Path

from bunko.evaluation.report_store import ReportStore
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.browser.reports import evaluation_report, sweep_report

EXAMPLES = Path(__file__).parents[2] / "examples" / "library"
# A search must not look for changes in between: what a test sees is what was imported.
ENVIRON = {
    "BUNKO_SEARCH_FRESHNESS_SECONDS": "3600",
    "BUNKO_EMBEDDING_PROVIDER": "static",
    "BUNKO_CRAWL_ALLOWED_HOSTS": "127.0.0.1",  # the sites of tests
    "BUNKO_CRAWL_DELAY_SEC": "0",
}
TOOLS = {
    "handbook": ("folder", "How we work: on-call duty, setting up a machine, holidays."),
    "project": ("folder", "The forecast service: its design, its API and its stations."),
    "travel": ("folder", "旅先で書いた記録と計画。"),
    "memos": ("memos", "会議と出来事のメモ。"),
}


def build_library(folder: Path) -> Path:
    """Import the sample documents into a new library, and return its folder."""
    documents = folder / "documents"
    shutil.copytree(EXAMPLES, documents)
    with open_sample(folder / "library") as library:
        for name, (kind, description) in TOOLS.items():
            library.add(documents / name, name=name, description=description, kind=kind)
        library.import_(*TOOLS)
        for query in ("京都の宿", "conference trip"):
            library.store.cache.log_search(query, "travel", "2026-03-01", limit=100)
    reports = ReportStore(folder / "library")
    for report in (evaluation_report(), sweep_report()):
        reports.keep(report)
    return folder / "library"


def open_sample(folder: Path) -> Library:
    """Open a library as the server of these tests does."""
    return open_library(locate_library(library=folder, environ=ENVIRON), environ=ENVIRON)
