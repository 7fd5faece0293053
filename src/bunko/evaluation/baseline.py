"""An evaluation and a file in, whether it has become worse than the file says out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bunko.errors import SourceError
from bunko.evaluation.dataset import JudgedSet, read_text_file
from bunko.evaluation.evaluate import Evaluation, PreviousReport
from bunko.evaluation.measures import F1

_TOLERANCE = 1e-9
_BASELINE_HINT = "Make it with: bunko evaluate … --save-baseline."
_REPORT_HINT = "Name a report.json that bunko evaluate wrote."


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """How the judging measure of one mode has changed since the baseline."""

    mode: str
    before: float
    now: float
    regressed: bool


@dataclass(frozen=True, slots=True)
class BaselineVerdict:
    """What a baseline says about an evaluation."""

    path: str
    threshold: float
    changes: tuple[BaselineChange, ...]

    @property
    def has_regression(self) -> bool:
        """Say whether any mode has lost more than is allowed."""
        return any(change.regressed for change in self.changes)


def baseline_mismatches(path: Path, judged_set: JudgedSet, n_results: int, threshold: float | None) -> list[str]:
    """Return what a baseline was made with and this evaluation is not: scores of different things do not compare."""
    held = _load_report_json(path, "baseline", _BASELINE_HINT)
    found = []
    if _judged_set_digest(held) not in ("", judged_set.digest):
        found.append("it is about other questions or judgements")
    if held.get("n_results", n_results) != n_results:
        found.append(f"n_results is {held['n_results']} there and {n_results} here")
    settings = held.get("settings")
    before = settings.get("threshold", threshold) if isinstance(settings, dict) else threshold
    if before != threshold:
        found.append(f"threshold is {_format_threshold(before)} there and {_format_threshold(threshold)} here")
    return found


def compare_with_baseline(evaluation: Evaluation, path: Path, threshold: float) -> BaselineVerdict | None:
    """Compare the F1 of each mode with a baseline; a loss of more than the threshold is a regression.

    None: it knows none of the modes.
    """
    held = _load_report_json(path, "baseline", _BASELINE_HINT)
    changes = []
    for run in evaluation.runs:
        before = _baseline_f1(held, run.name, path)
        if before is not None:
            now = run.measures.get(F1, 0.0)
            changes.append(BaselineChange(run.name, before, now, before - now > threshold + _TOLERANCE))
    return BaselineVerdict(str(path), threshold, tuple(changes)) if changes else None


def load_report(path: Path) -> PreviousReport:
    """Read what a report says of each question in each mode."""
    held = _load_report_json(path, "report", _REPORT_HINT)
    found: dict[str, dict[str, dict[str, float]]] = {}
    try:
        for mode, of_mode in held["modes"].items():
            found[mode] = {}
            for row in of_mode["queries"]:
                for measure, value in row["measures"].items():
                    found[mode].setdefault(measure, {})[str(row["id"])] = float(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(
            f"{path}:1: there are no single questions in it", hint="Name a report.json, which has them."
        ) from error
    number = held.get("n_results")
    return PreviousReport(path.name, dict(found), _judged_set_digest(held), number if isinstance(number, int) else None)


def baseline_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return what a baseline file holds: the means of each mode, and which questions they are about."""
    modes = {run.name: {"measures": {name: round(v, 6) for name, v in run.measures.items()}} for run in evaluation.runs}
    facts = {
        "name": evaluation.judged_set.name,
        "digest": evaluation.judged_set.digest,
        "queries": len(evaluation.judged_set.queries),
    }
    return {"judged": facts, "n_results": evaluation.plan.n_results, "settings": evaluation.settings, "modes": modes}


def _load_report_json(path: Path, kind: str, hint: str) -> dict[str, Any]:
    if not path.exists():
        raise SourceError(f"There is no {kind} {path}", hint=hint)
    try:
        held = json.loads(read_text_file(path))
    except (json.JSONDecodeError, RecursionError) as error:
        line, reason = getattr(error, "lineno", 1), getattr(error, "msg", "nested too deep")
        raise SourceError(f"{path}:{line}: this is not JSON: {reason}", hint=hint) from error
    if not isinstance(held, dict) or not isinstance(held.get("modes"), dict):
        raise SourceError(f'{path}:1: there are no "modes" in it', hint=hint)
    return held


def _format_threshold(value: object) -> str:
    return "none" if value is None else str(value)


def _judged_set_digest(data: Mapping[str, Any]) -> str:
    judged = data.get("judged")
    return str(judged.get("digest", "")) if isinstance(judged, dict) else ""


def _baseline_f1(data: Mapping[str, Any], mode: str, path: Path) -> float | None:
    of_mode = data["modes"].get(mode)
    if of_mode is None:
        return None
    try:
        return float(of_mode["measures"][F1])
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f'{path}:1: there is no "{F1}" of {mode} in it', hint=_BASELINE_HINT) from error
