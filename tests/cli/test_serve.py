"""The command `serve`: which toolsets it offers, and how it looks and ends at a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import BunkoError, SettingsError
from bunko.interfaces.cli.commands import serve
from bunko.interfaces.tools.toolsets import TOOLSET_NAMES, parse_toolsets
from tests.cli.processes import subprocess_environment
from tests.mcp.stdio_process import Process

needs_signals = pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal here")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([], ()),
        (["all"], TOOLSET_NAMES),
        (["folder, memos"], ("folder", "memos")),
        (["web", "web", ""], ("web",)),
        (["folder,all"], TOOLSET_NAMES),
    ],
)
def test_toolsets_are_named_with_commas_or_all_at_once(given: list[str], names: tuple[str, ...]) -> None:
    assert parse_toolsets(given) == names


def test_an_unknown_toolset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="Unknown toolset 'foldr'") as caught:
        parse_toolsets(["foldr"])
    assert caught.value.hint == "Choose from: folder, memos, tools, web, all."


# Options, environment, tools that are offered, and tools that are not.
TOOLSET_CHOICES: list[tuple[tuple[str, ...], dict[str, str], set[str], set[str]]] = [
    (("--toolsets", "folder"), {"BUNKO_SERVE_TOOLSETS": "all"}, {"search"}, {"query_memos"}),
    ((), {}, {"search", "reindex"}, {"query_memos", "rag_search"}),
    (("--toolsets", "all"), {}, {"search", "query_memos", "rag_add", "reindex"}, set()),
    ((), {"BUNKO_SERVE_TOOLSETS": "memos,web"}, {"query_memos", "rag_search"}, {"search"}),
    (
        (),
        {"BUNKO_SERVE_TOOLSETS": "folder,web", "BUNKO_SERVE_READ_ONLY": "true"},
        {"search"},
        {"rag_add", "reindex"},
    ),
    (("--read-only",), {}, {"search", "read", "list"}, {"reindex", "job"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "environ", "has", "has_not"), TOOLSET_CHOICES)
def test_an_option_or_a_setting_chooses_the_toolsets(
    tmp_path: Path, docs: Path, options: tuple[str, ...], environ: dict[str, str], has: set[str], has_not: set[str]
) -> None:
    process = Process(tmp_path, "--docs-dir", docs, *options, environ=environ)
    process.shake_hands()
    names = {tool["name"] for tool in process.ask("tools/list")["tools"]}
    assert process.end() == 0
    assert has <= names
    assert not has_not & names


@pytest.mark.slow
def test_a_setting_with_an_unknown_toolset_is_told_at_the_start(tmp_path: Path, docs: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bunko", "serve", "--docs-dir", str(docs)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env=subprocess_environment(tmp_path, BUNKO_SERVE_TOOLSETS="foldr"),
    )  # fmt: skip
    assert done.returncode != 0
    assert "Unknown toolset 'foldr'" in done.stderr


@pytest.mark.slow
@needs_signals
def test_at_a_terminal_it_says_what_it_is_and_the_first_ctrl_c_ends_it(tmp_path: Path, docs: Path) -> None:
    pty = pytest.importorskip("pty", reason="there are no terminals to open on this system")
    ours, theirs = pty.openpty()
    environment = subprocess_environment(tmp_path)
    command = [sys.executable, "-m", "bunko", "serve", "--docs-dir", str(docs)]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert process.stdout is not None
        said = [process.stderr.readline() for _ in range(3)]
        assert said[0].startswith("This is an MCP server")
        assert said[1] == f"Connect one with: bunko connect claude-code --docs-dir {docs}\n"
        assert said[2] == "Press Ctrl-C to stop.\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert "Traceback" not in process.stderr.read()
        assert process.stdout.read() == ""
    os.close(ours)


@pytest.mark.slow
@needs_signals
def test_the_first_ctrl_c_ends_a_server_that_an_assistant_uses(tmp_path: Path, docs: Path) -> None:
    process = Process(tmp_path, "--docs-dir", docs)
    process.shake_hands()
    os.kill(process.pid, signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr() == ""


class FailingServer:
    """Stands for a server that a signal interrupts while it starts."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def serve_listener(self, *_: object, note_ready: object) -> None:
        raise self.error


@pytest.mark.parametrize("error", [ValueError("an import was interrupted"), BunkoError("the library was interrupted")])
def test_a_worker_ends_silently_whatever_the_signal_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    is_ending = threading.Event()
    monkeypatch.setattr(serve, "prepare_worker", lambda: is_ending)
    ready, told = Pipe()
    worker: list[Any] = [FailingServer(error), None, "127.0.0.1", Path(), told]
    with pytest.raises(SystemExit if isinstance(error, BunkoError) else ValueError):
        serve.run_worker(*worker)
    capsys.readouterr()
    is_ending.set()
    with pytest.raises(SystemExit) as ended:
        serve.run_worker(*worker)
    ready.close()
    told.close()
    assert ended.value.code == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_what_only_a_server_needs_is_imported_only_there(tmp_path: Path, docs: Path) -> None:
    (docs / "a.md").write_text("# 京都\n\n京都の寺。\n", encoding="utf-8")
    code = (
        "import sys, bunko\n"
        "from bunko.interfaces.cli.main import main\n"
        f"with bunko.open({str(docs)!r}) as library: library.search('京都')\n"
        f"main(['search', '京都', '--docs-dir', {str(docs)!r}, '--json'])\n"
        f"main(['connect', 'codex', '--docs-dir', {str(docs)!r}])\n"
        "print([name for name in ('mcp', 'mcp_types', 'uvicorn', 'starlette') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=subprocess_environment(tmp_path)
    )
    assert done.stdout.endswith("\n[]\n")
