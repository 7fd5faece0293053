"""Test that the docs show what the program prints, and that every link leads to a file."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.docs.outputs import check_output

ROOT = Path(__file__).parents[2]
READMES = ["README.md", "README.ja.md"]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/notes/*.md"))
)
# Pages with commands that run on the sample library in a pipe, and pages with the table of queries and first results.
COMMAND_PAGES = [*READMES, "docs/search.md", "docs/operations.md", "docs/guide.ja.md"]
TABLE_PAGES = [*READMES, "docs/search.md", "docs/guide.ja.md"]
# The pages in English that the Japanese guide follows.
GUIDE, GUIDE_SOURCES = "docs/guide.ja.md", ["docs/search.md", "docs/tools.md", "docs/memos.md", "docs/operations.md"]

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.M)
_TABLE_ROW = re.compile(r"^\| `([^`]+)` \| .* \| `([^`]+\.\w+)` \|$", re.M)
_FIRST = re.compile(r"^\[1\] (.+):L\d", re.M)
_SCORE = re.compile(r"(?:score[= ]|bm25 |vector |\) \+)-?[\d.]+")
# Of the standard library, of bunko, and of mypy.
_NO_PACKAGES = {*sys.stdlib_module_names, "bunko", "bunko_dictionary", "_typeshed"}
_UPPER_BOUND = re.compile(r"([\w.-]+)[^<]*<([\d.]+)")
_NUMBERS = ("score", "bm25_score", "vector_distance", "combined_score")
_NUMBER = re.compile(rf'("({"|".join(_NUMBERS)})": )[\d.]+')


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A folder in which .demo is a fresh copy of the sample library."""
    shutil.copytree(ROOT / "examples" / "library", tmp_path / ".demo")
    return tmp_path


def run(arguments: list[str], folder: Path) -> str:
    environ = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    environ |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environ, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == (1 if done.stdout.startswith("No results") else 0), done.stderr
    return done.stdout


def bunko(line: str, folder: Path) -> str:
    return run(["-m", "bunko", *shlex.split(line)], folder)


def first_file(printed: str) -> str:
    match = _FIRST.search(printed)
    return match[1] if match else "nothing"


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def shown(page: str, *, at_a_terminal: bool) -> list[tuple[str, str]]:
    """Return commands and what a page says they print, at a terminal or in a pipe.

    In a pipe are blocks that name the folder with --docs-dir, or add all of it first.
    """
    blocks = _CONSOLE.findall(text_of(page))
    piped = [block for block in blocks if "--docs-dir" in block or block.startswith("$ bunko add .demo\n")]
    selected = [block for block in blocks if (block in piped) != at_a_terminal]
    return [command for block in selected for command in _COMMAND.findall(block)]


def table_rows(page: str) -> list[tuple[str, str]]:
    """Return the queries of a page's table with the file of their first result."""
    return _TABLE_ROW.findall(text_of(page))


def test_every_page_that_shows_commands_is_run() -> None:
    piped = {page for page in PAGES if shown(page, at_a_terminal=False)}
    walked = {page for page in PAGES if shown(page, at_a_terminal=True)}
    assert piped == set(COMMAND_PAGES)
    assert walked == {
        "docs/tools.md",
        "docs/memos.md",
        "docs/plugins.md",
        GUIDE,
    }  # see test_walkthrough.py, test_plugins.py


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_commands_in_a_page_print_what_it_shows(page: str, sample: Path) -> None:
    commands = shown(page, at_a_terminal=False)
    if not commands[0][0].startswith(("bunko reindex", "bunko add")):
        bunko("reindex --docs-dir .demo", sample)
    for command, expected in commands:
        printed = bunko(command.removeprefix("bunko "), sample)
        assert first_file(printed) == first_file(expected), command
        check_output([ROOT / page], command, expected, printed)


@pytest.mark.slow
def test_the_tables_of_queries_are_true(sample: Path) -> None:
    # All pages are checked in one test, because each query is run only once.
    rows = dict(table_rows("docs/search.md"))
    assert all(len(table_rows(page)) >= 10 for page in TABLE_PAGES)
    assert all(table_rows(page) == [row for row in rows.items() if row in table_rows(page)] for page in TABLE_PAGES)
    first = {query: first_file(bunko(f"search {shlex.quote(query)} --docs-dir .demo", sample)) for query in rows}
    assert first == rows


