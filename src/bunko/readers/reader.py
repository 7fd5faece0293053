"""Define the declaration of a reader: the files that it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.types import Text


@dataclass(frozen=True, slots=True)
class Reader:
    """A file format; each module of `readers` that declares one as `READER` is found by itself."""

    read: Callable[[bytes], Text]  # raises SourceError if the file holds no text
    suffixes: tuple[str, ...]  # of file names, in lower case
    media_type: str  # of the texts it returns
    default_suffixes: tuple[str, ...] = ()  # that a folder imports unless the settings say otherwise
    extra: str = ""  # of bunko, with the packages it needs; empty if there is none
    package: str = ""  # that is imported to read a file, of the extra
    label: str = ""  # of the format, as people call it

    def is_available(self) -> bool:
        """Return whether the package that it needs is installed."""
        try:
            return not self.package or find_spec(self.package) is not None
        except ValueError:  # the package is marked as one that must not be imported
            return False
