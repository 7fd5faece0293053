"""No reply tells where the library, its folders and its secrets are, except to those who may change them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from bunko.errors import BunkoError
from bunko.interfaces.page.app import build_page
from bunko.interfaces.sender import ClientIdentity
from bunko.interfaces.tools.registry import ToolRegistry, error_text
from bunko.interfaces.tools.tool import ToolCall
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Tool
from bunko.types.access import Caller, Rights
from tests.http_api.client import ApiClient
from tests.http_api.test_rights import requests
from tests.mcp.team import READABLE, Team, questions, serve_team

CALLERS = {
    "reader of some": Rights(READABLE),
    "reader of all": Rights(("*",)),
    "writer of one": Rights(("*",), ("recipes",)),
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A library, named by a flag, that has all the problems which messages tell of."""
    folder = tmp_path_factory.mktemp("team")
    key = folder / "keys" / "gemini key"
    key.parent.mkdir()
    key.write_text("sk-1", encoding="utf-8")
    key.chmod(0o644)
    environ = {
        "BUNKO_EMBEDDING_PROVIDER": "onnx",
        "BUNKO_EMBEDDING_MODEL": str(folder / "models" / "missing model"),
        "BUNKO_SEARCH_RERANKER": str(folder / "models" / "missing-reranker"),
        "BUNKO_EMBEDDING_GEMINI_API_KEY_FILE": str(key),
        "BUNKO_SEARCH_FRESHNESS_SECONDS": "0",
        "RAG_CRAWL_DELAY_SEC": "0",
    }
    with serve_team(folder) as served:
        recipes = Path(served.library.resolve_tool("recipes").source)
        (recipes / "broken.docx").write_bytes(b"PK nothing")
        tools = served.library.store.tools
        for name, source in (("empty folder", folder / "empty folder"), ("gone", folder / "gone")):
            source.mkdir()
            (source / "a.md").write_text("# 消えた蜜柑\n\n蜜柑は消えた。\n", encoding="utf-8")
            tools.put(Tool(name, "folder", "Recipes of the house.", str(source)))
        tools.put(Tool("not imported", "folder", "x", str(folder / "not imported")))
        tools.put(Tool("off", "folder", "Disabled things.", str(recipes), False))
        served.library.import_tools(["recipes", "gone", "empty folder"], "update")
        shutil.rmtree(folder / "gone")
        (folder / "empty folder" / "a.md").unlink()
        environ["BUNKO_CRAWL_ALLOWED_HOSTS"] = served.site.host
        paths = locate_library(library=folder / "library", environ={})
        with open_library(paths, environ=environ) as library:
            yield served._replace(library=library)


def places(team: Team) -> list[str]:
    """Return what a caller may not know: the test's folder, and what leads to it."""
    return [str(team.library.paths.folder.parent), "--library", "gemini key"]


def told(reply: str, team: Team, rights: Rights) -> list[str]:
    """Return what a reply tells of these places; the folder of a tool is for those who may change it."""
    for tool in team.library.tools():
        if rights.can_write(tool.name):
            reply = reply.replace(tool.source, "")
    return [place for place in places(team) if place in reply]


def more_requests() -> list[tuple[str, str, dict[str, Any], Any]]:
    tools = ["recipes", "gone", "empty folder", "not imported", "off"]
    return [
        *(("GET", "/search", {"q": "蜜柑", "tool": name}, None) for name in tools),
        *(("GET", "/documents", {"tool": name}, None) for name in tools),
        *(("GET", f"/tools/{name.replace(' ', '%20')}", {}, None) for name in tools),
        *(("POST", f"/tools/{name.replace(' ', '%20')}/import", {}, {}) for name in tools),
        *(("PATCH", f"/tools/{name.replace(' ', '%20')}", {}, {"source": "/"}) for name in tools),
        *(("PATCH", f"/tools/{name.replace(' ', '%20')}", {}, {"include": ["../../*"]}) for name in tools),
        *(("POST", "/ask", {}, {"question": "蜜柑は？", "tool": [name]}) for name in tools),
        *(("GET", "/judgements", {"tool": name, "q": "蜜柑"}, None) for name in tools),
        ("GET", "/search", {"q": "蜜柑", "mode": "semantic"}, None),
        ("GET", "/search", {"q": "蜜柑", "rerank": "true"}, None),
        ("GET", "/tools/routing", {}, None),
    ]  # fmt: skip


