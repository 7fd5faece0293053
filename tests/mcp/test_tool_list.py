"""How the server introduces itself and lists its tools."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp import Client

from bunko.errors import SettingsError
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from tests.conftest import Opener
from tests.mcp.mcp_client import ERAS, FOLDER_TOOL_NAMES, assert_matches_snapshot, list_tools, talk


@pytest.mark.parametrize("mode", ERAS)
def test_the_server_introduces_itself_and_its_tools_before_the_library_is_opened(mode: str, docs: Path) -> None:
    def opener() -> Library:
        raise AssertionError("opened too early")

    registry = ToolRegistry(opener, folder=str(docs))

    async def meet(client: Client) -> None:
        assert client.protocol_version == ERAS[mode]
        assert client.server_info is not None
        assert client.server_info.name == "bunko"
        assert client.instructions is not None
        assert str(docs) in client.instructions
        assert {tool.name for tool in (await client.list_tools()).tools} == set(FOLDER_TOOL_NAMES)

    talk(registry, meet, mode)
    assert not registry.is_open


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("toolset", ["folder", "tools"])
def test_a_list_that_cannot_change_is_not_announced_to_change(mode: str, toolset: str, open_docs: Opener) -> None:
    async def promised(client: Client) -> bool | None:
        assert client.server_capabilities.tools is not None
        return client.server_capabilities.tools.list_changed

    assert talk(ToolRegistry(open_docs, toolsets=[toolset]), promised, mode) is (toolset == "tools")


def test_an_unknown_toolset_is_refused_with_the_known_ones(open_docs: Opener) -> None:
    with pytest.raises(SettingsError, match="'foldr'") as caught:
        ToolRegistry(open_docs, toolsets=["folder", "foldr"])
    assert "folder, memos, tools, web" in caught.value.hint


def test_every_tool_is_fully_described_and_they_come_in_order(registry: ToolRegistry, tool_library: Library) -> None:
    for tools in (list_tools(registry), list_tools(ToolRegistry(lambda: tool_library, toolsets=["folder", "tools"]))):
        assert list(tools) == sorted(tools)
        for name, tool in tools.items():
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", name)
            assert tool.title
            assert tool.description
            hints = tool.annotations
            assert hints is not None
            assert hints.read_only_hint is (name not in ("reindex", "job"))
            assert hints.open_world_hint is False
            # They mean something for tools that change something only.
            for hint in (hints.destructive_hint, hints.idempotent_hint):
                assert hint is None if hints.read_only_hint else isinstance(hint, bool)
            assert all(parameter["description"] for parameter in tool.input_schema["properties"].values())
            assert tool.output_schema is not None
            for schema in (tool.input_schema, tool.output_schema):
                jsonschema.Draft202012Validator.check_schema(schema)
                assert schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False


def test_the_folder_toolset_is_listed_as_in_its_snapshot(open_docs: Opener) -> None:
    assert_matches_snapshot("folder", ToolRegistry(open_docs, folder="~/notes"))


def test_the_tools_toolset_is_listed_as_in_its_snapshot(tool_library: Library) -> None:
    assert_matches_snapshot("tools", ToolRegistry(lambda: tool_library))


@pytest.mark.slow
def test_a_library_with_japanese_names_lists_its_tools_without_loading_a_dictionary(tool_library: Library) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from bunko.interfaces.tools.registry import ToolRegistry\n"
        "from bunko.library.open import open_library; from bunko.library.opening.paths import locate_library\n"
        "paths = locate_library(library=Path(sys.argv[1]), environ={})\n"
        "with open_library(paths, environ={}, read_only=True) as library:\n"
        "    print([tool.name for tool in ToolRegistry(lambda: library).tools()][-2:], 'fugashi' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code, tool_library.paths.folder], capture_output=True, text=True)
    assert ran.stdout == "['tabi_no_kiroku', 'verify'] False\n", ran.stderr
