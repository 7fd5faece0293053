"""`bunko evaluate` compares with a baseline, with other settings and with a previous report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.evaluation.small_set import DOCUMENTS, NEEDED, QUERIES, load_report

pytestmark = pytest.mark.usefixtures("working_folder")


def test_a_loss_of_f1_is_a_regression_and_can_end_with_1(run: Run, files: tuple[str, Path, str, Path]) -> None:
    place = ("--output-dir", "out", "--baseline-file", "base/baseline.json", "--n-results", "1")
    assert run("evaluate", *NEEDED, *files, *place, "--save-baseline").code == 0
    saved = json.loads(Path("base/baseline.json").read_text(encoding="utf-8"))
    assert saved == json.loads(Path("out/baseline.json").read_text(encoding="utf-8"))
    same = run("evaluate", *NEEDED, *files, *place, "--fail-on-regression")
    assert same.code == 0, same.err
    assert load_report("out")["baseline"]["regressed"] is False
    swapped = [  # the same questions about documents that changed places
        {"source_url": one[0], "title": other[1], "content": other[2]}
        for one, other in zip(DOCUMENTS, DOCUMENTS[1:] + DOCUMENTS[:1], strict=True)
    ]
    files[3].write_text(json.dumps({"documents": swapped}), encoding="utf-8")
    assert run("evaluate", *NEEDED, *files, *place).code == 0
    assert load_report("out")["baseline"]["regressed"] is True
    assert run("evaluate", *NEEDED, *files, *place, "--fail-on-regression", "--save-baseline").code == 1
    assert json.loads(Path("base/baseline.json").read_text(encoding="utf-8")) == saved
    assert "REGRESSION" in Path("out/report.md").read_text(encoding="utf-8")
    assert run("evaluate", *NEEDED, *files, *place, "--fail-on-regression", "--regression-threshold", "1").code == 0


def test_a_gate_refuses_a_baseline_of_other_things(run: Run, files: tuple[str, Path, str, Path]) -> None:
    usual = ("evaluate", *NEEDED, *files)
    gate = ("--baseline-file", "base.json", "--fail-on-regression")
    assert run(*usual, "--baseline-file", "base.json", "--save-baseline").code == 0
    fewer = run(*usual, *gate, "--n-results", "3")
    assert fewer.code == 3
    assert "n_results is 5 there and 3 here" in fewer.err
    assert "--save-baseline" in fewer.err
    assert fewer.out == "", "told before anything is measured"
    near = run(*usual, *gate, "--threshold", "0.5")
    assert near.code == 3
    assert "threshold is none there and 0.5 here" in near.err
    files[1].write_text(json.dumps({"queries": QUERIES[:3]}), encoding="utf-8")
    other = run(*usual, *gate)
    assert other.code == 3
    assert "other questions or judgements" in other.err
    assert run(*usual, "--baseline-file", "base.json").code == 3, "a named one is meant"


@pytest.mark.slow
def test_a_baseline_of_other_things_that_nobody_named_is_left_out_or_replaced(run: Run, files: tuple[str, ...]) -> None:
    usual = ("evaluate", *NEEDED, *files)
    assert run(*usual, "--save-baseline").code == 0
    told = run(*usual, "--n-results", "3")
    assert told.code == 0
    assert "n_results is 5 there and 3 here. It is ignored." in told.err
    assert "baseline" not in load_report()
    assert run(*usual, "--n-results", "3", "--fail-on-regression").code == 3
    assert "It is replaced." in run(*usual, "--n-results", "3", "--save-baseline").err
    assert run(*usual, "--n-results", "3", "--fail-on-regression").code == 0
    assert run(*usual, "--n-results", "3", "--mode", "bm25", "--fail-on-regression").code == 3
    assert run(*usual, "--n-results", "3", "--mode", "bm25", "--save-baseline").code == 0
    assert run(*usual, "--n-results", "3", "--mode", "bm25", "--fail-on-regression").code == 0


def test_a_loss_of_exactly_the_threshold_is_none(run: Run, files: tuple[str, ...]) -> None:
    assert run("evaluate", *NEEDED, *files, "--save-baseline").code == 0
    path = Path(".tmp/rag-evaluation/baseline.json")
    held = json.loads(path.read_text(encoding="utf-8"))
    now = held["modes"]["hybrid"]["measures"]["f1"]
    for loss, code in ((0.0999, 0), (0.1, 0), (0.1001, 1)):
        held["modes"]["hybrid"]["measures"]["f1"] = now + loss
        path.write_text(json.dumps(held), encoding="utf-8")
        assert run("evaluate", *NEEDED, *files, "--fail-on-regression").code == code, loss


@pytest.mark.parametrize("text", ["{", "[]", '{"modes": {"hybrid": {}}}', '{"modes": {"other": {}}}'])
def test_a_baseline_that_cannot_be_used_is_told(run: Run, files: tuple[str, ...], text: str) -> None:
    Path("base.json").write_text(text, encoding="utf-8")
    done = run("evaluate", *NEEDED, *files, "--baseline-file", "base.json")
    assert done.code == 3
    assert "base.json" in done.err
    assert "--save-baseline" in done.err


def test_a_gate_without_a_baseline_does_not_pass(run: Run, files: tuple[str, ...]) -> None:
    for named in ((), ("--baseline-file", "none.json")):
        done = run("evaluate", *NEEDED, *files, "--fail-on-regression", *named)
        assert done.code == 3
        assert "There is no baseline" in done.err
        assert done.out == "", "told before anything is measured"
    assert run("evaluate", *NEEDED, *files, "--baseline-file", "none.json").code == 3
    assert run("evaluate", *NEEDED, *files, "--baseline-file", "new.json", "--save-baseline").code == 0
    assert Path("new.json").exists()


def test_a_changed_setting_is_compared_side_by_side(run: Run, public: tuple[str, ...]) -> None:
    done = run("evaluate", *public, "--mode", "bm25", "--with", "k1=0", "--with", "search.b=0")
    assert done.code == 0, done.err
    (found,) = load_report()["comparisons"]
    assert (found["first"], found["second"]) == ("bm25", "k1=0 search.b=0")
    row = found["measures"]["ndcg@10"]
    assert row.keys() == {"first", "second", "difference", "interval", "p", "wins", "losses", "ties", "certain"}
    assert row["wins"] + row["losses"] + row["ties"] == 3
    assert "compared with bm25" in done.out
    assert run("evaluate", *public, "--with", "nonsense=1").code == 2
    for pair in ("timezone=UTC", "rerank_seconds=3", "display.language=ja"):
        refused = run("evaluate", *public, "--with", pair)
        assert (refused.code, "changes no score" in refused.err) == (2, True)
    assert run("evaluate", *public, "--with", "k1").code == 2
    assert run("evaluate", *public, "--with", "k1=much").code == 2


def test_a_former_report_is_compared_question_by_question(run: Run, public: tuple[str, ...]) -> None:
    assert run("evaluate", *public, "--mode", "bm25", "--output-dir", "before").code == 0
    assert run("evaluate", *public, "--mode", "bm25", "--against", "before/report.json").code == 0
    (found,) = load_report()["comparisons"]
    assert (found["first"], found["measures"]["ndcg@10"]["ties"]) == ("report.json", 3)
    Path("base.json").write_text('{"modes": {"bm25": {"measures": {}}}}', encoding="utf-8")
    assert run("evaluate", *public, "--against", "base.json").code == 3
    missing = run("evaluate", *public, "--against", "no.json")
    assert missing.code == 3
    assert "There is no report no.json" in missing.err
    assert "report.json" in missing.err
    assert "--save-baseline" not in missing.err
    fewer = run("evaluate", *public, "--mode", "bm25", "--n-results", "3", "--against", "before/report.json")
    assert "scored 10 results and this run 3" in fewer.err


def test_a_former_report_that_shares_nothing_is_refused(
    run: Run, public: tuple[str, Path, str, Path, str, Path]
) -> None:
    assert run("evaluate", *public, "--mode", "bm25", "--output-dir", "before").code == 0
    other = run("evaluate", *public, "--mode", "semantic", "--against", "before/report.json")
    assert other.code == 3
    assert "has no scores for semantic, only for bm25" in other.err
    for path in (public[3], public[5]):
        path.write_text(re.sub(r"\bq(\d)\b", r"z\1", path.read_text(encoding="utf-8")), encoding="utf-8")
    done = run("evaluate", *public, "--mode", "bm25", "--against", "before/report.json")
    assert done.code == 3
    assert "shares no question" in done.err
