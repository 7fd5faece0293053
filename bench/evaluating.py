"""Generated documents and questions in, the CPU time of `bunko evaluate` over them out."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench import corpus
from bench.clock import child
from bench.libraries import VECTORS, Libraries
from bench.table import Result, check

DOCUMENTS, QUESTIONS = 1_500, 4_000
_LONG = 28


def run(libraries: Libraries) -> Result:
    folder = libraries.folder / "judged"
    write(folder)
    files = [f"--{name}={folder / file}" for name, file in FILES.items()]
    spent = child(["-m", "bunko", "evaluate", *files, "--mode", "bm25", "--output-dir", str(folder / "out")], **VECTORS)
    found = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    note = f" (recall@10 {found['measures']['recall@10']:.2f})"
    what = f"bunko evaluate, {QUESTIONS:,} questions, {DOCUMENTS:,} documents"
    return Result(checks=[check(what, spent.cpu, 30, "s CPU", note=note)])


FILES = {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "qrels": "qrels.tsv"}


def write(folder: Path) -> None:
    """Write a judged set: a question is a piece of a sentence, and the page it stands on is the answer."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(11)
    pages = list(corpus.pages(DOCUMENTS))
    documents = [{"id": name, "title": text.partition("\n")[0], "text": text} for name, text in pages]
    questions, judgements = [], ["qid\tdocid\trel"]
    for number in range(QUESTIONS):
        name, text = pages[number % DOCUMENTS]
        lines = [line for line in text.splitlines() if len(line) > 2 * _LONG]
        line = chance.choice(lines)
        start = chance.randrange(len(line) - _LONG)
        questions.append({"id": f"q{number}", "text": line[start : start + _LONG]})
        judgements.append(f"q{number}\t{name}\t1")
    for file, rows in (("corpus.jsonl", documents), ("queries.jsonl", questions)):
        (folder / file).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (folder / "qrels.tsv").write_text("\n".join(judgements) + "\n", encoding="utf-8")
