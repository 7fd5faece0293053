"""A tool in, one checked file out that another library can take in: no folder needed there, nothing embedded twice.

    bunko pack 1          the format's number
    {"bunko": …}          one line of JSON: the tool's definition, what built it, how much it holds
    …                     the documents in the order of their uris, as `records` writes them, compressed (zlib)
    32 bytes              SHA-256 of everything before

Vectors travel without names: they are named by the text and the embedder where they arrive, so that a pack cannot
bring one for a text that it does not hold.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

import numpy as np

from bunko import __version__
from bunko.errors import DiskFull, LibraryError, LibraryTooNew, SourceError
from bunko.failpoints import reach_failpoint
from bunko.library.pack import records
from bunko.library.pack.records import PackDamaged, PackRecord
from bunko.protocols import Store
from bunko.search.rank import is_tool_search_setting
from bunko.timing import now
from bunko.types import Tool

FORMAT_VERSION = 1
SUFFIX = ".bunko"
_MAGIC = b"bunko pack "
_DIGEST_BYTES = 32
_MAX_HEADER_BYTES = 1_000_000
_BLOCK_BYTES = 1 << 18
_DOCUMENT_BATCH = 20
# Text shrinks to a third or a tenth. A file that would grow by more than this is made to fill a disk.
_MAX_GROWTH = 200
_MIN_SIZE_LIMIT = 100_000_000
_PACKABLE_KINDS = ("folder",)
_TOOL_FIELDS = ("name", "kind", "description", "source", "created_at", "imported_at", "checked_at")
_OPTION_TYPES: dict[str, type] = {
    "include": list, "exclude": list, "extract": str, "chunker": str, "chunk_size": int, "chunk_overlap": int,
}  # fmt: skip


def write_pack(store: Store, tool: Tool, path: Path) -> int:
    """Write a tool into a file, under a temporary name until it is whole; return how many bytes it has."""
    with store.read_transaction():
        totals = store.totals(tool.id)
        if not totals.documents:
            raise LibraryError(
                f"{tool.name} holds no documents yet", hint=f"Import it first: bunko import -n {tool.name}"
            )
        if tool.kind not in _PACKABLE_KINDS:
            raise LibraryError(
                f"{tool.name} is of kind {tool.kind!r}", hint=f"Packs carry only: {', '.join(_PACKABLE_KINDS)}."
            )
        head = {
            "bunko": __version__,
            "made_at": now(),
            "documents": totals.documents,
            "chunks": totals.chunks,
            "characters": totals.characters,
            "tool": {name: getattr(tool, name) for name in (*_TOOL_FIELDS, "active", "built", "options")},
        }
        with _atomic_file(path) as file:
            sums = hashlib.sha256()

            def put(data: bytes) -> None:
                sums.update(data)
                file.write(data)

            put(b"%s%d\n" % (_MAGIC, FORMAT_VERSION))
            put(json.dumps(head, ensure_ascii=False).encode() + b"\n")
            squeeze = zlib.compressobj()
            for record in _encode_documents(store, tool):
                put(squeeze.compress(record))
            put(squeeze.flush())
            file.write(sums.digest())
            return file.tell()


def _encode_documents(store: Store, tool: Tool) -> Iterator[bytes]:
    after = ""
    while uris := store.uris(tool.id, after=after, limit=_DOCUMENT_BATCH):
        after = uris[-1]
        for one in store.export_documents(tool.id, uris):
            rows = store.vectors(one.vector_keys)
            complete = one.vector_keys and all(key in rows for key in one.vector_keys)
            vectors = np.stack([rows[key] for key in one.vector_keys]) if complete else None
            yield records.encode_record(one, vectors)


@contextmanager
def _atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a file that takes its name when it is whole; only another pack is replaced."""
    try:
        if path.exists() and not _is_pack(path):
            raise SourceError(f"{path} is there already and is not a pack", hint="Choose another name with -o.")
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            reach_failpoint("pack.written")
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (DiskFull if full else SourceError)(
            f"{path} cannot be written: {error.strerror or error}", hint="Choose another place with -o."
        ) from error


