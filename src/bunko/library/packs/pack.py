"""Write and read pack files: a tool with its documents and vectors in one file with a checksum.

    bunko pack 1          the format version
    {"bunko": …}          one line of JSON: the tool's definition, its build facts, its number of documents
    …                     the documents sorted by uri, as `encode_record` writes them, compressed (zlib)
    32 bytes              SHA-256 of everything before

Vectors are stored without keys: the importing library computes the keys from the text and the embedder, so a pack
cannot supply a vector for a text that it does not contain. A pack may be malicious: what is read is used only as text
and numbers, within limits. When it is loaded, documents are chunked and embedded again where the settings differ.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bunko.embedders.embed import as_remote, embed_and_check
from bunko.errors import DiskFull, LibraryError, LibraryTooNew, SourceError
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import embed_documents
from bunko.ingest.prepare import pack_terms
from bunko.ingest.run import make_batches
from bunko.library.tools.assistant_names import clean_name
from bunko.library.tools.catalog import clean_description
from bunko.protocols import Chunker, Embedder, SentenceEmbedder, Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import NO_OBSERVER, ImportProgress, Observer
from bunko.runtime.temporary_files import replace_file
from bunko.runtime.timing import now
from bunko.search.request import is_tool_search_setting
from bunko.types import Chunk, Document, Report, SourceEntry, Text, Tool
from bunko.types.build_info import BuildInfo
from bunko.types.records import EmbeddingUsage, PreparedDocument
from bunko.types.tool_options import ToolOptions, is_valid_option
from bunko.version import __version__

if TYPE_CHECKING:
    from bunko.types import SentenceSubwords, Vectors


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


FORMAT_VERSION = 1
SUFFIX = ".bunko"
_MAGIC = b"bunko pack "
_DIGEST_BYTES = 32
_MAX_HEADER_BYTES = 1_000_000
_BLOCK_BYTES = 1 << 18
_DOCUMENT_BATCH = 20
# Text compresses to a third or a tenth. A file that grows by more than this factor is made to fill a disk.
_MAX_GROWTH = 200
_MIN_SIZE_LIMIT = 100_000_000
_PACKABLE_KINDS = ("folder",)
_TOOL_FIELDS = ("name", "kind", "description", "source", "created_at", "imported_at", "checked_at")


def write_pack(store: Store, tool: Tool, path: Path) -> int:
    """Write a tool to a file, under a temporary name until it is complete; return its size in bytes."""
    with store.read_transaction():
        totals = store.stats.totals(tool.id)
        if not totals.documents:
            raise LibraryError(
                f"{tool.name} has no documents yet", hint=f"Import it first: bunko import -n {tool.name}"
            )
        if tool.kind not in _PACKABLE_KINDS:
            raise LibraryError(
                f"A tool of kind {tool.kind!r} cannot be exported: {tool.name}",
                hint=f"Packs support only: {', '.join(_PACKABLE_KINDS)}.",
            )
        header = {
            "bunko": __version__,
            "made_at": now(),
            "documents": totals.documents,
            "chunks": totals.chunks,
            "characters": totals.characters,
            "tool": {name: getattr(tool, name) for name in (*_TOOL_FIELDS, "active")}
            | {"built": tool.built.to_json(), "options": tool.options.to_json()},
        }
        with _atomic_file(path) as file:
            digest = hashlib.sha256()

            def write(data: bytes) -> None:
                digest.update(data)
                file.write(data)

            write(b"%s%d\n" % (_MAGIC, FORMAT_VERSION))
            write(json.dumps(header, ensure_ascii=False).encode() + b"\n")
            compressor = zlib.compressobj()
            for record in _encode_documents(store, tool):
                write(compressor.compress(record))
            write(compressor.flush())
            file.write(digest.digest())
            return file.tell()


def _encode_documents(store: Store, tool: Tool) -> Iterator[bytes]:
    after = ""
    while uris := store.documents.uris(tool.id, after=after, limit=_DOCUMENT_BATCH):
        after = uris[-1]
        for prepared in store.documents.export(tool.id, uris):
            rows = store.vectors.get(prepared.vector_keys)
            complete = prepared.vector_keys and all(key in rows for key in prepared.vector_keys)
            vectors = np.stack([rows[key] for key in prepared.vector_keys]) if complete else None
            yield encode_record(prepared, vectors)


@contextmanager
def _atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name when it is complete; an existing file is replaced only if it is a pack."""
    try:
        if path.exists() and not _is_pack(path):
            raise SourceError(f"{path} already exists and is not a pack", hint="Choose another name with -o.")
        with replace_file(path) as file:
            yield file
            reach_failpoint("pack.written")
    except OSError as error:
        is_disk_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (DiskFull if is_disk_full else SourceError)(
            f"{path} cannot be written: {error.strerror or error}", hint="Choose another path with -o."
        ) from error


