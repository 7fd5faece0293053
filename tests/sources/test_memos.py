"""Memos in a library: imported, changed, moved, searched and cited."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import TextResourceContents

from bunko.errors import SourceError
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.text.dates import resolve_date
from bunko.types.records import Filter
from tests.mcp.mcp_client import connect
from tests.sources.memo_files import (
    EMACS,
    SEED,
    Opener,
    add_memos,
    cited_lines,
    parse_changelog,
    write,
)


def test_a_memo_of_yesterday_is_among_those_since_one_day_ago(open_memos: Opener, tmp_path: Path) -> None:
    library = open_memos()
    today = library.local_time().date()
    days = [(today - timedelta(days=back)).isoformat() for back in range(4)]
    add_memos(library, write(tmp_path / "memo.txt", "".join(f"* 散歩 {day}\n  川沿い。\n" for day in days)))
    hits = library.search("散歩", where=Filter(since=resolve_date("1d", library.local_time()))).hits
    assert sorted(hit.date for hit in hits) == sorted(days[:2])


def test_memos_are_found_by_words_tag_and_date_with_the_lines_of_their_file(open_memos: Opener, tmp_path: Path) -> None:
    write(tmp_path / "notes" / "seed.txt", SEED)
    write(tmp_path / "notes" / "sub" / "days.txt", EMACS)
    library = open_memos()
    add_memos(library, tmp_path / "notes")
    (hit,) = library.search("見積もる", where=Filter(tags=("予算",), since="2024-01-16")).hits
    (passage,) = library.passages([hit])
    assert (hit.title, hit.date, hit.tags) == ("会議", "2024-01-16", ("定例", "予算"))
    assert passage.citation == "sub/days.txt#2024-01-16-会議:L3-L5"
    assert "見積もる" in cited_lines(tmp_path / "notes", passage.citation)
    assert library.verify_citation(passage.citation, passage.hash).status == "same"
    assert library.search("見積もる", where=Filter(until="2024-01-15")).hits == []
    (hit,) = library.search("budget").hits
    (full,) = library.passages([hit], "full")
    assert full.text == "Topics discussed:\n- Project timeline\n- Budget allocation"
    assert full.citation == "seed.txt#2024-01-15-Meeting-Notes:L4-L6"


def test_an_entry_that_moves_in_its_file_is_no_change_but_its_lines_follow(open_memos: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", f"{SEED}\n* 旅 2024-02-01\n  京都の寺。\n")
    library = open_memos()
    tool = add_memos(library, memo)
    (before,) = library.passages(library.search("京都").hits)
    assert before.citation == "memo.txt#2024-02-01-旅:L9"
    generation = library.store.generation()
    write(memo, f"* 新しい 2024-03-01\n  話。\n* 旅 2024-02-01\n  京都の寺。\n\n{SEED}", after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.updated, report.deleted, report.unchanged, report.embedded) == (1, 0, 0, 2, 1)
    assert len(list(library.store.changes.chunks_since(tool.id, generation))) == 1
    for query, place in (("京都", "memo.txt#2024-02-01-旅:L4"), ("Budget", "memo.txt#2024-01-15-Meeting-Notes:L9-L11")):
        (hit,) = library.search(query).hits
        (passage,) = library.passages([hit])
        assert passage.citation == place
        assert (hit.chunk.first_line, hit.chunk.last_line) == (passage.first_line, passage.last_line)
        assert query in cited_lines(memo, passage.citation)
    verdict = library.verify_citation(before.citation, before.hash)
    assert (verdict.status, verdict.citation) == ("moved", "memo.txt#2024-02-01-旅:L4")


@pytest.mark.slow
def test_one_edit_among_five_thousand_entries_costs_one_entry(open_memos: Opener, tmp_path: Path) -> None:
    entries = [f"* memo {number} {2000 + number % 24}-01-15\n  本文 {number}\n" for number in range(5000)]
    memo = write(tmp_path / "memo.txt", "".join(entries))
    library = open_memos()
    tool = add_memos(library, memo)
    assert library.store.stats.totals(tool.id).documents == 5000
    generation = library.store.generation()
    entries[2500] = "* memo 2500 2004-01-15\n  改めた本文\n  と、もう一行\n"
    write(memo, "".join(entries), after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.updated, report.deleted, report.unchanged, report.embedded) == (0, 1, 0, 4999, 1)
    assert ["改めた" in chunk.text for chunk in library.store.changes.chunks_since(tool.id, generation)] == [True]
    assert library.passages(library.search("memo 4999").hits)[0].citation.endswith(":L10001")


def test_entries_of_one_title_and_date_keep_their_names_whatever_their_order(
    open_memos: Opener, tmp_path: Path
) -> None:
    one, two, other = (
        "* 日記 2024-01-15\n  朝の話。\n",
        "* 日記 2024-01-15\n  夜の話。\n",
        "* 買い物 2024-01-15\n  卵。\n",
    )
    memo = write(tmp_path / "memo.txt", one + two + other)
    library = open_memos()
    tool = add_memos(library, memo)
    names = set(library.store.documents.fingerprints(tool.id))
    assert len(names) == 3
    write(memo, two + other + one, after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.updated, report.deleted, report.unchanged) == (0, 0, 0, 3)
    write(memo, two + other + one + one, after=20)
    report = library.reindex(tool="memos")
    assert (report.added, report.deleted, report.unchanged) == (1, 0, 3)
    write(memo, other + one, after=30)  # alone again, it has the plain name: it moved
    report = library.reindex(tool="memos")
    assert (report.added, report.moved, report.deleted, report.unchanged) == (0, 1, 2, 1)
    assert set(library.store.documents.fingerprints(tool.id)) == {
        "memo.txt#2024-01-15-日記",
        "memo.txt#2024-01-15-買い物",
    }


def test_a_change_of_tags_alone_is_a_change_that_needs_no_embedding(open_memos: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", SEED)
    library = open_memos()
    add_memos(library, memo)
    write(memo, SEED.replace("january", "budget"), after=10)
    report = library.reindex(tool="memos")
    assert (report.updated, report.embedded) == (1, 0)
    assert library.tags() == [("budget", 1), ("meeting", 1)]


def test_a_search_sees_what_was_just_written_and_keeps_what_has_vanished(open_memos: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", SEED)
    library = open_memos()
    add_memos(library, memo)
    memo.write_text(f"{SEED}\n* 旅 2024-02-01\n  京都の寺。\n", encoding="utf-8")
    assert [hit.title for hit in library.search("京都").hits] == ["旅"]
    memo.unlink()
    answer = library.search("京都")
    assert [hit.title for hit in answer.hits] == ["旅"]
    assert any("is missing or empty" in notice for notice in answer.notices)
    with pytest.raises(SourceError, match="is missing or empty"):
        library.reindex(tool="memos")


def test_a_deleted_file_takes_its_entries_along_and_a_renamed_one_keeps_their_vectors(
    open_memos: Opener, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    write(notes / "a.txt", SEED)
    write(notes / "b.txt", EMACS)
    library = open_memos()
    add_memos(library, notes)
    (notes / "b.txt").rename(notes / "c.txt")
    report = library.reindex(tool="memos")
    assert (report.added, report.moved, report.deleted, report.embedded) == (0, 3, 0, 0)
    (notes / "c.txt").unlink()
    report = library.reindex(tool="memos")
    assert (report.deleted, report.unchanged) == (3, 1)


def test_a_file_that_is_no_text_is_a_problem_that_is_remembered(open_memos: Opener, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    write(notes / "a.txt", SEED)
    write(notes / "b.txt", b"\x00\x01\x02\x03" * 100)
    library = open_memos()
    tool = add_memos(library, notes)
    report = library.reindex(tool="memos")
    assert (report.unchanged, [problem.uri for problem in report.problems]) == (1, ["b.txt"])
    write(notes / "b.txt", EMACS, after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.problems) == (3, [])
    assert library.store.stats.totals(tool.id).documents == 4


def test_a_long_memo_is_cut_and_each_part_knows_its_lines(open_memos: Opener, tmp_path: Path) -> None:
    lines = [f"第{number}行は、検索の方法について述べている長い文である。" for number in range(300)]
    memo = write(
        tmp_path / "memo.txt",
        "* 短い 2024-01-01\n  話。\n* 長い 2024-01-15\n" + "".join(f"  {line}\n" for line in lines),
    )
    library = open_memos()
    add_memos(library, memo)
    hits = library.search("検索の方法", top_k=20).hits
    assert len(hits) > 1
    for hit in hits:
        assert len(hit.chunk.text) <= 3000
        place = cited_lines(memo, f"memo.txt:L{hit.chunk.first_line}-L{hit.chunk.last_line}")
        assert [line.strip() for line in hit.chunk.text.split("\n")] == [line.strip() for line in place.split("\n")]


def test_a_rebuild_gives_the_same_entries_on_the_same_lines(open_memos: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", EMACS + "\n" + SEED)
    library = open_memos()
    tool = add_memos(library, memo)
    before = sorted((chunk.text, chunk.tiebreak_order) for chunk in library.store.changes.chunks_since(tool.id, 0))
    report = library.import_tools(["memos"], "replace")
    assert (report.added, report.updated, report.deleted) == (0, 4, 0)
    assert (
        sorted((chunk.text, chunk.tiebreak_order) for chunk in library.store.changes.chunks_since(tool.id, 0)) == before
    )
    (passage,) = library.passages(library.search("Budget").hits)
    assert "Budget" in cited_lines(memo, passage.citation)


def test_the_newest_memos_come_first_and_those_without_a_date_last(open_memos: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", f"前書き\n{SEED}\n{EMACS}")
    library = open_memos()
    add_memos(library, memo)
    assert [(one.date, one.title) for _, one in library.recent_documents(limit=10)] == [
        ("2024-01-16", "src/main.c (open)"),
        ("2024-01-16", "会議"),
        ("2024-01-15", "Meeting Notes"),
        ("2024-01-15", "買い物"),
        ("", ""),
    ]
    assert len(library.recent_documents("memos", limit=2)) == 2
    assert library.tags("memos") == [("january", 1), ("meeting", 1), ("予算", 1), ("定例", 1)]


def test_an_assistant_finds_verifies_and_reads_a_memo(open_memos: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "a # b.txt", EMACS)
    library = open_memos()
    add_memos(library, memo)
    assert library.reindex(tool="memos").unchanged == 3
    desk = ToolRegistry(lambda: library)

    async def talk() -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        async with Client(connect(BunkoServer(desk)), cache=None) as client:
            found = await client.call_tool("memos", {"query": "見積もる"})
            assert found.structured_content is not None
            (hit,) = found.structured_content["results"]
            cited = {"citation": hit["citation"], "hash": hit["hash"]}
            verdict = (await client.call_tool("verify", cited)).structured_content
            assert verdict is not None
            texts = []
            for one in (await client.list_resources()).resources:
                (content,) = (await client.read_resource(one.uri)).contents
                assert isinstance(content, TextResourceContents)
                texts.append(content.text)
            return hit, verdict, texts

    hit, verdict, texts = anyio.run(talk)
    assert hit["citation"] == "a # b.txt#2024-01-16-会議:L3-L5"
    assert verdict["status"] == "same"
    assert sorted(texts) == sorted(one.text for one in parse_changelog(EMACS))
