"""Explain why rows were found."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.protocols import IndexView
from bunko.records import Ranking
from bunko.search.query_analysis import QueryAnalysis
from bunko.types import ArmScore, Explanation

# Roles that an explanation lists as expansions of a query word.
_EXPANSION_ROLES = ("loanword", "bridge", "synonym", "gram")


def explain_rows(
    view: IndexView,
    analysis: QueryAnalysis,
    rows: Sequence[int],
    lexical_ranking: Ranking,
    semantic_ranking: Ranking,
) -> dict[int, Explanation]:
    """Return why each row was found: its terms, and its score and rank in each arm."""
    lexical_scores, semantic_scores = _arm_scores(lexical_ranking), _arm_scores(semantic_ranking)
    explanations = {}
    for row, matches in zip(rows, view.matches(analysis.terms, rows), strict=True):
        matched = [i for i, is_match in enumerate(matches) if is_match]
        terms = tuple(analysis.spellings[i] for i in matched if analysis.roles[i] in ("", "part"))
        expansions = tuple(
            (analysis.roles[i], analysis.spellings[i]) for i in matched if analysis.roles[i] in _EXPANSION_ROLES
        )
        lane = "vector" if row not in lexical_scores else "gram"
        if any(analysis.roles[i] != "gram" for i in matched):
            lane = "word"
        explanations[row] = Explanation(lane, terms, expansions, lexical_scores.get(row), semantic_scores.get(row))
    return explanations


def _arm_scores(ranking: Ranking) -> dict[int, ArmScore]:
    return {row: ArmScore(score, rank) for rank, (row, score) in enumerate(zip(*ranking, strict=True), 1)}
