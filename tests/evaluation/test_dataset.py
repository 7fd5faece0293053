"""A judged set is read as it is written, and what is wrong with it is told with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bunko.errors import SourceError
from bunko.evaluation import beir, dataset
from bunko.evaluation.json_positions import list_items

DOCUMENTS = """{
  "documents": [
    {"source_url": "https://example.com/a", "title": "りんご", "content": "赤い果物。"},
    {"source_url": "https://example.com/b", "title": "Pear", "content": "A green fruit."}
  ]
}
"""


def query(**fields: object) -> dict[str, object]:
    return {"id": "q1", "query": "果物", "expected_sources": ["https://example.com/a"]} | fields


def write(folder: Path, queries: list[object], documents: str = DOCUMENTS) -> tuple[Path, Path]:
    """Write a set; the first query stands on line 3, each further one a line below."""
    rows = ",\n".join("    " + json.dumps(one, ensure_ascii=False) for one in queries)
    (folder / "q.json").write_text(f'{{\n  "queries": [\n{rows}\n  ]\n}}\n', encoding="utf-8")
    (folder / "d.json").write_text(documents, encoding="utf-8")
    return folder / "q.json", folder / "d.json"


def public(folder: Path, *, corpus: str = "", queries: str = "", qrels: str = "") -> tuple[Path, Path, Path]:
    texts = {
        "corpus.jsonl": corpus or '{"id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "text": "two"}\n',
        "queries.jsonl": queries or '{"id": "q1", "text": "one?"}\n{"_id": "q2", "text": "二つ?", "type": "fact"}\n',
        "qrels.tsv": qrels or "qid\tdocid\trel\nq1\td1\t2\nq2\td2\t0\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    found = [folder / name for name in texts]
    return found[0], found[1], found[2]


def test_a_dataset_and_its_fixture_become_a_judged_set(tmp_path: Path) -> None:
    rows: list[object] = [
        query(
            grades={"https://example.com/a": 3, "https://example.com/b": 1},
            expected_keywords=["赤い"],
            notes="easy",
            kind="fact",
        ),
        query(id="q2", query="What is blue?", expected_sources=[], negative_sources=["https://example.com/b"]),
    ]
    judged = dataset.load_judged_set(*write(tmp_path, rows))
    first, second = judged.queries
    assert [one.title for one in judged.documents] == ["りんご", "Pear"]
    assert (first.grades, first.keywords, first.notes) == (
        {"https://example.com/a": 3.0, "https://example.com/b": 1.0},
        ("赤い",),
        "easy",
    )
    assert first.relevant_uris == {"https://example.com/a"}
    assert (first.language, first.kind, first.is_answerable) == ("ja", "fact", True)
    assert (second.language, second.kind, second.is_answerable) == ("en", "none", False)
    assert second.negatives == ("https://example.com/b",)


def test_a_public_set_is_read_with_its_grades(tmp_path: Path) -> None:
    judged = beir.load_beir(*public(tmp_path))
    assert [one.id for one in judged.documents] == ["d1", "d2"]
    assert [(one.id, one.grades, one.kind) for one in judged.queries] == [("q1", {"d1": 2.0}, ""), ("q2", {}, "fact")]


def test_judgements_may_be_written_as_trec_does_and_unjudged_queries_are_left_out(tmp_path: Path) -> None:
    judged = beir.load_beir(*public(tmp_path, qrels="q1 0 d2 1\n"))
    assert [(one.id, one.grades) for one in judged.queries] == [("q1", {"d2": 1.0})]


def test_the_digest_names_questions_and_judgements_but_not_their_order(tmp_path: Path) -> None:
    rows: list[object] = [query(), query(id="q2")]
    one = dataset.load_judged_set(*write(tmp_path, rows)).digest
    assert dataset.load_judged_set(*write(tmp_path, rows[::-1])).digest == one
    assert dataset.load_judged_set(*write(tmp_path, [query(), query(id="q2", query="梨")])).digest != one


@pytest.mark.parametrize(
    ("row", "line", "reason"),
    [
        (query(query="  "), 4, '"query" is empty'),
        (query(query=None), 4, '"query" is missing'),
        (query(query=7), 4, '"query" must be text'),
        (query(id="q0"), 4, "duplicate query 'q0'"),
        (query(expected_sources=["https://example.com/x"]), 4, "names 'https://example.com/x', which is not in"),
        (query(expected_sources="https://example.com/a"), 4, '"expected_sources" must be a list of texts'),
        (query(negative_sources=["https://example.com/a"]), 4, "both expects 'https://example.com/a' and forbids it"),
        (query(grades={"https://example.com/a": "high"}), 4, '"grades" must give each document a number'),
        (query(grades={"https://example.com/b": 1}), 4, "has no grade above 0 for expected sources"),
        ("just text", 4, "expected an object"),
        ({}, 4, '"id" is missing'),
        ({}, 4, '"query" is missing'),
        (
            {"id": "q1", "query": "果物", "expected_source": []},
            4,
            '"expected_source"; did you mean "expected_sources"?',
        ),
        ({"id": "q1", "query": "果物", "expectedSources": []}, 4, 'did you mean "expected_sources"?'),
        (query(negative_source=[]), 4, 'did you mean "negative_sources"?'),
    ],
)
def test_a_broken_query_is_named_by_file_and_line(tmp_path: Path, row: object, line: int, reason: str) -> None:
    queries, documents = write(tmp_path, [query(id="q0"), row])
    with pytest.raises(SourceError) as told:
        dataset.load_judged_set(queries, documents)
    assert told.value.message.startswith(f"{queries}:{line}: ")
    assert reason in told.value.message
    assert told.value.hint


@pytest.mark.parametrize(
    ("documents", "line", "reason"),
    [
        (
            '{"documents": [\n{"source_url": "a", "content": "x"},\n{"source_url": "a", "content": "y"}]}',
            3,
            "duplicate document",
        ),
        ('{"documents": [\n{"source_url": "a", "content": ""}]}', 2, '"content" is empty'),
        ('{"documents": [\n{"content": "x"}]}', 2, '"source_url" is missing'),
        ('{"documents": [\n{"source_url": "a",,}]}', 2, "invalid JSON"),
        ('{"documents": [\n{}]}', 2, '"source_url" is missing'),
        ('{"documents": [\n{}]}', 2, '"content" is missing'),
        ('{"documents": [\n{"source-url": "a", "content": "x"}]}', 2, 'did you mean "source_url"?'),
        ('{"documents": []}', 1, "there are no documents"),
        ('{"pages": []}', 1, 'there is no list "documents"'),
        ("[]", 1, 'there is no list "documents"'),
    ],
)
def test_a_broken_fixture_is_named_by_file_and_line(tmp_path: Path, documents: str, line: int, reason: str) -> None:
    queries, fixture = write(tmp_path, [query()], documents)
    with pytest.raises(SourceError) as told:
        dataset.load_judged_set(queries, fixture)
    assert told.value.message.startswith(f"{fixture}:{line}: ")
    assert reason in told.value.message


@pytest.mark.parametrize(
    ("texts", "place", "reason"),
    [
        (
            {"corpus": '{"id": "d1", "text": "x"}\n{"id": "d1", "text": "y"}\n'},
            "corpus.jsonl:2",
            "duplicate document 'd1'",
        ),
        ({"corpus": '{"id": "d1", "text": "x"}\n\n{"id": \n'}, "corpus.jsonl:3", "invalid JSON"),
        ({"corpus": '{"id": "d1", "text": " "}\n'}, "corpus.jsonl:1", "document 'd1' is empty"),
        ({"corpus": '{"id": 1, "text": "x"}\n'}, "corpus.jsonl:1", '"id" must be text'),
        ({"corpus": "\n"}, "corpus.jsonl:1", "there are no documents"),
        ({"corpus": '{"id": "d1", "text": "x"}\n{}\n'}, "corpus.jsonl:2", '"id" is missing'),
        ({"corpus": '{"id": "d1", "titles": "x"}\n'}, "corpus.jsonl:1", 'did you mean "title"?'),
        ({"queries": '{"id": "q1", "text": "a"}\n{}\n{}'}, "queries.jsonl:2", '"id" is missing'),
        ({"queries": "{}"}, "queries.jsonl:1", '"text" is missing'),
        ({"queries": '{"id": "q1", "text": ""}\n'}, "queries.jsonl:1", '"text" is empty'),
        (
            {"queries": '{"id": "q1", "text": "a"}\n{"id": "q1", "text": "b"}'},
            "queries.jsonl:2",
            "duplicate query 'q1'",
        ),
        ({"qrels": "qid\tdocid\trel\nq1\td9\t1\n"}, "qrels.tsv:2", "no document 'd9'"),
        ({"qrels": "q9\td1\t1\n"}, "qrels.tsv:1", "no query 'q9'"),
        ({"qrels": "qid\tdocid\trel\nq1\td1\tgood\n"}, "qrels.tsv:2", "'good' is not a grade"),
        ({"qrels": "q1\td1\tgood\n"}, "qrels.tsv:1", "'good' is not a grade"),
        ({"qrels": "q1\td1\n"}, "qrels.tsv:1", "found 2 columns"),
        ({"qrels": "q1\td1\t1\nq1\td1\t2\n"}, "qrels.tsv:2", "judged twice"),
        ({"qrels": "qid\tdocid\trel\n"}, "qrels.tsv:1", "there are no judgements"),
    ],
)
def test_a_broken_public_set_is_named_by_file_and_line(
    tmp_path: Path, texts: dict[str, str], place: str, reason: str
) -> None:
    paths = public(tmp_path, **texts)
    with pytest.raises(SourceError) as told:
        beir.load_beir(*paths)
    assert told.value.message.startswith(f"{tmp_path / place}: ")
    assert reason in told.value.message


def test_a_set_of_nothing_is_no_set(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r'q\.json:3: "id" is missing'):
        dataset.load_judged_set(*write(tmp_path, [{}]))


def test_keys_of_their_own_may_stand_beside_ours(tmp_path: Path) -> None:
    rows: list[object] = [query(author="me", note="seen", notes="known", difficulty=3)]
    assert dataset.load_judged_set(*write(tmp_path, rows)).queries[0].notes == "known"
    corpus = '{"id": "d1", "text": "one", "url": "x", "metadata": {}}\n{"id": "d2", "text": "two"}\n'
    assert len(beir.load_beir(*public(tmp_path, corpus=corpus)).documents) == 2


def test_all_problems_of_a_file_are_told_at_once_up_to_a_limit(tmp_path: Path) -> None:
    rows: list[object] = [query(id=f"q{number}", query="") for number in range(12)]
    with pytest.raises(SourceError, match="and 2 more") as told:
        dataset.load_judged_set(*write(tmp_path, rows))
    assert told.value.message.count('"query" is empty') == 10


def test_a_file_that_is_not_utf8_or_not_there_is_told(tmp_path: Path) -> None:
    queries, documents = write(tmp_path, [query()])
    queries.write_bytes('{\n"queries": ["果物"]}'.encode("shift_jis"))
    with pytest.raises(SourceError, match=r"q\.json:2: invalid UTF-8"):
        dataset.load_judged_set(queries, documents)
    with pytest.raises(SourceError, match="cannot be read"):
        dataset.load_documents(tmp_path / "nowhere.json")


def test_lines_are_found_in_any_json_layout() -> None:
    text = '\n{ "x": {"queries": [0]}, "note": "a \\" [ b",\n"queries"\n:\n[ 1,\n\n {"a":\n [2]}, "\\n",\n4 ] }'
    assert list(list_items(text, "queries")) == [(5, 1), (7, {"a": [2]}), (8, "\n"), (9, 4)]
