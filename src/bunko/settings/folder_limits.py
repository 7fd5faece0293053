"""Which settings, and which of their values, the files of a documents folder may set.

A documents folder may come from somebody else. Its files may say how its own documents are read, cut and ranked, within
limits that keep an import and a search cheap. Where data goes, what runs, who has access and what is logged is the
user's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bunko.readers import builtin_readers, plugin_suffixes
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
    suffixes = {suffix for reader in builtin_readers().values() for suffix in reader.suffixes}
    known = suffixes.union(_FURTHER_EXTENSIONS, plugin_suffixes())
    return all(f".{extension.lower().removeprefix('.')}" in known for extension in extensions)


def _keep_internal_folders(names: tuple[str, ...]) -> bool:
    return {name.rstrip("/") for name in names}.issuperset(INTERNAL_FOLDERS)


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
    "scanner.exclude_dirs": FolderLimit(f"with {' and '.join(INTERNAL_FOLDERS)}", _keep_internal_folders),
    "scanner.respect_gitignore": FolderLimit("only true", lambda value: value is True),
    "scanner.max_file_bytes": _within(1, 20_000_000),
    "display.language": _ANY,
}
