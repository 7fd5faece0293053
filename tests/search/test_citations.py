"""A citation checked later: whether the passage still stands, and where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bunko.errors import QueryError
from bunko.library.library import Library
from bunko.search.citations import CitationCheck
from bunko.search.passages import Passage, extract_passages
from tests.conftest import Opener

TEXT = """# 旅の記録

京都の寺を巡る旅に出た。この文は引用されるために書かれた。

# 料理の記録

玉葱を炒めてから水を加える。この文は引用されないままでいる。
"""


def write(docs: Path, name: str, text: str) -> None:
    (docs / name).write_text(text, encoding="utf-8")
    os.utime(docs / name, (1_700_000_000 + len(text), 1_700_000_000 + len(text)))


def cited(library: Library, query: str = "京都") -> Passage:
    return extract_passages(library.search(query, top_k=1).hits, library.document_of, "chunk")[0]


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    write(docs, "notes.md", TEXT)
    return open_docs(BUNKO_CHUNKER_MIN_CHUNK_CHARS="1")


def test_a_passage_nobody_touched_is_the_same(library: Library) -> None:
    passage = cited(library)
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("same", passage.citation)


def test_a_change_elsewhere_in_the_file_leaves_it_the_same(library: Library, docs: Path) -> None:
    passage = cited(library)
    write(docs, "notes.md", TEXT.replace("玉葱", "人参"))
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("same", passage.citation)


def test_line_ends_and_trailing_blanks_are_no_change(library: Library, docs: Path) -> None:
    passage = cited(library)
    (docs / "notes.md").write_bytes(TEXT.replace("。\n", "。  \n").replace("\n", "\r\n").encode())
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("same", passage.citation)


def test_lines_put_before_it_move_it_within_its_file(library: Library, docs: Path) -> None:
    passage = cited(library)
    assert passage.citation == "notes.md:L1-L3"
    write(docs, "notes.md", "前書き。\n\n" + TEXT)
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("moved", "notes.md:L3-L5")


def test_a_citation_with_wrong_lines_is_led_to_the_right_ones(library: Library) -> None:
    passage = cited(library)
    assert library.verify_citation("notes.md:L5-L7", passage.hash) == CitationCheck("moved", passage.citation)


def test_a_renamed_file_moves_it_to_another_one(library: Library, docs: Path) -> None:
    passage = cited(library)
    (docs / "notes.md").rename(docs / "旅 と 料理.md")
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("moved", "旅 と 料理.md:L1-L3")


def test_a_renamed_file_is_found_though_another_took_its_name(library: Library, docs: Path) -> None:
    passage = cited(library)
    (docs / "notes.md").rename(docs / "old.md")
    write(docs, "notes.md", "# 新しい記録\n\nここには別のことが書いてある。\n")
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("moved", "old.md:L1-L3")


def test_an_edit_changes_it(library: Library, docs: Path) -> None:
    passage = cited(library)
    write(docs, "notes.md", TEXT.replace("巡る旅", "巡る長い旅"))
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("changed", passage.citation)


def test_it_is_changed_too_where_the_file_became_shorter_than_the_citation(library: Library, docs: Path) -> None:
    passage = cited(library, "玉葱")
    write(docs, "notes.md", "短い。\n")
    assert library.verify_citation(passage.citation, passage.hash).status == "changed"


def test_a_file_that_is_gone_deletes_it(library: Library, docs: Path) -> None:
    passage = cited(library)
    write(docs, "other.md", "# 別\n\n残った文書がここにある。\n")
    (docs / "notes.md").unlink()
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("deleted", passage.citation)


def test_a_name_that_looks_like_a_citation_is_still_a_name(docs: Path, library: Library) -> None:
    write(docs, "a:L1-L2.md", "# 神戸\n\n神戸の港を歩いた日のことを書いておく。\n")
    passage = cited(library, "神戸")
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("same", "a:L1-L2.md:L1-L3")


@pytest.mark.parametrize(
    "garbage",
    ["", "notes.md", "notes.md:1-3", "notes.md:L", ":L1", "notes.md:L0", "notes.md:L3-L1", "notes.md:L1-L2-L3x"],
)
def test_what_is_no_citation_is_refused_with_its_form(library: Library, garbage: str) -> None:
    with pytest.raises(QueryError, match="is not a citation") as caught:
        library.verify_citation(garbage, cited(library).hash)
    assert "path:L12-L30" in caught.value.hint


@pytest.mark.parametrize("garbage", ["", "abc", "0" * 25, "g" * 12 + "." + "0" * 12, "x" * 90_000])
def test_what_is_no_hash_is_refused_with_where_to_get_one(library: Library, garbage: str) -> None:
    with pytest.raises(QueryError, match="hash") as caught:
        library.verify_citation("notes.md:L1-L3", garbage)
    assert "`hash`" in caught.value.hint
    assert len(str(caught.value)) < 300


@pytest.mark.slow
def test_a_long_file_is_searched_for_moved_lines_in_good_time(library: Library, docs: Path) -> None:
    passage = cited(library)
    many = "".join(f"行 {number} には特に何も書かれていない。\n" for number in range(20_000))
    write(docs, "notes.md", many + TEXT)
    assert library.verify_citation(passage.citation, passage.hash) == CitationCheck("moved", "notes.md:L20001-L20003")
