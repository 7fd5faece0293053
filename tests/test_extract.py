"""How much of a document comes back for its hits: the chunk, its section, or all of it."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import pytest

from bunko.extract import EXTRACTS, Passage, passages
from bunko.library import Library
from bunko.types import Hit
from tests.conftest import Opener

FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 3
GUIDE = f"""---
title: 手引き
---
# 手引き

前書きの文。{FILLER}

## 導入

導入の文。{FILLER}

### 準備

準備の文。{FILLER}

## 運用

運用の文。{FILLER}

# 付録

付録の文。{FILLER}
"""


def write(docs: Path, name: str, text: str) -> None:
    (docs / name).write_text(text, encoding="utf-8")
    os.utime(docs / name, (1_700_000_000, 1_700_000_000))


def found(library: Library, query: str, *, count: int = 10) -> list[Hit]:
    return library.search(query, top_k=count).hits


def lines(passage: Passage) -> str:
    return passage.citation.rpartition(":")[2]


@pytest.fixture
def guide(docs: Path, open_docs: Opener) -> Library:
    write(docs, "guide.md", GUIDE)
    return open_docs()


def test_a_chunk_is_just_what_was_found(guide: Library) -> None:
    hit = found(guide, "準備")[0]
    [passage] = passages([hit], guide.document_of, "chunk")
    assert passage.text == hit.chunk.text
    assert passage.text.startswith("### 準備")
    assert (passage.first_line, passage.last_line) == (hit.chunk.first_line, hit.chunk.last_line)


def test_a_section_goes_from_its_heading_to_the_next_that_is_not_deeper(guide: Library) -> None:
    hit = next(hit for hit in found(guide, "導入") if hit.chunk.heading == "## 導入")
    [passage] = passages([hit], guide.document_of, "section")
    assert passage.text.startswith("## 導入")
    assert "### 準備" in passage.text
    assert "運用" not in passage.text
    assert passage.text == passage.text.rstrip()


def test_the_last_section_goes_to_the_end_of_the_document(guide: Library) -> None:
    [passage] = passages(found(guide, "付録", count=1), guide.document_of, "section")
    assert passage.text == GUIDE[GUIDE.index("# 付録") :].rstrip()


def test_all_of_a_document_begins_after_its_front_matter(guide: Library) -> None:
    [passage] = passages(found(guide, "運用", count=1), guide.document_of, "full")
    assert passage.text == GUIDE[GUIDE.index("# 手引き") :].rstrip()
    assert passage.first_line == 4


@pytest.mark.parametrize("extract", EXTRACTS)
def test_a_passage_names_the_lines_it_really_stands_on(guide: Library, extract: str) -> None:
    for hit in found(guide, "文"):
        [passage] = passages([hit], guide.document_of, extract)  # type: ignore[arg-type]
        stands = GUIDE.split("\n")[passage.first_line - 1 : passage.last_line]
        assert "\n".join(stands).strip() == passage.text.strip()


def test_lines_are_counted_alike_whatever_ends_them(docs: Path, open_docs: Opener) -> None:
    for name, end in (("unix.md", "\n"), ("windows.md", "\r\n"), ("mac.md", "\r")):
        (docs / name).write_bytes(GUIDE.replace("\n", end).encode())
    library = open_docs()
    cited = {(hit.uri, lines(passages([hit], library.document_of, "chunk")[0])) for hit in found(library, "準備")}
    assert len({place for _, place in cited}) == 1
    assert len(cited) == 3


def test_neighbours_become_one_passage_in_whatever_order_they_were_found(guide: Library) -> None:
    hits = sorted(found(guide, "文"), key=lambda hit: hit.chunk.index)[:3]
    whole = GUIDE[hits[0].chunk.start : hits[2].chunk.end]
    for order in permutations(hits):
        [passage] = passages(order, guide.document_of, "chunk")
        assert passage.text == whole
        assert passage.hit == order[0]


def test_what_stands_apart_stays_apart_and_keeps_the_order_of_the_hits(guide: Library) -> None:
    first, _, third, *_ = sorted(found(guide, "文"), key=lambda hit: hit.chunk.index)
    assert [one.hit for one in passages([third, first], guide.document_of, "chunk")] == [third, first]


def test_the_same_lines_of_two_documents_are_two_passages(docs: Path, open_docs: Opener) -> None:
    write(docs, "a.md", GUIDE)
    write(docs, "b.md", GUIDE)
    library = open_docs()
    got = passages(found(library, "付録", count=2), library.document_of, "full")
    assert sorted(one.hit.uri for one in got) == ["a.md", "b.md"]


def test_what_an_earlier_page_gave_is_not_given_again(guide: Library) -> None:
    hits = sorted(found(guide, "文"), key=lambda hit: hit.chunk.index)
    assert passages(hits, guide.document_of, "full", given=1) == []
    assert len(passages(hits, guide.document_of, "full")) == 1
    # The introduction holds the preparation; the rest of the guide is new.
    begun = [hit for hit in hits if hit.chunk.heading == "## 導入"]
    rest = [hit for hit in hits if hit.chunk.heading in ("### 準備", "# 付録")]
    assert [one.hit.chunk.heading for one in passages(begun + rest, guide.document_of, "section", given=1)] == [
        "# 付録"
    ]


def test_a_document_that_changed_or_went_after_the_search_gives_nothing(docs: Path, guide: Library) -> None:
    hits = found(guide, "文")
    write(docs, "guide.md", "# 別の文書\n\n" + FILLER)
    guide.reindex()
    assert passages(hits, guide.document_of, "chunk") == []
    (docs / "guide.md").unlink()
    write(docs, "other.md", FILLER)
    guide.reindex()
    assert passages(hits, guide.document_of, "chunk") == []


def test_a_row_of_a_table_carries_its_header(docs: Path, open_docs: Opener) -> None:
    rows = "\n".join(f"| 部品{number} | {number}円 | 倉庫の棚{number}に置いてある |" for number in range(60))
    write(docs, "parts.md", f"# 部品表\n\n| 名前 | 値段 | 場所 |\n|---|---|---|\n{rows}\n")
    library = open_docs(BUNKO_CHUNKER_KIND="tables")
    [passage] = passages(found(library, "部品42", count=1), library.document_of, "chunk")
    assert "部品42" in passage.text
    assert "値段" in passage.text


def test_headings_are_shown_without_hidden_characters_and_no_longer_than_headings_are(
    docs: Path, open_docs: Opener
) -> None:
    write(docs, "a.md", f"# 設\u200b定\n\n## {'長い' * 500}\n\n索引の文。{FILLER}")
    library = open_docs()
    [passage] = passages(found(library, "索引", count=1), library.document_of, "chunk")
    assert passage.headings[0] == "設定"
    assert len(passage.headings[1]) <= 101
