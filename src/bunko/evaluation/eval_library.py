"""Judged documents and settings in, a library that holds them out: a temporary one, or one kept for the next time."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bunko.errors import LibraryMismatch, SourceError
from bunko.evaluation.dataset import JudgedDocument
from bunko.ingest.pipeline import ImportProgress
from bunko.library.library import Library
from bunko.library.paths import paths_for_folder
from bunko.settings import Settings
from bunko.settings.schema import SETTINGS
from bunko.stores import sqlite
from bunko.timing import now
from bunko.types import Text, Tool

# The one tool of such a library.
JUDGED_TOOL = "judged"
_SETTINGS_HEADER = "# Written by bunko evaluate: what this library was built with."
_INDEX_SECTIONS = ("chunker", "chunking", "embedding")  # the settings that an index is made with


@contextmanager
def judged_library(
    documents: Sequence[JudgedDocument],
    settings: Settings,
    *,
    persist_dir: Path | None = None,
    progress: Callable[[ImportProgress], None] = lambda _: None,
) -> Iterator[Library]:
    """Open a library that holds exactly these documents; in a kept one only what changed is imported."""
    with library_folder(persist_dir) as folder, open_library(folder, settings) as library:
        fill_tool(library, documents, progress=progress)
        if persist_dir is not None:
            _write_build_settings(folder / "bunko.toml", settings)
        yield library


def fill_tool(
    library: Library,
    documents: Sequence[JudgedDocument],
    *,
    tool: str = JUDGED_TOOL,
    progress: Callable[[ImportProgress], None] = lambda _: None,
) -> None:
    """Let a tool of a library hold exactly these documents."""
    made = Tool(tool, JUDGED_TOOL, "A judged set, for measuring searches", created_at=now())
    report = library.replace_texts(made, {one.id: _document_text(one) for one in documents}, progress=progress)
    for problem in report.problems:
        raise SourceError(f"{problem.uri} cannot be indexed: it {problem.reason}", hint="Leave it out, or mend it.")


def stored_documents(folder: Path, settings: Settings) -> tuple[JudgedDocument, ...]:
    """Return the documents that a kept library holds, none if there is none."""
    if not paths_for_folder(folder).database.exists():
        return ()
    with open_library(folder, settings) as library:
        tool = next((one for one in library.tools()), None)
        if tool is None:
            return ()
        stored = (library.store.document(tool.id, uri) for uri in library.store.fingerprints(tool.id))
        return tuple(JudgedDocument(one.uri, one.title, one.text) for one in stored if one is not None)


@contextmanager
def open_library(folder: Path, settings: Settings) -> Iterator[Library]:
    """Open a library made for measuring; one that somebody uses is refused."""
    home = paths_for_folder(folder)
    # Whoever keeps derived files in a place of their own keeps those of their libraries there, not ours.
    own = replace(settings, storage=type(settings.storage)())
    with Library(home, own, sqlite.build(home.database)) as library:
        others = [tool.name for tool in library.tools() if tool.kind != JUDGED_TOOL]
        if others:
            raise LibraryMismatch(
                f"{folder} is a library in use: it holds {', '.join(others)}",
                hint="Name another folder with --persist-dir; measuring would replace what is there.",
            )
        yield library


def same_index(first: Settings, second: Settings) -> bool:
    """Say whether two settings make the same index, so that one library can answer for both."""
    return all(vars(getattr(first, section)) == vars(getattr(second, section)) for section in _INDEX_SECTIONS)


def with_settings(library: Library, settings: Settings) -> Library:
    """Return the same library under other settings of the search; it is closed with the first."""
    return Library(library.paths, replace(settings, storage=type(settings.storage)()), library.store)


def _write_build_settings(path: Path, settings: Settings) -> None:
    """Write down what a kept library was built with, so that every command can open it; a user's file stays."""
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(_SETTINGS_HEADER):
        return
    lines = [_SETTINGS_HEADER]
    for section in _INDEX_SECTIONS:
        lines.append(f"\n[{section}]")
        for name, value in vars(getattr(settings, section)).items():
            if value is not None and not SETTINGS[f"{section}.{name}"].secret:
                lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _document_text(document: JudgedDocument) -> Text:
    body = document.text if document.text.strip() else document.title
    return Text(body, "text/markdown", "utf-8", document.title)


@contextmanager
def library_folder(persist_dir: Path | None) -> Iterator[Path]:
    """Return the folder that is named, made if need be, else a temporary one."""
    if persist_dir is not None:
        persist_dir.mkdir(parents=True, exist_ok=True)
        yield persist_dir
        return
    with tempfile.TemporaryDirectory(prefix="bunko-evaluation-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
