"""Score judged sets in every mode, and write nDCG@10 and the results of each query in lines that can be compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OWN_SET = "own"  # the judged set that is part of bunko
_OWN_OPTIONS = ("--chunk-size", "200", "--chunk-overlap", "30", "--vector-weight", "0.3")
_FILES = {"--corpus": "corpus.jsonl", "--queries": "queries.jsonl", "--qrels": "qrels.tsv"}


def record_scores(judged_sets: list[str], target: Path) -> None:
    """Evaluate judged sets, one after another: folders, or `own`."""
    for judged_set in judged_sets:
        print(f"scoring {judged_set}", file=sys.stderr, flush=True)
        report = _evaluate(judged_set)
        (target / f"{sheet_name(judged_set)}.jsonl").write_text("".join(_lines(report)), encoding="utf-8")


def sheet_name(judged_set: str) -> str:
    """Return the name of the file with the scores of a judged set, without its ending."""
    return judged_set if judged_set == OWN_SET else Path(judged_set).resolve().name


def _evaluate(judged_set: str) -> dict[str, Any]:
    """Return what `bunko evaluate` reports, in a home of its own."""
    folder = Path(judged_set).resolve()
    files = [f"{option}={folder / file}" for option, file in _FILES.items()]
    with tempfile.TemporaryDirectory(prefix="bunko-scores-") as home:
        subprocess.run(
            [
                sys.executable, "-m", "bunko", "evaluate", "--mode", "all", "--n-results", "10",
                "--output-dir", f"{home}/reports", *(_OWN_OPTIONS if judged_set == OWN_SET else files),
            ],
            check=True, cwd=home, env=clean_environment(Path(home)), stdout=subprocess.DEVNULL,
        )  # fmt: skip
        report: dict[str, Any] = json.loads(Path(home, "reports", "report.json").read_text(encoding="utf-8"))
        return report


def clean_environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of somebody who has set nothing, with some settings."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    # Threads of BLAS may add in another order, and the last digit of a score with it.
    fixed = {"HOME": str(home), "LANG": "C.UTF-8", "TZ": "Asia/Tokyo", "OPENBLAS_NUM_THREADS": "1"}
    return kept | fixed | dict(more or {})


def _lines(report: dict[str, Any]) -> list[str]:
    """Return a line with the means of each mode and one for each query, without times."""
    rows: list[dict[str, Any]] = [{"ask": "judged set", "answer": report["judged"] | {"settings": report["settings"]}}]
    for mode, run in report["modes"].items():
        rows.append({"ask": [mode, "mean"], "answer": run["measures"]})
        rows += [
            {"ask": [mode, query["id"]], "answer": {"ndcg@10": query["measures"].get("ndcg@10"), "results": results}}
            for query in run["queries"]
            for results in [[f"{row['source']} {row['score']}" for row in query["results"]]]
        ]
    return [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
