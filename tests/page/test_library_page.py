"""The page about the library: what its tools hold and lack, and only the buttons that would not be refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.library import catalog
from bunko.library.access import LibraryAccess
from bunko.library.library import Library
from bunko.types.access import ALL_RIGHTS, Caller, Rights
from tests.page.conftest import Visitor

READER = Rights(read=("*",))


def actions(text: str) -> set[str]:
    """Return what the buttons of a page do."""
    return set(re.findall(r'data-action="([a-z]+)"', text))


def test_each_tool_is_shown_with_its_state_and_size(browser: TestClient) -> None:
    text = browser.get("/library").text
    assert re.findall(r'<article class="tool[^"]*" id="tool-[^"]+" data-tool="([^"]+)"', text) == ["docs", "kitchen"]
    assert "How to build a telescope." in text
    assert re.search(r"<dt>Documents</dt>\s*<dd>3</dd>", text)
    assert re.search(r'<time datetime="\d{4}-\d\d-\d\dT[^"]+">\d{4}-\d\d-\d\d \d\d:\d\d</time>', text)


def test_the_details_of_a_tool_say_what_it_holds_and_what_has_changed(
    browser: TestClient, docs: Path, library: Library
) -> None:
    (docs / "new.md").write_text("# New\n\nNobody has imported this.\n", "utf-8")
    (docs / "bread.md").unlink()
    text = browser.get("/library", params={"tool": "docs"}).text
    assert "New files: 1" in text
    assert "Gone: 1" in text
    assert re.search(r"Japanese[^<]*</dt>|Japanese</span>", text)
    assert "English" in text
    assert '<svg class="histogram"' in text
    assert len(re.findall(r"<title>[\d,]+ to [\d,]+ characters: \d+ chunks?</title>", text)) >= 1
    assert str(docs) in text
    assert library.tool_status("docs").status.totals.documents == 3  # looking imports nothing


def test_a_document_that_failed_is_listed_with_its_reason(browser: TestClient, docs: Path, library: Library) -> None:
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 nothing else")
    library.import_("docs")
    [problem] = [item for item in library.tool_status("docs").status.problems if item.uri == "broken.pdf"]
    overview = browser.get("/library").text
    assert "Failures: 1" in overview
    text = browser.get("/library", params={"tool": "docs"}).text
    assert "broken.pdf" in text
    assert problem.reason.splitlines()[0].split("'")[0] in text


def test_an_empty_file_is_left_out_and_no_failure(browser: TestClient, docs: Path, library: Library) -> None:
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 nothing else")
    (docs / "empty.md").write_text("", "utf-8")
    library.import_("docs")
    assert "Failures: 1<" in browser.get("/library").text
    failures, left_out = browser.get("/library", params={"tool": "docs"}).text.split("Files left out: 1<")
    assert "Failures: 1<" in failures
    assert "broken.pdf" in failures
    assert "empty.md" not in failures
    assert "empty.md" in left_out
    assert "is empty; it will be indexed when it has content" in left_out


def test_whoever_started_the_server_may_do_everything(visit: Visitor) -> None:
    text = visit(is_local=True, is_owner=True).get("/library", params={"tool": "docs"}).text
    assert actions(text) >= {"import", "disable", "delete", "rebuild"}
    assert 'id="add-folder"' in text
    assert 'id="add-web"' in text
    assert "data-picker" in text


def test_who_may_only_read_sees_no_button_that_would_be_refused(visit: Visitor, docs: Path) -> None:
    text = visit(READER).get("/library", params={"tool": "docs"}).text
    assert "How to build a telescope." in text
    assert actions(text) == set()
    assert "add-folder" not in text
    assert "add-web" not in text
    assert "<textarea" not in text
    assert str(docs) not in text


def test_a_token_for_one_tool_changes_only_that_tool(visit: Visitor) -> None:
    text = visit(Rights(read=("kitchen",), write=("docs",))).get("/library").text
    articles = re.split(r"<article ", text)[1:]
    assert [actions(article) != set() for article in articles] == [True, False]
    assert "add-folder" not in text
    assert "add-web" not in text


def test_a_token_of_the_server_names_folders_without_looking_at_them(visit: Visitor) -> None:
    text = visit(is_owner=True).get("/library").text
    assert 'id="add-folder"' in text
    assert "data-picker" not in text


def test_a_server_that_only_reads_shows_no_buttons(visit: Visitor) -> None:
    text = visit(is_local=True, is_owner=True, read_only=True).get("/library", params={"tool": "docs"}).text
    assert actions(text) == set()
    assert "add-folder" not in text


def test_a_tool_that_somebody_may_not_read_is_not_there(visit: Visitor) -> None:
    limited = visit(Rights(read=("docs",)))
    for address in ("/library", "/library/descriptions", "/library/models", "/library/settings"):
        assert "kitchen" not in limited.get(address).text
    assert limited.get("/library", params={"tool": "kitchen"}).status_code == 404


def test_disabled_tools_say_that_assistants_do_not_see_them(visit: Visitor, library: Library) -> None:
    LibraryAccess(library, Caller("t", "http", ALL_RIGHTS)).tool_care.set_active("kitchen", active=False)
    text = visit(is_local=True, language="ja").get("/library").text
    assert "アシスタントには非表示" in text
    assert "enable" in actions(text)


def test_a_part_of_the_page_has_only_what_changes(browser: TestClient) -> None:
    text = browser.get("/library", params={"part": "live"}).text
    assert text.lstrip().startswith('<div id="live"')
    assert "<html" not in text


def test_running_jobs_are_shown_with_their_progress(visit: Visitor) -> None:
    client = visit(is_local=True, is_owner=True)
    registry = client.registry
    caller = client.caller

    def run(call: ToolCall) -> ToolReply:
        call.report_progress(3, 12, "")
        call.stop.wait(30)
        return ToolReply("", {})

    job = registry.jobs.start("import", run, ToolCall(registry.access(caller), {}), subject="docs")
    try:
        text = client.get("/library").text
        while 'value="3"' not in text:
            text = client.get("/library").text
        assert f'data-job="{job.id}"' in text
        assert '<progress max="12" value="3"' in text
        assert "cancel" in actions(text)
    finally:
        registry.jobs.cancel(job.id, caller)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_routing_check_tells_where_questions_would_go(visit: Visitor, library: Library, language: str) -> None:
    catalog.update_tool(library.store, "kitchen", description="Information about various documents.")
    text = visit(is_local=True, language=language).get("/library/descriptions").text
    assert {"en": "too general", "ja": "漠然としています"}[language] in text
    assert re.search(r'<th scope="row">\s*<a href="/library\?tool=docs', text)


def test_embedders_and_chat_models_say_what_they_lack(visit: Visitor) -> None:
    text = visit(is_local=True).get("/library/models").text
    assert "in use" in text
    assert "OPENAI_API_KEY" in text
    assert "ollama" in text
    assert visit(Rights(read=("docs",))).get("/library/models").status_code == 403


def test_settings_say_where_they_come_from(visit: Visitor) -> None:
    text = visit(is_local=True).get("/library/settings").text
    assert "BUNKO_SEARCH_FRESHNESS_SECONDS" in text
    assert "search.freshness_seconds" in text
    assert visit(READER).get("/library/settings").status_code == 403


def test_links_lead_only_to_what_somebody_may_see(visit: Visitor) -> None:
    assert "/library/settings" in visit(is_local=True).get("/library").text
    text = visit(Rights(read=("docs",))).get("/library").text
    assert "/library/settings" not in text
    assert "/library/models" not in text
