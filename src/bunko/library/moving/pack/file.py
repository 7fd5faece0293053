"""Write and read pack files: a tool with its documents and vectors in one file with a checksum.

    bunko pack 1          the format version
    {"bunko": …}          one line of JSON: the tool's definition, its build facts, its number of documents
    …                     the documents sorted by uri, as `records` writes them, compressed (zlib)
    32 bytes              SHA-256 of everything before

Vectors are stored without keys: the importing library computes the keys from the text and the embedder, so a pack
cannot supply a vector for a text that it does not contain.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

import numpy as np

from bunko.errors import DiskFull, LibraryError, LibraryTooNew, SourceError
from bunko.library.moving.pack import records
from bunko.library.moving.pack.records import PackDamaged, PackRecord
from bunko.library.tools.assistant_names import clean_name
from bunko.library.tools.catalog import clean_description
from bunko.protocols import Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.temporary_files import replace_file
from bunko.runtime.timing import now
from bunko.search.request import is_tool_search_setting
from bunko.types import Tool
from bunko.types.build_info import BuildInfo
from bunko.types.tool_options import ToolOptions, is_valid_option
from bunko.version import __version__

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
            yield records.encode_record(prepared, vectors)


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
        header = records.parse_json_line(file.readline(_MAX_HEADER_BYTES))
        self._records_offset = file.tell()
        self.version = records.get_text(header, "bunko")
        self.documents = records.get_number(header, "documents")
        self.chunks = records.get_number(header, "chunks")
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
            while (record := records.read_record(stream, raw.count_bytes, after)) is not None:
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
    fields: dict[str, Any] = {name: records.get_text(table, name) for name in _TOOL_FIELDS}
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
        if not is_valid_option(name, value) or (name == "search" and not _are_search_settings(value)):
            raise PackDamaged(f"the value of its option {name!r} has the wrong type")
    return Tool(
        **fields, active=table["active"], built=BuildInfo.from_json(built), options=ToolOptions.from_json(options)
    )


def _are_search_settings(values: dict[str, object]) -> bool:
    return all(is_tool_search_setting(name, value) for name, value in values.items())
