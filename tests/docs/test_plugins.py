"""The package that the page about plugins builds: installed by pip in an environment of its own, and used."""

from __future__ import annotations

import dataclasses
import os
import re
import site
import subprocess
import venv
from pathlib import Path

import pytest

from bunko.protocols import Embedder, Source
from bunko.readers.reader import Reader
from bunko.sources.kind import SourceKind
from bunko.types import Text
from tests.docs.outputs import check_output
from tests.docs.test_docs import ROOT, shown, text_of

PAGE = "docs/plugins.md"
_FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.M | re.S)


def table(name: str) -> list[str]:
    """Return what the rows of a table are about."""
    rows = text_of(PAGE).partition(f"\n| `{name}` | |\n")[2].partition("\n\n")[0]
    return re.findall(r"`(\w+)", " ".join(row.split(" | ")[0] for row in rows.splitlines()))


def public_names(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


@pytest.mark.parametrize("protocol", [Embedder, Source])
def test_the_page_names_all_that_a_part_must_have(protocol: type) -> None:
    signatures = {"texts", "query", "entry", "fingerprints", "known_uris"}
    assert sorted(set(table(protocol.__name__)) - signatures) == sorted(public_names(protocol))


@pytest.mark.parametrize("record", [Reader, Text, SourceKind])
def test_the_page_names_all_fields(record: type) -> None:
    fields = [field.name for field in dataclasses.fields(record)]
    assert sorted(table(record.__name__)) == sorted(fields)


@pytest.mark.slow
def test_the_package_of_the_page_is_installed_and_does_what_the_page_shows(tmp_path: Path) -> None:
    for name, content in _FILE.findall(text_of(PAGE)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # bunko and what builds packages are taken from the environment of the tests: no package index is asked.
    folders = [*site.getsitepackages(), str(ROOT / "src")]
    packages.joinpath("shared.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in folders))
    (environment / "bin" / "bunko").write_text(f'#!/bin/sh\nexec "{environment}/bin/python" -m bunko "$@"\n')
    (environment / "bin" / "bunko").chmod(0o755)
    environ = {
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONUTF8": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as: no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    commands = shown(PAGE, at_a_terminal=True)
    assert commands[0][0].startswith("pip install ")
    for command, expected in commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environ, capture_output=True, text=True, encoding="utf-8"
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        check_output([ROOT / PAGE], command, expected, done.stdout)
    assert [path.name for path in packages.glob("bunko_office-*")] == ["bunko_office-1.0.dist-info"]
