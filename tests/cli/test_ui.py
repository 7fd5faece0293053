"""`bunko ui`: a server for whoever runs it, opened in their browser."""

from __future__ import annotations

import html
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from bunko.interfaces.cli.commands import serve
from bunko.interfaces.page.rendering import asset_url
from tests.conftest import Run

PATIENCE = 60.0
# A browser that notes what it was started with, and what it was shown.
BROWSER = """\
import pathlib, sys, urllib.parse, urllib.request
notes = pathlib.Path(sys.argv[1])
path = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(sys.argv[2]).path))
(notes / "shown").write_text(path.read_text() + oct(path.parent.stat().st_mode & 0o077))
(notes / "arguments.part").write_text("\\n".join(sys.argv))
(notes / "arguments.part").rename(notes / "arguments")
"""


class Process:
    """`bunko ui` in a process of its own."""

    def __init__(self, folder: Path, *arguments: object, **environ: str) -> None:
        (folder / "docs").mkdir()
        (folder / "docs" / "京都.md").write_text("# 京都\n\n京都の寺を巡る旅。\n", encoding="utf-8")
        (folder / "browser.py").write_text(BROWSER)
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT")}
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bunko", "ui", "--port", "0", "--docs-dir", folder / "docs", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**kept, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"),
                 "XDG_DATA_HOME": str(folder / "data"), "TMPDIR": str(folder), "LANG": "C.UTF-8",
                 "BROWSER": f"{sys.executable} {folder / 'browser.py'} {folder} %s", **environ},
        )  # fmt: skip
        self.output = ""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.address = self.wait_for(r"The page is at (http://\S+?)\. ")
        self.port = urlsplit(self.address).port or 0

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self.output += line
                self._changed.notify_all()

    def wait_for(self, pattern: str) -> str:
        """Wait until the process has printed something, and return it."""
        with self._changed:
            assert self._changed.wait_for(lambda: re.search(pattern, self.output), PATIENCE), self.output
        match = re.search(pattern, self.output)
        assert match is not None
        return match[1]

    def wait_for_browser(self) -> tuple[str, str]:
        """Wait until the browser was started; return its arguments, and what it was shown."""
        arguments = self.folder / "arguments"
        while not arguments.exists():
            assert self._process.poll() is None, self.output
            threading.Event().wait(0.02)
        return arguments.read_text(), (self.folder / "shown").read_text()

    def get(self, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        """Send a request and return the head of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        if "event-stream" not in response.headers.get("Content-Type", ""):
            response.read()
            connection.close()
        return response

    def interrupt(self) -> int:
        """Press Ctrl-C and wait for the end."""
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def end(self) -> None:
        """End the process, whatever became of the test."""
        self._process.kill()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self._process.stderr is not None
        self._process.stderr.close()


@contextmanager
def running(folder: Path, *arguments: object, **environ: str) -> Iterator[Process]:
    process = Process(folder, *arguments, **environ)
    try:
        yield process
    finally:
        process.end()


@pytest.mark.slow
def test_the_browser_is_opened_with_a_link_that_works_once_and_that_nobody_else_sees(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        arguments, shown = process.wait_for_browser()
        assert shown.endswith("0o0")  # nobody else may look into its folder
        [link] = re.findall(r'href="([^"]+)"', shown)
        link = html.unescape(link).removeprefix(process.address)
        token = link.partition("token=")[2]
        assert len(token) > 40
        assert token not in arguments
        reply = process.get(f"/{link}")
        assert (reply.status, reply.headers["Location"]) == (303, "/")
        session = reply.headers["Set-Cookie"].partition(";")[0]
        assert process.get("/", Cookie=session).status == 200
        assert process.get("/api/v1/status", Cookie=session).status == 200
        assert process.get(asset_url("css/base.css")).status == 200
        assert process.get(f"/{link}").status == 401
        assert process.get("/").status == 401
        file = Path(url2pathname(urlsplit(arguments.splitlines()[-1]).path))
        assert file.exists()
        assert process.interrupt() == 0
        assert process.output.endswith("\nStopped.\n")
        assert not file.exists()
        assert token not in process.output
        assert "Traceback" not in process.output


@pytest.mark.slow
def test_without_a_browser_a_link_is_printed(tmp_path: Path) -> None:
    with running(tmp_path, "--no-open", "--read-only") as process:
        link = process.wait_for(r"it works once: (\S+)")
        reply = process.get(link.removeprefix(process.address.rstrip("/")))
        assert reply.status == 303
        assert not (tmp_path / "arguments").exists()
        assert process.interrupt() == 0


@pytest.mark.slow
def test_a_machine_without_any_browser_gets_a_link_too(tmp_path: Path) -> None:
    with running(tmp_path, BROWSER="") as process:
        assert process.address in process.wait_for(r"it works once: (\S+)")
        assert "There is no browser to open." in process.output


def test_a_port_that_is_taken_is_replaced_unless_somebody_named_it(tmp_path: Path, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serve.listen("127.0.0.1", None, port, allow_remote=False) as listener:
            assert listener.getsockname()[1] not in (0, port)
        ended = run("ui", "--no-open", "--port", str(port), "--docs-dir", tmp_path)
    assert ended.code == 2
    assert f"port {port}" in ended.err


def test_other_machines_are_let_in_only_on_demand(tmp_path: Path, run: Run) -> None:
    ended = run("ui", "--no-open", "--host", "0.0.0.0", "--library", tmp_path / "library")
    assert ended.code == 2
    assert "--allow-remote" in ended.err
    assert "The page is at" not in ended.err


@pytest.mark.parametrize("part", ["mcp", "api", "page"])
def test_parts_of_a_server_need_http(part: str, tmp_path: Path, run: Run) -> None:
    ended = run("serve", f"--no-{part}", "--library", tmp_path / "library")
    assert ended.code == 2
    assert f"--no-{part} needs --http." in ended.err


def test_a_server_without_any_part_is_refused(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNKO_SERVE_PAGE", "false")
    ended = run("serve", "--http", "--port", "0", "--no-mcp", "--no-api", "--library", tmp_path / "library")
    assert ended.code == 2
    assert "MCP, the API and the page are all off" in ended.err
