"""How a browser gets a session, keeps it, and loses it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import pytest

from bunko.interfaces.http import authorization, sessions
from bunko.interfaces.http.sessions import LoginLinks, Sessions, parse_session
from bunko.interfaces.sender import local_path
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.rights.tokens import token_digest
from bunko.types.access import Rights
from tests.http.server import TOKEN, Reply, Site, serve_app, serve_site

FORM = "application/x-www-form-urlencoded"


def post_token(site: Site, token: str, next_path: str = "", **headers: str) -> Reply:
    """Send the form of the page that asks for a token."""
    body = urlencode({"token": token, "next": next_path})
    headers = {"Content-Type": FORM, "Origin": site.address, **headers}
    return site.ask("/login", method="POST", body=body, **headers)


def cookie_of(reply: Reply) -> str:
    assert reply.status == 303, reply.text
    return reply.headers["Set-Cookie"].partition(";")[0]


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    """A server for one test."""
    with serve_site(tmp_path) as site:
        yield site


def test_a_link_works_once_and_leads_to_a_clean_address(site: Site) -> None:
    path = site.login_address.removeprefix(site.address)
    reply = site.ask(path)
    assert (reply.status, reply.headers["Location"]) == (303, "/")
    assert reply.headers["Cache-Control"] == "no-store"
    [[name, cookie]] = SimpleCookie(reply.headers["Set-Cookie"]).items()
    assert name == f"bunko_session_{site.port}"
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["secure"]) == (True, "strict", "/", "")
    assert int(cookie["max-age"]) > 0
    assert site.ask("/", Cookie=f"{name}={cookie.value}").status == 200
    again = site.ask(path, Accept="text/html")
    assert again.status == 401
    assert "already been used" in again.text
    assert "Set-Cookie" not in again.headers


def test_a_link_that_is_followed_again_leads_whoever_is_signed_in_to_the_page(site: Site) -> None:
    path = site.login_address.removeprefix(site.address)
    session = site.ask(path).headers["Set-Cookie"].partition(";")[0]
    again = site.ask(path, Cookie=session)
    assert (again.status, again.headers["Location"], again.headers["Set-Cookie"]) == (303, "/", None)
    assert site.ask(path, Cookie=session[:-4] + "AAAA").status == 401


def test_a_link_expires_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sessions.LINK_SECONDS <= 60
    links = LoginLinks()
    token, moment = links.create(), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: moment + sessions.LINK_SECONDS + 1)
    assert not links.redeem(token)


def test_a_wrong_link_opens_nothing(site: Site) -> None:
    for token in ("", "wrong", TOKEN, "\udcff%00"):
        reply = site.ask(f"/login?{urlencode({'token': token}, errors='surrogateescape')}")
        assert reply.status == 401
        assert "Set-Cookie" not in reply.headers


def test_a_server_without_links_redeems_none(tmp_path: Path, site: Site) -> None:
    with serve_app(ToolRegistry(lambda: site.library)) as port:
        other = Site(port, site.library, site.links)
        assert other.ask(other.login_address.removeprefix(other.address)).status == 401
        session = site.session.replace(str(site.port), str(port))
        assert other.ask("/", Cookie=session).status == 401  # one that another process made from its link


@pytest.mark.parametrize("headers", [{"X-Forwarded-Proto": "https"}])
def test_behind_https_the_cookie_is_only_for_https(site: Site, headers: dict[str, str]) -> None:
    reply = post_token(site, TOKEN, **headers)
    assert "; Secure" in reply.headers["Set-Cookie"]
    assert "; Secure" not in post_token(site, TOKEN).headers["Set-Cookie"]


def test_a_pasted_token_gives_a_session_and_leads_back(site: Site) -> None:
    reply = post_token(site, f" {TOKEN}\n", "/?q=%E4%BA%AC%E9%83%BD")
    assert reply.headers["Location"] == "/?q=%E4%BA%AC%E9%83%BD"
    assert TOKEN not in reply.headers["Set-Cookie"]
    assert site.ask("/", Cookie=cookie_of(reply)).status == 200


@pytest.mark.parametrize("token", ["", "wrong", "bunko_wrong", TOKEN + "x", "あ"])
def test_a_wrong_token_is_asked_for_again(site: Site, token: str) -> None:
    reply = post_token(site, token, "/?q=x")
    assert reply.status == 401
    assert "not valid" in reply.text
    assert 'value="/?q=x"' in reply.text
    assert "Set-Cookie" not in reply.headers


@pytest.mark.parametrize(
    "path",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil", "javascript:alert(1)", "/\r\nX: y", ""],
)
def test_no_form_leads_to_another_site(site: Site, path: str) -> None:
    reply = post_token(site, TOKEN, path)
    assert (reply.status, reply.headers["Location"]) == (303, "/")
    assert local_path(path) == "/"


def test_the_session_of_a_token_has_its_rights_and_ends_with_it(
    own_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorization, "FRESH_SECONDS", 0.0)
    token = own_site.library.tokens.add("alice", Rights(("recipes",)))
    session = cookie_of(post_token(own_site, token))
    assert own_site.ask("/", Cookie=session).status == 200
    assert own_site.ask("/metrics", Cookie=session).status == 403
    assert own_site.ask("/metrics", Cookie=own_site.session).status == 200
    own_site.library.tokens.revoke("alice")
    assert own_site.ask("/", Cookie=session).status == 401
    own_site.library.tokens.add("alice", Rights())  # another token of the same name
    assert own_site.ask("/", Cookie=session).status == 401


def test_any_worker_knows_a_session_and_another_server_token_ends_it(site: Site) -> None:
    session = parse_session(cookie_of(post_token(site, TOKEN)).partition("=")[2])
    assert session is not None
    assert Sessions(TOKEN).is_valid(session, token_digest(TOKEN))
    assert not Sessions("another").is_valid(session, token_digest("another"))


def test_a_session_ends_after_some_days(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Sessions(TOKEN)
    session = parse_session(maker.create("server", "", "digest"))
    assert session is not None
    assert maker.is_valid(session, "digest")
    end = session.expires
    monkeypatch.setattr(time, "time", lambda: float(end))
    assert not maker.is_valid(session, "digest")


def test_nobody_can_change_what_a_session_says(site: Site) -> None:
    name, _, value = cookie_of(post_token(site, TOKEN)).partition("=")
    kind, expires, subject, signature = value.split(".")
    assert (kind, subject) == ("server", "")
    for changed in (
        f"local.{expires}.{subject}.{signature}",
        f"token.{expires}.YWxpY2U.{signature}",
        f"{kind}.{int(expires) + 1}.{subject}.{signature}",
        f"{kind}.{expires}.{subject}.",
        f"{kind}.{expires}.{subject}",
        f"{kind}.-1.{subject}.{signature}",
        f"{kind}.{'9' * 900}.{subject}.{signature}",
        "....",
        "x" * 5000,
    ):
        assert site.ask("/", Cookie=f"{name}={changed}").status == 401, changed


def test_only_the_link_of_this_process_makes_somebody_its_user(site: Site) -> None:
    pasted = cookie_of(post_token(site, TOKEN))
    assert site.ask("/api/v1/folders", Cookie=site.session).status == 200
    assert site.ask("/api/v1/folders", Cookie=pasted).status == 403
    assert site.call("/api/v1/folders").status == 403


def test_whoever_signs_out_has_no_session(site: Site) -> None:
    reply = site.ask("/logout", method="POST", Cookie=site.session, Origin=site.address)
    assert (reply.status, reply.headers["Location"]) == (303, "/login")
    assert re.search(rf"bunko_session_{site.port}=\"\"; .*Max-Age=0", reply.headers["Set-Cookie"])
    assert site.ask("/logout", Cookie=site.session).status == 405


@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:1", "http://localhost:{port}", "http://127.0.0.1"])
def test_changes_with_a_session_come_from_pages_of_this_server_only(site: Site, origin: str | None) -> None:
    headers = {"Origin": origin.format(port=site.port)} if origin else {}
    for path in ("/api/v1/nothing", "/", "/login", "/logout"):
        assert site.ask(path, method="POST", body="{}", Cookie=site.session, **headers).status == 403
    assert site.ask("/api/v1/nothing", method="DELETE", Cookie=site.session, **headers).status == 403
    assert site.ask("/", Cookie=site.session, **headers).status == 200
    # A token is never sent by a browser on its own.
    assert site.call("/api/v1/nothing", method="POST", body="{}", **headers).status in (404, 405)


def test_changes_with_a_session_from_its_own_pages_pass(site: Site) -> None:
    for host in ("127.0.0.1", "localhost"):
        authority = f"{host}:{site.port}"
        headers = {"Host": authority, "Origin": f"http://{authority}", "Cookie": site.session}
        assert site.ask("/api/v1/nothing", method="POST", body="{}", **headers).status in (404, 405)


def test_a_link_from_elsewhere_loads_again_with_the_session(site: Site) -> None:
    foreign = {"Accept": "text/html", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    reply = site.ask("/?q=x&tool=notes", **foreign)
    assert reply.status == 401
    assert 'http-equiv="refresh" content="0;url=/?q=x&amp;tool=notes"' in reply.text
    own = site.ask("/?q=x", **{**foreign, "Sec-Fetch-Site": "same-origin"})
    assert "http-equiv" not in own.text
    assert 'content="0;url=/"' in site.ask("//evil.example/", **foreign).text
    assert "http-equiv" not in site.ask("/", **{**foreign, "Sec-Fetch-Dest": "iframe"}).text


def test_a_session_whose_library_cannot_be_read_is_told_so(tmp_path: Path) -> None:
    from bunko.errors import LibraryError

    def fail() -> Library:
        raise LibraryError("/srv/secret/library.db is broken", hint="Mend it.")

    maker = Sessions(TOKEN)
    with serve_app(ToolRegistry(fail)) as port:
        with open_library(locate_library(library=tmp_path / "unused", environ={}), environ={}) as unused:
            site = Site(port, unused, LoginLinks())
        cookie = f"bunko_session_{port}={maker.create('token', 'alice', 'digest')}"
        reply = site.ask("/api/v1/status", Cookie=cookie)
        assert reply.status == 503
        assert reply.headers["Retry-After"] == "5"
        assert "secret" not in reply.text
        assert post_token(site, "bunko_alice").status == 503


@pytest.mark.parametrize("path", ["/?q=x", "/api/v1/search?q=x", "/library"])
@pytest.mark.parametrize("sender", ["same-site", "cross-site"])
def test_a_page_of_another_port_reads_nothing_with_a_session(site: Site, path: str, sender: str) -> None:
    # Browsers send cookies to all ports of a machine, also when a page of another port asks.
    fetched = {"Cookie": site.session, "Sec-Fetch-Site": sender, "Sec-Fetch-Mode": "no-cors"}
    assert site.ask(path, **fetched).status == 403
    assert site.ask(path, **fetched | {"Sec-Fetch-Mode": "cors", "Origin": "http://127.0.0.1:1"}).status == 403
    assert site.ask(path, **fetched | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}).status == 403
    assert site.ask(path, **fetched | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}).status == 200
    assert site.call(path, **{"Sec-Fetch-Site": sender, "Sec-Fetch-Mode": "cors"}).status == 200


@pytest.mark.parametrize("sender", ["same-origin", "none"])
def test_a_page_of_this_server_reads_with_a_session(site: Site, sender: str) -> None:
    fetched = {"Cookie": site.session, "Sec-Fetch-Site": sender, "Sec-Fetch-Mode": "cors"}
    assert site.ask("/api/v1/search?q=x", **fetched).status == 200
