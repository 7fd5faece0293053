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
from bunko.ingest.pipeline import Progress
from bunko.library.library import Library
from bunko.library.paths import in_folder
from bunko.settings import Settings
from bunko.settings.schema import SETTINGS
from bunko.stores import sqlite
from bunko.timing import now
from bunko.types import Text, Tool

# The one tool of such a library.
TOOL = "judged"
_OURS = "# Written by bunko evaluate: what this library was built with."
_BUILDING = ("chunker", "chunking", "embedding")  # the settings that an index is made with


@contextmanager
def holding(
    documents: Sequence[JudgedDocument],
    settings: Settings,
    *,
    persist_dir: Path | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Iterator[Library]:
    """Open a library that holds exactly these documents; in a kept one only what changed is imported."""
    with folder_for(persist_dir) as folder, opened(folder, settings) as library:
        put(library, documents, progress=progress)
        if persist_dir is not None:
            _remember(folder / "bunko.toml", settings)
        yield library


def put(
    library: Library,
    documents: Sequence[JudgedDocument],
    *,
    tool: str = TOOL,
    progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Let a tool of a library hold exactly these documents."""
    made = Tool(tool, TOOL, "A judged set, for measuring searches", created_at=now())
    report = library.fill(made, {one.id: _text(one) for one in documents}, progress=progress)
    for problem in report.problems:
        raise SourceError(f"{problem.uri} cannot be indexed: it {problem.reason}", hint="Leave it out, or mend it.")


def documents_in(folder: Path, settings: Settings) -> tuple[JudgedDocument, ...]:
    """Return the documents that a kept library holds, none if there is none."""
    if not in_folder(folder).database.exists():
        return ()
    with opened(folder, settings) as library:
        tool = next((one for one in library.tools()), None)
        if tool is None:
            return ()
        stored = (library.store.document(tool.id, uri) for uri in library.store.known(tool.id))
        return tuple(JudgedDocument(one.uri, one.title, one.text) for one in stored if one is not None)


@contextmanager
def opened(folder: Path, settings: Settings) -> Iterator[Library]:
    """Open a library made for measuring; one that somebody uses is refused."""
    home = in_folder(folder)
    # Whoever keeps derived files in a place of their own keeps those of their libraries there, not ours.
    own = replace(settings, storage=type(settings.storage)())
    with Library(home, own, sqlite.build(home.database)) as library:
        others = [tool.name for tool in library.tools() if tool.kind != TOOL]
        if others:
            raise LibraryMismatch(
                f"{folder} is a library in use: it holds {', '.join(others)}",
                hint="Name another folder with --persist-dir; measuring would replace what is there.",
            )
        yield library


def alike(one: Settings, other: Settings) -> bool:
    """Say whether two settings make the same index, so that one library can answer for both."""
    return all(vars(getattr(one, section)) == vars(getattr(other, section)) for section in _BUILDING)


def seen_through(library: Library, settings: Settings) -> Library:
    """Return the same library under other settings of the search; it is closed with the first."""
    return Library(library.home, replace(settings, storage=type(settings.storage)()), library.store)


def _remember(path: Path, settings: Settings) -> None:
    """Write down what a kept library was built with, so that every command can open it; a user's file stays."""
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(_OURS):
        return
    lines = [_OURS]
    for section in _BUILDING:
        lines.append(f"\n[{section}]")
        for name, value in vars(getattr(settings, section)).items():
            if value is not None and not SETTINGS[f"{section}.{name}"].secret:
                lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _text(document: JudgedDocument) -> Text:
    body = document.text if document.text.strip() else document.title
    return Text(body, "text/markdown", "utf-8", document.title)


@contextmanager
def folder_for(kept: Path | None) -> Iterator[Path]:
    """Return the folder that is named, made if need be, else a temporary one."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="bunko-evaluation-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
