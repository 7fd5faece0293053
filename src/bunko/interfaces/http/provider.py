"""Let in whom the identity provider knows, ask it without stopping the server, and tell clients where to sign in."""

from __future__ import annotations

import asyncio
import json
import logging

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bunko.interfaces.http.guards import CLIENT_LOG
from bunko.interfaces.sender import ClientIdentity
from bunko.interfaces.worker_threads import Workers
from bunko.library.rights.identity_provider import IdentityProvider, SignedInUser, TokenRefused
from bunko.library.rights.tokens import token_digest
from bunko.types.access import Caller

# RFC 9728: the second is the one for /mcp, and clients that are told neither look at both.
METADATA_PATHS = ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp")
_MAX_REDEEMS, _MAX_WAIT_SECONDS = 4, 10.0
# Limited, because anybody can cause such a line.
_log = logging.getLogger(CLIENT_LOG)


class ProviderUsers:
    """Those who sign in by the identity provider: assistants with its access tokens, browsers with sessions of ours."""

    def __init__(self, provider: IdentityProvider) -> None:
        self.provider = provider
        # Another provider, another client there or other groups end the sessions of those who signed in before.
        self.session_digest = token_digest(
            json.dumps([provider.issuer, provider.client_id, provider.rights_claim, *provider.groups])
        )
        self._reading: asyncio.Task[None] | None = None
        self._readers = Workers("requests to the identity provider", max_threads=1, max_wait_seconds=_MAX_WAIT_SECONDS)
        self._redeemers = Workers("sign-ins", max_threads=_MAX_REDEEMS, max_wait_seconds=_MAX_WAIT_SECONDS)

    async def find(self, token: str) -> ClientIdentity | None:
        """Return whose access token this is, None if it is not valid; raise why that cannot be said now."""
        if self.provider.is_read_due():  # the keys that are known serve meanwhile
            self._start_read()
        try:
            user = self.provider.identify(token)
            if user is None:
                await self.read()
                user = self.provider.identify(token)
        except TokenRefused as refusal:
            _log.warning("Refused an access token: %s", refusal)
            return None
        if user is None and self.provider.problem is not None:
            raise self.provider.problem
        if user is None:
            _log.warning("Refused an access token: its key is unknown")
            return None
        return self._identity(user)

    async def read(self) -> None:
        """Wait for what the provider says of itself, unless it was asked just now; a client that goes ends nothing."""
        if self.provider.is_read_due(has_unknown_key=True):
            self._start_read()
        if self._reading is not None:
            await asyncio.wait({self._reading})

    def _start_read(self) -> None:
        if self._reading is None or self._reading.done():
            read = self._readers.run(lambda: self.provider.read_if_due(has_unknown_key=True))
            self._reading = asyncio.create_task(read)

    async def address(self, state: str, nonce: str, verifier: str) -> str:
        """Return where a browser signs in; raise BunkoError if the provider does not say."""
        if not self.provider.is_known:
            await self.read()
        return self.provider.authorization_address(state, nonce, verifier)

    async def redeem(self, code: str, nonce: str, verifier: str, issuer: str | None) -> SignedInUser:
        """Return who signed in with a browser; raise TokenRefused or BunkoError."""
        if not self.provider.is_known:  # another worker sent the browser there
            await self.read()
        return await self._redeemers.run(self.provider.redeem, code, nonce, verifier, issuer)

    def session_name(self, user: SignedInUser) -> str:
        """Return what a session says of a user: the name, and a bit for each group of the settings."""
        bits = sum(1 << place for place, group in enumerate(self.provider.groups) if group in user.groups)
        return json.dumps([user.name, bits], ensure_ascii=False, separators=(",", ":"))

    def find_by_session(self, name: str) -> ClientIdentity:
        """Return the user of a valid session, with the rights that the settings give now."""
        user, bits = json.loads(name)
        groups = tuple(group for place, group in enumerate(self.provider.groups) if bits >> place & 1)
        return self._identity(SignedInUser(user, groups))

    def _identity(self, user: SignedInUser) -> ClientIdentity:
        rights = self.provider.rights(user)
        caller = Caller(user.name, "http", rights)
        if user.lacks_scope:
            return ClientIdentity(caller, may_end=True, lacks="scope")
        return ClientIdentity(caller, may_end=True, lacks="" if rights.read or rights.write else "rights")

    @property
    def challenge(self) -> str:
        """What clients without a token are told besides that they need one."""
        scope = f', scope="{" ".join(self.provider.scopes)}"' if self.provider.scopes else ""
        return f', resource_metadata="{self.provider.url}{METADATA_PATHS[1]}"{scope}'

    async def answer_metadata(self, _: Request) -> Response:
        """Say which provider issues the tokens for this server (RFC 9728)."""
        scopes = {"scopes_supported": list(self.provider.scopes)} if self.provider.scopes else {}
        return JSONResponse(
            {
                "resource": self.provider.resource,
                "authorization_servers": [self.provider.issuer],
                "bearer_methods_supported": ["header"],
                "resource_name": "bunko",
                **scopes,
            }
        )
