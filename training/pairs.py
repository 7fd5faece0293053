"""Read training pairs from JSONL files, plain or compressed with zstd."""

from __future__ import annotations

import io
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def lines(paths: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield every pair with its fields a, b, kind, la, lb, src."""
    for path in paths:
        with path.open("rb") as file:
            reader: Any = file
            if path.suffix == ".zst":
                import zstandard

                reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(file)
            for line in io.TextIOWrapper(reader, encoding="utf-8"):
                yield json.loads(line)


def texts(paths: list[Path], max_per_source: int) -> list[str]:
    """Return texts of all sources in a fixed random order, at most `max_per_source` of each, to keep them balanced."""
    by_source: dict[str, set[str]] = defaultdict(set)
    for line in lines(paths):
        by_source[line["src"]].update((line["a"], line["b"]))
    rng = random.Random(0)
    sampled: list[str] = []
    for source in sorted(by_source):
        source_texts = sorted(by_source[source])
        sampled += rng.sample(source_texts, min(len(source_texts), max_per_source))
    rng.shuffle(sampled)
    return sampled
