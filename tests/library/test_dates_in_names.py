"""Notes in a folder that are named by their date."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.types.records import Filter
from tests.conftest import Opener, Run


@pytest.mark.parametrize(
    ("name", "text", "date"),
    [
        ("2025-03-02.md", "散歩した。", "2025-03-02"),
        ("2025-03-02 川沿い.md", "散歩した。", "2025-03-02"),
        ("20250302.md", "散歩した。", "2025-03-02"),
        ("20250302-川沿い.txt", "散歩した。", "2025-03-02"),
        ("2025_03_02.md", "散歩した。", "2025-03-02"),
        ("日記/2025.03.02.md", "散歩した。", "2025-03-02"),
        ("2025年3月2日.md", "散歩した。", "2025-03-02"),
        ("2025-03-02.md", "---\ndate: 2025-04-05\n---\n\n散歩した。", "2025-04-05"),
        ("2025-03-02.md", "---\ntitle: 散歩\n---\n\n散歩した。", "2025-03-02"),
    ],
)
def test_a_note_has_the_date_in_its_name_unless_its_front_matter_gives_one(
    open_docs: Opener, docs: Path, name: str, text: str, date: str
) -> None:
    (docs / name).parent.mkdir(exist_ok=True)
    (docs / name).write_text(text, encoding="utf-8")
    library = open_docs()
    library.reindex()
    assert [hit.date for hit in library.search("散歩").hits] == [date]


@pytest.mark.parametrize("name", ["2025-13-02.md", "202503021.md", "会議-2025.md", "12345678.md"])
def test_a_name_that_begins_with_no_date_gives_none(open_docs: Opener, docs: Path, name: str) -> None:
    (docs / name).write_text("散歩した。", encoding="utf-8")
    library = open_docs()
    library.reindex()
    [(_, document)] = library.recent_documents()
    assert "T" in document.date  # the time of its last change


def test_filters_and_the_latest_documents_go_by_the_date_in_the_name(run: Run, open_docs: Opener, docs: Path) -> None:
    for day in ("2023-05-01", "2025-03-02", "2024-07-09"):
        (docs / f"{day}.md").write_text(f"# 散歩\n\n川沿いを歩いた日、{day} の記録。\n", encoding="utf-8")
    library = open_docs()
    library.reindex()
    hits = library.search("散歩", where=Filter(since="2024-01", until="2024-12")).hits
    assert [hit.uri for hit in hits] == ["2024-07-09.md"]
    recent = run("recent", "--docs-dir", docs).out.splitlines()
    assert [line.split("\t")[0] for line in recent] == ["2025-03-02", "2024-07-09", "2023-05-01"]


def test_a_renamed_note_has_the_date_of_its_new_name(open_docs: Opener, docs: Path) -> None:
    (docs / "draft.md").write_text("川沿いを散歩した。", encoding="utf-8")
    library = open_docs()
    library.reindex()
    (docs / "draft.md").rename(docs / "2025-03-02.md")
    report = library.reindex()
    assert (report.moved, report.embedded) == (1, 0)
    assert [hit.date for hit in library.search("散歩").hits] == ["2025-03-02"]
