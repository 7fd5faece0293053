"""What a token may not read does not exist for it: no answer, status or hint of the API tells of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from bunko.interfaces.api.routes import all_endpoints
from tests.http_api.client import ApiClient
from tests.mcp.team import HIDDEN, READABLE, Team, serve_team


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with serve_team(tmp_path_factory.mktemp("team")) as served:
        yield served


def requests(team: Team) -> dict[tuple[str, str], list[tuple[str, dict[str, Any], Any]]]:
    """Return requests to each endpoint, which would return or name what is hidden if it could be seen."""
    page = quote(team.site.url("/confidential"), safe="")
    hidden_document = ["one.md", quote("葡萄", safe=""), page]
    return {
        ("GET", "/search"): [
            ("/search", {"q": "葡萄の計画"}, None), ("/search", {"q": "葡萄", "explain": "true", "top_k": 50}, None),
            ("/search", {"q": "", "path": "*"}, None), ("/search", {"q": "x", "tool": "secret"}, None),
        ],
        ("GET", "/documents"): [
            ("/documents", {"limit": 1000}, None), ("/documents", {"tag": "budou"}, None),
            ("/documents", {"tool": "secret"}, None),
        ],
        ("GET", "/documents/{tool}/{path}"): [
            *((f"/documents/secret/{path}", {}, None) for path in hidden_document),
            (f"/documents/pages/{page}", {}, None), ("/documents/recipes/bunko:%2F%2Fsecret%2Fone.md", {}, None),
        ],
        ("GET", "/outlines/{tool}/{path}"): [("/outlines/secret/one.md", {}, None)],
        ("POST", "/documents/{tool}/{path}/open"): [("/documents/secret/one.md/open", {}, {})],
        ("GET", "/folders"): [("/folders", {}, None)],
        ("GET", "/tools"): [("/tools", {}, None)],
        ("POST", "/tools"): [("/tools", {}, {"name": "secret", "description": "x", "kind": "web"})],
        ("GET", "/tools/routing"): [("/tools/routing", {}, None)],
        ("GET", "/tools/{name}"): [("/tools/secret", {}, None), ("/tools/secret-pages", {}, None)],
        ("PATCH", "/tools/{name}"): [("/tools/secret", {}, {"active": False})],
        ("DELETE", "/tools/{name}"): [("/tools/secret", {}, None)],
        ("POST", "/tools/{name}/import"): [("/tools/secret/import", {}, {})],
        ("GET", "/memos/recent"): [("/memos/recent", {"limit": 1000}, None), ("/memos/recent", {"tag": "budou"}, None)],
        ("GET", "/memos/tags"): [("/memos/tags", {}, None)],
        ("GET", "/web"): [("/web", {}, None)],
        ("POST", "/web/pages"): [("/web/pages", {}, {"urls": [team.site.url("/new")]})],
        ("DELETE", "/web/pages"): [("/web/pages", {"url": team.site.url("/confidential")}, None)],
        ("POST", "/web/crawls"): [("/web/crawls", {}, {"url": team.site.url("/new")})],
        ("GET", "/jobs"): [("/jobs", {}, None)],
        ("GET", "/jobs/{id}"): [("/jobs/import-1", {}, None)],
        ("DELETE", "/jobs/{id}"): [("/jobs/import-1", {}, None)],
        ("GET", "/status"): [("/status", {}, None)],
        ("GET", "/settings"): [("/settings", {}, None)],
        ("GET", "/embedders"): [("/embedders", {}, None)],
        ("GET", "/models"): [("/models", {}, None)],
        ("GET", "/map"): [("/map", {"color": color}, None) for color in ("tool", "tag", "year")],
        ("GET", "/map/position"): [("/map/position", {"q": "葡萄"}, None)],
        ("GET", "/calendar"): [("/calendar", {}, None), ("/calendar", {"tool": "secret-diary"}, None)],
        ("GET", "/tags/years"): [("/tags/years", {}, None), ("/tags/years", {"tool": "secret-diary"}, None)],
        ("POST", "/selections"): [("/selections", {}, {"documents": {"secret": ["one.md"]}})],
        ("GET", "/evaluations"): [("/evaluations", {}, None)],
        ("GET", "/evaluations/{id}"): [("/evaluations/secret", {}, None)],
        ("GET", "/judgements"): [
            ("/judgements", {"tool": "secret"}, None), ("/judgements", {"tool": "secret", "q": "葡萄"}, None),
            ("/judgements", {"tool": "recipes", "q": "葡萄の計画", "top_k": 100}, None),
        ],
        ("POST", "/judgements"): [
            ("/judgements", {}, {"tool": "secret", "query": "x", "path": "one.md", "grade": 1}),
            ("/judgements", {}, {"tool": "recipes", "query": "x", "path": "葡萄", "grade": 1}),
        ],
        ("POST", "/ask"): [
            ("/ask", {}, {"question": "葡萄の計画は？"}), ("/ask", {}, {"question": "x", "tool": ["secret"]}),
        ],
    }  # fmt: skip


# Streams have tests of their own; the others belong to other parts of this package.
TESTED_ELSEWHERE = {("GET", "/events")}


def test_every_endpoint_is_asked_for_what_is_hidden(team: Team) -> None:
    known = {(endpoint.method, endpoint.path) for endpoint in all_endpoints()}
    assert known - set(requests(team)) - TESTED_ELSEWHERE == set()


@pytest.mark.parametrize("write", [(), ("recipes", "diary")], ids=["reader", "writer"])
def test_no_answer_tells_of_hidden_tools(team: Team, write: tuple[str, ...]) -> None:
    client = ApiClient(team.library).limited_to(read=READABLE, write=write)
    before = team.library.status()
    for (method, _), calls in requests(team).items():
        for path, query, body in calls:
            reply = client.send(method, path, body=body, **query)
            question = json.dumps([path, query, body], ensure_ascii=False)
            text = reply.body.decode() + json.dumps(reply.headers)
            told = [word for word in HIDDEN if word in text and word not in question]
            assert told == [], (method, path, text)
            assert reply.status < 500, text
    after = team.library.status()
    assert [tool.tool.name for tool in after.tools] == [tool.tool.name for tool in before.tools]


def test_a_hidden_tool_is_answered_like_one_that_nobody_has(team: Team) -> None:
    client = ApiClient(team.library).limited_to(read=READABLE, write=("recipes",))
    for method, path, body in (
        ("GET", "/tools/{}", None),
        ("PATCH", "/tools/{}", {"active": False}),
        ("DELETE", "/tools/{}", None),
        ("POST", "/tools/{}/import", {}),
        ("GET", "/documents/{}/one.md", None),
    ):
        hidden, unknown = (client.send(method, path.format(name), body=body) for name in ("secret", "nobody"))
        assert hidden.status == unknown.status == 404
        assert hidden.body.replace(b"secret", b"nobody") == unknown.body


def test_who_may_only_read_changes_nothing(team: Team) -> None:
    reader = ApiClient(team.library).limited_to(read=("*",))
    for (method, path), calls in requests(team).items():
        if method == "GET" or path in ("/ask", "/selections", "/documents/{tool}/{path}/open"):
            continue
        for address, query, body in calls:
            assert reader.send(method, address, body=body, **query).status == 403, address


def test_a_server_that_only_reads_refuses_changes_of_its_owner(team: Team) -> None:
    client = ApiClient(team.library, read_only=True)
    assert client.post("/tools/recipes/import").json["detail"] == "This server only reads"
    assert client.get("/search", q="蜜柑").status == 200


def test_paths_of_the_server_are_for_those_who_may_change_them(team: Team) -> None:
    folder = str(team.library.paths.folder.parent).encode()
    reader = ApiClient(team.library).limited_to(read=("*",))
    for path in ("/status", "/tools", "/tools/recipes"):
        assert folder not in reader.get(path).body
        assert folder in ApiClient(team.library).get(path).body
