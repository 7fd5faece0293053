"""Output that cannot be written ends in one clear line and an exit code, never in a traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.cli.processes import subprocess_environment
from tests.conftest import Opener

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")

FULL = "Error: The output cannot be written: No space left on device\n"


@pytest.fixture
def full() -> Iterator[IO[str]]:
    with open("/dev/full", "w") as file:
        yield file


@pytest.fixture
def indexed(notes: Path, open_docs: Opener) -> Path:
    with open_docs() as library:
        library.reindex()
    return notes


def bunko(
    tmp_path: Path, *arguments: str | Path, stdout: IO[str] | int = subprocess.PIPE, stderr: IO[str] | int
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bunko", *map(str, arguments)]
    environment = subprocess_environment(tmp_path)
    return subprocess.run(command, stdout=stdout, stderr=stderr, env=environment, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "京都"),
        ("search", "京都", "--json"),
        ("status", "--json"),
        ("tool", "ls", "--all"),
        ("doctor",),
        ("config", "show"),
    ],
    ids=" ".join,
)
def test_a_full_output_is_one_line_and_an_exit_code(
    indexed: Path, full: IO[str], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ended = bunko(tmp_path, *arguments, "--docs-dir", indexed, stdout=full, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (16, FULL)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--help",), ("completion", "bash")])
def test_help_into_a_full_output_is_one_line_too(full: IO[str], tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = bunko(tmp_path, *arguments, stdout=full, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (16, FULL)


@pytest.mark.slow
def test_an_export_whose_report_cannot_be_printed_is_complete_and_says_so(
    indexed: Path, full: IO[str], tmp_path: Path
) -> None:
    place = tmp_path / "x.bunko"
    ended = bunko(tmp_path, "export", "--docs-dir", indexed, "-o", place, "--json", stdout=full, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (16, FULL)
    assert place.read_bytes().startswith(b"bunko pack ")
    ended = bunko(tmp_path, "export", "--docs-dir", indexed, "-o", "/dev/full", stderr=subprocess.PIPE)
    assert (ended.returncode, "Traceback" in ended.stderr) == (3, False)
    assert "/dev/full" in ended.stderr


@pytest.mark.slow
def test_a_server_that_cannot_answer_ends_with_one_line(indexed: Path, full: IO[str], tmp_path: Path) -> None:
    message = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        '"clientInfo":{"name":"x","version":"1"}}}\n'
    )
    command = [sys.executable, "-m", "bunko", "serve", "--docs-dir", str(indexed)]
    environment = subprocess_environment(tmp_path)
    ended = subprocess.run(
        command, input=message, stdout=full, stderr=subprocess.PIPE, env=environment, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (16, FULL)


def search_in_a_shell(tmp_path: Path, docs: Path, redirection: str) -> subprocess.CompletedProcess[str]:
    script = f'"$0" -m bunko search 京都 --docs-dir "$1" {redirection}'
    command = ["sh", "-c", script, sys.executable, str(docs)]
    environment = subprocess_environment(tmp_path)
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
def test_a_closed_output_is_one_line_too(indexed: Path, tmp_path: Path) -> None:
    closed = search_in_a_shell(tmp_path, indexed, ">&-")
    assert (closed.returncode, closed.stderr) == (1, "Error: The output cannot be written: Bad file descriptor\n")


@pytest.mark.slow
def test_messages_that_cannot_be_written_do_not_cost_the_answer(indexed: Path, tmp_path: Path) -> None:
    def shell(redirection: str) -> subprocess.CompletedProcess[str]:
        return search_in_a_shell(tmp_path, indexed, redirection)

    for redirection in ("<&-", "2>&-", "2>/dev/full"):
        answered = shell(redirection)
        assert (answered.returncode, answered.stderr) == (0, "")
        assert "temple.md" in answered.stdout
    assert shell("--no-such-option 2>/dev/full").returncode == 2
    assert shell("--json | true").stderr == ""
