"""Watch folders for changes, and detect file systems that send no change events."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from bunko.errors import SourceError
from bunko.runtime.package_errors import package_errors

# An editor saves in several steps and a checkout in thousands: changes are collected until nothing happens for a
# moment, but at most for a few seconds.
_QUIET_MS = 300
_MAX_WAIT_MS = 5_000
_TICK_MS = 1_000
_ATTEMPTS = 5
# Other machines change such a file system without an event in our kernel. FUSE may be anything, so it counts as one.
# fuseblk, for Windows disks, does not.
_REMOTE_FILE_SYSTEMS = frozenset(
    "9p afs ceph cifs drvfs fuse glusterfs lustre ncpfs nfs nfs4 prl_fs smb2 smb3 smbfs vboxsf virtiofs vmhgfs".split()
)
# inotify watches single folders, so we choose which; elsewhere one watch covers the whole tree.
_WATCHES_EACH_FOLDER = sys.platform == "linux"


class StopSignal(Protocol):
    """A flag that ends waiting when it is set."""

    def is_set(self) -> bool:
        """Return whether waiting should end."""
        ...


class FolderWatcher:
    """Waits for changes below folders, except in excluded ones and behind links."""

    def __init__(self, roots: Collection[str], is_excluded: Callable[[str], bool]) -> None:
        # `watchfiles.watch` starts to watch at its first iteration; this starts at once.
        with package_errors("watchfiles", SourceError):
            from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

        self._roots, self._is_excluded = frozenset(roots), is_excluded
        for _ in range(_ATTEMPTS):
            self.folders = self._find_folders()
            with package_errors("watchfiles", SourceError):
                try:
                    # The last argument would hide all errors, not only permission errors, so it is False.
                    self._notify = RustNotify(sorted(self.folders), False, False, 0, not _WATCHES_EACH_FOLDER, False)
                except (FileNotFoundError, PermissionError):
                    continue  # removed or made unreadable since it was listed
                except (OSError, WatchfilesRustInternalError) as error:
                    raise _watch_error(error) from error
            # A folder created before its parent was watched would send no event.
            if self._find_folders() <= self.folders:
                return
            self._notify.close()
        raise SourceError(
            "Folders are created and deleted too quickly to be watched", hint="Watching is tried again later."
        )

    def wait(self, stop: StopSignal) -> set[str]:
        """Return the paths that changed, or an empty set after a timeout."""
        with package_errors("watchfiles", SourceError):
            changes = self._notify.watch(_MAX_WAIT_MS, _QUIET_MS, _TICK_MS, stop)
        if isinstance(changes, str):
            return set()
        return {path for _, path in changes if not self._is_excluded(path)}

    def needs_rewatch(self, paths: Iterable[str]) -> bool:
        """Return whether folders were created or deleted, so that the watches must be renewed."""
        if not _WATCHES_EACH_FOLDER:
            return not self._roots.isdisjoint(paths)
        return any(path in self.folders or _is_folder(Path(path)) for path in paths)

    def close(self) -> None:
        """Stop watching."""
        self._notify.close()

    def _find_folders(self) -> frozenset[str]:
        if not _WATCHES_EACH_FOLDER:
            return self._roots
        folders: set[str] = set()
        pending = list(self._roots)
        while pending:
            folder = pending.pop()
            # A folder that cannot be listed cannot be watched either; the scan reports it.
            with suppress(OSError), os.scandir(folder) as entries:
                folders.add(folder)
                subfolders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
                pending += [path for path in subfolders if path not in folders and not self._is_excluded(path)]
        return frozenset(folders)


def remote_file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the type of a folder's file system if it sends no events for remote changes, else an empty string."""
    try:
        device = folder.stat().st_dev
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    device_number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        mount, _, options = line.partition(" - ")
        if mount.split()[2] == device_number:
            kind = options.split()[0]
            return kind if kind.partition(".")[0] in _REMOTE_FILE_SYSTEMS else ""
    return ""


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _watch_error(error: Exception) -> SourceError:
    reason = str(error).partition(" about [")[0]
    if "limit" in reason or "os error 24" in reason:
        hint = "Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl) to get events."
        return SourceError("The system limit for watched folders is reached", hint=hint)
    return SourceError(
        f"File events are not available on this system ({reason})", hint="Use --poll to scan every few seconds."
    )


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
            raise _inotify_error(ctypes.get_errno())
        self._owners: dict[int, set[int]] = {}  # by number of the watch

    def watch(self, folder: str, owner: int) -> None:
        """Watch a folder, not those below it; raise SourceError if the system allows no more."""
        number = self._libc.inotify_add_watch(self._queue, os.fsencode(folder), _MASK)
        if number >= 0:
            self._owners.setdefault(number, set()).add(owner)
        elif (code := ctypes.get_errno()) not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
            raise _inotify_error(code)
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


def _inotify_error(code: int) -> SourceError:
    if code in (errno.ENOSPC, errno.EMFILE, errno.ENFILE):
        return SourceError("The system limit for watched folders is reached", hint=_LIMIT_HINT)
    return SourceError(f"File events are not available on this system ({os.strerror(code)})")
