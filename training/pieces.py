"""Write the pieces of the tokenizer in the order of their bytes, for queries that are split without it.

usage: python training/pieces.py
"""

from __future__ import annotations

import numpy as np
from sentencepiece import SentencePieceProcessor

from bunko.runtime import array_file
from bunko.text import subwords
from bunko.text.subwords import MODEL_NAME, MODEL_PATH


def main() -> None:
    """Read the tokenizer, and write the file beside it."""
    tokenizer = SentencePieceProcessor(model_file=str(MODEL_PATH))
    ids = [number for number in range(len(tokenizer)) if not tokenizer.is_unknown(number)]
    pieces = sorted((tokenizer.id_to_piece(number).encode(), number) for number in ids)
    arrays = {
        "texts": np.frombuffer(b"".join(text for text, _ in pieces), np.uint8),
        "ends": np.cumsum([len(text) for text, _ in pieces], dtype=np.int32),
        "ids": np.array([number for _, number in pieces], np.int32),
        "scores": np.array([tokenizer.get_score(number) for _, number in pieces], np.float32),
    }
    path = subwords.PIECES_PATH
    array_file.save_arrays(path, arrays, format_version=subwords.FORMAT, stamp={"name": MODEL_NAME})
    print(len(pieces), "pieces,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
