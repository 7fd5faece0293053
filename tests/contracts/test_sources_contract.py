"""What every source of files promises: what is there is told once, what did not change is not read again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bunko import sources
from bunko.ingest.pipeline import ChunkerSettings, ingest
from bunko.protocols import Source, Store
from bunko.stores import memory
from bunko.types import Report, Tool

LONG_AGO = 1_700_000_000 * 10**9


@dataclass(frozen=True)
class Kind:
    """How one kind writes three notes of different days, and where."""

    name: str
    file: str  # "" where each note is a file of its own
    write: Callable[[list[tuple[str, str]]], str] = lambda notes: ""


def _changelog(notes: list[tuple[str, str]]) -> str:
    return "\n".join(f"* {title} {2000 + number}-01-15\n  {text}\n" for number, (title, text) in enumerate(notes))


def _emacs(notes: list[tuple[str, str]]) -> str:
    return "\n".join(
        f"{2000 + number}-01-15  Ann  <a@b.c>\n\n\t* {title}: {text}\n" for number, (title, text) in enumerate(notes)
    )


def _jsonl(notes: list[tuple[str, str]]) -> str:
    return "\n".join(json.dumps({"title": title, "text": text}) for title, text in notes)


KINDS = {
    "folder": Kind("folder", ""),
    "memos, one file": Kind("memos", "memo.txt", _changelog),
    "memos, days": Kind("memos", "ChangeLog", _emacs),
    "memos, a folder": Kind("memos", ""),
    "jsonl": Kind("jsonl", "notes.jsonl", _jsonl),
}
NOTES = [("会議", "予算の話をした。"), ("Lunch", "We had soba."), ("旅", "京都の寺を訪ねた。")]


class Place:
    """A source of one kind over real files, and a store that follows it."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.root = folder / kind.file if kind.file else folder
        self.store: Store = memory.build()
        self.tool = self.store.tools.put(Tool("t", kind.name))
        self.clock = 0

    def put(self, notes: list[tuple[str, str]]) -> None:
        self.clock += 10 * 10**9
        if self.kind.file:
            self._write(self.root, self.kind.write(notes))
            return
        for old in self.folder.iterdir():
            if old.stem not in dict(notes):
                old.unlink()
        for title, text in notes:
            path = self.folder / f"{title}.md"
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(LONG_AGO + self.clock, LONG_AGO + self.clock))

    def source(self) -> Source:
        return sources.build(
            self.kind.name, self.root, extensions=[".md"], exclude_dirs=[], max_file_bytes=1_000_000
        )  # fmt: skip

    def bring_in(self, **how: object) -> Report:
        return ingest(self.store, self.tool, self.source(), ChunkerSettings("entry"), None, **how)  # type: ignore[arg-type]

    def counts(self) -> tuple[int, int, int, int]:
        report = self.bring_in()
        assert report.problems == []
        return report.added, report.updated, report.deleted, report.unchanged


@pytest.fixture(params=sorted(KINDS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made = Place(KINDS[request.param], tmp_path)
    made.put(NOTES)
    return made


def test_everything_is_added_once_and_then_unchanged(place: Place) -> None:
    assert place.counts() == (3, 0, 0, 0)
    assert place.counts() == (0, 0, 0, 3)
    assert place.source().scan(place.store.documents.fingerprints(place.tool.id)).touched == []


def test_one_note_that_was_changed_is_the_only_one_updated(place: Place) -> None:
    place.bring_in()
    before = place.store.generation()
    place.put([NOTES[0], ("Lunch", "We had ramen."), NOTES[2]])
    assert place.counts() == (0, 1, 0, 2)
    assert ["ramen" in chunk.text for chunk in place.store.changes.chunks_since(place.tool.id, before)] == [True]
    assert place.counts() == (0, 0, 0, 3)


def test_a_note_that_is_gone_is_deleted_and_a_new_one_added(place: Place) -> None:
    place.bring_in()
    place.put([*NOTES[:2], ("Walk", "Along the river.")])
    assert place.counts() == (1, 0, 1, 2)


def test_names_depend_on_the_notes_and_not_on_what_was_known(place: Place) -> None:
    place.bring_in()
    place.put([*NOTES, ("Walk", "Along the river.")])
    place.bring_in()
    anew = {entry.uri for entry in place.source().scan({}).added}
    assert anew == set(place.store.documents.fingerprints(place.tool.id))
    assert len(anew) == 4


def test_what_has_vanished_as_a_whole_is_lost_and_not_deleted(place: Place) -> None:
    place.bring_in()
    known = place.store.documents.fingerprints(place.tool.id)
    assert not place.source().has_vanished(known)
    for path in [place.root] if place.kind.file else list(place.folder.iterdir()):
        path.unlink()
    assert place.source().has_vanished(known)
    if place.kind.file:
        place.root.write_bytes(b"")
        assert place.source().has_vanished(known)
        assert place.source().scan(known).deleted == []


def test_an_import_that_was_stopped_goes_on_where_it_was(place: Place) -> None:
    place.put([(f"note {number}", f"words of note {number}") for number in range(150)])
    answers = iter([False, True])  # the first batch is stored, the second is not
    assert place.bring_in(stopped=lambda: next(answers)).interrupted
    stored = place.store.stats.totals(place.tool.id).documents
    assert 0 < stored < 150
    assert place.counts() == (150 - stored, 0, 0, stored)
    assert place.counts() == (0, 0, 0, 150)


def test_chunks_point_to_the_lines_of_their_file(place: Place) -> None:
    place.bring_in()
    for one in place.store.changes.chunks_since(place.tool.id, 0):
        found = place.store.documents.chunks([one.chunk_id])[one.chunk_id]
        path = place.root if place.kind.file else place.folder / found.uri
        cited = path.read_text(encoding="utf-8").split("\n")[found.chunk.first_line - 1 : found.chunk.last_line]
        assert json.dumps(found.chunk.text)[1:-1] in "\n".join(cited) or found.chunk.text in "\n".join(cited)
