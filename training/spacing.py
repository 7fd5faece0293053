"""Import the spacing rule of `bunko.text.subwords`, so that training runs where the package is not installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
from bunko.text.subwords import space_words

__all__ = ["space_words"]
