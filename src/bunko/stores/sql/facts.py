"""Keep the facts of a tool's documents (path, date and tags) as arrays, so that a filter reads no documents."""

from __future__ import annotations

import json
import logging
import math
import re
import secrets
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bunko.errors import BunkoError
from bunko.runtime.array_file import DamagedArrayFile, load_arrays, save_arrays
from bunko.stores.filters import document_matcher, effective_date
from bunko.stores.sql.changes import SqlChanges
from bunko.stores.sql.database import INTEGER, TEXT, Database, decode_strings
from bunko.stores.sql.scans import FACTS_PREFIX, PUT_VALUE, TOUCHED_PREFIX, VERSION_PREFIX
from bunko.types.records import Filter

Arrays = Mapping[str, npt.NDArray[Any]]
Rows = npt.NDArray[np.intp]
# Id, URI, date, time of the file, last line and tags as JSON.
DocumentFacts = tuple[int, str, str, int, int, str]

# A date that is longer may have a time zone.
_MAX_LOCAL_DATE = len("2024-01-15T09:30:00")
# Two times that are further apart than zones can be have the same order in every zone, also when clocks are set back.
_MAX_ZONE_DIFFERENCE = 2 * 24 * 60 * 60
_MAX_PATHS = 16  # whose documents are remembered
_LITERAL_START = re.compile(r"[^*?\[]*")
_encode_json = json.JSONEncoder(ensure_ascii=False).encode


