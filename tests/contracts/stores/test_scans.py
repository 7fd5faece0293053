"""What every store remembers about the scans of sources."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bunko.protocols import Store
from bunko.types import SourceEntry, Tool
from bunko.types.records import FailedDocument, ScanRecord
from tests.contracts.documents import prepared

WRITES: dict[str, Callable[[Store, Tool], object]] = {
    "a document": lambda store, tool: store.documents.write(tool.id, upsert=[prepared("b.md", "x")]),
    "a failure": lambda store, tool: store.documents.write(
        tool.id, fail=[FailedDocument(SourceEntry("c.md", 1, 5, 9), "hash", "is damaged")]
    ),
    "a removal": lambda store, tool: store.documents.write(tool.id, remove=["a.md"]),
    "a time": lambda store, tool: store.documents.write(tool.id, touch=[SourceEntry("a.md", 1, 5, 9)]),
    "a rebuild": lambda store, tool: store.tools.swap(tool, store.tools.put(Tool("~docs"))),
}


def recorded(store: Store) -> Tool:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺")])
    version = store.scans.get(tool.id).version
    assert store.scans.get(tool.id) == ScanRecord(version)
    assert store.scans.put(tool.id, ScanRecord(version, "0123 folder", 7))
    assert store.scans.get(tool.id) == ScanRecord(version, "0123 folder", 7)
    return tool


@pytest.mark.parametrize("write", WRITES)
def test_a_scan_is_forgotten_when_anything_is_written_that_it_was_compared_with(store: Store, write: str) -> None:
    tool = recorded(store)
    version = store.scans.get(tool.id).version
    WRITES[write](store, tool)
    assert store.scans.get(tool.id).state == ""
    assert store.scans.get(tool.id).version > version


def test_a_scan_that_ends_after_somebody_has_written_is_not_remembered(store: Store) -> None:
    tool = recorded(store)
    before = store.scans.get(tool.id)
    store.documents.write(tool.id, touch=[SourceEntry("a.md", 1, 5, 9)])
    store.scans.put(tool.id, before)
    assert store.scans.get(tool.id).state == ""


def test_what_is_written_to_another_tool_changes_nothing(store: Store) -> None:
    tool, other = recorded(store), store.tools.put(Tool("other"))
    store.documents.write(other.id, upsert=[prepared("a.md", "大阪の城")])
    assert store.scans.get(tool.id).state == "0123 folder"
    assert store.scans.get(other.id).state == ""
