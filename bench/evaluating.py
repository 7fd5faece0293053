"""Measure the CPU time of `bunko evaluate` over generated documents and questions."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench import corpus
from bench.clock import run_child
from bench.libraries import VECTORS, Libraries
from bench.table import Result, check

DOCUMENTS, QUESTIONS = 1_500, 4_000
_QUESTION_CHARS = 28


def run(libraries: Libraries) -> Result:
    folder = libraries.folder / "judged"
    write_dataset(folder)
    files = [f"--{name}={folder / file}" for name, file in FILES.items()]
    cost = run_child(
        ["-m", "bunko", "evaluate", *files, "--mode", "bm25", "--output-dir", str(folder / "out")], **VECTORS
    )
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    note = f" (recall@10 {report['measures']['recall@10']:.2f})"
    label = f"bunko evaluate, {QUESTIONS:,} questions, {DOCUMENTS:,} documents"
    return Result(checks=[check(label, cost.cpu, 30, "s CPU", note=note)])


FILES = {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "qrels": "qrels.tsv"}


def write_dataset(folder: Path) -> None:
    """Write a judged dataset: a question is a part of a sentence, and its page is the answer."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(11)
    pages = list(corpus.pages(DOCUMENTS))
    documents = [{"id": name, "title": text.partition("\n")[0], "text": text} for name, text in pages]
    questions, judgements = [], ["qid\tdocid\trel"]
    for index in range(QUESTIONS):
        name, text = pages[index % DOCUMENTS]
        lines = [line for line in text.splitlines() if len(line) > 2 * _QUESTION_CHARS]
        line = rng.choice(lines)
        start = rng.randrange(len(line) - _QUESTION_CHARS)
        questions.append({"id": f"q{index}", "text": line[start : start + _QUESTION_CHARS]})
        judgements.append(f"q{index}\t{name}\t1")
    for file, rows in (("corpus.jsonl", documents), ("queries.jsonl", questions)):
        (folder / file).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (folder / "qrels.tsv").write_text("\n".join(judgements) + "\n", encoding="utf-8")
