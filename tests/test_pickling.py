"""Workers send documents and entries by their fields."""

from __future__ import annotations

import copy
import pickle

import pytest

from bunko.ingest.prepare import EntryResult
from bunko.types import Chunk, Document, ExcerptEntry, LineSpan, SourceEntry, Text
from bunko.types.records import PreparedDocument

ENTRY = SourceEntry("a.md", 3, 4, 5, lines=LineSpan(6, 7))
TEXT = Text("本文", "text/markdown", "utf-8", "題", "2024-01-15", ("x",), 1, "上", ("別名",))
CHUNK = Chunk(0, 0, 2, 1, 1, "本文", "題", ("題",))
DOCUMENT = PreparedDocument(Document(ENTRY, TEXT, "0f" * 32), [CHUNK], b"terms", [b"key"])


@pytest.mark.parametrize(
    "instance",
    [
        ENTRY,
        ExcerptEntry("a.md#1", 3, 4, 5, "0f" * 32, TEXT, "problem", 2, lines=LineSpan(1, 2)),
        DOCUMENT,
        EntryResult(ENTRY, 12, DOCUMENT, step_seconds={"read": 0.5}),
    ],
)
def test_what_a_worker_returns_arrives_whole(instance: object) -> None:
    for received in (pickle.loads(pickle.dumps(instance)), copy.deepcopy(instance)):
        assert received == instance
        assert type(received) is type(instance)
