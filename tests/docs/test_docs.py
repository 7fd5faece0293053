"""The pages say what the program does: each command they show is run, each link leads somewhere."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
READMES = ["README.md", "README.ja.md"]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.M)
_FOUND = re.compile(r"^\| `([^`]+)` \| .* \| `([^`]+)` \|$", re.M)
_FIRST = re.compile(r"^\[1\] (.+):L\d", re.M)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SCORE = re.compile(r"(?:score=|bm25 |vector )-?[\d.]+")
_NUMBERS = ("score", "bm25_score", "vector_distance", "combined_score")


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
    assert done.returncode == 0, done.stderr
    return done.stdout


def bunko(line: str, folder: Path) -> str:
    return run(["-m", "bunko", *shlex.split(line)], folder)


def first_file(printed: str) -> str:
    found = _FIRST.search(printed)
    return found[1] if found else "nothing"


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def shown(page: str, *, at_a_terminal: bool) -> list[tuple[str, str]]:
    """Return commands and what a page says they print; blocks without --docs-dir show what a terminal gets."""
    blocks = [block for block in _CONSOLE.findall(text_of(page)) if at_a_terminal == ("--docs-dir" not in block)]
    return [found for block in blocks for found in _COMMAND.findall(block)]


@pytest.mark.parametrize("page", READMES)
def test_commands_in_a_readme_print_what_it_shows(page: str, sample: Path) -> None:
    commands = shown(page, at_a_terminal=False)
    assert len(commands) >= 5
    for command, expected in commands:
        printed = bunko(command.removeprefix("bunko "), sample)
        assert first_file(printed) == first_file(expected), command
        # Scores may move while ranks stay; an ellipsis stands for what the page leaves out.
        pattern = ".*".join(re.escape(part) for part in _SCORE.sub("…", expected.strip()).split("…"))
        assert re.match(pattern, printed, re.S), f"{command} printed:\n{printed}"


@pytest.mark.parametrize("page", READMES)
def test_the_table_of_a_readme_is_true(page: str, sample: Path) -> None:
    rows = _FOUND.findall(text_of(page))
    assert len(rows) >= 10
    found = {query: first_file(bunko(f"search {shlex.quote(query)} --docs-dir .demo", sample)) for query, _ in rows}
    assert found == dict(rows)


def test_what_the_readmes_say_is_not_found_is_not(sample: Path) -> None:
    for word in ("sick", "Kujiragaura"):
        assert all(word in text_of(page) for page in READMES)
        assert first_file(bunko(f"search {word} --docs-dir .demo", sample)) == "nothing"
    assert all("在宅勤務はできますか" in text_of(page) for page in READMES)
    printed = bunko("search 在宅勤務はできますか --docs-dir .demo", sample)
    assert first_file(printed) not in ("nothing", "handbook/休暇と働き方.md")


@pytest.mark.parametrize("page", READMES)
def test_the_json_in_a_readme_has_the_shape_and_the_content_of_a_real_answer(page: str, sample: Path) -> None:
    block = re.search(r"^```json\n(.*?)^```", text_of(page), re.M | re.S)
    assert block is not None
    real = json.loads(bunko("search 笑う --docs-dir .demo -k 1 --json", sample))
    assert _steady(json.loads(block[1])) == _steady(real)


def _steady(value: Any) -> Any:
    """Return a JSON value with what may differ from run to run left out."""
    if isinstance(value, dict):
        return {key: "…" if key in ("checked_at", *_NUMBERS) else _steady(v) for key, v in value.items()}
    return [_steady(one) for one in value] if isinstance(value, list) else value


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "generate.py"))["command_line"]()
    assert text_of("docs/cli.md") == made, "Run docs/generate.py."


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_to_files(page: str) -> None:
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    links = [link.partition("#")[0] for link in _LINK.findall(prose) if "://" not in link]
    assert [link for link in links if link and not (ROOT / page).parent.joinpath(link).exists()] == []


def test_every_dependency_has_its_reason() -> None:
    wanted = tomllib.loads(text_of("pyproject.toml"))["project"]["dependencies"]
    names = {re.split(r"[<>=!~\[; ]", one)[0] for one in wanted}
    table = text_of("docs/dependencies.md").partition("\n## ")[0]
    assert set(re.findall(r"^\| ([\w.-]+) \|", table, re.M)) - {"package"} == names


def test_the_demo_finds_something_each_time_and_can_be_repeated(tmp_path: Path) -> None:
    demo = ROOT / "examples" / "demo.py"
    first, second = run([str(demo)], tmp_path), run([str(demo)], tmp_path)
    assert first.count("\n  [1] ") == first.count("\n$ bunko search ") >= 6
    assert _SCORE.sub("", first) == _SCORE.sub("", second)