def _is_pack(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


class Pack:
    """A pack file whose checksum and documents have been verified."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self.bytes = os.fstat(file.fileno()).st_size
        self._check_format()
        self._check_digest()
        file.seek(0)
        file.readline()
        header = parse_json_line(file.readline(_MAX_HEADER_BYTES))
        self._records_offset = file.tell()
        self.version = get_text(header, "bunko")
        self.documents = get_number(header, "documents")
        self.chunks = get_number(header, "chunks")
        self.tool = _parse_tool(header.get("tool"))
        chunk_counts = [len(record.prepared.chunks) for record in self.records()]
        if (len(chunk_counts), sum(chunk_counts)) != (self.documents, self.chunks):
            raise PackDamaged("its number of documents or chunks is wrong")

    def records(self) -> Iterator[PackRecord]:
        """Yield the documents, one at a time."""
        self._file.seek(self._records_offset)
        raw = _InflateStream(
            self._file,
            self.bytes - _DIGEST_BYTES - self._records_offset,
            max(_MIN_SIZE_LIMIT, _MAX_GROWTH * self.bytes),
        )
        stream = io.BufferedReader(raw, _BLOCK_BYTES)
        after = ""
        with _translate_errors(self._path):
            while (record := read_record(stream, raw.count_bytes, after)) is not None:
                after = record.prepared.document.uri
                yield record

    def _check_format(self) -> None:
        first_line = self._file.readline(len(_MAGIC) + 20)
        version = first_line.removeprefix(_MAGIC).removesuffix(b"\n")
        if not first_line.startswith(_MAGIC) or not version.isdigit():
            raise SourceError(f"{self._path} is not a bunko pack", hint="Create a pack with: bunko export -n NAME")
        if int(version) > FORMAT_VERSION:
            raise LibraryTooNew(
                f"{self._path} was written by a newer bunko"
                f" (pack format {int(version)}, this one reads {FORMAT_VERSION})",
                hint="Upgrade bunko (pip install -U bunko), or export it with an older one.",
            )

    def _check_digest(self) -> None:
        remaining = self.bytes - _DIGEST_BYTES
        self._file.seek(0)
        digest = hashlib.sha256()
        while remaining > 0 and (block := self._file.read(min(_BLOCK_BYTES, remaining))):
            digest.update(block)
            remaining -= len(block)
        if remaining or self._file.read() != digest.digest():
            raise PackDamaged("its checksum is wrong: it was truncated or changed")


@contextmanager
def open_pack(path: Path) -> Iterator[Pack]:
    """Open a pack and verify all of it, so that errors are raised before anything is written."""
    path = path.expanduser()
    try:
        if not path.is_file():
            raise SourceError(f"There is no file {path}", hint="Give a file written by: bunko export -n NAME")
        file = path.open("rb")
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read: {error.strerror or error}", hint="Check the name and the permissions."
        ) from error
    with file:
        with _translate_errors(path):
            pack = Pack(path, file)
        yield pack


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (PackDamaged, zlib.error) as error:
        raise SourceError(
            f"{path} is not a valid pack: {error}",
            hint="Nothing was changed. Copy the file again, or export it again.",
        ) from error


class _InflateStream(io.RawIOBase):
    """The documents' bytes, decompressed block by block up to a limit."""

    def __init__(self, file: IO[bytes], size: int, limit: int) -> None:
        self._file, self._compressed_left, self._bytes_left = file, size, limit
        self._inflate = zlib.decompressobj()

    def readable(self) -> bool:
        """Return that the stream is readable."""
        return True

    def count_bytes(self, size: int) -> None:
        """Count decompressed bytes and raise beyond the limit."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise PackDamaged("it decompresses to far more than documents would")

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer and return how many bytes; 0 at the end."""
        while not self._inflate.eof:
            block = self._inflate.unconsumed_tail or self._file.read(min(_BLOCK_BYTES, self._compressed_left))
            if not self._inflate.unconsumed_tail:
                self._compressed_left -= len(block)
            if not block:
                raise PackDamaged("it is truncated")
            data = self._inflate.decompress(block, len(buffer))
            if data:
                self.count_bytes(len(data))
                buffer[: len(data)] = data
                return len(data)
        if self._compressed_left or self._inflate.unused_data:
            raise PackDamaged("it has data after its end")
        return 0


def _parse_tool(table: object) -> Tool:
    if not isinstance(table, dict):
        raise PackDamaged("it has no tool")
    fields: dict[str, Any] = {name: get_text(table, name) for name in _TOOL_FIELDS}
    built, options = table.get("built"), table.get("options")
    if not isinstance(built, dict) or not isinstance(options, dict) or not isinstance(table.get("active"), bool):
        raise PackDamaged("the definition of its tool is incomplete")
    if fields["kind"] not in _PACKABLE_KINDS:
        raise PackDamaged(f"its tool is of kind {fields['kind']!r}, which this bunko does not support")
    paths = PurePosixPath(fields["source"]), PureWindowsPath(fields["source"])
    if fields["source"] and not any(path.is_absolute() for path in paths):
        raise PackDamaged("the path of its folder is not absolute")
    # Assistants read both, and anybody may have written them.
    fields |= {"name": clean_name(fields["name"]), "description": clean_description(fields["description"])}
    for name, value in options.items():
        if not is_valid_option(name, value) or (
            name == "search" and not all(is_tool_search_setting(*item) for item in value.items())
        ):
            raise PackDamaged(f"the value of its option {name!r} has the wrong type")
    return Tool(
        **fields, active=table["active"], built=BuildInfo.from_json(built), options=ToolOptions.from_json(options)
    )


# Parts that do not affect the chunks.
_NOT_CHUNKING_PARTS = {"words", "grams", "embedder"}


def load_pack(
    store: Store,
    target: Tool,
    pack: Pack,
    chunker_settings: ChunkerSettings,
    embedder: Embedder | None,
    build_info: BuildInfo,
    *,
    observer: Observer = NO_OBSERVER,
) -> Report:
    """Load a pack's documents into a tool; chunks, terms and vectors built with other settings are computed again."""
    different = (
        pack.tool.built.differences(build_info) | build_info.differences(pack.tool.built) | pack.tool.built.other.keys()
    )
    chunker = chunker_settings.build() if different - _NOT_CHUNKING_PARTS else None
    report, remote = Report(added=pack.documents), as_remote(embedder)
    import_progress = ImportProgress(0, pack.documents, 0, 0, 0)
    for batch in make_batches(pack.records(), lambda record: len(record.prepared.document.text.text)):
        pack_embedder = _PackEmbedder(embedder) if embedder is not None else None
        documents = []
        for record in batch:
            if pack_embedder is not None and "embedder" not in different:
                pack_embedder.add_vectors(record)
            documents.append(_prepare_document(record.prepared, chunker, new_terms="words" in different))
        calls_before = remote.stats.calls if remote else 0
        embedded = embed_documents(store, pack_embedder, documents)
        usage = {}
        if pack_embedder is not None and pack_embedder.embedded_count:
            texts = pack_embedder.embedded_count
            calls = remote.stats.calls - calls_before if remote else -(-texts // pack_embedder.batch_size)
            usage[pack_embedder.name] = EmbeddingUsage(texts, calls)
        store.documents.write(
            target.id,
            upsert=embedded.documents,
            vectors=embedded.vectors,
            sentences=embedded.sentences,
            usage=usage,
        )
        reach_failpoint("pack.batch")
        report.total_chunks += sum(len(prepared.chunks) for prepared in documents)
        report.embedded += pack_embedder.embedded_count if pack_embedder is not None else 0
        import_progress = replace(
            import_progress, files=import_progress.files + len(documents), chunks=report.total_chunks
        )
        observer.on_progress(import_progress)
    if chunker is not None:
        report.notices.append("This library uses another chunker, so the documents were chunked again.")
    elif "words" in different:
        report.notices.append("This library uses another tokenizer, so the words of the texts were extracted again.")
    if report.embedded:
        report.notices.append(f"{report.embedded} texts were embedded again, because the pack has no matching vectors.")
    return report


def _prepare_document(prepared: PreparedDocument, chunker: Chunker | None, *, new_terms: bool) -> PreparedDocument:
    """Return a document with chunks of this library's chunker, if one is given, and terms that match them."""
    if chunker is None and not new_terms:
        return prepared
    document, chunks = prepared.document, prepared.chunks
    if chunker is not None:
        chunks = chunker.chunks(document.text) or chunks
    return PreparedDocument(document, chunks, pack_terms(document, chunks))


class _PackEmbedder:
    """An embedder that returns the vectors of a pack, and calls another embedder for other texts."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.size, self.noise_floor, self.embedded_count = (
            embedder.name,
            embedder.size,
            embedder.noise_floor,
            0,
        )
        self.label, self.batch_size, self.is_remote = embedder.label, embedder.batch_size, embedder.is_remote
        self._embedder, self._vectors = embedder, dict[str, "Vectors"]()
        if isinstance(embedder, SentenceEmbedder):
            self.embed_sentences = partial(self._embed_sentences, embedder)

    def add_vectors(self, record: PackRecord) -> None:
        """Add the vectors of a document."""
        if record.vectors is None or record.vectors.shape[1] != self.size:
            return
        title = record.prepared.document.text.title
        texts = (chunk.text_in_context(title) for chunk in record.prepared.chunks)
        self._vectors.update(zip(texts, record.vectors, strict=True))

    def unavailable_reason(self) -> str:
        """Return why the wrapped embedder cannot be used."""
        return self._embedder.unavailable_reason()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one row for each text."""
        new_texts = [text for text in texts if text not in self._vectors]
        if new_texts:
            self.embedded_count += len(new_texts)
            self._vectors.update(zip(new_texts, embed_and_check(self._embedder, new_texts, query=query), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def _embed_sentences(
        self, embedder: SentenceEmbedder, texts: Sequence[str]
    ) -> tuple[Vectors, list[SentenceSubwords]]:
        """Compute all vectors: a pack does not have the subwords of sentences, and their embedder costs nothing."""
        self.embedded_count += sum(text not in self._vectors for text in texts)
        return embedder.embed_sentences(texts)
