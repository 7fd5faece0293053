"""Find the files of an evaluation and write its reports."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from bunko.errors import SourceError
from bunko.evaluation import baseline, beir, dataset, html_report, report
from bunko.evaluation.baseline import BaselineVerdict
from bunko.evaluation.dataset import JudgedDocument, JudgedSet
from bunko.evaluation.eval_library import stored_documents
from bunko.evaluation.evaluate import Evaluation
from bunko.evaluation.report_store import ReportStore
from bunko.evaluation.run import Run
from bunko.settings import Settings

DATASET_PATH = Path("tests/fixtures/rag_evaluation_dataset.json")
FIXTURE_PATH = Path("tests/fixtures/rag_test_documents.json")
OUTPUT_DIR = Path(".tmp/rag-evaluation")
PERSIST_DIR = Path(".tmp/test_chroma_db")


def find_judged_set(
    queries: Path | None, documents: Path | None, persist_dir: Path | None, settings: Settings
) -> JudgedSet:
    """Load the judged set from the given paths, else from the default paths, the persisted library, or the bundle."""
    bundled = dataset.bundled_files()
    queries_path = _first_existing(queries, DATASET_PATH, bundled[0])
    if documents is None and persist_dir is not None and queries_path != bundled[0] and not FIXTURE_PATH.exists():
        judged_documents = stored_documents(persist_dir, settings)
        if judged_documents:
            document_ids = {document.id for document in judged_documents}
            notices: list[str] = []
            judged_queries = dataset.load_queries(queries_path, document_ids, notices)
            return JudgedSet(queries_path.stem, judged_documents, judged_queries, tuple(notices))
    name = "bunko's own set" if queries_path == bundled[0] else ""
    return dataset.load_judged_set(queries_path, _first_existing(documents, FIXTURE_PATH, bundled[1]), name=name)


def load_tool_queries(queries: Path, known_uris: Collection[str], tool_name: str) -> tuple[JudgedSet, int]:
    """Load the queries about documents of a tool; also return how many judged documents the tool no longer has."""
    notices: list[str] = []
    judged_queries, missing = [], set()
    for query in dataset.load_queries(queries, None, notices):
        missing |= {uri for uri in (*query.grades, *query.negatives) if uri not in known_uris}
        known_query = dataset.only_known_documents(query, known_uris)
        # A query whose answers are all gone says nothing about a search.
        if known_query.is_answerable or not query.is_answerable:
            judged_queries.append(known_query)
    if not judged_queries:
        raise SourceError(
            f"{queries}:1: no question is about a document of {tool_name}",
            hint="Name the tool that was judged, or judge again: bunko judge.",
        )
    return JudgedSet(queries.stem, (), tuple(judged_queries), tuple(notices)), len(missing)


def find_documents(path: Path | None, notices: list[str]) -> tuple[JudgedDocument, ...]:
    """Load documents from the given path, the default path or the bundle; add what is left out to `notices`."""
    return dataset.load_documents(_first_existing(path, FIXTURE_PATH, dataset.bundled_files()[1]), notices)


def load_public_set(corpus: Path, queries: Path, qrels: Path) -> JudgedSet:
    """Load a judged set in the BEIR format, which public sets use."""
    return beir.load_beir(corpus, queries, qrels)


def _first_existing(path: Path | None, default: Path, bundled: Path) -> Path:
    if path is not None:
        return path
    return default if default.exists() else bundled


def save_baseline(evaluation: Evaluation, output: Path, baseline_path: Path | None) -> list[Path]:
    """Write the baseline beside the reports, and to `baseline_path` if given; return the paths."""
    paths = [output / baseline.BASELINE_FILE, *([baseline_path] if baseline_path else [])]
    for path in paths:
        _write_file(path, _json_text(baseline.baseline_data(evaluation)))
    return paths


def save_reports(
    evaluation: Evaluation, verdict: BaselineVerdict | None, output: Path, run_file: Path | None
) -> list[Path]:
    """Write report.json, report.md and report.html, and TREC runs if `run_file` is given; return the paths."""
    texts = {
        output / "report.json": _json_text(report.as_json(evaluation, verdict)),
        output / "report.md": report.as_markdown(evaluation, verdict),
        output / "report.html": html_report.as_html(evaluation, verdict),
    }
    if run_file is not None:
        for run in evaluation.runs:
            # Programs that read TREC runs expect one run per file.
            mode_file = run_file.with_name(f"{run_file.stem}-{_safe_file_name(run.name)}{run_file.suffix}")
            texts[run_file if len(evaluation.runs) == 1 else mode_file] = "".join(
                f"{line}\n" for line in trec_lines(run)
            )
    for path, text in texts.items():
        _write_file(path, text)
    return list(texts)


def keep_report(evaluation: Evaluation, verdict: BaselineVerdict | None, library_folder: Path) -> list[Path]:
    """Keep the report of a tool in the folder of its library, where its page finds it; return the path."""
    try:
        return [ReportStore(library_folder).keep(report.as_json(evaluation, verdict))]
    except OSError:  # the reports are in the folder of the command anyway
        return []


def _safe_file_name(name: str) -> str:
    return "".join(character if character.isalnum() or character in "._-=" else "_" for character in name)


def _json_text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _write_file(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written: {error.strerror or error}", hint="Choose another folder with --output-dir."
        ) from error


# trec_eval stores scores in 32 bits and sorts equal ones by name: a difference it can represent keeps our order.
_MIN_SCORE_STEP = 1e-6


def trec_lines(run: Run) -> Iterator[str]:
    """Yield a line with query, Q0, document, rank, score and run name for each retrieved document."""
    name = "_".join(run.name.split()) or "bunko"
    for result in run.results:
        score = float("inf")
        for rank, document in enumerate(result.documents, 1):
            if rank == 1:
                score = document.score
            else:
                score = min(document.score, score - max(_MIN_SCORE_STEP, abs(score) * _MIN_SCORE_STEP))
            yield f"{_column_text(result.query.id)} Q0 {_column_text(document.uri)} {rank} {score:.6f} {name}"


def _column_text(text: str) -> str:
    # Columns are separated by whitespace, so an id must not contain any.
    return "_".join(text.split())
