"""Access tokens of an identity provider: whose are accepted, with which rights, and what the others are told."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from bunko.errors import BunkoError, PackageError, SettingsError
from bunko.interfaces.http import authorization
from bunko.interfaces.http.guards import limit_client_logs
from bunko.library.rights import identity_provider
from bunko.library.rights.identity_provider import IdentityProvider, TokenRefused
from bunko.settings.schema import SignInSection
from tests.http.provider import CLIENT_ID, CLIENT_SECRET, NEXT_KEY, RSA_KEY, Provider, run_provider
from tests.http.server import PATIENCE, Reply, Site, serve_site

INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
SEARCH = "/api/v1/search?q=curry"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """A provider that no test changes."""
    with run_provider() as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Site]:
    with serve_for(tmp_path_factory.mktemp("site"), provider) as served:
        yield served


@pytest.fixture
def own_provider() -> Iterator[Provider]:
    with run_provider() as running:
        yield running


@pytest.fixture
def own_site(tmp_path: Path, own_provider: Provider) -> Iterator[Site]:
    with serve_for(tmp_path, own_provider) as served:
        yield served


@contextmanager
def serve_for(folder: Path, provider: Provider) -> Iterator[Site]:
    settings = {"issuer": provider.issuer, "read": ("staff=notes",), "write": ("admins=*",), "name_claim": "email"}
    with serve_site(folder, sign_in=settings | {"scopes": ("bunko",)}) as served:
        yield served


def audience(site: Site) -> str:
    return f"{site.address}/mcp"


def search(site: Site, token: str) -> Reply:
    return site.ask(SEARCH, Authorization=f"Bearer {token}")


def initialize(site: Site, token: str = "") -> Reply:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return site.ask("/mcp", method="POST", body=json.dumps(INITIALIZE), **accept, **headers)


@pytest.mark.parametrize("kid", ["rsa-1", "ec-1"])
@pytest.mark.parametrize("typ", ["at+jwt", "application/at+jwt", "JWT"])
def test_a_good_token_opens_mcp_and_the_api(site: Site, provider: Provider, kid: str, typ: str) -> None:
    token = provider.token(audience(site), kid, typ)
    assert initialize(site, token).status == 200
    reply = search(site, token)
    assert reply.status == 200
    assert json.loads(reply.text)["results"]


def test_tokens_of_bunko_go_on_working_beside_it(site: Site) -> None:
    assert site.call(SEARCH).status == 200
    token = site.library.tokens.add("ci", site.library.tokens.rights([], []))
    assert search(site, token).status == 200


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
def test_everybody_may_read_where_to_sign_in(site: Site, provider: Provider, path: str) -> None:
    reply = site.ask(path)
    assert reply.status == 200
    assert json.loads(reply.text) == {
        "resource": f"{site.address}/mcp", "authorization_servers": [provider.issuer],
        "bearer_methods_supported": ["header"], "resource_name": "bunko", "scopes_supported": ["bunko"],
    }  # fmt: skip


def test_whoever_has_no_token_is_told_where_to_get_one(site: Site) -> None:
    place = f'resource_metadata="{site.address}/.well-known/oauth-protected-resource/mcp", scope="bunko"'
    for reply in (initialize(site), site.ask(SEARCH)):
        assert reply.status == 401
        assert reply.headers["WWW-Authenticate"] == f'Bearer realm="bunko", {place}'
    assert (
        initialize(site, "wrong").headers["WWW-Authenticate"] == f'Bearer realm="bunko", error="invalid_token", {place}'
    )


def test_a_server_without_a_provider_says_nothing_of_one(tmp_path: Path, own_provider: Provider) -> None:
    with serve_site(tmp_path) as plain:
        assert initialize(plain).headers["WWW-Authenticate"] == 'Bearer realm="bunko"'
        assert plain.ask("/.well-known/oauth-protected-resource").status == 401
        assert search(plain, own_provider.token(audience(plain))).status == 401
        assert plain.ask("/login/start").status == 401
    assert own_provider.fetches == []


class MemoryStorage(TokenStorage):
    """What the SDK's client keeps: a client id that somebody typed into a dialog, and its tokens."""

    def __init__(self, client: OAuthClientInformationFull) -> None:
        self.client, self.tokens = client, None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    client: OAuthClientInformationFull
    tokens: OAuthToken | None


