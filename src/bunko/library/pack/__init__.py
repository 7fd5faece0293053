"""A tool in, one checked file out, and back into another library."""

from bunko.library.pack.file import SUFFIX, Pack, opened, write
from bunko.library.pack.load import take

__all__ = ["SUFFIX", "Pack", "opened", "take", "write"]
