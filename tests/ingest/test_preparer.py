"""Preparing documents in this process and in worker processes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bunko.embedders.subword_table import Static
from bunko.errors import EmbedderError
from bunko.ingest import preparer as preparer_module
from bunko.ingest.prepare import EntryResult, pack_chunk_terms, prepare_entries
from bunko.ingest.preparer import LocalPreparer
from bunko.runtime.observer import ImportProgress, Observer
from bunko.text import analyzer, term_codec
from bunko.types import Chunk
from tests.ingest.stores import dump_library
from tests.ingest.test_cluster import CHUNKER, folder_source, import_folder, write_notes


class RecordingPreparer(LocalPreparer):
    """A preparer that knows whether its work has ended."""

    has_ended = False

    def prepare(self, *arguments: Any) -> Generator[list[EntryResult], None, None]:
        try:
            yield from super().prepare(*arguments)
        finally:
            self.has_ended = True


def test_preparing_ends_with_an_import_that_fails(docs: Path, tmp_path: Path) -> None:
    write_notes(docs, 250)
    preparer = RecordingPreparer()

    def fail_after_a_batch(progress: ImportProgress) -> None:
        if progress.files:
            raise OSError("the terminal is gone")

    # The error holds the frames of the import, and with them what it had begun.
    with pytest.raises(OSError, match="the terminal is gone") as caught:
        import_folder(
            docs, tmp_path / "data", preparer, embedder="none", observer=Observer(on_progress=fail_after_a_batch)
        )
    assert caught.tb is not None
    assert preparer.has_ended


def test_words_of_titles_and_headings_count_twice() -> None:
    chunk = Chunk(0, 0, 15, 1, 3, "## zebra\n\nkoala", "## zebra", ("zebra",))
    keys, counts = term_codec.unpack_chunk_terms(pack_chunk_terms("walrus", [chunk]), 0)
    count_of = dict(zip(keys.tolist(), counts.tolist(), strict=True))
    words = ("walrus", "zebra", "koala")
    assert [count_of[analyzer.term_keys(word)[0]] for word in words] == [2, 2, 1]


@pytest.mark.slow
def test_workers_embed_what_they_prepare(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_notes(docs)
    report = import_folder(docs, tmp_path / "alone", LocalPreparer(1))
    monkeypatch.setattr(preparer_module, "MIN_BYTES_FOR_WORKERS", 0)
    monkeypatch.setattr(Static, "embed_sentences", lambda *_: pytest.fail("the importing process embedded a text"))
    # Workers that are no copies of this process have the method itself.
    monkeypatch.setattr("bunko.runtime.workers.threading.active_count", lambda: 2)
    assert import_folder(docs, tmp_path / "workers", LocalPreparer(2)) == report
    library = dump_library(tmp_path / "workers")
    assert library == dump_library(tmp_path / "alone")
    assert len(library["vectors"]) > 30


def test_documents_whose_texts_cannot_be_embedded_in_a_worker_come_without_vectors(docs: Path) -> None:
    class Failing(Static):
        def embed_sentences(self, texts: Sequence[str]) -> NoReturn:
            raise EmbedderError("The package sentencepiece cannot be loaded")

    write_notes(docs, 3)
    source = folder_source(docs)
    entries = source.scan({}).added
    [with_vectors, *_] = prepare_entries(source, CHUNKER, entries, lambda: 0, embedder=Static())
    [without, *_] = prepare_entries(source, CHUNKER, entries, lambda: 0, embedder=Failing())
    assert with_vectors.document is not None
    assert replace(with_vectors.document, vector_keys=[]) == without.document
    assert (len(with_vectors.embedded), without.embedded) == (1, {})
