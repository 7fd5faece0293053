"""What `bunko`, `bunko --help` and `bunko help` say to somebody who begins."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bunko.interfaces.cli.help_formatter import first_sentence
from bunko.interfaces.cli.main import COMMANDS, GROUPS, bunko
from tests.cli.processes import at_a_terminal, subprocess_environment
from tests.conftest import Run


def test_every_command_is_in_exactly_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_begins_with(name: str) -> None:
    command = bunko.get_command(click.Context(bunko), name)
    assert command is not None
    assert COMMANDS[name] == first_sentence(command)


def test_help_lists_the_commands_in_groups_that_begin_with_the_beginning(run: Run) -> None:
    printed = run("--help").out
    titles = re.findall(r"^([A-Z][\w ]+):$", printed, re.M)
    assert titles == ["Options", *GROUPS]
    first = printed[printed.index("Begin:") : printed.index("Search and read:")]
    assert re.findall(r"^  ([\w-]+) ", first, re.M) == ["add", "search", "ui", "connect", "help"]
    assert re.findall(r"^  ([\w-]+) {2,}\S", printed.partition("Begin:")[2], re.M) == [
        name for names in GROUPS.values() for name in names
    ]


def test_the_descriptions_of_commands_start_in_one_column_and_fit_80_columns(run: Run) -> None:
    lines = run("--help").out.partition("Begin:")[2].splitlines()
    rows = [line for line in lines if line.startswith("  ")]
    assert len(rows) == len(COMMANDS)
    assert len({re.match(r"  \S+ +", row).end() for row in rows if re.match(r"  \S+ +", row)}) == 1  # type: ignore[union-attr]
    assert max(map(len, rows)) <= 80


@pytest.mark.parametrize("names", [(), ("search",), ("tool",), ("tool", "add"), ("web", "crawl")])
def test_help_of_a_command_is_what_its_help_option_prints(run: Run, names: tuple[str, ...]) -> None:
    ran = run("help", *names)
    assert ran.code == 0
    assert ran.out == run(*names, "--help").out


def test_help_of_an_unknown_command_suggests_the_nearest(run: Run) -> None:
    ran = run("help", "serach")
    assert ran.code == 2
    assert "No such command 'serach'. Did you mean 'search'?" in ran.err
    assert "No such command 'ad'" in run("help", "tool", "ad").err
    assert "search has no commands of its own" in run("help", "search", "add").err


@pytest.mark.slow
def test_bunko_at_a_terminal_shows_some_commands_to_begin_with_then_the_groups(tmp_path: Path) -> None:
    environment = subprocess_environment(tmp_path, TERM="xterm", COLUMNS="80", XDG_DATA_HOME=str(tmp_path / "data"))
    printed = at_a_terminal(env=environment).replace("\r\n", "\n")
    commands = re.findall(r"^  bunko (\w+)", printed, re.M)
    assert commands[:4] == ["add", "search", "connect", "ui"]
    begin, _, rest = printed.partition("Search and read")
    assert "evaluate" not in begin
    for title, names in GROUPS.items():
        assert title == "Begin" or title in "Search and read" + rest
        assert all(re.search(rf"\b{name}\b", printed) for name in names)
    assert "bunko help COMMAND" in rest
    assert "library" not in begin
    assert not (tmp_path / "data").exists()
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.slow
def test_bunko_at_a_terminal_names_what_there_is_to_search(run: Run, docs: Path, tmp_path: Path) -> None:
    assert (
        run("tool", "add", "-n", "handbook", "-d", "How we work", "-s", docs, "--library", tmp_path / "lib").code == 0
    )
    environment = subprocess_environment(tmp_path, TERM="xterm", COLUMNS="80", BUNKO_LIBRARY=str(tmp_path / "lib"))
    assert "Your library has 1 tool: handbook" in at_a_terminal(env=environment)


@pytest.mark.slow
def test_the_names_of_tools_are_found_without_the_search_engine(tmp_path: Path) -> None:
    program = "import sys, bunko.library.tools.names, bunko.stores.sqlite; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, encoding="utf-8", check=True, env=subprocess_environment(tmp_path),
    )  # fmt: skip
    assert not {"numpy", "fugashi", "rich", "bunko.library.library"} & set(done.stdout.split())


@pytest.mark.slow
def test_bunko_in_a_pipe_prints_the_help_and_fails(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bunko"],
        capture_output=True, text=True, encoding="utf-8", check=False, env=subprocess_environment(tmp_path),
    )  # fmt: skip
    assert done.returncode == 2
    assert "Usage: bunko" in done.stdout + done.stderr
