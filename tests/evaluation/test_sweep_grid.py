"""A grid is parsed from `name=values` texts, and what cannot be swept is refused."""

from __future__ import annotations

import re

import pytest

from bunko.errors import SettingsError
from bunko.evaluation.sweep.grid import Grid, parse_grid
from bunko.evaluation.sweep.result import check_measure


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("vector_weight=0:1:0.1", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        ("search.k1=0.8, 1.2,1.2", (0.8, 1.2)),
        ("chunk_size=100:250:100", (100, 200)),
        ("b=0,0.5:0.7:0.1,1", (0.0, 0.5, 0.6, 0.7, 1.0)),
        ("threshold=none,0.5", (None, 0.5)),
        ("fusion=rrf,cc", ("rrf", "cc")),
        ("loanwords=true,false", (True, False)),
        ("n_results=3,10", (3, 10)),
    ],
)
def test_a_dimension_is_a_list_or_a_range_with_its_end(text: str, values: tuple[object, ...]) -> None:
    assert parse_grid([text]).dimensions[0].values == values


def test_a_grid_has_every_combination() -> None:
    found = parse_grid(["k1=1,2", "mode=bm25,hybrid"])
    assert len(found) == 4
    assert list(found.points()) == [
        {"k1": 1.0, "mode": "bm25"}, {"k1": 1.0, "mode": "hybrid"},
        {"k1": 2.0, "mode": "bm25"}, {"k1": 2.0, "mode": "hybrid"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["kk1=1"], "'kk1' is not a setting"),
        (["k1"], "not name=values"),
        (["=1"], "not name=values"),
        (["k1="], "empty value"),
        (["k1=1,,2"], "empty value"),
        (["k1=2:1:0.1"], "empty range"),
        (["k1=1:2:0"], "empty range"),
        (["k1=1:2:-1"], "empty range"),
        (["k1=1:nan:1"], "not a range of numbers"),
        (["k1=a:b:c"], "not a range of numbers"),
        (["k1=1:2"], "--grid k1=1:2 is not a range from:to:step"),
        (["k1=1:2:3:4"], "not a range from:to:step"),
        (["mode=a:b"], "one of bm25, semantic, hybrid"),
        (["b=1.5"], "from 0 to 1"),
        (["b=0:2:0.5"], "from 0 to 1"),
        (["mode=both"], "one of bm25, semantic, hybrid"),
        (["mode=a:b:c"], "does not take a range"),
        (["chunk_size=100:200:0.5"], "whole number"),
        (["k1=0:1:0.0001"], "10,001 values"),
        (["k1=1", "search.k1=2"], "twice"),
        (["freshness_seconds=1"], "cannot be swept"),
        (["heading_levels=1"], "cannot be swept"),
        (["serve.token=x"], "cannot be swept"),
        (["timezone=UTC,Asia/Tokyo"], "timezone cannot be swept"),
        (["rerank_seconds=1,2"], "rerank_seconds cannot be swept"),
        (["reranker=a,b"], "reranker cannot be swept"),
        (["search.rerank_count=10,20"], "search.rerank_count cannot be swept"),
        (["rrf_k=1:100:1", "b=0:1:0.01"], "10,100 points (100 × 101), and at most 10,000"),
    ],
)
def test_a_bad_grid_is_refused_with_its_reason(texts: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        parse_grid(texts)


def test_what_cannot_be_swept_is_refused_with_all_that_can() -> None:
    with pytest.raises(SettingsError, match="cannot be swept") as refused:
        parse_grid(["timezone=UTC"])
    names = refused.value.hint.removeprefix("A grid varies how searches rank and how documents are chunked: ")
    listed = names.removesuffix(".").split(", ")
    assert {"mode", "k1", "rrf_k", "bridge", "n_results", "threshold", "chunk_size", "chunking.size"} <= set(listed)
    assert not {"timezone", "reranker", "freshness_seconds", "heading_levels"} & set(listed)
    values = {"mode": "bm25", "fusion": "rrf", "kind": "prose"}
    for name in listed:
        assert parse_grid([f"{name}={values.get(name, '1' if 'size' not in name else '600')}"]).dimensions


def test_the_largest_grid_can_be_chosen() -> None:
    assert len(parse_grid(["rrf_k=1:100:1", "b=0:1:0.01"], limit=20_000)) == 10_100
    with pytest.raises(SettingsError, match="at most 3") as refused:
        parse_grid(["k1=1,2,3,4"], limit=3)
    assert "--max-points" in refused.value.hint


def test_a_size_of_chunks_without_a_chunker_means_pieces_of_that_size() -> None:
    found: Grid = parse_grid(["chunk_size=100,200"])
    assert found.overrides({"chunk_size": 100})["chunker.kind"] == "prose"
    assert parse_grid(["chunk_size=100", "kind=paragraphs"]).overrides({"chunk_size": 100, "kind": "paragraphs"})[
        "chunker.kind"
    ] == "paragraphs"  # fmt: skip


@pytest.mark.parametrize(("name", "depth"), [("ndcg@10", 10), ("hit@1", 1), ("f1", None), ("map@1000", 1000)])
def test_a_measure_has_its_depth(name: str, depth: int | None) -> None:
    assert check_measure(name) == depth


@pytest.mark.parametrize("name", ["ndcg", "ndcg@0", "ndcg@1001", "f1@3", "", "ndcg@10 "])
def test_what_is_no_measure_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="There is no measure"):
        check_measure(name)
