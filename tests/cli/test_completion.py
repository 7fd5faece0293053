"""A shell completes commands, options and the names of tools, quickly, quietly and without making anything."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bunko.interfaces.cli.main import COMMANDS
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.tools import catalog

NAMED = [("export",), ("import",), ("reindex",), ("status",), ("tool", "update"), ("tool", "delete")]


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BUNKO_", "RAG_", "_BUNKO"))}
    places = {name: str(tmp_path / name) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    return kept | places | {"PYTHONUTF8": "1"} | more


def offered(tmp_path: Path, line: str, **environ: str) -> list[str]:
    """Return what the program offers at the end of a line, asked as bash asks it."""
    words = len(line.split(" ")) - 1
    asked = environment(tmp_path, _BUNKO_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(words), **environ)
    done = subprocess.run([sys.executable, "-m", "bunko"], env=asked, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
    return [one.partition(",")[2] for one in done.stdout.splitlines() if one]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with three tools, one of them half made."""
    folder = tmp_path / "library"
    with open_library(locate_library(library=folder, environ={}), environ={}) as opened:
        for name in ("api-docs", "api-guide", "travel"):
            opened.tools.add(name, "About it", tmp_path)
    return folder


@pytest.mark.slow
def test_commands_and_options_are_offered(tmp_path: Path) -> None:
    assert offered(tmp_path, "bunko ") == sorted(COMMANDS)
    assert offered(tmp_path, "bunko import") == ["import", "import-pack"]
    assert offered(tmp_path, "bunko --ver") == ["--version"]
    assert {"add", "update", "ls"} <= set(offered(tmp_path, "bunko tool "))
    assert offered(tmp_path, "bunko search --no-ref") == ["--no-refresh"]
    assert offered(tmp_path, "bunko search x --mode ") == ["bm25", "semantic", "hybrid"]
    assert offered(tmp_path, "bunko completion ") == ["bash", "zsh", "fish"]


@pytest.mark.slow
def test_offering_commands_loads_none_of_them(tmp_path: Path) -> None:
    told = "import sys; from bunko.interfaces.cli.main import main\ntry: main()\nfinally: print(*sorted(sys.modules))"
    asked = environment(tmp_path, _BUNKO_COMPLETE="bash_complete", COMP_WORDS="bunko ", COMP_CWORD="1")
    done = subprocess.run([sys.executable, "-c", told], env=asked, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert not {"numpy", "sqlite3", "rich", "bunko.interfaces.cli.commands.search", "bunko.library.library"} & set(
        loaded
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [("search",), *NAMED])
def test_the_names_of_tools_are_offered(tmp_path: Path, library: Path, command: tuple[str, ...]) -> None:
    begin = f"bunko {' '.join(command)} --library {library}"
    assert offered(tmp_path, f"{begin} -n ") == ["api-docs", "api-guide", "travel"]
    assert offered(tmp_path, f"{begin} --name api-g") == ["api-guide"]
    assert offered(tmp_path, f"{begin} -n x") == []


@pytest.mark.slow
def test_the_library_is_the_one_the_environment_or_a_settings_file_names(tmp_path: Path, library: Path) -> None:
    assert offered(tmp_path, "bunko export -n t", BUNKO_LIBRARY=str(library)) == ["travel"]
    (library / "library.db").rename(library / "other.sqlite")
    (library / "config.toml").write_text('[database]\npath = "other.sqlite"\n')
    assert offered(tmp_path, f"bunko export --library {library} -n t") == ["travel"]
    assert offered(tmp_path, f"bunko export --config {library / 'config.toml'} -n t") == ["travel"]


@pytest.mark.slow
def test_where_there_is_no_library_nothing_is_offered_made_or_said(tmp_path: Path, library: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    for place in ("", f"--library {tmp_path / 'nowhere'} ", f"--docs-dir {tmp_path / 'nowhere'} ", "--data-dir x "):
        assert offered(tmp_path, f"bunko export {place}-n ") == []
    assert offered(tmp_path, f"bunko export --library {library} -n t") == ["travel"]
    assert sorted(tmp_path.rglob("*")) == before
    (library / "library.db").write_bytes(b"garbage" * 1000)
    assert offered(tmp_path, f"bunko export --library {library} -n ") == []
    (library / "bunko.toml").write_text("not = [toml")
    assert offered(tmp_path, f"bunko export --library {library} -n ") == []


@pytest.mark.slow
def test_names_that_another_process_just_wrote_are_offered_and_half_made_ones_are_not(
    tmp_path: Path, library: Path
) -> None:
    with open_library(locate_library(library=library, environ={}), environ={}) as opened:
        opened.tools.add("newest", "About it", tmp_path)
        shadow = catalog.get_tool(opened.store, "travel")
        opened.store.tools.put(type(shadow)("~travel", active=False))
        assert offered(tmp_path, f"bunko export --library {library} -n ") == [
            "api-docs",
            "api-guide",
            "newest",
            "travel",
        ]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_the_program(tmp_path: Path, shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bunko", "completion", shell],
        env=environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"_BUNKO_COMPLETE={shell}_complete" in done.stdout
    assert "bunko" in done.stdout
    as_json = subprocess.run(
        [sys.executable, "-m", "bunko", "completion", shell, "--json"],
        env=environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(as_json.stdout) == {"shell": shell, "script": done.stdout.removesuffix("\n")}
    if checker := shutil.which(shell):
        subprocess.run([checker, "-n"], input=done.stdout, text=True, check=True)


@pytest.mark.slow
def test_the_help_says_how_to_install_it_in_each_shell(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bunko", "completion", "--help"],
        env=environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line in ("~/.bashrc", "~/.zshrc", "~/.config/fish/completions/bunko.fish"):
        assert line in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_completes_a_line(tmp_path: Path, library: Path) -> None:
    program = tmp_path / "bin" / "bunko"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bunko "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    script = (
        'eval "$(bunko completion bash)"\n'
        f"COMP_WORDS=(bunko export --library {library} -n api-) COMP_CWORD=5\n"
        '"$(complete -p bunko | sed "s/.*-F \\([^ ]*\\).*/\\1/")" bunko api- -n\n'
        'echo "${COMPREPLY[@]}"\n'
    )
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc"],
        input=script,
        env=environment(tmp_path, PATH=path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["api-docs", "api-guide"]
