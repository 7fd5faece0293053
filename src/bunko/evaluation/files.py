"""Paths in, the judged set they name out; and an evaluation in, the files that report it out."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bunko.errors import SourceError
from bunko.evaluation import baseline, beir, dataset, html_report, report, trec
from bunko.evaluation.baseline import BaselineVerdict
from bunko.evaluation.dataset import JudgedDocument, JudgedSet
from bunko.evaluation.eval_library import stored_documents
from bunko.evaluation.evaluate import Evaluation
from bunko.settings import Settings

DATASET_PATH = Path("tests/fixtures/rag_evaluation_dataset.json")
FIXTURE_PATH = Path("tests/fixtures/rag_test_documents.json")
OUTPUT_DIR = Path(".tmp/rag-evaluation")
PERSIST_DIR = Path(".tmp/test_chroma_db")
BASELINE_FILE = "baseline.json"


def find_judged_set(
    queries: Path | None, documents: Path | None, persist_dir: Path | None, settings: Settings
) -> JudgedSet:
    """Read the set that is named; what is not named is in its usual place, in the kept library, or came with bunko."""
    ours = dataset.bundled_files()
    asked = _first_existing(queries, DATASET_PATH, ours[0])
    if documents is None and persist_dir is not None and asked != ours[0] and not FIXTURE_PATH.exists():
        held = stored_documents(persist_dir, settings)
        if held:
            found = dataset.load_queries(asked, {one.id for one in held}, corpus_name=str(persist_dir))
            return JudgedSet(asked.stem, held, found)
    name = "bunko's own set" if asked == ours[0] else ""
    return dataset.load_judged_set(asked, _first_existing(documents, FIXTURE_PATH, ours[1]), name=name)


def load_tool_queries(queries: Path, known_uris: Collection[str], tool_name: str) -> tuple[JudgedSet, int]:
    """Read questions about documents that a tool holds, and how many judged documents it does not hold any more."""
    found, gone = [], set()
    for query in dataset.load_queries(queries, None):
        gone |= {uri for uri in (*query.grades, *query.negatives) if uri not in known_uris}
        held = replace(
            query,
            grades={uri: grade for uri, grade in query.grades.items() if uri in known_uris},
            expected_sources=tuple(uri for uri in query.expected_sources if uri in known_uris),
            negatives=tuple(uri for uri in query.negatives if uri in known_uris),
        )
        # A question that was answerable and is not any more says nothing about a search.
        if held.is_answerable or not query.is_answerable:
            found.append(held)
    if not found:
        raise SourceError(
            f"{queries}:1: none of its questions is about a document of {tool_name}",
            hint="Name the tool that was judged, or judge again: bunko judge.",
        )
    return JudgedSet(queries.stem, (), tuple(found)), len(gone)


def find_documents(path: Path | None) -> tuple[JudgedDocument, ...]:
    """Read the documents that are named, are in their usual place, or came with bunko."""
    return dataset.load_documents(_first_existing(path, FIXTURE_PATH, dataset.bundled_files()[1]))


def load_public_set(corpus: Path, queries: Path, qrels: Path) -> JudgedSet:
    """Read a set in the form public ones have."""
    return beir.load_beir(corpus, queries, qrels)


def _first_existing(path: Path | None, default: Path, bundled: Path) -> Path:
    if path is not None:
        return path
    return default if default.exists() else bundled


@dataclass(frozen=True, slots=True)
class BaselineGate:
    """What an evaluation is held against."""

    path: Path | None = None  # not given: there is nothing to compare with
    is_required: bool = False  # whether it must say something about this evaluation
    notice: str = ""  # why what is there is not used


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
    """Find the baseline that is named, or the one saved before; one made with other things is refused.

    It is left alone where it was not asked for, or is about to be replaced; whoever wants to fail must have one.
    """
    path = baseline_path or output / BASELINE_FILE
    if not path.exists() and (will_save or (baseline_path is None and not fail_on_regression)):
        return BaselineGate()
    needed = fail_on_regression or (baseline_path is not None and not will_save)
    different = baseline.baseline_mismatches(path, judged_set, n_results, threshold)
    if not different:
        return BaselineGate(path, needed)
    told = f"The baseline {path} does not compare: {'; '.join(different)}"
    if needed:
        raise SourceError(told, hint="Measure as it was measured, or make it anew with --save-baseline.")
    return BaselineGate(notice=f"{told}. It is {'replaced' if will_save else 'left out'}.")


def check_gate(evaluation: Evaluation, gate: BaselineGate, threshold: float) -> BaselineVerdict | None:
    """Compare with a baseline; None where there is none, or it is about other modes and nobody asked for it."""
    if gate.path is None:
        return None
    found = baseline.compare_with_baseline(evaluation, gate.path, threshold)
    if found is None and gate.is_required:
        raise SourceError(
            f"{gate.path} says nothing about {', '.join(run.name for run in evaluation.runs)}",
            hint="Choose its modes with --mode, or make it anew with --save-baseline.",
        )
    return found


def save_baseline(evaluation: Evaluation, output: Path, baseline_path: Path | None) -> list[Path]:
    """Write the baseline among the reports, and where one was named."""
    paths = [output / BASELINE_FILE, *([baseline_path] if baseline_path else [])]
    for path in paths:
        _write_file(path, _json_text(baseline.baseline_data(evaluation)))
    return paths


def save_reports(
    evaluation: Evaluation, verdict: BaselineVerdict | None, output: Path, run_file: Path | None
) -> list[Path]:
    """Write report.json, report.md and report.html, and TREC runs if a file is named; return where they are."""
    texts = {
        output / "report.json": _json_text(report.as_json(evaluation, verdict)),
        output / "report.md": report.as_markdown(evaluation, verdict),
        output / "report.html": html_report.as_html(evaluation, verdict),
    }
    if run_file is not None:
        for run in evaluation.runs:
            # Programs expect one run in a file.
            beside = run_file.with_name(f"{run_file.stem}-{_safe_file_name(run.name)}{run_file.suffix}")
            texts[run_file if len(evaluation.runs) == 1 else beside] = "".join(
                f"{line}\n" for line in trec.trec_lines(run)
            )
    for path, text in texts.items():
        _write_file(path, text)
    return list(texts)


def _safe_file_name(name: str) -> str:
    return "".join(one if one.isalnum() or one in "._-=" else "_" for one in name)


def _json_text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _write_file(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written: {error.strerror or error}", hint="Choose another place with --output-dir."
        ) from error
