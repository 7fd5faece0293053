"""Stand in for the files of a library that has none."""

from __future__ import annotations

from pathlib import Path

from bunko.temporary_files import TemporaryFolder


class MemoryFiles:
    """No files, except for the locks that keep the threads of this process apart."""

    def __init__(self) -> None:
        self._lock_folder: TemporaryFolder | None = None

    def paths(self) -> list[Path]:
        """Return nothing."""
        return []

    def contain(self, real_path: str) -> bool:
        """Return False."""
        return False

    def still_exist(self) -> bool:
        """Return True: the library lives as long as its process."""
        return True

    def lock_file(self, purpose: str = "import") -> Path:
        """Return the lock file for a purpose, in a temporary folder."""
        if self._lock_folder is None:
            self._lock_folder = TemporaryFolder("bunko-locks-")
        return self._lock_folder.path / f"{purpose}.lock"

    def delete_locks(self) -> None:
        """Delete the temporary folder of the locks."""
        if self._lock_folder is not None:
            self._lock_folder.cleanup()
            self._lock_folder = None