class Facts:
    """The ids of documents in ascending order, and their facts: texts are stored once and referred to by number."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._ids, self._by_uri = arrays["ids"], arrays["by_uri"]
        self._uris = _Texts(arrays, "uris")
        self._dates, self._date_column = _Texts(arrays, "dates"), arrays["date_column"]
        self._file_times = arrays["file_times"]  # in seconds; their numbers follow those of the dates
        self._tag_sets, self._tag_column = _Texts(arrays, "tag_sets"), arrays["tag_column"]
        self._rows_by_path: dict[str, Rows] = {}
        self._decoded_tags: dict[int, frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def has_undated_files(self) -> bool:
        """Return whether a document has no date but that of its file, which changes without the document."""
        return bool(self.arrays["undated_files"].any())

    def select(self, tool_id: int, where: Filter) -> npt.NDArray[np.int64]:
        """Return the ids of the documents that match a filter."""
        rows: Rows | None = None
        if where.selection:
            rows = self._rows_with_uris((where.selected_uris or {}).get(tool_id, frozenset()))
        if where.path:
            path_rows = self._rows_with_path(where.path)
            rows = path_rows if rows is None else np.intersect1d(rows, path_rows, assume_unique=True)
        conditions = []  # which numbers match, and the column that they are in
        if where.tags:
            conditions.append((self._match_tags(frozenset(where.tags)), self._tag_column))
        if where.since or where.until:
            conditions.append((self._match_dates(where), self._date_column))
        for matches, column in conditions:
            if rows is None:
                rows = np.flatnonzero(matches[column])
            else:
                rows = rows.compress(matches[column.take(rows)])
        return self._ids if rows is None else self._ids.take(rows)

    def _rows_with_uris(self, uris: Iterable[str]) -> Rows:
        rows = []
        for uri in uris:
            place = bisect_left(self._by_uri, uri, key=self._uris.__getitem__)
            if place < len(self) and self._uris[self._by_uri[place]] == uri:
                rows.append(int(self._by_uri[place]))
        return np.array(sorted(rows), np.intp)

    def _rows_with_path(self, path: str) -> Rows:
        rows = self._rows_by_path.get(path)
        if rows is None:
            matches = document_matcher(Filter(path=path), 0)
            candidates = self._path_candidates(path)
            uris = self._uris.read_all(candidates)
            is_match = np.fromiter((matches(uri, "", frozenset()) for uri in uris), np.bool_, len(candidates))
            rows = candidates.compress(is_match)
            # Replaced when it is full: another thread may be reading it.
            previous = self._rows_by_path if len(self._rows_by_path) < _MAX_PATHS else {}
            self._rows_by_path = {**previous, path: rows}
        return rows

    def _path_candidates(self, path: str) -> Rows:
        """Return the rows whose URIs begin with the beginning of a glob, or have its longest literal part."""
        # A glob without a slash matches at any depth.
        start = _LITERAL_START.match(path) if "/" in path else None
        if start is not None and start[0]:

            def beginning(row: int) -> str:
                return self._uris[row][: start.end()]

            first = bisect_left(self._by_uri, start[0], key=beginning)
            return np.sort(self._by_uri[first : bisect_right(self._by_uri, start[0], key=beginning)]).astype(np.intp)
        literal = "" if "[" in path else max(re.split(r"[*?/]+", path), key=len)
        return self._uris.containing(literal) if literal else np.arange(len(self))

    def _match_tags(self, tags: frozenset[str]) -> npt.NDArray[np.bool_]:
        """Return for each set of tags whether it has all of these."""
        matches = np.zeros(len(self._tag_sets), np.bool_)
        for number in self._tag_sets.containing(_encode_json(max(tags, key=len))).tolist():
            tag_set = self._decoded_tags.get(number)
            if tag_set is None:
                tag_set = self._decoded_tags[number] = frozenset(decode_strings(self._tag_sets[number]))
            matches[number] = tags <= tag_set
        return matches

    def _match_dates(self, where: Filter) -> npt.NDArray[np.bool_]:
        """Return for each date whether it matches; they are sorted, so those without a time zone are a range."""
        date_filter = Filter(since=where.since, until=where.until, zone=where.zone)
        matches = document_matcher(date_filter, 0)
        is_within = np.zeros(len(self._dates) + len(self._file_times), np.bool_)
        dates, times = is_within[: len(self._dates)], is_within[len(self._dates) :]
        dates[slice(*_ends_of(self._dates, where))] = True
        # The date of an entry from another time zone depends on the zone of the filter.
        for number in self.arrays["zoned_dates"]:
            dates[number] = matches("", self._dates[number], frozenset())
        ends = _ends_of(self._file_times, where, _local_time)
        times[slice(*ends)] = True
        neighbours = {place for end in ends for place in (end - 1, end) if 0 <= place < len(times)}
        for file_time in map(int, self._file_times[sorted(neighbours)]):
            near = (file_time - _MAX_ZONE_DIFFERENCE, file_time + _MAX_ZONE_DIFFERENCE)
            for number in range(*np.searchsorted(self._file_times, near)):
                times[number] = matches("", _local_time(self._file_times[number]), frozenset())
        return is_within


class _Texts:
    """Texts in an array of bytes, each decoded when it is read."""

    def __init__(self, arrays: Arrays, name: str) -> None:
        self._data, self._ends = arrays[name].data, arrays[f"{name}_ends"]

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        if number >= len(self._ends):
            raise IndexError(number)
        start = int(self._ends[number - 1]) if number else 0
        return str(self._data[start : int(self._ends[number])], "utf-8", "surrogatepass")

    def read_all(self, numbers: Rows) -> Iterable[str]:
        """Yield the texts with these numbers."""
        data = bytes(self._data)
        starts = np.where(numbers > 0, self._ends.take(numbers - 1, mode="wrap"), 0) if len(numbers) else numbers
        places = zip(starts.tolist(), self._ends.take(numbers).tolist(), strict=True)
        return (data[start:end].decode("utf-8", "surrogatepass") for start, end in places)

    def containing(self, part: str) -> Rows:
        """Return the numbers of the texts that contain a part, in ascending order."""
        data, encoded = bytes(self._data), part.encode("utf-8", "surrogatepass")
        places, place = [], data.find(encoded)
        while place >= 0:
            places.append(place)
            place = data.find(encoded, place + 1)
        starts = np.array(places, np.int64)
        numbers = np.searchsorted(self._ends, starts, side="right")
        # The others begin in one text and end in the next.
        numbers = numbers[starts + len(encoded) <= self._ends[numbers]]
        return numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]


def build_facts(rows: Sequence[DocumentFacts]) -> Facts:
    """Return the facts of documents."""
    rows = sorted(rows)
    dates: list[str | int] = [_date_or_file_time(date, time, line) for _, _, date, time, line, _ in rows]
    texts = sorted({date for date in dates if isinstance(date, str)})
    file_times = sorted({date for date in dates if isinstance(date, int)})
    tags = [row[5] for row in rows]
    different_tags = list(dict.fromkeys(tags))
    uris = [row[1] for row in rows]
    arrays: dict[str, npt.NDArray[Any]] = {
        "ids": np.array([row[0] for row in rows], np.int64),
        "by_uri": np.array(sorted(range(len(uris)), key=uris.__getitem__), np.int32),
        "date_column": _numbers(dates, [*texts, *file_times]),
        "zoned_dates": np.array([at for at, text in enumerate(texts) if len(text) > _MAX_LOCAL_DATE], np.int32),
        "file_times": np.array(file_times, np.int64),
        "undated_files": np.array([any(not date and not line for _, _, date, _, line, _ in rows)], np.uint8),
        "tag_column": _numbers(tags, different_tags),
        **_text_arrays("uris", uris),
        **_text_arrays("dates", texts),
        # Encoded again: a tag is searched for in the way it is encoded here.
        **_text_arrays("tag_sets", [_encode_json(decode_strings(encoded)) for encoded in different_tags]),
    }
    return Facts(arrays)


def check_facts(arrays: Arrays) -> None:
    """Raise `DamagedArrayFile` if arrays are not those of facts."""
    try:
        count = len(arrays["ids"])
        is_right = all(arrays[name].dtype == array.dtype for name, array in build_facts([]).arrays.items())
        is_right &= all(array.ndim == 1 for array in arrays.values())
        is_right &= all(len(arrays[name]) == count for name in ("by_uri", "uris_ends", "date_column", "tag_column"))
        for column, size in (
            ("by_uri", count),
            ("date_column", len(arrays["dates_ends"]) + len(arrays["file_times"])),
            ("tag_column", len(arrays["tag_sets_ends"])),
            ("zoned_dates", len(arrays["dates_ends"])),
        ):
            is_right &= not len(arrays[column]) or bool(arrays[column].min() >= 0 and arrays[column].max() < size)
        for name in ("uris", "dates", "tag_sets"):
            ends = arrays[f"{name}_ends"]
            is_right &= bool((ends[1:] >= ends[:-1]).all())
            is_right &= not len(ends) or (ends[0] >= 0 and int(ends[-1]) == len(arrays[name]))
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedArrayFile("The file of facts lacks arrays") from error
    if not is_right:
        raise DamagedArrayFile("The file of facts has numbers that do not fit together")


def _date_or_file_time(date: str, modified_ns: int, last_line: int) -> str | int:
    """Return the date of a document, or the time of its file in seconds, which is another date in another zone."""
    if date or not effective_date(date, modified_ns, last_line):
        return date
    return math.floor(round(modified_ns / 1e9, 6))  # as `datetime.fromtimestamp` rounds it


def _ends_of(values: Any, where: Filter, key: Callable[[Any], str] | None = None) -> tuple[int, int]:
    """Return where the values begin and end that are within the dates of a filter."""
    # An end of 2024-01-15 includes the whole day, 2024-01 the whole month.
    end = bisect_right(values, where.until + "\uffff", key=key) if where.until else len(values)
    return bisect_left(values, where.since, key=key), end


def _local_time(seconds: Any) -> str:
    return datetime.fromtimestamp(int(seconds)).isoformat(timespec="seconds")  # as `effective_date`, also for 0


def _numbers(values: Sequence[str | int], different_values: Sequence[str | int]) -> npt.NDArray[np.int32]:
    """Return the number of each value."""
    numbers = {value: number for number, value in enumerate(different_values)}
    return np.fromiter(map(numbers.__getitem__, values), np.int32, len(values))


def _text_arrays(name: str, texts: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
    return {name: np.frombuffer(b"".join(encoded), np.uint8), f"{name}_ends": ends}


_log = logging.getLogger("bunko.store")

_FORMAT = 1
_MAX_TOOLS = 16  # whose facts are in memory; those of 500,000 documents take 30 MB
# Fewer documents are read faster than a file is opened and written.
MIN_SAVED_DOCUMENTS = 2_000
# Documents written and removed since the facts were read, at about 4 µs each; after more, or 2 %, all are read again.
_MIN_CHANGES = 1_000
_ABANDONED_SECONDS = 3600  # a half-written file this old was left behind by a killed process

FactsFile = Callable[[int], Path]


@dataclass(frozen=True, slots=True)
class _Version:
    """The state of a tool's documents."""

    written: int  # how often they were written
    generation: int
    touched: int = field(compare=False)  # the value of `written` when the time of a file last changed
    nonce: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class _ToolFacts:
    """Facts of one version, and what has changed since, up to another version."""

    base_version: _Version
    base: Facts
    version: _Version
    outdated_ids: npt.NDArray[np.int64]  # of documents that were removed, or are among the recent ones
    recent: Facts

    def select(self, tool_id: int, where: Filter) -> list[int]:
        base_ids = self.base.select(tool_id, where)
        if len(self.outdated_ids):
            base_ids = base_ids[~np.isin(base_ids, self.outdated_ids)]
        ids: list[int] = base_ids.tolist()
        return [*ids, *self.recent.select(tool_id, where).tolist()] if len(self.recent) else ids


