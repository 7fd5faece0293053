"""Searching in a browser: as people type, with filters, keys and a document beside the results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.opener import LANGUAGES, SIZES, Language, PageOpener, keep_screenshot

NAMES = "#results a.name"


def names(page: Page) -> list[str]:
    return page.locator(NAMES).all_inner_texts()


@pytest.mark.parametrize("language", LANGUAGES)
def test_results_come_as_somebody_types(open_page: PageOpener, language: Language) -> None:
    page = open_page("/", language=language)
    page.locator("#query").press_sequentially("conference trip", delay=5)
    expect(page.locator(NAMES).first).to_be_visible()
    expect(page).to_have_url(re.compile(r"/\?q=conference\+trip"))
    expect(page.locator("#query")).to_be_focused()
    expect(page.locator("#status")).to_have_text(re.compile(r"\d"))
    assert page.locator("#results mark").count() > 0


def test_nothing_is_searched_while_an_input_method_composes(open_page: PageOpener) -> None:
    page = open_page("/")
    searches: list[str] = []
    page.on("request", lambda request: searches.append(request.url) if "typed=true" in request.url else None)
    page.locator("#query").focus()
    client = page.context.new_cdp_session(page)
    for text in ("ｋ", "きょ", "きょうと", "京都"):
        client.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})
    expect(page.locator("#query")).to_have_value("京都")
    page.evaluate("new Promise((done) => setTimeout(done, 60))")
    assert searches == []
    client.send("Input.insertText", {"text": "京都"})
    expect(page.locator(NAMES).first).to_have_text("京都への社員旅行")
    assert len(searches) == 1


def test_changed_files_are_looked_for_once_somebody_pauses(open_page: PageOpener) -> None:
    page = open_page("/")
    with page.expect_request(lambda request: "part=results" in request.url and "typed" not in request.url) as last:
        page.locator("#query").press_sequentially("Lisbon", delay=5)
    assert "q=Lisbon" in last.value.url
    open_page.settle(page)
    expect(page).to_have_url(re.compile(r"/\?q=Lisbon$"))


def test_a_session_that_has_ended_is_named(open_page: PageOpener) -> None:
    page = open_page("/")
    page.context.clear_cookies()
    page.locator("#query").fill("Lisbon")
    expect(page.locator(".toast")).to_have_text("Your session has ended. Reload the page to sign in again.")
    assert "401" in open_page.problems.pop()


def test_an_answer_that_is_not_the_newest_is_dropped(open_page: PageOpener) -> None:
    page = open_page("/")
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        if "q=Lis" in route.request.url and "Lisbon" not in route.request.url:
            held.append(route)
        else:
            route.continue_()

    page.route("**/*part=results*", hold_first)
    page.locator("#query").fill("Lis")
    page.wait_for_function("performance.now() > 0")
    expect(page).to_have_url(re.compile("q=Lis"))
    page.locator("#query").fill("京都")
    expect(page.locator(NAMES).first).to_have_text("京都への社員旅行")
    for route in held:
        route.abort() if route.request.failure else route.continue_()
    expect(page.locator(NAMES).first).to_have_text("京都への社員旅行")
    assert len(held) == 1


def test_filters_are_in_the_address_and_back_undoes_them(open_page: PageOpener) -> None:
    page = open_page("/?q=京都")
    before = names(page)
    page.locator("select[name=tool]").select_option("memos")
    expect(page).to_have_url(re.compile("tool=memos"))
    expect(page.locator("#results .facts .tool").first).to_have_text("memos")
    shared = open_page(page.url.removeprefix(open_page.address))
    assert names(shared) == names(page)
    assert shared.locator("select[name=tool]").input_value() == "memos"
    page.go_back()
    expect(page.locator("select[name=tool]")).to_have_value("")
    expect(page.locator(NAMES)).to_have_text(before)


def test_other_wordings_rank_again_and_are_in_the_address(open_page: PageOpener) -> None:
    page = open_page("/?q=京都")
    before = names(page)
    page.get_by_text("Other wordings").click()
    page.get_by_label("Wording 1").press_sequentially("Rolling back a release", delay=5)
    page.get_by_label("Wording 2").press_sequentially("shiomi-ctl rollback", delay=5)
    page.get_by_label("A sentence the answer might contain").press_sequentially("Run shiomi-ctl rollback.", delay=5)
    expect(page).to_have_url(re.compile(r"also=Rolling\+back\+a\+release&also=shiomi-ctl\+rollback&passage=Run"))
    expect(page.locator(NAMES).filter(has_text="Rolling back a release")).to_be_visible()
    shared = open_page(page.url.removeprefix(open_page.address))
    assert names(shared) == names(page)
    assert [field.input_value() for field in shared.locator("input[name=also]").all()] == [
        "Rolling back a release", "shiomi-ctl rollback", "",
    ]  # fmt: skip
    page.locator(".tune").click()
    expect(page.locator("#ranking")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Wording 2")).to_have_value("shiomi-ctl rollback")
    page.get_by_label("Wording 1").fill("")
    page.get_by_label("Wording 2").fill("")
    page.get_by_label("A sentence the answer might contain").fill("")
    expect(page.locator(NAMES)).to_have_text(before)


def test_going_back_fills_each_field_of_one_name(open_page: PageOpener) -> None:
    page = open_page("/?q=京都&also=宿&also=寺")
    page.locator("select[name=tool]").select_option("memos")
    expect(page).to_have_url(re.compile("tool=memos"))
    page.go_back()
    expect(page.locator("select[name=tool]")).to_have_value("")
    assert [field.input_value() for field in page.locator("input[name=also]").all()] == ["宿", "寺", ""]


def test_a_wording_that_an_input_method_composes_is_searched_once_it_is_there(open_page: PageOpener) -> None:
    page = open_page("/?q=京都&also=宿")
    searches: list[str] = []
    page.on("request", lambda request: searches.append(request.url) if "typed=true" in request.url else None)
    page.get_by_label("Wording 2").focus()
    client = page.context.new_cdp_session(page)
    for text in ("ｔ", "て", "寺"):
        client.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})
    page.evaluate("new Promise((done) => setTimeout(done, 60))")
    assert searches == []
    client.send("Input.insertText", {"text": "寺"})
    expect(page).to_have_url(re.compile("also=%E5%AE%BF&also=%E5%AF%BA"))
    assert len(searches) == 1


def test_typing_goes_on_in_one_entry_of_the_history(open_page: PageOpener) -> None:
    page = open_page("/?q=京都")
    page.locator("#query").fill("")
    page.locator("#query").press_sequentially("conference trip", delay=30)
    expect(page.locator(NAMES).first).not_to_have_text("京都への社員旅行")
    page.go_back()
    expect(page.locator("#query")).to_have_value("京都")
    expect(page.locator(NAMES).first).to_have_text("京都への社員旅行")


def test_everything_can_be_reached_by_keys(open_page: PageOpener) -> None:
    page = open_page("/")
    page.locator("#results a").first.focus()
    page.keyboard.press("/")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.type("京都")
    expect(page.locator(NAMES).first).to_have_text("京都への社員旅行")
    page.keyboard.press("ArrowDown")
    expect(page.locator(NAMES).nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(NAMES).nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator(NAMES).nth(0)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#panel .text")).to_be_focused()
    expect(page.locator("#panel .hit").first).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    expect(page.locator(NAMES).nth(0)).to_be_focused()
    page.keyboard.press("w")
    expect(page.locator(".why").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#query")).to_be_focused()
    page.locator(NAMES).nth(0).focus()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.click("button.help")
    expect(page.locator("#keys")).to_be_visible()


def test_a_passage_is_copied_as_citation_and_as_markdown(open_page: PageOpener) -> None:
    page = open_page("/?q=錦市場")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("[data-copy=citation]").first.click()
    expect(page.locator(".toast")).to_be_visible()
    citation = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(r"京都\.md:L\d+-L\d+", citation)
    page.locator(NAMES).first.focus()
    page.keyboard.press("m")
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.startsWith('>'))")
    assert citation in page.evaluate("navigator.clipboard.readText()")


def test_a_document_beside_the_results_leaves_the_search_in_its_place(open_page: PageOpener) -> None:
    page = open_page("/?q=錦市場")
    page.locator(NAMES).first.click()
    expect(page.locator("#panel .hit mark").first).to_be_in_viewport()
    assert page.evaluate("scrollY") == 0


def test_on_a_wide_screen_the_document_opens_beside_the_results(open_page: PageOpener) -> None:
    page = open_page("/?q=錦市場")
    page.locator(NAMES).first.click()
    expect(page.locator("#panel #document h1")).to_have_text("京都への社員旅行")
    expect(page.locator("#panel .hit mark").first).to_be_in_viewport()
    expect(page).to_have_url(re.compile("open=travel"))
    assert page.locator(NAMES).count() > 0
    shared = open_page(page.url.removeprefix(open_page.address))
    expect(shared.locator("#panel .hit mark").first).to_be_in_viewport()
    page.go_back()
    expect(page.locator("#panel")).to_be_hidden()


def test_on_a_phone_a_result_leads_to_the_page_of_the_document(open_page: PageOpener) -> None:
    page = open_page("/?q=錦市場", width="phone")
    page.locator(NAMES).first.click()
    expect(page).to_have_url(re.compile("/documents/travel/"))
    expect(page.locator(".hit mark").first).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"][0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_searches_and_documents_work_without_scripts(open_page: PageOpener, language: Language) -> None:
    page = open_page("/", language=language, javascript=False)
    page.locator("#query").fill("京都")
    page.locator("#query").press("Enter")
    page.locator(".why-link").first.click()
    expect(page.locator(".why")).to_be_visible()
    page.locator("summary", has_text=re.compile("Other wordings|言い換え")).click()
    page.locator("input[name=also]").first.fill("京都の宿")
    page.locator("input[name=also]").first.press("Enter")
    expect(page).to_have_url(re.compile("also=%E4%BA%AC"))
    expect(page.locator("input[name=also]").first).to_have_value("京都の宿")
    page.locator(NAMES).first.click()
    expect(page).to_have_url(re.compile("/documents/travel/"))
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.locator(".needs-script").first).to_be_hidden()


def test_sliders_rank_again_at_once(open_page: PageOpener) -> None:
    page = open_page("/?q=朝 京都&tool=travel&tuning=true")
    page.locator("#ranking input[type=range]").first.fill("1")
    expect(page).to_have_url(re.compile("vector_weight=1"))
    expect(page.locator(".change")).to_be_visible()
    page.locator("a.keep").click()
    expect(page.locator("ins")).to_have_text("1")
    page.go_back()
    expect(page.locator("#ranking input[name=vector_weight]")).to_have_value("1")


def first_visible_line(page: Page) -> int:
    return int(
        page.locator("#panel .text").evaluate(
            "(text) => [...text.querySelectorAll('[id^=L]')].find("
            "(line) => line.getBoundingClientRect().bottom > text.getBoundingClientRect().top).id.slice(1)"
        )
    )


@pytest.mark.parametrize("view", ["read", "source"])
def test_of_a_document_of_ten_megabytes_only_the_lines_around_the_screen_are_loaded(
    open_own_page: PageOpener, view: str
) -> None:
    library = open_own_page.library
    folder = Path(library.resolve_tool("travel").source)
    lines = [f"## Part {n}" if n % 500 == 0 else f"line {n} " + "words of a long document " * 3 for n in range(120_000)]
    lines[90_000] = "the hidden marzipan is here"
    (folder / "large.md").write_text("\n".join(lines), "utf-8")
    library.import_("travel")
    page = open_own_page("/?q=marzipan&tool=travel&mode=bm25")
    page.locator(NAMES).first.click()
    page.locator(f"#panel .views [data-view={view}]").click()
    expect(page.locator(f"#panel .text.{view} .hit mark")).to_be_in_viewport()
    named = page.locator("#panel .block [id^=L]")
    assert named.count() < 1000
    page.locator("#panel .text").evaluate("(text) => text.scrollTo(0, text.scrollHeight)")
    expect(page.locator("#L90400")).to_be_attached()
    page.locator("#panel .outline summary").click()
    page.locator("#panel .outline a", has_text=re.compile(r"^Part 60000$")).click()
    expect(page.locator("#L60001")).to_be_in_viewport()
    first, seen = first_visible_line(page), named.count()
    while seen < 1700:  # lines come in below, until the first ones are taken out
        page.locator("#panel .text").evaluate("(text) => text.scrollTo(0, text.scrollHeight)")
        page.wait_for_function("(seen) => document.querySelectorAll('#panel .block [id^=L]').length > seen", arg=seen)
        seen = named.count()
    for _ in range(3):
        last = named.last.get_attribute("id")
        page.locator("#panel .text").evaluate("(text) => text.scrollTo(0, text.scrollHeight)")
        page.wait_for_function(
            "(last) => [...document.querySelectorAll('#panel .block [id^=L]')].at(-1).id !== last", arg=last
        )
        previous, first = first, first_visible_line(page)
        assert first > previous
        assert named.count() <= 2000
    page.locator("#panel .text").evaluate("(text) => text.scrollTo(0, 0)")
    page.wait_for_function(
        "(first) => Number(document.querySelector('#panel .block [id^=L]').id.slice(1)) < first", arg=first - 1500
    )
    assert first - 2000 < first_visible_line(page) < first
    keep_screenshot(page, f"large-document/{view}")
