"""The page about the library: what its tools hold and lack, and only the buttons that would not be refused."""

from __future__ import annotations

import json
import re
import sys
import threading
import tomllib
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from bunko.interfaces.tools.jobs import Job
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.library.access import LibraryAccess
from bunko.library.library import Library
from bunko.library.tools import catalog
from bunko.settings import all_settings
from bunko.types.access import ALL_RIGHTS, Caller, Rights
from tests.page.conftest import Visit, Visitor

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


def test_the_room_of_vectors_that_no_document_uses_is_shown_to_those_who_may_read_all(
    visit: Visitor, browser: TestClient, library: Library
) -> None:
    assert "· unused vectors" not in browser.get("/library").text
    tool = library.resolve_tool("docs")
    library.store.vectors.pin(tool.id, "other", {b"key": np.ones(250, np.float32)})
    assert "· unused vectors: 1.0 kB" in browser.get("/library").text
    assert "使っていないベクトル 1.0 kB" in visit(language="ja").get("/library").text
    assert "· unused vectors" not in visit(Rights(read=("docs",))).get("/library").text


def test_the_details_of_a_tool_say_what_it_holds_and_what_has_changed(
    browser: TestClient, docs: Path, library: Library
) -> None:
    (docs / "new.md").write_text("# New\n\nNobody has imported this.\n", "utf-8")
    (docs / "bread.md").unlink()
    text = browser.get("/library", params={"tool": "docs"}).text
    assert "New files: 1" in text
    assert "Deleted: 1" in text
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
    assert "Could not be read: 1" in overview
    text = browser.get("/library", params={"tool": "docs"}).text
    assert "broken.pdf" in text
    assert problem.reason.splitlines()[0].split("'")[0] in text


def test_an_empty_file_is_left_out_and_no_failure(browser: TestClient, docs: Path, library: Library) -> None:
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 nothing else")
    (docs / "empty.md").write_text("", "utf-8")
    library.import_("docs")
    assert "Could not be read: 1<" in browser.get("/library").text
    failures, left_out = browser.get("/library", params={"tool": "docs"}).text.split("Files left out: 1<")
    assert "Could not be read: 1<" in failures
    assert "broken.pdf" in failures
    assert "empty.md" not in failures
    assert "empty.md" in left_out
    assert "is empty; it will be indexed when it has content" in left_out


def test_a_file_of_blanks_is_left_out_and_no_failure(browser: TestClient, docs: Path, library: Library) -> None:
    (docs / "blank.md").write_text("\n \n", "utf-8")
    (docs / "head.md").write_text("---\ntitle: Later\n---\n", "utf-8")
    library.import_("docs")
    assert re.findall(r"Could not be read: \d+", browser.get("/library").text) == []
    text = browser.get("/library", params={"tool": "docs"}).text
    assert re.findall(r"Could not be read: \d+", text) == []
    assert "Files left out: 2<" in text


