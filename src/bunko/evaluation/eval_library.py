"""Build a temporary or persistent library from judged documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bunko import stores
from bunko.errors import LibraryMismatch, SourceError
from bunko.evaluation.dataset import JudgedDocument
from bunko.library import open
from bunko.library.library import Library
from bunko.library.opening.paths import paths_for_folder
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.temporary_files import TemporaryFolder
from bunko.runtime.timing import now
from bunko.settings import Settings, all_settings
from bunko.types import Text, Tool

# The only tool of such a library.
JUDGED_TOOL = "judged"
_SETTINGS_HEADER = "# Written by bunko evaluate: what this library was built with."
_INDEX_SECTIONS = ("chunker", "chunking", "embedding")  # the settings that an index depends on


@contextmanager
def judged_library(
    documents: Sequence[JudgedDocument],
    settings: Settings,
    *,
    persist_dir: Path | None = None,
    observer: Observer = NO_OBSERVER,
) -> Iterator[Library]:
    """Open a library with exactly these documents; into a persistent one only changed documents are imported."""
    with library_folder(persist_dir) as folder, open_library(folder, settings) as library:
        fill_tool(library, documents, observer=observer)
        if persist_dir is not None:
            _write_build_settings(folder / "bunko.toml", settings)
        yield library


def fill_tool(
    library: Library,
    documents: Sequence[JudgedDocument],
    *,
    tool: str = JUDGED_TOOL,
    observer: Observer = NO_OBSERVER,
) -> None:
    """Replace the documents of a tool with exactly these."""
    judged_tool = Tool(tool, JUDGED_TOOL, "A judged set, for measuring searches", created_at=now())
    texts = {document.id: _document_text(document) for document in documents}
    report = library.replace_texts(judged_tool, texts, observer=observer)
    for problem in report.problems:
        raise SourceError(
            f"{problem.uri} cannot be indexed: it {problem.reason}", hint="Remove the document or fix it."
        )


def stored_documents(folder: Path, settings: Settings) -> tuple[JudgedDocument, ...]:
    """Return the documents of a persistent library; empty if it does not exist."""
    if not stores.exists(_with_default_storage(settings).storage.kind, paths_for_folder(folder).database):
        return ()
    with open_library(folder, settings) as library:
        tool = next(iter(library.tools()), None)
        if tool is None:
            return ()
        stored = (library.documents.stored.get(tool.id, uri) for uri in library.documents.stored.fingerprints(tool.id))
        return tuple(
            JudgedDocument(document.uri, document.title, document.text) for document in stored if document is not None
        )


@contextmanager
def open_library(folder: Path, settings: Settings) -> Iterator[Library]:
    """Open an evaluation library; raise an error if it contains tools of any other kind."""
    paths, settings = paths_for_folder(folder), _with_default_storage(settings)
    with Library(paths, settings, stores.build(settings.storage.kind, paths.database)) as library:
        foreign_tools = [tool.name for tool in library.tools() if tool.kind != JUDGED_TOOL]
        if foreign_tools:
            raise LibraryMismatch(
                f"{folder} is a library in use: it contains {', '.join(foreign_tools)}",
                hint="Name another folder with --persist-dir; an evaluation would replace these tools.",
            )
        yield library


def same_index(first: Settings, second: Settings) -> bool:
    """Return whether two settings build the same index, so that one library can serve both."""
    return all(getattr(first, section).values() == getattr(second, section).values() for section in _INDEX_SECTIONS)


def with_settings(library: Library, settings: Settings) -> Library:
    """Return the same library with other search settings; both share one store, so only the first is closed."""
    return open.with_settings(library, _with_default_storage(settings))


def _with_default_storage(settings: Settings) -> Settings:
    # A folder set for derived files is for the user's own libraries, not for evaluation libraries.
    return replace(settings, storage=type(settings.storage)())


def _write_build_settings(path: Path, settings: Settings) -> None:
    """Write the index settings of a persistent library, so that every command can open it; keep a user's own file."""
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(_SETTINGS_HEADER):
        return
    lines, declared = [_SETTINGS_HEADER], all_settings()
    for section in _INDEX_SECTIONS:
        lines.append(f"\n[{section}]")
        for name, value in getattr(settings, section).values().items():
            if value is not None and not declared[f"{section}.{name}"].secret:
                lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _document_text(document: JudgedDocument) -> Text:
    body = document.text if document.text.strip() else document.title
    return Text(body, "text/markdown", "utf-8", document.title)


@contextmanager
def library_folder(persist_dir: Path | None) -> Iterator[Path]:
    """Yield `persist_dir`, created if missing, or a temporary folder if it is None."""
    if persist_dir is not None:
        persist_dir.mkdir(parents=True, exist_ok=True)
        yield persist_dir
        return
    folder = TemporaryFolder("bunko-evaluation-")
    try:
        yield folder.path
    finally:
        folder.cleanup()
