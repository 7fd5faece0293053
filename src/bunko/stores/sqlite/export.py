"""A library file and some names in, whole documents and vectors out, just as they were put."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.records import PreparedDocument
from bunko.stores.sqlite.connection import Database, placeholders
from bunko.types import Chunk, Document, LineSpan, SourceEntry, Text

if TYPE_CHECKING:
    import numpy.typing as npt

_BATCH_SIZE = 500  # names in one question


def export_documents(file: Database, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
    """Return the documents as they were written, sorted by URI."""
    found = []
    for some in _batches(uris):
        rows = file.rows(
            "SELECT id, uri, size, modified_ns, seen_ns, text, media_type, encoding, title, date, tags, body,"
            f" content_hash, terms, first_line, last_line FROM documents WHERE tool_id = ? AND uri IN ({placeholders(some)})",  # noqa: E501
            [tool_id, *some],
        )
        pieces = _chunks_by_document(file, {row[0]: row[5] for row in rows})
        for row in rows:
            text = Text(row[5], row[6], row[7], row[8], row[9], tuple(json.loads(row[10])), row[11])
            chunks, names = pieces[row[0]]
            keys = [name for name in names if name is not None]
            document = Document(SourceEntry(*row[1:5], lines=LineSpan(*row[14:])), text, row[12])
            found.append(PreparedDocument(document, chunks, row[13], keys if len(keys) == len(names) else []))
    return sorted(found, key=lambda one: one.document.uri)


def _chunks_by_document(file: Database, texts: dict[int, str]) -> dict[int, tuple[list[Chunk], list[bytes | None]]]:
    found: dict[int, tuple[list[Chunk], list[bytes | None]]] = {one: ([], []) for one in texts}
    ids = list(texts)
    for row in file.rows(
        "SELECT document_id, ordinal, start, end, first_line, last_line, text, heading, heading_path, vector_key"
        f" FROM chunks WHERE document_id IN ({placeholders(ids)}) ORDER BY document_id, ordinal",
        ids,
    ):
        text = texts[row[0]][row[2] : row[3]] if row[6] is None else row[6]
        chunks, names = found[row[0]]
        chunks.append(Chunk(row[1], row[2], row[3], row[4], row[5], text, row[7], tuple(json.loads(row[8]))))
        names.append(row[9])
    return found


def vectors(file: Database, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
    """Return the stored vectors among these keys."""
    found = {}
    for some in _batches(list(set(keys))):
        for key, vector in file.rows(f"SELECT key, vector FROM vectors WHERE key IN ({placeholders(some)})", some):
            found[key] = np.frombuffer(vector, np.float32)
    return found


def missing_vectors(file: Database, keys: Iterable[bytes]) -> set[bytes]:
    """Return the keys that have no stored vector."""
    wanted = list(set(keys))
    found: set[bytes] = set()
    for some in _batches(wanted):
        found |= {row[0] for row in file.rows(f"SELECT key FROM vectors WHERE key IN ({placeholders(some)})", some)}
    return set(wanted) - found


def _batches(names: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (names[at : at + _BATCH_SIZE] for at in range(0, len(names), _BATCH_SIZE))
