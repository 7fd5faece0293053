"""Ask the team's identity provider who somebody is: check its tokens by its published keys, and sign browsers in."""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from bunko.errors import BunkoError, FetchFailed, PackageError, SettingsError
from bunko.runtime.installation import install_command, missing_package_message
from bunko.runtime.remote import key_problem
from bunko.text.labels import clean_label
from bunko.types.access import ALL_TOOLS, Rights

if TYPE_CHECKING:
    from joserfc.jwk import KeySet
    from joserfc.jwt import Token

    from bunko.settings.schema import SignInSection

KEY_SECONDS = 600.0  # how soon a key is refused that the provider publishes no longer
RETRY_SECONDS = 10.0  # between two requests that tokens with unknown keys cause
LEEWAY_SECONDS = 60  # by which the clocks of two machines may differ
MAX_TOKEN_CHARS = 12_000  # one with the groups of a large company has fewer
_ANSWER_SECONDS, _MAX_ANSWER_BYTES = 5.0, 1024 * 1024
_MAX_NAME_CHARS = 255  # of `sub`, as OpenID Connect limits it
# Only what is signed with a private key and checked with a public one: whoever knows that one can sign nothing.
_ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
_KEY_TYPES = ("RSA", "EC", "OKP")
_MIN_RSA_BITS = 2048  # RFC 7518
_ACCESS_TOKEN_TYPES = ("at+jwt", "application/at+jwt")
# What providers write into access tokens that do not say so in their header, and not into ID tokens.
_ACCESS_TOKEN_CLAIMS = ("scope", "scp", "client_id", "cid", "appid", "azpacr")
_ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ADDRESS = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")  # RFC 3986; urlsplit leaves line ends out
_SCOPE = re.compile(r"[!#-\[\]-~]+")  # RFC 6749

_log = logging.getLogger("bunko.sign_in")


class TokenRefused(Exception):
    """Why a token is not valid: for the log, never for whoever sent it."""


@dataclass(frozen=True, slots=True)
class SignedInUser:
    """Somebody whom the provider knows."""

    name: str
    groups: tuple[str, ...]  # those values of the claim that the settings give rights to
    lacks_scope: bool = False


