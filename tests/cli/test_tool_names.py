"""A tool of a Japanese name is found by its name and by the one that assistants see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.pictures import Terminal
from tests.conftest import Run

TEXT = "# 京都\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。\n"


@pytest.fixture
def flags(run: Run, tmp_path: Path) -> tuple[str, str]:
    """Options that name a library with the imported tool 日記."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(TEXT, encoding="utf-8")
    flags = ("--library", str(tmp_path / "library"))
    added = run("tool", "add", "-n", "日記", "-d", "毎日の記録", "-s", docs, *flags)
    assert "Assistants see it as nikki." in added.out
    assert run("import", "-n", "nikki", *flags).code == 0
    return flags


@pytest.mark.parametrize(
    "command",
    [
        ("search", "京都"),
        ("status",),
        ("recent",),
        ("ls",),
        ("get", "a.md"),
        ("tags",),
        ("reindex",),
        ("import", "--mode", "update"),
        ("reembed",),
        ("export", "--output", "pack.bunko"),
        ("tool", "describe"),
        ("tool", "update", "-d", "日々の記録"),
        ("tool", "disable"),
        ("tool", "enable"),
        ("tool", "delete", "-y"),
    ],
    ids=" ".join,
)
def test_every_command_takes_either_name(
    command: tuple[str, ...], run: Run, flags: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*command, "-n", "nikki", *flags)
    assert ran.code == 0, ran.err


def test_the_list_of_tools_has_both_names(run: Run, flags: tuple[str, str]) -> None:
    [tool] = json.loads(run("tool", "ls", "--json", *flags).out)
    assert (tool["name"], tool["assistant_name"]) == ("日記", "nikki")


def test_the_table_of_tools_has_both_names(terminal: Terminal, flags: tuple[str, str]) -> None:
    rows = terminal("tool", "ls", "--all", *flags, width=80).rows
    assert any("日記 (nikki)" in row for row in rows), rows


def test_a_result_names_the_tool_as_people_do_and_its_address_as_assistants_do(
    run: Run, flags: tuple[str, str]
) -> None:
    found = json.loads(run("search", "京都", "-n", "nikki", "--json", *flags).out)["results"][0]
    assert (found["tool"], found["uri"]) == ("日記", "bunko://nikki/a.md")


def test_connecting_an_assistant_says_which_names_it_will_see(run: Run, flags: tuple[str, str]) -> None:
    ran = run("connect", "claude-code", *flags)
    assert ran.err == "The assistant sees 日記 as nikki.\n"
    assert run("connect", "claude-code", "--library", flags[1] + "-none").err == ""


def test_an_unknown_name_is_answered_with_both_names_of_each_tool(run: Run, flags: tuple[str, str]) -> None:
    ran = run("search", "京都", "-n", "recipes", *flags)
    assert "日記 (nikki)" in ran.err


@pytest.mark.parametrize(
    "command",
    [("describe",), ("update", "-d", "日々の記録"), ("disable",), ("enable",), ("delete", "-y")],
    ids=" ".join,
)
def test_a_tool_is_named_with_or_without_the_option(command: tuple[str, ...], run: Run, flags: tuple[str, str]) -> None:
    ran = run("tool", *command, "日記", *flags)
    assert ran.code == 0, ran.err
    neither, both = run("tool", *command, *flags), run("tool", *command, "日記", "-n", "日記", *flags)
    assert (neither.code, both.code) == (2, 2)
    assert "Missing argument 'NAME'" in neither.err
    assert "both" in both.err


@pytest.mark.parametrize("command", [("ls",), ("recent",), ("tags",)], ids=" ".join)
def test_a_list_is_of_each_tool_that_is_named(
    command: tuple[str, ...], run: Run, flags: tuple[str, str], tmp_path: Path
) -> None:
    for name in ("rose", "pine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"---\ntags: [{name}]\n---\n# {name}\n", encoding="utf-8")
        assert run("add", tmp_path / name, *flags).code == 0
    ran = run(*command, "-n", "rose", "-n", "pine", *flags)
    assert "rose" in ran.out
    assert "pine" in ran.out
    assert "a.md" not in ran.out