def _is_pack(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


class Pack:
    """A pack that was read to its end once and is what it says."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self.bytes = os.fstat(file.fileno()).st_size
        self._check_format()
        self._check_digest()
        file.seek(0)
        file.readline()
        head = records.parse_json_line(file.readline(_MAX_HEADER_BYTES))
        self._records_offset = file.tell()
        self.version = records.get_text(head, "bunko")
        self.documents = records.get_number(head, "documents")
        self.chunks = records.get_number(head, "chunks")
        self.tool = _parse_tool(head.get("tool"))
        found = [len(record.prepared.chunks) for record in self.records()]
        if (len(found), sum(found)) != (self.documents, self.chunks):
            raise PackDamaged("it does not hold what it says it holds")

    def records(self) -> Iterator[PackRecord]:
        """Return the documents, one at a time."""
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

    def matches_folder(self, folder: Path) -> bool:
        """Say whether a folder of this machine holds at least one of the documents, unchanged."""
        for record in self.records():
            document = record.prepared.document
            with suppress(OSError):
                path = folder / document.uri
                if path.is_file() and path.stat().st_size == document.entry.size:
                    with path.open("rb") as file:
                        if hashlib.file_digest(file, "sha256").hexdigest() == document.content_hash:
                            return True
        return False

    def _check_format(self) -> None:
        first = self._file.readline(len(_MAGIC) + 20)
        number = first.removeprefix(_MAGIC).removesuffix(b"\n")
        if not first.startswith(_MAGIC) or not number.isdigit():
            raise SourceError(f"{self._path} is not a bunko pack", hint="Packs are made with: bunko export -n NAME")
        if int(number) > FORMAT_VERSION:
            raise LibraryTooNew(
                f"{self._path} was made by a newer bunko (pack format {int(number)}, this one knows {FORMAT_VERSION})",
                hint="Upgrade bunko (pip install -U bunko), or export it with an older one.",
            )

    def _check_digest(self) -> None:
        left = self.bytes - _DIGEST_BYTES
        self._file.seek(0)
        sums = hashlib.sha256()
        while left > 0 and (block := self._file.read(min(_BLOCK_BYTES, left))):
            sums.update(block)
            left -= len(block)
        if left or self._file.read() != sums.digest():
            raise PackDamaged("its checksum is wrong: it was cut short or changed on the way")


@contextmanager
def open_pack(path: Path) -> Iterator[Pack]:
    """Open a pack and read it to its end: what is wrong with it is told before anything is written."""
    path = path.expanduser()
    try:
        if not path.is_file():
            raise SourceError(f"There is no file {path}", hint="Name a file made with: bunko export -n NAME")
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
            f"{path} is not a whole pack: {error}",
            hint="Nothing was changed. Copy the file again, or export it again.",
        ) from error


class _InflateStream(io.RawIOBase):
    """The documents' bytes, unfolded a block at a time and never more than allowed."""

    def __init__(self, file: IO[bytes], size: int, limit: int) -> None:
        self._file, self._compressed_left, self._bytes_left = file, size, limit
        self._inflate = zlib.decompressobj()

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def count_bytes(self, size: int) -> None:
        """Take note of bytes that came out; refuse to unfold without end."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise PackDamaged("it would grow far beyond what documents do")

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end."""
        while not self._inflate.eof:
            packed = self._inflate.unconsumed_tail or self._file.read(min(_BLOCK_BYTES, self._compressed_left))
            if not self._inflate.unconsumed_tail:
                self._compressed_left -= len(packed)
            if not packed:
                raise PackDamaged("it ends too soon")
            data = self._inflate.decompress(packed, len(buffer))
            if data:
                self.count_bytes(len(data))
                buffer[: len(data)] = data
                return len(data)
        if self._compressed_left or self._inflate.unused_data:
            raise PackDamaged("something follows its end")
        return 0


def _parse_tool(table: object) -> Tool:
    if not isinstance(table, dict):
        raise PackDamaged("it has no tool")
    facts: dict[str, Any] = {name: records.get_text(table, name) for name in _TOOL_FIELDS}
    built, options = table.get("built"), table.get("options")
    if not isinstance(built, dict) or not isinstance(options, dict) or not isinstance(table.get("active"), bool):
        raise PackDamaged("its tool is not described")
    if facts["kind"] not in _PACKABLE_KINDS:
        raise PackDamaged(f"it is of kind {facts['kind']!r}, which this bunko does not know")
    if not (PurePosixPath(facts["source"]).is_absolute() or PureWindowsPath(facts["source"]).is_absolute()):
        raise PackDamaged("its folder is no full path")
    for name, value in options.items():
        if not _is_valid_option(name, value):
            raise PackDamaged(f"its option {name!r} is not of the right kind")
    return Tool(**facts, active=table["active"], built=built, options=options)


def _is_valid_option(name: str, value: object) -> bool:
    if name == "search":
        return isinstance(value, dict) and all(is_tool_search_setting(key, one) for key, one in value.items())
    if type(value) is not _OPTION_TYPES.get(name, type(value)):
        return False
    if isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return isinstance(value, str | int | float)