class IdentityProvider:
    """What the settings and the provider itself say of it; it never gets a token or a secret of bunko."""

    def __init__(self, settings: SignInSection) -> None:
        """Raise SettingsError for settings by which nobody could sign in; nothing is sent yet."""
        for module, package in (("joserfc", "joserfc"), ("authlib", "Authlib")):
            if missing_package_message(module, package, "sign-in"):
                raise PackageError(
                    f"The package {package} is not installed", hint=f"Install it with: {install_command('sign-in')}"
                )
        self.issuer = _checked_address("sign_in.issuer", settings.issuer or "")
        self.url = _checked_address("sign_in.url", (settings.url or "").rstrip("/"))
        if self.url != "{0.scheme}://{0.netloc}".format(urlsplit(self.url)):
            raise SettingsError(f"sign_in.url has a path: {self.url}", hint="Write it like https://bunko.example.com.")
        if problem := key_problem(settings.client_secret):
            raise SettingsError(f"sign_in.client_secret cannot be sent: {problem}", hint="Check the secret.")
        self.resource, self.host = f"{self.url}/mcp", urlsplit(self.url).hostname or ""
        self.scopes, self.client_id = _checked_scopes("sign_in.scopes", settings.scopes), settings.client_id or ""
        self._page_scopes = _checked_scopes("sign_in.page_scopes", settings.page_scopes)
        self._settings = settings
        self._audiences = settings.audience or (self.resource,)
        self._read = [_parse_entry("sign_in.read", entry) for entry in settings.read]
        self._write = [_parse_entry("sign_in.write", entry) for entry in settings.write]
        if not self._read and not self._write:
            raise SettingsError(
                "sign_in.read and sign_in.write are empty: whoever signs in may do nothing",
                hint='Write read = ["GROUP=TOOL"], with * for everyone or every tool.',
            )
        self.groups = tuple(dict.fromkeys(group for group, _ in (*self._read, *self._write)))
        self.rights_claim = settings.rights_claim
        self._metadata: Mapping[str, Any] = {}
        self._keys: KeySet | None = None
        self._asked_at = -math.inf
        self.problem: BunkoError | None = None  # with the last request

    @property
    def is_known(self) -> bool:
        """Whether it has said where to sign in, and which keys it uses."""
        return self._keys is not None

    def rights(self, user: SignedInUser) -> Rights:
        """Return what the settings allow somebody."""
        groups = {*user.groups, ALL_TOOLS}
        return Rights(
            read=tuple(tool for group, tool in self._read if group in groups),
            write=tuple(tool for group, tool in self._write if group in groups),
        )

    def identify(self, token: str) -> SignedInUser | None:
        """Return whose access token this is, None if its key is unknown here; raise TokenRefused if it is not valid."""
        decoded = self._decode(token, self._audiences)
        if decoded is None:
            return None
        if not _is_access_token(decoded):
            raise TokenRefused("it is not an access token")
        granted = _granted_scopes(decoded.claims)
        # Microsoft's provider is asked for api://bunko/read, and writes read.
        lacks_scope = any(scope not in granted and scope.rpartition("/")[2] not in granted for scope in self.scopes)
        return self._user(decoded.claims, lacks_scope=lacks_scope)

    def authorization_address(self, state: str, nonce: str, verifier: str) -> str:
        """Return where a browser signs in, if the provider is known."""
        client, endpoint = self._client(), self._endpoint("authorization_endpoint")
        return str(client.create_authorization_url(endpoint, state, verifier, nonce=nonce)[0])

    def redeem(self, code: str, nonce: str, verifier: str, issuer: str | None) -> SignedInUser:
        """Return who signed in, for the code that the browser brought; raise TokenRefused or BunkoError.

        `issuer` is who sent the browser, if it says so: otherwise another provider could ask for the codes of this one.
        """
        from authlib.common.errors import AuthlibBaseError
        from authlib.oidc.core import CodeIDToken

        names_itself = self._metadata.get("authorization_response_iss_parameter_supported")  # RFC 9207
        if issuer != self.issuer and (names_itself or issuer is not None):
            raise TokenRefused("another provider answered")
        try:
            reply = self._client().fetch_token(
                self._endpoint("token_endpoint"), grant_type="authorization_code", code=code, code_verifier=verifier
            )
            token = reply.get("id_token")
        except BunkoError:
            raise
        except AuthlibBaseError as error:
            raise TokenRefused(f"the provider refuses the code: {error}") from error
        except Exception as error:  # as in _decode
            raise TokenRefused(f"the provider gives no answer to the code that makes sense: {error}") from error
        if not isinstance(token, str):
            raise TokenRefused("the provider sent no ID token; page_scopes must contain openid")
        decoded = self._decode(token, (self.client_id,))
        if decoded is None:
            self.read_if_due(has_unknown_key=True)
            decoded = self._decode(token, (self.client_id,))
        if decoded is None:
            raise TokenRefused("its key is unknown")
        try:
            params = {"nonce": nonce, "client_id": self.client_id}
            CodeIDToken(decoded.claims, decoded.header, params=params).validate(leeway=LEEWAY_SECONDS)
        except Exception as error:  # as in _decode
            raise TokenRefused(f"{type(error).__name__}: {error}") from error
        return self._user(decoded.claims)

    def is_read_due(self, *, has_unknown_key: bool = False) -> bool:
        """Return whether to ask the provider again, which tokens with unknown keys cannot cause too often."""
        seconds = RETRY_SECONDS if has_unknown_key or self.problem else KEY_SECONDS
        return time.monotonic() - self._asked_at >= seconds

    def read_if_due(self, *, has_unknown_key: bool = False) -> None:
        """Ask the provider again if it is time; if it does not answer, its known keys go on being used."""
        if not self.is_read_due(has_unknown_key=has_unknown_key):
            return
        self._asked_at = time.monotonic()
        try:
            self.read()
        except BunkoError as error:
            self.problem = error
            _log.warning("%s", error.message)

    def read(self) -> str:
        """Read what the provider says of itself, and its keys; return which those are, in words."""
        address = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        metadata = self._fetch(address)
        if metadata.get("issuer") != self.issuer:
            name = clean_label(str(metadata.get("issuer")), 200)
            raise SettingsError(
                f"The identity provider at {address} calls itself {name}, not {self.issuer}",
                hint="Set sign_in.issuer to exactly the name that it gives itself.",
            )
        self._metadata = metadata
        self._keys = _import_keys(self._fetch(self._endpoint("jwks_uri")))
        self.problem = None
        types = sorted(key.key_type for key in self._keys)
        return ", ".join(f"{types.count(name)} {name}" for name in dict.fromkeys(types))

    def _decode(self, token: str, audiences: Sequence[str]) -> Token | None:
        """Return what a token says if its signature, issuer, audience and times are right, None for an unknown key."""
        if len(token) > MAX_TOKEN_CHARS:
            raise TokenRefused("it is too long")
        if self._keys is None:  # and the packages are not imported yet: a thread does that as it reads them
            return None
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError
        from joserfc.jws import JWSRegistry

        registry = JWSRegistry(algorithms=_ALGORITHMS, strict_check_header=False)
        required = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS, iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "values": list(audiences)},
            sub={"essential": True}, exp={"essential": True}, iat={"essential": True},
        )  # fmt: skip
        try:
            decoded = jwt.decode(token, self._keys, registry=registry)
            required.validate(decoded.claims)
        except InvalidKeyIdError:
            return None
        except JoseError as error:
            raise TokenRefused(str(error)) from error
        except Exception as error:  # anybody can write a header or claims by which the package stumbles
            raise TokenRefused(f"{type(error).__name__}: {error}") from error
        if "events" in decoded.claims:  # RFC 8417: it reports that somebody signed out, for example
            raise TokenRefused("it reports an event")
        return decoded

    def _user(self, claims: Mapping[str, Any], *, lacks_scope: bool = False) -> SignedInUser:
        # What is cleaned may look like the name of somebody else; `sub` is nobody else's.
        names = (_claim(claims, self._settings.name_claim), claims["sub"])
        name = next((name for name in names if isinstance(name, str) and _is_clean_name(name)), None)
        if name is None:
            raise TokenRefused("its subject is empty, too long, or has spaces at an end or characters that nobody sees")
        claimed = _claim(claims, self.rights_claim)
        values = [claimed] if isinstance(claimed, str) else claimed if isinstance(claimed, list) else []
        claimed_groups = {value for value in values if isinstance(value, str)}
        return SignedInUser(
            # No token of a library has a colon in its name.
            f"user:{name}",
            tuple(group for group in self.groups if group in claimed_groups),
            lacks_scope,
        )

    def _client(self) -> Any:
        from authlib.oauth2.client import OAuth2Client

        secret = self._settings.client_secret
        named = self._metadata.get("token_endpoint_auth_methods_supported")
        methods = named if isinstance(named, list) else []
        by_form = "client_secret_post" in methods and "client_secret_basic" not in methods
        return OAuth2Client(
            _TokenRequests(self), self.client_id, secret or None,
            token_endpoint_auth_method="client_secret_post" if secret and by_form else None,
            scope=" ".join(self._page_scopes), redirect_uri=f"{self.url}{CALLBACK_PATH}",
            code_challenge_method="S256",
        )  # fmt: skip

    def _endpoint(self, name: str) -> str:
        address = self._metadata.get(name)
        if not isinstance(address, str):
            raise FetchFailed(f"The identity provider names no {name}", hint="Check sign_in.issuer.")
        if self.issuer.startswith("https:") and not address.startswith("https:"):  # not even at this machine
            raise SettingsError(
                f"{name} is not an https address: {clean_label(address, 200)}", hint="Check sign_in.issuer."
            )
        return _checked_address(name, address)

    def _fetch(self, address: str) -> Mapping[str, Any]:
        reply = self.send("GET", address, {"Accept": "application/json"})
        try:
            content = reply.json() if reply.status_code == 200 else None
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise FetchFailed(
                f"{address} gave no usable answer (HTTP {reply.status_code})", hint="Check sign_in.issuer.",
                status=reply.status_code,
            )  # fmt: skip
        return content

    def send(self, method: str, address: str, headers: Mapping[str, str], body: str = "") -> ProviderReply:
        """Send a request to the provider and return its whole answer, within a limited time; follow no redirect."""
        import httpcore2

        from bunko.runtime.deadlines import DeadlineBackend, RequestState

        state = RequestState()
        state.deadline = time.monotonic() + _ANSWER_SECONDS
        context = httpcore2.default_ssl_context() if address.startswith("https:") else None
        content = bytearray()
        try:
            with (
                httpcore2.ConnectionPool(network_backend=DeadlineBackend(state), ssl_context=context) as pool,
                pool.stream(method, address, headers=list(headers.items()), content=body.encode() or None) as response,
            ):
                for part in response.iter_stream():
                    content += part
                    if len(content) > _MAX_ANSWER_BYTES:
                        raise FetchFailed(f"{address} sent too long an answer", hint="Check sign_in.issuer.")
        except (
            httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, OSError, ValueError, TypeError,
        ) as error:  # fmt: skip
            reason = clean_label(str(error), 200) or type(error).__name__
            raise FetchFailed(
                f"The identity provider does not answer at {address}: {reason}",
                hint="Check sign_in.issuer, and that this machine reaches it.",
            ) from error
        return ProviderReply(response.status, bytes(content))


