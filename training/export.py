"""Export the trained table to the file that bunko ships.

usage: python training/export.py FOLDER OUT.bin NAME
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from bunko.embedders import subword_table
from bunko.runtime import array_file


def main(folder: Path, out: Path, name: str) -> None:
    """Combine the arrays and save them."""
    arrays = {"rows": np.load(folder / "rows.npy"), "shifts": np.load(folder / "shifts.npy")}
    array_file.save_arrays(out, arrays, format_version=subword_table.FORMAT, stamp={"name": name})
    print({key: value.shape for key, value in arrays.items()}, out.stat().st_size, "bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
