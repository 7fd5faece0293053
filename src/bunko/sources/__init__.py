"""Find kinds of sources by name and build sources; each kind is one module or entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import BunkoError, SourceError, UnknownName
from bunko.runtime.plugins import describe_exception, load_plugins
from bunko.sources.fixed import UnusableSource
from bunko.sources.kind import SourceKind, SourceSpec

if TYPE_CHECKING:
    from bunko.protocols import Source
    from bunko.sources.web.pages import PageStore

__all__ = [
    "SourceKind",
    "all_kinds",
    "build",
    "builtin_kind_names",
    "find_kind",
    "kinds_of_section",
    "plugin_errors",
    "section_of",
]

ENTRY_POINT_GROUP = "bunko.sources"
# Modules that kinds of sources share; all others are kinds.
HELPER_MODULES = frozenset("detect documents entries events fixed git_dates gitignore kind survey walk".split())


@cache
def builtin_kind_names() -> tuple[str, ...]:
    """Return the kinds of this package in alphabetical order, without importing them."""
    from pkgutil import iter_modules

    names = {module.name for module in iter_modules(sys.modules[__name__].__path__)}
    return tuple(sorted(names - HELPER_MODULES))


@cache
def find_kind(name: str) -> SourceKind | None:
    """Return the kind of a name, built in or added by an installed package, or None; imports no other kind."""
    if name in builtin_kind_names():
        return _declared_kind(import_module(f"{__name__}.{name}"))
    return plugin_kinds().get(name)


def all_kinds() -> dict[str, SourceKind]:
    """Return every kind by name, the built-in ones first."""
    builtin_kinds = {name: kind for name in builtin_kind_names() if (kind := find_kind(name))}
    return builtin_kinds | {name: kind for name, kind in plugin_kinds().items() if name not in builtin_kinds}


def section_of(name: str) -> str:
    """Return the settings section of a kind, or an empty string."""
    kind = find_kind(name)
    return kind.section if kind else ""


@cache
def kinds_of_section(section: str) -> tuple[str, ...]:
    """Return the kinds that a settings section is for; first the one that has its name."""
    names = [name for name, kind in all_kinds().items() if kind.section == section]
    return tuple(sorted(names, key=lambda name: (name != section, name)))


def build(
    kind: str,
    root: Path,
    *,
    extensions: Sequence[str],
    exclude_dirs: Sequence[str],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    respect_gitignore: bool = True,
    max_file_bytes: int,
    max_memo_file_bytes: int = 1_000_000_000,
    pages: PageStore | None = None,
    keep: Source | None = None,
) -> Source:
    """Return the source of a kind, whether its root exists or not; `extensions` are for folders only.

    A file of many entries is read as a stream and may be larger than a document: `max_file_bytes` then limits each of
    its entries. Web pages have no root: they come from `pages`. What only `keep` finds in a folder stays as it was
    indexed: it is neither read nor deleted.
    """
    declared = find_kind(kind)
    if declared is None or (declared.needs_pages and pages is None):
        raise UnknownName(f"There is no source of the kind {kind!r}", hint=f"Choose one of: {', '.join(all_kinds())}.")
    spec = SourceSpec(
        root,
        extensions,
        exclude_dirs,
        include,
        exclude,
        respect_gitignore,
        max_file_bytes,
        max_memo_file_bytes,
        pages,
        keep,
    )
    try:
        with plugin_errors(kind):
            return declared.build(spec)
    except SourceError as error:
        if kind in builtin_kind_names():
            raise
        return UnusableSource(error)


@contextmanager
def plugin_errors(kind: str) -> Iterator[None]:
    """Turn every exception of another package's source into an error that says so; ours keep their tracebacks."""
    try:
        yield
    except (BunkoError, MemoryError):
        raise
    except Exception as error:
        if kind in builtin_kind_names():
            raise
        raise SourceError(
            f"The source {kind!r} raised {describe_exception(error)}",
            hint="Its documents stay as they were indexed. Report it to those who wrote the source.",
        ) from error


@cache
def plugin_kinds() -> Mapping[str, SourceKind]:
    plugins = load_plugins(ENTRY_POINT_GROUP).items()
    return {name: kind for name, plugin in plugins if (kind := _declared_kind(plugin))}


def _declared_kind(plugin: object) -> SourceKind | None:
    """Return the kind that a module declares as KIND; an entry point may name the SourceKind itself."""
    kind = plugin if isinstance(plugin, SourceKind) else getattr(plugin, "KIND", None)
    return kind if isinstance(kind, SourceKind) else None