@pytest.mark.slow
def test_what_the_pages_say_is_not_found_is_not(sample: Path) -> None:
    for word in ("sick", "Kujiragaura"):
        assert all(word in text_of(page) for page in TABLE_PAGES)
        assert first_file(bunko(f"search {word} --docs-dir .demo", sample)) == "nothing"


@pytest.mark.slow
def test_a_word_that_says_little_does_not_decide(sample: Path) -> None:
    printed = bunko("search 在宅勤務はできますか --docs-dir .demo", sample)
    assert first_file(printed) == "handbook/休暇と働き方.md", "できる is in another text"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/json.md", GUIDE])
def test_the_json_in_a_page_has_the_shape_and_the_content_of_a_real_answer(page: str, sample: Path) -> None:
    block = re.search(r"^```json\n(.*?)^```", text_of(page), re.M | re.S)
    assert block is not None
    real = json.loads(bunko("search 笑う --docs-dir .demo -k 1 --json", sample))
    assert _steady(json.loads(block[1])) == _steady(real)
    numbers = real["results"][0]
    check_output(
        [ROOT / page], "search", block[1], _NUMBER.sub(lambda match: f"{match[1]}{numbers[match[2]]}", block[1])
    )


def _steady(value: Any) -> Any:
    """Return a JSON value with what may differ from run to run left out."""
    if isinstance(value, dict):
        varying = ("checked_at", "absolute_path", *_NUMBERS)
        return {key: "…" if key in varying else _steady(v) for key, v in value.items()}
    return [_steady(item) for item in value] if isinstance(value, list) else value


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    generated = runpy.run_path(str(ROOT / "docs" / "generate.py"))["command_line"]()
    assert text_of("docs/cli.md") == generated, "Run docs/generate.py."


def test_every_dependency_has_its_reason() -> None:
    requirements = tomllib.loads(text_of("pyproject.toml"))["project"]["dependencies"]
    names = {re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in requirements}
    table = text_of("docs/dependencies.md").partition("\n## ")[0]
    assert set(re.findall(r"^\| ([\w.-]+) \|", table, re.M)) - {"package"} == names


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    extras = [names for extra, names in project["optional-dependencies"].items() if extra not in ("dev", "bench")]
    requirements = [requirement for names in (project["dependencies"], *extras) for requirement in names]
    declared = {_canonical(re.split(r"[<>=[]", requirement)[0]) for requirement in requirements}
    distributions = packages_distributions()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for module in {module.partition(".")[0] for module in modules} - _NO_PACKAGES:
                assert declared & set(map(_canonical, distributions.get(module, [module]))), f"{path} imports {module}"


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_upper_bound_has_its_reason() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    requirements = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    bounds = {f"{match[1]} <{match[2]}" for match in map(_UPPER_BOUND.match, requirements) if match}
    section = text_of("docs/dependencies.md").partition("\n## Ranges\n")[2].partition("\n## ")[0]
    listed = [name for cell in re.findall(r"^\| (\S.*?<.*?) \|", section, re.M) for name in cell.split(", ")]
    assert sorted(listed) == sorted(bounds)


def test_the_table_of_environments_shows_the_commands_that_were_run() -> None:
    rows = runpy.run_path(str(ROOT / "scripts" / "everywhere.py"))["ROWS"]
    table = text_of("CONTRIBUTING.md").partition("<!-- test-everywhere: begin -->")[2].partition("<!--")[0]
    shown = re.findall(r"^\| (.+?) \| `(.+?)` \|", table, re.M)
    assert shown
    assert shown == [(name, rows[name]) for name in rows if name in dict(shown)]


@pytest.mark.slow
def test_the_demo_finds_something_each_time_and_can_be_repeated(tmp_path: Path) -> None:
    demo = ROOT / "examples" / "demo.py"
    first, second = run([str(demo)], tmp_path), run([str(demo)], tmp_path)
    assert first.count("\n  [1] ") == first.count("\n$ bunko search ") >= 6
    assert _SCORE.sub("", first) == _SCORE.sub("", second)
