"""Find the providers of a kind: the modules of a package, and those that installed packages add by entry points."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


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
    import logging

    plugins: dict[str, object] = {}
    for entry_point in _entry_points(group):
        try:
            plugins[entry_point.name] = entry_point.load()
        except Exception as error:  # the code of another package may raise anything
            message = "The plugin %s of %s cannot be loaded: %s"
            logging.getLogger("bunko.plugins").warning(message, entry_point.name, group, error)
    return plugins


def _entry_points(group: str) -> list[EntryPoint]:
    # Reading the metadata of all installed packages takes long: this is called only for names that are not built in.
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group), key=lambda entry_point: entry_point.name)