CALLBACK_PATH = "/login/callback"  # where the provider sends browsers back


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """An answer of the provider, with the names that Authlib asks for."""

    status_code: int
    content: bytes

    def json(self) -> Any:
        """Return its content."""
        return json.loads(self.content)

    def raise_for_status(self) -> None:
        """Raise ValueError if it is an error."""
        if self.status_code >= 400:
            raise ValueError(f"HTTP {self.status_code}")


class _TokenRequests:
    """Sends Authlib's requests for tokens in time-limited ones of ours."""

    def __init__(self, provider: IdentityProvider) -> None:
        self._provider = provider

    def post(self, address: str, *, data: Mapping[str, str], headers: Mapping[str, str], auth: Any) -> ProviderReply:
        # A copy: the headers are those of all clients, and get the secret of this one.
        address, headers, body = auth.prepare("POST", address, dict(headers), urlencode(data))
        return self._provider.send("POST", address, headers, body)


def _checked_address(key: str, address: str) -> str:
    """Return an address if what is sent there is safe from others; the network may be a private one."""
    if not _is_safe_address(address):
        raise SettingsError(
            f"{key} is not an https address: {clean_label(address, 200)}" if address else f"{key} is not set",
            hint="Write it like https://login.example.com; http is allowed on this machine only.",
        )
    return address


