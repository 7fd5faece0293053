"""What every source of files promises: what is there is told once, what did not change is not read again."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bunko import chunkers, sources
from bunko.errors import UnknownName
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.policy import ImportPolicy
from bunko.ingest.run import ImportRun
from bunko.protocols import Source, Store, VisibleSource
from bunko.runtime.observer import NO_OBSERVER, Observer
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
LINES_MODULE = '''\
"""Read each line of a file as an entry."""

from bunko.readers.line_stream import read_lines
from bunko.readers.memo import Memo
from bunko.sources.entries import EntryFiles, ParsedFile
from bunko.sources.kind import SourceKind


def parse(file, name, size, max_chars):
    read = read_lines(file, size, max_chars)
    lines = enumerate(read.lines, 1)
    return ParsedFile(read.codec, (Memo(number, number, "", "", (), line) for number, line in lines if line))


def build_source(spec):
    return EntryFiles(spec.root, spec.entry_folder([".lines"]), parse, spec.max_file_bytes)


KIND = SourceKind(build_source, section="memos", chunker="entry", noun=("line", "lines"), label="lines")
'''
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

    def bring_in(self, *, observer: Observer = NO_OBSERVER) -> Report:
        policy = ImportPolicy(observer)
        return ImportRun(self.store, self.tool, self.source(), ChunkerSettings("entry"), None, policy).run()

    def counts(self) -> tuple[int, int, int, int]:
        report = self.bring_in()
        assert report.problems == []
        return report.added, report.updated, report.deleted, report.unchanged


def test_every_kind_of_files_is_tested_here() -> None:
    with_files = {name for name, kind in sources.all_kinds().items() if not kind.needs_pages}
    assert {kind.name for kind in KINDS.values()} == with_files


def test_every_module_declares_a_kind_or_is_a_helper() -> None:
    modules = {module.name for module in pkgutil.iter_modules(sources.__path__)}
    assert modules == {*sources.builtin_kind_names(), *sources.HELPER_MODULES}
    assert all(sources.find_kind(name) for name in sources.builtin_kind_names())


@pytest.mark.parametrize("name", sources.builtin_kind_names())
def test_a_kind_declares_what_the_other_parts_know(name: str) -> None:
    kind = sources.find_kind(name)
    assert kind is not None
    assert kind.label
    assert kind.section in ("", "memos", "web")
    assert kind.chunker in ("", *chunkers.KINDS)
    assert kind.is_watchable <= (kind.root != "none")
    assert kind.uses_extensions <= (kind.root != "none")
    assert kind.import_command.startswith("bunko ")


def test_a_kind_that_needs_pages_or_does_not_exist_is_refused_without_them(tmp_path: Path) -> None:
    for name in ("web", "elsewhere"):
        with pytest.raises(UnknownName, match=name) as caught:
            sources.build(name, tmp_path, extensions=(), exclude_dirs=(), max_file_bytes=1)
        assert ", ".join(sources.builtin_kind_names()) in caught.value.hint


@pytest.mark.slow
def test_naming_the_kinds_imports_none_of_them() -> None:
    code = (
        "import sys; from bunko import sources; names = sources.builtin_kind_names()\n"
        "print([name for name in (*names, 'entries') if f'bunko.sources.{name}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_an_installed_package_adds_a_kind_that_is_imported_and_searched(tmp_path: Path) -> None:
    packages, notes = tmp_path / "packages", tmp_path / "notes.lines"
    metadata = packages / "bunko_lines-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bunko-lines\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[bunko.sources]\nlines = bunko_lines\n")
    (packages / "bunko_lines.py").write_text(LINES_MODULE, encoding="utf-8")
    notes.write_text("Dogs bark at night.\nCats sleep all day.\n", encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), *sys.path])}
        command = [sys.executable, "-m", "bunko", *arguments, "--library", str(tmp_path / "library")]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    added = run("tool", "add", "-n", "lines", "-d", "Lines of text", "-s", str(notes), "--kind", "lines")
    assert "2 lines to import" in added.stdout + added.stderr
    assert run("import", "-n", "lines").returncode == 0
    found = json.loads(run("search", "dogs", "-n", "lines", "--json").stdout)["results"]
    assert [result["content"] for result in found][:1] == ["Dogs bark at night."]
    refused = run("tool", "add", "-n", "x", "-d", "x", "-s", str(notes), "--kind", "elsewhere")
    assert "'elsewhere' is not one of" in refused.stderr
    assert "'lines'" in refused.stderr


@pytest.fixture(params=sorted(KINDS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made = Place(KINDS[request.param], tmp_path)
    made.put(NOTES)
    return made


def test_everything_is_added_once_and_then_unchanged(place: Place) -> None:
    assert place.counts() == (3, 0, 0, 0)
    assert place.counts() == (0, 0, 0, 3)
    assert place.source().scan(place.store.documents.fingerprints(place.tool.id)).touched == []


def test_the_state_that_a_source_shows_is_another_after_each_change(place: Place) -> None:
    def state() -> str:
        source = place.source()
        assert isinstance(source, VisibleSource)
        return source.look().state

    before = state()
    assert state() == before != ""
    place.put([NOTES[0], ("Lunch", "We had rice."), NOTES[2]])
    changed = state()
    place.put(NOTES[:2])
    assert len({before, changed, state()}) == 3


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
    assert place.bring_in(observer=Observer(is_cancelled=lambda: next(answers))).interrupted
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
