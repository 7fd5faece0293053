"""Each word of a query looks for its nearest one in a sentence, and texts without it fall behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunko.errors import LibraryDamaged
from bunko.library.library import Library
from bunko.protocols import DamagedIndex
from bunko.search.arms import Arms, rank_lexical
from bunko.search.query_analysis import analyse_query
from bunko.search.rank import fuse
from bunko.search.request import RankRequest
from bunko.search.similarity import CloseReading, read_closely
from bunko.types import Explanation
from bunko.types.records import SentenceMatch
from tests.conftest import Opener, Run

# The texts have no word of the query, and the one that answers it speaks of other things too.
TEXTS = {
    "move.md": "# 当日の注意\n\n控室は二階です。大型の機材を搬入する時は、裏口で呼び鈴を鳴らします。昼食は出ません。",
    "meeting.md": "# 会議\n\n会議は毎週月曜日の朝に二階で開かれます。議題は前の日までに係へ送ってください。",
    "parking.md": "# Visitors\n\nCoffee is free. You may park your car behind the house. Please sign the book.",
}


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    for name, text in TEXTS.items():
        (docs / name).write_text(text, encoding="utf-8")
    return open_docs()


def explain(library: Library, query: str, **options: Any) -> dict[str, Explanation]:
    hits = library.search(query, explain=True, top_k=3, **options).hits
    return {hit.uri: hit.explanation for hit in hits if hit.explanation is not None}


@pytest.mark.parametrize("options", [{"mode": "semantic"}, {"vector_weight": 0.9}, {"fusion": "rrf"}], ids=str)
def test_the_text_with_near_words_comes_first(library: Library, options: dict[str, Any]) -> None:
    assert next(iter(explain(library, "荷物を運び入れる", **options))) == "move.md"
    assert next(iter(explain(library, "自動車を置く場所", **options))) == "parking.md"


def test_words_that_both_texts_have_do_not_hide_that_one_has_a_near_word_too(docs: Path, open_docs: Opener) -> None:
    for name, verb in ("a.md", "purchased"), ("b.md", "checked"), ("c.md", "collected"):
        text = f"# Tickets\n\nTickets are {verb} at the desk. Bring a card."
        (docs / name).write_text(text, encoding="utf-8")
    library = open_docs()
    assert next(iter(explain(library, "buy tickets"))) == "a.md"
    assert next(iter(explain(library, "gather tickets"))) == "c.md"


def test_an_explanation_names_which_word_met_which(library: Library, docs: Path, run: Run) -> None:
    [first, *_] = explain(library, "荷物を運び入れる", mode="semantic").values()
    assert ("運び", "搬入") in {(pair.word, pair.near) for pair in first.near_words}
    assert all(0.2 < pair.cosine < 1 and pair.word != pair.near for pair in first.near_words)
    shown = run("search", "荷物を運び入れる", "--docs-dir", docs, "--explain", "--mode", "semantic").out
    assert "運び ≈ 搬入 0." in shown


def test_a_text_without_near_words_loses_points_and_no_more_than_half(library: Library) -> None:
    found = explain(library, "荷物を運び入れる", mode="semantic")
    points = {uri: {part.arm: part.points for part in why.parts} for uri, why in found.items()}
    assert "near_words" not in points["move.md"]
    for uri in ("meeting.md", "parking.md"):
        assert 0 > points[uri]["near_words"] >= -abs(points[uri]["vector"]) / 2 - 1e-9


def test_with_a_weight_of_zero_no_words_are_compared(library: Library) -> None:
    found = explain(library, "荷物を運び入れる", nearest_words=0)
    assert all("near_words" not in {part.arm for part in why.parts} for why in found.values())


def test_long_queries_are_compared_as_a_whole(library: Library) -> None:
    query = "昨日から何度も試しているのですが、大きな荷物を運び入れようとすると裏口が閉まっていて、誰も出てきません。"
    found = explain(library, query)
    assert all(not why.near_words for why in found.values())
    assert all(why.sentence_score is not None for why in found.values() if why.nearest_sentence)


def test_a_library_from_before_subwords_were_kept_ranks_the_same(library: Library, docs: Path) -> None:
    query = "荷物を運び入れる"
    before = [(hit.uri, hit.score) for hit in library.search(query).hits]
    with sqlite3.connect(library.paths.database) as connection:
        connection.execute("DELETE FROM subwords")
    connection.close()
    for path in library.paths.database.parent.glob("index/*.segment"):
        path.unlink()
    with Library(library.paths, library.settings, library.store) as again:
        assert [(hit.uri, hit.score) for hit in again.search(query, refresh=False).hits] == before
        with again.store.read_transaction():
            view = again.index_view([tool.id for tool in again.tools()])
            assert {type(text) for text in view.sentences(view.rows())} == {str}


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:-1],
        lambda packed: packed[:0],
        lambda packed: np.concatenate([packed[:1] * 0, packed[1:]]),
        lambda packed: np.concatenate([packed[:1] + len(packed), packed[1:]]),
        lambda packed: np.concatenate([packed[:1], packed[1:2] * 0, packed[2:]]),
    ],
    ids=["cut off", "empty", "no sentence", "too many sentences", "an empty sentence"],
)
def test_impossible_sentences_are_the_damage_of_an_index(library: Library, damage: Callable[[Any], Any]) -> None:
    library.reindex()
    with library.store.read_transaction():
        view = library.index_view([tool.id for tool in library.tools()])
        embedder = library.embedder()
        assert embedder is not None
        vector = embedder.embed(["a"], query=True)[0]
        rows = view.rows()
        sound = view.sentences(rows)

        class Damaged:
            def sentences(self, _: object) -> list[Any]:
                return [damage(one) if one is not None and not isinstance(one, str) else one for one in sound]

        with pytest.raises(DamagedIndex, match="do not fit together"):
            read_closely(Damaged(), embedder, "a", vector, rows)  # type: ignore[arg-type]


def test_a_text_that_cannot_be_read_loses_as_much_as_others(library: Library) -> None:
    library.reindex()
    with library.store.read_transaction():
        view, embedder = library.index_view([tool.id for tool in library.tools()]), library.embedder()
        assert embedder is not None
        query = "park the car"
        vector = embedder.embed([query], query=True)[0]
        request = RankRequest(query, "hybrid", 3)
        analysis = analyse_query(query)
        arms = Arms(rank_lexical(view, analysis, 3, k1=1.2, b=0.75), view.nearest(vector, 3))
        [first, second, third] = view.rows()

        def read(rows: object) -> CloseReading:
            matches = {first: SentenceMatch(0.1, 0, 0.4), second: SentenceMatch(0.1, 0, 0.2)}
            return CloseReading(matches, 1.0)

        lost = fuse(view, analysis, request, arms, read, noise_floor=-1.0).lost
        assert lost[first] == 0
        assert lost[third] == pytest.approx(lost[second] / 2)


def test_a_longer_list_begins_with_a_shorter_one(docs: Path, open_docs: Opener) -> None:
    words = ("park", "car", "house", "garden", "river", "boat", "train", "ticket", "coffee", "bread")
    for number in range(160):
        chosen = [words[(number * step + step) % len(words)] for step in (1, 3, 7)]
        (docs / f"{number:03}.md").write_text(f"# {chosen[0]}\n\nThe {chosen[1]} is near the {chosen[2]}. {number}")
    library = open_docs()
    for mode in ("semantic", "hybrid"):
        lists = [library.search("leave the automobile by the home", mode=mode, top_k=k).hits for k in (5, 10, 20)]
        uris = [[hit.uri for hit in hits] for hits in lists]
        assert uris[0] == uris[1][:5]
        assert uris[1] == uris[2][:10]


def test_the_numbers_of_far_texts_add_up_too(library: Library, docs: Path, run: Run) -> None:
    printed: Any = run("search", "😀", "--docs-dir", docs, "--mode", "semantic", "--explain", "--json").json()
    for result in printed["results"]:
        assert sum(part["points"] for part in result["explain"]["parts"]) == pytest.approx(result["score"], abs=1e-4)


def test_subwords_that_are_damaged_in_the_library_are_its_damage(library: Library) -> None:
    library.reindex()
    with sqlite3.connect(library.paths.database) as connection:
        connection.execute("UPDATE subwords SET sentences = x'010005000000ffff'")
    connection.close()
    with Library(library.paths, library.settings, library.store) as again:
        for path in library.paths.database.parent.rglob("*.segment"):
            path.unlink()
        with pytest.raises(LibraryDamaged):
            again.search("荷物を運び入れる", refresh=False)
