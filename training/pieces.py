"""Write the pieces of the tokenizer in the order of their bytes, for queries that are split without it.

usage: python training/pieces.py PIECES.model OUT.bin
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sentencepiece import SentencePieceProcessor

from bunko.runtime import array_file
from bunko.text import subwords


def main(model: Path, out: Path) -> None:
    """Read the tokenizer, and write its pieces."""
    tokenizer = SentencePieceProcessor(model_file=str(model))
    ids = [number for number in range(len(tokenizer)) if not tokenizer.is_unknown(number)]
    pieces = sorted((tokenizer.id_to_piece(number).encode(), number) for number in ids)
    arrays = {
        "texts": np.frombuffer(b"".join(text for text, _ in pieces), np.uint8),
        "ends": np.cumsum([len(text) for text, _ in pieces], dtype=np.int32),
        "ids": np.array([number for _, number in pieces], np.int32),
        "scores": np.array([tokenizer.get_score(number) for _, number in pieces], np.float32),
    }
    array_file.save_arrays(out, arrays, format_version=subwords.FORMAT, stamp={"name": subwords.MODEL_NAME})
    print(len(pieces), "pieces,", out.stat().st_size, "bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