def test_the_client_of_the_sdk_finds_the_provider_by_itself(own_site: Site, own_provider: Provider) -> None:
    """It knows the address and a client id, and asks bunko for the rest, as a hosted assistant does."""
    callback = "http://127.0.0.1:1/callback"
    client = OAuthClientInformationFull(
        client_id="an-assistant",
        redirect_uris=[AnyUrl(callback)],
        token_endpoint_auth_method="none",
        issuer=own_provider.issuer,
    )
    visited: list[str] = []

    async def open_browser(address: str) -> None:
        async with httpx2.AsyncClient() as browser:
            visited.append((await browser.get(address)).headers["location"])

    async def wait_for_code() -> AuthorizationCodeResult:
        query = httpx2.URL(visited[0]).params
        return AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query["iss"])

    async def main() -> Any:
        sign_in = OAuthClientProvider(
            audience(own_site), OAuthClientMetadata(redirect_uris=[AnyUrl(callback)]), MemoryStorage(client),
            open_browser, wait_for_code,
        )  # fmt: skip
        with anyio.fail_after(PATIENCE):
            async with (
                httpx2.AsyncClient(auth=sign_in, timeout=PATIENCE) as web,
                Client(streamable_http_client(audience(own_site), http_client=web)) as session,
            ):
                return await session.call_tool("search", {"query": "curry"})

    result = anyio.run(main)
    assert not result.is_error
    [form] = own_provider.token_requests
    assert form["resource"] == audience(own_site)
    assert form["code_verifier"]


