"""An import run does what its policy allows, whoever waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bunko import sources
from bunko.embedders import hashing
from bunko.errors import EmbedderError
from bunko.ingest import ImportRun
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.policy import ImportPolicy
from bunko.protocols import Store
from bunko.stores import memory
from bunko.types import Tool

if TYPE_CHECKING:
    from bunko.types import Vectors


class _Broken(hashing.Hashing):
    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        raise EmbedderError("out of order", hint="Try again later.")


def _new_run(docs: Path, policy: ImportPolicy) -> tuple[Store, ImportRun]:
    (docs / "one.md").write_text("# One\n\nA first text.\n", encoding="utf-8")
    store = memory.build()
    tool = store.tools.put(Tool("docs", "folder", source=str(docs)))
    source = sources.build("folder", docs, extensions=[".md"], exclude_dirs=[], max_file_bytes=1_000)
    return store, ImportRun(store, tool, source, ChunkerSettings(), _Broken(16), policy)


def test_an_import_whose_embedder_fails_goes_on_by_words_and_records_what_is_missing(docs: Path) -> None:
    store, run = _new_run(docs, ImportPolicy())
    report = run.run()
    assert (report.added, report.embedded) == (1, 0)
    assert [error.message for error in run.failures] == ["out of order"]
    (stored,) = store.tools.all()
    assert (stored.built.lacks_vectors, run.tool.built) == (True, stored.built)
    assert store.vectors.uris_without(stored.id, limit=2) == ["one.md"]


def test_an_import_that_needs_vectors_ends_where_its_embedder_fails(docs: Path) -> None:
    store, run = _new_run(docs, ImportPolicy(needs_vectors=True))
    with pytest.raises(EmbedderError, match="out of order"):
        run.run()
    (stored,) = store.tools.all()
    assert (stored.built.lacks_vectors, store.stats.totals(stored.id).documents) == (None, 0)
