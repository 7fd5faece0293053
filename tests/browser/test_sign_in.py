"""How a browser comes to its session, and how its tabs share one stream of events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from bunko.interfaces.cli.commands import serve
from bunko.interfaces.page.rendering import asset_url
from tests.browser.accessibility import assert_accessible
from tests.http.provider import CLIENT_ID, CLIENT_SECRET, run_provider
from tests.http.server import TOKEN, Site, serve_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serve_site(tmp_path_factory.mktemp("site")) as served:
        yield served


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A profile without any cookie."""
    context = browser.new_context(locale="en-GB")
    yield context
    context.close()


def show_other_site(context: BrowserContext, content: str) -> Page:
    """Open a page of another site."""
    address = "http://other.example/"
    context.route(f"{address}**", lambda route: route.fulfill(body=content, content_type="text/html; charset=utf-8"))
    page = context.new_page()
    page.goto(address)
    return page


def sign_in(context: BrowserContext, site: Site) -> Page:
    page = context.new_page()
    page.goto(site.login_address)
    expect(page.get_by_role("search")).to_be_visible()
    return page


def test_the_file_that_bunko_ui_opens_leads_to_the_page(context: BrowserContext, site: Site, tmp_path: Path) -> None:
    file = tmp_path / "bunko.html"
    serve.write_redirect(file, site.login_address)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.get_by_role("search")).to_be_visible()
    assert page.url == f"{site.address}/"
    [cookie] = context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""


def test_a_link_on_another_site_leads_to_what_it_names(context: BrowserContext, site: Site) -> None:
    sign_in(context, site)
    page = show_other_site(context, f'<a href="{site.address}/?q=京都">results</a>')
    page.get_by_text("results").click()
    expect(page.get_by_role("searchbox")).to_have_value("京都")


def test_another_site_cannot_change_anything(context: BrowserContext, site: Site) -> None:
    sign_in(context, site)
    form = f'<form method="post" action="{site.address}/logout"><button>Win a prize</button></form>'
    page = show_other_site(context, form)
    with page.expect_response("**/logout") as reply:
        page.get_by_role("button").click()
    assert reply.value.status == 403
    assert len(context.cookies(site.address)) == 1


@pytest.mark.parametrize("language", ["en-GB", "ja-JP"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_token_can_be_pasted_and_given_back(browser: Browser, site: Site, language: str, scheme: str) -> None:
    context = browser.new_context(locale=language, color_scheme="dark" if scheme == "dark" else "light")
    try:
        page = context.new_page()
        page.goto(f"{site.address}/?q=curry")
        assert_accessible(page)
        field = page.locator("#token")
        expect(field).to_be_focused()
        field.fill("wrong")
        field.press("Enter")
        expect(page.get_by_role("alert")).to_be_visible()
        assert_accessible(page)
        page.locator("#token").fill(TOKEN)
        page.locator("#token").press("Enter")
        expect(page.get_by_role("searchbox")).to_have_value("curry")
        assert page.url == f"{site.address}/?q=curry"
        page.evaluate("localStorage.setItem('bunko-searches', '[\"curry\"]')")
        expect(page.locator("#preferences.by-itself")).to_be_visible()  # the scripts have begun
        page.locator("footer").get_by_role("button").click()
        expect(page.locator("#token")).to_be_visible()
        assert page.url == f"{site.address}/login"
        assert context.cookies() == []
        assert page.evaluate("localStorage.getItem('bunko-searches')") == "[]"
    finally:
        context.close()


@pytest.mark.parametrize("language", ["en-GB", "ja-JP"])
def test_somebody_signs_in_at_an_identity_provider_of_another_site(
    browser: Browser, tmp_path: Path, language: str
) -> None:
    with run_provider("localhost") as provider:  # for a browser, another site than 127.0.0.1
        provider.has_form = True
        client = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
        settings = {"issuer": provider.issuer, "read": ("staff=notes",), **client}
        with serve_site(tmp_path, sign_in=settings) as site:
            context = browser.new_context(locale=language)
            try:
                page = context.new_page()
                page.goto(f"{site.address}/?q=curry")
                assert_accessible(page)
                page.get_by_role("link").click()
                page.get_by_role("button", name="Allow").click()
                expect(page.get_by_role("searchbox")).to_have_value("curry")
                assert page.url == f"{site.address}/?q=curry"
                [cookie] = context.cookies()
                assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
                assert page.evaluate("document.cookie") == ""
                page.locator("footer form[action='/logout'] button").click()
                expect(page.locator("#token")).to_be_visible()
                assert context.cookies() == []
                page.go_back()
                expect(page.locator("#token")).to_be_visible()
            finally:
                context.close()


def test_all_tabs_share_one_stream_of_events_and_another_takes_over(context: BrowserContext, site: Site) -> None:
    streams: list[Request] = []
    context.on("request", lambda request: streams.append(request) if request.url.endswith("/events") else None)
    tabs = [sign_in(context, site), *(context.new_page() for _ in range(9))]
    for tab in tabs:
        tab.goto(f"{site.address}/?q=curry")
        tab.evaluate(
            """async (address) => {
                const { listen } = await import(address);
                const { dataset } = document.documentElement;
                for (const type of ["open", "generation"]) listen(type, () => { dataset[type] = "heard"; });
            }""",
            asset_url("js/events.js"),
        )
    expect(tabs[0].locator("html")).to_have_attribute("data-generation", "heard")
    assert len(streams) == 1
    # With a stream for each tab, all six connections of the browser would be taken.
    assert tabs[9].evaluate("fetch('/api/v1/search?q=curry').then(reply => reply.status)") == 200
    site.library.add(site.library.paths.folder, name="another")
    for tab in tabs[1:]:
        expect(tab.locator("html")).to_have_attribute("data-generation", "heard")
    tabs[0].close()
    for tab in tabs[1:]:
        expect(tab.locator("html")).to_have_attribute("data-open", "heard")
    assert len(streams) == 2
