"""Create, revoke and recognise the tokens of HTTP clients; a library stores only their digests."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from bunko.errors import QueryError, SettingsError, UnknownName
from bunko.library.tools.catalog import get_tool
from bunko.protocols import Store
from bunko.runtime.timing import now
from bunko.text.dates import resolve_date
from bunko.text.normalise import normalise
from bunko.types.access import ALL_TOOLS, Rights, Token

TOKEN_PREFIX = "bunko_"  # by which people and scanners for secrets recognise a token
_TOKEN_BYTES = 32
_NAME = re.compile(r"(?=.*[^\W_])[\w.@+-]{1,64}")
_DURATION = re.compile(r"(\d{1,4})\s*(h|d|w|m|y|時間|日|週間|[かカヵヶケ箇]月|年)")
_UNIT_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365, "日": 1, "週間": 7, "月": 30, "年": 365}


class Tokens:
    """The tokens of a library."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[Token]:
        """Return all tokens, sorted by name; those that have expired too."""
        return self._store.tokens.all()

    def add(self, name: str, rights: Rights, *, expires_at: str = "") -> str:
        """Add a token and return it; nobody can read it again, because the library has only its digest.

        It is random and as long as its digest, so a plain SHA-256 is as hard to invert as any slower hash.
        """
        if not _NAME.fullmatch(name):
            raise SettingsError(
                f"{name[:80]!r} cannot be a token's name", hint="Use letters, digits and . _ @ + -, at most 64 of them."
            )
        token = TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
        if not self._store.tokens.add(Token(name, token_digest(token), rights, now(), expires_at)):
            raise SettingsError(
                f"A token named {name!r} already exists", hint=f"Choose another name, or run: bunko token revoke {name}"
            )
        return token

    def revoke(self, name: str) -> None:
        """Delete a token; servers refuse it within a second."""
        if not self._store.tokens.remove(name):
            names = ", ".join(token.name for token in self.all()) or "none yet"
            raise UnknownName(f"There is no token called {name[:80]!r}", hint=f"Tokens of this library: {names}.")

    def mark_used(self, token: Token) -> None:
        """Record that a token is used now, unless another process is writing."""
        self._store.tokens.mark_used(token.name, now())

    def rights(self, read: Sequence[str], write: Sequence[str]) -> Rights:
        """Return the rights that a command names: by default, all tools may be read and none may be written."""
        return Rights(self._names(read or (ALL_TOOLS,)), self._names(write))

    def _names(self, names: Sequence[str]) -> tuple[str, ...]:
        if ALL_TOOLS in names:
            return (ALL_TOOLS,)
        return tuple(dict.fromkeys(get_tool(self._store, name).name for name in names))


def find_token(tokens: Iterable[Token], text: str) -> Token | None:
    """Return the token that a client sent, compared with all of them in constant time; None if it has expired."""
    digest, match = token_digest(text), None
    for token in tokens:
        if hmac.compare_digest(token.digest.encode(), digest.encode()):
            match = token
    return None if match is None or is_expired(match) else match


def token_digest(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def is_expired(token: Token) -> bool:
    """Return whether a token is no longer valid."""
    if not token.expires_at:
        return False
    try:
        return datetime.fromisoformat(token.expires_at) <= datetime.now(UTC)
    except (ValueError, TypeError):  # somebody else wrote it
        return True


def resolve_expiry(text: str, moment: datetime) -> str:
    """Return when a token expires, in UTC: after 12h, 30d, 8w, 6m or 1y, or at the end of a day like 2027-01-31."""
    normalised = normalise(text).strip().lower()
    zone = moment.astimezone().tzinfo if moment.tzinfo is None else moment.tzinfo
    moment = moment.replace(tzinfo=zone)
    try:
        if match := _DURATION.fullmatch(normalised):
            amount, unit = int(match[1]), match[2].lstrip("かカヵヶケ箇")
            span = timedelta(hours=amount) if unit in ("h", "時間") else timedelta(days=amount * _UNIT_DAYS[unit])
            expires = moment + span
        else:
            date = datetime.fromisoformat(resolve_date(text, moment))
            is_day = date.time() == datetime.min.time() and ":" not in text
            expires = (date + timedelta(days=1) if is_day else date).replace(tzinfo=zone)
    except (QueryError, ValueError, OverflowError) as error:
        raise SettingsError(
            f"{text[:80]!r} is neither a duration nor a day", hint="Write 12h, 30d, 8w, 6m, 1y or 2027-01-31."
        ) from error
    if expires <= moment:
        raise SettingsError(f"{text[:80]!r} is in the past", hint="Write 30d, or a day to come.")
    return expires.astimezone(UTC).isoformat(timespec="seconds")
