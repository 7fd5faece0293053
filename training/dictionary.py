"""Write the compact dictionary from unidic-lite: only the columns that bunko reads, each string and each context once.

usage: python training/dictionary.py FOLDER_OF_UNIDIC src/bunko_dictionary

MeCab gives the same words with it, from 40 % of the bytes.
"""

from __future__ import annotations

import csv
import io
import shutil
import struct
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# The columns of UniDic that are read, by number.
PARTS_OF_SPEECH, INFLECTION, LEMMA, WRITTEN, PRONUNCIATION, BASE_FORM, READING = slice(0, 4), 4, 7, 8, 9, 10, 17
LICENCES = ("AUTHORS", "BSD", "COPYING", "GPL", "LGPL")

# A compiled dictionary of MeCab: ten numbers, a character set of 32 bytes, a double array, tokens, features.
HEADER = struct.Struct("<10I32s")
MAGIC, LEFT_SIZE, RIGHT_SIZE, DOUBLE_ARRAY_SIZE, TOKENS_SIZE, FEATURES_SIZE = 0, 4, 5, 6, 7, 8
SIZE_CHECK = 0xEF718F77
TOKEN = np.dtype([("left", "<u2"), ("right", "<u2"), ("rest", "<u4"), ("feature", "<u4"), ("compound", "<u4")])


def main(source: Path, out: Path) -> None:
    """Write the files of the dictionary."""
    out.mkdir(parents=True, exist_ok=True)
    new_left, new_right = merge_contexts(source / "matrix.bin", out / "matrix.bin")
    for name in ("sys.dic", "unk.dic"):
        write_dictionary(source / name, out / name, new_left, new_right)
    shutil.copy(source / "char.bin", out)
    for name in LICENCES:
        shutil.copy(source / name, out)


def merge_contexts(source: Path, target: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Write the matrix with equal rows and columns once, and return the new number of each old column and row."""
    numbers = np.fromfile(source, "<i2")
    width, height = numbers[:2].astype("<u2").tolist()
    matrix = numbers[2:].reshape(height, width)
    rows, new_rows = _merge(matrix)
    columns, new_columns = _merge(np.ascontiguousarray(matrix.T))
    merged = np.ascontiguousarray(matrix[np.ix_(rows, columns)])
    target.write_bytes(struct.pack("<HH", len(columns), len(rows)) + merged.tobytes())
    return new_rows, new_columns


def _merge(rows: npt.NDArray[Any]) -> tuple[list[int], npt.NDArray[Any]]:
    """Return a row of each kind, in order (the first stays first), and the new number of each row."""
    kinds: dict[bytes, int] = {}
    numbers = [kinds.setdefault(row.tobytes(), len(kinds)) for row in rows]
    first = [numbers.index(kind) for kind in range(len(kinds))]
    return first, np.array(numbers, "<u2")


def write_dictionary(source: Path, target: Path, new_left: npt.NDArray[Any], new_right: npt.NDArray[Any]) -> None:
    """Write a compiled dictionary with fewer columns in its features, and with the contexts renumbered."""
    data = source.read_bytes()
    *header, charset = HEADER.unpack_from(data)
    tokens_start = HEADER.size + header[DOUBLE_ARRAY_SIZE]
    features_start = tokens_start + header[TOKENS_SIZE]
    tokens = np.frombuffer(data[tokens_start:features_start], TOKEN).copy()
    features = data[features_start:]
    pool = bytearray()
    offset_by_feature: dict[bytes, int] = {}
    new_offsets: dict[int, int] = {}
    for offset in np.unique(tokens["feature"]).tolist():
        feature = _shorten(features[offset : features.index(b"\0", offset)])
        if feature not in offset_by_feature:
            offset_by_feature[feature] = len(pool)
            pool += feature + b"\0"
        new_offsets[offset] = offset_by_feature[feature]
    tokens["feature"] = [new_offsets[offset] for offset in tokens["feature"].tolist()]
    tokens["left"], tokens["right"] = new_left[tokens["left"]], new_right[tokens["right"]]
    # To MeCab, the left of two words is the one whose right context counts.
    header[LEFT_SIZE], header[RIGHT_SIZE] = int(new_right.max()) + 1, int(new_left.max()) + 1
    header[FEATURES_SIZE] = len(pool)
    size = features_start + len(pool)
    header[MAGIC] = size ^ SIZE_CHECK
    target.write_bytes(
        HEADER.pack(*header, charset) + data[HEADER.size : tokens_start] + tokens.tobytes() + bytes(pool)
    )


def _shorten(feature: bytes) -> bytes:
    """Return the columns that bunko reads, so that many words share one text.

    These are four parts of speech, the type of inflection, the lemma, the pronunciation, the reading if it is another
    one, and how the word becomes its base form: the number of characters to take away, and what to add.
    """
    values = next(csv.reader([feature.decode()]))
    shorter = values[PARTS_OF_SPEECH] + values[INFLECTION : INFLECTION + 1]
    if len(values) > READING:  # else the group of unknown words
        reading = "" if values[READING] == values[PRONUNCIATION] else values[READING]
        ending = _ending(values[WRITTEN], values[BASE_FORM])
        shorter += [values[LEMMA], values[PRONUNCIATION], reading, ending]
    row = io.StringIO()
    # MeCab crashes on a column that is missing or empty at the end.
    csv.writer(row, lineterminator="").writerow([*shorter, "*"])
    return row.getvalue().encode()


def _ending(written: str, base_form: str) -> str:
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(written, base_form, strict=False)))
    return f"{len(written) - stem}-{base_form[stem:]}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
