"""Ask Linux whether anything has happened in folders since the last time.

The kernel queues an event before the call that made the change returns. So a reader of the queue after a change finds
it there, which a thread that collects events in the background cannot promise.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from contextlib import suppress

from bunko.errors import SourceError

_MODIFY, _ATTRIB, _MOVED, _CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x2, 0x4, 0xC0, 0x100, 0x200, 0x400, 0x800
_ONLYDIR, _DONT_FOLLOW = 0x01000000, 0x02000000
_MASK = _MODIFY | _ATTRIB | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR | _DONT_FOLLOW
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_READ_BYTES = 256 * 1024
_LIMIT_HINT = "Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl) to get events."


class FolderEvents:
    """The events of watched folders, each of which belongs to an owner with a number."""

    def __init__(self) -> None:
        """Open the queue; raise SourceError if this system has none."""
        if sys.platform != "linux":
            raise SourceError("File events can be asked for on Linux only")
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_add_watch"):
            raise SourceError("File events are not available on this system")
        self._queue = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            raise _watch_error(ctypes.get_errno())
        self._owners: dict[int, set[int]] = {}  # by number of the watch

    def watch(self, folder: str, owner: int) -> None:
        """Watch a folder, not those below it; raise SourceError if the system allows no more."""
        number = self._libc.inotify_add_watch(self._queue, os.fsencode(folder), _MASK)
        if number >= 0:
            self._owners.setdefault(number, set()).add(owner)
        elif (code := ctypes.get_errno()) not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
            raise _watch_error(code)
        # One that is gone or cannot be listed has no files. If it comes back, its parent has an event.

    def release(self, owner: int) -> None:
        """Stop watching the folders of an owner."""
        for number, owners in list(self._owners.items()):
            owners.discard(owner)
            if not owners:
                del self._owners[number]
                self._libc.inotify_rm_watch(self._queue, number)

    def take(self) -> set[int]:
        """Return the owners whose folders changed since the last call."""
        changed: set[int] = set()
        with suppress(BlockingIOError):
            while True:
                data = os.read(self._queue, _READ_BYTES)
                start = 0
                while start < len(data):
                    number, mask, _, length = _EVENT.unpack_from(data, start)
                    start += _EVENT.size + length
                    if mask & _OVERFLOW:  # events were lost
                        changed.update(*self._owners.values())
                    changed |= self._owners.get(number, set())
                    if mask & _IGNORED:  # the folder is gone, and its number may be given to another one
                        self._owners.pop(number, None)
        return changed

    def close(self) -> None:
        """Stop watching."""
        os.close(self._queue)


def _watch_error(code: int) -> SourceError:
    if code in (errno.ENOSPC, errno.EMFILE, errno.ENFILE):
        return SourceError("The system limit for watched folders is reached", hint=_LIMIT_HINT)
    return SourceError(f"File events are not available on this system ({os.strerror(code)})")
