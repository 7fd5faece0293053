"""A large file of memos is imported without holding its texts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slow.memory import run_bunko

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="peak memory is told in its own unit"),
]

# Long entries, so that what a file says outweighs what is known of each entry: 30 MB in 3,000 of them.
ENTRIES, SENTENCE, TIMES = 3_000, "予算と日程を決めて、次の会議までに資料を直すことにした。", 120
# What the same import of three entries takes, and beside that a few batches in the making and the search file: all
# texts at once are above 60 MB, and were there as bytes, as text, as lines and as entries.
MOST = 110_000_000


def _entries() -> Iterator[tuple[str, str, str]]:
    for number in range(ENTRIES):
        yield f"会議{number}", f"20{number % 20:02d}-01-15", f"第{number}回。{SENTENCE * TIMES}"


def _changelog(path: Path, most: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for _, (title, day, text) in zip(range(most), _entries(), strict=False):
            file.write(f"* {title} {day}\n  {text}\n\n")


def _jsonl(path: Path, most: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for _, (title, day, text) in zip(range(most), _entries(), strict=False):
            file.write(json.dumps({"title": title, "date": day, "text": text}, ensure_ascii=False) + "\n")


def _build(source: Path, library: Path) -> tuple[int, str]:
    return run_bunko(["build", "-i", source, "-o", library, "--skip-embeddings"], library)


@pytest.mark.parametrize(("name", "write"), [("ChangeLog", _changelog), ("log.jsonl", _jsonl)])
def test_a_file_of_thirty_megabytes_is_imported_in_little_memory(tmp_path: Path, name: str, write: object) -> None:
    assert callable(write)
    (tmp_path / "few").mkdir()
    (tmp_path / "many").mkdir()
    write(tmp_path / "few" / name, 3)
    write(tmp_path / "many" / name, ENTRIES)
    assert (tmp_path / "many" / name).stat().st_size > 28_000_000
    few, _ = _build(tmp_path / "few" / name, tmp_path / "library-few")
    many, printed = _build(tmp_path / "many" / name, tmp_path / "library-many")
    assert f"Added: {ENTRIES}" in printed
    assert many - few < MOST
