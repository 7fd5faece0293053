"""Read a secret from a file; error messages never show the secret."""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from bunko.errors import SettingsError

FILE_SUFFIX = "_file"  # suffix of a setting that names the file of a secret; upper case in the environment
# Where container engines mount secrets, readable by everybody in the container. Nobody else is in there.
CONTAINER_SECRETS = Path("/run/secrets")
_MAX_KEY_BYTES = 10_000  # a larger file does not contain a key


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The file of a secret: its path as configured, and the folder that a relative path starts at."""

    raw_path: str
    base: Path

    def path(self) -> Path:
        """Return the full path."""
        return self.base / Path(self.raw_path).expanduser()

    def read_secret(self, key: str, origin: str, notices: list[str]) -> str:
        """Return the secret without surrounding whitespace; add a notice if other users can read the file."""
        label = f"{self.raw_path!r}, the file of {key} ({origin}),"
        try:
            path = self.path()
            label = f"{path}, the file of {key} ({origin}),"
            with open(path, "rb", opener=_open_nonblocking) as file:
                mode = os.fstat(file.fileno()).st_mode
                if not stat.S_ISREG(mode):
                    raise SettingsError(f"{label} is not a file", hint="Name a file that contains only the secret.")
                data = file.read(_MAX_KEY_BYTES + 1)
        except OSError as error:
            raise SettingsError(
                f"{label} cannot be read: {error.strerror or error}", hint="Check the path and the permissions."
            ) from error
        except (RuntimeError, ValueError) as error:  # an unknown user in ~user; a path with a NUL
            raise SettingsError(f"{label} cannot be found", hint="Write the full path.") from error
        try:
            secret = data.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            secret = "\n"
        if not secret:
            raise SettingsError(f"{label} is empty", hint="Write the secret into the file, or name another file.")
        if len(data) > _MAX_KEY_BYTES or len(secret.split()) > 1 or not secret.isprintable():
            raise SettingsError(
                f"{label} contains more than one line of text", hint="Write only the secret into the file."
            )
        if os.name == "posix" and mode & 0o077 and not path.is_relative_to(CONTAINER_SECRETS):
            notices.append(
                f"{path} contains a secret, but other users can read it. Run: chmod 600 {shlex.quote(str(path))}"
            )
        return secret


def _open_nonblocking(path: str, flags: int) -> int:
    # Opening a pipe without a writer would block.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
