"""A library with two tools in two languages, and a browser without scripts that looks at its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from bunko.interfaces.page.app import build_page
from bunko.interfaces.sender import ClientIdentity
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types.access import ALL_RIGHTS, Caller, Rights


class Visit(TestClient):
    """A browser without scripts, and the server that it visits."""

    def __init__(self, app: ASGIApp, registry: ToolRegistry, caller: Caller, language: str) -> None:
        super().__init__(
            app, headers={"Accept-Language": language}, follow_redirects=False, client=("127.0.0.1", 50000)
        )
        self.registry, self.caller = registry, caller


Visitor = Callable[..., Visit]


@pytest.fixture
def library(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A folder about a telescope and one about a kitchen."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (docs / "guide").mkdir()
    (docs / "guide/望遠鏡.md").write_text(
        "---\ndate: 2024-05-01\ntags: [天文]\n---\n# 望遠鏡\n\n## 鏡の手入れ\n\n望遠鏡の鏡は柔らかい布で磨く。\n\n"
        "## 組み立て\n\n三脚を先に立ててから鏡筒を載せる。\n",
        "utf-8",
    )
    (docs / "mirror.md").write_text("# Mirror\n\nPolish the mirror of the telescope with a soft cloth.\n", "utf-8")
    (docs / "bread.md").write_text("# Bread\n\nKnead the dough and let it rise for an hour.\n", "utf-8")
    kitchen = tmp_path / "kitchen"
    kitchen.mkdir()
    (kitchen / "味噌.md").write_text("# 味噌汁\n\n出汁を取ってから味噌を溶く。\n", "utf-8")
    environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "3600"}
    with open_library(locate_library(library=tmp_path / "library", environ=environ), environ=environ) as library:
        library.add(docs, name="docs", description="How to build a telescope.")
        library.add(kitchen, name="kitchen", description="Recipes.")
        library.import_("docs", "kitchen")
        yield library


@pytest.fixture
def visit(library: Library) -> Visitor:
    """Return a browser of somebody with some rights; whoever started the server by default."""

    def browser(
        rights: Rights = ALL_RIGHTS,
        *,
        language: str = "en",
        is_local: bool = False,
        is_owner: bool = False,
        read_only: bool = False,
    ) -> Visit:
        registry = ToolRegistry(lambda: library, read_only=read_only)
        app = build_page(registry)
        caller = Caller("tester", "http", rights, is_owner=is_owner)
        identity = ClientIdentity(caller, is_local_user=is_local)

        async def identified(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "bunko.identity": identity}, receive, send)

        return Visit(identified, registry, caller, language)

    return browser


@pytest.fixture
def browser(visit: Visitor) -> TestClient:
    """A browser of whoever started the server."""
    return visit(is_local=True)
