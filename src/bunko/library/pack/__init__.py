"""Write tools to pack files, and load them into another library."""

from bunko.library.pack.file import SUFFIX, Pack, open_pack, write_pack
from bunko.library.pack.load import load_pack

__all__ = ["SUFFIX", "Pack", "load_pack", "open_pack", "write_pack"]
