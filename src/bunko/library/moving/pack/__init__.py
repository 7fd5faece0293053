"""Write tools to pack files, and load them into another library."""

from bunko.library.moving.pack.file import SUFFIX, Pack, open_pack, write_pack
from bunko.library.moving.pack.load import load_pack

__all__ = ["SUFFIX", "Pack", "load_pack", "open_pack", "write_pack"]
