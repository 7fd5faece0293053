"""Judged documents are held in a library of their own, and each document is judged once."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import LibraryMismatch
from bunko.evaluation.dataset import JudgedDocument, JudgedQuery, JudgedSet
from bunko.evaluation.eval_library import JUDGED_TOOL, judged_library, open_library, stored_documents
from bunko.evaluation.evaluate import AlternativeSettings, EvaluationPlan, evaluate
from bunko.evaluation.run import run_queries
from bunko.runtime.observer import Observer
from bunko.settings.schema import ChunkerSection, SearchSection, Settings
from bunko.types import Text, Tool

PARAGRAPH = "猫は魚を食べる動物である。" * 12
DOCUMENTS = (
    JudgedDocument("https://example.com/cat", "猫", "\n\n".join([PARAGRAPH] * 8)),
    JudgedDocument("https://example.com/dog", "犬", "犬は猫と遊ぶ動物である。"),
    JudgedDocument("https://example.com/rust", "Rust", "A language without a garbage collector."),
)
CAT, DOG, RUST = (one.id for one in DOCUMENTS)
SMALL = Settings(chunker=ChunkerSection(kind="prose", chunk_size=100, chunk_overlap=10))


def judged(*queries: JudgedQuery) -> JudgedSet:
    return JudgedSet("test", DOCUMENTS, queries)


def test_a_document_in_many_chunks_is_judged_once() -> None:
    with judged_library(DOCUMENTS, SMALL) as library:
        asked = [JudgedQuery("q", "猫 動物", {DOG: 1.0})]
        found = run_queries(library, asked, mode="bm25", n_results=2).results[0]
        assert library.status().tools[0].totals.chunks > 10
    # Eight of the first chunks are of one document; with its rivals' chunks counted the other would come ninth.
    assert sorted(one.uri for one in found.documents) == [CAT, DOG]
    assert found.measures["recall@2"] == 1.0


def test_the_score_of_a_document_is_that_of_its_best_chunk() -> None:
    documents = (JudgedDocument(CAT, "猫", f"{PARAGRAPH}\n\n猫。\n\n{PARAGRAPH}"), DOCUMENTS[1])
    with judged_library(documents, SMALL) as library:
        hits = library.search("猫 魚", mode="bm25", top_k=10, refresh=False).hits
        found = (
            run_queries(library, [JudgedQuery("q", "猫 魚", {CAT: 1.0})], mode="bm25", n_results=2).results[0].documents
        )
    scores = [hit.score for hit in hits if hit.uri == CAT]
    assert min(scores) < max(scores)
    assert {one.uri: one.score for one in found}[CAT] == max(scores)


def test_as_many_chunks_are_asked_for_as_are_given() -> None:
    with judged_library(DOCUMENTS, SMALL) as library:
        found = run_queries(
            library, [JudgedQuery("q", "魚 食べる", {DOG: 1.0})], mode="bm25", n_results=3, n_chunks=3
        ).results[0]
    assert [one.uri for one in found.documents] == [CAT]
    assert (found.measures["precision"], found.measures["precision@3"]) == (0.0, 0.0)


def test_options_of_a_search_reach_it() -> None:
    with judged_library(DOCUMENTS, Settings()) as library:
        asked = [JudgedQuery("q", "猫", {CAT: 1.0})]
        near = run_queries(library, asked, mode="semantic", n_results=3)
        none = run_queries(library, asked, mode="semantic", n_results=3, similarity_threshold=0.0)
    assert len(near.results[0].documents) == 3
    assert none.results[0].documents == ()


def test_questions_without_an_answer_count_where_they_should() -> None:
    asked = (
        JudgedQuery("none", "zzz qqq", {}, negatives=(RUST,), kind="none"),
        JudgedQuery("cat", "猫", {CAT: 2.0}, negatives=(DOG,), keywords=("魚", "宇宙")),
    )
    with judged_library(DOCUMENTS, Settings()) as library:
        plain = run_queries(library, asked, mode="semantic", n_results=3)
        strict = run_queries(library, asked, mode="semantic", n_results=3, similarity_threshold=0.0)
        words = run_queries(library, asked, mode="bm25", n_results=3, similarity_threshold=0.0)
    assert plain.measures["recall@3"] == 1.0
    assert list(plain.values["ndcg@3"]) == ["cat"]
    assert plain.values["negative_rate"] == {"none": 1.0, "cat": 1.0}
    assert plain.values["keywords"] == {"cat": 0.5}
    assert "abstention" not in plain.measures
    assert strict.measures["abstention"] == 1.0
    assert strict.measures["negative_rate"] == 0.0
    assert "abstention" not in words.measures  # no threshold holds there


def test_results_are_grouped_by_what_questions_have_in_common() -> None:
    asked = (
        JudgedQuery("a", "猫", {CAT: 1.0}, language="ja", kind="word"),
        JudgedQuery("b", "garbage collector", {RUST: 1.0}, language="en", kind="word"),
        JudgedQuery("c", "garbage", {CAT: 1.0}, language="en", kind="phrase"),
    )
    with judged_library(DOCUMENTS, Settings()) as library:
        found = run_queries(library, asked, mode="bm25", n_results=3)
    languages = found.groups(lambda query: query.language)
    assert {name: len(of) for name, of in languages.items()} == {"en": 2, "ja": 1}
    assert [one.query.id for one in found.groups(lambda query: query.kind)["phrase"]] == ["c"]


def test_a_kept_library_is_used_again_and_only_changes_are_imported(tmp_path: Path) -> None:
    done: list[int] = []
    observer = Observer(on_progress=lambda progress: done.append(progress.files))
    with judged_library(DOCUMENTS, SMALL, persist_dir=tmp_path, observer=observer) as library:
        first = library.store.generation()
    assert done == [3]
    with judged_library(DOCUMENTS, SMALL, persist_dir=tmp_path, observer=observer) as library:
        assert library.store.generation() == first
    assert done == [3]
    changed = (*DOCUMENTS[:2], JudgedDocument(RUST, "Rust", "Fearless concurrency."))
    with judged_library(changed[1:], SMALL, persist_dir=tmp_path, observer=observer) as library:
        assert set(library.store.documents.fingerprints(library.tools()[0].id)) == {DOG, RUST}
        assert library.search("concurrency", refresh=False).hits[0].uri == RUST
    assert done == [3, 1]


def test_a_kept_library_is_built_anew_for_other_chunks_and_keeps_its_documents(tmp_path: Path) -> None:
    with judged_library(DOCUMENTS, SMALL, persist_dir=tmp_path) as library:
        many = library.status().tools[0].totals.chunks
    assert stored_documents(tmp_path, Settings()) == DOCUMENTS
    with judged_library(stored_documents(tmp_path, Settings()), Settings(), persist_dir=tmp_path) as library:
        assert library.status().tools[0].totals.chunks < many
        assert library.search("garbage collector", refresh=False).hits[0].uri == RUST


def test_a_library_that_somebody_uses_is_refused_and_left_alone(tmp_path: Path) -> None:
    with open_library(tmp_path, Settings()) as library:
        library.replace_texts(Tool("notes", "folder", "Mine"), {"a.md": Text("大切なメモ", "text/markdown", "utf-8")})
    with pytest.raises(LibraryMismatch, match="notes"), judged_library(DOCUMENTS, Settings(), persist_dir=tmp_path):
        pass
    with pytest.raises(LibraryMismatch, match="notes"):
        stored_documents(tmp_path, Settings())


def test_without_a_place_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with judged_library(DOCUMENTS, Settings()) as library:
        assert library.paths.folder.is_relative_to(tmp_path)
        assert [tool.name for tool in library.tools()] == [JUDGED_TOOL]
    assert list(tmp_path.iterdir()) == []


def test_derived_files_do_not_go_where_the_users_own_lie(tmp_path: Path) -> None:
    from bunko.settings.schema import StorageSection

    mine = tmp_path / "mine"
    with judged_library(
        DOCUMENTS, Settings(storage=StorageSection(bm25_persist_dir=str(mine))), persist_dir=tmp_path / "kept"
    ):
        pass
    assert not mine.exists()


def test_modes_are_compared_with_the_first_and_settings_with_the_same_mode() -> None:
    asked = judged(JudgedQuery("a", "猫 動物", {CAT: 1.0}), JudgedQuery("b", "garbage", {RUST: 1.0}))
    repetition_ignored: dict[str, Any] = {"k1": 0.0}
    other = AlternativeSettings("k1=0", Settings(search=SearchSection(**repetition_ignored)))
    done = evaluate(asked, Settings(), EvaluationPlan(("bm25", "hybrid"), 3), alternative=other)
    assert [run.name for run in done.runs] == ["bm25", "hybrid", "bm25, k1=0", "hybrid, k1=0"]
    pairs = [(one.first, one.second) for one in done.comparisons]
    assert pairs == [("bm25", "hybrid"), ("bm25", "bm25, k1=0"), ("hybrid", "hybrid, k1=0")]
    assert done.main_run.results[0].documents[-1].score != done.runs[2].results[0].documents[-1].score


def test_a_side_that_cuts_otherwise_is_built_apart() -> None:
    asked = judged(JudgedQuery("a", "猫 動物", {CAT: 1.0}))
    done = evaluate(asked, Settings(), EvaluationPlan(("bm25",), 3), alternative=AlternativeSettings("small", SMALL))
    whole, small = (run.results[0].documents[0] for run in done.runs)
    assert len(small.text) <= 100 < len(whole.text)


def test_two_evaluations_give_the_same_numbers() -> None:
    asked = judged(JudgedQuery("a", "猫 動物", {CAT: 1.0, DOG: 3.0}), JudgedQuery("b", "garbage", {RUST: 1.0}))
    plan = EvaluationPlan(("hybrid", "bm25"), 3)
    one, two = (evaluate(asked, Settings(), plan) for _ in range(2))
    assert [run.values for run in one.runs] == [run.values for run in two.runs]
    assert one.main_run.intervals == two.main_run.intervals
    assert one.comparisons == two.comparisons


def test_quotes_and_hyphens_of_judged_queries_have_no_meaning() -> None:
    with judged_library(DOCUMENTS, SMALL) as library:
        asked = [JudgedQuery("q", '"動物 遊ぶ" -猫', {DOG: 1.0})]
        found = run_queries(library, asked, mode="bm25", n_results=3).results[0]
        assert library.search(asked[0].text, mode="bm25", refresh=False).hits == []
    assert [one.uri for one in found.documents] == [DOG, CAT]


def test_questions_with_other_wordings_are_measured_with_and_without_them() -> None:
    plain = JudgedQuery("a", "yyyy", {CAT: 1.0})
    asked = judged(replace(plain, also=("猫 動物",)), JudgedQuery("b", "garbage", {RUST: 1.0}))
    done = evaluate(asked, Settings(), EvaluationPlan(("bm25",), 3))
    assert [run.name for run in done.runs] == ["bm25", "bm25, with wordings"]
    assert [run.measures["ndcg@3"] for run in done.runs] == [0.5, 1.0]
    assert [(one.first, one.second) for one in done.comparisons] == [("bm25", "bm25, with wordings")]
    assert asked.digest == judged(plain, asked.queries[1]).digest
    alone = evaluate(judged(plain, asked.queries[1]), Settings(), EvaluationPlan(("bm25",), 3))
    assert [run.name for run in alone.runs] == ["bm25"]
    assert alone.main_run.values == done.main_run.values
