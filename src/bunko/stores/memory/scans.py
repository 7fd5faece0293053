"""Remember the state of each tool's source in which a scan found nothing new."""

from __future__ import annotations

from bunko.records import ScanRecord
from bunko.stores.memory.data import MemoryTables, with_lock


class MemoryScans:
    """What scans of the sources found: data that may be lost."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def get(self, tool_id: int) -> ScanRecord:
        """Return the version of a tool's fingerprints, and the state of its source if nothing was written since."""
        version = self._tables.versions[tool_id]
        record = self._tables.scans.get(tool_id)
        return record if record is not None and record.version == version else ScanRecord(version)

    @with_lock
    def put(self, tool_id: int, record: ScanRecord) -> bool:
        """Record the state of a tool's source."""
        self._tables.scans[tool_id] = record
        return True
