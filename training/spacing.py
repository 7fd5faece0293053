"""The one rule of `bunko.text.pieces` that training needs too, so that it runs where the package is not installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
from bunko.text.subwords import space_words

__all__ = ["space_words"]
