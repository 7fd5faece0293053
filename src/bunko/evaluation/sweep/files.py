"""A sweep in, its files out; and the first of them back in, to go on from."""

from __future__ import annotations

import json
from pathlib import Path

from bunko.errors import SourceError
from bunko.evaluation.dataset import read_text_file
from bunko.evaluation.sweep.html_report import as_html
from bunko.evaluation.sweep.report import as_csv, as_json, as_markdown
from bunko.evaluation.sweep.result import PointScore, SweepResult, point_key


def save_sweep(result: SweepResult, output: Path) -> list[Path]:
    """Write what a sweep found; one that is not complete only as sweep.json and sweep.csv. Return where they are."""
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
            path, fresh = output / name, output / f"{name}.tmp"
            # Written beside and renamed: what was measured before stays until the new file is whole.
            fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
            paths.append(fresh.replace(path))
    except OSError as error:
        raise SourceError(
            f"{output} cannot be written: {error.strerror or error}", hint="Choose another place with --output-dir."
        ) from error
    return paths


def load_scores(path: Path, fingerprint: str) -> dict[str, PointScore]:
    """Return the scores that a former sweep of the same questions and settings has written, by point."""
    if not path.exists():
        raise SourceError(f"There is no sweep to go on with at {path}", hint="Leave --resume out to begin one.")
    try:
        held = json.loads(read_text_file(path))
        same = held["fingerprint"] == fingerprint
        scores = {
            point_key(one["settings"]): PointScore(
                float(one["tuning"]), float(one["held_out"]), {name: float(v) for name, v in one["measures"].items()}
            )
            for one in held["points"]
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"{path} is not what a sweep has written", hint="Leave --resume out to begin anew."
        ) from error
    if not same:
        raise SourceError(
            f"{path} is about other questions, documents or settings",
            hint="Leave --resume out to measure anew, or choose another --output-dir.",
        )
    return scores
