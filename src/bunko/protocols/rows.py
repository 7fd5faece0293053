"""What a store must offer so that its library can be moved to another store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

Row = tuple[Any, ...]
Key = tuple[Any, ...]  # the values that identify and sort a row; an empty one is before the first or after the last


class RowPage(NamedTuple):
    """Consecutive rows of a table: all those after one key and up to another."""

    after: Key
    until: Key
    rows: Sequence[Row]


class Digest(NamedTuple):
    """The number of some rows, and a hash of them that does not depend on their order."""

    rows: int = 0
    hash: int = 0

    def __add__(self, other: object) -> Digest:
        """Return the digest of both groups of rows."""
        if not isinstance(other, Digest):
            return NotImplemented
        return Digest(self.rows + other.rows, (self.hash + other.hash) % 2**128)


class MovingRows(Protocol):
    """All rows of a library as they are stored, table by table, in every store the same."""

    tables: Sequence[str]  # in an order in which each refers only to those before it

    def count(self, table: str) -> int:
        """Return how many rows a table has."""

    def pages(self, table: str) -> Iterator[RowPage]:
        """Yield a table in pages of a limited number of rows and bytes; the last one reaches to the end."""

    def digests(self, table: str, page: RowPage) -> dict[int, Digest]:
        """Return the digest of the rows of a page, by the id of their tool."""

    def last_key(self, table: str) -> Key:
        """Return the key of the last row of a table, an empty one if it has no rows."""

    def put_page(self, table: str, page: RowPage, *, is_new: bool) -> bool:
        """Replace the rows between two keys with those of a page; return whether that changed anything.

        `is_new`: the table has no row after the first of the two keys, so that there is nothing to replace.
        """

    def last_ids(self) -> dict[str, int]:
        """Return the highest id that each table with ids has ever given."""

    def put_last_ids(self, ids: Mapping[str, int]) -> None:
        """Give only higher ids from now on."""

    def values(self) -> dict[str, str]:
        """Return the values that describe the library as a whole, such as its id, its generation, and index notes."""

    def put_values(self, values: Mapping[str, str], index_files: Mapping[int, str], *, is_finished: bool) -> None:
        """Store the values of another library, and the index files of this machine by tool.

        A library that is finished can be used from now on. On a server, tools that belong to no machine become those
        of this one.
        """

    def copy_of(self) -> str:
        """Return the id of the library that this one is a copy of and nothing else, or an empty string.

        A copy that was written to since it was finished is a library of its own.
        """

    def is_unfinished(self) -> bool:
        """Return whether this library is a copy that is not complete."""

    def begin_use(self) -> None:
        """Make this library more than a copy, as the first write does."""

    def begin_copy(self, library_id: str) -> None:
        """Mark this library as an unfinished copy, so that no other command uses it."""

    def leave(self, place: str) -> AbstractContextManager[None]:
        """Run the block while writers wait, and then mark this library as moved; if it fails, as nothing."""

    def stay(self) -> None:
        """Remove the mark that this library has moved."""
