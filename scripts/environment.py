"""Create a virtual environment with this Python and install packages into it, at the versions that were tested.

usage: python scripts/environment.py FOLDER [what pip install takes …]

This runs on old Pythons too, and without annotations, so that a Python that is too old gets a sentence.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

CONSTRAINTS = "src/bunko/constraints.txt"  # relative, because pip splits its environment variables at spaces
NO_CONNECTION = re.compile(
    "NewConnectionError|NameResolutionError|ConnectTimeoutError|ProxyError|Network is unreachable"
)


def main(folder, arguments):
    """Create the environment if it is not there, and install."""
    check_python()
    python = str(folder / "bin" / "python")
    has_pip = has_shared_pip()  # a pip of its own costs time and disk
    if not is_ours(folder):
        without_pip = ["--without-pip"] if has_pip else []
        subprocess.run([sys.executable, "-m", "venv", "--clear", *without_pip, str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python] if has_pip else [python, "-m", "pip"]
    # As environment variables, because they also reach the packages that build a package.
    tested = {"PIP_CONSTRAINT": CONSTRAINTS, "PIP_BUILD_CONSTRAINT": CONSTRAINTS, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = [*pip, "install", "--quiet", *arguments]
    result = subprocess.run(command, env={**os.environ, **tested}, stderr=subprocess.PIPE, encoding="utf-8")
    if result.returncode == 0:
        return
    if NO_CONNECTION.search(result.stderr):
        sys.exit(
            "The package index cannot be reached, and bunko's packages come from there. Connect to the network, or "
            "name a mirror in PIP_INDEX_URL, and run the command again."
        )
    sys.exit(result.stderr + "pip could not install the packages; its reason is above.")


def check_python():
    """End with a sentence if bunko does not run on this Python."""
    match = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', Path("pyproject.toml").read_text(encoding="utf-8"))
    lowest, highest = int(match.group(1)), int(match.group(2)) - 1
    major, minor = sys.version_info[:2]
    if not (3, lowest) <= (major, minor) <= (3, highest):
        sys.exit(
            f"bunko runs on Python 3.{lowest} to 3.{highest}, and this is Python {major}.{minor}. Name another one, "
            f"for example: make demo PYTHON=python3.{highest}"
        )


def is_ours(folder):
    """Return whether an environment exists and was made with the version of this Python."""
    try:
        settings = (folder / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return False
    return "version = {}.{}.{}\n".format(*sys.version_info) in settings


def has_shared_pip():
    """Return whether the pip of this Python can install into another environment: 22.3 and later can."""
    try:
        import pip
    except ImportError:
        return False
    return tuple(map(int, re.findall(r"\d+", pip.__version__)[:2])) >= (22, 3)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
