"""Time in a browser: days by keys, and from a day or a year to its documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.opener import LANGUAGES, SCHEMES, SIZES, WIDTHS, Language, PageOpener, Scheme, Width, keep_screenshot
from tests.browser.sample import open_sample
from tests.browser.served import serve_page

_TAGS = ("会議", "読書", "料理", "旅行", "review", "garden")


@pytest.fixture(scope="module")
def open_diary(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageOpener]:
    """A diary of three years."""
    folder = tmp_path_factory.mktemp("diary")
    (folder / "memos").mkdir()
    day, number = date(2023, 3, 1), 0
    while day <= date(2025, 10, 30):
        number += 1
        for part in range(1 + number * 7 % 11 // 4):
            tag = _TAGS[(number * 5 + part + day.year) % len(_TAGS)]
            text = f"---\ntitle: {day} {part}\ndate: {day}\ntags: [{tag}]\n---\n# {tag}\n\n{tag}のことを書く。\n"
            (folder / "memos" / f"{day}-{part}.md").write_text(text, "utf-8")
        day += timedelta(1 + number * number % 9)
    with open_sample(folder / "library") as library:
        library.add(folder / "memos", name="memos", kind="memos")
        library.import_("memos")
    with serve_page(folder / "library") as served:
        opener = PageOpener(browser, served)
        yield opener
        opener.close()
        assert opener.problems == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_diary_of_years_is_calm(open_diary: PageOpener, language: Language, scheme: Scheme, width: Width) -> None:
    page = open_diary("/time", language=language, scheme=scheme, width=width)
    expect(page.locator("svg.days")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[width][0]
    page.locator("details summary").click()
    keep_screenshot(page, f"time/diary-{language}-{scheme}-{width}")
    assert_accessible(page)


@pytest.mark.parametrize("javascript", [True, False])
def test_a_phone_begins_at_the_newest_month(open_diary: PageOpener, *, javascript: bool) -> None:
    page = open_diary("/time", width="phone", javascript=javascript)
    year = page.locator(".year").first
    shown, newest = year.locator(".scroll").bounding_box(), year.locator("a.day").last.bounding_box()
    assert shown
    assert newest
    assert shown["x"] < newest["x"] < shown["x"] + shown["width"]
    assert page.evaluate("scrollY") == 0


def test_keys_go_from_day_to_day_and_search_one(open_diary: PageOpener) -> None:
    page = open_diary("/time")
    year = page.locator("svg.days").nth(1)
    assert year.locator('a.day[tabindex="0"]').count() == 1, "a year is one stop of the tab key"
    last = year.locator("a.day").last
    last.focus()
    page.keyboard.press("ArrowLeft")
    focused = page.locator("a.day:focus")
    label = focused.get_attribute("aria-label") or ""
    assert label.endswith(("1", "2", "3"))
    assert label != last.get_attribute("aria-label")
    page.keyboard.press("Home")
    expect(page.locator("a.day:focus")).to_have_attribute("aria-label", re.compile(" Jan 2024"))
    page.keyboard.press("ArrowLeft")
    expect(page.locator("a.day:focus")).to_have_attribute("aria-label", re.compile(" Dec 2023"))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"since=2023-12-\d\d&until=2023-12-\d\d"))
    assert page.locator(".result").count() >= 1


def test_a_year_of_a_tag_leads_to_its_documents(open_diary: PageOpener) -> None:
    page = open_diary("/time", language="ja")
    page.locator(".areas a[aria-label*='2024年']").first.click()
    page.wait_for_url(re.compile(r"tag=.*since=2024&until=2024"))
    assert page.locator(".result").count() >= 1
    expect(page.locator("input[name=since]")).to_have_value("2024")


def test_another_tool_is_shown_at_once(open_page: PageOpener, tmp_path: Path) -> None:
    page = open_page("/time")
    expect(page.locator("a.day")).to_have_count(2)
    page.get_by_label("Tool").select_option("travel")
    page.wait_for_url(re.compile("tool=travel"))
    expect(page.locator("a.day")).to_have_count(2)
    expect(page.locator("a.day").first).to_have_attribute("href", re.compile("tool=travel"))
