"""Paths in, the judged set they name out; and an evaluation in, the files that report it out."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bunko.errors import SourceError
from bunko.evaluation import baseline, beir, dataset, html_report, report, trec
from bunko.evaluation.baseline import Verdict
from bunko.evaluation.dataset import Judged, JudgedDocument
from bunko.evaluation.eval_library import documents_in
from bunko.evaluation.evaluate import Evaluation
from bunko.settings import Settings

DATASET = Path("tests/fixtures/rag_evaluation_dataset.json")
FIXTURE = Path("tests/fixtures/rag_test_documents.json")
OUTPUT = Path(".tmp/rag-evaluation")
PERSIST = Path(".tmp/test_chroma_db")
BASELINE = "baseline.json"


def judged(queries: Path | None, documents: Path | None, kept: Path | None, settings: Settings) -> Judged:
    """Read the set that is named; what is not named is in its usual place, in the kept library, or came with bunko."""
    ours = dataset.shipped()
    asked = _first(queries, DATASET, ours[0])
    if documents is None and kept is not None and asked != ours[0] and not FIXTURE.exists():
        held = documents_in(kept, settings)
        if held:
            found = dataset.load_queries(asked, {one.id for one in held}, where=str(kept))
            return Judged(asked.stem, held, found)
    name = "bunko's own set" if asked == ours[0] else ""
    return dataset.load(asked, _first(documents, FIXTURE, ours[1]), name=name)


def about_tool(queries: Path, known: Collection[str], name: str) -> tuple[Judged, int]:
    """Read questions about documents that a tool holds, and how many judged documents it does not hold any more."""
    found, gone = [], set()
    for query in dataset.load_queries(queries, None):
        gone |= {uri for uri in (*query.grades, *query.negatives) if uri not in known}
        held = replace(
            query,
            grades={uri: grade for uri, grade in query.grades.items() if uri in known},
            sources=tuple(uri for uri in query.sources if uri in known),
            negatives=tuple(uri for uri in query.negatives if uri in known),
        )
        # A question that was answerable and is not any more says nothing about a search.
        if held.answerable or not query.answerable:
            found.append(held)
    if not found:
        raise SourceError(
            f"{queries}:1: none of its questions is about a document of {name}",
            hint="Name the tool that was judged, or judge again: bunko judge.",
        )
    return Judged(queries.stem, (), tuple(found)), len(gone)


def documents(named: Path | None) -> tuple[JudgedDocument, ...]:
    """Read the documents that are named, are in their usual place, or came with bunko."""
    return dataset.load_documents(_first(named, FIXTURE, dataset.shipped()[1]))


def public(corpus: Path, queries: Path, qrels: Path) -> Judged:
    """Read a set in the form public ones have."""
    return beir.load(corpus, queries, qrels)


def _first(named: Path | None, usual: Path, shipped: Path) -> Path:
    if named is not None:
        return named
    return usual if usual.exists() else shipped


@dataclass(frozen=True, slots=True)
class Gate:
    """What an evaluation is held against."""

    path: Path | None = None  # not given: there is nothing to compare with
    needed: bool = False  # whether it must say something about this evaluation
    notice: str = ""  # why what is there is not used


def gate(
    named: Path | None,
    output: Path,
    judged: Judged,
    n_results: int,
    threshold: float | None,
    *,
    saving: bool,
    failing: bool,
) -> Gate:
    """Find the baseline that is named, or the one saved before; one made with other things is refused.

    It is left alone where it was not asked for, or is about to be replaced; whoever wants to fail must have one.
    """
    path = named or output / BASELINE
    if not path.exists() and (saving or (named is None and not failing)):
        return Gate()
    needed = failing or (named is not None and not saving)
    different = baseline.differences(path, judged, n_results, threshold)
    if not different:
        return Gate(path, needed)
    told = f"The baseline {path} does not compare: {'; '.join(different)}"
    if needed:
        raise SourceError(told, hint="Measure as it was measured, or make it anew with --save-baseline.")
    return Gate(notice=f"{told}. It is {'replaced' if saving else 'left out'}.")


def verdict(done: Evaluation, held: Gate, threshold: float) -> Verdict | None:
    """Compare with a baseline; None where there is none, or it is about other modes and nobody asked for it."""
    if held.path is None:
        return None
    found = baseline.check(done, held.path, threshold)
    if found is None and held.needed:
        raise SourceError(
            f"{held.path} says nothing about {', '.join(run.name for run in done.runs)}",
            hint="Choose its modes with --mode, or make it anew with --save-baseline.",
        )
    return found


def save_baseline(done: Evaluation, output: Path, named: Path | None) -> list[Path]:
    """Write the baseline among the reports, and where one was named."""
    paths = [output / BASELINE, *([named] if named else [])]
    for path in paths:
        _write(path, _dumped(baseline.saved(done)))
    return paths


def save_reports(done: Evaluation, found: Verdict | None, output: Path, run_file: Path | None) -> list[Path]:
    """Write report.json, report.md and report.html, and TREC runs if a file is named; return where they are."""
    texts = {
        output / "report.json": _dumped(report.as_json(done, found)),
        output / "report.md": report.as_markdown(done, found),
        output / "report.html": html_report.as_html(done, found),
    }
    if run_file is not None:
        for run in done.runs:
            # Programs expect one run in a file.
            beside = run_file.with_name(f"{run_file.stem}-{_safe(run.name)}{run_file.suffix}")
            texts[run_file if len(done.runs) == 1 else beside] = "".join(f"{line}\n" for line in trec.lines(run))
    for path, text in texts.items():
        _write(path, text)
    return list(texts)


def _safe(name: str) -> str:
    return "".join(one if one.isalnum() or one in "._-=" else "_" for one in name)


def _dumped(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written: {error.strerror or error}", hint="Choose another place with --output-dir."
        ) from error
