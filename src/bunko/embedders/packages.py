"""Say which package of an extra is missing, and how to install it."""

from __future__ import annotations

from importlib.util import find_spec

from bunko.errors import EmbedderError


def missing_package_error(package: str, extra: str) -> EmbedderError:
    """Return the error for a missing package of an extra."""
    return EmbedderError(
        f"The package {package} is not installed", hint=f'Install it with: pip install "bunko[{extra}]"'
    )


def missing_package_message(module: str, package: str, extra: str) -> str:
    """Return a message if a package is not installed, else an empty string; does not import it."""
    try:
        installed = find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing too
        installed = False
    return (
        "" if installed else f'The package {package} is not installed; install it with: pip install "bunko[{extra}]".'
    )
