"""Whatever a caller with limited rights calls, nothing of a tool that it may not read is returned or raised."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import GeneratorType
from typing import Any, NamedTuple, get_type_hints

import pytest

import bunko
from bunko.errors import AccessDenied
from bunko.library.access import LibraryAccess
from bunko.library.admin.status import ToolStatus
from bunko.library.library import Library
from bunko.library.reading.documents import ListRequest
from bunko.library.rights.limit_store import ALLOWED, ALLOWED_OF_STORE, limit_store
from bunko.protocols import Store
from bunko.search.reading import ReadRequest
from bunko.search.request import SearchRequest
from bunko.types import Tool
from bunko.types.access import Caller, Rights, Token
from bunko.types.records import NO_FILTER

HIDDEN_TEXT = "Kingfisher"
HIDDEN = ("vault", "plans.md", HIDDEN_TEXT, "underground")  # the name, a path, words of a document, a folder
QUERY = "garden"

# What no limited caller may call, or would need. A method that is neither here nor allowed fails the test.
REFUSED = {
    "tools": {
        "put", "ensure", "update_build_info", "rename", "claim", "drop", "swap", "adopt_documents",
    },
    "documents": {"write"},
    "vectors": {
        "get", "missing", "unsplit", "pin", "unpin", "replace", "delete_orphans", "delete_released", "unused", "usage",
    },
    "changes": {
        "chunks_since", "documents_since", "chunks_of", "chunk_sentences", "chunk_ids", "removed_since",
        "redated_since", "prune_removals", "set_index_file", "index_file", "set_index_note", "index_note",
    },
    "pages": {"write"},
    "cache": {"clear_searches", "rename_tool"},
    "scans": {"get", "put"},
    "stats": {"count_incomplete"},
    "index_statistics": {"get", "frequencies", "replace", "update", "clear"},
    "tokens": {"all", "add", "remove", "mark_used", "rename_tool", "remove_tool"},
    "audit": {"begin", "finish", "entries"},
    "outbox": {"add", "get", "update", "unfinished", "finished", "prune"},
    "domains": {"all", "put"},
    "files": {"paths", "contain", "still_exist", "mode"},
    "rows": {
        "tables", "count", "pages", "digests", "last_key", "put_page", "last_ids", "put_last_ids", "values",
        "put_values", "copy_of", "is_unfinished", "begin_use", "begin_copy", "leave", "stay",
    },
}  # fmt: skip
REFUSED_OF_STORE = {"address", "location", "engine", "wait_for_change", "size", "check", "moved_to", "close"}


class Team(NamedTuple):
    """A library with a tool that a caller may read and one that it may not, and the hidden ids."""

    library: Library
    tools: Mapping[str, Tool]
    statuses: Mapping[str, ToolStatus]
    chunk_ids: list[int]


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """The hidden tool is in every subject of the store: documents, vectors, log, cached answers, tokens, audit."""
    texts = {"open": ("notes.md", "The garden is green.\n"), "vault": ("plans.md", f"The garden of {HIDDEN_TEXT}.\n")}
    with bunko.open(
        tmp_path / "library.db", environ={}, embedding_provider="hashing", log_keep_searches=True
    ) as library:
        for name, (path, text) in texts.items():
            folder = tmp_path / ("underground" if name == "vault" else "meadow")
            folder.mkdir()
            (folder / path).write_text(text, encoding="utf-8")
            library.add(folder, name=name, description=f"What {HIDDEN_TEXT} wants" if name == "vault" else "Notes")
        library.import_()
        library.log_search(HIDDEN_TEXT, "vault")
        library.log_search(HIDDEN_TEXT)
        store, now = library.store, time.time()
        store.cache.cache_answer("rewrite", b"key", HIDDEN_TEXT, now=now, expires_at=now + 3600, limit=10)
        tools = {tool.name: tool for tool in library.tools()}
        library.documents  # noqa: B018 (what is built for the whole library must not be handed on)
        library.maintenance  # noqa: B018
        library.tokens.add("vault", Rights(("vault",)))
        owner = LibraryAccess(library, Caller("vault", "http"))
        owner.readable.overview.select({"vault": ["plans.md"]})
        owner.reindex()
        statuses = {status.tool.name: status for status in library.status().tools}
        yield Team(library, tools, statuses, store.changes.chunk_ids(tools["vault"].id))


def said_by(call: Callable[[], object]) -> str:
    """Return everything that a call returns or raises, as text."""
    try:
        result = call()
        if isinstance(result, AbstractContextManager):
            with result as entered:
                return repr(entered)
        return repr(list(result) if isinstance(result, GeneratorType) else result)
    except Exception as error:
        return f"{error!r} {error} {getattr(error, 'hint', '')} {error.__cause__!r}"


def check(call: Callable[[], object], given: object, name: str) -> None:
    """Call something, and look for what is hidden except for what was given."""
    said, shown = said_by(call), repr(given)
    found = [word for word in HIDDEN if word in said and word not in shown]
    assert not found, f"{name}({shown}): {said}"


def arguments_of(method: Callable[..., object], values: Mapping[str, object], name: str) -> dict[str, object]:
    """Return a value for each parameter that a method needs or that can name something hidden."""
    given = {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.name == "self" or parameter.kind is parameter.VAR_KEYWORD:
            continue
        key = parameter.annotation if parameter.annotation in values else parameter.name
        assert key in values or parameter.default is not parameter.empty, f"Say what {name} is called with: {parameter}"
        if key in values:
            given[parameter.name] = values[key]
    return given


def call(method: Callable[..., object], signature: Callable[..., object], given: Mapping[str, Any]) -> object:
    """Call a method with arguments by their places or names, as it takes them."""
    places: list[Any] = []
    names = {}
    for parameter in inspect.signature(signature).parameters.values():
        if parameter.name not in given:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            names[parameter.name] = given[parameter.name]
        elif parameter.kind is parameter.VAR_POSITIONAL:
            places += given[parameter.name]
        else:
            places.append(given[parameter.name])
    return method(*places, **names)


def values_about(team: Team, name: str) -> dict[str, object]:
    """Return values for parameters, by their names, that are about a tool."""
    tool, uri = team.tools[name], "plans.md" if name == "vault" else "notes.md"
    now = time.time()
    return {
        "tool_id": tool.id, "uri": uri, "uris": [uri], "where": NO_FILTER, "ids": team.chunk_ids, "prefix": "",
        "urls": None, "url": uri, "limit": 10, "kind": "rewrite", "key": b"key", "keys": [b"key"], "now": now,
        "query": QUERY, "searched_at": "2026-01-01", "value": "other", "expires_at": now, "answers": {}, "tool": name,
    }  # fmt: skip


def methods_of(protocol: type) -> set[str]:
    return {name for name in dir(protocol) if not name.startswith("_")} | set(get_type_hints(protocol))


def protocol_of(subject: str) -> type:
    hint = get_type_hints(Store)[subject]
    types: list[type] = [item for item in getattr(hint, "__args__", (hint,)) if item is not type(None)]
    assert len(types) == 1
    return types[0]


def test_every_method_of_every_subject_is_allowed_in_a_limited_form_or_refused() -> None:
    values = {"id", "kind", "address", "location", "engine", "announces_changes", "is_persistent"}
    assert set(get_type_hints(Store)) == set(ALLOWED) | values
    for subject, methods in ALLOWED.items():
        refused = REFUSED[subject]
        assert methods.keys() | refused == methods_of(protocol_of(subject)), f"Allow or refuse what {subject} can do"
        assert not methods.keys() & refused
    assert methods_of(Store) - set(ALLOWED) == ALLOWED_OF_STORE | REFUSED_OF_STORE


def test_no_method_of_a_limited_store_tells_of_a_hidden_tool(team: Team) -> None:
    limited = limit_store(team.library.store, lambda tool: tool == "open")
    called = 0
    for subject, methods in ALLOWED.items():
        for name in methods:
            method = getattr(getattr(limited, subject), name)
            signature = getattr(protocol_of(subject), name)
            for about in team.tools:
                given = arguments_of(signature, values_about(team, about), f"{subject}.{name}")
                check(partial(call, method, signature, given), given, f"{subject}.{name}")
                called += 1
        for name in REFUSED[subject]:
            with pytest.raises(AccessDenied):
                getattr(getattr(limited, subject), name)
    for name in ALLOWED_OF_STORE:
        value = getattr(limited, name)
        check(partial(value, "web") if name == "lock" else value if callable(value) else partial(str, value), {}, name)
    for name in REFUSED_OF_STORE:
        with pytest.raises(AccessDenied):
            getattr(limited, name)
    assert called > 50
    # What the whole store says does contain it, so that the search above can find something.
    assert HIDDEN_TEXT in repr(team.library.store.documents.get(team.tools["vault"].id, "plans.md"))


def doors(access: LibraryAccess) -> list[object]:
    """Return what a caller gets its methods from."""
    library = access.readable
    parts = [library.tools, library.documents, library.tokens, library.audit, library.searches.log, library.maintenance]
    return [access, library.overview, library, *parts, access.web, access.tool_care]


def values_of_doors(team: Team, name: str, folder: Path) -> dict[str, object]:
    """Return values for parameters, by their types and by their names, that are about a tool."""
    tool, uri = team.tools[name], "plans.md" if name == "vault" else "notes.md"
    searched = None if name == "vault" else name
    return {
        "Tool": tool, "SearchRequest": SearchRequest(QUERY, searched), "ReadRequest": ReadRequest(uri),
        "ListRequest": ListRequest(None if searched is None else (searched,)), "Sequence[Tool]": [tool],
        "ToolStatus": team.statuses[name],
        "tool": searched, "name": name, "names": (name,), "query": QUERY, "question": QUERY, "location": uri,
        "uri": uri, "citation": f"{uri}:L1", "digest": "0" * 64, "after": "", "limit": 10, "new_name": "other",
        "tools": (name,), "arguments": {}, "action": "look", "urls": ["http://127.0.0.1:1/"],
        "url": "http://127.0.0.1:1/", "tool_ids": [tool.id], "documents": {name: [uri]}, "selection": "0" * 20,
        "source": str(folder), "hits": [], "hit": None, "texts": {}, "options": tool.options, "kind": None,
        "size": None, "overlap": None, "active": True, "can_read": lambda tool_name: tool_name == "open",
        "description": "A description.", "rights": Rights((name,)), "read": (name,), "write": (),
        "token": Token(name, "", Rights(), ""),
        "caller": Caller("alice", "http"),
    }  # fmt: skip


@pytest.mark.parametrize("write", [(), ("open",)])
def test_no_method_of_a_library_as_a_limited_caller_gets_it_tells_of_a_hidden_tool(
    team: Team, tmp_path: Path, write: tuple[str, ...]
) -> None:
    access = LibraryAccess(team.library, Caller("alice", "http", Rights(("open",), write)))
    assert "green" in said_by(lambda: access.page(SearchRequest(QUERY)))
    for door in doors(access):
        for name in dir(type(door)):
            attribute = inspect.getattr_static(type(door), name)
            if name.startswith("_") or name in ("close", "limited_to"):
                continue
            where = f"{type(door).__name__}.{name}"
            if not inspect.isfunction(attribute):
                check(partial(getattr, door, name), {}, where)
                continue
            for about in ("vault", "open"):
                given = arguments_of(attribute, values_of_doors(team, about, tmp_path / "meadow"), where)
                check(partial(call, getattr(door, name), attribute, given), given, where)


@pytest.mark.parametrize("rights", [Rights(), Rights(("open",)), Rights(write=("open",))])
def test_the_library_that_a_caller_reads_can_be_changed_only_by_those_who_may_change_all_of_it(
    team: Team, tmp_path: Path, rights: Rights
) -> None:
    library = LibraryAccess(team.library, Caller("alice", "http", rights)).readable
    before = team.library.tools(), team.library.tokens.all(), team.library.stats.totals(team.tools["open"].id)
    changes: list[Callable[[], object]] = [
        lambda: library.tools.add("more", "More", tmp_path),
        lambda: library.tools.update("open", description="Other"),
        lambda: library.tools.set_active("open", active=False),
        lambda: library.delete_tool("open"),
        lambda: library.rename_tool("open", "other"),
        lambda: library.maintenance.set_search_settings("open", {"k1": 0.5}),
        lambda: library.import_("open"),
        lambda: library.reindex(rebuild=True),
        lambda: library.tokens.add("mallory", Rights(write=("*",))),
        lambda: library.index.drop("open"),
        lambda: library.web.add_pages(["https://example.com/"]),
    ]
    for change in changes:
        with pytest.raises(AccessDenied):
            change()
    after = team.library.tools(), team.library.tokens.all(), team.library.stats.totals(team.tools["open"].id)
    assert after == before
