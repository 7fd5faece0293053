"""A tool in, one checked file out, and back into another library."""

from bunko.pack.file import SUFFIX, Pack, opened, write
from bunko.pack.take import take

__all__ = ["SUFFIX", "Pack", "opened", "take", "write"]
