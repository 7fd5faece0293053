"""Documents that were made to break a page: every page shows them as text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.hostile import (
    ADDRESS_TOOL,
    ADDRESSES,
    BIDI_CHARS,
    DOCUMENTS,
    LARGE_TOOL,
    READ_TOOL,
    TOOL,
    UNREADABLE,
    assert_harmless,
    build_hostile_library,
    document_path,
)
from tests.browser.opener import PageOpener
from tests.browser.served import ServedPage, serve_page
from tests.page.hostile_documents import LARGE, PAYLOADS

_WORDS = [*(word for word, _ in DOCUMENTS.values()), *ADDRESSES.values()]


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """The served library of hostile documents."""
    with serve_page(build_hostile_library(tmp_path_factory.mktemp("hostile"))) as served:
        yield served


@pytest.fixture
def open_hostile(browser: Browser, hostile_page: ServedPage) -> Iterator[PageOpener]:
    """Open its pages. Nothing may be blocked either: the policy is the second wall, not the first."""
    opener = PageOpener(browser, hostile_page)
    yield opener
    opener.close()
    assert opener.problems == []


@pytest.mark.parametrize("javascript", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize("word", _WORDS)
def test_a_hostile_document_is_found_and_shown_as_text(open_hostile: PageOpener, word: str, javascript: bool) -> None:
    page = open_hostile(f"/?q={word}", javascript=javascript)
    assert page.locator("main").get_by_text(word).count() >= 1
    if javascript:
        assert_harmless(page)
        page.mouse.move(400, 300)
        assert page.evaluate("window.injected") is None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_source_of_a_hostile_document_is_text(open_hostile: PageOpener, name: str) -> None:
    page = open_hostile(f"{document_path(TOOL, name)}?view=source")
    word, text = DOCUMENTS[name]
    # Each character is there to be read, except those that turn the direction of writing.
    assert f"{word} {BIDI_CHARS.sub('', text)}" in BIDI_CHARS.sub("", page.locator("main").inner_text())
    assert_harmless(page)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_hostile_document_is_read_without_harm(open_hostile: PageOpener, name: str) -> None:
    page = open_hostile(document_path(TOOL, name))
    assert DOCUMENTS[name][0] in page.locator(".text.read").inner_text()
    assert_harmless(page)


def test_what_hostile_documents_contain_neither_runs_nor_loads_anything(open_hostile: PageOpener) -> None:
    page = open_hostile.open_blank()
    for name, document in PAYLOADS.items():
        page.goto(open_hostile.address + document_path(READ_TOOL, name))
        open_hostile.settle(page)
        assert document.read in page.locator(".text.read").inner_text(), name
        assert page.evaluate("document.getElementById('document').localName") == "article", name
        assert page.evaluate("document.body.localName + location.pathname") == f"body{document_path(READ_TOOL, name)}"
        page.mouse.move(400, 300)
        for link in page.locator(".text.read a:not([href^='http'])").all():
            link.focus()
        assert_harmless(page)


@pytest.mark.parametrize("name", LARGE)
def test_too_much_of_something_does_not_stop_a_browser(open_hostile: PageOpener, name: str) -> None:
    page = open_hostile(document_path(READ_TOOL, name), width="phone")
    assert LARGE[name].read in page.locator(".text.read").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.querySelectorAll('*').length") < 80_000


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_never_becomes_a_script(open_hostile: PageOpener, address: str) -> None:
    page = open_hostile(document_path(ADDRESS_TOOL, address))
    assert page.locator("main").get_by_text(ADDRESSES[address]).count() >= 1
    assert_harmless(page)


def test_a_query_is_shown_as_text(open_hostile: PageOpener) -> None:
    page = open_hostile("/?q=%22%3E%3Cscript%3Ewindow.injected=1%3C/script%3E%E2%80%AE&tag=%3Cimg+src=x+onerror=1%3E")
    assert_harmless(page)


@pytest.mark.parametrize("javascript", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize(
    "address",
    [
        f"/library?tool={TOOL}",
        f"/library?tool={ADDRESS_TOOL}",
        "/library/descriptions",
        "/map?color=tag",
        f"/time?tool={TOOL}",
        "/quality",
        "/quality?report=20260302T093000",
        "/quality?report=20260303T210500",
        f"/quality/judge?tool={TOOL}&q=markupword",
        f"/quality/judge?tool={ADDRESS_TOOL}&q=dataword",
        "/ask?q=markupword",
    ],
)
def test_hostile_names_tags_titles_and_reports_are_text_on_every_page(
    open_hostile: PageOpener, address: str, javascript: bool
) -> None:
    page = open_hostile(address, javascript=javascript)
    assert page.locator("main h1").count() == 1
    if javascript:
        assert_harmless(page)


def test_documents_that_could_not_be_read_are_named_as_text(open_hostile: PageOpener) -> None:
    page = open_hostile(f"/library?tool={TOOL}")
    shown = BIDI_CHARS.sub("", page.locator("main").text_content() or "")
    for name in UNREADABLE:
        assert BIDI_CHARS.sub("", name) in shown


def test_hostile_documents_are_text_on_the_map_whatever_is_lit_or_pointed_at(open_hostile: PageOpener) -> None:
    page = open_hostile("/map?color=tag&q=markupword")
    page.locator("#canvas").focus()
    for _ in range(len(DOCUMENTS) + len(ADDRESSES)):
        page.keyboard.press("ArrowRight")
        assert_harmless(page)


def test_why_a_hostile_document_was_found_is_text(open_hostile: PageOpener) -> None:
    page = open_hostile("/?q=markupword")
    page.keyboard.press("j")
    page.keyboard.press("w")
    open_hostile.settle(page)
    assert page.locator("main .why, main [class*=why]").count() >= 1
    assert_harmless(page)


def test_a_single_line_of_five_megabytes_is_found_and_read(open_hostile: PageOpener) -> None:
    page = open_hostile("/?q=longword")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert_harmless(page)
    page = open_hostile(document_path(LARGE_TOOL, "long-line.md"), width="phone")
    assert "longword" in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_thousands_of_headings_do_not_make_a_page_unusable(open_hostile: PageOpener) -> None:
    page = open_hostile(document_path(LARGE_TOOL, "headings.md"))
    assert "manyword" in page.locator("main").inner_text()
    assert page.evaluate("document.querySelectorAll('*').length") < 20_000


def test_a_document_of_ten_megabytes_opens_at_its_end_too(open_hostile: PageOpener) -> None:
    page = open_hostile(f"{document_path(LARGE_TOOL, 'ten-megabytes.md')}?hit=L76001-L76003")
    assert page.locator("#L76001").is_visible()
    assert page.evaluate("document.querySelectorAll('*').length") < 20_000
