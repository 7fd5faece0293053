"""Claude Code itself, connected by `bunko connect`, with a model that follows a script: it finds, reads and cites."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.loopback import Loopback
from tests.slow import messages_api, npm
from tests.slow.messages_api import Block, Script, call, say

pytestmark = pytest.mark.slow

QUESTION = "来年度の予算はいつ決めますか"
ANSWER = "来年度の予算は三月の第二週に決める。"
FILES = {
    "会議/四月.md": f"# 四月の会議\n\n## 出席\n\n佐藤、鈴木。\n\n## 予算\n\n{ANSWER}\n案は佐藤が書く。\n",
    "料理/玉葱.md": "# 玉葱のスープ\n\n玉葱を飴色になるまで炒めてから、水を加えて煮る。\n",
}
# Its own file is put in place by an install script, and `make node` runs none.
WRAPPER = npm.FOLDER / "node_modules" / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"
_TOOL_NAME = re.compile(r"mcp__bunko__\w+")


def open_diary(tmp_path: Path) -> Library:
    return open_library(locate_library(library=tmp_path / "library", environ={}), environ={})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that `bunko connect` has connected to a library with the tool 日記."""
    npm.require()
    for name, text in FILES.items():
        path = tmp_path / "diary" / name
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    with open_diary(tmp_path) as library:
        library.add(tmp_path / "diary", name="日記", description="会議と料理の記録。")
    project = tmp_path / "project"
    project.mkdir()
    connect = ["connect", "claude-code", "--library", str(tmp_path / "library"), "--write", "--skill"]
    subprocess.run([sys.executable, "-m", "bunko", *connect], env=environment(project), cwd=project, check=True)
    return project


def environment(project: Path) -> dict[str, str]:
    """Return an environment with a home of its own."""
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    return npm.environment() | {"HOME": str(home)}


def ask_claude(project: Path, script: Script, question: str, *options: str) -> tuple[dict[str, Any], Loopback]:
    """Return what `claude -p` prints, and what its model was asked; nothing but loopback can be reached."""
    service, nowhere = messages_api.serve(script), "http://127.0.0.1:9"
    environ = environment(project) | {
        "ANTHROPIC_BASE_URL": service.address, "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "HTTPS_PROXY": nowhere, "HTTP_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    flags = ["-p", question, "--output-format", "json", "--mcp-config", ".mcp.json", "--max-turns", "8", *options]
    process = subprocess.Popen(
        [str(npm.PROGRAMS / "node"), str(WRAPPER), *flags],
        env=environ, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the program itself is a child of this process
        service.close()
    assert process.returncode == 0, output.decode()
    printed: dict[str, Any] = json.loads(output)
    return printed, service


def structured(texts: list[str]) -> dict[str, Any]:
    """Return the structured content of a tool's answer, which Claude Code hands to the model as JSON."""
    [content] = [json.loads(text) for text in texts if text.startswith("{")]
    assert isinstance(content, dict)
    return content


def answer_from_documents(body: dict[str, Any]) -> Block:
    """Do what a model does: load the tools it is told of, search, read around the first hit, answer and cite it."""
    results = messages_api.results(body)
    loaded = {tool["name"] for tool in body.get("tools", ())}
    if "mcp__bunko__nikki" not in loaded:
        names = sorted(set(_TOOL_NAME.findall(json.dumps(body))))
        return call("ToolSearch", query=f"select:{','.join(names)}", max_results=20) if names else say("No tools.")
    if "mcp__bunko__nikki" not in results:
        return call(
            "mcp__bunko__nikki", query=QUESTION, also=["会議で決めた金額"], passage="予算は次のように決まった。"
        )
    first = structured(results["mcp__bunko__nikki"])["results"][0]
    if "mcp__bunko__read" not in results:
        return call("mcp__bunko__read", document=first["citation"], around=5)
    reading = structured(results["mcp__bunko__read"])
    [sentence] = [line for line in reading["text"].splitlines() if "予算は" in line]
    return say(f"{sentence} [{first['citation']}]({reading['uri']}) {first['hash']}")


def test_it_finds_reads_and_cites(project: Path, tmp_path: Path) -> None:
    printed, service = ask_claude(project, answer_from_documents, QUESTION, "--allowedTools", "mcp__bunko")
    assert (printed["is_error"], printed["permission_denials"]) == (False, []), printed["result"]
    match = re.fullmatch(r"(.+) \[(.+)\]\((.+)\) (\w+)", printed["result"])
    assert match, printed["result"]
    sentence, citation, address, digest = match.groups()
    assert sentence == ANSWER
    assert re.fullmatch(r"会議/四月\.md:L\d+-L\d+", citation)
    assert address == "bunko://nikki/会議/四月.md"
    with open_diary(tmp_path) as library:
        assert ANSWER in library.read(citation)
        assert library.verify_citation(citation, digest).status == "same"
    # The model knows of the skill that `connect` installed.
    assert "bunko: Search, read and cite the user's own documents" in json.dumps(service.asked[0].body)


def test_a_tool_that_is_not_allowed_is_not_run(project: Path) -> None:
    def reindex(body: dict[str, Any]) -> Block:
        results = messages_api.results(body)
        if "mcp__bunko__reindex" in results:
            return say("Refused.")
        if "mcp__bunko__reindex" in {tool["name"] for tool in body.get("tools", ())}:
            return call("mcp__bunko__reindex")
        return call("ToolSearch", query="select:mcp__bunko__reindex", max_results=1)

    printed, _ = ask_claude(project, reindex, "索引を更新して", "--allowedTools", "mcp__bunko__nikki")
    assert printed["result"] == "Refused."
    assert [denial["tool_name"] for denial in printed["permission_denials"]] == ["mcp__bunko__reindex"]
