"""Judging in a browser: one key each, in both languages, and nothing is lost on reload."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, Route, expect

from bunko.evaluation.judge import Judgements, default_file
from tests.browser.opener import LANGUAGES, SIZES, WIDTHS, Language, PageOpener, Width, keep_screenshot

ADDRESS = "/quality/judge?tool=travel&q=京都"
ROWS = "ol.judged li"


def grades(page: Page) -> list[str | None]:
    return [row.get_attribute("data-grade") for row in page.locator(ROWS).all()]


def stored(opener: PageOpener) -> dict[str, float]:
    """Return the judgements of the file that `bunko judge` writes."""
    tool = opener.library.resolve_tool("travel")
    path = default_file(opener.library, tool)
    if not path.exists():
        return {}
    Judgements(path, tool.name)  # the command reads it too
    rows = json.loads(path.read_text("utf-8"))["queries"]
    return {f"{row['query']} {uri}": grade for row in rows for uri, grade in row["grades"].items()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_key_is_a_judgement_that_a_reload_keeps(open_own_page: PageOpener, language: Language) -> None:
    page = open_own_page(ADDRESS, language=language)
    first, second = (row.get_attribute("data-path") for row in page.locator(ROWS).all()[:2])
    expect(page.locator(ROWS).first).to_have_attribute("aria-current", "true")
    page.keyboard.press("3")
    expect(page.locator(ROWS).nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("n")
    expect(page.locator("#counts")).to_have_text(re.compile(r"1\D+2"))
    assert stored(open_own_page) == {f"京都 {first}": 3, f"京都 {second}": 0}
    keep_screenshot(page, f"judge-keys/{language}")
    page.reload()
    open_own_page.settle(page)
    assert grades(page)[:2] == ["3", "0"]


def test_undo_takes_a_judgement_back_and_skip_makes_none(open_own_page: PageOpener) -> None:
    page = open_own_page(ADDRESS)
    page.keyboard.press("y")
    expect(page.locator("#counts")).to_have_text(re.compile(r"1\D+1"))
    page.keyboard.press("u")
    expect(page.locator("#counts")).to_have_text(re.compile(r"0\D+0"))
    expect(page.locator(ROWS).first).to_have_attribute("aria-current", "true")
    assert stored(open_own_page) == {}
    page.keyboard.press("s")
    expect(page.locator(ROWS).nth(1)).to_have_attribute("aria-current", "true")
    assert grades(page)[0] == ""


def test_fast_keys_are_all_stored(open_own_page: PageOpener) -> None:
    page = open_own_page("/quality/judge?tool=project&q=forecast")
    count = page.locator(ROWS).count()
    assert count > 2
    for _ in range(count):
        page.keyboard.press("2")
    expect(page.locator("#done")).to_be_visible()
    expect(page.locator("#counts")).to_have_text(re.compile(rf"1\D+{count}"))


@pytest.mark.parametrize("width", WIDTHS)
def test_buttons_judge_too(open_own_page: PageOpener, width: Width) -> None:
    page = open_own_page(ADDRESS, width=width)
    page.locator('[data-grade-of="2"]').click()
    expect(page.locator("#counts")).to_have_text(re.compile(r"1\D+1"))
    assert list(stored(open_own_page).values()) == [2]
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[width][0]


def test_a_judgement_that_cannot_be_stored_is_not_shown(open_own_page: PageOpener) -> None:
    page = open_own_page(ADDRESS)

    def refuse(route: Route) -> None:
        route.fulfill(status=503, json={"detail": "The disk is away", "hint": "Try again."})

    page.route("**/api/v1/judgements", refuse)
    page.keyboard.press("3")
    expect(page.locator(".toast")).to_contain_text("The disk is away")
    assert grades(page)[0] == ""
    open_own_page.problems.clear()  # the browser tells of the refusal


def test_a_recorded_search_leads_to_its_results(open_own_page: PageOpener) -> None:
    page = open_own_page("/quality")
    page.locator("a.button").click()
    page.locator("select[name=tool]").select_option("travel")
    page.goto(f"{open_own_page.address}/quality/judge?tool=travel")
    page.get_by_role("link", name="京都の宿").click()
    expect(page.locator("#query")).to_have_value("京都の宿")
    assert page.locator(ROWS).count() > 0


def test_a_report_is_chosen_without_scripts(open_page: PageOpener) -> None:
    page = open_page("/quality", javascript=False)
    expect(page.locator("svg.curve")).to_have_count(2)
    page.locator(".reports a").nth(1).click()
    expect(page.locator("svg.score")).to_have_count(18)
