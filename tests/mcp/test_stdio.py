"""The server as assistants start it: a process that speaks the protocol on stdin and stdout, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.mcp.mcp_client import FOLDER_TOOL_NAMES
from tests.mcp.stdio_process import PATIENCE, Process, environment

FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 3
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "京都.md").write_text(f"# 京都\n\n京都の寺を巡る旅。{FILLER}\n", encoding="utf-8")
    return docs


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """Start servers, and see that all of them end well."""
    started: list[Process] = []

    def start(*arguments: object, **options: Any) -> Process:
        started.append(Process(tmp_path, *arguments, **options))
        return started[-1]

    yield start
    for process in started:
        assert process.end() == 0, process.stderr()
        assert "Traceback" not in process.stderr()
        for line in process.lines:
            assert json.loads(line)["jsonrpc"] == "2.0"


@pytest.mark.slow
def test_the_handshake_and_the_list_of_tools_do_not_wait_for_the_search_engine(serve: Any, folder: Path) -> None:
    process = serve("--docs-dir", folder, python=("-X", "importtime"))
    assert process.shake_hands()["protocolVersion"] == "2025-11-25"
    assert [tool["name"] for tool in process.ask("tools/list")["tools"]] == FOLDER_TOOL_NAMES
    for heavy in ("numpy", "fugashi", "bunko.library.library", "sqlite3", "mcp", "pydantic", "starlette", "anyio"):
        assert f" {heavy}\n" not in process.stderr()
    assert not (folder / ".rag-index").exists()
    assert process.call("search", {"query": "京都"})["structuredContent"]["results"]
    assert " numpy\n" in process.stderr()


@pytest.mark.slow
def test_a_client_of_the_new_era_needs_no_handshake(serve: Any, folder: Path) -> None:
    process = serve("--docs-dir", folder)
    met = process.ask("server/discover", {"_meta": ENVELOPE})
    assert "2026-07-28" in met["supportedVersions"]
    found = process.ask("tools/call", {"name": "search", "arguments": {"query": "京都"}, "_meta": ENVELOPE})
    assert found["structuredContent"]["results"][0]["citation"].startswith("京都.md:L")
    answer = process.answer(process.send("initialize", {"protocolVersion": "2025-11-25"}))
    assert answer["error"]["code"] == -32022


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdks_own_client_works(mode: str, tmp_path: Path, folder: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "bunko", "serve", "--docs-dir", str(folder)], env=environment(tmp_path)
    )

    async def main() -> None:
        with anyio.fail_after(PATIENCE), (tmp_path / "stderr.txt").open("w") as log:
            async with Client(stdio_client(parameters, errlog=log), mode=mode) as client:
                assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]
                await client.list_tools()
                found = await client.call_tool("search", {"query": "京都"})
                assert found.structured_content is not None
                assert found.structured_content["results"][0]["citation"].startswith("京都.md:L")

    anyio.run(main)


@pytest.mark.slow
def test_stdout_carries_the_protocol_alone_however_much_there_is_to_say(serve: Any, folder: Path) -> None:
    process = serve("--docs-dir", folder, "--verbose")
    process.shake_hands()
    process.call("reindex")
    process.call("search", {"query": "京都", "mode": "hybrid"})
    assert "reindex_total" in process.stderr()
    assert process.end() == 0
    assert len(process.lines) == 3  # and the fixture looks at each


@pytest.mark.slow
def test_malformed_lines_and_huge_arguments_are_survived(serve: Any, folder: Path) -> None:
    process = serve("--docs-dir", folder)
    process.shake_hands()
    for line in ("{", "", "[]", "null", '"text"', '{"jsonrpc": "1.0"}', '{"jsonrpc": "2.0", "id": 1}', b"\xff\xfe\x00"):
        process.write(line)
    process.write("[" * 100_000)
    huge = process.call("search", {"query": "長" * 3_500_000})
    assert huge["isError"] is True
    assert huge["content"][0]["text"] == "query has 3,500,000 characters. Use at most 100,000."
    assert process.call("search", {"x" * 10_000_000: 1})["isError"] is True
    answer = process.answer(process.send("tools/call", {"name": "x" * 1_000_000, "arguments": {}}))
    assert answer["error"]["code"] == -32602
    assert process.answer(process.send("tools/call", {"name": "search", "arguments": [1]}))["error"]["code"] == -32602
    assert process.answer(process.send("no/such/method", {}))["error"]["code"] == -32601
    assert process.call("search", {"query": "京都"})["structuredContent"]["results"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
def test_a_thousand_calls_do_not_make_the_process_grow(serve: Any, folder: Path) -> None:
    process = serve("--docs-dir", folder)
    process.shake_hands()

    def held() -> tuple[int, int]:
        own = Path("/proc") / str(process.pid)
        return len(list((own / "task").iterdir())), len(list((own / "fd").iterdir()))

    def batch(number: int) -> None:
        asked = [
            process.send("tools/call", {"name": "search", "arguments": {"query": f"京都 {each}", "top_k": 1}})
            for each in range(number)
        ]
        for each in asked:
            assert process.answer(each)["result"]["structuredContent"]["results"]

    for _ in range(20):  # SQLite closes the files of connections that read at the same time only with the last one
        batch(10)
    before = held()
    for _ in range(100):
        batch(10)
    after = held()
    # One for each call of a batch: how many of them read at the same time depends on the machine.
    assert after[0] <= before[0] + 10
    assert after[1] <= before[1] + 10


@pytest.mark.slow
def test_a_client_that_leaves_in_the_middle_of_a_reindex_leaves_a_whole_library(serve: Any, folder: Path) -> None:
    for number in range(600):
        (folder / f"{number}.md").write_text(f"# 文書{number}\n\n京都の寺の話。{FILLER}", encoding="utf-8")
    process = serve("--docs-dir", folder)
    process.shake_hands()
    params = {"name": "reindex", "arguments": {}, "_meta": {"progressToken": 7}}
    process.send("tools/call", params)
    process.wait_for('"notifications/progress"')
    assert process.end() == 0
    again = serve("--docs-dir", folder)
    again.shake_hands()
    done = again.call("reindex")["structuredContent"]
    assert done["added"] + done["unchanged"] == 601
    found = again.call("search", {"query": "京都", "top_k": 3, "response_format": "detailed"})["structuredContent"]
    assert found["total_chunks"] == 601


@pytest.mark.slow
def test_it_ends_cleanly_when_nobody_ever_speaks(serve: Any, folder: Path) -> None:
    process = serve("--docs-dir", folder, "--toolsets", "folder,tools")
    assert process.end() == 0
    assert process.lines == []


def run(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bunko", "serve", *map(str, arguments)],
        capture_output=True, text=True, env=environment(tmp_path), timeout=PATIENCE, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--docs-dir", "nowhere"), 3, "There is no folder nowhere"),
        (("--docs-dir", ".", "--toolsets", "foldr"), 2, "Unknown toolset 'foldr'"),
    ],
)
def test_a_wrong_command_line_is_told_at_once(arguments: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    ended = run(tmp_path, *arguments)
    assert ended.returncode == code
    assert said in ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
