"""The page about the library in a browser: add, import, cancel, describe, hide and delete, and see it at once."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.opener import LANGUAGES, Language, PageOpener, keep_screenshot
from tests.browser.served import serve_page
from tests.site import Site, html


def card(page: Page, tool: str) -> Locator:
    return page.locator(f'article[data-tool="{tool}"]')


@pytest.fixture
def site() -> Iterator[Site]:
    links = '<a href="/a">a</a> <a href="/b">b</a>'
    pages = {f"/{name}": html(f"<h1>{name}</h1><p>Page {name} tells something.</p>{links}") for name in "abc"}
    with Site(pages) as site:
        yield site


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_folder_is_chosen_on_the_server_and_imported(
    open_own_page: PageOpener, tmp_path: Path, language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/新しい文書").mkdir(parents=True)
    (tmp_path / "home/新しい文書/茶.md").write_text("# お茶\n\n玉露は低い温度で淹れる。\n", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    page = open_own_page("/library", language=language)
    page.locator("[data-picker]").click()
    picker = page.locator("#picker")
    picker.get_by_role("button", name="新しい文書").click()
    expect(picker.locator(".path")).to_have_text(str(tmp_path / "home/新しい文書"))
    expect(picker.get_by_role("button", name="茶.md")).to_be_visible()
    keep_screenshot(page, f"library-picker/{language}")
    assert_accessible(page)
    picker.locator("[data-use]").click()
    expect(page.locator("#tool-name")).to_have_value("新しい文書")
    page.locator("#about").fill("お茶の淹れ方。")
    page.locator("#add-folder button.main").click()
    expect(card(page, "新しい文書").locator("dd").first).to_have_text("1")
    expect(page.locator('[data-job][data-state="done"]')).to_have_count(1)
    assert open_own_page.library.tool_status("新しい文書").status.tool.description == "お茶の淹れ方。"
    [entry] = [entry for entry in open_own_page.library.store.audit.entries() if entry.action == "tool add"]
    assert entry.via == "http"


def test_a_folder_needs_neither_a_name_nor_a_description(
    open_own_page: PageOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("Wrong one", "daily notes 📓 (茶)"):
        (tmp_path / "home" / folder).mkdir(parents=True)
        (tmp_path / "home" / folder / "茶.md").write_text("# お茶\n\n玉露は低い温度で淹れる。\n", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    page = open_own_page("/library")
    picker = page.locator("#picker")
    for folder in ("Wrong one", "daily notes 📓 (茶)"):
        page.locator("[data-picker]").click()
        if folder != "Wrong one":
            picker.get_by_role("button", name="Parent folder").click()
        picker.get_by_role("button", name=folder).click()
        expect(picker.locator(".path")).to_contain_text(folder)
        picker.locator("[data-use]").click()
    expect(page.locator("#tool-name")).to_have_value("daily-notes-茶")
    page.locator("#add-folder button.main").click()
    expect(page.locator('[data-job][data-state="done"]')).to_have_count(1)
    expect(card(page, "daily-notes-茶")).to_contain_text("玉露")


def test_a_memo_file_is_added_as_memos(
    open_own_page: PageOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ChangeLog").write_text("2024-05-01  A  <a@example.com>\n\n\t* 散歩: 桜並木を歩いた。\n", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    page = open_own_page("/library")
    page.locator("[data-picker]").click()
    page.locator("#picker").get_by_role("button", name="ChangeLog").click()
    expect(page.locator("#kind")).to_have_value("memos")
    page.locator("#about").fill("Walks.")
    page.locator("#add-folder button.main").click()
    expect(card(page, "ChangeLog").locator("dd").first).to_have_text("1")


def test_a_page_and_a_site_are_fetched_with_live_progress(open_own_page: PageOpener, site: Site) -> None:
    page = open_own_page("/library")
    page.locator("#url").fill(site.url("/c"))
    page.locator("#add-web button.main").click()
    expect(page.locator('[data-job^="pages"][data-state="done"]')).to_have_count(1)
    page.locator("input[value=site]").check()
    expect(page.locator("#pattern")).to_be_visible()
    page.locator("#url").fill(site.url("/a"))
    page.locator("#add-web button.main").click()
    expect(page.locator('[data-job^="crawl"][data-state="done"]')).to_have_count(1)
    expect(page.locator('article[data-kind="web"] dd').first).to_have_text("3")


def test_an_import_shows_its_progress_and_can_be_cancelled(open_own_page: PageOpener) -> None:
    folder = Path(open_own_page.library.tool_status("handbook").status.tool.source)
    for number in range(3000):
        (folder / f"file-{number}.md").write_text(f"# Chapter {number}\n\n" + f"Text {number} about things. " * 60)
    page = open_own_page("/library")
    card(page, "handbook").locator('[data-action="import"]').click()
    running = page.locator('[data-job][data-state="running"]')
    expect(running.locator(".job-counts")).to_have_text(re.compile(r"[1-9]\d* / \d{4}"))
    keep_screenshot(page, "library-import/en")
    assert_accessible(page)
    running.locator('[data-action="cancel"]').click()
    expect(page.locator('[data-job][data-state="cancelled"]')).to_have_count(1)
    assert open_own_page.library.tool_status("handbook").status.totals.documents < 3000


def test_other_tabs_see_an_import_too(open_own_page: PageOpener) -> None:
    page = open_own_page("/library")
    other = page.context.new_page()
    other.goto(f"{open_own_page.address}/library?tool=travel")
    card(page, "travel").locator('[data-action="import"]').click()
    expect(other.locator('[data-job][data-state="done"]')).to_have_count(1)


def test_assistants_no_longer_see_a_hidden_tool(open_own_page: PageOpener) -> None:
    page = open_own_page("/library")
    card(page, "travel").locator('[data-action="disable"]').click()
    expect(card(page, "travel").locator(".chip.off")).to_be_visible()
    expect(card(page, "travel").locator('[data-action="enable"]')).to_be_focused()
    assert "travel" not in [tool.name for tool in open_own_page.library.tools() if tool.active]
    keep_screenshot(page, "library-hidden/en")
    card(page, "travel").locator('[data-action="enable"]').click()
    expect(card(page, "travel").locator(".chip.off")).to_have_count(0)
    assert "travel" in [tool.name for tool in open_own_page.library.tools() if tool.active]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_tool_is_deleted_only_after_a_question(open_own_page: PageOpener, language: Language) -> None:
    page = open_own_page("/library?tool=travel", language=language)
    page.locator('[data-action="delete"]').click()
    question = page.locator("#question")
    expect(question).to_contain_text("travel")
    keep_screenshot(page, f"library-question/{language}")
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    assert len(open_own_page.library.tools()) == 4
    page.locator('[data-action="delete"]').click()
    question.locator("button[value=yes]").click()
    expect(card(page, "travel")).to_have_count(0)
    assert [tool.name for tool in open_own_page.library.tools()] == ["handbook", "memos", "project"]


def test_a_description_is_written_and_checked(open_own_page: PageOpener) -> None:
    page = open_own_page("/library?tool=travel")
    page.locator("#description").fill("Journeys: 京都, Lisbon and what they cost.")
    page.locator("#describe button").click()
    expect(card(page, "travel").locator("p.description")).to_have_text("Journeys: 京都, Lisbon and what they cost.")
    page.locator("#describe a").click()
    expect(page.locator("table.routes")).to_contain_text("Journeys: 京都, Lisbon")


def test_a_draft_of_a_description_survives_an_import(open_own_page: PageOpener) -> None:
    page = open_own_page("/library?tool=travel")
    page.locator("#description").fill("Begun, but")
    card(page, "memos").locator('[data-action="import"]').click()
    expect(page.locator('[data-job][data-state="done"]')).to_have_count(1)
    expect(page.locator("#description")).to_have_value("Begun, but")
    assert open_own_page.library.tool_status("travel").status.tool.description == "旅先で書いた記録と計画。"


def test_a_refusal_is_told_in_the_language_of_the_page(open_own_page: PageOpener) -> None:
    page = open_own_page("/library", language="ja")
    page.locator("#source").fill("/no/such/folder")
    page.locator("#tool-name").fill("nowhere")
    page.locator("#about").fill("何もない。")
    page.locator("#add-folder button.main").click()
    expect(page.locator(".toast")).to_contain_text(re.compile("[ぁ-ん]"))
    expect(page.locator("#source")).to_have_value("/no/such/folder")
    assert open_own_page.problems.pop().startswith("error on the console")  # the browser itself tells of the refusal


def test_without_scripts_the_library_is_read_only(open_page: PageOpener) -> None:
    page = open_page("/library?tool=travel", javascript=False)
    expect(page.locator("svg.histogram")).to_be_visible()
    expect(page.locator("[data-action]:visible")).to_have_count(0)
    expect(page.locator("#add-folder")).to_be_hidden()
    expect(page.locator("#describe")).to_be_hidden()


def test_a_tab_says_that_its_server_has_ended(browser: Browser, library_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(library_folder.parent, tmp_path / "sample")
    with serve_page(tmp_path / "sample" / library_folder.name) as served:
        opener = PageOpener(browser, served)
        page = opener.open_blank()
        with page.expect_response("**/api/v1/events"):
            page.goto(f"{served.address}/library")
    expect(page.locator(".toast")).to_have_text("The server does not answer")
    opener.close()
