"""Preparing documents in this process and in worker processes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bunko.ingest.prepare import EntryResult, pack_chunk_terms
from bunko.ingest.preparer import LocalPreparer
from bunko.runtime.observer import ImportProgress, Observer
from bunko.text import analyzer, term_codec
from bunko.types import Chunk
from tests.ingest.test_cluster import import_folder, write_notes


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
