"""Limit a store to the tools that somebody may read: what is not expressly allowed here, nobody can call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bunko.errors import AccessDenied
from bunko.types import Tool
from bunko.types.records import ChunkRow, LoggedSearch

if TYPE_CHECKING:
    from bunko.protocols import Store

Method = Callable[..., Any]


class _ReadableTools:
    """Which tools of a store somebody may read."""

    def __init__(self, store: Store, can_read: Callable[[str], bool]) -> None:
        self._tools, self.can_read = store.tools, can_read
        self._ids: frozenset[int] | None = None

    def all(self) -> list[Tool]:
        tools = [tool for tool in self._tools.all() if self.can_read(tool.name)]
        self._ids = frozenset(tool.id for tool in tools)
        return tools

    def has(self, tool_id: int) -> bool:
        if self._ids is None or tool_id not in self._ids:  # it may be new
            self.all()
        return self._ids is not None and tool_id in self._ids

    def digest(self) -> str:
        return hashlib.sha256(repr(sorted(tool.id for tool in self.all())).encode()).hexdigest()[:16]


Limit = Callable[[_ReadableTools, Method], Method]


def _of_tool(readable: _ReadableTools, method: Method) -> Method:
    def call(tool_id: int, *args: Any, **kwargs: Any) -> Any:
        if not readable.has(tool_id):
            raise _denied()
        return method(tool_id, *args, **kwargs)

    return call


def _chunks(readable: _ReadableTools, method: Method) -> Method:
    def call(ids: Sequence[int], **kwargs: Any) -> dict[int, ChunkRow]:
        rows: dict[int, ChunkRow] = method(ids, **kwargs)
        return {chunk_id: row for chunk_id, row in rows.items() if readable.has(row.tool_id)}

    return call


def _searches(readable: _ReadableTools, method: Method) -> Method:
    def call() -> list[LoggedSearch]:
        return [search for search in method() if search.tool and readable.can_read(search.tool)]

    return call


def _answers(readable: _ReadableTools, method: Method) -> Method:
    """Keep cached answers apart from those of callers who may read other tools, unless they are about one tool."""

    def call(kind: str, *args: Any, **kwargs: Any) -> Any:
        tool_id = kind.partition(" ")[2]
        if not tool_id:
            kind = f"{kind} of {readable.digest()}"
        elif not (tool_id.isdecimal() and readable.has(int(tool_id))):
            raise _denied()
        return method(kind, *args, **kwargs)

    return call


# By subject and method. A new method is refused until it is here.
ALLOWED: Mapping[str, Mapping[str, Limit]] = {
    "tools": {"all": lambda readable, _: readable.all, "is_local": _of_tool},
    "documents": {
        "chunks": _chunks,
        **dict.fromkeys(
            (
                "fingerprints", "failures", "get", "get_all", "select", "find", "page", "uris", "uris_with_hash",
                "export",
            ),
            _of_tool,
        ),
    },
    "vectors": dict.fromkeys(("has_any", "uris_without", "document_means"), _of_tool),
    "changes": {"last_generation": _of_tool},
    "pages": dict.fromkeys(("select", "content"), _of_tool),
    "cache": {
        "log_search": lambda _, method: method,
        "logged_searches": _searches,
        **dict.fromkeys(("cached_answer", "cached_answers", "cache_answer", "cache_answers"), _answers),
    },
    "stats": dict.fromkeys(
        (
            "totals", "storage_size", "dimension", "chunk_lengths", "list_documents", "beginnings", "tags",
            "recent_documents",
        ),
        _of_tool,
    ),
    **{name: {} for name in ("scans", "index_statistics", "tokens", "audit", "outbox", "domains", "files", "rows")},
}  # fmt: skip
# Of the store itself. Callers who must not know the generation get another number from `LibraryAccess`.
ALLOWED_OF_STORE = frozenset(
    {"id", "kind", "is_persistent", "announces_changes", "read_transaction", "lock", "generation"}
)


def limit_store(store: Store, can_read: Callable[[str], bool]) -> Store:
    """Return a store in which only some tools exist, for whatever reads; to write, use the whole store."""
    return cast("Store", _LimitedStore(store, can_read))


def refuse_all(part: object) -> Any:
    """Return a part of a library of which a limited caller may use nothing."""
    return _Limited(part, {}, None)


class _Limited:
    """An object of which only some methods can be called, each in a limited form."""

    def __init__(self, whole: object, methods: Mapping[str, Limit], readable: _ReadableTools | None) -> None:
        self._whole, self._methods, self._readable = whole, methods, readable

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what `copy` and `hasattr` look for
            raise AttributeError(name)
        limit = self._methods.get(name)
        if limit is None or self._readable is None:
            raise _denied()
        return limit(self._readable, getattr(self._whole, name))


class _LimitedStore:
    """A store of which only some subjects and methods can be used."""

    def __init__(self, store: Store, can_read: Callable[[str], bool]) -> None:
        self._store, readable = store, _ReadableTools(store, can_read)
        for subject, methods in ALLOWED.items():
            setattr(self, subject, _Limited(getattr(store, subject), methods, readable))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in ALLOWED_OF_STORE:
            raise _denied()
        return getattr(self._store, name)


def _denied() -> AccessDenied:
    return AccessDenied("This caller may not use that part of the library")
