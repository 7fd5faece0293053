"""Documents are found by all the names that people use for them, and lead back to their files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.errors import UnknownName
from bunko.library.library import Library
from bunko.search.reading import ReadRequest
from tests.conftest import Opener

FIXTURES = Path(__file__).parents[1] / "fixtures" / "documents"
GUIDE = "# 手引き\n\nはじめに読む。\n\n## 準備\n\n準備の一行目。\n準備の二行目。\n\n## Roll back: a release\n\n戻す。\n"


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    (docs / "guide").mkdir()
    (docs / "guide" / "手引き.md").write_text(GUIDE, encoding="utf-8")
    (docs / "notes.txt").write_text("\n".join(f"line {number}" for number in range(1, 101)), encoding="utf-8")
    (docs / "C#.md").write_text("# C#\n\n## 型\n\n値型と参照型。\n", encoding="utf-8")
    return open_docs()


def test_a_name_that_no_path_has_may_be_a_title_or_an_alias(docs: Path, library: Library) -> None:
    (docs / "garden.md").write_text(
        "---\naliases: [しおみ, The yard]\n---\n# 庭の手帳\n\n## 春\n\n種をまく。\n", encoding="utf-8"
    )
    library.reindex()
    for name in ("しおみ", "the yard", "庭の手帳", "[[しおみ]]"):
        assert library.documents.find(name).document.uri == "garden.md"
    assert library.documents.find("しおみ#春").citation == library.documents.find("[[しおみ#春]]").citation
    with pytest.raises(UnknownName):
        library.documents.find("しおみ.md")


@pytest.mark.parametrize(
    ("location", "first", "last"),
    [
        ("notes.txt:12", 12, 12),
        ("notes.txt:12-30", 12, 30),
        ("notes.txt:12:5", 12, 12),
        ("guide/手引き.md#準備", 5, 8),
        ("手引き#準備", 5, 8),
        ("guide/手引き.md#roll-back-a-release", 10, 12),
        ("C#.md", 1, 5),
        ("C#.md:3", 3, 3),
        ("C#.md#型", 3, 5),
        ("[[手引き#準備]]", 5, 8),
    ],
)
def test_a_line_or_a_heading_after_a_path_names_a_part(location: str, first: int, last: int, library: Library) -> None:
    reading = library.documents.read(ReadRequest(location))
    assert (reading.first_line, reading.last_line) == (first, last)


@pytest.mark.parametrize("suffix", ["", ":L3-L4", ":3", "#準備"])
def test_an_absolute_path_in_the_folder_of_a_tool_is_a_document(suffix: str, docs: Path, library: Library) -> None:
    document = library.documents.find(f"{docs / 'guide' / '手引き.md'}{suffix}")
    assert document.uri == "guide/手引き.md"
    assert (document.citation is None) == (not suffix)


def test_a_name_written_with_combining_characters_is_the_same(docs: Path, open_docs: Opener) -> None:
    (docs / "カ\u3099イト\u3099.md").write_text("# ガイド\n\n本文。\n", encoding="utf-8")  # as a Mac writes it
    assert open_docs().documents.find("ガイド.md").title == "ガイド"


@pytest.mark.parametrize("typed", ["guide/手引.md", "手引書.md", "guide/手引き.txt:L3", "note.txt"])
def test_an_unknown_document_suggests_near_paths(typed: str, library: Library) -> None:
    with pytest.raises(UnknownName, match="no document or passage") as caught:
        library.documents.find(typed)
    expected = "notes.txt" if "note" in typed else "guide/手引き.md"
    assert caught.value.hint.startswith("Did you mean ")
    assert expected in caught.value.hint


def test_nothing_is_suggested_for_a_name_like_no_other(library: Library) -> None:
    with pytest.raises(UnknownName) as caught:
        library.documents.find("qqqqqqqq")
    assert "Did you mean" not in caught.value.hint


def test_an_unknown_heading_names_the_headings_there_are(library: Library) -> None:
    with pytest.raises(UnknownName, match="no section '片付け'") as caught:
        library.documents.find("guide/手引き.md#片付け")
    assert "準備" in caught.value.hint


def test_a_document_leads_to_its_file_and_line(docs: Path, library: Library) -> None:
    found = library.documents.find("手引き.md:L7-L8")
    assert (found.file, found.line, found.is_text) == (docs / "guide" / "手引き.md", 7, True)
    assert library.documents.find("notes.txt").line == 0


def test_an_entry_of_a_file_leads_to_its_line_in_that_file(tmp_path: Path, open_docs: Opener, docs: Path) -> None:
    (docs / "a.md").write_text("# a\n\ntext\n", encoding="utf-8")
    memos = tmp_path / "memo.txt"
    memos.write_text(
        "* 買い物 2024-01-15 10:00:00 [memo]:\n牛乳を買う。\n\n* 散歩 2024-01-16 10:00:00 [memo]:\n川まで歩く。\n",
        encoding="utf-8",
    )
    (tmp_path / "days").mkdir()
    (tmp_path / "days" / "log.txt").write_bytes(memos.read_bytes())
    library = open_docs(BUNKO_STORAGE_KIND="memory")
    library.add(memos, name="memos", kind="memos")
    library.add(tmp_path / "days", name="days", kind="memos")
    library.import_()
    hit = library.search("川まで歩く", tool="memos").hits[0]
    found = library.documents.find(hit.uri, tool="memos")
    assert (found.file, found.line) == (memos, 4)
    assert library.documents.find(f"{hit.uri}:L5", tool="memos").line == 5
    for location in (f"{memos}:5", "memo.txt:L4-L5"):
        assert library.documents.find(location).uri == hit.uri
    with pytest.raises(UnknownName, match="several documents") as caught:
        library.documents.find(str(memos))
    assert hit.uri in caught.value.hint
    hit = library.search("川まで歩く", tool="days").hits[0]
    assert library.documents.find(hit.uri).file == tmp_path / "days" / "log.txt"
    memos.unlink()
    assert library.documents.find(found.uri, tool="memos").file == memos


def test_a_path_that_two_tools_have_names_the_other_tool(tmp_path: Path, docs: Path, open_docs: Opener) -> None:
    library = open_docs(BUNKO_STORAGE_KIND="memory")
    for folder in (docs, tmp_path / "second"):
        folder.mkdir(exist_ok=True)
        (folder / "README.md").write_text(f"# {folder.name}\n\ntext\n", encoding="utf-8")
    library.add(tmp_path / "second", name="second")
    library.import_()
    found = library.documents.find("README.md")
    assert (found.tool.name, found.other_tools) == ("documents", ("second",))
    assert library.documents.find("README.md", tool="second").other_tools == ()
    assert library.documents.find(str(tmp_path / "second" / "README.md")).tool.name == "second"


@pytest.mark.parametrize("uri", ["../secret.md", "/etc/passwd", "sub/../../secret.md"])
def test_a_document_outside_the_folder_of_its_tool_has_no_file(uri: str, docs: Path, library: Library) -> None:
    found = library.documents.find("notes.txt")
    assert replace(found, document=replace(found.document, uri=uri)).file is None


def test_a_line_of_a_converted_file_leads_to_its_place_and_not_to_a_line(docs: Path, open_docs: Opener) -> None:
    shutil.copy(FIXTURES / "deck.pptx", docs / "slides.pptx")
    library = open_docs()
    second = library.documents.read(ReadRequest("slides.pptx:slide2"))
    for location in ("slides.pptx:slide2", second.citation):
        found = library.documents.find(location)
        assert (found.place, found.line, found.is_text) == ("slide2", 0, False)
        assert found.file == docs / "slides.pptx"
