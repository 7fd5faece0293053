"""Keep the dates and tags of a tool's documents as columns of numbers, so that a filter reads no documents."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bunko.records import Filter
from bunko.stores.filters import document_matcher, effective_date
from bunko.stores.sql.database import INTEGER, TEXT, Database, decode_strings

# A date that is longer may have a time zone.
_MAX_LOCAL_DATE = len("2024-01-15T09:30:00")
_MAX_TOOLS = 16  # whose facts are kept; those of 500,000 documents take 12 MB


class Facts:
    """The ids of documents with the numbers of their dates and of their sets of tags."""

    def __init__(self, rows: Sequence[tuple[int, str, int, int, str]]) -> None:
        """Take rows of id, date, time of the file, last line and tags as JSON."""
        dates = [date or effective_date(date, modified_ns, last_line) for _, date, modified_ns, last_line, _ in rows]
        self._ids = np.array([row[0] for row in rows], np.int64)
        self._dates = sorted(set(dates))
        self._date_column = _numbers(dates, self._dates)
        # The date of an entry from another time zone depends on the zone of the filter.
        self._zoned_dates = [number for number, date in enumerate(self._dates) if len(date) > _MAX_LOCAL_DATE]
        tags = [row[4] for row in rows]
        different_tags = list(dict.fromkeys(tags))
        self._tag_sets = [frozenset(decode_strings(encoded)) for encoded in different_tags]
        self._tag_column = _numbers(tags, different_tags)

    def select(self, where: Filter) -> list[int]:
        """Return the ids of the documents whose dates and tags match a filter."""
        conditions = []  # which numbers match, and the column that they are in
        if where.tags:
            wanted = frozenset(where.tags)
            has_tags = np.array([wanted <= tag_set for tag_set in self._tag_sets], np.bool_)
            conditions.append((has_tags, self._tag_column))
        if where.since or where.until:
            conditions.append((self._dates_within(where), self._date_column))
        rows: npt.NDArray[np.intp] | None = None
        for matches, column in conditions:
            if rows is None:
                rows = np.flatnonzero(matches.take(column))
            else:
                rows = rows.compress(matches.take(column.take(rows)))
        ids: list[int] = (self._ids if rows is None else self._ids.take(rows)).tolist()
        return ids

    def _dates_within(self, where: Filter) -> npt.NDArray[np.bool_]:
        """Return for each date whether it matches; they are sorted, so those without a time zone are a range."""
        is_within = np.zeros(len(self._dates), np.bool_)
        # An end of 2024-01-15 includes the whole day, 2024-01 the whole month.
        end = bisect_right(self._dates, where.until + "\uffff") if where.until else len(self._dates)
        is_within[bisect_left(self._dates, where.since) : end] = True
        matches = document_matcher(Filter(since=where.since, until=where.until, zone=where.zone), 0)
        for number in self._zoned_dates:
            is_within[number] = matches("", self._dates[number], frozenset())
        return is_within


def _numbers(values: Sequence[str], different_values: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return the number of each value."""
    numbers = {value: number for number, value in enumerate(different_values)}
    return np.fromiter(map(numbers.__getitem__, values), np.intp, len(values))


class FactCache:
    """The facts of some tools, as long as nothing is written to them."""

    def __init__(self, database: Database, version_of: Callable[[int], object]) -> None:
        """Take a function that returns something else whenever documents of a tool have changed."""
        self._database, self._version_of = database, version_of
        self._facts: dict[int, tuple[object, Facts]] = {}
        self._lock = threading.Lock()

    def select(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that match a filter."""
        document_matcher(where, tool_id)  # raises an error if the filter makes no sense
        ids = self._facts_of(tool_id).select(where)
        if not (where.path or where.selection):
            return ids
        matches = document_matcher(replace(where, tags=(), since="", until=""), tool_id)
        rows = self._database.rows("SELECT id, uri FROM documents WHERE tool_id = ?", (tool_id,), types=(INTEGER, TEXT))
        selected = set(ids)
        return [document_id for document_id, uri in rows if document_id in selected and matches(uri, "", frozenset())]

    def _facts_of(self, tool_id: int) -> Facts:
        version = self._version_of(tool_id)
        stored_version, facts = self._facts.get(tool_id, (None, None))
        if facts is None or stored_version != version:
            rows = self._database.rows(
                "SELECT id, date, modified_ns, last_line, tags FROM documents WHERE tool_id = ?",
                (tool_id,),
                types=(INTEGER, TEXT, INTEGER, INTEGER, TEXT),
            )
            with self._database.decode_values():
                facts = Facts(rows)
            with self._lock:
                self._facts[tool_id] = version, facts
                while len(self._facts) > _MAX_TOOLS:
                    del self._facts[next(iter(self._facts))]
        return facts
