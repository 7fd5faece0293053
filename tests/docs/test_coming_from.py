"""Test that the commands, options, settings and tools exist that a page recommends to people from other systems."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress

import click
import pytest

from bunko.interfaces.cli.main import bunko as program
from bunko.interfaces.tools.toolsets import TOOLSET_NAMES, load_toolset
from bunko.settings.providers import documented_settings
from bunko.settings.schema import SECTIONS
from tests.docs.test_docs import text_of

# What people typed elsewhere: the first cell of a row. The second says what to type here.
_ROW = re.compile(r"^\| (?!there)(.+?) \| (.+?) \|", re.M)
_CODE = re.compile(r"`([^`]+)`")
_ENVIRONMENT_NAME = re.compile(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b")
HERE = [code for row in _ROW.findall(text_of("docs/coming-from.md")) for code in _CODE.findall(row[1])]
COMMANDS = sorted({code for code in HERE if code.startswith("bunko ")})
OPTIONS = sorted({code for code in HERE if code.startswith("--")})


def context_of(group: click.Group, words: list[str], parent: click.Context) -> click.Context:
    """Parse a command line down to its last command; values that it lacks are not missed."""
    name, command, arguments = group.resolve_command(parent, words)
    assert command is not None
    if isinstance(command, click.Group) and arguments:
        return context_of(command, arguments, click.Context(command, parent=parent, info_name=name))
    with suppress(click.MissingParameter):
        return command.make_context(name, arguments, parent=parent)
    return click.Context(command, parent=parent)


def parse(line: str) -> click.Context:
    words = shlex.split(line)[1:]
    return context_of(program, words, program.make_context("bunko", words))


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_of_the_page_exists_with_its_options(line: str) -> None:
    parse(line)


@pytest.mark.parametrize("line", ["bunko serch QUERY", "bunko search QUERY --strategy full", "bunko tool move"])
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse(line)


def test_each_option_that_stands_alone_belongs_to_a_command_of_the_page() -> None:
    known = {name for line in COMMANDS for option in parse(line).command.params for name in option.opts}
    assert {shlex.split(option)[0] for option in OPTIONS} <= known
    assert len(COMMANDS) > 20


def test_each_setting_and_environment_name_of_the_page_exists() -> None:
    settings = documented_settings()
    keys = {match[1] for code in HERE if (match := re.fullmatch(r"([a-z]+\.[a-z_]+)(?: ?[=:] .+)?", code))}
    assert {key for key in keys if key.partition(".")[0] in SECTIONS} <= settings.keys()
    assert len(keys & settings.keys()) >= 8
    known = {name for setting in settings.values() for name in setting.env_names}
    named = {name for code in HERE for name in _ENVIRONMENT_NAME.findall(code)}
    assert named <= known
    assert len(named) >= 6


def test_the_mcp_tools_of_the_page_are_those_of_the_toolsets() -> None:
    page = set(_CODE.findall(text_of("docs/coming-from.md")))
    for toolset in TOOLSET_NAMES:
        names = load_toolset(toolset).tool_names
        assert page >= set(names) - {"verify"}, toolset
