"""The page about the library in a browser: add, import, cancel, describe, hide and delete, and see it at once."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.opener import LANGUAGES, SIZES, WIDTHS, Language, PageOpener, Scheme, Width, keep_screenshot
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


@pytest.mark.parametrize(
    ("language", "scheme", "width"), [("en", "light", "desktop"), ("ja", "light", "phone"), ("en", "dark", "phone")]
)
def test_a_folder_is_chosen_on_the_server_and_imported(
    open_own_page: PageOpener,
    tmp_path: Path,
    language: Language,
    scheme: Scheme,
    width: Width,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "home/新しい文書").mkdir(parents=True)
    (tmp_path / "home/新しい文書/茶.md").write_text("# お茶\n\n玉露は低い温度で淹れる。\n", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    page = open_own_page("/library", language=language, scheme=scheme, width=width)
    page.locator(".add summary").click()
    page.locator("[data-picker]").click()
    picker = page.locator("#picker")
    expect(picker.locator(".entry").first).to_be_focused()
    page.keyboard.press("End")
    expect(picker.get_by_role("button", name="新しい文書")).to_be_focused()
    page.keyboard.press("Enter")
    expect(picker.locator(".path")).to_have_text(str(tmp_path / "home/新しい文書"))
    expect(picker.get_by_role("button", name="茶.md")).to_be_visible()
    keep_screenshot(page, f"library-picker/{language}-{scheme}-{width}")
    assert_accessible(page)
    picker.locator("[data-use]").click()
    expect(page.locator("#tool-name")).to_have_value("新しい文書")
    expect(page.locator("#tool-name")).to_be_focused()
    page.locator("#about").fill("お茶の淹れ方。")
    keep_screenshot(page, f"library-add/{language}-{scheme}-{width}")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[width][0]
    assert_accessible(page)
    page.locator("#add-form button.main").click()
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
    page.locator(".add summary").click()
    picker = page.locator("#picker")
    for folder in ("Wrong one", "daily notes 📓 (茶)"):
        page.locator("[data-picker]").click()
        if folder != "Wrong one":
            picker.get_by_role("button", name="Parent folder").click()
        picker.get_by_role("button", name=folder).click()
        expect(picker.locator(".path")).to_contain_text(folder)
        picker.locator("[data-use]").click()
    expect(page.locator("#tool-name")).to_have_value("daily-notes-茶")
    page.locator("#add-form button.main").click()
    expect(page.locator('[data-job][data-state="done"]')).to_have_count(1)
    expect(card(page, "daily-notes-茶")).to_contain_text("玉露")


def test_a_folder_that_is_gone_says_so_where_it_was_chosen(
    open_own_page: PageOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/notes").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    page = open_own_page("/library", language="ja")
    page.locator(".add summary").click()
    page.locator("[data-picker]").click()
    entry = page.locator("#picker").get_by_role("button", name="notes")
    expect(entry).to_be_visible()
    (tmp_path / "home/notes").rmdir()
    entry.click()
    expect(page.locator("#picker .picker-note")).to_contain_text("notes")
    expect(entry).to_be_visible()
    assert len(open_own_page.problems) == 1  # the answer of the server, on the console
    open_own_page.problems.clear()


def test_a_memo_file_is_added_by_keys_alone(open_own_page: PageOpener, tmp_path: Path) -> None:
    entries = "".join(f"2024-05-0{day}  A  <a@example.com>\n\n\t* 散歩: 桜並木を歩いた。\n\n" for day in (2, 1))
    (tmp_path / "ChangeLog").write_text(entries, "utf-8")
    page = open_own_page("/library")
    page.locator(".add summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type(str(tmp_path / "ChangeLog"))
    page.keyboard.press("Enter")
    expect(page.locator("#found")).to_have_text("Found: a ChangeLog memo file with 2 entries from 2024")
    expect(page.locator("#kind")).to_have_value("memos")
    expect(page.locator("#tool-name")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card(page, "ChangeLog").locator("dd").first).to_have_text("2")


def test_another_kind_is_looked_at_again(open_own_page: PageOpener, tmp_path: Path) -> None:
    (tmp_path / "walks.md").write_text("## 2024-05-01\n\nFar.\n\n## 2024-05-02\n\nNear.\n", "utf-8")
    page = open_own_page("/library")
    page.locator(".add summary").click()
    page.locator("#source").fill(str(tmp_path / "walks.md"))
    page.locator("#look-up button.main").click()
    expect(page.locator("#found")).to_contain_text("a memo file with 2 entries")
    page.locator("#tool-name").fill("steps")
    page.locator("#kind").select_option("folder")
    expect(page.locator("#found")).to_contain_text("a Markdown document")
    expect(page.locator("#kind")).to_be_focused()
    expect(page.locator("#tool-name")).to_have_value("steps")
    page.locator("#add-form button.main").click()
    expect(card(page, "steps").locator("dd").first).to_have_text("1")


def test_a_page_and_a_site_are_fetched_with_live_progress(open_own_page: PageOpener, site: Site) -> None:
    page = open_own_page("/library")
    for number, (path, extent) in enumerate((("/c", "page"), ("/a", "site")), 1):
        page.locator(".add summary").click()
        page.locator("#source").fill(site.url(path))
        page.locator("#look-up button.main").click()
        expect(page.locator("#pattern")).to_be_hidden()
        page.locator(f"input[value={extent}]").check()
        expect(page.locator("#pattern")).to_be_visible(visible=extent == "site")
        page.locator("#add-form button.main").click()
        expect(page.locator('[data-job][data-state="done"]')).to_have_count(number)
    expect(page.locator('article[data-kind="web"] dd').first).to_have_text("3")


def test_an_import_shows_its_progress_and_can_be_cancelled(open_own_page: PageOpener) -> None:
    folder = Path(open_own_page.library.tool_status("handbook").status.tool.source)
    for number in range(3000):
        (folder / f"file-{number}.md").write_text(f"# Chapter {number}\n\n" + f"Text {number} about things. " * 60)
    page = open_own_page("/library")
    card(page, "handbook").locator('[data-action="import"]').click()
    running = page.locator('[data-job][data-state="running"]')
    expect(running.locator(".job-counts")).to_have_text(re.compile(r"[1-9][\d,]* of \d,\d{3}"))
    expect(running.locator(".job-message")).to_have_text(re.compile(r"file-\d+\.md"))
    keep_screenshot(page, "library-import/en")
    assert_accessible(page)
    page.reload()
    expect(running.locator(".job-counts")).to_have_text(re.compile(r"[1-9][\d,]* of \d,\d{3}"))
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
    page.locator(".add summary").click()
    page.locator("#source").fill("/no/such/folder")
    page.keyboard.press("Enter")
    expect(page.locator("#proposal [role=alert]")).to_contain_text(re.compile("[ぁ-ん]"))
    expect(page.locator("#source")).to_have_value("/no/such/folder")
    assert_accessible(page)


def test_documents_are_added_without_scripts(open_own_page: PageOpener, tmp_path: Path) -> None:
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea/green.md").write_text("# Green tea\n\nPour at 70 degrees.\n", "utf-8")
    page = open_own_page("/library", javascript=False, width="phone")
    expect(page.locator("[data-picker]")).to_be_hidden()
    page.locator(".add summary").click()
    page.locator("#source").fill(str(tmp_path / "tea"))
    page.locator("#look-up button.main").click()
    expect(page.locator("#found")).to_have_text("Found: a folder with 1 document: 1 Markdown")
    page.locator("#add-form button.main").click()
    expect(page.locator("[data-job]")).to_contain_text("tea")
    while not page.locator('[data-job][data-state="done"]').count():
        page.reload()
    expect(card(page, "tea").locator("dd").first).to_have_text("1")


@pytest.mark.parametrize(("language", "scheme", "width"), [("en", "light", "desktop"), ("ja", "dark", "phone")])
def test_an_embedder_is_chosen_for_the_next_start(
    open_own_page: PageOpener, language: Language, scheme: Scheme, width: Width
) -> None:
    page = open_own_page("/library/models", language=language, scheme=scheme, width=width)
    page.locator('button[name=name][value="hashing"]').click()
    expect(page.locator(".notice")).to_contain_text("BUNKO_EMBEDDING_PROVIDER")  # which comes first here
    keep_screenshot(page, f"library-model-chosen/{language}-{scheme}-{width}")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[width][0]
    assert_accessible(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_what_an_import_could_not_read_fits_the_screen(open_own_page: PageOpener, width: Width) -> None:
    folder = Path(open_own_page.library.tool_status("handbook").status.tool.source)
    (folder / "a-rather-long-name-of-a-broken-document.pdf").write_bytes(b"%PDF-1.4 nothing else")
    page = open_own_page("/library", width=width)
    card(page, "handbook").locator('[data-action="import"]').click()
    problem = page.locator(".job-problems li").first
    expect(problem).to_contain_text("a-rather-long-name")
    keep_screenshot(page, f"library-problems/{width}")
    box = problem.bounding_box()
    assert box
    assert box["height"] < 120
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[width][0]
    assert_accessible(page)
    page.locator(".job-problems a").click()
    expect(page.locator(".failures")).to_contain_text("a-rather-long-name")


def test_without_scripts_there_are_no_buttons_that_need_them(open_page: PageOpener) -> None:
    page = open_page("/library?tool=travel", javascript=False)
    expect(page.locator("svg.histogram")).to_be_visible()
    expect(page.locator("[data-action]:visible")).to_have_count(0)
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
