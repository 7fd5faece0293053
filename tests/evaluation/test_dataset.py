"""A judged set is read as it is written, and what is wrong with it is told with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bunko.errors import SourceError
from bunko.evaluation import beir, dataset
from bunko.evaluation.dataset import list_items

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
        (query(query=None), 4, '"query" is missing'),
        (query(query=7), 4, '"query" must be text'),
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
        ('{"documents": [\n{"source_url": "a", "content": ""}]}', 1, "there are no documents left"),
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
        ({"corpus": '{"id": "d1", "text": "x"}\n\n{"id": \n'}, "corpus.jsonl:3", "invalid JSON"),
        ({"corpus": '{"id": "d1", "text": " "}\n'}, "corpus.jsonl:1", "1 empty document is left out: d1"),
        ({"corpus": '{"id": true, "text": "x"}\n'}, "corpus.jsonl:1", '"id" must be text'),
        ({"corpus": "\n"}, "corpus.jsonl:1", "there are no documents"),
        ({"corpus": '{"id": "d1", "text": "x"}\n{}\n'}, "corpus.jsonl:2", '"id" is missing'),
        ({"corpus": '{"id": "d1", "titles": "x"}\n'}, "corpus.jsonl:1", 'did you mean "title"?'),
        ({"queries": '{"id": "q1", "text": "a"}\n{}\n{}'}, "queries.jsonl:2", '"id" is missing'),
        ({"queries": "{}"}, "queries.jsonl:1", '"text" is missing'),
        ({"queries": '{"id": "q1", "text": ""}\n'}, "queries.jsonl:1", "1 empty query is left out: q1"),
        ({"qrels": "q1\td9\t1\n"}, "qrels.tsv:1", "1 judgement of an empty or unknown document is left out: d9"),
        ({"qrels": "q9\td1\t1\n"}, "qrels.tsv:1", "1 judgement of an unknown query is left out: q9"),
        ({"qrels": "q1\td9\t1\nq1\td1\t0\n"}, "queries.jsonl:1", "1 query whose answers are all missing"),
        ({"qrels": "qid\tdocid\trel\nq1\td1\tgood\n"}, "qrels.tsv:2", "'good' is not a grade"),
        ({"qrels": "q1\td1\tgood\n"}, "qrels.tsv:1", "'good' is not a grade"),
        ({"qrels": "q1\td1\n"}, "qrels.tsv:1", "found 2 columns"),
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


def test_what_real_public_sets_have_is_left_out_with_a_notice_that_counts_it(tmp_path: Path) -> None:
    corpus = [
        {"_id": 1, "title": "", "text": "one"},
        {"_id": "471", "title": "", "text": ""},
        {"_id": "995", "title": " ", "text": "\n"},
        {"_id": "2", "text": "two"},
        {"_id": "2", "text": "two again"},
    ]
    queries = [
        {"_id": "q1", "text": "one?"},
        {"_id": "q2", "text": "two?"},
        {"_id": "q1", "text": "again?"},
        {"_id": "q3", "text": " "},
        {"_id": "q4", "text": "judged by nobody"},
        {"_id": "q5", "text": "answered by an empty document"},
        {"_id": "q6", "text": "answered by none"},
    ]
    qrels = "\ufeffquery-id\tcorpus-id\tscore\r\nq1\t1\t1\r\nq1\t471\t1\r\nq1\t1\t2\r\nq2\t2\t1\r\nq2\tnone\t1\r\n"
    qrels += "\ufeffq3\t1\t1\r\nq5\t995\t1\r\nq6\t1\t0\r\nq9\t1\t1\r\n\r\n"
    texts = ["\ufeff" + "\n".join(map(json.dumps, rows)) for rows in (corpus, queries)]
    judged = beir.load_beir(*public(tmp_path, corpus=texts[0], queries=texts[1], qrels=qrels))
    assert [(document.id, document.text) for document in judged.documents] == [("1", "one"), ("2", "two")]
    assert [(one.id, one.text, one.grades) for one in judged.queries] == [
        ("q1", "one?", {"1": 1.0}),
        ("q2", "two?", {"2": 1.0}),
        ("q6", "answered by none", {}),
    ]
    assert [notice.removeprefix(f"{tmp_path}/") for notice in judged.notices] == [
        "corpus.jsonl: 2 empty documents are left out: 471, 995",
        "corpus.jsonl: 1 document with the id of an earlier one is left out: 2",
        "qrels.tsv: 3 judgements of empty or unknown documents are left out: 471, none, 995",
        "qrels.tsv: 1 repeated judgement is left out: q1 1",
        "qrels.tsv: 2 judgements of unknown queries are left out: q3, q9",
        "queries.jsonl: 1 query with the id of an earlier one is left out: q1",
        "queries.jsonl: 1 empty query is left out: q3",
        "queries.jsonl: 1 query without judgements is left out: q4",
        "queries.jsonl: 1 query whose answers are all missing is left out: q5",
    ]


def test_our_own_format_leaves_out_the_same_with_notices(tmp_path: Path) -> None:
    a, b = "https://example.com/a", "https://example.com/b"
    documents = json.dumps(
        {
            "documents": [
                {"source_url": a, "title": "", "content": "赤い果物。"},
                {"source_url": b, "title": "Pear", "content": " "},
                {"source_url": a, "title": "", "content": "again"},
            ]
        }
    )
    rows: list[object] = [
        query(expected_sources=[a, b], negative_sources=["https://example.com/x"]),
        query(query="again"),
        query(id="q2", query=" "),
        query(id="q3", expected_sources=[b]),
    ]
    judged = dataset.load_judged_set(*write(tmp_path, rows, documents))
    (only,) = judged.queries
    assert (only.id, only.grades, only.expected_sources, only.negatives) == ("q1", {a: 1.0}, (a,), ())
    assert [notice.removeprefix(f"{tmp_path}/") for notice in judged.notices] == [
        f"d.json: 1 empty document is left out: {b}",
        f"d.json: 1 document with the id of an earlier one is left out: {a}",
        f"q.json: 3 judgements of empty or unknown documents are left out: {b}, https://example.com/x, {b}",
        "q.json: 1 query with the id of an earlier one is left out: q1",
        "q.json: 1 empty query is left out: q2",
        "q.json: 1 query whose answers are all missing is left out: q3",
    ]


def test_a_set_of_nothing_is_no_set(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r'q\.json:3: "id" is missing'):
        dataset.load_judged_set(*write(tmp_path, [{}]))


def test_keys_of_their_own_may_stand_beside_ours(tmp_path: Path) -> None:
    rows: list[object] = [query(author="me", note="seen", notes="known", difficulty=3)]
    assert dataset.load_judged_set(*write(tmp_path, rows)).queries[0].notes == "known"
    corpus = '{"id": "d1", "text": "one", "url": "x", "metadata": {}}\n{"id": "d2", "text": "two"}\n'
    assert len(beir.load_beir(*public(tmp_path, corpus=corpus)).documents) == 2


def test_all_problems_of_a_file_are_told_at_once_up_to_a_limit(tmp_path: Path) -> None:
    rows: list[object] = [query(id=f"q{number}", query=5) for number in range(12)]
    with pytest.raises(SourceError, match="and 2 more") as told:
        dataset.load_judged_set(*write(tmp_path, rows))
    assert told.value.message.count('"query" must be text') == 10


def test_a_file_that_is_not_utf8_or_not_there_is_told(tmp_path: Path) -> None:
    queries, documents = write(tmp_path, [query()])
    queries.write_bytes('{\n"queries": ["果物"]}'.encode("shift_jis"))
    with pytest.raises(SourceError, match=r"q\.json:2: invalid UTF-8"):
        dataset.load_judged_set(queries, documents)
    with pytest.raises(SourceError, match="cannot be read"):
        dataset.load_documents(tmp_path / "nowhere.json", [])


def test_lines_are_found_in_any_json_layout() -> None:
    text = '\n{ "x": {"queries": [0]}, "note": "a \\" [ b",\n"queries"\n:\n[ 1,\n\n {"a":\n [2]}, "\\n",\n4 ] }'
    assert list(list_items(text, "queries")) == [(5, 1), (7, {"a": [2]}), (8, "\n"), (9, 4)]


def test_other_wordings_stand_beside_a_question(tmp_path: Path) -> None:
    wordings = {"also": ["食べもの", "実"], "passage": "りんごは赤い果物です。"}
    (one,) = dataset.load_judged_set(*write(tmp_path, [query(**wordings)])).queries
    rows = json.dumps({"id": "q1", "text": "one?"} | wordings, ensure_ascii=False)
    (other,) = beir.load_beir(*public(tmp_path, queries=rows, qrels="qid\tdocid\trel\nq1\td1\t2\n")).queries
    for found in (one, other):
        assert (found.also, found.passage) == (("食べもの", "実"), "りんごは赤い果物です。")
    with pytest.raises(SourceError, match='"also" must be a list of texts'):
        dataset.load_judged_set(*write(tmp_path, [query(also="食べもの")]))
