"""Run programs as if a package were not installed, or raised whenever anything of it is called."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

# Any name of a broken package is a class that can be inherited from, caught and subscripted, but not called.
_BROKEN = """
class Broken(Exception):
    def __init__(self, *arguments, **options):
        raise RuntimeError("it was replaced by another version")

    def __class_getitem__(cls, item):
        return cls

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Broken
"""
_SITECUSTOMIZE = f"""
import importlib.abc, importlib.machinery, os, sys

class Breaker(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in os.environ["BROKEN_MODULES"].split():
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def exec_module(self, module):
        exec(compile({_BROKEN!r}, module.__name__, "exec"), module.__dict__)

sys.meta_path.insert(0, Breaker())
"""
SITE = Path(sysconfig.get_paths()["purelib"])
ROOT = Path(__file__).parents[2]


def modules_of(package: str) -> set[str]:
    """Return the names that a package adds to those that can be imported."""
    names = {Path(file).parts[0] for file in distribution(package).files or () if not str(file).startswith("..")}
    return {name.partition(".")[0] for name in names if not name.endswith((".dist-info", ".libs", ".pth"))} - {
        "__pycache__"
    }


def is_compiled(package: str) -> bool:
    """Return whether a package has modules in machine code, which may not fit another Python or system."""
    return any(re.search(r"\.(so|pyd|dylib)$", str(file)) for file in distribution(package).files or ())


def python_without(package: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return how to run Python where a package is not installed, and the environment for it."""
    site = folder / "site"
    site.mkdir()
    files = distribution(package).files or ()
    left_out = {Path(file).parts[0] for file in files} | {f"{name}.py" for name in modules_of(package)}
    for path in SITE.iterdir():
        if path.name not in left_out:
            (site / path.name).symlink_to(path)
    paths = os.pathsep.join((str(ROOT / "src"), str(site)))
    return [sys.executable, "-S"], {"PYTHONPATH": paths}


def python_with_broken(package: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return how to run Python where everything that a package has raises when it is called, and the environment."""
    (folder / "sitecustomize.py").write_text(_SITECUSTOMIZE)
    return [sys.executable], {"PYTHONPATH": str(folder), "BROKEN_MODULES": " ".join(modules_of(package))}
