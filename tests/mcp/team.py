"""A served library of a team: of each kind of tool one is open to all, and one is secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp import MCPError

from bunko.interfaces.http import authorization
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Tool
from tests.mcp.mcp_client import FILLER, add_tool
from tests.mcp.served_registry import HttpServer, serve_registry
from tests.site import Site
from tests.web.articles import article

# Words and names that only the hidden tools have.
HIDDEN = ("部外秘", "budou", "secret", "confidential")


class Team(NamedTuple):
    """A served library of a team, whose tools are in pairs: one is public, one is secret."""

    library: Library
    server: HttpServer
    site: Site

    def token(self, name: str, *, read: tuple[str, ...] = (), write: tuple[str, ...] = ()) -> str:
        self.library.store.tokens.remove(name)
        return self.library.tokens.add(name, self.library.tokens.rights(read, write))

    def audit(self) -> list[tuple[str, str, tuple[str, ...], str]]:
        entries = self.library.store.audit.entries()
        return [(entry.who, entry.action, entry.tools, entry.result) for entry in entries]


@contextmanager
def serve_team(folder: Path) -> Iterator[Team]:
    """Serve a new library in a folder until the block ends."""
    pages = {
        "/open": article("公開", "公開の本文には蜜柑がある。"),
        "/confidential": article("葡萄", "葡萄の本文は部外秘である。"),
        "/new": article("新規", "新しいページの本文である。"),
    }
    with Site(pages) as site, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setattr(authorization, "FRESH_SECONDS", 0.0)
        environ = {
            "BUNKO_CRAWL_ALLOWED_HOSTS": site.host,
            "RAG_CRAWL_DELAY_SEC": "0",
            "BUNKO_SEARCH_FRESHNESS_SECONDS": "0",
            "BUNKO_EMBEDDING_PROVIDER": "none",
        }
        paths = locate_library(library=folder / "library", environ={})
        with open_library(paths, environ=environ) as library:
            _fill(library, folder, site)
            with serve_registry(ToolRegistry(lambda: library, toolsets=("all",))) as server:
                yield Team(library, server, site)


def _fill(library: Library, folder: Path, site: Site) -> None:
    add_tool(library, "recipes", "Recipes of the house.", "蜜柑を剝いてから食べる。")
    add_tool(library, "secret", "Confidential plans.", "葡萄の計画は部外秘である。")
    for name, tag, text in (("diary", "蜜柑", "蜜柑を買った。"), ("secret-diary", "budou", "葡萄のことは部外秘。")):
        source = folder / f"{name}.jsonl"
        memo = {"title": name, "date": "2024-05-01", "tags": [tag], "text": text + FILLER}
        source.write_text(json.dumps(memo, ensure_ascii=False) + "\n", encoding="utf-8")
        library.store.tools.put(Tool(name, "jsonl", f"Memos of {name}", str(source)))
    library.reindex()
    library.web.add_pages([site.url("/open")], tool="pages")
    library.web.add_pages([site.url("/confidential")], tool="secret-pages")


READABLE = ("recipes", "diary", "pages")


def questions(site: Site) -> dict[str, list[dict[str, Any]]]:
    """Return arguments for each tool, which would return or name what is hidden if it could be seen."""
    secret_page = site.url("/confidential")
    return {
        "search": [
            {"query": "葡萄の計画"}, {"query": "", "path": "*"}, {"query": "x", "tool": "secret"},
            {"query": "葡萄", "response_format": "detailed", "top_k": 50}, {"query": "x", "tool": "nothing"},
        ],
        "read": [
            {"document": "one.md"}, {"document": "bunko://secret/one.md"}, {"document": "secret/one.md"},
            {"document": secret_page}, {"document": "one.md", "tool": "secret"}, {"document": "secre"},
        ],
        "list": [
            {}, {"tag": "budou"}, {"outline": "bunko://secret/one.md"}, {"tool": "secret"}, {"limit": 200},
        ],
        "verify": [{"citation": "bunko://secret/one.md:L1-L3", "hash": "x"}, {"citation": "one.md:L1", "hash": "x"}],
        "query_memos": [{"query": "葡萄"}, {"query": "", "tag_filter": "budou"}],
        "list_tags": [{}],
        "get_recent_memos": [{"limit": 50}],
        "rag_search": [{"query": "葡萄の本文", "n_results": 50}],
        "rag_stats": [{}],
        "recipes": [{"query": "葡萄の計画"}],
        "secret": [{"query": "葡萄の計画"}],
        "reindex": [{}, {"rebuild": True}, {"background": True}],
        "rag_add": [{"url": site.url("/new")}],
        "rag_crawl": [{"url": site.url("/new")}, {"url": site.url("/new"), "background": True}],
        "rag_delete": [{"url": secret_page}],
        "job": [{"id": "reindex-1"}],
    }  # fmt: skip


def hidden_words(reply: str, arguments: dict[str, Any] | None = None) -> list[str]:
    """Return what a reply tells of the hidden tools, besides what it repeats of the question."""
    question = json.dumps(arguments or {}, ensure_ascii=False)
    return [word for word in HIDDEN if word in reply and word not in question]


def ask(server: HttpServer, token: str, name: str, arguments: dict[str, Any]) -> str:
    """Return everything that a call answers."""
    try:
        return str(server.call(token, name, **arguments).model_dump_json())
    except MCPError as error:
        return f"{error} {error.error}"
