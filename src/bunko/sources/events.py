"""Folders in, the paths that change below them out, after a quiet moment; says where a system gives no such events."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from bunko.errors import SourceError

# An editor saves in several steps and a checkout in thousands: what happens within a quiet moment is told at once,
# but a stream that never ends is told every few seconds.
_QUIET_MS = 300
_MAX_WAIT_MS = 5_000
_TICK_MS = 1_000
_ATTEMPTS = 5
# Others change such a file system without our kernel seeing it. FUSE may be anything, so it is taken for one of them.
# fuseblk, the disks of Windows, is not.
_REMOTE_FILE_SYSTEMS = frozenset(
    "9p afs ceph cifs drvfs fuse glusterfs lustre ncpfs nfs nfs4 prl_fs smb2 smb3 smbfs vboxsf virtiofs vmhgfs".split()
)
# inotify sees one folder each, so we choose which; elsewhere one watch sees all that is below.
_WATCHES_EACH_FOLDER = sys.platform == "linux"


class StopSignal(Protocol):
    """Something that says whether waiting should end."""

    def is_set(self) -> bool:
        """Say whether it should."""
        ...


class FolderWatcher:
    """Waits for changes below some folders, but not in those that a rule passes over, nor through links."""

    def __init__(self, roots: Collection[str], is_excluded: Callable[[str], bool]) -> None:
        # `watchfiles.watch` begins to watch only when it is first waited for; here the watches stand at once.
        from watchfiles._rust_notify import RustNotify

        self._roots, self._is_excluded = frozenset(roots), is_excluded
        for _ in range(_ATTEMPTS):
            self.folders = self._find_folders()
            try:
                # The last argument would hide every error, not only those of permissions, so it is False.
                self._notify = RustNotify(sorted(self.folders), False, False, 0, not _WATCHES_EACH_FOLDER, False)
            except (FileNotFoundError, PermissionError):
                continue  # gone or closed since we looked
            except (OSError, RuntimeError) as error:
                raise _watch_error(error) from error
            # A folder that was made before its parent was watched would never be heard of.
            if self._find_folders() <= self.folders:
                return
            self._notify.close()
        raise SourceError("Folders come and go too quickly to be watched", hint="They are tried again in a while.")

    def wait(self, stop: StopSignal) -> set[str]:
        """Return the paths that changed, or nothing after a while in which none did."""
        found = self._notify.watch(_MAX_WAIT_MS, _QUIET_MS, _TICK_MS, stop)
        if isinstance(found, str):
            return set()
        return {path for _, path in found if not self._is_excluded(path)}

    def needs_rewatch(self, paths: Iterable[str]) -> bool:
        """Say whether folders came or went, so that other ones have to be watched."""
        if not _WATCHES_EACH_FOLDER:
            return not self._roots.isdisjoint(paths)
        return any(path in self.folders or _is_folder(Path(path)) for path in paths)

    def close(self) -> None:
        """Stop watching."""
        self._notify.close()

    def _find_folders(self) -> frozenset[str]:
        if not _WATCHES_EACH_FOLDER:
            return self._roots
        found: set[str] = set()
        left = list(self._roots)
        while left:
            folder = left.pop()
            # One that cannot be listed cannot be watched either; a look at the files tells the user.
            with suppress(OSError), os.scandir(folder) as entries:
                found.add(folder)
                below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
                left += [path for path in below if path not in found and not self._is_excluded(path)]
        return frozenset(found)


def remote_file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the kind of file system a folder lies on if others may change it unseen; empty if it gives events."""
    try:
        device = folder.stat().st_dev
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        mount, _, rest = line.partition(" - ")
        if mount.split()[2] == wanted:
            kind = rest.split()[0]
            return kind if kind.partition(".")[0] in _REMOTE_FILE_SYSTEMS else ""
    return ""


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _watch_error(error: Exception) -> SourceError:
    reason = str(error).partition(" about [")[0]
    if "limit" in reason or "os error 24" in reason:
        hint = "Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl) to have events."
        return SourceError("This system watches no more folders for us", hint=hint)
    return SourceError(f"This system gives no file events ({reason})", hint="Use --poll to look every few seconds.")
