"""Write down what was asked and what was answered, and compare two such recordings byte by byte."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

_TIME = r"[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"
_MAX_CONTEXT_LINES = 2


class Recording:
    """A folder with a file for each door, whose lines are questions with their answers."""

    def __init__(self, folder: Path, replacements: dict[str, str]) -> None:
        self.folder = folder
        self.replacements = replacements
        self._started = datetime.now(UTC)
        self._counts: dict[str, int] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.jsonl"):
            old.unlink()

    @property
    def counts(self) -> dict[str, int]:
        """How many answers each door has given."""
        return dict(self._counts)

    def add(self, door: str, ask: object, answer: object) -> None:
        """Write an answer of a door, without what differs between two runs of the same program."""
        self._counts[door] = self._counts.get(door, 0) + 1
        line = json.dumps({"ask": self._clean(ask), "answer": self._clean(answer)}, ensure_ascii=False)
        with (self.folder / f"{door}.jsonl").open("ab") as file:
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._clean_text(value)
        if isinstance(value, dict):
            return {self._clean_text(str(key)): self._clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        return value

    def _clean_text(self, text: str) -> str:
        """Replace places and times of this run, and the mark that protects excerpts, which is random."""
        for old, new in self.replacements.items():
            for written in dict.fromkeys((old, quote(old), quote(old, safe=""))):
                text = text.replace(written, new)
        days = {self._started.astimezone() + timedelta(days) for days in (-1, 0, 1)}
        for day in sorted({f"{date:%Y-%m-%d}" for date in days}):
            text = re.sub(day + _TIME, "TIME", text)
            text = text.replace(day, "TODAY")
        return re.sub(r"excerpt-[0-9a-f]{6}\b", "excerpt-RANDOM", text)


def differences(first: Path, second: Path, pattern: str = "*") -> Iterator[str]:
    """Yield a readable difference for each answer that is not the same in two recordings, in files of a pattern."""
    names = sorted({path.name for folder in (first, second) for path in folder.glob(f"{pattern}.jsonl")})
    if not names:
        yield f"There are no recordings in {first} and {second}"
    for name in names:
        missing = [folder for folder in (first, second) if not (folder / name).exists()]
        if missing:
            yield f"{name} is missing in {missing[0]}"
        elif (first / name).read_bytes() != (second / name).read_bytes():
            yield from _file_differences(name, first / name, second / name)


def _file_differences(name: str, first: Path, second: Path) -> Iterator[str]:
    before, after = _answers(first), _answers(second)
    for ask in before:
        if ask not in after:
            yield f"{name}: not asked any more: {ask}"
        elif before[ask] != after[ask]:
            rows = difflib.unified_diff(_rows(before[ask]), _rows(after[ask]), lineterm="", n=_MAX_CONTEXT_LINES)
            yield "\n".join([f"{name}: {ask}", *("    " + row for row in list(rows)[2:])])
    for ask in after:
        if ask not in before:
            yield f"{name}: asked anew: {ask}"
    if before == after:
        yield f"{name}: the same answers in another order, or written in other bytes"


def _answers(path: Path) -> dict[str, str]:
    """Return the answers as they are written, by question; a repeated question gets a number."""
    answers: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        ask = json.dumps(row["ask"], ensure_ascii=False)
        count = 1
        while (key := ask if count == 1 else f"{ask} ({count})") in answers:
            count += 1
        answers[key] = json.dumps(row["answer"], ensure_ascii=False)
    return answers


def _rows(answer: str) -> list[str]:
    """Return an answer as lines: JSON with one value per line, and texts line by line."""
    return list(_value_rows(json.loads(answer), ""))


def _value_rows(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _value_rows(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _value_rows(item, f"{name}[{index}]")
    elif isinstance(value, str) and "\n" in value:
        yield f"{name}:"
        yield from (f"| {line}" for line in value.split("\n"))
    else:
        yield f"{name}: {json.dumps(value, ensure_ascii=False)}"
