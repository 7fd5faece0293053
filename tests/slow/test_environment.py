"""The environment of `make demo` and `make test`: what a newcomer reads where it cannot be made."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "environment.py"


def make_environment(project: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a project's folder."""
    project.mkdir(exist_ok=True)
    constraints = project / "src" / "bunko" / "constraints.txt"
    constraints.parent.mkdir(parents=True, exist_ok=True)
    constraints.write_text("click==8.1.8\n")
    return subprocess.run(
        [sys.executable, SCRIPT, ".venv", *arguments],
        cwd=project,
        env=os.environ | {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INPUT": "1"} | variables,
        capture_output=True,
        text=True,
    )


def test_a_python_that_does_not_fit_is_told_which_ones_do(tmp_path: Path) -> None:
    tmp_path.joinpath("pyproject.toml").write_text('[project]\nrequires-python = ">=3.97,<3.99"\n')
    made = make_environment(tmp_path)
    assert made.returncode == 1
    assert made.stderr.startswith(f"bunko runs on Python 3.97 to 3.98, and this is Python 3.{sys.version_info.minor}. ")
    assert len(made.stderr.splitlines()) == 1


def test_without_a_network_one_sentence_says_so(tmp_path: Path) -> None:
    project = tmp_path / "a folder with spaces"
    project.mkdir()
    project.joinpath("pyproject.toml").write_text('[project]\nrequires-python = ">=3.11,<3.99"\n')
    with socket.socket() as unheard:  # bound, so that nothing else can listen there
        unheard.bind(("127.0.0.1", 0))
        index = f"http://127.0.0.1:{unheard.getsockname()[1]}/simple"
        made = make_environment(
            project, "click", PIP_INDEX_URL=index, PIP_EXTRA_INDEX_URL="", PIP_FIND_LINKS="", PIP_RETRIES="1"
        )
    assert made.returncode == 1
    assert made.stderr.startswith("The package index cannot be reached")
    assert len(made.stderr.splitlines()) == 1


def test_another_problem_of_pip_is_shown_as_pip_tells_it(tmp_path: Path) -> None:
    tmp_path.joinpath("pyproject.toml").write_text('[project]\nrequires-python = ">=3.11,<3.99"\n')
    made = make_environment(tmp_path, "./missing-folder")
    assert made.returncode == 1
    assert "missing-folder" in made.stderr
    assert made.stderr.endswith("pip could not install the packages; its reason is above.\n")


def write_wheel(folder: Path, name: str, version: str, requirements: Sequence[str] = ()) -> None:
    """Write a package without files."""
    record = f"{name.replace('-', '_')}-{version}.dist-info"
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *map("Requires-Dist: {}".format, requirements),
    ]
    with ZipFile(folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{record}/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{record}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{record}/RECORD", "")


@pytest.mark.parametrize(
    ("package", "old_version", "needed"), [("numpy", "1.26.4", "numpy<2"), ("click", "8.0.4", "click<8.1")]
)
def test_pip_names_bunko_and_the_package_that_it_clashes_with(
    package: str, old_version: str, needed: str, tmp_path: Path
) -> None:
    requirements = tomllib.loads((SCRIPT.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    write_wheel(tmp_path, "bunko", "0.1.0", requirements)
    write_wheel(tmp_path, "oldstats", "1.0", [needed])
    write_wheel(tmp_path, package, old_version)
    for requirement in requirements:
        name, version = re.match(r"([\w-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
        write_wheel(tmp_path, name, version)
    venv.create(tmp_path / "venv", with_pip=True)

    def install(*packages: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [tmp_path / "venv" / "bin" / "python", "-m", "pip", "install", "--no-index", "--find-links", tmp_path,
             *packages],
            env=os.environ | {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""},
            capture_output=True,
            text=True,
        )  # fmt: skip

    together = install("bunko", "oldstats")
    assert together.returncode == 1
    assert f"bunko 0.1.0 depends on {package}" in together.stdout + together.stderr
    assert f"oldstats 1.0 depends on {needed}" in together.stdout + together.stderr
    assert install("oldstats").returncode == 0
    later = install("bunko")
    assert re.search(f"oldstats 1.0 requires {re.escape(needed)}, but you have {package} ", later.stderr)
