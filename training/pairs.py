"""Files of training pairs in (JSONL, compressed with zstd), their lines out, and the texts of all sources evenly."""

from __future__ import annotations

import io
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def lines(paths: list[Path]) -> Iterator[dict[str, Any]]:
    """Return every pair as it is written: a, b, kind, la, lb, src."""
    import zstandard

    for path in paths:
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(file)
            for line in io.TextIOWrapper(reader, encoding="utf-8"):
                yield json.loads(line)


def texts(paths: list[Path], most: int) -> list[str]:
    """Return texts of all sources in a fixed random order, at most so many of one: none may drown the others."""
    by_source: dict[str, set[str]] = defaultdict(set)
    for line in lines(paths):
        by_source[line["src"]].update((line["a"], line["b"]))
    chance = random.Random(0)
    found: list[str] = []
    for source in sorted(by_source):
        own = sorted(by_source[source])
        found += chance.sample(own, min(len(own), most))
    chance.shuffle(found)
    return found
