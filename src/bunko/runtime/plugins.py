"""Find the providers of a kind: the modules of a package, and those that installed packages add by entry points."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_MAX_MESSAGE_CHARS = 200


def iter_modules(package: ModuleType, helpers: Collection[str]) -> Iterator[tuple[str, ModuleType]]:
    """Yield name and module of each module in a package, sorted by name; helpers are not imported."""
    from pkgutil import iter_modules

    for name in sorted(module.name for module in iter_modules(package.__path__)):
        if name not in helpers:
            yield name, import_module(f"{package.__name__}.{name}")


def load_plugin(group: str, name: str) -> object | None:
    """Return what the entry point of this name refers to, or None; errors of the plugin are not caught."""
    for entry_point in _entry_points(group):
        if entry_point.name == name:
            return entry_point.load()  # type: ignore[no-any-return]
    return None


def load_plugins(group: str) -> dict[str, object]:
    """Return what all entry points of a group refer to; one that cannot be loaded is logged and left out."""
    plugins: dict[str, object] = {}
    for entry_point in _entry_points(group):
        try:
            plugins[entry_point.name] = entry_point.load()
        except Exception as error:  # the code of another package may raise anything
            import logging

            message = "The plugin %s of %s cannot be loaded: %s"
            logging.getLogger("bunko.plugins").warning(message, entry_point.name, group, error)
    return plugins


def describe_exception(error: Exception) -> str:
    """Return the kind of an exception and the beginning of its message on one line."""
    message = ""
    with suppress(Exception):  # its own code may raise, too
        message = " ".join(str(error).split())[:_MAX_MESSAGE_CHARS]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _entry_points(group: str) -> list[EntryPoint]:
    # Every search asks for readers, and to import what reads metadata takes 20 times as long as to look for the group.
    if not any(_may_name(folder or ".", f"[{group}]".encode()) for folder in sys.path):
        return []
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group), key=lambda entry_point: entry_point.name)


def _may_name(folder: str, section: bytes) -> bool:
    """Return whether a package that is installed in a folder may have a section of entry points."""
    try:
        with os.scandir(folder) as entries:
            records = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
    except NotADirectoryError:  # a zip file
        return True
    except OSError:
        return False
    for record in records:
        with suppress(OSError), open(f"{record}/entry_points.txt", "rb") as file:
            if section in file.read():
                return True
    return False