class FactCache:
    """The facts of some tools; those of many documents are also in a file beside the library, if it has files."""

    def __init__(self, database: Database, facts_file: FactsFile | None = None) -> None:
        self._database, self._changes, self._facts_file = database, SqlChanges(database), facts_file
        self._facts: dict[int, _ToolFacts] = {}
        self._lock = threading.Lock()

    def select(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that match a filter."""
        document_matcher(where, tool_id)  # raises an error if the filter makes no sense
        version = self._version(tool_id)
        try:
            return self._facts_of(tool_id, version).select(tool_id, where)
        except (IndexError, OverflowError, RecursionError, ValueError):  # the file has texts that bunko did not write
            _log.warning("The file of facts is damaged; reading them from the library.")
            return self._read(tool_id, version).select(tool_id, where)

    def _facts_of(self, tool_id: int, version: _Version) -> _ToolFacts:
        known = self._facts.get(tool_id)
        if known is not None and known.version == version:
            return known
        facts = self._catch_up(tool_id, known, version)
        facts = facts or self._catch_up(tool_id, self._load(tool_id, version), version)
        if facts is None:
            return self._read(tool_id, version)
        self._keep(tool_id, facts)
        return facts

    def _version(self, tool_id: int) -> _Version:
        keys = [f"{prefix}{tool_id}" for prefix in (VERSION_PREFIX, TOUCHED_PREFIX, FACTS_PREFIX)]
        query = "SELECT key, value FROM meta WHERE key IN (?, ?, ?)"
        values: dict[str, str] = dict(self._database.rows(query, keys, types=(TEXT, TEXT)))
        written, touched, nonce = (values.get(key, "") for key in keys)
        # An older bunko does not count what it writes, but it advances the generation.
        generation = self._changes.last_generation(tool_id)
        with self._database.decode_values():
            return _Version(int(written or 0), generation, int(touched or 0), nonce)

    def _read(self, tool_id: int, version: _Version) -> _ToolFacts:
        """Read the facts of all documents of a tool, and write them to the file if there are many."""
        base = self._read_since(tool_id, -1)
        facts = _ToolFacts(version, base, version, np.zeros(0, np.int64), build_facts([]))
        self._keep(tool_id, facts)
        if len(base) >= MIN_SAVED_DOCUMENTS:
            self._save(tool_id, facts)
        return facts

    def _read_since(self, tool_id: int, generation: int) -> Facts:
        rows = self._database.rows(
            "SELECT id, uri, date, modified_ns, last_line, tags FROM documents WHERE tool_id = ? AND generation > ?",
            (tool_id, generation),
            types=(INTEGER, TEXT, TEXT, INTEGER, INTEGER, TEXT),
        )
        with self._database.decode_values():
            return build_facts(rows)

    def _catch_up(self, tool_id: int, known: _ToolFacts | None, version: _Version) -> _ToolFacts | None:
        """Return known facts with what has changed since, or None if all of them have to be read."""
        if known is None or known.version == version:
            return known
        base, base_version = known.base, known.base_version
        if base_version.written > version.written or base_version.generation > version.generation:
            return None  # another thread has read a newer state
        if base.has_undated_files() and (
            version.touched > base_version.written or self._changes.redated_since(tool_id, base_version.generation)
        ):
            return None
        removed_ids = self._changes.removed_since(tool_id, base_version.generation)
        if removed_ids is None or len(removed_ids) > max(_MIN_CHANGES, len(base) // 50):
            return None
        recent = self._read_since(tool_id, base_version.generation)
        if len(recent) > max(_MIN_CHANGES, len(base) // 50):
            return None
        # Outside of a read transaction, facts may have been read that are newer than their version.
        outdated_ids = np.array([*removed_ids, *recent.arrays["ids"]], np.int64)
        return _ToolFacts(base_version, base, version, outdated_ids, recent)

    def _keep(self, tool_id: int, facts: _ToolFacts) -> None:
        with self._lock:
            self._facts[tool_id] = facts
            while len(self._facts) > _MAX_TOOLS:
                del self._facts[next(iter(self._facts))]

    def _load(self, tool_id: int, version: _Version) -> _ToolFacts | None:
        """Return the facts of the file, or None if there is none that belongs to this library."""
        if self._facts_file is None or not version.nonce:
            return None
        try:
            arrays, stamp = load_arrays(self._facts_file(tool_id), format_version=_FORMAT)
            check_facts(arrays)
            written, generation = int(stamp["written"]), int(stamp["generation"])
        except (OSError, DamagedArrayFile, LookupError, TypeError, ValueError) as error:
            _log.debug("Cannot use the file of facts (%s); reading them from the library.", error)
            return None
        if stamp != _stamp(tool_id, written, generation, version.nonce):
            return None
        base_version = _Version(written, generation, 0, version.nonce)
        return _ToolFacts(base_version, Facts(arrays), base_version, np.zeros(0, np.int64), build_facts([]))

    def _save(self, tool_id: int, facts: _ToolFacts) -> None:
        """Write the file unless another process writes to the library; it is derived, so it may be lost."""
        if self._facts_file is None:
            return
        path, version = self._facts_file(tool_id), facts.base_version
        nonce = secrets.token_hex(8)
        try:
            if not self._database.try_transaction([(PUT_VALUE, (f"{FACTS_PREFIX}{tool_id}", nonce))]):
                return
            stamp = _stamp(tool_id, version.written, version.generation, nonce)
            save_arrays(path, facts.base.arrays, format_version=_FORMAT, stamp=stamp, mode=self._database.file_mode())
        except (BunkoError, OSError) as error:
            _log.warning("Cannot write the file of facts (%s); searches continue without it.", error)
        for temporary in path.parent.glob(f"{path.name}.*.tmp"):
            with suppress(OSError):
                if time.time() - temporary.stat().st_mtime > _ABANDONED_SECONDS:
                    temporary.unlink()


def _stamp(tool_id: int, written: int, generation: int, nonce: str) -> dict[str, Any]:
    return {"tool": tool_id, "written": written, "generation": generation, "nonce": nonce}
