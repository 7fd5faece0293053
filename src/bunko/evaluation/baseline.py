"""Find the baseline of an evaluation, and compare both to detect regressions."""

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

BASELINE_FILE = "baseline.json"
_TOLERANCE = 1e-9
_BASELINE_HINT = "Create it with: bunko evaluate … --save-baseline."
_REPORT_HINT = "Name a report.json that bunko evaluate wrote."


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """The F1 of one mode in the baseline and now."""

    mode: str
    before: float
    now: float
    regressed: bool


@dataclass(frozen=True, slots=True)
class BaselineVerdict:
    """The comparison of an evaluation with a baseline."""

    path: str
    threshold: float
    changes: tuple[BaselineChange, ...]

    @property
    def has_regression(self) -> bool:
        """Return whether any mode lost more than the threshold."""
        return any(change.regressed for change in self.changes)


def baseline_mismatches(path: Path, judged_set: JudgedSet, n_results: int, threshold: float | None) -> list[str]:
    """Return the reasons why a baseline is not comparable: other judgements, number of results or threshold."""
    report = _load_report_json(path, "baseline", _BASELINE_HINT)
    mismatches = []
    if _judged_set_digest(report) not in ("", judged_set.digest):
        mismatches.append("it has other questions or judgements")
    if report.get("n_results", n_results) != n_results:
        mismatches.append(f"n_results is {report['n_results']} there and {n_results} here")
    settings = report.get("settings")
    before = settings.get("threshold", threshold) if isinstance(settings, dict) else threshold
    if before != threshold:
        mismatches.append(f"threshold is {_format_threshold(before)} there and {_format_threshold(threshold)} here")
    return mismatches


def compare_with_baseline(evaluation: Evaluation, path: Path, threshold: float) -> BaselineVerdict | None:
    """Compare the F1 of each mode with a baseline; a loss above the threshold is a regression.

    Return None if the baseline contains none of the modes.
    """
    report = _load_report_json(path, "baseline", _BASELINE_HINT)
    changes = []
    for run in evaluation.runs:
        before = _baseline_f1(report, run.name, path)
        if before is not None:
            now = run.measures.get(F1, 0.0)
            changes.append(BaselineChange(run.name, before, now, before - now > threshold + _TOLERANCE))
    return BaselineVerdict(str(path), threshold, tuple(changes)) if changes else None


@dataclass(frozen=True, slots=True)
class BaselineGate:
    """The baseline that an evaluation is compared with."""

    path: Path | None = None  # None: there is no baseline
    is_required: bool = False  # whether it must cover a mode of the evaluation
    notice: str = ""  # why an existing baseline is not used


def find_baseline(
    baseline_path: Path | None,
    output: Path,
    judged_set: JudgedSet,
    n_results: int,
    threshold: float | None,
    *,
    will_save: bool,
    fail_on_regression: bool,
) -> BaselineGate:
    """Find the given baseline, or the one saved before; fail if it was measured differently.

    A different baseline is only skipped, with a notice, if it was not asked for or is about to be replaced.
    `fail_on_regression` requires one.
    """
    path = baseline_path or output / BASELINE_FILE
    if not path.exists() and (will_save or (baseline_path is None and not fail_on_regression)):
        return BaselineGate()
    is_required = fail_on_regression or (baseline_path is not None and not will_save)
    mismatches = baseline_mismatches(path, judged_set, n_results, threshold)
    if not mismatches:
        return BaselineGate(path, is_required)
    message = f"The baseline {path} is not comparable: {'; '.join(mismatches)}"
    if is_required:
        raise SourceError(message, hint="Use the same options as the baseline, or replace it with --save-baseline.")
    return BaselineGate(notice=f"{message}. It is {'replaced' if will_save else 'ignored'}.")


def check_gate(evaluation: Evaluation, gate: BaselineGate, threshold: float) -> BaselineVerdict | None:
    """Compare with the baseline; return None if there is none, or an optional one covers other modes only."""
    if gate.path is None:
        return None
    verdict = compare_with_baseline(evaluation, gate.path, threshold)
    if verdict is None and gate.is_required:
        raise SourceError(
            f"{gate.path} has no scores for {', '.join(run.name for run in evaluation.runs)}",
            hint="Choose one of its modes with --mode, or replace it with --save-baseline.",
        )
    return verdict


def load_report(path: Path) -> PreviousReport:
    """Load the measures of each query in each mode from a report."""
    report = _load_report_json(path, "report", _REPORT_HINT)
    values: dict[str, dict[str, dict[str, float]]] = {}
    try:
        for mode, mode_report in report["modes"].items():
            values[mode] = {}
            for row in mode_report["queries"]:
                for measure, value in row["measures"].items():
                    values[mode].setdefault(measure, {})[str(row["id"])] = float(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(
            f"{path}:1: the report has no scores of single questions", hint="Name a report.json, which has them."
        ) from error
    n_results = report.get("n_results")
    return PreviousReport(
        path.name, dict(values), _judged_set_digest(report), n_results if isinstance(n_results, int) else None
    )


def baseline_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return the content of a baseline file: the means of each mode, and the judged set and settings they belong to."""
    modes = {
        run.name: {"measures": {name: round(value, 6) for name, value in run.measures.items()}}
        for run in evaluation.runs
    }
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
        report = json.loads(read_text_file(path))
    except (json.JSONDecodeError, RecursionError) as error:
        line, reason = getattr(error, "lineno", 1), getattr(error, "msg", "nested too deeply")
        raise SourceError(f"{path}:{line}: invalid JSON: {reason}", hint=hint) from error
    if not isinstance(report, dict) or not isinstance(report.get("modes"), dict):
        raise SourceError(f'{path}:1: "modes" is missing', hint=hint)
    return report


def _format_threshold(value: object) -> str:
    return "none" if value is None else str(value)


def _judged_set_digest(data: Mapping[str, Any]) -> str:
    judged = data.get("judged")
    return str(judged.get("digest", "")) if isinstance(judged, dict) else ""


def _baseline_f1(data: Mapping[str, Any], mode: str, path: Path) -> float | None:
    mode_report = data["modes"].get(mode)
    if mode_report is None:
        return None
    try:
        return float(mode_report["measures"][F1])
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f'{path}:1: "{F1}" of mode {mode} is missing', hint=_BASELINE_HINT) from error
