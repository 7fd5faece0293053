"""Measure bunko beside other engines, as their documentation uses them, over the same judged documents and queries."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import mean, median
from typing import Any

from bench import corpus
from bench.clock import Cost, run_child, run_program
from bench.documents import ROOT
from bench.libraries import Libraries
from bench.peer_engines import BUNKO, CONTENT, ENGINES, JUDGED_HITS, TOP, WARMING_SHARE
from bench.table import Result, Table, number
from bunko.evaluation import beir, dataset
from bunko.evaluation.compare import confidence_intervals
from bunko.evaluation.dataset import JudgedDocument, JudgedQuery, JudgedSet
from bunko.evaluation.measures import ranking_measures
from bunko.text.analyzer import STOP_WORDS, load_tagger

# A query as it is, all of whose words a document must have, Japanese ones in a row; or, as an assistant asks qmd, each
# word that says something as a search of its own.
QMD = {"qmd, words": "query", "qmd, words one by one": "words"}
NAMES = (*ENGINES, *QMD)
OWN = "own"
ROUNDS = 3
_GENERATED_PAGES = 500
_NODE = ROOT / ".node-bench" / "node_modules"
_QMD = _NODE / "@tobilu" / "qmd"
_HELPS = "非自立可能"  # verbs such as する and いる
_DEFAULT = "bunko, words and meaning"
_NDCG, _RECALL = f"ndcg@{TOP}", f"recall@{TOP}"
_HEAD = (
    "import, s CPU", "on the clock, s", "first result, s CPU", "at a terminal, s CPU", "a search, ms CPU", "memory, MB",
    "disk, MB", _RECALL, f"nDCG@{TOP}", "less the first row (95 %)",
)  # fmt: skip


def run(libraries: Libraries, folders: Sequence[Path]) -> Result:
    """Measure judged sets: bunko's own among generated pages, and those of folders."""
    result, load = Result(), os.getloadavg()[0]
    for judged in (own_set(), *map(load_folder, folders)):
        work = libraries.folder / f"peers-{judged.name}"
        shutil.rmtree(work, ignore_errors=True)
        result.tables[f"peers-{judged.name}"] = measure_set(judged, work)
    result.tables["peers-machine"] = Table(("measured with", ""), describe_machine(load))
    return result


def own_set() -> JudgedSet:
    """Return bunko's own judged set among generated pages."""
    judged = dataset.load_judged_set(*dataset.bundled_files(), name=OWN)
    pages = [JudgedDocument(name, "", text) for name, text in corpus.pages(_GENERATED_PAGES)]
    return replace(judged, documents=(*judged.documents, *pages))


def load_folder(folder: Path) -> JudgedSet:
    """Load a judged set as `bunko evaluate` does."""
    return beir.load_beir(folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels.tsv")


def measure_set(judged: JudgedSet, work: Path) -> Table:
    """Return a row for each engine; in each round every engine searches once, so that noise affects all of them."""
    queries = [query for query in judged.queries if query.is_answerable]
    ids = write_files(judged.documents, queries, work)
    imports: dict[str, Cost] = {}
    visits: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES if find_version(name)}
    for name in visits:
        if index_of(name) not in imports:
            imports[index_of(name)] = import_documents(name, work)
    for _ in range(ROUNDS):
        for name, engine_visits in visits.items():
            engine_visits.append(visit(name, work, queries[0].text))
    measures = {
        name: judge(queries, [[ids[file] for file in hits] for hits in engine_visits[0]["hits"]])
        for name, engine_visits in visits.items()
    }
    table = Table((f"{len(ids):,} documents, {len(queries)} queries", *_HEAD))
    for name in NAMES:
        if name not in visits:
            table.rows.append(missing_row(name))
            continue
        disk = sum(file.stat().st_size for file in index_folder(name, work).rglob("*") if file.is_file())
        costs = build_costs(imports[index_of(name)], visits[name], disk)
        table.rows.append((name, *costs, *build_scores(measures[name], measures[_DEFAULT])))
    return table


def write_files(documents: Sequence[JudgedDocument], queries: Sequence[JudgedQuery], work: Path) -> dict[str, str]:
    """Write a Markdown file for each document, and the queries; return the document of each file."""
    docs = work / "docs"
    docs.mkdir(parents=True)
    (work / "qmd").mkdir()
    ids = {f"{position:06}.md": document.id for position, document in enumerate(documents)}
    for file, document in zip(ids, documents, strict=True):
        heading = f"# {document.title}\n\n" if document.title.strip() else ""
        (docs / file).write_text(heading + document.text, encoding="utf-8")
    texts = [query.text for query in queries]
    (work / "queries.json").write_text(json.dumps(texts), encoding="utf-8")
    (work / "words.json").write_text(json.dumps([words_as_written(text) for text in texts]), encoding="utf-8")
    return ids


def words_as_written(query: str) -> list[str]:
    """Return the words of a query that say something, as it writes them: qmd knows no base forms of Japanese words."""
    return [
        word.surface
        for word in load_tagger()(query)
        if word.feature[0] in CONTENT and word.feature[1] != _HELPS and word.surface.lower() not in STOP_WORDS
    ]


