"""Build libraries of generated pages, of a given number of chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import corpus
from bench.clock import Cost, run_child
from bunko.indexes.embedded.view import EmbeddedView
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library

SMALL, MEDIUM, LARGE = 640, 10_000, 100_000
SIZES = (SMALL, 2_560, MEDIUM, 40_000, LARGE)
MILLION = 1_000_000
VECTORS = {"EMBEDDING_PROVIDER": "static"}
NO_VECTORS = {"EMBEDDING_PROVIDER": "none"}


class Libraries:
    """The libraries of one run, each built on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def docs(self, chunks: int) -> Path:
        """Return the folder of a library, after importing it."""
        docs = self.folder / str(chunks)
        if not (docs / ".rag-index" / "index").exists():
            docs.mkdir(parents=True, exist_ok=True)
            corpus.write(docs, chunks)
            cost = reindex(docs, VECTORS)
            self._cost_file(chunks).write_text(json.dumps({"cpu": cost.cpu, "wall": cost.wall}))
        return docs

    def import_seconds(self, chunks: int) -> float:
        """Return the CPU seconds that the import of a library took."""
        self.docs(chunks)
        return float(json.loads(self._cost_file(chunks).read_text())["cpu"])

    def _cost_file(self, chunks: int) -> Path:
        return self.folder / f"{chunks}.json"

    @contextmanager
    def open(self, chunks: int) -> Iterator[tuple[Library, EmbeddedView]]:
        """Open a library and take a view of its index."""
        with open_docs(self.docs(chunks)) as library:
            with library.store.read_transaction():
                view = library.index_view([tool.id for tool in library.tools()])
            assert isinstance(view, EmbeddedView)
            yield library, view


def open_docs(docs: Path, environ: dict[str, str] = VECTORS) -> Library:
    """Open the library of a folder."""
    return open_library(locate_library(docs_dir=docs, environ=environ), environ=environ)


def reindex(docs: Path, environ: dict[str, str], *more: str) -> Cost:
    """Import a folder with the command line, in a separate process."""
    return run_child(["-m", "bunko", "reindex", "--docs-dir", str(docs), *more], **environ)
