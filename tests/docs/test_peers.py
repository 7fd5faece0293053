"""Test how the benchmark beside other engines writes its documents, judges answers and fills its table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bench import peer_engines, peers
from bench.clock import Cost
from bench.documents import find_document

import bunko
from bunko.evaluation.dataset import JudgedDocument, JudgedQuery
from bunko.indexes.embedded.view import EmbeddedView

DOCUMENTS = [
    JudgedDocument("https://a.example/vpn", "VPN の設定", "社外から接続する方法です。"),
    JudgedDocument("https://a.example/lunch", "", "The canteen opens at noon."),
]
QUERIES = [
    JudgedQuery("1", "VPNに接続する", {"https://a.example/vpn": 1.0}),
    JudgedQuery("2", "When does the canteen open?", {"https://a.example/lunch": 2.0}),
]


def test_what_bunko_finds_in_the_written_files_is_judged_by_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = peers.write_files(DOCUMENTS, QUERIES, tmp_path)
    with bunko.open(tmp_path / "docs", environ={}) as library:
        library.reindex()
        monkeypatch.setattr(bunko, "open", lambda *_, **__: library)  # else nothing closes it before its process ends
        search = peer_engines.ENGINES["bunko, words and meaning"].open(tmp_path)
        hits = [search(query, peer_engines.TOP) for query in json.loads((tmp_path / "queries.json").read_text("utf-8"))]
    measures = peers.judge(QUERIES, [[ids[file] for file in files] for files in hits])
    assert [(row["ndcg@10"], row["recall@10"]) for row in measures] == [(1.0, 1.0)] * 2


def test_other_engines_get_the_vectors_of_bunko(tmp_path: Path) -> None:
    peers.write_files(DOCUMENTS, QUERIES, tmp_path)
    with bunko.open(tmp_path / "docs", environ={}) as library:
        library.reindex()
        with library.store.read_transaction():
            view = library.index_view([tool.id for tool in library.tools()])
    assert isinstance(view, EmbeddedView)
    _, _, vectors = peer_engines.read_chunks(tmp_path / "docs")
    assert np.allclose(vectors @ view.views[0].segment.vectors.T, vectors @ vectors.T)


def test_each_document_counts_once_however_often_it_is_found() -> None:
    wrong_first = ["https://a.example/lunch"] * 9 + ["https://a.example/vpn"]
    [measures] = peers.judge(QUERIES[:1], [wrong_first])
    assert (round(measures["ndcg@10"], 4), measures["recall@10"]) == (0.6309, 1.0)  # 1 / log2(3)


def test_words_are_asked_as_qmd_stores_them_and_as_others_index_them() -> None:
    query = "VPNに接続しました? The lines are busy"
    assert peers.words_as_written(query) == ["VPN", "接続", "lines", "busy"]
    assert peer_engines.split_words(query) == ["vpn", "接続", "為る", "line", "busi"]


def test_a_row_has_the_middle_of_the_visits_and_no_number_that_was_not_measured() -> None:
    visits = [{"first": 0.2, "search": seconds, "rss": 50e6, "hits": []} for seconds in (0.009, 0.001, 0.002)]
    costs = peers.build_costs(Cost(3.0, 4.0), visits, 7_000_000)
    assert costs == ["3", "4", "0.20", "–", "2", "50", "7"]
    name, message, *dashes = peers.missing_row("qmd, words")
    assert (name, message, set(dashes)) == ("qmd, words", "not installed", {"–"})


def test_only_a_certain_difference_is_bold() -> None:
    ours = [{"ndcg@10": 1.0, "recall@10": 1.0}] * 20
    worse = [{"ndcg@10": 0.5, "recall@10": 1.0}] * 20
    mixed = [{"ndcg@10": ndcg, "recall@10": 1.0} for ndcg in (0.9, 1.1)] * 10
    assert peers.build_scores(ours, ours) == ["1.000", "1.000", "–"]
    assert peers.build_scores(worse, ours) == ["1.000", "0.500", "**−0.500 (−0.500…−0.500)**"]
    assert not peers.build_scores(mixed, ours)[2].startswith("**")


def test_only_a_judged_set_with_a_table_is_written_into_the_notes() -> None:
    note = find_document(f"peers-{peers.own_set().name}")
    assert note is not None
    assert note.name == "peers.md"
    assert find_document("peers-mine") is None
