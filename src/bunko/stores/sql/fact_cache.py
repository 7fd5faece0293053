"""Find the documents that match a filter, from facts that are kept in memory and in a file."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bunko.errors import BunkoError
from bunko.runtime.array_file import DamagedArrayFile, load_arrays, save_arrays
from bunko.stores.filters import document_matcher
from bunko.stores.sql.changes import SqlChanges
from bunko.stores.sql.database import INTEGER, TEXT, Database
from bunko.stores.sql.facts import Facts, build_facts, check_facts
from bunko.stores.sql.scans import FACTS_PREFIX, PUT_VALUE, TOUCHED_PREFIX, VERSION_PREFIX
from bunko.types.records import Filter

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
