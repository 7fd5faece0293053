"""Read files of any supported format as text with title, date and tags; each format is one module or entry point."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from bunko.errors import SourceError
from bunko.readers.reader import Reader
from bunko.runtime.plugins import iter_modules, load_plugins
from bunko.text.dates import date_in_name
from bunko.text.normalise import escape_surrogates

if TYPE_CHECKING:
    from bunko.types import Text

__all__ = [
    "Reader", "builtin_readers", "default_suffixes", "format_label", "plugin_readers", "plugin_suffixes", "read",
    "unavailable_readers",
]  # fmt: skip

ENTRY_POINT_GROUP = "bunko.readers"
# Modules that readers share, or that read entries for sources; the search for readers does not import them.
HELPER_MODULES = frozenset({
    "changelog", "daily_notes", "definitions", "definitions_process", "encoding", "entry_head",
    "helper_process", "jsonl", "line_stream", "memo", "mime", "outline", "outlines", "places", "reader", "vault_notes",
})  # fmt: skip
_FALLBACK = "plain"
# The `default_suffixes` of all readers in this package: a search needs them, but not the readers.
_DEFAULT_SUFFIXES = (
    ".docx", ".docm", ".epub", ".html", ".htm", ".xhtml", ".eml", ".mbox", ".md", ".ipynb", ".org", ".pdf", ".txt",
    ".pptx", ".pptm", ".ppsx", ".rst", ".xlsx", ".xlsm",
)  # fmt: skip


def read(data: bytes, name: str) -> Text:
    """Read a file by the suffix of its name, any other as plain text; raise SourceError if it holds no text.

    A file that states no date has the one that its name begins with, as daily notes do.
    """
    reader = _reader_of(name)
    text = (reader or builtin_readers()[_FALLBACK]).read(data)
    content = getattr(text, "text", text)
    if not isinstance(content, str):  # of a reader from another package
        raise SourceError(f"Its reader returned no text but {type(content).__name__}")
    try:
        f"{content}{text.title}".encode()
    except UnicodeEncodeError:  # no store takes half of a character
        text = replace(text, text=escape_surrogates(content), title=escape_surrogates(text.title))
    return replace(text, date=date) if not text.date and (date := date_in_name(name)) else text


def format_label(name: str) -> str:
    """Return what people call the format of a file, by the suffix of its name; of an unknown one, the suffix."""
    reader = _reader_of(name)
    return (reader.label if reader else "") or PurePosixPath(name).suffix.lower() or "text"


def default_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the files that a folder imports unless the settings say otherwise."""
    return (*_DEFAULT_SUFFIXES, *plugin_suffixes())


@cache
def plugin_suffixes() -> tuple[str, ...]:
    """Return the `default_suffixes` of the readers that installed packages add; those of bunko are not among them."""
    plugin_suffixes = (suffix for reader in plugin_readers().values() for suffix in reader.default_suffixes)
    return tuple(dict.fromkeys(suffix for suffix in plugin_suffixes if suffix not in _DEFAULT_SUFFIXES))


def unavailable_readers() -> tuple[Reader, ...]:
    """Return the readers of this package whose extra is not installed."""
    return tuple(reader for reader in builtin_readers().values() if not reader.is_available())


@cache
def builtin_readers() -> Mapping[str, Reader]:
    """Return the readers of this package by name; they import their parsers only when a file needs them."""
    modules = iter_modules(sys.modules[__name__], HELPER_MODULES)
    readers = {key: reader for name, module in modules for key, reader in _declared_readers(name, module).items()}
    return dict(sorted(readers.items()))


@cache
def plugin_readers() -> Mapping[str, Reader]:
    """Return the readers that installed packages add by entry points; a built-in suffix cannot be replaced."""
    plugins = load_plugins(ENTRY_POINT_GROUP).items()
    return {key: reader for name, plugin in plugins for key, reader in _declared_readers(name, plugin).items()}


def _reader_of(name: str) -> Reader | None:
    file_name = name.casefold()
    reader = _find_reader(file_name, builtin_readers())
    if reader is None and "." in file_name.rpartition("/")[2]:
        reader = _find_reader(file_name, plugin_readers())
    return reader


def _find_reader(file_name: str, readers: Mapping[str, Reader]) -> Reader | None:
    return next((reader for reader in readers.values() if file_name.endswith(reader.suffixes)), None)


def _declared_readers(name: str, plugin: object) -> Mapping[str, Reader]:
    """Return the readers that a module declares as READER or READERS; an entry point may name a Reader itself."""
    if isinstance(plugin, Reader):
        return {name: plugin}
    readers: Mapping[str, object] = getattr(plugin, "READERS", None) or {name: getattr(plugin, "READER", None)}
    return {key: reader for key, reader in readers.items() if isinstance(reader, Reader)}
