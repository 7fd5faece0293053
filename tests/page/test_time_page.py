"""Time: days on a calendar and tags over the years, each of them a search; all of it without scripts."""

from __future__ import annotations

import html
import re
from datetime import date
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bunko.interfaces.page.time import CELL, LEFT, STEP, TOP, build_area, build_year, level_limits
from bunko.library.library import Library
from bunko.library.reading.documents import ListRequest
from bunko.types.access import Rights
from tests.page.conftest import Visitor

MEMOS = {
    "2023-04-02.md": "旅",
    "2024-05-01.md": "旅",
    "2024-05-02.md": "食",
    "2025-12-31.md": "旅",
}


@pytest.fixture(autouse=True)
def memos(library: Library, tmp_path: Path) -> None:
    """Memos of three years."""
    folder = tmp_path / "memos"
    folder.mkdir()
    for name, tag in MEMOS.items():
        text = f"---\ndate: {name[:10]}\ntags: [{tag}]\n---\n# {name}\n\n日記の本文。\n"
        (folder / name).write_text(text, "utf-8")
    library.add(folder, name="memos", kind="memos")
    library.import_("memos")


def day_links(text: str) -> dict[str, str]:
    """Return the addresses of the days of a page by their labels."""
    found = re.findall(r'<a class="day" href="([^"]+)" aria-label="([^"]+)"', text)
    return {html.unescape(label): html.unescape(address) for address, label in found}


def test_each_day_with_memos_searches_that_day(browser: TestClient) -> None:
    text = browser.get("/time").text
    days = day_links(text)
    assert set(days) == {
        "Wed 31 Dec 2025: 1", "Wed 1 May 2024: 1", "Thu 2 May 2024: 1", "Sun 2 Apr 2023: 1",
    }  # fmt: skip
    address = days["Wed 1 May 2024: 1"]
    assert address == "/?tool=memos&since=2024-05-01&until=2024-05-01"
    results = browser.get(address).text
    assert results.count('class="result"') == 1
    assert "2024-05-01.md" in results


def test_years_are_rows_the_newest_first(browser: TestClient) -> None:
    years = re.findall(r"<h3><a [^>]+>(\d{4})</a>", browser.get("/time").text)
    assert years == ["2025", "2024", "2023"]


def test_months_and_days_have_names_in_both_languages(visit: Visitor) -> None:
    english, japanese = visit().get("/time").text, visit(language="ja").get("/time").text
    assert ">May</text>" in english
    assert ">Wed</text>" in english
    assert ">5月</text>" in japanese
    assert ">水</text>" in japanese
    assert "2024年5月1日（水）：1 件" in day_links(japanese)


def test_tags_over_the_years_lead_to_their_documents(browser: TestClient) -> None:
    text = html.unescape(browser.get("/time").text)
    assert "#旅, 2024: 1" in text
    address = next(link for link in re.findall(r'href="([^"]+)" aria-label="#旅, 2025: 1"', text))
    results = browser.get(address).text
    assert results.count('class="result"') == 1
    assert "2025-12-31.md" in results


def test_tags_are_those_of_what_the_calendar_counts(browser: TestClient, library: Library, docs: Path) -> None:
    (docs / "tagged.md").write_text("---\ndate: 2024-05-01\ntags: [温室]\n---\n# 温室\n\n温室の換気。\n", "utf-8")
    library.import_("docs")
    assert "温室" not in browser.get("/time").text
    assert "#温室, 2024: 1" in html.unescape(browser.get("/time?tool=docs").text)


def test_the_calendar_can_show_another_tool_or_tag(browser: TestClient) -> None:
    assert list(day_links(browser.get("/time?tag=食").text)) == ["Thu 2 May 2024: 1"]
    docs = browser.get("/time?tool=docs").text
    assert "Wed 1 May 2024: 1" in day_links(docs)
    reply = browser.get("/time?tool=nobody")
    assert reply.status_code == 404
    assert 'role="alert"' in reply.text


