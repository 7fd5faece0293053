"""Keep the reports of evaluations and sweeps in the folder of a library, and list them."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NoReturn

from bunko.errors import UnknownName
from bunko.runtime.temporary_files import write_text_file

FOLDER = "evaluations"
Kind = Literal["evaluation", "sweep"]

_MAX_REPORTS = 200  # that are listed, and kept of those that are written here
_MAX_BYTES = 50_000_000
_MAX_DIGITS = 18
# What reading a file from elsewhere may raise that is no report.
_MALFORMED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, StopIteration,
)  # fmt: skip
_FILES: Mapping[str, Kind] = {"report.json": "evaluation", "sweep.json": "sweep"}


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report, and what a list shows of it."""

    id: str
    path: Path
    kind: Kind
    created_at: str
    name: str  # of the judged set
    queries: int
    measure: str
    score: float | None


class ReportStore:
    """The reports in one folder: files that were kept there, and folders that `--output-dir` has named."""

    def __init__(self, library_folder: Path) -> None:
        self.folder = library_folder / FOLDER

    def keep(self, report: Mapping[str, Any]) -> Path:
        """Keep a report as a file of its own; the oldest make room."""
        created_at = str(report["created_at"])
        stem = "".join(character for character in created_at[:19] if character.isalnum())
        self.folder.mkdir(parents=True, exist_ok=True)
        number, path = 2, self.folder / f"{stem}.json"
        while path.exists():
            path, number = self.folder / f"{stem}-{number}.json", number + 1
        write_text_file(path, json.dumps(report, ensure_ascii=False, indent=1) + "\n")
        for old in sorted(self.folder.glob("*.json"))[:-_MAX_REPORTS]:
            old.unlink(missing_ok=True)
        return path

    def all(self) -> list[StoredReport]:
        """Return the reports, the newest first; a file that is none is left out."""
        reports = [report for path in self._paths() if (report := _describe_file(path)) is not None]
        return sorted(reports, key=lambda report: report.created_at, reverse=True)[:_MAX_REPORTS]

    def load(self, report_id: str) -> tuple[StoredReport, dict[str, Any]]:
        """Return a report with its content."""
        for report in self.all():
            if report.id == report_id:
                return report, _read(report.path)
        raise UnknownName(f"There is no report {report_id[:80]!r}", hint="Choose one of the list.")

    def _paths(self) -> Iterator[Path]:
        if not self.folder.is_dir():
            return
        yield from self.folder.glob("*.json")
        for name in _FILES:
            yield from self.folder.glob(f"*/{name}")


def _describe_file(path: Path) -> StoredReport | None:
    try:
        state = path.stat()
    except OSError:  # just deleted
        return None
    if not stat.S_ISREG(state.st_mode):  # reading a pipe or a device may never end
        return None
    return _describe(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1000)
def _describe(path: Path, changed_at: int, size: int) -> StoredReport | None:
    """Return what a list shows of a file, read once for each of its states."""
    if size > _MAX_BYTES:
        return None
    try:
        report = _read(path)
        kind: Kind = "sweep" if "grid" in report else "evaluation"
        is_flat = path.name not in _FILES
        measure, score = _main_score(report, kind)
        return StoredReport(
            path.stem if is_flat else f"{path.parent.name}.{kind}", path, kind, str(report["created_at"]),
            str(report["judged"]["name"]), int(report["judged"]["queries"]), measure, score,
        )  # fmt: skip
    except _MALFORMED:
        return None


def _read(path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    report: dict[str, Any] = json.loads(text, parse_constant=_refuse_constant, parse_int=_parse_whole_number)
    json.dumps(report, ensure_ascii=False).encode("utf-8")  # fails for half of a character
    return report


def _parse_whole_number(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("a number is too large")
    return int(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _main_score(report: dict[str, Any], kind: Kind) -> tuple[str, float | None]:
    if kind == "sweep":
        return str(report["measure"]), float(report["best"]["held_out"]) if "best" in report else None
    run = report["modes"][report["mode"]]
    measures = {name: value for name, value in run["measures"].items() if isinstance(value, int | float)}
    measure = next(iter(measures))
    return measure, float(measures[measure])
