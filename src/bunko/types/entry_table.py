"""Keep the entries of a scan in flat arrays: objects for half a million of them would take 400 MB."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, cast, overload

from bunko.types import ExcerptEntry, LineSpan, SourceEntry, Text

Entry = TypeVar("Entry", bound=SourceEntry)

_DIGEST_BYTES = 32


class EntryTable(Sequence[Entry], Generic[Entry]):
    """Entries in the order they were added, about 150 bytes each; one is created whenever it is asked for."""

    def __init__(self) -> None:
        self._uris, self._uri_ends = bytearray(), array("q")
        self._numbers = array("q")  # first line, last line, time of the scan, length and file of each entry
        self._digests = bytearray()
        self._files: list[tuple[int, int]] = []  # size and time of each file whose entries follow each other
        self._excerpts = bytearray()  # 1: an entry of a file, 0: any other
        self._texts: dict[int, Text] = {}
        self._problems: dict[int, str] = {}

    def append(self, entry: Entry) -> None:
        """Add an entry."""
        index, length, digest = len(self), 0, b""
        if isinstance(entry, ExcerptEntry):
            length, digest = entry.length, bytes.fromhex(entry.content_hash)
            if entry.text is not None:
                self._texts[index] = entry.text
            if entry.problem:
                self._problems[index] = entry.problem
        file = (entry.size, entry.modified_ns)
        if not self._files or self._files[-1] != file:
            self._files.append(file)
        self._uris += entry.uri.encode("utf-8", "surrogatepass")
        self._uri_ends.append(len(self._uris))
        self._numbers.extend((entry.lines.first, entry.lines.last, entry.seen_ns, length, len(self._files) - 1))
        self._digests += digest.ljust(_DIGEST_BYTES, b"\0")
        self._excerpts.append(isinstance(entry, ExcerptEntry))

    def __len__(self) -> int:
        return len(self._uri_ends)

    def __iter__(self) -> Iterator[Entry]:
        return (self._entry(index) for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        indices = range(len(self))[index]
        return self._entry(indices) if isinstance(indices, int) else [self._entry(each) for each in indices]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _entry(self, index: int) -> Entry:
        start = self._uri_ends[index - 1] if index else 0
        uri = self._uris[start : self._uri_ends[index]].decode("utf-8", "surrogatepass")
        first, last, seen_ns, length, file = self._numbers[5 * index : 5 * index + 5]
        size, modified_ns = self._files[file]
        facts, lines = (uri, size, modified_ns, seen_ns), LineSpan(first, last)
        if not self._excerpts[index]:
            return cast("Entry", SourceEntry(*facts, lines=lines))
        digest = self._digests[_DIGEST_BYTES * index : _DIGEST_BYTES * (index + 1)].hex()
        text, problem = self._texts.get(index), self._problems.get(index, "")
        return cast("Entry", ExcerptEntry(*facts, digest, text, problem, length, lines=lines))
