"""What `bunko status` tells about a library and one of its tools: in a pipe, as JSON, on a terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.interfaces.cli.main import EXIT_CODES
from bunko.interfaces.cli.terminal.status_text import index_state_text
from bunko.library.admin.status import LengthBin, length_distribution
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.types.records import IndexState
from bunko.types.tool_options import ToolOptions
from tests.cli.processes import at_a_terminal, subprocess_environment
from tests.conftest import Run

TOOL = {
    "name", "kind", "active", "source", "source_state", "documents", "chunks", "vectors", "characters", "bytes",
    "import_state", "last_import", "rebuild_documents", "built", "index", "problems",
}  # fmt: skip
DETAILS = TOOL | {
    "description", "created_at", "options", "embedding", "room", "freshness", "chunk_lengths", "page", "page_size",
    "pages", "document_list",
}  # fmt: skip
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "library"


@pytest.fixture
def library(docs: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library with a tool `notes` over two documents, imported, and a tool `later` that is not."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (docs / "寺.md").write_text(
        "---\ntitle: 京都の寺\n---\n# 京都\n\n" + "秋の京都で寺の庭を巡る。" * 20, encoding="utf-8"
    )
    (docs / "server.md").write_text("# The server\n\nThe server keeps the index and answers.\n", encoding="utf-8")
    (docs / "blank.md").write_text(" \n\n", encoding="utf-8")
    with open_library(paths_for_folder(place), environ={}) as opened:
        opened.tools.add("notes", "旅行と開発のメモ", docs, options=ToolOptions(exclude=("*.txt",)))
        opened.tools.add("later", "Not yet", docs)
        opened.reindex(tool="notes")
        yield opened


def run(place: Path, *arguments: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bunko", "status", "--library", str(place), *map(str, arguments)],
        capture_output=True, text=True, encoding="utf-8", env=subprocess_environment(place.parent),
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line)


def test_a_library_tells_of_each_tool_what_it_holds_and_what_room_it_takes(library: Library, place: Path) -> None:
    later, notes = library.status().tools
    assert (notes.totals.documents, notes.totals.vectors) == (2, notes.totals.chunks)
    assert notes.storage.text == sum(
        len(document.text.encode())
        for uri in ("寺.md", "server.md")
        if (document := library.store.documents.get(notes.tool.id, uri))
    )
    assert notes.storage.vectors == notes.totals.vectors * notes.storage.dimension * 4
    derived = sum(path.stat().st_size for path in (place / "index").iterdir())
    assert notes.derived_bytes == derived > 0
    assert notes.bytes == notes.storage.text + notes.storage.index + notes.storage.vectors + derived
    assert (notes.import_state, later.import_state) == ("done", "never")
    assert (later.totals.documents, later.bytes) == (0, 0)


@pytest.mark.slow
def test_a_source_that_vanished_is_told_and_its_index_stays(library: Library, docs: Path, place: Path) -> None:
    moved = docs.rename(docs.with_name("away"))
    assert [one.source_state for one in library.status().tools] == ["missing", "missing"]
    found = library.tool_status("notes")
    assert (found.status.source_state, found.changes, len(found.documents)) == ("missing", None, 2)
    assert "the source is missing; the index is kept" in run(place)
    docs.mkdir()
    # Nothing is known of the other tool: to it, an empty folder is a folder.
    assert [one.source_state for one in library.status().tools] == ["ok", "empty"]
    docs.rmdir()
    moved.rename(docs)
    assert [one.source_state for one in library.status().tools] == ["ok", "ok"]


def test_a_tool_tells_what_changed_in_its_source_and_imports_nothing(library: Library, docs: Path) -> None:
    generation = library.store.generation()
    changes = library.tool_status("notes").changes
    assert changes is not None
    assert (changes.new, changes.changed, changes.gone, changes.moved) == (0, 0, 0, 0)
    (docs / "new.md").write_text("# 奈良\n\n奈良の鹿。", encoding="utf-8")
    (docs / "ignored.txt").write_text("This is excluded.", encoding="utf-8")
    (docs / "server.md").rename(docs / "machine.md")
    (docs / "寺.md").write_text("# 京都\n\n京都の新しい寺。", encoding="utf-8")
    (docs / "blank.md").unlink()  # it was no document, so none is gone
    (docs / "empty.md").touch()
    found = library.tool_status("notes")
    assert found.changes is not None
    assert (found.changes.new, found.changes.changed, found.changes.gone, found.changes.moved) == (1, 1, 0, 1)
    assert "empty.md" in {problem.uri for problem in found.status.problems}
    (docs / "machine.md").unlink()
    changes = library.tool_status("notes").changes
    assert changes is not None
    assert (changes.new, changes.changed, changes.gone, changes.moved) == (1, 1, 1, 0)
    assert library.store.generation() == generation


def test_documents_are_listed_in_pages_with_their_language(library: Library) -> None:
    first = library.tool_status("notes", page_size=1)
    second = library.tool_status("notes", page=2, page_size=1)
    beyond = library.tool_status("notes", page=3, page_size=1)
    assert (first.pages, second.pages) == (2, 2)
    assert [(one.uri, one.title, one.language) for one in first.documents] == [("server.md", "The server", "en")]
    assert [(one.uri, one.title, one.language) for one in second.documents] == [("寺.md", "京都の寺", "ja")]
    assert (beyond.documents, beyond.page) == ([], 3)
    assert sum(one.chunks for one in (*first.documents, *second.documents)) == first.status.totals.chunks


@pytest.mark.slow
def test_json_has_the_same_names_for_every_tool(library: Library, place: Path) -> None:
    whole = json.loads(run(place, "--json"))
    assert whole.keys() == {
        "library",
        "generation",
        "bytes",
        "derived_bytes",
        "unused_vectors",
        "index",
        "tools",
        "embedders",
    }
    assert [one.keys() for one in whole["tools"]] == [TOOL, TOOL]
    notes: dict[str, Any] = json.loads(run(place, "-n", "notes", "--json"))
    later = json.loads(run(place, "-n", "later", "--json"))
    assert notes.keys() == later.keys() == DETAILS
    assert notes["options"] == {"exclude": ["*.txt"]}
    assert notes["embedding"] == {"model": notes["built"]["embedder"], "dimension": 256}
    assert notes["freshness"]["new"] == 0
    assert later["freshness"]["new"] == 3
    assert later["chunk_lengths"] is None
    assert sum(one["chunks"] for one in notes["chunk_lengths"]["bins"]) == notes["chunks"]
    assert notes["document_list"][1].keys() == {"file_path", "title", "chunks", "characters", "language"}
    assert [one["file_path"] for one in notes["problems"]] == ["blank.md"]


@pytest.mark.slow
def test_a_pipe_gets_plain_lines(library: Library, place: Path) -> None:
    first, later, notes, *_ = run(place).splitlines()
    assert first.startswith(f"library: {place / 'library.db'} (")
    assert re.match(r"later: active, 0 documents, 0 chunks, 0 vectors, 0 B, last import never, from ", later)
    assert re.match(r"notes: active, 2 documents, \d+ chunks, \d+ vectors, [\d.]+ kB, last import 20", notes)
    details = run(place, "-n", "notes", "--page-size", "1")
    assert "exclude: *.txt\n" in details
    assert re.search(r"^chunk lengths: min \d+, median \d+, p90 \d+, max \d+, mean [\d.]+ characters$", details, re.M)
    assert "changes: 0 new, 0 changed, 0 deleted, 0 moved\n" in details
    assert "problem: blank.md: contains no text" in details
    assert "page 1 of 2, 2 documents; --page 2 shows the next" in details
    assert re.search(r"^server\.md\tThe server\t1\t\d+\ten$", details, re.M)
    assert "寺.md" not in details
    assert "\x1b" not in details


@pytest.mark.slow
def test_a_terminal_gets_bars_and_tables_whose_columns_stand_in_line(library: Library, place: Path) -> None:
    terminal = subprocess_environment(place.parent, TERM="xterm-256color", COLUMNS="100")
    shown = _STYLE.sub("", at_a_terminal("status", "-n", "notes", "--library", place, env=terminal))
    bars = re.findall(r"^ *[\d,]+–[\d,]+ ([█▏▎▍▌▋▊▉]*) * \d+\s*$", shown, re.M)
    assert len(bars) >= 2
    assert "█" * 40 in bars
    lines = shown.splitlines()
    header = next(line for line in lines if line.startswith("document "))
    rows = [line for line in lines if line.rstrip().endswith((" ja", " en"))]
    assert [row.split()[0] for row in rows] == ["server.md", "寺.md"]
    assert {width(row[: row.rindex("ja" if "京都" in row else "en")]) for row in rows} == {header.index("language")}


@pytest.mark.slow
def test_an_unknown_tool_and_a_page_without_a_tool_are_errors(library: Library, place: Path) -> None:
    said = run(place, "-n", "nothing", code=EXIT_CODES["unknown"])
    assert "There is no tool called 'nothing'" in said
    assert "later, notes" in said
    assert "--page and --page-size require --name" in run(place, "--page", "2", code=2)
    assert "--page" in run(place, "-n", "notes", "--page", "0", code=2)


@pytest.mark.slow
def test_a_document_cannot_steer_the_terminal_on_which_it_is_listed(library: Library, docs: Path, place: Path) -> None:
    (docs / "na\x1b[2Jme.md").write_text("# 京都 \x1b]0;owned\x07\n\n京都の寺の庭。", encoding="utf-8")
    library.reindex(tool="notes")
    for term in ("xterm-256color", "dumb"):
        terminal = subprocess_environment(place.parent, TERM=term, COLUMNS="100")
        written = at_a_terminal("status", "-n", "notes", "--library", place, env=terminal)
        assert "\x1b[2J" not in written
        assert "\x1b]0;" not in written


def test_bins_have_round_borders_and_hold_every_length() -> None:
    found = length_distribution([(3, 1), (98, 4), (250, 4), (1000, 1)])
    assert found is not None
    assert (found.chunks, found.minimum, found.median, found.p90, found.maximum) == (10, 3, 98, 250, 1000)
    assert found.mean == 239.5
    assert found.bins[0] == LengthBin(0, 99, 5)
    assert found.bins[2] == LengthBin(200, 299, 4)
    assert found.bins[-1] == LengthBin(1000, 1099, 1)
    assert length_distribution([]) is None


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_a_spread_says_of_any_lengths_what_sorting_them_says(lengths: list[int]) -> None:
    ordered = sorted(lengths)
    found = length_distribution([(length, ordered.count(length)) for length in sorted(set(lengths))])
    assert found is not None
    assert (found.minimum, found.maximum) == (ordered[0], ordered[-1])
    assert found.median == ordered[(len(ordered) + 1) // 2 - 1]
    assert found.p90 == ordered[-(-len(ordered) * 9 // 10) - 1]
    assert len(found.bins) <= 12
    assert [one.count for one in found.bins] == [
        sum(b.low <= length <= b.high for length in lengths) for b in found.bins
    ]
    assert sum(one.count for one in found.bins) == len(lengths)


@pytest.mark.slow
def test_a_page_that_is_not_there_says_how_many_there_are(library: Library, place: Path) -> None:
    told = run(place, "-n", "notes", "--page", "99")
    assert "page 99 does not exist: 2 documents on 1 page; --page 1 shows the first" in told
    assert "page 99 of" not in told


def test_many_files_without_text_are_one_line(run: Run, docs: Path) -> None:
    for number in range(118):
        (docs / f"{number}.md").write_text("---\ntitle: empty\n---\n", encoding="utf-8")
    for number in range(12):
        (docs / f"binary{number}.md").write_bytes(bytes(range(256)))
    (docs / "full.md").write_text("# Kyoto\n\nThe temple garden in autumn.\n", encoding="utf-8")
    assert run("reindex", "--docs-dir", docs).code == 0
    lines = run("status", "--docs-dir", docs).out.splitlines()
    assert sum("problem: binary" in line for line in lines) == 10
    assert "  … and 2 more; use --json to list all." in lines
    [left_out] = [line for line in lines if "without text" in line]
    assert left_out.startswith("  118 files without text left out; to list them: bunko status -n documents --docs-dir ")
    assert not any("contains no text" in line for line in lines)
    details = run("status", "-n", "documents", "--docs-dir", docs).out.splitlines()
    assert sum(line.startswith("problem: ") for line in details) == 10
    assert "… and 120 more; use --json to list all." in details
    listed = json.loads(run("status", "-n", "documents", "--docs-dir", docs, "--json").out)["problems"]
    assert sum(problem["reason"] == "contains no text" for problem in listed) == 118


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (IndexState(7, 0, 1500), "up to date, 1,500 chunks"),
        (IndexState(7, 3, 1500), "3 documents behind, at generation 7, 1,500 chunks. Update it with: bunko index sync"),
        (IndexState(0, 1000, 0), "1,000 documents behind, at generation 0, 0 chunks. Update it with: bunko index sync"),
        (IndexState(0, 400, 900), "400 documents missing, 900 chunks copied. Go on with: bunko index sync"),
    ],
)
def test_the_state_of_an_index_says_how_far_it_has_come(state: IndexState, text: str) -> None:
    assert index_state_text(state) == text
