"""How much of a query its best row by words covers, from which the weight of vectors follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.search.arms import highest_possible_score, rank_lexical
from bunko.search.query_analysis import analyse_query
from tests.conftest import Opener

K1, B = 1.4, 0.6


@pytest.mark.parametrize(
    ("query", "coverage"),
    [
        ("qxvlong", 0.6),  # the only word, in a text so long that it scores low
        ("kvzqwp", 4 / 6),  # inside a longer word: all of its n-grams but those of its ends
        ("kvzqwpz", 4 / 7),
        ("qxvlong zzyyxx", None),  # one word of two: by its score alone
        ("short", None),
    ],
)
def test_the_best_row_is_judged_by_what_can_be_found_of_a_query(
    docs: Path, open_docs: Opener, query: str, coverage: float | None
) -> None:
    (docs / "long.md").write_text(f"# list\n\n| qxvlong | {'長' * 2500} |\n", encoding="utf-8")
    (docs / "code.md").write_text("# code\n\nabdkvzqwpxtrnf\n", encoding="utf-8")
    for number in range(12):
        (docs / f"{number}.md").write_text(f"# {number}\n\na short text\n", encoding="utf-8")
    library = open_docs()
    library.reindex()
    analysis = analyse_query(query)
    with library.store.read_transaction():
        view = library.index_view([tool.id for tool in library.tools()])
        scores = dict(zip(*rank_lexical(view, analysis, 10, k1=K1, b=B), strict=True))
        possible = highest_possible_score(view, analysis, scores, K1)
        plain = view.max_score(analysis.terms, k1=K1)
    assert max(scores.values()) < plain
    if coverage is None:
        assert possible == plain
    else:
        assert max(scores.values()) / possible == pytest.approx(coverage)
