"""Filter what the config file and `.env` of a folder that is not trusted set, by the limits of each setting."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bunko.errors import SettingsError
from bunko.readers import builtin_readers, default_suffixes
from bunko.settings.keyfile import KeyFile
from bunko.settings.setting import Setting
from bunko.settings.validate import check_value
from bunko.text.labels import clean_label
from bunko.types.ranking import OPTIONS

# Text formats without a reader of their own. Formats that often hold keys and passwords, such as .env and .pem, are
# left out: a documents folder must not decide that the user's own files in it are read.
_FURTHER_EXTENSIONS = (".adoc", ".asciidoc", ".csv", ".org", ".rst", ".srt", ".tex", ".tsv", ".vtt")
INTERNAL_FOLDERS = (".git", ".rag-index")
_TASK_TYPES = (
    "RETRIEVAL_DOCUMENT",
    "RETRIEVAL_QUERY",
    "SEMANTIC_SIMILARITY",
    "QUESTION_ANSWERING",
    "FACT_VERIFICATION",
    "CLASSIFICATION",
    "CLUSTERING",
    "CODE_RETRIEVAL_QUERY",
)


class FolderLimit(NamedTuple):
    """The values of a setting that a documents folder may set."""

    text: str  # in words; empty if it may set any
    accepts: Callable[[Any], bool]


def _within(low: float, high: float) -> FolderLimit:
    return FolderLimit(f"{low:,} to {high:,}", lambda value: value is None or low <= value <= high)


def _are_document_extensions(extensions: tuple[str, ...]) -> bool:
    others = {f".{extension.lower().removeprefix('.')}" for extension in extensions}
    others.difference_update(default_suffixes(), _FURTHER_EXTENSIONS)
    # A search should not load the readers, and seldom has to.
    return not others or others <= {suffix for reader in builtin_readers().values() for suffix in reader.suffixes}


_ANY = FolderLimit("", lambda value: True)
_TASK_TYPE = FolderLimit("a task type of Gemini", lambda value: value in _TASK_TYPES)

# Overlaps are at most half of the smallest size: a larger one would multiply the chunks of a document.
FOLDER_LIMITS: dict[str, FolderLimit] = {
    "chunker.kind": _ANY,
    "chunker.max_chunk_chars": _within(500, 20_000),
    "chunker.min_chunk_chars": _within(0, 500),
    "chunker.heading_levels": _ANY,
    "chunker.chunk_size": _within(100, 5000),
    "chunker.chunk_overlap": _within(0, 50),
    "chunker.row_context_size": _within(0, 5),
    "chunking.size": _ANY,
    "chunking.overlap": _within(0, 256),
    "search.mode": _ANY,
    "search.top_k": _within(1, 50),
    "search.hybrid_enabled": _ANY,
    **{f"search.{name}": _ANY for name in OPTIONS},
    # The same texts are sent to the same service, in requests of another size, for vectors of another size.
    "embedding.batch_size": _within(10, 500),
    "embedding.output_dimensionality": _within(256, 3072),
    "embedding.dimensions": _within(256, 3072),
    "embedding.task_type_document": _TASK_TYPE,
    "embedding.task_type_query": _TASK_TYPE,
    # Up to four times the time and memory of the defaults.
    "chromadb.hnsw_space": _ANY,
    "chromadb.hnsw_construction_ef": _within(10, 800),
    "chromadb.hnsw_search_ef": _within(10, 400),
    "chromadb.hnsw_M": _within(4, 64),
    "memos.top_k": _within(1, 50),
    **{f"memos.{name}": _ANY for name, option in OPTIONS.items() if option.memos is not None},
    "memos.max_file_bytes": _within(1, 1_000_000_000),
    "scanner.file_extensions": FolderLimit("only formats of documents", _are_document_extensions),
    "scanner.source_code": _ANY,
    "scanner.exclude_dirs": FolderLimit(
        f"with {' and '.join(INTERNAL_FOLDERS)}",
        lambda names: {name.rstrip("/") for name in names}.issuperset(INTERNAL_FOLDERS),
    ),
    "scanner.respect_gitignore": FolderLimit("only true", lambda value: value is True),
    "scanner.max_file_bytes": _within(1, 20_000_000),
    "display.language": _ANY,
}


_MAX_KEYS_SHOWN = 12
_MAX_KEY_CHARS = 60


class FolderFiles:
    """The settings files in a documents folder or the current folder, which may come from somebody else."""

    def __init__(self, folder: Path | None, trusted_folders: Sequence[Path]) -> None:
        self._folder, self._trusted_folders = folder, trusted_folders
        self._ignored: dict[Path, list[str]] = {}  # what was ignored, by file
        self._replaced: dict[str, tuple[Path, str, object, str]] = {}  # by key: file, origin, old value, old origin

    def contain(self, folder: Path) -> bool:
        """Return whether files in this folder belong to the documents folder, so that they are not the user's own."""
        if self._folder is None or folder in self._trusted_folders:
            return False
        # A library inside the folder of documents was perhaps shipped with it.
        return folder.is_relative_to(self._folder) or folder.resolve().is_relative_to(self._folder.resolve())

    def filter(
        self, assignments: Iterable[tuple[str, object, str]], file: Path, declared: Mapping[str, Setting]
    ) -> Iterator[tuple[str, object, str]]:
        """Yield the assignments that a documents folder may make; remember the others, unless they change nothing."""
        for key, value, origin in assignments:
            setting, limit = declared.get(key), FOLDER_LIMITS.get(key)
            try:
                checked = None if setting is None else check_value(setting, value, origin)
            except SettingsError:
                setting = None
            is_known = setting is not None and not isinstance(value, KeyFile)
            if is_known and limit is not None and limit.accepts(checked):
                yield key, value, origin
            elif setting is None or not is_known or checked != setting.default:
                self._ignore(file, key, limit.text if limit else "")

    def replace(self, key: str, file: Path, origin: str, old_value: object, old_origin: str) -> None:
        """Remember which value of the user a documents folder replaces."""
        self._replaced[key] = (file, origin, old_value, old_origin)

    def restore(self, keys: Iterable[str], values: dict[str, object], origins: dict[str, str]) -> None:
        """Undo what a documents folder set, because it does not go together with another value."""
        for key in keys:
            file, origin, old_value, old_origin = self._replaced.get(key, (Path(), "", None, ""))
            if origin and origins[key] == origin:
                values[key], origins[key] = old_value, old_origin
                self._ignore(file, key)

    def _ignore(self, file: Path, key: str, limit: str = "") -> None:
        text = clean_label(key, _MAX_KEY_CHARS) + (f" ({limit})" if limit else "")
        keys = self._ignored.setdefault(file, [])
        if text not in keys:
            keys.append(text)

    def notices(self) -> list[str]:
        """Return one line about everything that was ignored, or none."""
        parts = [f"{_list_keys(keys)} in {file}" for file, keys in self._ignored.items()]
        if not parts:
            return []
        return [
            f"Ignored: {'; '.join(parts)}. A documents folder may not set this; use your own settings, the environment"
            " or --config."
        ]

    def notices_about_current_folder(self, origins: Mapping[str, str]) -> list[str]:
        """Return a line for each file that names what was read from it, and one that names what was not."""
        read: dict[Path, list[str]] = {}
        for key, (file, origin, _, _) in self._replaced.items():
            if origins[key] == origin:
                read.setdefault(file, []).append(key)
        lines = [f"Read from {file}: {_list_keys(keys)}." for file, keys in read.items()]
        for file, keys in self._ignored.items():
            remedy = f"To use the whole file: --config {shlex.quote(str(file))}"
            if file.name == ".env":
                remedy = "Set it in the environment, or in the .env of the library."
            lines.append(f"Not read from {file}: {_list_keys(keys)}. The current folder may not set this. {remedy}")
        return lines


def _list_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MAX_KEYS_SHOWN} more" if len(keys) > _MAX_KEYS_SHOWN else ""
    return ", ".join(keys[:_MAX_KEYS_SHOWN]) + more
