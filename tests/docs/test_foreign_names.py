"""Names of other packages that their documentation does not promise: few, listed in docs/dependencies.md, and there."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
import uvicorn
from huggingface_hub import constants, utils
from starlette.applications import Starlette
from starlette.routing import Router
from uvicorn.server import ServerState

from bunko.interfaces.chat.mcp_client import transport_of
from bunko.interfaces.http.app import build_server
from bunko.interfaces.http.connections import LimitedConnection
from bunko.interfaces.http.guards import LOGGERS

ROOT = Path(__file__).parents[2]
SOURCE = sorted((ROOT / "src").rglob("*.py"))
SECTION = (
    (ROOT / "docs" / "dependencies.md").read_text("utf-8").partition("\n## Names that no documentation promises\n")[2]
)
LISTED = set(re.findall(r"\w+", SECTION.partition("\n## ")[0]))
# Documented, whatever they look like: of the standard library, the backend of watchfiles, and a field of MCP.
DOCUMENTED = {"_meta", "_exit", "_replace", "_asdict", "_fields", "_rust_notify", "_typeshed"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def own_names(tree: ast.AST) -> Iterator[str]:
    """Yield what a module of ours defines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(value=ast.Name("self" | "cls")):
                yield node.attr


def foreign_private_names(tree: ast.AST, ours: set[str]) -> Iterator[str]:
    """Yield the private names of other packages that a module imports or reads."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if not module.startswith(("bunko", "__")):
                yield from filter(is_private, [*module.split("."), *(alias.name for alias in node.names)])
            case ast.Import(names=aliases):
                yield from (part for alias in aliases for part in alias.name.split(".") if is_private(part))
            case ast.Attribute(attr=name) if is_private(name) and name not in ours:
                yield name
            case ast.Call(func=ast.Name("getattr" | "hasattr" | "setattr"), args=[_, ast.Constant(str(name)), *_]):
                yield from filter(is_private, [name])
            case ast.Dict(keys=keys):
                yield from (key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
                            and is_private(key.value) and key.value not in ours)  # fmt: skip


@pytest.mark.slow
def test_private_names_of_other_packages_are_listed() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in SOURCE}
    ours = {name for tree in trees.values() for name in own_names(tree)}
    used = {name: path.name for path, tree in trees.items() for name in foreign_private_names(tree, ours)}
    assert {name: path for name, path in used.items() if name not in LISTED | DOCUMENTED} == {}


def test_uvicorn_has_what_the_limits_of_connections_need() -> None:
    async def connect() -> LimitedConnection:
        config = build_server(Starlette()).config
        config.load()
        return LimitedConnection(config=config, server_state=ServerState(), app_state={})

    connection = asyncio.run(connect())
    for name in ("conn", "connections", "cycle", "loop", "scope", "timeout_keep_alive_task", "transport"):
        assert name in LISTED
        assert hasattr(connection, name), f"H11Protocol of uvicorn {uvicorn.__version__} has no {name}"
    for name in ("on_response_complete", "shutdown"):
        assert name in LISTED
        assert name in vars(LimitedConnection.__mro__[1]), f"H11Protocol of uvicorn {uvicorn.__version__} has no {name}"


def test_uvicorn_leaves_signals_to_whoever_starts_it() -> None:
    server = build_server(Starlette())
    assert server.should_exit is False
    assert server.config.http is LimitedConnection
    assert "capture_signals" in inspect.getsource(uvicorn.Server.serve)


def test_a_part_of_the_server_can_be_started_and_ended() -> None:
    assert isinstance(Starlette().router, Router)
    assert callable(Starlette().router.lifespan_context)


def test_the_hub_has_what_a_download_of_ours_needs() -> None:
    for module, name in (
        (constants, "HF_HUB_OFFLINE"),
        (constants, "HF_HUB_DOWNLOAD_TIMEOUT"),
        (utils, "build_hf_headers"),
    ):
        assert f"`{module.__name__.removeprefix('huggingface_hub.')}.{name}`" in SECTION
        assert hasattr(module, name), f"{module.__name__} has no {name}"


def test_the_loggers_that_strangers_can_write_to_exist() -> None:
    for name in LOGGERS:
        if name.startswith("mcp"):
            assert name in SECTION
            source = inspect.getsource(__import__(name, fromlist=["logger"]))
            assert "getLogger(__name__)" in source


@pytest.mark.slow
def test_the_transport_of_a_process_can_be_closed() -> None:
    async def start() -> None:
        async with await anyio.open_process([sys.executable, "-c", "print('unread')"]) as process:
            assert isinstance(transport_of(process), asyncio.SubprocessTransport)
            await process.wait()

    anyio.run(start)