def import_documents(name: str, work: Path) -> Cost:
    """Import the files: programs by their own command, libraries by a small program."""
    if name in QMD:
        return run_qmd(work, "collection", "add", str(work / "docs"), "--name", "docs")
    if name in BUNKO:
        return run_child(["-m", "bunko", "reindex", "--docs-dir", str(work / "docs")])
    return run_child(["-m", "bench.peer_engines", name, "import", str(work)])


def visit(name: str, work: Path, query: str) -> dict[str, Any]:
    """Search in a new process, and once at a terminal where the engine is a program."""
    if name in QMD:
        script = [str(ROOT / "bench" / "qmd.mjs"), str(_QMD), str(work), QMD[name]]
        numbers = map(str, (WARMING_SHARE, TOP, JUDGED_HITS))
        report: dict[str, Any] = json.loads(run_program([str(_NODE / ".bin" / "node"), *script, *numbers]).output)
        if QMD[name] == "query":
            report["terminal"] = run_qmd(work, "search", query, "-n", str(TOP)).cpu
        return report
    report = json.loads(run_child(["-m", "bench.peer_engines", name, "search", str(work)]).output)
    if name in BUNKO:
        flags = ["--docs-dir", str(work / "docs"), "--mode", BUNKO[name]]
        report["terminal"] = run_child(["-m", "bunko", "search", query, *flags]).cpu
    return report


def run_qmd(work: Path, *arguments: str) -> Cost:
    """Run qmd with its index and its settings in the folder of a set."""
    index = work / "qmd"
    places = {"INDEX_PATH": str(index / "index.sqlite"), "QMD_CONFIG_DIR": str(index), "XDG_CACHE_HOME": str(index)}
    path = f"{_NODE / '.bin'}{os.pathsep}{os.environ['PATH']}"
    return run_program([str(_NODE / ".bin" / "qmd"), *arguments], PATH=path, **places)


def index_of(name: str) -> str:
    """Return the name of an engine's index."""
    return "qmd" if name in QMD else ENGINES[name].index_name


def index_folder(name: str, work: Path) -> Path:
    """Return where an engine keeps its index, with the texts."""
    return work / "docs" / ".rag-index" if index_of(name) == "bunko" else work / index_of(name)


def find_version(name: str) -> str:
    """Return the version of an engine, or nothing if it is not installed."""
    if name in QMD:
        package = _QMD / "package.json"
        return json.loads(package.read_text(encoding="utf-8"))["version"] if package.exists() else ""
    try:
        return version(ENGINES[name].package)
    except PackageNotFoundError:
        return ""


def judge(queries: Sequence[JudgedQuery], rankings: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """Return the measures of each query; a document counts once, however many of its chunks were found."""
    return [
        ranking_measures(list(dict.fromkeys(ranking)), query.grades, TOP, expected=query.relevant_uris)
        for query, ranking in zip(queries, rankings, strict=True)
    ]


def missing_row(name: str) -> list[str]:
    """Return the row of an engine that is not installed."""
    return [name, "not installed", *["–"] * (len(_HEAD) - 1)]


def build_costs(imported: Cost, visits: Sequence[Mapping[str, Any]], disk: int) -> list[str]:
    """Return what an engine costs, by the medians of its visits."""
    middle = {key: median(each[key] for each in visits) for key in visits[0] if key != "hits"}
    terminal = number(middle["terminal"]) if "terminal" in middle else "–"
    return [
        number(imported.cpu), number(imported.wall), number(middle["first"]), terminal, number(middle["search"] * 1e3),
        number(middle["rss"] / 1e6), number(disk / 1e6),
    ]  # fmt: skip


def build_scores(measures: Sequence[Mapping[str, float]], ours: Sequence[Mapping[str, float]]) -> list[str]:
    """Return what an engine finds, and its difference to ours; a certain one is bold."""
    scores = [f"{mean(row[name] for row in measures):.3f}" for name in (_RECALL, _NDCG)]
    if measures is ours:
        return [*scores, "–"]
    pairs = zip(measures, ours, strict=True)
    changes = {str(position): row[_NDCG] - our_row[_NDCG] for position, (row, our_row) in enumerate(pairs)}
    low, high = confidence_intervals({_NDCG: changes})[_NDCG]
    interval = f"{mean(changes.values()):+.3f} ({low:+.3f}…{high:+.3f})".replace("-", "−")
    return [*scores, interval if low <= 0 <= high else f"**{interval}**"]


def describe_machine(load: float) -> list[Sequence[str]]:
    """Return what the figures were measured with."""
    names = {name.partition(",")[0]: name for name in NAMES}
    return [
        (
            "machine",
            f"{os.cpu_count()} cores ({platform.machine()}, {platform.system()}), Python {platform.python_version()}",
        ),
        ("load average", f"{load:.1f} when it began, {os.getloadavg()[0]:.1f} at its end"),
        *((program, find_version(name) or "not installed") for program, name in names.items()),
    ]
