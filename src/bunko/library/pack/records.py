"""One document with its terms and vectors in, one record of a pack out; and back, with everything checked.

A record is a line of JSON, then the terms as `index.terms` packs them, then a row of little-endian float32 for each
chunk. Whoever wrote a pack may have meant harm: what is read here is used as text and numbers only, in limits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bunko.records import Prepared
from bunko.types import Chunk, Document, Entry, Text

if TYPE_CHECKING:
    from bunko.types import Vectors

# A file that bunko reads has 20 MB at most by default; its line has its chunks' texts beside it.
LONGEST_LINE = 256_000_000
_LARGEST_VECTOR = 65_536
_MOST = 2**63 - 1  # SQLite's largest integer
_SHA256 = 64


class Damaged(Exception):
    """The bytes are not what a pack holds."""


@dataclass(frozen=True, slots=True)
class Record:
    """A document as it travels: its vectors come along, and are named anew where they arrive."""

    prepared: Prepared
    vectors: Vectors | None


def written(one: Prepared, vectors: Vectors | None) -> bytes:
    """Return a document as a record."""
    document, text = one.document, one.document.text
    head = {
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
        "body": text.body,
        "text": text.text,
        "chunks": [
            [
                chunk.start, chunk.end, chunk.first_line, chunk.last_line, chunk.heading, chunk.heading_path,
                None if chunk.text == text.text[chunk.start : chunk.end] else chunk.text,
            ]
            for chunk in one.chunks
        ],
        "terms": len(one.terms),
        "vectors": 0 if vectors is None else vectors.shape[1],
    }  # fmt: skip
    line = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    return line + b"\n" + one.terms + (b"" if vectors is None else vectors.astype("<f4").tobytes())


def read(stream: IO[bytes], spend: Callable[[int], None], after: str) -> Record | None:
    """Return the next record, whose uri must follow the last one; None at the end. `spend` is told what it unfolds."""
    line = stream.readline(LONGEST_LINE)
    if not line:
        return None
    head = parsed(line)
    uri = text_of(head, "uri")
    if not is_safe(uri):
        raise Damaged(f"{uri!r} is not a path inside a folder")
    if uri <= after:
        raise Damaged("documents are out of order")
    tags = head.get("tags")
    if not isinstance(tags, list):
        raise Damaged("tags are no list")
    whole = text_of(head, "text")
    text = Text(
        whole,
        text_of(head, "media_type"),
        text_of(head, "encoding"),
        text_of(head, "title"),
        text_of(head, "date"),
        tuple(_text(tag, "tags") for tag in tags),
        number_of(head, "body", most=len(whole)),
    )
    content_hash = text_of(head, "hash")
    if len(content_hash) != _SHA256 or content_hash.strip("0123456789abcdef"):
        raise Damaged("a content hash is none")
    entry = Entry(uri, *(number_of(head, name) for name in ("size", "modified_ns", "seen_ns")))
    chunks = _chunks(head.get("chunks"), text.text, spend)
    terms = _exactly(stream, number_of(head, "terms", most=LONGEST_LINE))
    _check_terms(terms, len(chunks))
    vectors = _vectors(stream, len(chunks), number_of(head, "vectors", most=_LARGEST_VECTOR))
    return Record(Prepared(Document(entry, text, content_hash), chunks, terms), vectors)


def parsed(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line."""
    try:
        found = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise Damaged("a line is not JSON") from error
    if not line.endswith(b"\n") or not isinstance(found, dict):
        raise Damaged("a line is not a JSON object")
    return found


def text_of(table: dict[str, Any], name: str) -> str:
    """Return a text of a JSON object."""
    return _text(table.get(name), name)


def number_of(table: dict[str, Any], name: str, *, most: int = _MOST) -> int:
    """Return a whole number of a JSON object, 0 or more."""
    return _number(table.get(name), name, most)


def is_safe(uri: str) -> bool:
    """Say whether a uri names something below a folder, on this system and on others."""
    here = PurePath(uri)  # on Windows a backslash parts too, and there are drives
    inside = not (here.drive or here.root or ".." in here.parts)
    return inside and "\0" not in uri and not {"", ".", ".."} & set(uri.split("/"))


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise Damaged(f"{name} is no text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Damaged(f"{name} is not valid Unicode") from error
    return value


def _number(value: object, name: str, most: int = _MOST) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise Damaged(f"{name} is no number from 0 to {most}")
    return value


def _chunks(rows: object, text: str, spend: Callable[[int], None]) -> list[Chunk]:
    if not isinstance(rows, list) or not rows:
        raise Damaged("a document has no chunks")
    chunks = []
    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != 7 or not isinstance(row[5], list):
            raise Damaged("a chunk has not its seven parts")
        end = _number(row[1], "end", len(text))
        start = _number(row[0], "start", end)
        last = _number(row[3], "last_line")
        first = _number(row[2], "first_line", last)
        # A few bytes can ask for the same long text a million times over.
        spend(end - start)
        own = text[start:end] if row[6] is None else _text(row[6], "a chunk's text")
        path = tuple(_text(part, "a heading") for part in row[5])
        chunks.append(Chunk(index, start, end, first, last, own, _text(row[4], "a heading"), path))
    return chunks


def _check_terms(blob: bytes, chunks: int) -> None:
    if len(blob) < 4 + 4 * chunks or int.from_bytes(blob[:4], "little") != chunks:
        raise Damaged("the terms are not those of the chunks")
    sizes = np.frombuffer(blob, np.uint32, chunks, 4).astype(np.int64)
    total = int(sizes.sum())
    if len(blob) != 4 + 4 * chunks + 10 * total:
        raise Damaged("the terms are too many or too few")
    keys = np.frombuffer(blob, np.uint64, total, 4 + 4 * chunks)
    owners = np.repeat(np.arange(chunks), sizes)
    if ((keys[1:] <= keys[:-1]) & (owners[1:] == owners[:-1])).any():
        raise Damaged("the terms are out of order")
    if not np.frombuffer(blob, np.uint16, total, 4 + 4 * chunks + 8 * total).all():
        raise Damaged("a term occurs never")


def _vectors(stream: IO[bytes], chunks: int, size: int) -> Vectors | None:
    if not size:
        return None
    rows = np.frombuffer(_exactly(stream, 4 * size * chunks), "<f4").astype(np.float32).reshape(chunks, size)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    # They are unit vectors: anything longer would stand before all others, and a number that is none nowhere.
    if not (lengths <= 1.01).all():
        raise Damaged("a vector is not of unit length")
    return rows


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise Damaged("it ends too soon")
    return data
