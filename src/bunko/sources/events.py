"""Watch folders for changes, and detect file systems that send no change events."""

from __future__ import annotations

import os
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
