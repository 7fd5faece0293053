"""Write files and folders under temporary names, and remove those that killed processes left behind.

A process locks what it writes for as long as it lives, so a temporary file that can be locked belongs to nobody. Where
there are no such locks (Windows), the system refuses to remove a file that is open.
"""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl

_TEMPORARY_NAME = re.compile(r"\..+\.bunko-[0-9a-f]{16}\.tmp", re.DOTALL)
_FOLDER_LOCK = "in-use.lock"
_OPEN_FLAGS = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


@contextmanager
def replace_file(path: Path, *, mode: int = 0o666, is_new: bool = False) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name, and replaces another of that name, when it is complete and on disk.

    The umask limits its permissions, `mode`. With `is_new`, a file or link of that name stays: raise FileExistsError.
    """
    give_name = _give_new_name if is_new else os.replace
    remove_abandoned_files(path.parent)
    file, temporary = _create_locked(path, mode)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # still locked, so that nobody removes it before it has its name
                give_name(temporary, path)
        if os.name != "posix":
            give_name(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _give_new_name(temporary: Path, path: Path) -> None:
    """Give a file a name that nothing has."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: an empty file takes the name first
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS))
        try:
            temporary.replace(path)
        except BaseException:
            path.unlink()
            raise
    else:
        temporary.unlink()


def write_text_file(path: Path, text: str, *, mode: int = 0o666, is_new: bool = False) -> None:
    """Write a text as UTF-8 to a file that is replaced as a whole; lone surrogates are escaped."""
    with replace_file(path, mode=mode, is_new=is_new) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def replace_text(path: Path, text: str) -> Path | None:
    """Write a text to a file, through a link and with its permissions; return a backup of what it had before.

    An earlier backup with the same content is used again.
    """
    path = path.resolve()
    backup = _back_up(path) if path.exists() else None
    rewrite_text(path, text)
    return backup


def rewrite_text(path: Path, text: str) -> None:
    """Write a text to a file, through a link and with its permissions; a new one gets its folder."""
    path = path.resolve()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_file(path, text)
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    write_text_file(path, text, mode=mode)
    path.chmod(mode)


def _back_up(path: Path) -> Path:
    content = path.read_bytes()
    for backup in sorted(path.parent.glob(f"{glob.escape(path.name)}.*.backup")):
        if backup.stat().st_size == len(content) and backup.read_bytes() == content:
            return backup
    backup = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.backup")
    shutil.copy2(path, backup)
    return backup


def remove_abandoned_files(folder: Path) -> None:
    """Remove the temporary files of dead processes from a folder; files of others are never touched."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY_NAME.fullmatch(entry.name):
                _remove_if_abandoned(Path(entry.path))


class TemporaryFolder:
    """A new temporary folder; if its process is killed, the next folder of that prefix replaces it."""

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        for folder in parent.glob(f"{glob.escape(prefix)}*"):
            # A folder without the lock file is being made this moment, or is not ours; a link leads elsewhere.
            if not folder.is_symlink():
                _remove_if_abandoned(folder / _FOLDER_LOCK, folder)
        self.path, lock = _create_locked_folder(parent, prefix)
        self._finalizer = weakref.finalize(self, _remove_folder, self.path, lock)

    def cleanup(self) -> None:
        """Remove the folder and everything in it; at the end of the process at the latest."""
        self._finalizer()


def _create_locked(path: Path, mode: int) -> tuple[IO[bytes], Path]:
    while True:
        # Shortened, because a name may have at most 255 bytes.
        temporary = path.with_name(f".{path.name[:50]}.bunko-{secrets.token_hex(8)}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS, mode)
        if _lock_new_file(descriptor, temporary):
            return os.fdopen(descriptor, "wb"), temporary
        os.close(descriptor)


def _create_locked_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            descriptor = os.open(folder / _FOLDER_LOCK, os.O_RDWR | os.O_CREAT | _OPEN_FLAGS, 0o600)
            if _lock_new_file(descriptor, folder / _FOLDER_LOCK):
                return folder, descriptor
            os.close(descriptor)


def _lock_new_file(descriptor: int, path: Path) -> bool:
    """Lock a file that was just created; return False if another process has removed it in the meantime."""
    _try_lock(descriptor)
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool:
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held by a live process, or the file system has no locks
        return False
    return True


def _remove_if_abandoned(path: Path, folder: Path | None = None) -> None:
    """Remove a file, or the folder that it locks, if its process is dead and it belongs to this user."""
    with suppress(OSError):
        if sys.platform == "win32":
            path.unlink()  # refused while it is open
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            return
        descriptor = os.open(path, os.O_RDWR | _OPEN_FLAGS)
        try:
            file_stat = os.fstat(descriptor)
            is_own = stat.S_ISREG(file_stat.st_mode) and file_stat.st_uid == os.geteuid()
            if not is_own or not _try_lock(descriptor):
                return
            if folder is None:
                path.unlink()
            else:
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


def _remove_folder(folder: Path, lock: int) -> None:
    os.close(lock)
    shutil.rmtree(folder, ignore_errors=True)
