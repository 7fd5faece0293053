"""`bunko evaluate` and `bunko init-test-db` as people and scripts meet them: options, files, exit codes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import ir_measures
import pytest

from tests.cli.processes import at_a_terminal, subprocess_environment
from tests.conftest import Run
from tests.evaluation.small_set import DOCUMENTS, NEEDED, QUERIES, load_report

pytestmark = pytest.mark.usefixtures("working_folder")


def test_an_evaluation_writes_its_reports_where_the_defaults_say(run: Run, files: tuple[str, ...]) -> None:
    done = run("evaluate", *NEEDED, *files)
    assert done.code == 0, done.err
    assert sorted(path.name for path in Path(".tmp/rag-evaluation").iterdir()) == [
        "report.html", "report.json", "report.md",
    ]  # fmt: skip
    found = load_report()
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


def test_a_set_with_empty_documents_is_measured_without_them(
    run: Run, public: tuple[str | Path, ...], tmp_path: Path
) -> None:
    with (tmp_path / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write('\n{"_id": "471", "title": "", "text": ""}\n{"_id": 995, "text": ""}\n')
    done = run("evaluate", *public)
    assert done.code == 0, done.err
    notice = f"{tmp_path / 'corpus.jsonl'}: 2 empty documents are left out: 471, 995"
    assert notice in done.err.splitlines()
    assert load_report()["notices"] == [notice]
    assert notice in Path(".tmp/rag-evaluation/report.md").read_text(encoding="utf-8")
    assert run("sweep", *public, "--grid", "k1=1,2", "--mode", "bm25").err.splitlines()[0] == notice


def test_a_name_in_a_table_is_found(run: Run, files: tuple[str, ...]) -> None:
    run("evaluate", *NEEDED, *files, "--mode", "bm25")
    first = load_report()["modes"]["bm25"]["queries"][0]
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


@pytest.mark.slow
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
    assert load_report()["judged"]["queries"] == 4


def test_a_named_file_that_is_not_there_is_an_error(run: Run) -> None:
    done = run("evaluate", *NEEDED, "--dataset", "nowhere.json")
    assert done.code == 3
    assert "nowhere.json" in done.err


def test_a_broken_dataset_is_an_error_with_file_and_line(run: Run, files: tuple[str, Path, str, Path]) -> None:
    files[1].write_text('{"queries": [\n{"id": "q1", "query": 5}]}', encoding="utf-8")
    done = run("evaluate", *NEEDED, *files)
    assert done.code == 3
    assert f'{files[1]}:2: "query" must be text' in done.err
    assert not Path(".tmp").exists()


def test_a_public_set_needs_no_options_and_gives_its_scores_plain_names(run: Run, public: tuple[str, ...]) -> None:
    done = run("evaluate", *public, "--mode", "all", "--output-dir", "out", "--run-file", "runs/run.txt")
    assert done.code == 0, done.err
    found = load_report("out")
    assert {"ndcg@10", "recall@10", "mrr@10"} <= found["measures"].keys()
    assert list(found["modes"]) == ["bm25", "semantic", "hybrid"]
    assert [(one["first"], one["second"]) for one in found["comparisons"]] == [("bm25", "semantic"), ("bm25", "hybrid")]
    qrels = "".join(f"{one['id']} 0 {one['expected_sources'][0]} 1\n" for one in QUERIES[:3])
    judgements = list(ir_measures.read_trec_qrels(qrels))  # type: ignore[no-untyped-call]
    for mode in ("bm25", "semantic", "hybrid"):
        scored = list(ir_measures.read_trec_run(f"runs/run-{mode}.txt"))  # type: ignore[no-untyped-call]
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
    assert load_report()["mode"] == "semantic"


@pytest.mark.slow
def test_the_halves_of_a_set_share_no_question_and_an_earlier_report_of_all_of_it_compares_with_each(run: Run) -> None:
    assert run("evaluate", *NEEDED, "--mode", "bm25", "--output-dir", "all").code == 0
    everything = load_report("all")["judged"]["queries"]
    asked = []
    for half in ("first", "second"):
        arguments = ("--mode", "bm25", "--half", half, "--against", "all/report.json", "--output-dir", half)
        result = run("evaluate", *NEEDED, *arguments)
        assert "only questions in both are compared" in result.err
        report = load_report(half)
        asked.append({query["id"] for query in report["modes"]["bm25"]["queries"]})
        assert everything * 0.35 < len(asked[-1]) < everything * 0.65
        assert report["comparisons"][0]["measures"]["ndcg@5"]["difference"] == 0
    assert not asked[0] & asked[1]
    assert len(asked[0] | asked[1]) == everything


def test_a_half_without_a_question_is_an_error(run: Run, files: tuple[str, Path, str, Path]) -> None:
    query = {"id": "q1", "query": "りゅうおう", "expected_sources": ["https://example.com/ryuuou"]}
    files[1].write_text(json.dumps({"queries": [query]}), encoding="utf-8")
    results = [run("evaluate", *NEEDED, *files, "--half", half) for half in ("first", "second")]
    assert sorted(result.code for result in results)[0] == 0
    assert sum("has no question in the" in result.err for result in results) == 1


def test_a_kept_library_answers_again_without_its_fixture(run: Run, files: tuple[str, Path, str, Path]) -> None:
    made = run("init-test-db", *NEEDED[:4], "--persist-dir", "kept", *files[2:], "--json")
    assert made.code == 0, made.err
    assert json.loads(made.out) == {"library": "kept", "documents": 4, "chunks": 4}
    files[3].unlink()
    done = run("evaluate", *NEEDED, *files[:2], "--persist-dir", "kept")
    assert done.code == 0, done.err
    assert load_report()["measures"]["recall"] == 1.0
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
    assert load_report()["modes"]["semantic"]["measures"] == {"negative_rate": 0.0, "abstention": 1.0}


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
    assert load_report()["measures"]["recall"] == 1.0


@pytest.mark.slow
def test_a_terminal_gets_tables_and_a_progress_bar(files: tuple[str, ...], tmp_path: Path) -> None:
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="160")
    written = at_a_terminal("evaluate", *NEEDED, *files, "--mode", "bm25", "--mode", "hybrid", env=terminal)
    assert "Importing" in written
    assert "Searching, hybrid" in written
    assert "\nndcg@5 " in written
    assert "hybrid compared with bm25" in written
