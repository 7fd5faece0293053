"""Fixtures that several tests of evaluations share."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.evaluation.small_set import DOCUMENTS, QUERIES

ESCAPE = "\x1b"
TEXTS = {
    "temple.md": "# 京都の寺\n\n京都の寺の庭を巡る。",
    "deer.md": "# 奈良の鹿\n\n奈良の公園に鹿がいる。京都からは電車で行く。",
    "server.md": f"# サーバー\n\nサーバーを再起動する。{ESCAPE}[31m",
    "backup.md": "# Backup\n\nCopy the database every night.",
}


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder: reports go where one stands."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str | Path, ...]:
    """The options that name a small judged set."""
    rows = [{"source_url": url, "title": title, "content": text} for url, title, text in DOCUMENTS]
    dataset, fixture = tmp_path / "queries.json", tmp_path / "documents.json"
    dataset.write_text(json.dumps({"queries": QUERIES}), encoding="utf-8")
    fixture.write_text(json.dumps({"documents": rows}), encoding="utf-8")
    return "--dataset", dataset, "--fixture", fixture


@pytest.fixture
def public(tmp_path: Path) -> tuple[str | Path, ...]:
    """The options that name the same set in the form of public ones."""
    corpus = [{"id": url, "title": title, "text": text} for url, title, text in DOCUMENTS]
    queries = [{"id": one["id"], "text": one["query"]} for one in QUERIES[:3]]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    judged = "".join(f"{one['id']}\t{one['expected_sources'][0]}\t1\n" for one in QUERIES[:3])
    (tmp_path / "qrels.tsv").write_text(f"qid\tdocid\trel\n{judged}", encoding="utf-8")
    names = {"--corpus": "corpus.jsonl", "--queries": "queries.jsonl", "--qrels": "qrels.tsv"}
    return tuple(part for option, name in names.items() for part in (option, tmp_path / name))


@pytest.fixture
def notes(docs: Path, run: Run) -> Path:
    """A folder whose documents are indexed."""
    for name, text in TEXTS.items():
        (docs / name).write_text(text, encoding="utf-8")
    assert run("reindex", "--docs-dir", docs).code == 0
    return docs


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """Where judgements go."""
    return tmp_path / "judged.json"


@pytest.fixture
def judge(run: Run, notes: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Judge with keys, one a line, and return what was printed."""

    def judging(*arguments: str | Path, keys: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{key}\n" for key in keys)))
        ran = run("judge", *arguments, "--docs-dir", notes, "--output", output)
        assert ran.code == 0, ran.err
        return ran.out

    return judging