def public_pem() -> bytes:
    return RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def sign_by_hand(header: dict[str, Any], claims: dict[str, Any], secret: bytes = b"") -> str:
    """Return a token with a header that no library would write."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signature = hmac.digest(secret, b".".join(parts), hashlib.sha256) if secret else b""
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def by_stranger(provider: Provider, claims: dict[str, Any]) -> str:
    return jwt.encode(claims, NEXT_KEY, "RS256", headers={"kid": "rsa-1", "typ": "at+jwt"})


HOUR = 3600
_HEADER = {"alg": "RS256", "kid": "rsa-1", "typ": "at+jwt"}
Forge = Callable[[Provider, str], str]
FORGED: dict[str, Forge] = {
    "wrong issuer": lambda p, a: p.token(a, iss="https://elsewhere.example"),
    "issuer with a slash": lambda p, a: p.token(a, iss=f"{p.issuer}/"),
    "no issuer": lambda p, a: p.token(a, iss=None),
    "wrong audience": lambda p, a: p.token("https://other.example/mcp"),
    "audience that begins the same": lambda p, a: p.token(f"{a}2"),
    "several wrong audiences": lambda p, a: p.token(a, aud=["x", "y"]),
    "no audience": lambda p, a: p.token(a, aud=None),
    "audience of a wrong type": lambda p, a: p.token(a, aud=json.loads("[1]")),
    "expired": lambda p, a: p.token(a, exp=int(time.time()) - HOUR),
    "no end": lambda p, a: p.token(a, exp=None),
    "an end that is no number": lambda p, a: p.token(a, exp="tomorrow"),
    "an end that never comes": lambda p, a: p.token(a, exp=float("inf")),
    "not yet valid": lambda p, a: p.token(a, nbf=int(time.time()) + HOUR),
    "issued in the future": lambda p, a: p.token(a, iat=int(time.time()) + HOUR),
    "no time of issue": lambda p, a: p.token(a, iat=None),
    "no subject": lambda p, a: p.token(a, sub=None),
    "algorithm none": lambda p, a: sign_by_hand({"alg": "none", "typ": "at+jwt"}, p.claims(a)),
    "algorithm none with a key": lambda p, a: sign_by_hand({"alg": "none", "kid": "rsa-1"}, p.claims(a)),
    "algorithm NonE": lambda p, a: sign_by_hand({"alg": "NonE", "kid": "rsa-1"}, p.claims(a)),
    "HS256 with the public key": lambda p, a: sign_by_hand(
        {"alg": "HS256", "kid": "rsa-1", "typ": "at+jwt"}, p.claims(a), public_pem()
    ),
    "HS256 with the published key": lambda p, a: sign_by_hand(
        {"alg": "HS256", "kid": "rsa-1"}, p.claims(a), json.dumps(p.key_set()["keys"][0]).encode()
    ),
    "signed by somebody else": lambda p, a: by_stranger(p, p.claims(a)),
    "signed by somebody else who brings a key": lambda p, a: jwt.encode(
        p.claims(a), NEXT_KEY, "RS256",
        headers={"jwk": json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(NEXT_KEY.public_key()))},
    ),
    "a key of another kind": lambda p, a: p.token(a).replace(
        p.token(a).partition(".")[0], base64.urlsafe_b64encode(b'{"alg":"RS256","kid":"ec-1"}').rstrip(b"=").decode()
    ),
    "changed claims": lambda p, a: ".".join(
        [(good := p.token(a)).split(".")[0], p.token(a, groups=["admins"]).split(".")[1], good.split(".")[2]]
    ),
    "no signature": lambda p, a: f"{p.token(a).rpartition('.')[0]}.",
    "an ID token": lambda p, a: p.sign(p.claims(a, scope=None, client_id=None, nonce="n")),
    "an ID token without a nonce": lambda p, a: p.sign(p.claims(a, scope=None, client_id=None)),
    "an ID token with a scope": lambda p, a: p.sign(p.claims(a, at_hash="x")),
    "an ID token of Keycloak": lambda p, a: p.sign(p.claims(a, typ="ID")),
    "a refresh token of Keycloak": lambda p, a: p.sign(p.claims(a, typ="Refresh")),
    "a logout token": lambda p, a: p.token(a, typ="logout+jwt"),
    "an event": lambda p, a: p.token(a, events={"http://schemas.openid.net/event/backchannel-logout": {}}),
    "an event with no type": lambda p, a: p.sign(p.claims(a, events={})),
    "an unknown extension": lambda p, a: jwt.encode(
        p.claims(a), RSA_KEY, "RS256", headers={"kid": "rsa-1", "crit": ["new"], "new": 1}
    ),
    "extensions that are a number": lambda p, a: sign_by_hand(_HEADER | {"crit": 5}, {}, b"x"),
    "extensions that are null": lambda p, a: sign_by_hand(_HEADER | {"crit": None}, {}, b"x"),
    "an extension that is a list": lambda p, a: sign_by_hand(_HEADER | {"crit": [[]]}, {}, b"x"),
    "an extension that is a table": lambda p, a: sign_by_hand(_HEADER | {"crit": [{}]}, {}, b"x"),
    "deep claims": lambda p, a: jwt.api_jws.encode(b"[" * 8000, RSA_KEY, "RS256", headers={"kid": "rsa-1"}),
    "a huge token": lambda p, a: p.token(a, more="x" * 12_000),
    "claims that are a list": lambda p, a: jwt.api_jws.encode(b"[1]", RSA_KEY, "RS256", headers={"kid": "rsa-1"}),
    "nonsense": lambda p, a: "a.b.c",
    "points": lambda p, a: "..",
    "a long point": lambda p, a: f"{'A' * 9000}.{'A' * 10}.x",
    "other letters": lambda p, a: "文.庫.だ",
    "no text": lambda p, a: "\udcff.\udcfe.\udcfd",
}  # fmt: skip


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_other_tokens_are_refused_and_told_nothing(site: Site, provider: Provider, forge: Forge) -> None:
    token = forge(provider, audience(site)).encode("utf-8", "surrogateescape").decode("latin-1")
    unknown = search(site, "bunko_unknown")
    for reply, like in ((search(site, token), unknown), (initialize(site, token), initialize(site, "bunko_unknown"))):
        assert (reply.status, reply.text) == (401, like.text)
        assert reply.headers["WWW-Authenticate"] == like.headers["WWW-Authenticate"]


REASONS = {
    "wrong audience": "aud", "wrong issuer": "iss", "expired": "expired", "not yet valid": "not yet valid",
    "issued in the future": "future", "no end": "exp", "algorithm none with a key": "none",
    "HS256 with the public key": "HS256", "an ID token": "not an access token", "a huge token": "too long",
    "signed by somebody else": "bad_signature", "an event": "event", "extensions that are a number": "TypeError",
}  # fmt: skip


@pytest.mark.parametrize("kind", REASONS)
def test_the_log_says_why_without_the_token(
    site: Site, provider: Provider, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    limit_client_logs()  # so that this refusal is the first
    token = FORGED[kind](provider, audience(site))
    with caplog.at_level(logging.DEBUG):
        assert search(site, token).status == 401
    [reason] = [record.getMessage() for record in caplog.records if "access token" in record.getMessage()]
    assert REASONS[kind] in reason
    assert not any(part in caplog.text for part in token.split(".") if part)


def test_no_text_breaks_the_check(provider: Provider) -> None:
    known = IdentityProvider(section(provider))
    known.read()
    header = base64.urlsafe_b64encode(b'{"alg":"RS256","kid":"rsa-1"}').rstrip(b"=").decode()

    @given(st.text(max_size=300) | st.binary(max_size=200).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
    def check(text: str) -> None:
        for token in (text, f"{text}.{text}.{text}", f"{header}.{text}.x", f"{header}.e30.{text}"):
            with suppress(TokenRefused):
                assert known.identify(token) is None

    check()


def test_whoever_lacks_a_scope_is_told_which(site: Site, provider: Provider) -> None:
    reply = initialize(site, provider.token(audience(site), scope="other"))
    assert reply.status == 403
    challenge = reply.headers["WWW-Authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="bunko"' in challenge
    assert "resource_metadata=" in challenge
    assert search(site, provider.token(audience(site), scope=None)).status == 403


@pytest.mark.parametrize(
    "claims", [{"scope": "x bunko"}, {"scope": None, "scp": "bunko x"}, {"scope": None, "scp": ["x", "bunko"]}]
)
def test_providers_write_scopes_in_several_ways(site: Site, provider: Provider, claims: dict[str, Any]) -> None:
    assert search(site, provider.token(audience(site), **claims)).status == 200


@pytest.mark.parametrize(
    "groups", [None, [], "", ["others"], 7, {"staff": 1}, [["staff"]], "staff=notes", ["*"], ["Staff"]]
)
def test_without_a_group_of_the_settings_nobody_may_do_anything(site: Site, provider: Provider, groups: Any) -> None:
    token = provider.token(audience(site), groups=groups)
    for reply in (search(site, token), initialize(site, token)):
        assert reply.status == 403
        assert "no rights" in reply.text


def test_the_groups_of_a_token_are_the_rights_of_its_user(
    own_site: Site, own_provider: Provider, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan.md").write_text("# Plan\n\nThe budou plan is confidential.\n", encoding="utf-8")
    own_site.library.add(other, name="secret")
    own_site.library.import_("secret")

    def tools(*groups: str) -> set[str]:
        reply = own_site.ask(
            "/api/v1/tools", Authorization=f"Bearer {own_provider.token(audience(own_site), groups=[*groups])}"
        )
        return {tool["name"] for tool in json.loads(reply.text)["tools"]}

    assert tools("staff", "others") == {"notes"}
    assert tools("admins") == {"notes", "secret"}
    staff, admin = (own_provider.token(audience(own_site), groups=[group]) for group in ("staff", "admins"))
    assert own_site.ask("/metrics", Authorization=f"Bearer {staff}").status == 403
    change = {"method": "PATCH", "body": '{"description": "New."}', "Content-Type": "application/json"}
    assert own_site.ask("/api/v1/tools/notes", Authorization=f"Bearer {staff}", **change).status == 403
    assert own_site.ask("/api/v1/tools/notes", Authorization=f"Bearer {admin}", **change).status == 200
    assert {entry.who for entry in own_site.library.store.audit.entries()} == {"user:alice@example.com"}


def test_a_new_key_is_found_and_an_old_one_forgotten(
    own_site: Site, own_provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity_provider, "RETRY_SECONDS", 0.0)
    old = own_provider.token(audience(own_site))
    assert search(own_site, old).status == 200
    own_provider.keys["rsa-2"] = NEXT_KEY
    del own_provider.keys["rsa-1"]
    assert search(own_site, own_provider.token(audience(own_site), "rsa-2")).status == 200
    assert search(own_site, old).status == 401


def test_a_key_that_is_published_no_longer_is_refused_after_a_while(
    own_site: Site, own_provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = own_provider.token(audience(own_site))
    assert search(own_site, old).status == 200
    del own_provider.keys["rsa-1"]
    assert search(own_site, old).status == 200
    monkeypatch.setattr(identity_provider, "KEY_SECONDS", 0.0)
    deadline = time.monotonic() + PATIENCE
    while search(own_site, old).status == 200:  # the request that is due does not keep anybody waiting
        assert time.monotonic() < deadline


def test_many_unknown_keys_cause_few_requests_to_the_provider(own_site: Site, own_provider: Provider) -> None:
    assert search(own_site, own_provider.token(audience(own_site))).status == 200
    fetched = len(own_provider.fetches)
    tokens = [
        jwt.encode(own_provider.claims(audience(own_site)), NEXT_KEY, "RS256", headers={"kid": f"unknown-{number}"})
        for number in range(40)
    ]
    with ThreadPoolExecutor(8) as threads:
        assert {reply.status for reply in threads.map(lambda token: search(own_site, token), tokens)} == {401}
    assert len(own_provider.fetches) == fetched
    assert search(own_site, own_provider.token(audience(own_site))).status == 200


def test_many_clients_at_once_cause_one_request_to_the_provider(own_site: Site, own_provider: Provider) -> None:
    token = own_provider.token(audience(own_site))
    with ThreadPoolExecutor(8) as threads:
        assert {reply.status for reply in threads.map(lambda _: search(own_site, token), range(16))} == {200}
    assert own_provider.fetches == ["/.well-known/openid-configuration", "/keys"]


def test_known_keys_go_on_working_while_the_provider_is_away(
    own_site: Site, own_provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity_provider, "KEY_SECONDS", 0.0)
    monkeypatch.setattr(identity_provider, "RETRY_SECONDS", 0.0)
    token = own_provider.token(audience(own_site))
    assert search(own_site, token).status == 200
    own_provider.stop()
    for _ in range(3):
        assert search(own_site, token).status == 200
    reply = search(own_site, by_unknown_key(own_provider, audience(own_site)))
    assert (reply.status, reply.headers["Retry-After"]) == (503, "5")  # nobody can say that it is not valid
    assert own_provider.issuer not in reply.text
    assert search(own_site, FORGED["expired"](own_provider, audience(own_site))).status == 401
    assert own_site.call(SEARCH).status == 200


def test_nobody_gets_in_by_a_provider_that_never_answered(
    own_site: Site, own_provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    own_provider.stop()
    token = own_provider.token(audience(own_site))
    reply = search(own_site, token)
    assert reply.status == 503
    assert own_provider.issuer not in reply.text
    assert own_provider.issuer in caplog.text
    assert token not in caplog.text
    assert own_site.call(SEARCH).status == 200


def by_unknown_key(provider: Provider, audience: str) -> str:
    return jwt.encode(provider.claims(audience), NEXT_KEY, "RS256", headers={"kid": "unknown", "typ": "at+jwt"})


def test_a_stream_of_changes_ends_with_its_token(
    site: Site, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorization, "LISTEN_SECONDS", 0.05)
    token = provider.token(audience(site))
    session = initialize(site, token).headers["Mcp-Session-Id"]
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE)
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {token}", "Mcp-Session-Id": session}
    connection.request("GET", "/mcp", headers=headers)
    response = connection.getresponse()
    assert response.status == 200
    monkeypatch.setattr(identity_provider, "LEEWAY_SECONDS", -HOUR)  # its end has come
    response.read()  # to the end of the stream
    connection.close()


def test_an_access_token_is_not_pasted_into_the_form(site: Site, provider: Provider) -> None:
    body = f"token={provider.token(audience(site))}"
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": site.address}
    reply = site.ask("/login", method="POST", body=body, **headers)
    assert reply.status == 401
    assert "Set-Cookie" not in reply.headers


def section(provider: Provider, **changes: Any) -> SignInSection:
    settings = {"issuer": provider.issuer, "url": "https://bunko.example.com", "read": ("*=*",)}
    return SignInSection(**settings | changes)


@pytest.mark.parametrize(
    ("path", "claims"),
    [
        ("roles", {"roles": ["kitchen"]}),
        ("roles", {"roles": "kitchen"}),
        ("realm_access.roles", {"realm_access": {"roles": ["kitchen"]}}),
        ("https://example.com/roles", {"https://example.com/roles": ["kitchen"]}),
        ("email", {"email": "kitchen"}),
    ],
)
def test_rights_come_from_any_claim(provider: Provider, path: str, claims: dict[str, Any]) -> None:
    known = IdentityProvider(
        section(provider, rights_claim=path, read=("kitchen=recipes", "x=y"), write=("kitchen=diary",))
    )
    known.read()
    user = known.identify(provider.token("https://bunko.example.com/mcp", **claims))
    assert user is not None
    assert (known.rights(user).read, known.rights(user).write) == (("recipes",), ("diary",))


def test_a_group_of_a_directory_has_equals_signs(provider: Provider) -> None:
    known = IdentityProvider(section(provider, read=("cn=staff,dc=example=notes",)))
    known.read()
    user = known.identify(provider.token("https://bunko.example.com/mcp", groups=["cn=staff,dc=example"]))
    assert user is not None
    assert known.rights(user).read == ("notes",)


def test_other_names_of_the_audience_replace_the_address(provider: Provider) -> None:
    known = IdentityProvider(section(provider, audience=("api://bunko", "0f3a")))
    known.read()
    assert known.identify(provider.token("0f3a")) is not None
    assert known.identify(provider.token("x", aud=["x", "api://bunko"])) is not None
    with pytest.raises(TokenRefused, match="aud"):
        known.identify(provider.token("https://bunko.example.com/mcp"))


def test_a_scope_may_be_asked_for_with_the_name_of_its_api(provider: Provider) -> None:
    known = IdentityProvider(section(provider, scopes=("api://bunko/read",)))
    known.read()
    answers = {
        scope: known.identify(provider.token("https://bunko.example.com/mcp", typ="JWT", scope=None, scp=scope))
        for scope in ("read", "write")
    }
    assert {scope: user and user.lacks_scope for scope, user in answers.items()} == {"read": False, "write": True}


def test_whoever_has_no_name_is_called_by_the_subject(provider: Provider) -> None:
    known = IdentityProvider(section(provider, name_claim="email"))
    known.read()
    for email, name in (("bob@example.com", "user:bob@example.com"), (None, "user:u-1"), (["x"], "user:u-1")):
        user = known.identify(provider.token("https://bunko.example.com/mcp", email=email))
        assert user is not None
        assert user.name == name


HIDDEN_NAMES = (
    "", " ", "\u200b", "\x00", "\u3164", "alice\u200b@example.com", "alice@example.com\n", " alice@example.com",
    "alice\ufe0f@example.com", "\udbff", "a" * 256,
)  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN_NAMES)
def test_nobody_is_called_as_somebody_else_whose_name_looks_the_same(provider: Provider, name: str) -> None:
    known = IdentityProvider(section(provider, name_claim="email"))
    known.read()
    user = known.identify(provider.token("https://bunko.example.com/mcp", email=name))
    assert user is not None
    assert user.name == "user:u-1"
    with pytest.raises(TokenRefused):
        known.identify(provider.token("https://bunko.example.com/mcp", email=None, sub=name))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"issuer": "http://login.example.com"}, "sign_in.issuer is not an https address"),
        ({"issuer": "login.example.com"}, "sign_in.issuer is not an https address"),
        ({"url": None}, "sign_in.url is not set"),
        ({"url": "http://bunko.example.com"}, "sign_in.url is not an https address"),
        ({"url": "https://bunko.example.com/base"}, "sign_in.url has a path"),
        ({"read": ()}, "sign_in.read and sign_in.write are empty"),
        ({"read": ("staff",)}, "each entry must be VALUE=TOOL"),
        ({"client_secret": "日本"}, "sign_in.client_secret cannot be sent"),
        ({"issuer": "https://["}, "sign_in.issuer is not an https address"),
        ({"issuer": "https://login.example.com\n"}, "sign_in.issuer is not an https address"),
        ({"issuer": 'https://login.example.com/"'}, "sign_in.issuer is not an https address"),
        ({"url": "https://["}, "sign_in.url is not an https address"),
        ({"url": "https://h:x"}, "sign_in.url is not an https address"),
        ({"url": "https://h:99999"}, "sign_in.url is not an https address"),
        ({"scopes": ('a"b',)}, "sign_in.scopes has"),
        ({"scopes": ("a b",)}, "sign_in.scopes has"),
        ({"page_scopes": ("openid\n",)}, "sign_in.page_scopes has"),
    ],
)
def test_settings_by_which_nobody_could_sign_in_are_errors(
    own_provider: Provider, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        IdentityProvider(section(own_provider, **changes))
    assert caught.value.hint
    assert own_provider.fetches == []


def test_a_provider_that_has_another_name_is_named(own_provider: Provider) -> None:
    own_provider.metadata["issuer"] = "https://elsewhere.example"
    with pytest.raises(SettingsError, match=r"calls itself https://elsewhere\.example"):
        IdentityProvider(section(own_provider)).read()


def test_keys_are_not_fetched_without_encryption_from_elsewhere(own_provider: Provider) -> None:
    own_provider.metadata["jwks_uri"] = "http://192.0.2.1/keys"
    with pytest.raises(SettingsError, match="jwks_uri is not an https address"):
        IdentityProvider(section(own_provider)).read()


NO_ADDRESSES = (
    "https://[", "https://[::1", "https://h:99999/", "https://h:abc/", "https://a..b/", f"https://{'a' * 300}/",
    "https://\u0130.example/", "https://h/\u00e9", "https://h\r\nX: y/", "https://h/\n", "https://exa mple/", "https:///x",
)  # fmt: skip


ASKS: dict[str, Callable[[IdentityProvider], object]] = {
    "jwks_uri": lambda known: known.read(),
    "authorization_endpoint": lambda known: known.authorization_address("state", "nonce", "verifier"),
    "token_endpoint": lambda known: known.redeem("code", "nonce", "verifier", known.issuer),
}


@pytest.mark.parametrize("endpoint", ASKS)
def test_a_provider_that_names_no_addresses_is_reported(own_provider: Provider, endpoint: str) -> None:
    for address in (*NO_ADDRESSES, 5, None, ["https://h/"]):
        own_provider.metadata[endpoint] = address
        known = IdentityProvider(section(own_provider, client_id="page"))
        if endpoint != "jwks_uri":
            known.read()
        with pytest.raises(BunkoError, match=endpoint) as caught:
            ASKS[endpoint](known)
        assert caught.value.hint
        assert caught.value.message.isprintable()


@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint"])
def test_a_provider_elsewhere_leads_to_no_address_of_this_machine(own_provider: Provider, endpoint: str) -> None:
    known = IdentityProvider(section(own_provider, client_id="page"))
    known.read()
    known.issuer = own_provider.metadata["issuer"] = "https://login.example.com"
    with pytest.raises(SettingsError, match=rf"{endpoint} is not an https address: http://127\.0\.0\.1"):
        ASKS[endpoint](known)
    assert own_provider.token_requests == []


def test_a_provider_whose_addresses_make_no_sense_is_as_one_that_is_away(
    own_site: Site, own_provider: Provider, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity_provider, "RETRY_SECONDS", 0.0)
    for address in NO_ADDRESSES:
        own_provider.metadata["jwks_uri"] = address
        reply = search(own_site, own_provider.token(audience(own_site)))
        assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
    assert "jwks_uri is not an https address" in caplog.text
    assert all(record.getMessage().isprintable() and not record.exc_info for record in caplog.records)
    del own_provider.metadata["jwks_uri"]
    assert search(own_site, own_provider.token(audience(own_site))).status == 200


@pytest.mark.parametrize("methods", [5, True, {"client_secret_post": 1}, "client_secret_post", [5], [], None])
def test_ways_to_send_a_secret_that_make_no_sense_are_the_usual_one(own_provider: Provider, methods: Any) -> None:
    own_provider.metadata["token_endpoint_auth_methods_supported"] = methods
    known = IdentityProvider(section(own_provider, client_id=CLIENT_ID, client_secret=CLIENT_SECRET))
    known.read()
    with pytest.raises(TokenRefused, match="invalid_grant"):
        known.redeem("code", "nonce", "verifier", known.issuer)
    [form] = own_provider.token_requests
    assert form["authorization"].startswith("Basic ")


@pytest.mark.parametrize("reply", [5, None, [], ["error"], "error", {"id_token": 5}, {"error": 5}, "[" * 8000])
def test_an_answer_to_a_code_that_makes_no_sense_signs_nobody_in(
    own_provider: Provider, monkeypatch: pytest.MonkeyPatch, reply: Any
) -> None:
    monkeypatch.setattr(own_provider, "_redeem", lambda *_: (200, reply))
    known = IdentityProvider(section(own_provider, client_id=CLIENT_ID))
    known.read()
    with pytest.raises(TokenRefused):
        known.redeem("code", "nonce", "verifier", known.issuer)


def test_keys_of_kinds_that_are_not_known_are_left_out(own_provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = own_provider.key_set()["keys"]
    strange = [{"kty": "oct", "k": "c2VjcmV0", "kid": "s"}, {"kty": "AKP", "kid": "n"}, {"kty": "RSA", "kid": "b"}, 7]
    monkeypatch.setattr(own_provider, "key_set", lambda: {"keys": [*strange, {**keys[0], "use": "enc"}, keys[1]]})
    assert IdentityProvider(section(own_provider)).read() == "1 EC"


@pytest.mark.filterwarnings("ignore:Key size", "ignore:The RSA key is")  # which the packages say, too
@pytest.mark.parametrize("bits", [1024, 2047])
def test_rsa_keys_that_are_too_short_are_left_out(own_provider: Provider, bits: int) -> None:
    own_provider.keys |= {"rsa-1": rsa.generate_private_key(65537, bits), "rsa-2": NEXT_KEY}
    known = IdentityProvider(section(own_provider))
    assert known.read() == "1 EC, 1 RSA"
    assert known.identify(own_provider.token("https://bunko.example.com/mcp", "rsa-1")) is None
    assert known.identify(own_provider.token("https://bunko.example.com/mcp", "rsa-2")) is not None


def test_without_the_packages_the_error_says_how_to_get_them(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        identity_provider, "missing_package_message", lambda module, *_: "missing" if module == "authlib" else ""
    )
    with pytest.raises(PackageError, match="Authlib is not installed") as caught:
        IdentityProvider(section(provider))
    assert "bunko[sign-in]" in caught.value.hint
