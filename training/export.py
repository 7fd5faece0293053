"""What training left in, the file that bunko ships out.

usage: python training/export.py FOLDER OUT.bin NAME
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from bunko import array_file
from bunko.embedders import static


def main(folder: Path, out: Path, name: str) -> None:
    """Join and save."""
    found = {"rows": np.load(folder / "rows.npy"), "shifts": np.load(folder / "shifts.npy")}
    array_file.save_arrays(out, found, format_version=static.FORMAT, stamp={"name": name})
    print({key: value.shape for key, value in found.items()}, out.stat().st_size, "bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
