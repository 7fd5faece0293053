"""Write the files of a sweep, and load its scores to resume it."""

from __future__ import annotations

import json
from pathlib import Path

from bunko.errors import SourceError
from bunko.evaluation.dataset import read_text_file
from bunko.evaluation.report_store import ReportStore
from bunko.evaluation.sweep.html_report import as_html
from bunko.evaluation.sweep.report import as_csv, as_json, as_markdown
from bunko.evaluation.sweep.result import PointScore, SweepResult, point_key
from bunko.runtime.temporary_files import write_text_file


def save_sweep(result: SweepResult, output: Path) -> list[Path]:
    """Write the reports of a sweep and return their paths; an incomplete sweep has only sweep.json and sweep.csv."""
    texts = {
        "sweep.json": json.dumps(as_json(result), ensure_ascii=False, indent=1) + "\n",
        "sweep.csv": as_csv(result),
    }
    if result.is_complete:
        texts |= {"sweep.md": as_markdown(result), "sweep.html": as_html(result)}
    paths = []
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            # The old scores stay until the new file is complete.
            write_text_file(output / name, text)
            paths.append(output / name)
    except OSError as error:
        raise SourceError(
            f"{output} cannot be written: {error.strerror or error}", hint="Choose another folder with --output-dir."
        ) from error
    return paths


def keep_sweep(result: SweepResult, library_folder: Path, output: Path) -> list[Path]:
    """Keep a finished sweep in the folder of a library, where its page finds it, unless it was written there."""
    store = ReportStore(library_folder)
    if not result.is_complete or output.resolve().is_relative_to(store.folder.resolve()):
        return []
    try:
        return [store.keep(as_json(result))]
    except OSError:  # the reports are in the folder of the command anyway
        return []


def load_scores(path: Path, fingerprint: str) -> dict[str, PointScore]:
    """Return the scores of an earlier sweep over the same queries, documents and settings, by point key."""
    if not path.exists():
        raise SourceError(f"There is no sweep to resume at {path}", hint="Omit --resume to start one.")
    try:
        report = json.loads(read_text_file(path))
        is_same_sweep = report["fingerprint"] == fingerprint
        scores = {
            point_key(point["settings"]): PointScore(
                float(point["tuning"]),
                float(point["held_out"]),
                {name: float(value) for name, value in point["measures"].items()},
            )
            for point in report["points"]
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{path} was not written by bunko sweep", hint="Omit --resume to start again.") from error
    if not is_same_sweep:
        raise SourceError(
            f"{path} belongs to other questions, documents or settings",
            hint="Omit --resume to measure again, or choose another --output-dir.",
        )
    return scores
