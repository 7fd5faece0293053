"""The tools of the library, called in the same process."""

from __future__ import annotations

from pathlib import Path

import anyio

import bunko
from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.servers import BuiltinServer
from bunko.interfaces.tools.registry import ToolRegistry


def test_the_tools_of_the_library_are_called_in_this_process(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    registry = ToolRegistry(lambda: bunko.open(tmp_path / "library"), toolsets=["web"])

    async def test() -> None:
        manager = MCPManager([BuiltinServer(registry)])
        assert "総チャンク数: 0" in (await manager.call_tool("rag_stats")).text
        refused = await manager.call_tool("rag_add", {"url": "http://127.0.0.1/"})
        assert refused.is_error

    try:
        anyio.run(test)
    finally:
        registry.close()