def test_many_years_are_on_several_pages(browser: TestClient, library: Library, tmp_path: Path) -> None:
    for year in range(2010, 2020):
        (tmp_path / "memos" / f"{year}-01-01.md").write_text(f"# {year}\n\n昔の日記。\n", "utf-8")
    library.import_("memos")
    text = browser.get("/time").text
    years = re.findall(r"<h3><a [^>]+>(\d{4})</a>", text)
    assert years == ["2025", "2024", "2023", "2019", "2018", "2017"]
    earlier = re.search(r'href="(/time\?before=2017)"', text)
    assert earlier
    second = browser.get(earlier[1]).text
    assert re.findall(r"<h3><a [^>]+>(\d{4})</a>", second)[0] == "2016"
    assert 'href="/time"' in second


def test_somebody_sees_only_days_that_they_may_read(visit: Visitor) -> None:
    text = visit(Rights(("kitchen",), ())).get("/time").text
    assert "2023" not in text
    assert "旅" not in text


def test_days_are_where_a_calendar_has_them() -> None:
    counts = {date(2024, 1, 1): 1, date(2024, 1, 7): 1, date(2024, 1, 8): 1, date(2025, 1, 1): 1}
    monday = build_year(2024, counts, [], week_begins_on_sunday=False)
    assert [(cell.x, cell.y) for cell in monday.days] == [  # 2024 begins on a Monday
        (LEFT, TOP), (LEFT, TOP + 6 * STEP), (LEFT + STEP, TOP),
    ]  # fmt: skip
    sunday = build_year(2024, counts, [], week_begins_on_sunday=True)
    assert [(cell.x, cell.y) for cell in sunday.days] == [
        (LEFT, TOP + STEP), (LEFT + STEP, TOP), (LEFT + STEP, TOP + STEP),
    ]  # fmt: skip
    begins = [begin for begin, _, _ in sunday.rows]
    assert begins == [LEFT + STEP, *[LEFT] * 6], "the first Sunday is in the second week"
    assert max(end for _, end, _ in monday.rows) == LEFT + 52 * STEP + CELL


def test_the_blank_days_of_a_year_are_all_its_days() -> None:
    for year in (2023, 2024, 2028):
        for begins_on_sunday in (True, False):
            rows = build_year(year, {}, [], week_begins_on_sunday=begins_on_sunday).rows
            count = sum((end - begin - CELL) // STEP + 1 for begin, end, _ in rows)
            assert count == (date(year, 12, 31) - date(year, 1, 1)).days + 1


def test_days_with_more_documents_have_a_higher_level() -> None:
    assert level_limits([]) == []
    assert level_limits([1, 1, 1, 1]) == [1, 2, 3]
    assert level_limits([1, 2, 10, 20, 30, 40, 50, 60]) == [10, 30, 50]


def test_an_area_is_as_high_as_its_counts() -> None:
    area = build_area([0, 4, 2], 4)
    assert area.line == "M30 48L90 4L150 26"
    assert area.path == "M30 48L90 4L150 26L150 48H30Z"
    assert area.columns == [(0, 60, 0), (60, 60, 4), (120, 60, 2)]
    assert build_area([3], 3).path == "M0 4H180V48H0Z"


def test_without_memos_the_choice_says_that_all_tools_are_counted(library: Library, browser: TestClient) -> None:
    assert '<option value="">Memos</option>' in browser.get("/time").text
    library.delete_tool("memos")
    assert '<option value="">All tools</option>' in browser.get("/time").text


def test_the_time_of_a_file_is_no_day_of_its_document(library: Library, browser: TestClient) -> None:
    text = browser.get("/time?tool=docs").text
    assert list(day_links(text)) == ["Wed 1 May 2024: 1"]
    assert "do not say which day they are from: 2." in text
    assert "1 documents of docs" in text
    assert "do not say" not in browser.get("/time?tool=memos").text
    # Searches still have it: a change of last week is of last week.
    assert all(document.date for _, document in library.documents.list_documents(ListRequest(("docs",))).documents)


def test_a_tool_without_any_day_says_so(browser: TestClient) -> None:
    text = browser.get("/time?tool=kitchen").text
    assert day_links(text) == {}
    assert "No document here says which day it is from." in text
    assert "from: 1." in text
