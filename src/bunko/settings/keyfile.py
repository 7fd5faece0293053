"""The place of a file that holds a secret in, the secret out; what is wrong with it is said without showing it."""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from bunko.errors import SettingsError

FILE_SUFFIX = "_file"  # of a setting that names the file of another one; in the environment in capitals
_MAX_KEY_BYTES = 10_000  # a file that holds more is not one of a key


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Where a secret lies, as somebody wrote it, and the folder that a short path begins at."""

    raw_path: str
    base: Path

    def path(self) -> Path:
        """Return the whole path."""
        return self.base / Path(self.raw_path).expanduser()

    def read_secret(self, key: str, origin: str, notices: list[str]) -> str:
        """Return what the file holds, without the blanks around it; who else may read it is told in `notices`."""
        where = f"{self.raw_path!r}, the file of {key} ({origin}),"
        try:
            path = self.path()
            where = f"{path}, the file of {key} ({origin}),"
            with open(path, "rb", opener=_open_nonblocking) as file:
                mode = os.fstat(file.fileno()).st_mode
                if not stat.S_ISREG(mode):
                    raise SettingsError(f"{where} is not a file.", hint="Name a file that holds the secret alone.")
                data = file.read(_MAX_KEY_BYTES + 1)
        except OSError as error:
            raise SettingsError(
                f"{where} cannot be read: {error.strerror or error}.", hint="Check the path and the permissions."
            ) from error
        except (RuntimeError, ValueError) as error:  # ~somebody whom the system does not know; a name with a zero
            raise SettingsError(f"{where} cannot be found.", hint="Write the whole path.") from error
        try:
            secret = data.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            secret = "\n"
        if not secret:
            raise SettingsError(f"{where} is empty.", hint="Write the secret into it, or name another file.")
        if len(data) > _MAX_KEY_BYTES or len(secret.split()) > 1 or not secret.isprintable():
            raise SettingsError(
                f"{where} holds more than one line of text.", hint="Write the secret into it and nothing else."
            )
        if os.name == "posix" and mode & 0o077:
            notices.append(
                f"{path} holds a secret, and other users may read it. Close it with: chmod 600 {shlex.quote(str(path))}"
            )
        return secret


def _open_nonblocking(path: str, flags: int) -> int:
    # A pipe that nobody writes to would be waited for.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
