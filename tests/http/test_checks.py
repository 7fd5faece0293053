"""What every part refuses alike: a foreign Host, a foreign Origin, and whoever has neither token nor session."""

from __future__ import annotations

import json

import pytest

from bunko.interfaces.http.guards import CONTENT_SECURITY_POLICY
from tests.http.server import BEARER, Reply, Site

PATHS = ("/mcp", "/api/v1/search", "/", "/login", "/metrics")


def problem_of(reply: Reply) -> dict[str, object]:
    assert reply.headers["Content-Type"] == "application/problem+json"
    found: dict[str, object] = json.loads(reply.text)
    assert found["status"] == reply.status
    return found


@pytest.mark.parametrize("path", [*PATHS, "/assets/x/y.js"])
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
def test_a_name_that_was_bent_to_this_machine_is_refused(site: Site, path: str, host: str) -> None:
    assert site.call(path, Cookie=site.session, Host=host).status == 421


@pytest.mark.parametrize("path", [*PATHS, "/assets/x/y.js"])
@pytest.mark.parametrize("port", [":80@evil.example", ":80,evil.example", ":80.", ":", ":999999", ":-1"])
def test_what_follows_a_name_of_this_machine_must_be_a_port(site: Site, path: str, port: str) -> None:
    assert site.call(path, Cookie=site.session, Host=f"127.0.0.1{port}").status == 421


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://127.0.0.1:18801.evil.com",
        "http://localhost:evil", "http://localhost:80@evil.example", "http://localhost/", "ftp://localhost",
    ],
)  # fmt: skip
def test_pages_of_other_sites_are_refused_even_with_token_and_session(site: Site, path: str, origin: str) -> None:
    assert site.call(path, Cookie=site.session, Origin=origin).status == 403


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/search", "/", "/metrics", "/nothing"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic YTpi"},
        {"Cookie": "bunko_session=server.9999999999..c2lnbmF0dXJl"},
    ],
)
def test_nobody_gets_in_without_token_or_session(site: Site, path: str, headers: dict[str, str]) -> None:
    reply = site.ask(path, **headers)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"].startswith("Bearer")


def test_programs_read_problem_details(site: Site) -> None:
    unknown = problem_of(site.ask("/api/v1/search?q=x", Accept="text/html"))
    assert unknown["type"] == "/problems/unauthorized"
    assert unknown["title"] == "Unauthorized"
    assert unknown["detail"] == "A bearer token is required"
    assert unknown["hint"] == "See `bunko serve --http`."
    assert problem_of(site.call("/api/v1/search", Host="evil.example"))["type"] == "/problems/wrong_host"
    assert problem_of(site.call("/api/v1/search", Origin="null"))["type"] == "/problems/wrong_origin"


def test_mcp_clients_read_why_they_were_refused(site: Site) -> None:
    reply = site.ask("/mcp", Authorization="Bearer wrong")
    assert reply.headers["Content-Type"] == "application/json"
    error = json.loads(reply.text)["error"]
    assert error["message"] == "This token is not valid, or no longer. Ask whoever runs this server for another one."


@pytest.mark.parametrize(("language", "title"), [("en", "Sign in"), ("ja-JP", "サインイン")])
def test_a_browser_without_a_session_gets_a_form_in_its_language(site: Site, language: str, title: str) -> None:
    reply = site.ask("/?q=%E4%BA%AC%22%3E%3Cb%3E", **{"Accept": "text/html,*/*;q=0.8", "Accept-Language": language})
    assert reply.status == 401
    assert reply.headers["Content-Type"].startswith("text/html")
    assert f"<h1>{title}</h1>" in reply.text
    assert 'action="/login"' in reply.text
    assert "<b>" not in reply.text
    assert 'name="next" value="/?q=%E4%BA%AC%22%3E%3Cb%3E"' in reply.text


def test_an_invalid_token_is_not_made_up_for_by_a_session(site: Site) -> None:
    assert site.ask("/", Cookie=site.session, Authorization="Bearer wrong").status == 401


def test_mcp_takes_tokens_only(site: Site) -> None:
    assert site.ask("/mcp", Cookie=site.session).status == 401


@pytest.mark.parametrize("path", ["/", "/login", "/api/v1/nothing", "/assets/x/y", "/nothing", "/healthz"])
@pytest.mark.parametrize("headers", [BEARER, {}, {"Host": "evil.example"}])
def test_every_answer_that_a_browser_may_show_has_its_headers(site: Site, path: str, headers: dict[str, str]) -> None:
    reply = site.ask(path, **headers)
    assert reply.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Referrer-Policy"] == "same-origin"
    assert reply.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "camera=()" in reply.headers["Permissions-Policy"]
    assert reply.headers.get_all("X-Content-Type-Options") == ["nosniff"]


def test_the_policy_allows_nothing_inline() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "*" not in CONTENT_SECURITY_POLICY
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'none'")
