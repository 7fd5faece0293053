"""`bunko judge` as people and scripts meet it, down to the number that `bunko evaluate` makes of the judgements."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bunko.evaluation.judge import hold_judgements
from bunko.evaluation.report_store import ReportStore
from tests.cli.processes import subprocess_environment
from tests.conftest import Opener, Run
from tests.evaluation.conftest import ESCAPE, TEXTS


def judged(path: Path) -> dict[str, dict[str, float]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["queries"]
    return {row["query"]: row["grades"] for row in rows}


def test_judgements_become_a_number(run: Run, judge: Callable[..., str], notes: Path, output: Path) -> None:
    printed = judge("京都の寺", keys="3nnn")
    assert "京都の寺   for: 京都の寺" in printed
    assert "temple.md:L1-L3" in printed
    assert judged(output)["京都の寺"]["temple.md"] == 3
    done = run(
        "evaluate", "--dataset", output, "--name", "documents", "--docs-dir", notes, "--json", "--mode", "bm25",
        "--output-dir", output.parent / "out",
    ).json()  # fmt: skip
    assert done["measures"]["ndcg@5"] == 1.0  # type: ignore[index]
    assert done["judged"]["documents"] == len(TEXTS)  # type: ignore[index]


def test_the_report_of_a_tool_is_kept_in_its_library(
    run: Run, judge: Callable[..., str], notes: Path, output: Path
) -> None:
    judge("京都の寺", keys="3nnn")
    for _ in range(2):
        run(
            "evaluate", "--dataset", output, "--name", "documents", "--docs-dir", notes, "--mode", "bm25",
            "--output-dir", output.parent / "out",
        )  # fmt: skip
    [folder] = notes.rglob("evaluations")
    reports = ReportStore(folder.parent).all()
    assert [(report.kind, report.measure, report.score) for report in reports] == [("evaluation", "ndcg@5", 1.0)] * 2
    assert reports[0].name == output.stem


def test_a_judgement_waits_for_those_of_somebody_else(
    run: Run, judge: Callable[..., str], notes: Path, output: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bunko.evaluation.judge.WAIT_SECONDS", 0.0)
    monkeypatch.setattr("sys.stdin", io.StringIO("3\nn\n"))
    with open_docs() as library, hold_judgements(library):
        done = run("judge", "京都の寺", "--docs-dir", notes, "--output", output)
    assert done.code == 11
    assert "is judging results of this library" in done.err
    assert not output.exists()
    judge("京都の寺", keys="3nnn")
    assert judged(output)["京都の寺"]["temple.md"] == 3


def test_results_of_a_library_that_cannot_be_locked_are_judged_into_another_file(
    judge: Callable[..., str], notes: Path, output: Path
) -> None:
    [database] = notes.rglob("library.db")
    database.with_name("library.db.judge.lock").mkdir()
    judge("京都の寺", keys="3nnn")
    assert judged(output)["京都の寺"]["temple.md"] == 3


def test_documents_of_all_modes_are_pooled_and_each_is_asked_once(judge: Callable[..., str], output: Path) -> None:
    printed = judge("database", keys="ynnn")
    assert printed.count("backup.md:L") == 1
    assert len(judged(output)["database"]) > 1, "vectors find what words do not"


def test_what_is_judged_is_not_asked_again(judge: Callable[..., str], output: Path) -> None:
    judge("京都の寺", keys="3q")
    assert judged(output) == {"京都の寺": {"temple.md": 3}}
    again = judge("京都の寺", keys="nnn")
    assert "temple.md:L" not in again
    assert "1 already judged" in again
    assert len(judged(output)["京都の寺"]) == 4
    assert "Relevant?" not in judge("京都の寺", keys="")
    assert "Relevant?" not in judge("  京都の寺 ", keys=""), "the same query in other spaces"


def test_undo_goes_back_also_to_the_query_before(judge: Callable[..., str], output: Path) -> None:
    judge("京都の寺", "-k", "1", keys="yu2")
    assert judged(output)["京都の寺"]["temple.md"] == 2
    output.unlink()
    judge("京都の寺", "backup", "-k", "1", keys="uq")
    assert not output.exists(), "there was nothing to undo, and nothing was judged"
    first = judge("京都の寺", "-k", "1", keys="yyyy")
    pooled = first.count("Relevant?")
    assert "No more results." in first
    output.unlink()
    judge("京都の寺", "backup", "-k", "1", keys="y" * pooled + "un" + "q")
    grades = judged(output)
    assert list(grades) == ["京都の寺"]
    assert list(grades["京都の寺"].values()) == [1] * (pooled - 1) + [0]


def test_taking_everything_back_leaves_no_file(judge: Callable[..., str], output: Path) -> None:
    judge("京都の寺", keys="yuq")
    assert not output.exists()
    judge("京都の寺", keys="y")
    assert judged(output)["京都の寺"] == {"temple.md": 1}


def test_skipping_writes_nothing_and_other_keys_mean_nothing(judge: Callable[..., str], output: Path) -> None:
    printed = judge("京都の寺", "-k", "1", keys="sx?s")
    assert not output.exists()
    assert "Relevant?" in printed


def test_queries_come_from_a_file_and_each_is_judged_once(judge: Callable[..., str], output: Path) -> None:
    listed = output.with_name("queries.txt")
    listed.write_text("京都の寺\n\n  backup  \n京都の寺\n", encoding="utf-8")
    printed = judge("--queries", listed, "-k", "1", keys="y" * 20)
    assert "Query 1 of 2: 京都の寺" in printed
    assert "Query 2 of 2: backup" in printed
    assert set(judged(output)) == {"京都の寺", "backup"}


def test_json_has_the_summary_alone_on_stdout(run: Run, notes: Path, output: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    ran = run("judge", "京都の寺", "--docs-dir", notes, "--output", output, "--json")
    assert ran.json() == {"tool": "documents", "file": str(output), "new": 1, "queries": 1, "judgements": 1}
    assert "temple.md" in ran.err


def test_text_from_documents_cannot_steer_a_terminal(judge: Callable[..., str]) -> None:
    printed = judge("サーバー", keys="n")
    assert "サーバーを再起動する。\ufffd[31m" in printed
    assert ESCAPE not in printed


def test_a_file_about_another_tool_or_with_a_mistake_is_refused(run: Run, notes: Path, output: Path) -> None:
    output.write_text('{"tool": "other", "queries": [{"id": "1", "query": "x", "expected_sources": []}]}')
    ran = run("judge", "x", "--docs-dir", notes, "--output", output)
    assert ran.code == 3
    assert "is about other" in ran.err
    output.write_text('{"queries": [{"id": "1"}]}')
    ran = run("judge", "x", "--docs-dir", notes, "--output", output)
    assert ran.code == 3
    assert f"{output}:1:" in ran.err
    assert output.read_text() == '{"queries": [{"id": "1"}]}'


def test_a_file_with_an_empty_question_is_told_with_its_line(run: Run, notes: Path, output: Path) -> None:
    output.write_text('{"queries": [\n{}]}', encoding="utf-8")
    done = run("judge", "京都", "--docs-dir", notes, "--output", output)
    assert done.code == 3
    assert f'{output}:2: "query" is missing' in done.err


def test_one_of_a_thing_is_not_told_as_many(judge: Callable[..., str]) -> None:
    assert "1 judgement for 1 query in" in judge("京都の寺", keys="yq")


def test_without_a_query_and_without_kept_ones_there_is_nothing_to_do(run: Run, notes: Path) -> None:
    ran = run("judge", "--docs-dir", notes)
    assert ran.code == 2
    assert "No query given" in ran.err


def start_at_a_terminal(notes: Path, output: Path, tmp_path: Path) -> tuple[subprocess.Popen[bytes], int]:
    pty = pytest.importorskip("pty", reason="there are no terminals to open on this system")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bunko", "judge", "京都の寺", "--docs-dir", notes, "--output", output],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env=subprocess_environment(tmp_path, TERM="xterm-256color"),
    )  # fmt: skip
    os.close(theirs)
    return process, ours


def read_until_question(ours: int) -> str:
    """Return what was written up to the next question, once the terminal waits for a single key."""
    import termios

    written = b""
    while b"Relevant?" not in written:
        written += os.read(ours, 65536)
    while termios.tcgetattr(ours)[3] & termios.ICANON:
        time.sleep(0.01)
    return written.decode()


@pytest.mark.slow
def test_single_keys_are_enough_at_a_terminal_and_a_kill_loses_none(notes: Path, output: Path, tmp_path: Path) -> None:
    process, ours = start_at_a_terminal(notes, output, tmp_path)
    assert "temple.md:L1-L3" in read_until_question(ours)
    os.write(ours, b"2")
    read_until_question(ours)  # the next one is asked when the last is written
    assert judged(output) == {"京都の寺": {"temple.md": 2}}
    os.write(ours, b"n")
    read_until_question(ours)
    process.send_signal(signal.SIGKILL)
    process.wait()
    os.close(ours)
    assert len(judged(output)["京都の寺"]) == 2
    process, ours = start_at_a_terminal(notes, output, tmp_path)
    assert "2 already judged" in read_until_question(ours)
    os.write(ours, b"q")
    assert process.wait() == 0
    os.close(ours)


# Judging a tool in use


def test_a_document_that_is_gone_is_left_out_of_the_evaluation(
    run: Run, judge: Callable[..., str], notes: Path, output: Path, tmp_path: Path
) -> None:
    judge("京都の寺", "backup", keys="y" * 20)
    (notes / "temple.md").unlink()
    assert run("reindex", "--docs-dir", notes).code == 0
    asked = (
        "evaluate",
        "--dataset",
        output,
        "--name",
        "documents",
        "--docs-dir",
        notes,
        "--output-dir",
        tmp_path / "o",
    )
    ran = run(*asked)
    assert ran.code == 0, ran.err
    assert "1 judged document is no longer in documents" in ran.err
    for name in ("deer.md", "server.md", "backup.md"):
        (notes / name).unlink()
    (notes / "new.md").write_text("# new", encoding="utf-8")
    assert run("reindex", "--docs-dir", notes).code == 0
    ran = run(*asked)
    assert ran.code == 3
    assert "no question is about a document of documents" in ran.err


def test_an_evaluation_of_a_tool_uses_its_own_settings_unless_told_otherwise(
    run: Run, judge: Callable[..., str], open_docs: Opener, notes: Path, output: Path, tmp_path: Path
) -> None:
    judge("京都の寺", keys="ynnn")
    open_docs().maintenance.set_search_settings("documents", {"mode": "hybrid", "k1": 0.5})
    asked = (
        "evaluate", "--dataset", output, "--name", "documents", "--docs-dir", notes, "--output-dir", tmp_path / "o",
        "--json",
    )  # fmt: skip
    done = run(*asked).json()
    assert done["mode"] == "hybrid"
    assert done["settings"]["k1"] == 0.5  # type: ignore[index]
    assert done["settings"]["vector_weight"] is None  # type: ignore[index]
    changed = run(*asked, "--mode", "bm25", "--vector-weight", "0.9").json()
    assert changed["mode"] == "bm25"
    assert changed["settings"]["vector_weight"] == 0.9  # type: ignore[index]
    sides = run(*asked, "--with", "k1=2.0").json()["comparisons"]
    assert [(one["first"], one["second"]) for one in sides] == [("hybrid", "k1=2.0")]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--with", "max_chunk_chars=100"), "index of an existing tool is not rebuilt"),
        (("--chunk-size", "100"), "--chunk-size cannot be used with --name"),
        (("--fixture", "x.json"), "--fixture cannot be used with --name"),
    ],
)
def test_a_tool_is_never_cut_anew_to_be_measured(
    run: Run, judge: Callable[..., str], notes: Path, output: Path, more: tuple[str, ...], said: str
) -> None:
    judge("京都の寺", keys="ynnn")
    ran = run("evaluate", "--dataset", output, "--name", "documents", "--docs-dir", notes, *more)
    assert ran.code == 2
    assert said in ran.err


def test_a_tool_is_only_measured_with_questions_about_it(run: Run, notes: Path) -> None:
    ran = run("evaluate", "--name", "documents", "--docs-dir", notes)
    assert ran.code == 2
    assert "--dataset" in ran.err
