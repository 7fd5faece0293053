"""Programs and scripts from npm that check the page, at the versions of tests/browser/node."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".node-page"
_WANTED = ROOT / "tests" / "browser" / "node" / "package-lock.json"


def package_file(path: str) -> Path:
    """Return a file of a package."""
    require()
    return FOLDER / "node_modules" / path


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in the root of the repository."""
    require()
    command = [str(FOLDER / "node_modules" / ".bin" / program), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=300)


def require() -> None:
    """Skip where there is no npm at all; fail where there is one and the packages are missing."""
    if not shutil.which("npm") and not FOLDER.exists():
        if os.environ.get("CI"):
            pytest.fail("npm is missing; CI must not pass without the checks of the page")
        pytest.skip("npm is not on this machine, and the checks of the page come from it")
    if not (FOLDER / ".installed").exists() or (FOLDER / "package-lock.json").read_bytes() != _WANTED.read_bytes():
        pytest.fail("The packages that check the page are not installed or out of date. Run `make node-page`.")
