"""Encode documents as records of a pack, and decode and validate them.

A record is a line of JSON, then the packed terms of the chunks, then a row of little-endian float32 for each chunk.
A pack may be malicious: what is read here is used only as text and numbers, within limits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bunko.types import Chunk, Document, SourceEntry, Text
from bunko.types.records import PreparedDocument

if TYPE_CHECKING:
    from bunko.types import Vectors

# bunko reads files of at most 20 MB by default; the line also contains the texts of the chunks.
MAX_LINE_BYTES = 256_000_000
_MAX_VECTOR_SIZE = 65_536
_MAX_INTEGER = 2**63 - 1  # the largest integer that a store can hold
_SHA256_LENGTH = 64


class PackDamaged(Exception):
    """The bytes are not those of a valid pack."""


@dataclass(frozen=True, slots=True)
class PackRecord:
    """A document with its vectors, whose keys the importing library computes."""

    prepared: PreparedDocument
    vectors: Vectors | None


def encode_record(prepared: PreparedDocument, vectors: Vectors | None) -> bytes:
    """Encode a document as a record."""
    document, text = prepared.document, prepared.document.text
    fields = {
        "uri": document.uri,
        "size": document.entry.size,
        "modified_ns": document.entry.modified_ns,
        "seen_ns": document.entry.seen_ns,
        "hash": document.content_hash,
        "media_type": text.media_type,
        "encoding": text.encoding,
        "title": text.title,
        "date": text.date,
        "tags": text.tags,
        "body": text.body_start,
        "text": text.text,
        "chunks": [
            [
                chunk.start, chunk.end, chunk.first_line, chunk.last_line, chunk.heading, chunk.heading_path,
                None if chunk.text == text.text[chunk.start : chunk.end] else chunk.text,
            ]
            for chunk in prepared.chunks
        ],
        "terms": len(prepared.packed_terms),
        "vectors": 0 if vectors is None else vectors.shape[1],
    }  # fmt: skip
    line = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    return line + b"\n" + prepared.packed_terms + (b"" if vectors is None else vectors.astype("<f4").tobytes())


def read_record(stream: IO[bytes], count_bytes: Callable[[int], None], after: str) -> PackRecord | None:
    """Return the next record, None at the end; its uri must sort behind `after`, and `count_bytes` limits its texts."""
    line = stream.readline(MAX_LINE_BYTES)
    if not line:
        return None
    fields = parse_json_line(line)
    uri = get_text(fields, "uri")
    if not is_safe_uri(uri):
        raise PackDamaged(f"{uri!r} is not a path inside a folder")
    if uri <= after:
        raise PackDamaged("documents are out of order")
    tags = fields.get("tags")
    if not isinstance(tags, list):
        raise PackDamaged("tags is not a list")
    full_text = get_text(fields, "text")
    text = Text(
        full_text,
        get_text(fields, "media_type"),
        get_text(fields, "encoding"),
        get_text(fields, "title"),
        get_text(fields, "date"),
        tuple(_check_text(tag, "tags") for tag in tags),
        get_number(fields, "body", maximum=len(full_text)),
    )
    content_hash = get_text(fields, "hash")
    if len(content_hash) != _SHA256_LENGTH or content_hash.strip("0123456789abcdef"):
        raise PackDamaged("a content hash is invalid")
    entry = SourceEntry(uri, *(get_number(fields, name) for name in ("size", "modified_ns", "seen_ns")))
    chunks = _parse_chunks(fields.get("chunks"), text.text, count_bytes)
    terms = _read_exactly(stream, get_number(fields, "terms", maximum=MAX_LINE_BYTES))
    _check_terms(terms, len(chunks))
    vectors = _read_vectors(stream, len(chunks), get_number(fields, "vectors", maximum=_MAX_VECTOR_SIZE))
    return PackRecord(PreparedDocument(Document(entry, text, content_hash), chunks, terms), vectors)


def parse_json_line(line: bytes) -> dict[str, Any]:
    """Parse a line that holds one JSON object."""
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise PackDamaged("a line is not JSON") from error
    if not line.endswith(b"\n") or not isinstance(value, dict):
        raise PackDamaged("a line is not a JSON object")
    return value


def get_text(table: dict[str, Any], name: str) -> str:
    """Return a string of a JSON object."""
    return _check_text(table.get(name), name)


def get_number(table: dict[str, Any], name: str, *, maximum: int = _MAX_INTEGER) -> int:
    """Return an integer of a JSON object, from 0 to `maximum`."""
    return _check_number(table.get(name), name, maximum)


def is_safe_uri(uri: str) -> bool:
    """Return whether a uri names something inside a folder, on this system and on others."""
    path = PurePath(uri)  # on Windows, a backslash is a separator too, and there are drives
    is_relative = not (path.drive or path.root or ".." in path.parts)
    return is_relative and "\0" not in uri and not {"", ".", ".."} & set(uri.split("/"))


def _check_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise PackDamaged(f"{name} is not a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise PackDamaged(f"{name} is not valid Unicode") from error
    return value


def _check_number(value: object, name: str, maximum: int = _MAX_INTEGER) -> int:
    if type(value) is not int or not 0 <= value <= maximum:
        raise PackDamaged(f"{name} is not an integer from 0 to {maximum}")
    return value


def _parse_chunks(rows: object, text: str, count_bytes: Callable[[int], None]) -> list[Chunk]:
    if not isinstance(rows, list) or not rows:
        raise PackDamaged("a document has no chunks")
    chunks = []
    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != 7 or not isinstance(row[5], list):
            raise PackDamaged("a chunk does not have seven fields")
        end = _check_number(row[1], "end", len(text))
        start = _check_number(row[0], "start", end)
        last = _check_number(row[3], "last_line")
        first = _check_number(row[2], "first_line", last)
        # A few bytes can refer to the same long text a million times.
        count_bytes(end - start)
        chunk_text = text[start:end] if row[6] is None else _check_text(row[6], "a chunk's text")
        heading_path = tuple(_check_text(part, "a heading") for part in row[5])
        chunks.append(Chunk(index, start, end, first, last, chunk_text, _check_text(row[4], "a heading"), heading_path))
    return chunks


def _check_terms(blob: bytes, chunks: int) -> None:
    if len(blob) < 4 + 4 * chunks or int.from_bytes(blob[:4], "little") != chunks:
        raise PackDamaged("the terms do not match the chunks")
    sizes = np.frombuffer(blob, np.uint32, chunks, 4).astype(np.int64)
    total = int(sizes.sum())
    if len(blob) != 4 + 4 * chunks + 10 * total:
        raise PackDamaged("the number of terms is wrong")
    keys = np.frombuffer(blob, np.uint64, total, 4 + 4 * chunks)
    owners = np.repeat(np.arange(chunks), sizes)
    if ((keys[1:] <= keys[:-1]) & (owners[1:] == owners[:-1])).any():
        raise PackDamaged("the terms are out of order")
    if not np.frombuffer(blob, np.uint16, total, 4 + 4 * chunks + 8 * total).all():
        raise PackDamaged("a term has the frequency 0")


def _read_vectors(stream: IO[bytes], chunks: int, size: int) -> Vectors | None:
    if not size:
        return None
    rows = np.frombuffer(_read_exactly(stream, 4 * size * chunks), "<f4").astype(np.float32).reshape(chunks, size)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    # Vectors have unit length: a longer one would outrank all others, and NaN has no rank.
    if not (lengths <= 1.01).all():
        raise PackDamaged("a vector is not of unit length")
    return rows


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise PackDamaged("it is truncated")
    return data
