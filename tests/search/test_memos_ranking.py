"""How memos are ranked by words: the terms of their texts, and BM25 as it is written down."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.library import memos
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.text import analyzer
from bunko.types.records import QueryTerm
from tests.text.words import spellings

ENTRIES = [
    ("機械学習の勉強", "機械学習は統計学の応用です。統計の本を読み直した。"),
    ("会議", "予算と日程を決めた。予算は去年と同じ。予算の残りは来月に回す。"),
    ("Python API", "The API returns JSON. We call the API from Python and cache the answer."),
    ("サーバー移行", "サーバーを新しい環境へ移行した。API の応答が速くなった。"),
    ("読書", "統計学入門を三章まで読んだ。例題が良い。"),
    ("Garden", "Planted tomatoes; the server room was too hot for a fern."),
    ("予算案", "来年の予算案を書いた。"),
]
QUERIES = ["機械学習は統計学の応用です", "予算", "Python API", "サーバーの移行", "統計 予算 api", "server", "読んだ本"]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    text = "\n".join(f"* {title} 2024-01-{day:02d}\n  {body}\n" for day, (title, body) in enumerate(ENTRIES, 1))
    (tmp_path / "diary.txt").write_text(text, encoding="utf-8")
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as opened:
        memos.import_memos(opened, tmp_path / "diary.txt", vectors=False)
        yield opened


def test_a_sentence_comes_to_its_words_without_particles_and_auxiliaries() -> None:
    assert spellings("機械学習は統計学の応用です") == ["機械", "学習", "統計", "学", "応用"]


def test_memos_are_scored_as_the_formula_says_in_double_precision(library: Library) -> None:
    """Σ idf · (k1 + 1) · tf / (tf + k1 · (1 − b + b · L / Lavg)), with idf ln(1 + (N − df + 0.5) / (df + 0.5))."""
    k1, b = 1.5, 0.75
    # What is indexed of a memo: the name of its file, its title, which counts twice, and its text.
    texts = [Counter(analyzer.term_keys(f"diary\n{title}\n{body}\n{title}")) for title, body in ENTRIES]
    average = sum(sum(text.values()) for text in texts) / len(texts)

    def score(text: Counter[int], terms: set[int]) -> float:
        total = 0.0
        for term in terms:
            df = sum(term in other for other in texts)
            idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            tf, length = text[term], sum(text.values())
            total += idf * (k1 + 1) * tf / (tf + k1 * (1 - b + b * length / average))
        return total

    tools = library.tools()
    with library.store.read_transaction():
        view = library.index_view([tool.id for tool in tools])
        for query in QUERIES:
            terms = set(analyzer.term_keys(query))
            asked = library.build_request(query, tools=tools)
            wanted = [QueryTerm(term, 1.0) for term in terms]
            found = view.rank(wanted, 10, k1=asked.options.k1, b=asked.options.b)
            ids = view.chunk_ids(found.rows)
            stored = library.store.documents.chunks(ids)
            ours = {stored[chunk_id].title: score for chunk_id, score in zip(ids, found.scores, strict=True)}
            plain = {title: score(text, terms) for (title, _), text in zip(ENTRIES, texts, strict=True)}
            assert ours == pytest.approx({title: value for title, value in plain.items() if value}, rel=1e-6)
            assert ours, query


def test_memos_have_constants_of_their_own(library: Library) -> None:
    request = library.build_request("予算", tools=library.tools())
    assert (request.options.k1, request.options.b, request.row_count) == (1.5, 0.75, 10)
    assert (library.build_request("予算").options.k1, library.build_request("予算").row_count) == (1.2, 5)
