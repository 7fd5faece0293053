"""Keep the sessions of HTTP clients that shook hands, few enough of each caller that nobody keeps the others out."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bunko.interfaces.mcp.protocol import Connection
from bunko.types.access import Caller

# Clients that went away without ending theirs have some too. A team may share one token.
MAX_OF_CALLER = 200
MAX_SESSIONS = 1000
IDLE_SECONDS = 1800.0


@dataclass(eq=False, slots=True)
class Session:
    """A client that shook hands."""

    owner: str
    connection: Connection
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    is_listening: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    requests: int = 0  # that are being served
    used_at: float = field(default_factory=time.monotonic)

    @contextmanager
    def serve_request(self) -> Iterator[None]:
        """Count a request, so that the session stays while it is served."""
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1
            self.used_at = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked or listened to; what the client asked before it went may still run."""
        return not self.requests and not self.connection.is_busy

    @property
    def has_expired(self) -> bool:
        """Whether it has been idle for too long."""
        return self.is_idle and time.monotonic() - self.used_at >= IDLE_SECONDS

    @property
    def only_listens(self) -> bool:
        """Whether its only request is the one that waits for changes."""
        return self.is_listening and self.requests == 1 and not self.connection.is_busy


class Sessions:
    """The sessions of one server.

    At a limit, the session that has been idle for longest ends: at that of a caller one of its own, at that of the
    server one of the caller with the most sessions. Those that only listen end next, because clients listen again.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def open(self, caller: Caller, connection: Connection) -> Session | None:
        """Return a new session of a caller, None if all others are needed."""
        for session in list(self._sessions.values()):
            if session.has_expired:
                self.end(session)
        counts = Counter(session.owner for session in self._sessions.values())
        if counts[caller.name] >= MAX_OF_CALLER and not self._end_one_of(caller.name):
            return None
        if len(self._sessions) >= MAX_SESSIONS and not any(
            self._end_one_of(owner) for owner, _ in counts.most_common()
        ):
            return None
        session = Session(caller.name, connection)
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str, caller: Caller) -> Session | None:
        """Return a session of a caller; that of another one does not exist for this one."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != caller.name:
            return None
        if session.has_expired:
            self.end(session)
            return None
        return session

    def end(self, session: Session) -> None:
        """Cancel what runs in a session, and forget it."""
        self._sessions.pop(session.id, None)
        session.connection.close()
        session.ended.set()

    def end_all(self) -> None:
        """End all sessions."""
        for session in list(self._sessions.values()):
            self.end(session)

    def _end_one_of(self, owner: str) -> bool:
        sessions = [session for session in self._sessions.values() if session.owner == owner]
        idle = [session for session in sessions if session.is_idle]
        candidates = idle or [session for session in sessions if session.only_listens]
        if candidates:
            self.end(min(candidates, key=lambda session: session.used_at))
        return bool(candidates)
