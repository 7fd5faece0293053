"""Keep secrets in the user's data folder: a library may lie among documents that somebody else can write."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from bunko.errors import SettingsError
from bunko.library.opening.paths import LibraryPaths, user_data_folder
from bunko.library.tools.assistant_names import safe_name


def token_path(paths: LibraryPaths) -> Path:
    """Return the file of the token that HTTP clients of a library send."""
    folder = user_data_folder()
    if paths.folder == folder:
        return folder / "token"
    name = (paths.docs_dir or paths.folder).name
    digest = paths.digest()[:12]
    return folder / "tokens" / (f"{safe_name(name)}-{digest}" if safe_name(name) else digest)


def load_or_create_secret(path: Path, *, hint: str) -> str:
    """Return the secret in a file, created on first use and readable by its owner only.

    `hint` says what to do if the file cannot be written.
    """
    try:
        secret = path.read_text(encoding="ascii").strip()
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise SettingsError(f"{path} is readable by other users", hint=f"Run: chmod 600 '{path}'")
        if secret:
            return secret
    except FileNotFoundError:
        pass
    except (UnicodeDecodeError, OSError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", hint="Remove it; the next start creates a new one."
        ) from error
    secret = secrets.token_urlsafe(32)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secret + "\n")
        temporary.replace(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}", hint=hint) from error
    return secret
