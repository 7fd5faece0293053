"""The API tells of rerankers and local models: what they did to a search, and what each lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.local_models.catalogue import KNOWN_MODELS
from tests.conftest import Opener
from tests.http_api.client import ApiClient
from tests.http_api.test_description import check_reply
from tests.tiny_models import write_cross_encoder


@pytest.fixture
def reranked(docs: Path, open_docs: Opener, tmp_path: Path) -> ApiClient:
    """A client of a server whose reranker prefers the text that shares most letters with the query."""
    (docs / "a.md").write_text("# fur\n\ncat cat cat\n", "utf-8")
    (docs / "b.md").write_text("# sky\n\ncat is good " + "umbrella in winter " * 8, "utf-8")
    model = write_cross_encoder(tmp_path / "letters")
    return ApiClient(open_docs(BUNKO_SEARCH_RERANKER=str(model), BUNKO_EMBEDDING_PROVIDER="none"))


def test_a_search_names_the_model_that_reranked_it_and_explains_its_scores(reranked: ApiClient) -> None:
    reply = reranked.get("/search", q="cat dog", explain="true").json
    check_reply("/search", reply)
    assert reply["reranker"] == "letters"
    assert [result["file_path"] for result in reply["results"]] == ["b.md", "a.md"]
    scores = [result["explain"]["reranker"] for result in reply["results"]]
    assert [score["rank"] for score in scores] == [1, 2]
    assert scores[0]["score"] > scores[1]["score"]
    assert [result["reranker_score"] for result in reply["results"]] == [score["score"] for score in scores]


def test_a_search_may_do_without_the_reranker(reranked: ApiClient) -> None:
    reply = reranked.get("/search", q="cat dog", rerank="false", explain="true").json
    check_reply("/search", reply)
    assert "reranker" not in reply
    assert [result["file_path"] for result in reply["results"]] == ["a.md", "b.md"]
    assert all("reranker" not in result["explain"] for result in reply["results"])
    assert all("reranker_score" not in result for result in reply["results"])


def test_the_next_page_goes_on_in_the_order_of_the_reranker(reranked: ApiClient) -> None:
    cursor = reranked.get("/search", q="cat dog", top_k=1).json["next_cursor"]
    reply = reranked.get("/search", q="cat dog", top_k=1, cursor=cursor).json
    assert [result["file_path"] for result in reply["results"]] == ["a.md"]


def test_an_answer_without_its_reranker_is_not_kept(
    docs: Path, open_docs: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    (docs / "a.md").write_text("# fur\n\ncat cat cat\n", "utf-8")
    settings = {"BUNKO_SEARCH_RERANKER": "bge-reranker-v2-m3", "BUNKO_EMBEDDING_PROVIDER": "none"}
    reply = ApiClient(open_docs(**settings)).get("/search", q="cat")
    assert any("bunko models get bge-reranker-v2-m3" in notice for notice in reply.json["notices"])
    assert "etag" not in reply.headers


def test_local_models_are_listed_with_what_they_are_and_what_each_lacks(
    client: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    reply = client.get("/models").json
    check_reply("/models", reply)
    assert [model["name"] for model in reply["models"]] == [model.name for model in KNOWN_MODELS]
    first = reply["models"][0]
    assert (first["here"], first["in_use"]) == (False, False)
    assert "bunko models get ruri-v3-30m" in first["missing"]
    assert first["licence"] == "Apache-2.0"
    assert client.limited_to(read=("documents",)).get("/models").status == 403
