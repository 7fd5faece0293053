"""Narrowing a search in a browser, coming back to it, and choosing how the page looks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bunko.types.tool_options import ToolOptions
from tests.browser.accessibility import assert_accessible
from tests.browser.opener import LANGUAGES, SIZES, WIDTHS, Language, PageOpener, Width

NAMES = "#results a.name"


def unfold(page: Page) -> None:
    """Show what narrows the results, where there is no room for it beside them."""
    details = page.locator("#facets details")
    if details.get_attribute("open") is None:
        page.locator("#facets summary").click()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_what_narrows_follows_a_pause_and_each_value_can_be_taken_back(
    open_page: PageOpener, width: Width, language: Language
) -> None:
    page = open_page("/", width=width, language=language)
    page.locator("#query").press_sequentially("京都", delay=5)
    expect(page.locator("#facets summary")).to_contain_text(re.compile(r"\d"))
    expect(page.locator("#query")).to_be_focused()
    unfold(page)
    assert_accessible(page)
    count = page.locator("#facets .found").inner_text()
    page.locator("section[aria-labelledby=facet-tool] a", has_text="memos").click()
    expect(page).to_have_url(re.compile("tool=memos"))
    expect(page.locator("#facets .chip")).to_have_count(1)
    expect(page.locator("#facets .chip")).to_be_focused()
    expect(page.locator("#results .facts .tool").first).to_have_text("memos")
    expect(page.locator("select[name=tool]")).to_have_value("memos")
    assert_accessible(page)
    page.locator("#facets .chip").click()
    expect(page.locator("#facets .found")).to_have_text(count)
    page.go_back()
    expect(page.locator("#facets .chip")).to_have_count(1)
    expect(page.locator("select[name=tool]")).to_have_value("memos")


def test_a_filter_without_a_field_stays_while_somebody_types(open_page: PageOpener) -> None:
    page = open_page("/?q=Lisbon 京都")
    page.locator("section[aria-labelledby=facet-language] a", has_text="Japanese").click()
    expect(page.locator("#facets .chip")).to_have_count(1)
    page.locator("#query").press("End")
    page.locator("#query").press_sequentially(" 宿", delay=5)
    expect(page).to_have_url(re.compile(r"q=Lisbon\+%E4%BA%AC%E9%83%BD\+%E5%AE%BF"))
    assert "language=ja" in page.url


def test_beside_a_document_what_narrows_is_folded(open_page: PageOpener) -> None:
    page = open_page("/?q=京都")
    expect(page.locator("#facets details")).to_have_attribute("open", "")
    page.locator(NAMES).first.click()
    expect(page.locator("#panel")).to_be_visible()
    expect(page.locator("#facets details")).not_to_have_attribute("open", "")
    page.locator("#panel .close").click()
    expect(page.locator("#facets details")).to_have_attribute("open", "")


@pytest.mark.parametrize("width", WIDTHS)
def test_going_back_leads_to_the_result_that_was_opened(open_page: PageOpener, width: Width) -> None:
    page = open_page("/?q=京都", width=width)
    expect(page.locator(NAMES).nth(2)).to_be_visible()
    third = page.locator(NAMES).nth(2)
    third.click()
    expect(page.locator("#document")).to_be_visible()
    page.go_back()
    expect(page.locator(NAMES).nth(2)).to_be_focused()
    expect(page.locator(NAMES).nth(2)).to_be_in_viewport()


def test_documents_like_one_are_a_step_of_the_history(open_page: PageOpener) -> None:
    page = open_page("/?q=京都")
    page.locator("#results a.like").first.click()
    expect(page.locator("h2.like-of a")).to_have_text("京都への社員旅行")
    expect(page.locator("#query")).to_have_value("")
    expect(page.locator("#facets")).to_be_hidden()
    assert "京都への社員旅行" not in page.locator(NAMES).all_inner_texts()
    page.go_back()
    expect(page.locator("#query")).to_have_value("京都")
    expect(page.locator("#results a.like").first).to_be_focused()


def test_a_day_is_chosen_from_a_calendar_or_a_period_at_once(open_page: PageOpener) -> None:
    page = open_page("/?q=京都")
    page.get_by_text("Filters", exact=True).click()
    page.get_by_role("button", name="Choose the first day").click()  # fails if the browser has nothing to show
    page.locator("input[type=date][data-for=since]").fill("2025-11-01")
    expect(page.get_by_label("From", exact=True)).to_have_value("2025-11-01")
    expect(page).to_have_url(re.compile("since=2025-11-01"))
    page.get_by_label("To", exact=True).fill("2025-12")
    expect(page).to_have_url(re.compile("until=2025-12"))
    assert_accessible(page)
    page.get_by_role("link", name="Last 30 days").click()
    expect(page).to_have_url(re.compile("since=30d$"))


@pytest.mark.parametrize("width", WIDTHS)
def test_recent_searches_are_kept_by_the_browser_until_they_are_cleared(open_page: PageOpener, width: Width) -> None:
    page = open_page("/", width=width)
    expect(page.locator("#searched")).to_be_hidden()
    for query in ("京都", "conference trip", "<b>錦</b>"):
        page.locator("#query").fill(query)
        page.locator("#query").press("Enter")
        expect(page).not_to_have_url(re.compile(r"/$"))
    page.locator("#query").fill("")
    expect(page.locator("#searched a")).to_have_text(["<b>錦</b>", "conference trip", "京都"])
    assert_accessible(page)
    page.locator("#searched a", has_text="京都").click()
    expect(page.locator("#query")).to_have_value("京都")
    expect(page.locator(NAMES).first).to_have_text("京都への社員旅行")
    expect(page.locator("#searched")).to_be_hidden()
    page.goto(open_page.address)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#searched")).to_be_hidden()
    page.reload()
    expect(page.locator("#searched")).to_be_hidden()


@pytest.mark.parametrize("path", ["/?q=京都", "/library", "/map", "/time", "/documents/travel/京都.md"])
def test_colours_and_language_are_chosen_for_the_browser(open_page: PageOpener, path: str) -> None:
    page = open_page(path)
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_label("Theme").select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light
    page.locator("#preferences select[name=lang]").select_option("ja")
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    open_page.settle(page)
    assert_accessible(page)
    page.get_by_label("配色").select_option("")
    expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("width", WIDTHS)
def test_all_of_it_works_without_scripts(open_page: PageOpener, width: Width) -> None:
    page = open_page("/?q=京都", javascript=False, width=width)
    unfold(page)
    page.locator("section[aria-labelledby=facet-tool] a", has_text="memos").click()
    expect(page).to_have_url(re.compile("tool=memos"))
    page.locator("#facets .chip").click()
    expect(page).not_to_have_url(re.compile("tool="))
    page.locator("#results a.like").first.click()
    expect(page.locator("h2.like-of")).to_be_visible()
    page.get_by_label("Theme").select_option("dark")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page).to_have_url(re.compile("like="))
    expect(page.locator("#searched")).to_be_hidden()


def test_rows_of_a_sheet_scroll_in_their_place_on_a_phone(open_own_page: PageOpener, tmp_path: Path) -> None:
    sheet = tmp_path / "sheets" / "plants.tsv"
    sheet.parent.mkdir()
    rows = [
        ["name", "family", "height", "flowering month", "place"],
        ["hair moss", "Polytrichaceae", "5", "May", "wall"],
    ]
    sheet.write_text("\n".join("\t".join(row) for row in rows), "utf-8")
    library = open_own_page.library
    library.tools.add("sheets", "Plants.", sheet.parent, options=ToolOptions(include=("*.tsv",)))
    library.import_("sheets")
    page = open_own_page("/?q=Polytrichaceae", width="phone")
    expect(page.locator("table.rows th")).to_have_text(rows[0])
    expect(page.locator("table.rows mark")).to_have_text("Polytrichaceae")
    assert page.locator(".scroll").first.evaluate("box => box.scrollWidth > box.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"][0]
    assert_accessible(page)


def test_why_a_document_was_not_opened_is_said_in_the_language_of_the_page(open_page: PageOpener) -> None:
    page = open_page("/documents/travel/京都.md?lang=ja")
    page.route("**/open", lambda route: route.continue_(url=route.request.url.replace("%E4%BA%AC", "x")))
    page.locator("button[data-open-editor]").click()
    expect(page.locator(".toast")).to_contain_text(re.compile("[ぁ-ん]"))
    open_page.problems.clear()  # the status of the answer
