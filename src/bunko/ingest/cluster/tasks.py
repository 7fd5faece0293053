"""Do on a worker of a cluster what an import needs: prepare a batch of documents, or embed texts."""

from __future__ import annotations

import pickle
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

from bunko import readers
from bunko.embedders.embed import embed_texts
from bunko.embedders.names import display_name
from bunko.errors import BunkoError, EmbedderError, SourceError
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.prepare import EntryResult, prepare_entries
from bunko.protocols import Embedder, EmbedderStats, SelfReadingSource, Source
from bunko.types import ExcerptEntry, SourceEntry, Text

if TYPE_CHECKING:
    from bunko.types import SentenceSubwords, Vectors

# The packages that decide about texts, terms and vectors: with another version, the same document may get others.
_PACKAGES = ("fugashi", "pypdfium2", "PyStemmer", "PyYAML", "selectolax", "sentencepiece", "tree-sitter")

# What reading a file returned, or the error that it raised.
FileContent = tuple[bytes, SourceEntry] | BunkoError | OSError


@dataclass(slots=True)
class PreparedBatch:
    """The results of a batch, and the files that the worker does not see as the importing machine does."""

    results: list[EntryResult]
    unread_uris: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class PrepareTask:
    """A batch of documents to read, chunk and tokenize."""

    source: Source
    chunker_settings: ChunkerSettings
    entries: Sequence[SourceEntry]
    seen_ns: int  # by the clock of the importing machine: that of a worker may be wrong
    contents: Mapping[str, FileContent] = field(default_factory=dict)  # of files that the worker cannot read

    def run(self) -> PreparedBatch:
        """Prepare the documents."""
        files = _WorkerFiles(self.source, self.contents)
        results = prepare_entries(files, self.chunker_settings, self.entries, lambda: self.seen_ns)
        return PreparedBatch(results, files.unread_uris)


@dataclass(slots=True)
class EmbeddedTexts:
    """The vectors of some texts and of their sentences, or why there are none."""

    vectors: Vectors | None = None
    sentences: Sequence[SentenceSubwords] = ()
    error: EmbedderError | None = None
    too_long: int = 0


@dataclass(frozen=True, slots=True)
class EmbedTask:
    """Texts to embed with a pickled embedder."""

    embedder: bytes
    name: str  # that the embedder must have, so that vectors are the same on every machine
    texts: Sequence[str]

    def run(self) -> EmbeddedTexts:
        """Compute the vectors."""
        try:
            embedder = _load_embedder(self.embedder)
            if embedder.name != self.name:
                raise EmbedderError(
                    f"{display_name(embedder.label)} on {platform.node()} is not the model of the importing machine",
                    hint="Put the same files of the model on every machine of the cluster.",
                )
            stats = getattr(embedder, "stats", EmbedderStats())
            too_long = stats.too_long
            vectors, sentences = embed_texts(embedder, self.texts)
            return EmbeddedTexts(vectors, sentences, too_long=stats.too_long - too_long)
        except EmbedderError as error:
            return EmbeddedTexts(error=error)


Task = PrepareTask | EmbedTask


def run_task(payload: bytes, versions: Mapping[str, str]) -> PreparedBatch | EmbeddedTexts | str:
    """Run a pickled task; return why this worker must not run it if its packages have other versions."""
    for package, version in component_versions().items():
        expected = versions.get(package, "")
        if version != expected:
            return f"{package} on {platform.node()} is {_describe(version)}, here it is {_describe(expected)}"
    task: Task = pickle.loads(payload)
    return task.run()


@cache
def component_versions() -> dict[str, str]:
    """Return the versions of the packages that decide about texts, terms and vectors; empty if one is missing."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = ""
    return versions


def _describe(version: str) -> str:
    return f"version {version}" if version else "not installed"


@cache  # a worker gets many tasks, and loading a model takes seconds
def _load_embedder(pickled: bytes) -> Embedder:
    embedder: Embedder = pickle.loads(pickled)
    return embedder


class _WorkerFiles:
    """A source on a worker: it reads a file if it is the one that was scanned, and takes note of the others."""

    def __init__(self, source: Source, contents: Mapping[str, FileContent]) -> None:
        self._source, self._contents = source, contents
        self.scan, self.has_vanished = source.scan, source.has_vanished
        self.unread_uris: set[str] = set()

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the bytes that came with the task, or those of the file if it has the size and time of the entry."""
        content = self._contents.get(entry.uri)
        if isinstance(content, BunkoError | OSError):
            raise content
        if content is not None:
            return content
        try:
            data, current = self._source.read(entry)
        except (BunkoError, OSError):
            current = None
        # The same path may be another folder here, or the file may have changed since.
        if current is None or (current.size, current.modified_ns) != (entry.size, entry.modified_ns):
            self.unread_uris.add(entry.uri)
            raise SourceError(entry.uri)  # nobody reads it: the importing machine sends the file
        return data, current

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        """Return the text of a document."""
        if isinstance(self._source, SelfReadingSource):
            return self._source.text(data, entry)
        return readers.read(data, entry.uri)


def read_contents(source: Source, entries: Sequence[SourceEntry]) -> dict[str, FileContent]:
    """Read files on the importing machine, to send them to a worker; an error is sent too, for its report."""
    contents: dict[str, FileContent] = {}
    for entry in entries:
        if isinstance(entry, ExcerptEntry):
            continue
        try:
            contents[entry.uri] = source.read(entry)
        except (BunkoError, OSError) as error:
            contents[entry.uri] = error
    return contents