def _is_safe_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host, _ = (parts.hostname or "").encode("idna"), parts.port  # which raise errors, too
    except ValueError:
        return False
    is_encrypted = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    return bool(_ADDRESS.fullmatch(address) and is_encrypted and host) and parts.username is None


def _checked_scopes(key: str, scopes: tuple[str, ...]) -> tuple[str, ...]:
    for scope in scopes:
        if not _SCOPE.fullmatch(scope):
            raise SettingsError(
                f"{key} has {scope!r}, but a scope has neither spaces, quotation marks, backslashes nor letters like é",
                hint="Write one scope in each entry.",
            )
    return scopes


def _parse_entry(key: str, entry: str) -> tuple[str, str]:
    group, _, tool = (part.strip() for part in entry.rpartition("="))  # a name in a directory is cn=staff,dc=example
    if not group or not tool:
        raise SettingsError(
            f"{key} has {entry!r}, but each entry must be VALUE=TOOL",
            hint="Write staff=notes, with * for everyone or every tool.",
        )
    return group, tool


def _import_keys(document: Mapping[str, Any]) -> KeySet:
    """Return the keys that can have signed a token; those of kinds that are not known here are left out."""
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry, KeySet, RSAKey

    published, keys = document.get("keys"), []
    for data in published if isinstance(published, list) else ():
        if not isinstance(data, dict) or data.get("kty") not in _KEY_TYPES or data.get("use", "sig") != "sig":
            continue
        try:
            key = JWKRegistry.import_key(data)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if not isinstance(key, RSAKey) or key.public_key.key_size >= _MIN_RSA_BITS:
            keys.append(key)
    if not keys:
        raise FetchFailed("The identity provider publishes no key that signs tokens", hint="Check sign_in.issuer.")
    return KeySet(keys)


def _is_access_token(token: Token) -> bool:
    """Return whether a token is for asking a server, and not one that tells a client who signed in."""
    header_type, claims = str(token.header.get("typ", "JWT")).lower(), token.claims
    if header_type in _ACCESS_TOKEN_TYPES:  # RFC 9068
        return True
    if header_type != "jwt":
        return False
    if "typ" in claims:  # Keycloak
        return bool(claims["typ"] == "Bearer")
    is_id_token = any(name in claims for name in _ID_TOKEN_CLAIMS)
    return not is_id_token and any(name in claims for name in _ACCESS_TOKEN_CLAIMS)


def _is_clean_name(name: str) -> bool:
    return name != "" and clean_label(name, _MAX_NAME_CHARS) == name


def _granted_scopes(claims: Mapping[str, Any]) -> Sequence[str]:
    granted = claims.get("scope", claims.get("scp"))
    return granted.split() if isinstance(granted, str) else granted if isinstance(granted, list) else ()


def _claim(claims: Mapping[str, Any], path: str) -> object:
    """Return a claim by its name, which may be an address, or by the names that lead to it."""
    if path in claims:
        return claims[path]
    value: object = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
