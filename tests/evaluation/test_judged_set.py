"""The judged set that comes with bunko: large enough, consistent, and honest about what answers what."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import bunko
from bunko.evaluation.dataset import bundled_files, load_judged_set

FOLDER = Path(bunko.__file__).parent / "evaluation" / "judged"
DOCUMENTS: list[dict[str, Any]] = json.loads((FOLDER / "documents.json").read_text(encoding="utf-8"))["documents"]
QUERIES: list[dict[str, Any]] = json.loads((FOLDER / "queries.json").read_text(encoding="utf-8"))["queries"]
TEXTS = {one["source_url"]: f"{one['title']}\n{one['content']}" for one in DOCUMENTS}
KINDS = {
    "keyword": 6,
    "question": 6,
    "inflection": 6,
    "spelling": 6,
    "name": 6,
    "table": 6,
    "paraphrase": 6,
    "cross": 12,
    "none": 8,
    "time": 6,
}

every_query = pytest.mark.parametrize("query", QUERIES, ids=[one["id"] for one in QUERIES])
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=[one["source_url"] for one in DOCUMENTS])


def side(url: str) -> str:
    """Return the language of a document by its address."""
    return url.removeprefix("https://bunko.example/").split("/")[0]


def japanese(text: str) -> bool:
    return any("HIRAGANA" in name or "KATAKANA" in name or "CJK" in name for name in map(_name, text))


def _name(character: str) -> str:
    return unicodedata.name(character, "")


def test_the_set_is_large_enough_and_small_enough_to_ship() -> None:
    assert len(DOCUMENTS) >= 64
    assert len(QUERIES) >= 90
    assert sum((FOLDER / name).stat().st_size for name in ("documents.json", "queries.json")) < 300_000


def test_the_loader_reads_all_of_it() -> None:
    queries, documents = bundled_files()
    judged = load_judged_set(queries, documents)
    assert (len(judged.documents), len(judged.queries)) == (len(DOCUMENTS), len(QUERIES))


def test_ids_and_addresses_are_unique() -> None:
    assert len({one["source_url"] for one in DOCUMENTS}) == len(DOCUMENTS)
    assert len({one["id"] for one in QUERIES}) == len(QUERIES)


def test_no_text_stands_twice() -> None:
    for texts in (
        [one["content"] for one in DOCUMENTS],
        [one["title"] for one in DOCUMENTS],
        [one["query"] for one in QUERIES],
    ):
        assert [text for text, count in Counter(texts).items() if count > 1] == []
    # A paragraph shared by two documents would make two right answers where one is judged.
    paragraphs = Counter(
        part for one in DOCUMENTS for part in {*one["content"].split("\n\n")} if len(part) > 40 and part[0] not in "|#"
    )
    assert [part for part, count in paragraphs.items() if count > 1] == []


def test_each_kind_has_enough_queries() -> None:
    found = Counter(one["kind"] for one in QUERIES)
    assert found.keys() == KINDS.keys()
    assert {kind: count for kind, count in found.items() if count < KINDS[kind]} == {}


def test_both_languages_have_their_share() -> None:
    documents = Counter(side(url) for url in TEXTS)
    assert documents.keys() == {"ja", "en"}
    assert min(documents.values()) >= 28
    for kind in KINDS:
        asked = Counter(one["language"] for one in QUERIES if one["kind"] == kind)
        assert asked.keys() == {"ja", "en"}
        assert min(asked.values()) >= sum(asked.values()) / 3, f"{kind} leans to one language: {asked}"


def test_lengths_reach_from_a_memo_to_a_manual() -> None:
    lengths = sorted(len(one["content"]) for one in DOCUMENTS)
    assert lengths[0] < 100
    assert lengths[len(lengths) // 2] > 500
    assert sum(length > 3000 for length in lengths) >= 4
    assert lengths[-1] > 4000


@every_document
def test_a_document_is_whole_and_clean(document: dict[str, Any]) -> None:
    assert document.keys() == {"source_url", "title", "content"}
    assert document["source_url"].startswith(("https://bunko.example/ja/", "https://bunko.example/en/"))
    assert japanese(document["title"] + document["content"]) == (side(document["source_url"]) == "ja")
    for text in (document["title"], document["content"]):
        assert text.strip()
        assert_clean(text)
    assert "\n" not in document["title"]


@every_query
def test_a_query_is_whole_and_clean(query: dict[str, Any]) -> None:
    assert query.keys() == {
        "id",
        "query",
        "expected_sources",
        "expected_keywords",
        "negative_sources",
        "notes",
        "grades",
        "language",
        "kind",
    }
    assert query["id"].startswith(f"{query['language']}-")
    assert query["id"].isascii()
    assert query["id"] == query["id"].lower()
    assert japanese(query["query"]) == (query["language"] == "ja")
    assert query["query"] == query["query"].strip()
    for text in (query["query"], query["notes"], *query["expected_keywords"]):
        assert_clean(text)


@every_query
def test_judgements_name_documents_that_exist(query: dict[str, Any]) -> None:
    named = [*query["grades"], *query["expected_sources"], *query["negative_sources"]]
    assert [url for url in named if url not in TEXTS] == []


@every_query
def test_what_is_expected_is_what_was_graded_two_or_three(query: dict[str, Any]) -> None:
    assert set(query["grades"].values()) <= {1, 2, 3}
    assert sorted(query["expected_sources"]) == sorted(url for url, grade in query["grades"].items() if grade >= 2)
    assert len(set(query["expected_sources"])) == len(query["expected_sources"])
    assert not query["grades"].keys() & set(query["negative_sources"])


@every_query
def test_keywords_stand_in_an_expected_document(query: dict[str, Any]) -> None:
    expected = [TEXTS[url] for url in query["expected_sources"]]
    assert [word for word in query["expected_keywords"] if not any(word in text for text in expected)] == []
    assert bool(query["expected_keywords"]) == bool(expected)


@pytest.mark.parametrize("query", [one for one in QUERIES if one["kind"] == "none"], ids=lambda one: one["id"])
def test_a_query_without_an_answer_names_what_tempts(query: dict[str, Any]) -> None:
    assert query["grades"] == {}
    assert query["negative_sources"]


@pytest.mark.parametrize("query", [one for one in QUERIES if one["kind"] != "none"], ids=lambda one: one["id"])
def test_any_other_query_has_a_full_answer(query: dict[str, Any]) -> None:
    assert 3 in query["grades"].values()


@pytest.mark.parametrize("query", [one for one in QUERIES if one["kind"] == "cross"], ids=lambda one: one["id"])
def test_a_cross_query_is_answered_in_the_other_language_only(query: dict[str, Any]) -> None:
    other = {"ja": "en", "en": "ja"}[query["language"]]
    assert {side(url) for url in query["expected_sources"]} == {other}


def assert_clean(text: str) -> None:
    assert unicodedata.is_normalized("NFC", text)
    # Line breaks shape Markdown; any other control or invisible format character is an accident.
    assert [
        character for character in text if character != "\n" and unicodedata.category(character) in {"Cc", "Cf"}
    ] == []
