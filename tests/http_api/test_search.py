"""Search over HTTP: the same page of results as everywhere, with parameters that are checked."""

from __future__ import annotations

import json

import pytest

from bunko.interfaces.serialize import page_to_dict
from bunko.search.request import SearchRequest
from tests.http_api.client import ApiClient


def test_a_search_answers_with_the_same_page_as_the_library(client: ApiClient) -> None:
    reply = client.get("/search", q="蜜柑", explain="true", extract="snippet")
    expected = page_to_dict(client.registry.library().page(SearchRequest("蜜柑", explain=True, extract="snippet")))
    assert reply.status == 200
    assert reply.json["results"] == json.loads(json.dumps(expected["results"]))
    assert reply.json["results"][0]["file_path"] == "guide/setup.md"
    assert reply.json["results"][0]["marks"]
    assert reply.json["results"][0]["explain"]["bm25"]["rank"] == 1


def test_filters_limit_the_results(client: ApiClient) -> None:
    assert [hit["file_path"] for hit in client.get("/search", q="", tag="果物").json["results"]] == ["plain.md"]
    assert [hit["file_path"] for hit in client.get("/search", q="", path="guide/**").json["results"]] == [
        "guide/setup.md"
    ]
    assert client.get("/search", q="葡萄", until="2020").json["results"] == []


def test_a_cursor_continues_a_search(client: ApiClient) -> None:
    first = client.get("/search", q="この文", top_k=1).json
    second = client.get("/search", q="この文", top_k=1, cursor=first["next_cursor"]).json
    assert first["results"][0]["citation"] != second["results"][0]["citation"]


def test_ranking_options_change_the_ranking(client: ApiClient) -> None:
    scores = [client.get("/search", q="蜜柑", b=b, k1=2).json["results"][0]["bm25_score"] for b in (0, 1)]
    assert scores[0] != scores[1]


@pytest.mark.parametrize(
    ("query", "parameter", "detail"),
    [
        ({"top_k": "0"}, "top_k", "top_k must be at least 1"),
        ({"top_k": "many"}, "top_k", "top_k must be a whole number"),
        ({"mode": "magic"}, "mode", "mode must not be 'magic'"),
        ({"b": "nan"}, "b", "b must be a number"),
        ({"explain": "perhaps"}, "explain", "explain must be true or false"),
        ({"topk": "3"}, "topk", "There is no parameter 'topk'"),
        ({"q": ["a", "b"]}, "q", "q is given twice"),
    ],
)
def test_a_wrong_parameter_is_named(client: ApiClient, query: dict[str, str], parameter: str, detail: str) -> None:
    reply = client.get("/search", **({"q": "x"} | query))
    assert reply.status == 400
    assert reply.headers["content-type"] == "application/problem+json"
    assert (reply.json["parameter"], reply.json["detail"]) == (parameter, detail)
    assert reply.json["hint"]


def test_an_error_of_the_library_is_a_problem_with_its_code(client: ApiClient) -> None:
    reply = client.get("/search", q="x", tool="nothing")
    assert reply.status == reply.json["status"] == 404
    assert reply.json["type"] == "/problems/unknown"
    assert reply.json["title"] == "No such tool, document or provider"
    assert client.get("/search", q="").json["type"] == "/problems/query"
