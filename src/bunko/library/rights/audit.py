"""Record who changed what in a library, before the change and after it."""

from __future__ import annotations

import getpass
import logging
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from bunko.errors import BunkoError
from bunko.protocols import Store
from bunko.runtime.timing import now
from bunko.types import Report
from bunko.types.access import AuditEntry, AuditResult, Caller, Via

if TYPE_CHECKING:
    from bunko.library.web.collector import CollectResult

_log = logging.getLogger("bunko.library")

_MAX_TEXT_CHARS, _MAX_VALUES = 300, 20
_HIDDEN = "…"
_SECRETS = (
    (re.compile(r"//[^/?#\s@]*@"), f"//{_HIDDEN}@"),  # user and password of an address
    (
        re.compile(r"(?i)([?&;][^=&;#\s]*(?:token|key|secret|passw|sig|auth|credential|session)[^=&;#\s]*=)[^&;#\s]*"),
        rf"\g<1>{_HIDDEN}",
    ),
    (re.compile(r"bunko_[\w-]{20,}"), f"bunko_{_HIDDEN}"),
)


@dataclass(slots=True)
class AuditRecord:
    """The entry of a change that is under way; whoever makes the change fills it in."""

    details: dict[str, Any] = field(default_factory=dict)  # counts of what was changed
    tools: Sequence[str] | None = None  # if they were not known before
    is_interrupted: bool = False

    def add_report(self, report: Report) -> None:
        """Add the counts of an import."""
        names = ("added", "updated", "deleted", "moved", "unchanged")
        counts = {name: getattr(report, name) for name in names if getattr(report, name)}
        self.details |= counts | ({"problems": len(report.problems)} if report.problems else {})
        self.is_interrupted = report.interrupted

    def add_pages(self, result: CollectResult) -> None:
        """Add the counts of collected web pages."""
        self.details |= {"pages": len(result.outcome.stored_urls), "chunks": sum(result.chunk_counts.values())}
        self.details |= {"problems": result.errors} if result.errors else {}
        self.is_interrupted = result.outcome.interrupted


class AuditLog:
    """Who changed what in a library; it keeps a limited number of entries."""

    def __init__(self, store: Store, *, limit: int) -> None:
        self._store, self._limit = store, limit

    def entries(self, *, since: str = "") -> list[AuditEntry]:
        """Return the entries, the oldest first; all, or those from a time on."""
        return self._store.audit.entries(since=since)

    @contextmanager
    def record(
        self,
        caller: Caller,
        action: str,
        *,
        tools: Sequence[str] = (),
        arguments: Mapping[str, Any] | None = None,
        always: bool = False,
    ) -> Iterator[AuditRecord]:
        """Record the change that the block makes: as started, and then how it ended. If it cannot be recorded, raise.

        A change by a command or over stdio is recorded only if several people use the library, or `always`.
        """
        record = AuditRecord()
        if not (always or caller.via in ("http", "slack") or self._is_shared()):
            yield record
            return
        entry = AuditEntry(now(), caller.name, caller.via, action, tuple(tools), _clean_values(arguments or {}))
        entry_id = self._store.audit.begin(entry, limit=self._limit)
        try:
            yield record
        except BunkoError as error:
            self._finish(entry_id, "failed", record.details | {"error": _clean(error.message)}, record.tools)
            raise
        except BaseException as error:
            result: AuditResult = "failed" if isinstance(error, Exception) else "interrupted"
            self._finish(entry_id, result, record.details | {"error": type(error).__name__}, record.tools)
            raise
        self._finish(entry_id, "interrupted" if record.is_interrupted else "done", record.details, record.tools)

    def _finish(
        self, entry_id: int, result: AuditResult, details: Mapping[str, Any], tools: Sequence[str] | None
    ) -> None:
        try:
            self._store.audit.finish(entry_id, result, _clean_values(details), tools=tools)
        except BunkoError as error:  # the change is made; its entry stays as started
            _log.warning("The audit log does not say how a change ended: %s", error.message)

    def _is_shared(self) -> bool:
        """Return whether several people use the library: it is on a server, or has tokens."""
        return self._store.address.server is not None or bool(self._store.tokens.all())


@cache
def local_caller(via: Via) -> Caller:
    """Return whoever runs this process, who may do everything."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run as a user without a name
        user = "?"
    return Caller(f"{user}@{socket.gethostname().partition('.')[0] or '?'}", via, is_owner=True)


def entry_to_dict(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry for JSON."""
    values = asdict(entry)
    del values["id"]
    return values | {"tools": list(entry.tools)}


def _clean_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values without secrets, each of a limited length; those that say nothing are left out."""
    cleaned = {name: _clean(value) for name, value in values.items() if value not in (None, "", False, (), [])}
    return {name: value for name, value in cleaned.items() if value is not None}


def _clean(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        more = [f"{_HIDDEN} {len(value) - _MAX_VALUES} more"] if len(value) > _MAX_VALUES else []
        return [*(_clean(item) for item in value[:_MAX_VALUES]), *more]
    text = str(value)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS] + _HIDDEN
