"""Run a small identity provider on loopback: real keys, real tokens, discovery, authorization codes with PKCE."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

CLIENT_ID, CLIENT_SECRET = "bunko-page", "the-secret-of-the-page"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
# Made once: an RSA key takes a tenth of a second.
RSA_KEY = rsa.generate_private_key(65537, 2048)
NEXT_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


class Provider:
    """An identity provider at which one person is always signed in; what it does wrong is set by tests."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.keys: dict[str, PrivateKey] = {"rsa-1": RSA_KEY, "ec-1": EC_KEY}
        self.person: dict[str, Any] = {"sub": "u-1", "email": "alice@example.com", "groups": ["staff"]}
        self.id_claims: dict[str, Any] = {}  # instead of the right ones
        self.metadata: dict[str, Any] = {}
        self.audience = ""  # of access tokens: empty for the resource that the client names
        self.has_form = False
        self.fetches: list[str] = []
        self.token_requests: list[dict[str, str]] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        """Answer no longer: connections are refused."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def claims(self, audience: str, **changes: Any) -> dict[str, Any]:
        """Return the claims of a good access token, with changes; None removes one."""
        moment = int(time.time())
        good = {
            "iss": self.issuer, "aud": audience, "exp": moment + 300, "iat": moment, "scope": "bunko",
            "client_id": "an-assistant", "jti": secrets.token_hex(8), **self.person,
        }  # fmt: skip
        return {name: value for name, value in (good | changes).items() if value is not None}

    def token(self, audience: str, kid: str = "rsa-1", typ: str | None = "at+jwt", **changes: Any) -> str:
        """Return an access token."""
        return self.sign(self.claims(audience, **changes), kid, typ)

    def sign(self, claims: Mapping[str, Any], kid: str = "rsa-1", typ: str | None = "JWT") -> str:
        """Sign claims with one of the keys."""
        key = self.keys[kid]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(dict(claims), key, algorithm, headers={"kid": kid, "typ": typ})

    def key_set(self) -> dict[str, Any]:
        """Return what it publishes of its keys."""
        published = []
        for kid, key in self.keys.items():
            algorithm = jwt.get_algorithm_by_name("RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256")
            published.append(json.loads(algorithm.to_jwk(key.public_key())) | {"kid": kid, "use": "sig"})
        return {"keys": published}

    def _describe(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    def _authorize(self, query: dict[str, str]) -> str:
        """Return where the browser goes next, with a code."""
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.issuer}
        return f"{query['redirect_uri']}?{urlencode(answer)}"

    def _redeem(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        self.token_requests.append(form | {"authorization": authorization})
        asked = self._codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            asked is None
            or asked["redirect_uri"] != form.get("redirect_uri")
            or asked["code_challenge"] != base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        ):
            return 400, {"error": "invalid_grant", "error_description": "The code is not valid"}
        if asked["client_id"] == CLIENT_ID:
            expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
            if authorization != f"Basic {expected}":
                return 401, {"error": "invalid_client"}
        audience = self.audience or form.get("resource") or "the-userinfo-of-this-provider"
        tokens = {"access_token": self.token(audience, scope=asked.get("scope", "")), "token_type": "Bearer"}
        if "openid" in asked.get("scope", "").split():
            moment = int(time.time())
            claims = {
                "iss": self.issuer, "aud": asked["client_id"], "exp": moment + 300, "iat": moment,
                "nonce": asked.get("nonce"), **self.person, **self.id_claims,
            }  # fmt: skip
            tokens["id_token"] = self.sign({name: value for name, value in claims.items() if value is not None})
        return 200, tokens | {"expires_in": 300}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = dict(parse_qsl(parts.query))
                provider.fetches.append(parts.path)
                if parts.path == "/.well-known/openid-configuration":
                    self._answer(200, provider._describe())
                elif parts.path == "/keys":
                    self._answer(200, provider.key_set())
                elif parts.path == "/authorize" and provider.has_form:
                    fields = "".join(f'<input type="hidden" name="{name}" value="{query[name]}">' for name in query)
                    page = f'<!doctype html><form action="/allow">{fields}<button>Allow</button></form>'
                    self._answer(200, page, "text/html")
                elif parts.path in ("/authorize", "/allow"):
                    self._answer(303, "", Location=provider._authorize(query))
                else:
                    self._answer(404, "")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                self._answer(*provider._redeem(form, self.headers.get("Authorization", "")))

            def _answer(self, status: int, content: Any, kind: str = "application/json", **headers: str) -> None:
                body = (content if isinstance(content, str) else json.dumps(content)).encode()
                self.send_response(status)
                for name, value in ({"Content-Type": kind, "Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@contextmanager
def run_provider(host: str = "127.0.0.1") -> Iterator[Provider]:
    """Run a provider while the block runs."""
    provider = Provider(host)
    try:
        yield provider
    finally:
        provider.stop()
