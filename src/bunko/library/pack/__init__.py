"""A tool in, one checked file out, and back into another library."""

from bunko.library.pack.file import SUFFIX, Pack, open_pack, write_pack
from bunko.library.pack.load import load_pack

__all__ = ["SUFFIX", "Pack", "load_pack", "open_pack", "write_pack"]