def test_files_whose_package_is_missing_are_failures(
    browser: TestClient, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x.pdf", "y.pdf"):
        (docs / name).write_bytes(b"%PDF-1.4")
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    assert "Could not be read: 2<" in browser.get("/library").text
    text = browser.get("/library", params={"tool": "docs"}).text
    assert "Could not be read: 2<" in text
    assert "cannot be read without the package pypdfium2" in text


def test_languages_are_counted_over_all_documents_and_not_over_the_first(
    browser: TestClient, docs: Path, library: Library, tmp_path: Path
) -> None:
    lines = [{"text": f"The server number {number} keeps the index of documents."} for number in range(1500)]
    lines += [{"text": f"サーバー {number} は文書の索引を保ちます。"} for number in range(500)]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    library.tools.add("lines", "Lines", file, kind="jsonl")
    library.import_("lines")
    text = browser.get("/library", params={"tool": "lines"}).text
    shares = re.findall(r'<span class="number">(\d+) %</span>', text)
    assert shares == ["75", "25"]
    assert "Of a sample of 1,000 documents." in text


def test_one_tool_is_not_called_several(browser: TestClient, library: Library) -> None:
    catalog.delete_tool(library.store, "kitchen")
    assert "1 tools" not in browser.get("/library").text


def test_whoever_started_the_server_may_do_everything(visit: Visitor) -> None:
    text = visit(is_local=True, is_owner=True).get("/library", params={"tool": "docs"}).text
    assert actions(text) >= {"import", "disable", "delete", "rebuild"}
    assert 'id="look-up"' in text
    assert "data-picker" in text


def test_who_may_only_read_sees_no_button_that_would_be_refused(visit: Visitor, docs: Path) -> None:
    text = visit(READER).get("/library", params={"tool": "docs"}).text
    assert "How to build a telescope." in text
    assert actions(text) == set()
    assert "look-up" not in text
    assert "<textarea" not in text
    assert str(docs) not in text


def test_a_token_for_one_tool_changes_only_that_tool(visit: Visitor) -> None:
    text = visit(Rights(read=("kitchen",), write=("docs",))).get("/library").text
    articles = re.split(r"<article ", text)[1:]
    assert [actions(article) != set() for article in articles] == [True, False]
    assert "look-up" not in text


def test_a_token_of_the_server_names_folders_without_looking_at_them(visit: Visitor) -> None:
    text = visit(is_owner=True).get("/library").text
    assert 'id="look-up"' in text
    assert "data-picker" not in text


def add(browser: TestClient, **fields: str) -> str:
    """Return what the form says about a source."""
    return unescape(browser.post("/library", params={"part": "proposal"}, data=fields).text)


def wait_for_import(browser: Visit) -> Job:
    [job] = [job for job in browser.registry.jobs.visible(browser.caller) if job.name == "import"]
    for thread in threading.enumerate():
        if thread.name == job.id:
            thread.join(30)
    assert job.state == "done", job.error
    return job


def test_a_folder_is_recognised_named_and_imported(visit: Visitor, library: Library, tmp_path: Path) -> None:
    garden = tmp_path / "My garden"
    garden.mkdir()
    for name in "ab":
        (garden / f"{name}.md").write_text(f"# {name}\n\nRoses need sun and water.\n", "utf-8")
    (garden / "photo.raw").write_bytes(b"\0")
    owner = visit(is_owner=True)
    text = add(owner, source=str(garden))
    assert "Found:</b> a folder with 2 documents: 2 Markdown" in text
    assert "Not read: " in text
    assert 'name="name" value="My-garden"' in text
    assert [tool.name for tool in library.tools()] == ["docs", "kitchen"], "looking adds nothing"
    fields = {"source": str(garden), "add": "1", "name": "roses", "kind": "folder", "description": "About roses."}
    reply = owner.post("/library", data=fields)
    assert (reply.status_code, reply.headers["location"]) == (303, "/library#jobs")
    wait_for_import(owner)
    status = library.tool_status("roses").status
    assert (status.totals.documents, status.tool.description) == (2, "About roses.")
    page = owner.get("/library").text
    assert re.search(r'href="/library\?tool=roses"><bdi>roses</bdi></a>', page)
    assert re.search(r"Done(?: in [\d.]+ s)?</span>\s*<span[^>]*>2 added</span>", page)


def test_the_kind_of_what_is_added_can_be_changed(visit: Visitor, library: Library, tmp_path: Path) -> None:
    days = "".join(f"## 2024-05-0{day}\n\nWalked {day} miles.\n\n" for day in range(1, 4))
    (tmp_path / "walks.md").write_text(days, "utf-8")
    owner, source = visit(is_owner=True), str(tmp_path / "walks.md")
    text = add(owner, source=source)
    assert "a memo file with 3 entries from 2024" in text
    assert '<option value="memos" selected>' in text
    text = add(owner, source=source, kind="folder", name="steps")
    assert "a Markdown document" in text
    assert '<option value="folder" selected>' in text
    assert 'name="name" value="steps"' in text
    owner.post("/library", data={"source": source, "add": "1", "kind": "folder", "name": "steps"})
    wait_for_import(owner)
    assert library.tool_status("steps").status.totals.documents == 1


def test_what_is_a_tool_already_is_brought_up_to_date(visit: Visitor, library: Library, docs: Path) -> None:
    owner = visit(is_owner=True)
    (docs / "new.md").write_text("# New\n\nJust written.\n", "utf-8")
    text = add(owner, source=str(docs))
    assert "Already in the library:" in text
    assert 'href="/library?tool=docs"' in text
    owner.post("/library", data={"source": str(docs), "add": "1"})
    wait_for_import(owner)
    assert len(library.tools()) == 2
    assert library.tool_status("docs").status.totals.documents == 4


def test_a_folder_inside_another_tool_is_named_as_that(visit: Visitor, docs: Path) -> None:
    assert f"{docs / 'guide'} is inside {docs}, the folder of docs." in add(
        visit(is_owner=True), source=f"{docs}/guide"
    )


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "Nothing was given to add"),
        ("notes", "'notes' is not an absolute path"),
        ("/no/such/folder", "There is no file or folder /no/such/folder"),
        ("ftp://example.com", "ftp://example.com cannot be added: only http:// and https:// addresses can"),
        ("~nobody-has-this-name/notes", "'~nobody-has-this-name/notes' is not an absolute path"),
        ("/tmp/\0notes", "'/tmp/\\x00notes' is not an absolute path"),
        ("/dev/null", "/dev/null is neither a folder nor a regular file"),
    ],
)
def test_what_cannot_be_added_is_told_beside_the_field(visit: Visitor, source: str, problem: str) -> None:
    owner = visit(is_owner=True)
    for fields in ({"source": source}, {"source": source, "add": "1"}):
        reply = owner.post("/library", data=fields)
        assert reply.status_code == 400
        assert problem in unescape(reply.text)
        assert f'name="source" value="{source}"' in reply.text
    assert re.search("[ぁ-ん]", add(visit(is_owner=True, language="ja"), source=source))


