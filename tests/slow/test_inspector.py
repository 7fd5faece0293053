"""A client that is not ours and not the SDK's: the Inspector lists and calls every tool, over stdio and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.tools.toolsets import TOOLSET_NAMES
from tests.slow import corpus, npm, serving

pytestmark = pytest.mark.slow

TOOLSETS = ",".join(TOOLSET_NAMES)
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    corpus.write(folder, {"京都.md": "# 京都\n\n寺と庭を歩いた。\n", "notes/engine.md": "# Engine\n\nIt restarted.\n"})
    with corpus.opened(folder) as library:
        library.reindex()
    return folder


@pytest.fixture(scope="module")
def address(docs: Path) -> Iterator[str]:
    """Our server over HTTP."""
    npm.require()
    with serving.over_http(docs, "--toolsets", TOOLSETS) as server:
        yield server.address


@pytest.fixture(scope="module", params=["stdio", "http"])
def target(request: pytest.FixtureRequest, docs: Path) -> list[str]:
    """How the Inspector is told of our server: a command that it starts, or an address and the token."""
    if request.param == "stdio":
        return serving.command(docs, "--toolsets", TOOLSETS)
    return [request.getfixturevalue("address"), "--header", f"Authorization: Bearer {serving.TOKEN}"]


@pytest.fixture(scope="module")
def ask(target: list[str]) -> Ask:
    """Ask our server one thing through the Inspector."""

    def asked(method: str, *flags: str, fails: bool = False, **options: str | dict[str, str]) -> dict[str, Any]:
        given = ["--method", method, *flags]
        for name, value in options.items():
            pairs = [f"{key}={one}" for key, one in value.items()] if isinstance(value, dict) else [value]
            given += [f"--{name.replace('_', '-')}", *pairs] if pairs else []
        done = npm.run("inspector", "--cli", *target, *given)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return asked


def test_every_tool_is_listed_and_its_schemas_are_portable(ask: Ask) -> None:
    tools = {tool["name"]: tool for tool in ask("tools/list", "--strict")["tools"]}
    assert list(tools) == sorted(tools)
    assert {"search", "read", "list", "reindex", "verify", "job", "documents"} <= tools.keys()
    for tool in tools.values():
        assert tool["title"]
        assert tool["description"]
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        # The others mean something for tools that change something only.
        more = () if tool["annotations"]["readOnlyHint"] else ("destructiveHint", "idempotentHint")
        assert all(isinstance(tool["annotations"][hint], bool) for hint in ("openWorldHint", *more))


def test_every_tool_can_be_called(ask: Ask, target: list[str]) -> None:
    called = set()

    def call(tool: str, *, fails: bool = False, **arguments: str) -> dict[str, Any]:
        called.add(tool)
        return ask("tools/call", fails=fails, tool_name=tool, tool_arg=arguments)

    first = call("search", query="寺", top_k="1")
    found = first["structuredContent"]["results"][0]
    assert found["citation"].startswith("京都.md:L")
    assert found["content"] in first["content"][0]["text"]
    assert first["content"][1]["type"] == "resource_link"
    assert call("documents", query="restart")["structuredContent"]["results"][0]["file_path"] == "notes/engine.md"
    part = call("read", document=found["citation"])["structuredContent"]
    assert part["text"] == found["content"]
    assert "寺と庭" in call("read", document=found["file_path"], section="京都")["structuredContent"]["text"]
    assert call("list", sort="name")["structuredContent"]["total"] == 2
    verdict = call("verify", citation=found["citation"], hash=found["hash"])
    assert verdict["structuredContent"]["status"] == "same"
    assert call("reindex")["structuredContent"]["unchanged"] == 2
    job = call("reindex", background="true")["structuredContent"]["job"]
    # Over stdio every call is a server of its own, which knows nothing of the others' jobs and says so.
    own_server = not target[0].startswith("http")
    told = call("job", id=job, fails=own_server)
    assert ("Unknown job" in told["content"][0]["text"]) is own_server
    for tool, asked in (("query_memos", {"query": "寺"}), ("list_tags", {}), ("get_recent_memos", {})):
        told = call(tool, fails=True, **asked)  # there are documents here, but no memos
        assert "bunko build" in told["content"][0]["text"]
    assert call("rag_search", query="寺")["content"][0]["text"] == "該当する情報が見つかりませんでした"
    assert "ソースURL数: 0" in call("rag_stats")["content"][0]["text"]
    for tool in ("rag_add", "rag_crawl", "rag_delete"):
        told = call(tool, fails=True, url="http://127.0.0.1:9/")  # this machine is none of an assistant's business
        assert told["content"][0]["text"].startswith("エラー: ")
    listed = {tool["name"] for tool in ask("tools/list")["tools"]}
    assert called == listed, "a tool is not called here"


def test_documents_are_listed_and_read(ask: Ask) -> None:
    uris = [resource["uri"] for resource in ask("resources/list")["resources"]]
    assert len(uris) == 2
    assert "寺と庭" in ask("resources/read", uri=uris[1])["contents"][0]["text"]


def test_the_wrong_token_is_refused(address: str) -> None:
    done = npm.run("inspector", "--cli", address, "--header", "Authorization: Bearer wrong", "--method", "tools/list")
    assert done.returncode != 0
    assert "auth_required" in done.stderr
