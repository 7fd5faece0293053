"""Browsers that sign in by an identity provider: with a code, and only where they began."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import jwt
import pytest

from bunko.interfaces.http import sessions, sign_in
from bunko.interfaces.http.guards import limit_client_logs
from bunko.library.rights import identity_provider
from tests.http.provider import CLIENT_ID, CLIENT_SECRET, NEXT_KEY, Provider, run_provider
from tests.http.server import TOKEN, Reply, Site, ask, serve_site


@pytest.fixture
def provider() -> Iterator[Provider]:
    with run_provider() as running:
        yield running


def settings(provider: Provider, **changes: Any) -> dict[str, Any]:
    return {
        "issuer": provider.issuer, "read": ("staff=notes",), "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET,
        "name_claim": "email", **changes,
    }  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, provider: Provider) -> Iterator[Site]:
    with serve_site(tmp_path, sign_in=settings(provider)) as served:
        yield served


def cookies_of(reply: Reply) -> dict[str, str]:
    """Return the cookies that a reply sets; an empty one is forgotten."""
    return {
        name: morsel.value
        for header in reply.headers.get_all("Set-Cookie") or []
        for name, morsel in SimpleCookie(header).items()
    }


def attempt(site: Site, next_path: str = "/") -> tuple[str, str]:
    """Begin to sign in and follow the provider; return the cookie of the attempt and the path that leads back."""
    reply = site.ask(f"/login/start?next={quote(next_path)}")
    assert reply.status == 303, reply.text
    [(name, value)] = cookies_of(reply).items()
    at_provider = urlsplit(reply.headers["Location"])
    location = ask(at_provider.port or 0, f"{at_provider.path}?{at_provider.query}").headers["Location"]
    assert location.startswith(f"{site.address}/login/callback?")
    return f"{name}={value}", location.removeprefix(site.address)


def sign_in_as(site: Site, next_path: str = "/") -> Reply:
    cookie, path = attempt(site, next_path)
    return site.ask(path, Cookie=cookie)


def session_of(reply: Reply) -> str:
    assert reply.status == 303, reply.text
    [(name, value)] = [(name, value) for name, value in cookies_of(reply).items() if name.startswith("bunko_session")]
    return f"{name}={value}"


def test_a_code_gives_a_session_with_the_rights_of_the_user(site: Site, provider: Provider) -> None:
    reply = sign_in_as(site, "/?q=京都")
    assert reply.headers["Location"] == "/?q=%E4%BA%AC%E9%83%BD"
    assert reply.headers["Cache-Control"] == "no-store"
    cookies = {
        name: morsel
        for header in reply.headers.get_all("Set-Cookie") or []
        for name, morsel in SimpleCookie(header).items()
    }
    session = cookies[f"bunko_session_{site.port}"]
    assert (session["httponly"], session["samesite"], session["path"]) == (True, "strict", "/")
    assert cookies[f"bunko_sign_in_{site.port}"]["max-age"] == "0"
    assert site.ask("/", Cookie=session_of(reply)).status == 200
    assert site.ask("/api/v1/search?q=curry", Cookie=session_of(reply)).status == 200
    assert site.ask("/metrics", Cookie=session_of(reply)).status == 403
    [form] = provider.token_requests
    assert "client_secret" not in form
    assert form["authorization"].startswith("Basic ")


def test_the_provider_is_asked_as_it_should_be(site: Site, provider: Provider) -> None:
    reply = site.ask("/login/start?next=/map")
    parts = urlsplit(reply.headers["Location"])
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{provider.issuer}/authorize"
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert query["response_type"] == "code"
    assert query["client_id"] == CLIENT_ID
    assert query["redirect_uri"] == f"{site.address}/login/callback"
    assert query["scope"] == "openid profile email"
    assert query["code_challenge_method"] == "S256"
    cookie = SimpleCookie(reply.headers["Set-Cookie"])[f"bunko_sign_in_{site.port}"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "lax")
    secrets = [query["state"], query["nonce"], query["code_challenge"]]
    assert len(set(secrets)) == 3
    assert not any(secret in reply.headers["Set-Cookie"] for secret in secrets)
    assert CLIENT_SECRET not in f"{reply.headers}{reply.text}"


def test_behind_a_proxy_with_tls_the_cookies_are_only_for_https(tmp_path: Path, provider: Provider) -> None:
    public = settings(provider, url="https://bunko.example.com")
    with serve_site(tmp_path, sign_in=public) as site:
        proxied = {"Host": "bunko.example.com", "X-Forwarded-Proto": "https"}
        page = site.ask("/", Accept="text/html", **proxied)
        assert 'href="https://bunko.example.com/login/start?next=/"' in page.text
        reply = site.ask("/login/start", **proxied)
        assert reply.headers["Set-Cookie"].startswith("bunko_sign_in=")
        assert "; Secure" in reply.headers["Set-Cookie"]
        query = parse_qs(urlsplit(reply.headers["Location"]).query)
        assert query["redirect_uri"] == ["https://bunko.example.com/login/callback"]
        metadata = json.loads(site.ask("/.well-known/oauth-protected-resource/mcp", **proxied).text)
        assert metadata["resource"] == "https://bunko.example.com/mcp"


@pytest.mark.parametrize(
    "url", ["https://bunko.example.com", "https://Bunko.example.com:443", "https://bunko.example.com:8443"]
)
def test_at_an_https_address_cookies_are_only_for_https_whatever_the_proxy_says(
    tmp_path: Path, provider: Provider, url: str
) -> None:
    host = {"Host": "bunko.example.com:8443" if url.endswith("8443") else "bunko.example.com"}
    with serve_site(tmp_path, sign_in=settings(provider, url=url)) as site:
        begun = site.ask("/login/start", **host)
        at_provider = urlsplit(begun.headers["Location"])
        location = ask(at_provider.port or 0, f"{at_provider.path}?{at_provider.query}").headers["Location"]
        [(name, value)] = cookies_of(begun).items()
        ended = site.ask(location.removeprefix(url), Cookie=f"{name}={value}", **host)
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"https://{host['Host']}", **host}
        typed = site.ask("/login", method="POST", body=f"token={TOKEN}", **form)
        for reply, count in ((begun, 1), (ended, 2), (typed, 1)):
            assert reply.status == 303
            headers = reply.headers.get_all("Set-Cookie") or []
            assert ["; Secure" in header for header in headers] == [True] * count
        elsewhere = site.ask(
            "/login", method="POST", body=f"token={TOKEN}", **form | {"Host": "localhost", "Origin": "http://localhost"}
        )
        assert "; Secure" not in elsewhere.headers["Set-Cookie"]


def test_any_worker_ends_what_another_began(tmp_path: Path, provider: Provider) -> None:
    public, host = settings(provider, url="https://bunko.example.com"), {"Host": "bunko.example.com"}
    with serve_site(tmp_path / "a", sign_in=public) as first, serve_site(tmp_path / "b", sign_in=public) as second:
        begun = first.ask("/login/start?next=/map", **host)
        at_provider = urlsplit(begun.headers["Location"])
        location = ask(at_provider.port or 0, f"{at_provider.path}?{at_provider.query}").headers["Location"]
        path = location.removeprefix("https://bunko.example.com")
        ended = second.ask(path, Cookie=f"bunko_sign_in={cookies_of(begun)['bunko_sign_in']}", **host)
        assert (ended.status, ended.headers["Location"]) == (303, "/map")
        assert first.ask("/", Cookie=session_of(ended), **host).status == 200


def test_the_form_offers_the_provider_beside_a_token(site: Site) -> None:
    page = site.ask("/?q=a%26b", Accept="text/html")
    assert page.status == 401
    assert f'href="{site.address}/login/start?next=/%3Fq%3Da%2526b"' in page.text
    assert "Sign in with 127.0.0.1" in page.text
    assert 'name="token"' in page.text


def test_without_a_client_id_the_page_offers_only_tokens(tmp_path: Path, provider: Provider) -> None:
    with serve_site(tmp_path, sign_in=settings(provider, client_id=None)) as site:
        assert "/login/start" not in site.ask("/", Accept="text/html").text
        for path in ("/login/start", "/login/callback?code=x"):
            assert site.ask(path).status == 401
        token = provider.token(f"{site.address}/mcp")
        assert site.ask("/api/v1/tools", Authorization=f"Bearer {token}").status == 200


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.replace("state=", "state=x"),
        lambda path: path.replace("state=", "other="),
        lambda path: path.replace("state=", "state=%E6%96%87"),
        lambda path: path.replace("code=", "other="),
        lambda path: path.replace("code=", "code=x"),
        lambda path: path.replace("iss=", "iss=https%3A%2F%2Fevil.example%2F"),
        lambda path: path.replace("iss=", "other="),
        lambda path: f"{path.partition('?')[0]}?error=access_denied&{path[path.index('state=') :]}",
        lambda path: path.partition("?")[0],
    ],
    ids=[
        "wrong state",
        "no state",
        "other letters",
        "no code",
        "wrong code",
        "other provider",
        "no provider",
        "denied",
        "nothing",
    ],
)
def test_what_does_not_belong_to_the_attempt_signs_nobody_in(site: Site, change: Any) -> None:
    cookie, path = attempt(site)
    reply = site.ask(change(path), Cookie=cookie)
    assert reply.status == 401
    assert "You were not signed in" in reply.text
    assert not [name for name in cookies_of(reply) if name.startswith("bunko_session")]


def test_a_provider_that_never_names_itself_need_not(site: Site, provider: Provider) -> None:
    provider.metadata["authorization_response_iss_parameter_supported"] = False
    cookie, path = attempt(site)
    assert site.ask(path.replace("iss=", "other="), Cookie=cookie).status == 303


@pytest.mark.parametrize("path", ["/loginx", "/login/x", "/login/", "/login/start/x"])
def test_other_addresses_are_not_those_of_the_form(site: Site, path: str) -> None:
    reply = site.ask(path, Accept="text/html")
    assert reply.status == 401
    assert f'name="next" value="{path}"' in reply.text
    assert site.ask("/login", Accept="text/html").status == 200


def test_nobody_is_signed_in_with_the_code_of_another_browser(site: Site) -> None:
    """Otherwise a link could sign somebody in under the name of whoever made it."""
    own_cookie, _ = attempt(site)
    _, path_of_other = attempt(site)
    for headers in ({}, {"Cookie": own_cookie}):
        reply = site.ask(path_of_other, **headers)
        assert reply.status == 401
        assert not [name for name in cookies_of(reply) if name.startswith("bunko_session")]


def test_a_code_works_once(site: Site, provider: Provider) -> None:
    cookie, path = attempt(site)
    assert site.ask(path, Cookie=cookie).status == 303
    again = site.ask(path, Cookie=cookie)
    assert again.status == 401
    assert not [name for name in cookies_of(again) if name.startswith("bunko_session")]
    assert len(provider.token_requests) == 2


def test_an_attempt_that_took_too_long_is_made_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "ATTEMPT_SECONDS", -1)
    cookie, path = attempt(site)
    assert site.ask(path, Cookie=cookie).status == 401


@pytest.mark.parametrize("change", ["end", "path", "number"])
def test_nobody_can_change_what_belongs_to_an_attempt(site: Site, change: str) -> None:
    cookie, path = attempt(site)
    name, _, value = cookie.partition("=")
    number, end, next_path = value.strip('"').split("!")
    changed = {
        "end": f"{number}!{int(end) + 1}!{next_path}",
        "path": f"{number}!{end}!%2Fmap",
        "number": f"{number}x!{end}!{next_path}",
    }
    assert site.ask(path, Cookie=f"{name}={changed[change]}").status == 401
    assert site.ask(path, Cookie=cookie).status == 303


@pytest.mark.parametrize(
    "path",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil", "/\r\nX: y", "/" + "x" * 4000, ""],
)
def test_nobody_is_led_to_another_site(site: Site, path: str) -> None:
    assert sign_in_as(site, path).headers["Location"] == "/"


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another-client"},
        {"aud": [CLIENT_ID, "another-client"]},
        {"azp": "another-client"},
        {"iss": "https://elsewhere.example"},
        {"exp": 1},
        {"exp": None},
        {"iat": 2**40},
        {"sub": None},
    ],
)
def test_an_id_token_for_something_else_signs_nobody_in(site: Site, provider: Provider, claims: dict[str, Any]) -> None:
    provider.id_claims = claims
    reply = sign_in_as(site)
    assert reply.status == 401
    assert "You were not signed in" in reply.text


def test_an_id_token_that_somebody_else_signed_signs_nobody_in(
    site: Site, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sign(claims: dict[str, Any], kid: str = "rsa-1", typ: str | None = "JWT") -> str:
        return jwt.encode(claims, NEXT_KEY, "RS256", headers={"kid": kid, "typ": typ})

    monkeypatch.setattr(provider, "sign", sign)
    assert sign_in_as(site).status == 401


def test_a_provider_that_sends_no_id_token_is_reported(
    tmp_path: Path, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    with serve_site(tmp_path, sign_in=settings(provider, page_scopes=("email",))) as site:
        assert sign_in_as(site).status == 401
    assert "page_scopes must contain openid" in caplog.text


def test_a_wrong_secret_is_reported_without_it(
    tmp_path: Path, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    with serve_site(tmp_path, sign_in=settings(provider, client_secret="wrong-secret")) as site:
        with caplog.at_level(logging.DEBUG):
            reply = sign_in_as(site)
        assert reply.status == 401
    assert "invalid_client" in caplog.text
    for secret in ("wrong-secret", provider.token_requests[0]["authorization"], provider.token_requests[0]["code"]):
        assert secret not in caplog.text + reply.text


def test_no_line_end_reaches_the_log(
    site: Site, provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = {"error": "invalid_grant", "error_description": "no\r\nWARNING of somebody else"}
    monkeypatch.setattr(provider, "_redeem", lambda *_: (400, refusal))
    cookie, path = attempt(site)
    limit_client_logs()  # so that this refusal is the first
    assert site.ask(path, Cookie=cookie).status == 401
    limit_client_logs()
    denied = f"{path.partition('?')[0]}?error=no%0D%0AWARNING&{path[path.index('state=') :]}"
    assert site.ask(denied, Cookie=cookie).status == 401
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("address", ["https://[", "https://h/\r\nX: y", 5])
def test_a_provider_that_says_no_address_to_sign_in_at_is_reported(
    site: Site, provider: Provider, address: object
) -> None:
    provider.metadata["authorization_endpoint"] = address
    reply = site.ask("/login/start")
    assert (reply.status, "does not answer now" in reply.text) == (401, True)


def test_a_client_without_a_secret_needs_none(tmp_path: Path, provider: Provider) -> None:
    public = settings(provider, client_id="a-public-client", client_secret="")
    with serve_site(tmp_path, sign_in=public) as site:
        assert sign_in_as(site).status == 303
    [form] = provider.token_requests
    assert (form["client_id"], form["authorization"]) == ("a-public-client", "")


def test_a_provider_that_takes_secrets_only_in_forms_gets_one(tmp_path: Path, provider: Provider) -> None:
    provider.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    with serve_site(tmp_path, sign_in=settings(provider, client_id="another")) as site:
        assert sign_in_as(site).status == 303
    [form] = provider.token_requests
    assert (form["client_id"], form["client_secret"], form["authorization"]) == ("another", CLIENT_SECRET, "")


def test_whoever_has_no_rights_is_told_so(site: Site, provider: Provider) -> None:
    provider.person["groups"] = ["others"]
    reply = sign_in_as(site)
    assert reply.status == 401
    assert "Your account has no rights here" in reply.text
    assert not [name for name in cookies_of(reply) if name.startswith("bunko_session")]


def test_a_session_stays_small_whatever_the_groups(site: Site, provider: Provider) -> None:
    provider.person["groups"] = ["staff", *(f"00000000-0000-0000-0000-{number:012}" for number in range(200))]
    session = session_of(sign_in_as(site))
    assert len(session) < 500
    assert site.ask("/", Cookie=session).status == 200


def test_whoever_has_many_groups_of_the_settings_signs_in(tmp_path: Path, provider: Provider) -> None:
    groups = [f"{number}-00000000-0000-0000-0000-00000000000" for number in range(150)]
    provider.person |= {"groups": [*groups, "staff"], "email": "名" * 255}
    read = (*(f"{group}=other" for group in groups), "staff=notes")
    with serve_site(tmp_path, sign_in=settings(provider, read=read)) as site:
        session = session_of(sign_in_as(site))
        assert len(session) < 2000
        assert [tool["name"] for tool in json.loads(site.ask("/api/v1/tools", Cookie=session).text)["tools"]] == [
            "notes"
        ]
        provider.person["groups"] = groups[:100]
        session = session_of(sign_in_as(site))
        assert json.loads(site.ask("/api/v1/tools", Cookie=session).text)["tools"] == []


@pytest.mark.parametrize(("length", "is_kept"), [(300, True), (999, False)])
def test_the_cookie_of_an_attempt_stays_small(site: Site, length: int, is_kept: bool) -> None:
    path = "/" + "京" * length
    cookie, back = attempt(site, path)
    assert len(cookie) < 3500
    assert site.ask(back, Cookie=cookie).headers["Location"] == (quote(path) if is_kept else "/")


def test_a_provider_that_is_away_is_reported(site: Site, provider: Provider) -> None:
    cookie, path = attempt(site)
    provider.stop()
    reply = site.ask(path, Cookie=cookie)
    assert "does not answer now" in reply.text
    assert provider.issuer not in reply.text.replace(f'href="{site.address}', "")


def test_a_provider_that_was_always_away_is_reported(site: Site, provider: Provider) -> None:
    provider.stop()
    reply = site.ask("/login/start")
    assert (reply.status, "does not answer now" in reply.text) == (401, True)


def test_a_key_that_is_new_is_found(site: Site, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity_provider, "RETRY_SECONDS", 0.0)
    cookie, path = attempt(site)
    provider.keys = {"rsa-1": NEXT_KEY}
    # With the old name: the signature is wrong, and no key is looked for.
    assert site.ask(path, Cookie=cookie).status == 401
    provider.keys = {"rsa-2": NEXT_KEY, "rsa-1": NEXT_KEY}
    monkeypatch.setattr(provider, "sign", lambda claims, *_: jwt.encode(claims, NEXT_KEY, "RS256", {"kid": "rsa-2"}))
    assert sign_in_as(site).status == 303


def test_whoever_signs_out_has_no_session(site: Site) -> None:
    session = session_of(sign_in_as(site))
    reply = site.ask("/logout", method="POST", Cookie=session, Origin=site.address)
    assert (reply.status, reply.headers["Location"]) == (303, "/login")
    assert cookies_of(reply) == {f"bunko_session_{site.port}": ""}
    assert "Sign out" in site.ask("/", Cookie=session).text


def test_a_session_of_the_provider_lasts_a_day_of_work(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(sign_in_as(site))
    end = time.time() + sessions.USER_SESSION_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: end)
    assert site.ask("/", Cookie=session).status == 401
    assert sessions.USER_SESSION_SECONDS <= 86_400


def test_nobody_can_change_what_a_session_says(site: Site) -> None:
    name, _, value = session_of(sign_in_as(site)).partition("=")
    kind, expires, user, signature = value.split(".")
    other = session_of(sign_in_as(site)).partition("=")[2].split(".")
    admin = "WyJ1c2VyOmFkbWluIiwxXQ"  # ["user:admin",1]
    for changed in (
        f"{kind}.{expires}.{admin}.{signature}",
        f"{kind}.{int(expires) + 1}.{user}.{signature}",
        f"local.{expires}.{user}.{signature}",
        f"token.{expires}.{user}.{signature}",
        f"server.{expires}..{other[3]}",
    ):
        assert site.ask("/", Cookie=f"{name}={changed}").status == 401


def test_rights_that_the_settings_take_away_end_at_once(tmp_path: Path, provider: Provider, site: Site) -> None:
    session = session_of(sign_in_as(site)).partition("=")[2]
    with serve_site(tmp_path / "other", sign_in=settings(provider, read=("staff=other",))) as other:
        reply = other.ask("/api/v1/tools", Cookie=f"bunko_session_{other.port}={session}")
        assert json.loads(reply.text)["tools"] == []
    others: list[dict[str, Any]] = [{"read": ("cooks=notes",)}, {"rights_claim": "roles"}, {"client_id": "another"}]
    for number, changes in enumerate(others):
        with serve_site(tmp_path / str(number), sign_in=settings(provider, **changes)) as other:
            assert other.ask("/", Cookie=f"bunko_session_{other.port}={session}").status == 401
    with serve_site(tmp_path / "fourth") as other:
        assert other.ask("/", Cookie=f"bunko_session_{other.port}={session}").status == 401


def test_changes_with_a_session_of_the_provider_come_from_pages_of_this_server_only(site: Site) -> None:
    session = session_of(sign_in_as(site))
    for origin in ("http://127.0.0.1:1", None):
        headers = {"Origin": origin} if origin else {}
        assert site.ask("/preferences", method="POST", body="", Cookie=session, **headers).status == 403


@pytest.mark.parametrize("path", ["/login/start", "/login/callback"])
def test_signing_in_by_the_provider_is_a_visit_and_no_form(site: Site, path: str) -> None:
    reply = site.ask(path, method="POST", body="", Origin=site.address)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET")


def test_the_first_page_after_signing_in_loads_again_with_the_session(site: Site) -> None:
    # Browsers leave a strict cookie out of a visit that began at another site.
    foreign = {"Accept": "text/html", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    cookie, path = attempt(site)
    reply = site.ask(path, Cookie=cookie, **foreign)
    assert 'http-equiv="refresh"' in site.ask(reply.headers["Location"], **foreign).text
    failed = site.ask("/login/callback", **foreign)
    assert "http-equiv" not in failed.text
    assert "You were not signed in" in failed.text