@pytest.mark.parametrize("name", CALLERS)
def test_no_answer_of_the_api_tells_where_anything_is(team: Team, name: str) -> None:
    rights = CALLERS[name]
    client = ApiClient(team.library).limited_to(read=rights.read, write=rights.write)
    calls = [
        (method, path, query, body) for (method, _), listed in requests(team).items() for path, query, body in listed
    ]
    for method, path, query, body in [*calls, *more_requests()]:
        reply = client.send(method, path, body=body, **query)
        text = reply.body.decode() + json.dumps(reply.headers)
        assert told(text, team, rights) == [], (method, path, query, text)
    for job in client.get("/jobs").json["jobs"]:
        client.registry.jobs.find(job["id"], client.caller)
    assert told(client.get("/jobs").body.decode(), team, rights) == []


def test_those_who_may_change_everything_see_where_things_are(team: Team) -> None:
    client = ApiClient(team.library)
    replies = [client.send(method, path, body=body, **query) for method, path, query, body in more_requests()
               if method == "GET"]  # fmt: skip
    texts = " ".join(reply.body.decode() for reply in replies)
    assert [place for place in places(team) if place not in texts] == []


@pytest.mark.parametrize("name", CALLERS)
def test_no_reply_to_an_assistant_tells_where_anything_is(team: Team, name: str) -> None:
    rights = CALLERS[name]
    registry, caller = ToolRegistry(lambda: team.library, toolsets=("all",)), Caller("limited", "http", rights)
    calls = [(tool, arguments) for tool, listed in questions(team.site).items() for arguments in listed]
    calls += [
        ("search", {"query": "蜜柑", "tool": tool}) for tool in ("recipes", "gone", "empty folder", "not imported")
    ]
    calls += [("search", {"query": "蜜柑", "mode": "semantic"}), ("list", {"tool": "gone"}), ("reindex", {})]
    called = set()
    for tool_name, arguments in calls:
        try:
            tool = registry.find_tool(tool_name, caller)
            if tool is None:
                continue
            called.add(tool_name)
            reply = registry.call(tool, dict(arguments), ToolCall(registry.access(caller), {}))
            text = reply.text + json.dumps(reply.structured, ensure_ascii=False)
        except BunkoError as error:
            text = error_text(error)
        assert told(text, team, rights) == [], (tool_name, arguments, text)
    assert {"search", "list", "read"} <= called
    listed = json.dumps([(tool.description, tool.input_schema) for tool in registry.tools(caller)], default=dict)
    assert told(listed, team, rights) == []


@pytest.mark.parametrize("name", CALLERS)
def test_no_page_tells_where_anything_is(team: Team, name: str) -> None:
    rights = CALLERS[name]
    app = build_page(ToolRegistry(lambda: team.library))
    identity = ClientIdentity(Caller("limited", "http", rights))

    async def identified(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "bunko.identity": identity}, receive, send)

    browser = TestClient(identified, follow_redirects=False)
    for address in (
        "/", "/?q=蜜柑", "/?q=蜜柑&tool=gone", "/?q=蜜柑&mode=semantic", "/?q=x&tool=not imported",
        "/documents/recipes/one.md", "/documents/gone/a.md", "/documents/nobody/a.md", "/ask?q=蜜柑は？",
        "/map", "/time",
        "/library", "/library/descriptions", "/library/models", "/library/settings", "/quality",
        "/quality/judge?tool=recipes&q=蜜柑", "/search-settings?tool=recipes",
    ):  # fmt: skip
        assert told(browser.get(address).text, team, rights) == [], address


@pytest.mark.skipif(os.name == "nt", reason="needs a path of this kind")
def test_an_error_of_the_library_tells_no_limited_caller_where_it_is(team: Team) -> None:
    folder = team.library.paths.folder
    for rights, is_told in ((Rights(("*",)), False), (Rights(("*",), ("*",)), True)):
        access = ToolRegistry(lambda: team.library).access(Caller("x", "http", rights))
        with pytest.raises(BunkoError) as caught, access.hiding_places():
            raise BunkoError(
                f"{folder}/library.db is damaged", hint=f"Run: bunko doctor --library '{folder}', see /api/docs or "
                "https://example.com/a/b and C:\\keys\\key, '/srv/my data/x' and ~/notes/a.md, guide/a.md."
            )  # fmt: skip
        text = str(caught.value)
        assert (str(folder) in text, "--library" in text, "my data" in text, "C:\\keys" in text, "~/notes" in text) == (
            (is_told,) * 5
        )
        assert "see /api/docs or https://example.com/a/b and" in text
        assert text.endswith("guide/a.md.")


def test_a_writer_cannot_empty_a_tool_by_a_pattern_that_leads_out_of_its_folder(team: Team) -> None:
    client = ApiClient(team.library).limited_to(read=("*",), write=("recipes",))
    for field in ("include", "exclude"):
        reply = client.send("PATCH", "/tools/recipes", body={field: ["../../*"]})
        assert (reply.status, reply.json["detail"]) == (
            400, "'../../*' matches no file in the folder of a tool"
        )  # fmt: skip
    assert team.library.resolve_tool("recipes").options.include == ()
