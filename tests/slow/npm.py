"""Programs from npm at the versions of tests/slow/node, run by the Node that `make node` brings with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".node"
PROGRAMS = FOLDER / "node_modules" / ".bin"
_WANTED = ROOT / "tests" / "slow" / "node" / "package-lock.json"
_OLDEST = 22


def run(program: str, *arguments: str | Path, seconds: float = 120, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with a text as its input."""
    require()
    return subprocess.run(
        [str(PROGRAMS / program), *map(str, arguments)],
        cwd=FOLDER,
        env=environment(),
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=seconds,
    )


def environment() -> dict[str, str]:
    """Return an environment in which `node` is ours, and in which no program finds settings of this machine's user."""
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    # Not ours to write to: the programs keep logs and catalogues in the user's home.
    home = FOLDER / "home"
    home.mkdir(exist_ok=True)
    return {**kept, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "NO_COLOR": "1"}


def require() -> None:
    """Skip where there is no npm at all; fail where there is one and the programs are missing."""
    if not shutil.which("npm") and not FOLDER.exists():
        if os.environ.get("CI"):
            pytest.fail("npm is missing; CI must not pass without these tests")
        pytest.skip("npm is not on this machine, and the programs of this test come from it")
    installed = FOLDER / "package-lock.json"
    if not (FOLDER / ".installed").exists() or installed.read_bytes() != _WANTED.read_bytes():
        pytest.fail("The programs from npm are not installed or out of date. Run `make node` and read what it says.")
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    version = subprocess.run(["node", "--version"], env={"PATH": path}, capture_output=True, text=True).stdout
    if not version or int(version.lstrip("v").partition(".")[0]) < _OLDEST:
        pytest.fail(f"Node {_OLDEST} or newer is needed and npm brought none for this machine; found: {version!r}.")