def test_the_form_stays_when_a_name_is_taken(visit: Visitor, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# A\n\nRoses need sun.\n", "utf-8")
    fields = {"source": str(tmp_path / "notes"), "add": "1", "kind": "memos", "name": "docs", "description": "Roses."}
    reply = visit(is_owner=True).post("/library", data=fields)
    assert reply.status_code == 400
    assert "A tool named 'docs' already exists" in unescape(reply.text)
    assert 'name="name" value="docs"' in reply.text
    assert '<option value="memos" selected>' in reply.text
    assert ">Roses.</textarea>" in reply.text


def test_a_kind_that_there_is_not_adds_nothing(visit: Visitor, library: Library, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# A\n\nRoses need sun.\n", "utf-8")
    fields = {"source": str(tmp_path / "notes"), "add": "1", "kind": "diary", "name": "notes"}
    reply = visit(is_owner=True).post("/library", data=fields)
    assert (reply.status_code, "There is no kind 'diary'" in unescape(reply.text)) == (400, True)
    assert [tool.name for tool in library.tools()] == ["docs", "kitchen"]


def test_an_address_is_a_page_or_a_site(visit: Visitor) -> None:
    text = add(visit(is_owner=True), source="https://example.com/guide")
    assert "Web page:" in text
    assert "https://example.com/guide" in text
    assert '<input type="radio" name="extent" value="page" checked>' in text
    assert 'id="tool-name"' not in text


def test_who_may_not_add_learns_nothing_about_a_folder(visit: Visitor, docs: Path) -> None:
    for caller in (visit(), visit(READER), visit(READER, is_owner=True)):
        for fields in ({"source": str(docs)}, {"source": str(docs), "add": "1"}, {"source": "/no/such/folder"}):
            text = add(caller, **fields)
            assert "This token may not" in text
            assert "Already in the library" not in text
            assert "There is no file" not in text
    reply = visit(is_owner=True, read_only=True).post("/library", data={"source": str(docs)})
    assert reply.status_code == 403


def test_an_empty_library_begins_with_the_form(visit: Visitor, library: Library) -> None:
    owner = visit(is_owner=True)
    page = owner.get("/library").text
    assert '<details>\n<summary><h2 id="add-title">' in page
    assert page.index('id="look-up"') < page.index('id="live"')
    for name in ("docs", "kitchen"):
        catalog.delete_tool(library.store, name)
    assert '<details open>\n<summary><h2 id="add-title">' in owner.get("/library").text


def test_what_an_import_could_not_read_is_told_with_the_reason(visit: Visitor, docs: Path) -> None:
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 nothing else")
    owner = visit(is_owner=True)
    owner.post("/library", data={"source": str(docs), "add": "1"})
    wait_for_import(owner)
    page = owner.get("/library").text
    assert "1 not read" in page
    assert re.search(r'<bdi class="path">broken.pdf</bdi> \S+', page)
    assert "All of them, with what to do" in page


def test_an_import_without_changes_says_so(visit: Visitor, docs: Path) -> None:
    owner = visit(is_owner=True)
    owner.post("/library", data={"source": str(docs), "add": "1"})
    wait_for_import(owner)
    assert "nothing had changed" in owner.get("/library").text


def test_a_server_that_only_reads_shows_no_buttons(visit: Visitor) -> None:
    text = visit(is_local=True, is_owner=True, read_only=True).get("/library", params={"tool": "docs"}).text
    assert actions(text) == set()
    assert "look-up" not in text


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
    library.tools.update("kitchen", description="Information about various documents.")
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


def test_whoever_runs_the_server_changes_a_setting_in_the_file_of_bunko_config_set(
    visit: Visitor, library: Library, tmp_path: Path
) -> None:
    file = tmp_path / "config" / "bunko" / "bunko.toml"
    owner = visit(is_local=True, is_owner=True)
    assert "/library/settings?key=search.top_k" in owner.get("/library/settings").text
    form = owner.get("/library/settings", params={"key": "search.top_k"}).text
    assert '<input type="hidden" name="key" value="search.top_k">' in form
    assert str(file) in form
    reply = owner.post("/library/settings", data={"key": "search.top_k", "value": "20"})
    assert reply.status_code == 303
    assert tomllib.loads(file.read_text("utf-8")) == {"search": {"top_k": 20}}
    text = owner.get(reply.headers["location"]).text
    assert f"Saved in {file}. It counts when bunko is started again." in unescape(text)
    assert re.search(r"search\.top_k</a></code></th><td><bdi>20</bdi> <span class=\"chip\">after a restart", text)
    assert library.settings.search.top_k == 5
    entry = next(iter(library.store.audit.entries()))
    assert (entry.action, entry.who, entry.result) == ("config set", "tester", "done")
    owner.post("/library/settings", data={"key": "search.top_k", "unset": "1", "value": "20"})
    assert tomllib.loads(file.read_text("utf-8")) == {"search": {}}


def test_a_setting_of_the_environment_is_said_to_come_before_the_file(visit: Visitor) -> None:
    owner = visit(is_owner=True, language="ja")
    reply = owner.post("/library/settings", data={"key": "search.freshness_seconds", "value": "7"})
    text = unescape(owner.get(reply.headers["location"]).text)
    assert "ここでは 3600.0 です。" in text
    assert "このファイルより優先されます" in text
    assert "に保存しました。bunko を次に起動したときから有効になります。" in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"key": "search.top_k", "value": "many"}, "整数"),
        ({"key": "search.top_kk", "value": "3"}, "'search.top_kk' という設定はありません"),
        ({"key": "embedding.gemini_api_key", "value": "AIza-secret"}, "秘密の値"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_on_the_page(
    visit: Visitor, tmp_path: Path, fields: dict[str, str], message: str
) -> None:
    reply = visit(is_owner=True, language="ja").post("/library/settings", data=fields)
    assert reply.status_code == 400
    assert message in unescape(reply.text)
    assert not (tmp_path / "config" / "bunko" / "bunko.toml").exists()


def test_a_secret_is_named_by_its_file(visit: Visitor) -> None:
    owner = visit(is_owner=True)
    text = owner.get("/library/settings", params={"key": "embedding.gemini_api_key"}).text
    assert 'name="key" value="embedding.gemini_api_key_file"' in text
    assert "File that contains the key" in text
    choices = owner.get("/library/settings", params={"key": "search.mode"}).text
    assert "<option selected>hybrid</option>" in choices
    assert "<option>bm25</option>" in choices


@pytest.mark.parametrize(
    ("key", "text", "value", "wrong", "expected"),
    [
        ("search.top_k", "20", 20, "2.5", "a whole number from 1 to 1000"),
        ("search.freshness_seconds", "0.5", 0.5, "soon", "a number of at least 0"),
        ("search.mode", "bm25", "bm25", "fast", "one of "),
        ("chunker.heading_levels", "1, 2", [1, 2], "1, 9", "a list of whole numbers from 1 to 6"),
        ("embedding.trust_remote_code", "true", True, "maybe", "true or false"),
        ("search.reranker", "/models/mine", "/models/mine", "a\0b", "text, or nothing"),
    ],
)
def test_every_kind_of_setting_is_written_and_checked(
    visit: Visitor, tmp_path: Path, key: str, text: str, value: object, wrong: str, expected: str
) -> None:
    owner, file = visit(is_owner=True), tmp_path / "config/bunko/bunko.toml"
    section, _, name = key.partition(".")
    assert owner.post("/library/settings", data={"key": key, "value": text}).status_code == 303
    assert tomllib.loads(file.read_text("utf-8")) == {section: {name: value}}
    reply = owner.post("/library/settings", data={"key": key, "value": wrong})
    assert reply.status_code == 400
    assert f"but it must be {expected}" in unescape(reply.text)
    assert tomllib.loads(file.read_text("utf-8")) == {section: {name: value}}


def test_the_form_of_a_setting_says_what_it_means_and_allows(visit: Visitor) -> None:
    owner = visit(is_owner=True)

    def form(key: str) -> str:
        return unescape(owner.get("/library/settings", params={"key": key}).text)

    assert "Allowed: a whole number from 1 to 1000. Default: 5." in form("search.top_k")
    assert 'inputmode="decimal"' in form("search.top_k")
    assert "Separate several with commas." in form("chunker.heading_levels")
    assert "a file that contains only the key" in form("embedding.gemini_api_key")
    assert all_settings()["search.top_k"].meaning in form("search.top_k")
    japanese = visit(is_owner=True, language="ja").get("/library/settings", params={"key": "search.top_k"}).text
    assert "1 から 1000 まで" in japanese


def test_a_token_however_far_its_rights_go_changes_no_settings(visit: Visitor, tmp_path: Path) -> None:
    fields = {"key": "search.top_k", "value": "20"}
    for visitor, status in ((visit(), 403), (visit(READER), 403), (visit(is_owner=True, read_only=True), 403)):
        assert visitor.post("/library/settings", data=fields).status_code == status
        assert "?key=" not in visitor.get("/library/settings", params={"key": "search.top_k"}).text
    assert not (tmp_path / "config" / "bunko" / "bunko.toml").exists()
