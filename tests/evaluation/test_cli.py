"""`bunko evaluate` and `bunko init-test-db` as people and scripts meet them: options, files, exit codes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import ir_measures
import pytest

from tests.cli.processes import at_a_terminal, subprocess_environment
from tests.conftest import Run

HOSTILE = "<script>alert('x')</script> & <img src=http://evil.example/x onerror=alert(1)> \u202eabc"
DOCUMENTS = [
    (
        "https://example.com/ryuuou",
        "ドラゴンクエスト",
        "| 名前 | 強さ |\n|---|---|\n| りゅうおう | 100 |\n| スライム | 1 |",
    ),
    ("https://example.com/setup", "環境構築", "Python の仮想環境を作り、依存を入れます。"),
    ("https://example.com/backup", "Backup", "Copy the database every night. Keep seven copies."),
    ("https://example.com/hostile", HOSTILE, f"Copy and paste. {HOSTILE}"),
]
QUERIES: list[dict[str, Any]] = [
    {"id": "q1", "query": "りゅうおう", "expected_sources": [DOCUMENTS[0][0]], "expected_keywords": ["100"]},
    {"id": "q2", "query": "仮想環境の作り方", "expected_sources": [DOCUMENTS[1][0]], "kind": "question"},
    {"id": "q3", "query": f"copy the database {HOSTILE}", "expected_sources": [DOCUMENTS[2][0]], "notes": HOSTILE},
    {"id": "q4", "query": "quantum", "expected_sources": [], "negative_sources": [DOCUMENTS[2][0]]},
]
NEEDED = ("--chunk-size", "200", "--chunk-overlap", "30", "--vector-weight", "0.6")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def report(folder: str | Path = ".tmp/rag-evaluation") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    return found


def test_an_evaluation_writes_its_reports_where_the_defaults_say(run: Run, files: tuple[str, ...]) -> None:
    done = run("evaluate", *NEEDED, *files)
    assert done.code == 0, done.err
    assert sorted(path.name for path in Path(".tmp/rag-evaluation").iterdir()) == [
        "report.html", "report.json", "report.md",
    ]  # fmt: skip
    found = report()
    assert found["mode"] == "hybrid"
    assert found["n_results"] == 5
    assert found["settings"]["chunk_size"] == 200
    assert found["settings"]["chunk_overlap"] == 30
    assert found["settings"]["vector_weight"] == 0.6
    names = {"ndcg@5", "recall@5", "mrr@5", "map@5", "precision", "recall", "f1", "hit@1", "negative_rate", "keywords"}
    assert names <= found["measures"].keys()
    assert found["measures"]["recall"] == 1.0
    assert found["modes"]["hybrid"]["latency_ms"].keys() == {"p50", "p90", "p95", "p99"}
    assert found["modes"]["hybrid"]["languages"].keys() == {"ja", "en"}
    assert found["modes"]["hybrid"]["kinds"].keys() == {"question", "none", "other"}
    low, high = found["modes"]["hybrid"]["intervals"]["f1"]
    assert low <= found["measures"]["f1"] <= high
    assert [one["id"] for one in found["modes"]["hybrid"]["queries"]] == ["q1", "q2", "q3", "q4"]
    assert "| ndcg@5 |" in Path(".tmp/rag-evaluation/report.md").read_text(encoding="utf-8")
    assert "| ndcg@5 |" in done.out


def test_a_name_in_a_table_is_found(run: Run, files: tuple[str, ...]) -> None:
    run("evaluate", *NEEDED, *files, "--mode", "bm25")
    first = report()["modes"]["bm25"]["queries"][0]
    assert first["query"] == "りゅうおう"
    assert first["results"][0]["source"] == "https://example.com/ryuuou"


@pytest.mark.parametrize("left_out", [0, 2, 4])
def test_the_three_options_of_the_first_form_are_required(run: Run, files: tuple[str, ...], left_out: int) -> None:
    given = NEEDED[:left_out] + NEEDED[left_out + 2 :]
    done = run("evaluate", *given, *files)
    assert done.code == 2
    assert NEEDED[left_out] in done.err
    assert not Path(".tmp").exists()


def test_impossible_options_are_refused(run: Run, files: tuple[str, ...], public: tuple[str, ...]) -> None:
    assert run("evaluate", "--chunk-size", "10", "--chunk-overlap", "10", "--vector-weight", "1", *files).code == 2
    assert run("evaluate", "--chunk-size", "9", "--chunk-overlap", "1", "--vector-weight", "1.1", *files).code == 2
    half = run("evaluate", *public[:2])
    assert half.code == 2
    assert "--queries" in half.err
    assert run("evaluate", *public, *files).code == 2


def test_without_files_the_set_that_comes_with_bunko_is_used(run: Run) -> None:
    done = run("evaluate", *NEEDED, "--mode", "bm25", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["judged"]["documents"] >= 20
    assert "queries" not in found["modes"]["bm25"]  # all of them are in report.json


def test_the_usual_places_win_over_the_set_that_comes_with_bunko(run: Run, files: tuple[str, Path, str, Path]) -> None:
    for source, usual in ((files[1], "rag_evaluation_dataset.json"), (files[3], "rag_test_documents.json")):
        Path("tests/fixtures").mkdir(parents=True, exist_ok=True)
        Path("tests/fixtures", usual).write_bytes(source.read_bytes())
    assert run("evaluate", *NEEDED).code == 0
    assert report()["judged"]["queries"] == 4


def test_a_named_file_that_is_not_there_is_an_error(run: Run) -> None:
    done = run("evaluate", *NEEDED, "--dataset", "nowhere.json")
    assert done.code == 3
    assert "nowhere.json" in done.err


def test_a_broken_dataset_is_an_error_with_file_and_line(run: Run, files: tuple[str, Path, str, Path]) -> None:
    files[1].write_text('{"queries": [\n{"id": "q1", "query": ""}]}', encoding="utf-8")
    done = run("evaluate", *NEEDED, *files)
    assert done.code == 3
    assert f'{files[1]}:2: "query" is empty' in done.err
    assert not Path(".tmp").exists()


def test_a_loss_of_f1_is_a_regression_and_can_end_with_1(run: Run, files: tuple[str, Path, str, Path]) -> None:
    place = ("--output-dir", "out", "--baseline-file", "base/baseline.json", "--n-results", "1")
    assert run("evaluate", *NEEDED, *files, *place, "--save-baseline").code == 0
    saved = json.loads(Path("base/baseline.json").read_text(encoding="utf-8"))
    assert saved == json.loads(Path("out/baseline.json").read_text(encoding="utf-8"))
    same = run("evaluate", *NEEDED, *files, *place, "--fail-on-regression")
    assert same.code == 0, same.err
    assert report("out")["baseline"]["regressed"] is False
    swapped = [  # the same questions about documents that changed places
        {"source_url": one[0], "title": other[1], "content": other[2]}
        for one, other in zip(DOCUMENTS, DOCUMENTS[1:] + DOCUMENTS[:1], strict=True)
    ]
    files[3].write_text(json.dumps({"documents": swapped}), encoding="utf-8")
    assert run("evaluate", *NEEDED, *files, *place).code == 0
    assert report("out")["baseline"]["regressed"] is True
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


def test_a_baseline_of_other_things_that_nobody_named_is_left_out_or_replaced(run: Run, files: tuple[str, ...]) -> None:
    usual = ("evaluate", *NEEDED, *files)
    assert run(*usual, "--save-baseline").code == 0
    told = run(*usual, "--n-results", "3")
    assert told.code == 0
    assert "n_results is 5 there and 3 here. It is left out." in told.err
    assert "baseline" not in report()
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


def test_a_public_set_needs_no_options_and_gives_its_scores_plain_names(run: Run, public: tuple[str, ...]) -> None:
    done = run("evaluate", *public, "--mode", "all", "--output-dir", "out", "--run-file", "runs/run.txt")
    assert done.code == 0, done.err
    found = report("out")
    assert {"ndcg@10", "recall@10", "mrr@10"} <= found["measures"].keys()
    assert list(found["modes"]) == ["bm25", "semantic", "hybrid"]
    assert [(one["first"], one["second"]) for one in found["comparisons"]] == [("bm25", "semantic"), ("bm25", "hybrid")]
    judgements = list(ir_measures.read_trec_qrels("".join(
        f"{one['id']} 0 {one['expected_sources'][0]} 1\n" for one in QUERIES[:3]
    )))  # fmt: skip
    for mode in ("bm25", "semantic", "hybrid"):
        scored = list(ir_measures.read_trec_run(str(Path(f"runs/run-{mode}.txt"))))
        wanted = {"ndcg@10": ir_measures.nDCG @ 10, "recall@10": ir_measures.R @ 10, "mrr@10": ir_measures.RR @ 10}
        theirs = ir_measures.calc_aggregate(list(wanted.values()), judgements, scored)
        ours = found["modes"][mode]["measures"]
        assert {name: ours[name] for name in wanted} == pytest.approx(
            {name: theirs[measure] for name, measure in wanted.items()}, abs=1e-5
        )


def test_the_mode_of_a_public_set_is_the_one_of_the_settings(
    run: Run, public: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_SEARCH_MODE", "semantic")
    assert run("evaluate", *public).code == 0
    assert report()["mode"] == "semantic"


def test_a_changed_setting_is_compared_side_by_side(run: Run, public: tuple[str, ...]) -> None:
    done = run("evaluate", *public, "--mode", "bm25", "--with", "k1=0", "--with", "search.b=0")
    assert done.code == 0, done.err
    (found,) = report()["comparisons"]
    assert (found["first"], found["second"]) == ("bm25", "k1=0 search.b=0")
    row = found["measures"]["ndcg@10"]
    assert row.keys() == {"first", "second", "difference", "interval", "p", "wins", "losses", "ties", "certain"}
    assert row["wins"] + row["losses"] + row["ties"] == 3
    assert "compared with bm25" in done.out
    assert run("evaluate", *public, "--with", "nonsense=1").code == 2
    assert run("evaluate", *public, "--with", "k1").code == 2
    assert run("evaluate", *public, "--with", "k1=much").code == 2


def test_a_former_report_is_compared_question_by_question(run: Run, public: tuple[str, ...]) -> None:
    assert run("evaluate", *public, "--mode", "bm25", "--output-dir", "before").code == 0
    assert run("evaluate", *public, "--mode", "bm25", "--against", "before/report.json").code == 0
    (found,) = report()["comparisons"]
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
    assert "says nothing about semantic, only about bm25" in other.err
    for path in (public[3], public[5]):
        path.write_text(re.sub(r"\bq(\d)\b", r"z\1", path.read_text(encoding="utf-8")), encoding="utf-8")
    done = run("evaluate", *public, "--mode", "bm25", "--against", "before/report.json")
    assert done.code == 3
    assert "shares no question" in done.err


def test_a_kept_library_answers_again_without_its_fixture(run: Run, files: tuple[str, Path, str, Path]) -> None:
    made = run("init-test-db", *NEEDED[:4], "--persist-dir", "kept", *files[2:], "--json")
    assert made.code == 0, made.err
    assert json.loads(made.out) == {"library": "kept", "documents": 4, "chunks": 4}
    files[3].unlink()
    done = run("evaluate", *NEEDED, *files[:2], "--persist-dir", "kept")
    assert done.code == 0, done.err
    assert report()["measures"]["recall"] == 1.0
    # It is a library like any other.
    asked = run("search", "りゅうおう", "--library", "kept", "--json")
    assert json.loads(asked.out)["results"][0]["file_path"] == "https://example.com/ryuuou"


def test_init_test_db_goes_where_the_default_says_and_needs_its_options(run: Run, files: tuple[str, ...]) -> None:
    assert run("init-test-db", *NEEDED[:4], *files[2:]).code == 0
    assert Path(".tmp/test_chroma_db/library.db").exists()
    assert run("init-test-db", *NEEDED[:2], *files[2:]).code == 2
    assert run("init-test-db", *NEEDED[2:4], *files[2:]).code == 2


def test_nothing_is_written_into_the_users_library(run: Run, files: tuple[str, ...], tmp_path: Path) -> None:
    assert run("evaluate", *NEEDED, *files).code == 0
    assert not (tmp_path / "XDG_DATA_HOME").exists()


class Page(HTMLParser):
    """Collects what a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_loads_nothing_and_shows_hostile_text_as_text(run: Run, files: tuple[str, ...]) -> None:
    assert run("evaluate", *NEEDED, *files, "--mode", "bm25", "--mode", "hybrid").code == 0
    text = Path(".tmp/rag-evaluation/report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "embed", "a", "form", "base"}
    assert not {name for name in page.names if name.startswith("on") or name in ("src", "href", "srcset", "style")}
    assert {"svg", "details", "style"} <= page.tags
    assert "<script>alert('x')</script>" in page.text
    assert "\u202e" not in text
    assert "default-src 'none'" in text
    assert not re.search(r"url\(|@import", text)


def test_text_in_tables_cannot_break_out_of_them(run: Run, files: tuple[str, Path, str, Path]) -> None:
    rows = [QUERIES[0] | {"id": "a|b\n# c", "query": "x | y\n\n## boo \x1b[31m", "expected_sources": [DOCUMENTS[0][0]]}]
    files[1].write_text(json.dumps({"queries": rows}), encoding="utf-8")
    done = run("evaluate", *NEEDED, *files)
    assert done.code == 0
    lines = Path(".tmp/rag-evaluation/report.md").read_text(encoding="utf-8").splitlines()
    assert any("x \\| y ## boo" in line for line in lines)
    assert not any(line.startswith(("## boo", "# c")) for line in lines)
    assert "\x1b" not in done.out


def test_a_set_in_which_nothing_has_an_answer_can_be_measured(run: Run, files: tuple[str, Path, str, Path]) -> None:
    files[1].write_text(json.dumps({"queries": QUERIES[3:]}), encoding="utf-8")
    done = run("evaluate", *NEEDED, *files, "--mode", "all", "--threshold", "0.1", "--save-baseline")
    assert done.code == 0, done.err
    assert report()["modes"]["semantic"]["measures"] == {"negative_rate": 0.0, "abstention": 1.0}


def test_a_set_in_which_nothing_can_be_measured_is_an_error(
    run: Run, files: tuple[str, Path, str, Path], public: tuple[str, Path, str, Path, str, Path]
) -> None:
    files[1].write_text('{"queries": [{"id": "q", "query": "x"}]}', encoding="utf-8")
    public[5].write_text(public[5].read_text(encoding="utf-8").replace("\t1\n", "\t0\n"), encoding="utf-8")
    for asked in ((*NEEDED, *files), public):
        done = run("evaluate", *asked, "--save-baseline")
        assert done.code == 3
        assert "Nothing can be measured" in done.err
        assert not Path(".tmp").exists()
    some = run("evaluate", *NEEDED, *files, "--threshold", "0.1")
    assert some.code == 0
    assert "1 question (1 without an answer), 4 documents" in some.out


def test_broken_unicode_is_no_reason_to_stop(run: Run, files: tuple[str, Path, str, Path]) -> None:
    broken = r'{"documents": [{"source_url": "a\ud800", "title": "\udfff", "content": "text with \ud83d half a pair"}]}'
    files[3].write_text(broken, encoding="utf-8")
    files[1].write_text(
        r'{"queries": [{"id": "\ud800", "query": "half \ud83d", "expected_sources": ["a\ud800"]}]}', encoding="utf-8"
    )
    done = run("evaluate", *NEEDED, *files, "--run-file", "run.txt")
    assert done.code == 0, done.err
    assert report()["measures"]["recall"] == 1.0


def test_a_terminal_gets_tables_and_a_progress_bar(files: tuple[str, ...], tmp_path: Path) -> None:
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="160")
    written = at_a_terminal("evaluate", *NEEDED, *files, "--mode", "bm25", "--mode", "hybrid", env=terminal)
    assert "Importing" in written
    assert "Asking, hybrid" in written
    assert "│ ndcg@5" in written
    assert "hybrid compared with bm25" in written
