"""Copy all rows of a library to another store, and compare what is there afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bunko.errors import LibraryError
from bunko.protocols import Digest, MovingRows, RowPage
from bunko.protocols.rows import Key
from bunko.runtime.observer import Observer

# The digest of the rows of a table that belong to a tool, by table and id of the tool, 0 if to none.
Digests = dict[tuple[str, int], Digest]

COPY_STEP, VERIFY_STEP = "Copying", "Verifying"
# What may change without the lock of imports.
SMALL_TABLES = ("tools", "tokens", "audit", "outbox", "domains", "answers", "asked")


def copy_rows(source: MovingRows, target: MovingRows, observer: Observer) -> Digests:
    """Make the rows of all tables of a target those of a source; return the digests of the source.

    What the target has already, as after an interrupted run, is compared and not written again.
    """
    digests: Digests = {}
    last_key: Key = ()
    for table, page in _read_pages(source, source.tables, digests, observer, COPY_STEP):
        if not page.after:  # the first page of a table
            last_key = target.last_key(table)
        target.put_page(table, page, is_new=not last_key or bool(page.after and page.after >= last_key))
    return digests


def read_digests(
    rows: MovingRows, observer: Observer, *, tables: Sequence[str] | None = None, step: str = VERIFY_STEP
) -> Digests:
    """Return the digests of all rows of some tables, by default of all."""
    digests: Digests = {}
    for _ in _read_pages(rows, rows.tables if tables is None else tables, digests, observer, step):
        pass
    return digests


def _read_pages(
    rows: MovingRows, tables: Sequence[str], digests: Digests, observer: Observer, step: str
) -> Iterator[tuple[str, RowPage]]:
    """Yield the pages of tables, and add the digests of their rows."""
    total, done = sum(map(rows.count, tables)), 0
    for table in tables:
        for page in rows.pages(table):
            yield table, page
            for tool_id, digest in rows.digests(table, page).items():
                digests[table, tool_id] = digests.get((table, tool_id), Digest()) + digest
            done += len(page.rows)
            observer.on_step(step, done, total)


def check_digests(source: Digests, target: Digests, tool_names: Mapping[int, str], place: str) -> None:
    """Raise an error that names what differs between a library and its copy."""
    if differences := list(_differences(source, target, tool_names)):
        summary = ", ".join(differences[:5]) + (", …" if len(differences) > 5 else "")
        raise LibraryError(
            f"The copy in {place} differs from the library: {summary}",
            hint="Nothing was switched. Run the same command again: it compares all rows and copies those that differ.",
        )


def _differences(source: Digests, target: Digests, tool_names: Mapping[int, str]) -> Iterator[str]:
    for table, tool_id in sorted(source.keys() | target.keys()):
        expected, actual = (digests.get((table, tool_id), Digest()) for digests in (source, target))
        if expected != actual:
            tool = f" of {tool_names.get(tool_id, tool_id)}" if tool_id else ""
            yield f"{table}{tool} ({expected.rows:,} and {actual.rows:,} rows)"
