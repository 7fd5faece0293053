"""Find what changed in a source; while nothing does, without reading what is stored.

The store remembers the state of a source in which a scan found nothing new. In the same state, with the same
fingerprints, another scan would find nothing new either, so it is left out.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from bunko.errors import BunkoError, SourceError
from bunko.protocols import Look, Scan, Source, Store, VisibleSource, WatchableSource
from bunko.sources import plugin_errors
from bunko.types import Tool
from bunko.types.records import ScanRecord

if TYPE_CHECKING:
    from bunko.ingest.watched import WatchedFolders


def find_changes(store: Store, tool: Tool, source: Source, watched: WatchedFolders | None = None) -> Scan:
    """Scan the source of a tool, and remember its state if nothing is new.

    With `watched`, its folder is not even listed while nothing happens in it.
    """
    with plugin_errors(tool.kind):
        # First of all: what somebody writes after this makes the record worthless.
        record = store.scans.get(tool.id)
        look = watched.last_look(tool, source) if watched is not None and record.state else None
        if not _shows_nothing_new(look, tool, record):
            look = _look_at(tool, source, watched)
        if look is not None and _shows_nothing_new(look, tool, record):
            problems, skipped_folders = list(look.problems), list(look.skipped_folders)
            scan = Scan(
                unchanged=record.unchanged, problems=problems, skipped_folders=skipped_folders, state=look.state
            )
        else:
            fingerprints = store.documents.fingerprints(tool.id)
            scan = source.scan(fingerprints) if look is None else look.compare(fingerprints)
            if scan.state and not scan.has_changes:
                _put_record(store, tool, ScanRecord(record.version, _recorded_state(tool, scan.state), scan.unchanged))
        scan.version = record.version
        return scan


def record_import(store: Store, tool: Tool, scan: Scan) -> None:
    """Remember the state of a source after all changes of its scan were written; the lock of imports is held."""
    count = scan.unchanged + len(scan.added) + len(scan.updated)
    keep_record(store, tool, ScanRecord(0, _recorded_state(tool, scan.state), count))


def keep_record(store: Store, tool: Tool, record: ScanRecord) -> None:
    """Make a record that of the fingerprints as they are now; the lock of imports is held."""
    _put_record(store, tool, record._replace(version=store.scans.get(tool.id).version))


def _look_at(tool: Tool, source: Source, watched: WatchedFolders | None) -> Look | None:
    with suppress(SourceError):  # the scan raises it again
        if watched is not None and isinstance(source, WatchableSource):
            return watched.look(tool, source)
        if isinstance(source, VisibleSource):
            return source.look()
    return None


def _shows_nothing_new(look: Look | None, tool: Tool, record: ScanRecord) -> bool:
    return look is not None and bool(look.state) and _recorded_state(tool, look.state) == record.state


def _put_record(store: Store, tool: Tool, record: ScanRecord) -> None:
    with suppress(BunkoError):  # a full disk, or a library that may only be read: the next scan takes longer
        store.scans.put(tool.id, record)


def _recorded_state(tool: Tool, state: str) -> str:
    return f"{state} {tool.kind}"  # another kind may see other entries in the same files
