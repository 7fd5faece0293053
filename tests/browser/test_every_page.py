"""What holds for every page, in both languages, light and dark, on phones and on desktops."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from bunko.interfaces.page.app import build_page
from bunko.interfaces.page.rendering import load_texts
from bunko.interfaces.tools.registry import ToolRegistry
from tests.browser.accessibility import assert_accessible
from tests.browser.opener import LANGUAGES, SCHEMES, SIZES, WIDTHS, Language, PageOpener, Scheme, Width, keep_screenshot

# Each kind of page, with an address that has something to show, and the pattern of its route.
PAGES = {
    "sign-in": ("/login", ""),
    "search": ("/", "/"),
    "results": ("/?q=京都", "/"),
    "filtered": ("/?q=京都&tool=travel&since=2025&until=2025&tag=旅行&path=*.md&language=ja", "/"),
    "similar": ("/?like=travel/京都.md", "/"),
    "why": ("/?q=京都&why=1", "/"),
    "wordings": ("/?q=京都&also=古都の旅&passage=三日目は京都の寺を訪ねた。&why=1", "/"),
    "ranking": ("/?q=京都&tool=travel&tuning=true&k1=0.2&vector_weight=0.9", "/"),
    "beside": ("/?q=京都&open=travel/京都.md&hit=L3-L5", "/"),
    "document": ("/documents/travel/京都.md?hit=L3-L5&q=京都", "/documents/{tool}/{path:path}"),
    "document-source": ("/documents/travel/京都.md?hit=L3-L5&q=京都&view=source", "/documents/{tool}/{path:path}"),
    "ask": ("/ask?q=京都ではどこに泊まりましたか？", "/ask"),
    "library": ("/library", "/library"),
    "library-tool": ("/library?tool=travel", "/library"),
    "library-descriptions": ("/library/descriptions", "/library/descriptions"),
    "library-models": ("/library/models", "/library/models"),
    "library-settings": ("/library/settings", "/library/settings"),
    "library-setting": ("/library/settings?key=chunker.kind", "/library/settings"),
    "quality": ("/quality?report=20260302T093000", "/quality"),
    "quality-sweep": ("/quality", "/quality"),
    "judge": ("/quality/judge?tool=travel&q=京都", "/quality/judge"),
    "judge-waiting": ("/quality/judge?tool=travel", "/quality/judge"),
    "map": ("/map", "/map"),
    "map-search": ("/map?q=京都&color=tag", "/map"),
    "time": ("/time", "/time"),
    "time-travel": ("/time?tool=travel", "/time"),
    "search-settings": ("/search-settings?q=京都&tool=travel&k1=0.2", "/search-settings"),
}

_MAX_BYTES = 150_000  # markup, styles and scripts, not compressed
_TEXT_NAMES = re.compile(rf"\b(?:{'|'.join(map(re.escape, load_texts('en')))})\b")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_the_screen(
    open_page: PageOpener, name: str, language: Language, scheme: Scheme, width: Width
) -> None:
    page = open_page(PAGES[name][0], language=language, scheme=scheme, width=width, signed_in=name != "sign-in")
    keep_screenshot(page, f"{name}/{language}-{scheme}-{width}")
    assert page.evaluate("document.documentElement.lang") == language
    assert page.title().endswith({"en": " · bunko", "ja": " · 文庫"}[language])
    assert not page.title().startswith(" ·")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[width][0]
    # A script shows the name of a text that its page did not send.
    assert _TEXT_NAMES.findall(page.locator("body").inner_text()) == []
    assert_accessible(page)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_description_of_the_api_is_accessible(open_page: PageOpener, scheme: Scheme, width: Width) -> None:
    page = open_page("/api/docs", scheme=scheme, width=width)
    keep_screenshot(page, f"api/{scheme}-{width}")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[width][0]
    assert_accessible(page)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_weighs_no_more_than_150_kilobytes(open_page: PageOpener, name: str) -> None:
    page = open_page.open_blank(signed_in=name != "sign-in")
    weights: dict[str, int] = {}
    page.on("response", lambda response: weights.update({urlsplit(response.url).path: len(response.body())}))
    page.goto(open_page.address + PAGES[name][0])
    open_page.settle(page)
    own = {path: weight for path, weight in weights.items() if not path.startswith("/api/")}
    assert any(path.endswith(".css") for path in own)
    assert sum(own.values()) <= _MAX_BYTES, own


def test_every_page_is_looked_at() -> None:
    app = build_page(ToolRegistry(lambda: pytest.fail("no page is opened here")))
    assert isinstance(app, Starlette)
    patterns = {
        route.path
        for route in app.routes
        if isinstance(route, Route) and "GET" in (route.methods or ()) and not route.path.startswith("/assets/")
    }
    assert patterns == {pattern for _, pattern in PAGES.values() if pattern}
