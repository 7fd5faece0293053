"""Toolsets declare themselves: their names, their tools and the names they reserve."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.interfaces.tools.jobs import JOB_TOOL_NAME
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.tool import LIST_TOOL_NAME, READ_TOOL_NAME
from bunko.interfaces.tools.toolsets import TOOLSET_NAMES, load_toolset, reserved_names
from bunko.interfaces.tools.toolsets.tools import safe_names
from bunko.types import Tool
from tests.conftest import Opener, Run


@pytest.mark.parametrize("name", TOOLSET_NAMES)
def test_every_toolset_declares_what_it_offers(name: str) -> None:
    toolset = load_toolset(name)
    assert toolset.name == name
    assert toolset.description.endswith(".")
    assert toolset.tool_names


@pytest.mark.parametrize("name", TOOLSET_NAMES)
def test_every_tool_and_every_parameter_is_described(name: str, docs: Path, open_docs: Opener) -> None:
    for tool in ToolRegistry(open_docs, toolsets=(name,), folder=str(docs)).tools():
        assert tool.description
        assert not [param.name for param in tool.params if not param.description], tool.name


@pytest.mark.parametrize("name", TOOLSET_NAMES)
def test_the_names_of_every_toolset_are_reserved(name: str, docs: Path, open_docs: Opener) -> None:
    registry = ToolRegistry(open_docs, toolsets=(name,), folder=str(docs))
    offered = {tool.name for tool in registry.tools()} - {"documents"}  # the tool of the library itself
    assert offered <= {*load_toolset(name).tool_names, JOB_TOOL_NAME, READ_TOOL_NAME, LIST_TOOL_NAME}
    assert {READ_TOOL_NAME, LIST_TOOL_NAME} <= offered
    assert offered <= reserved_names()
    assert not set(safe_names([Tool(tool_name) for tool_name in sorted(offered)]).values()) & offered


@pytest.mark.parametrize("name", ["search", "Reindex", "rag_search", "query_memos", "job", "read", "List"])
@pytest.mark.parametrize("command", [("tool", "add", "-d", "x", "-s", "."), ("web", "add", "https://example.com/")])
def test_no_tool_of_a_library_gets_the_name_of_a_built_in_one(
    run: Run, tmp_path: Path, command: tuple[str, ...], name: str
) -> None:
    ran = run(*command, "-n", name, "--library", tmp_path / "library")
    assert ran.code != 0
    assert f"{name!r} is the name of a built-in tool" in ran.err


@pytest.mark.parametrize("name", ["séarch", "list!"])
def test_no_tool_of_a_library_is_seen_by_the_name_of_a_built_in_one(run: Run, tmp_path: Path, name: str) -> None:
    ran = run("tool", "add", "-d", "x", "-s", ".", "-n", name, "--library", tmp_path / "library")
    assert ran.code != 0
    assert f"Assistants would see {name!r} as " in ran.err


def test_tools_are_built_once_until_the_tools_of_the_library_change(docs: Path, open_docs: Opener) -> None:
    library = open_docs()
    registry = ToolRegistry(lambda: library, toolsets=("folder", "tools"))
    registry.library()
    first = registry.tools()
    assert registry.tools() is first
    assert first[0].input_schema["type"] == "object"
    [tool] = library.tools()
    library.store.tools.put(replace(tool, description="Something else"))
    assert "Something else" in [other.description for other in registry.tools()]


@pytest.mark.slow
def test_naming_the_toolsets_imports_none_of_them() -> None:
    code = (
        "import sys, bunko.interfaces.tools.toolsets as toolsets;"
        "print([name for name in toolsets.TOOLSET_NAMES if f'{toolsets.__name__}.{name}' in sys.modules],"
        " 'numpy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[] False\n"
