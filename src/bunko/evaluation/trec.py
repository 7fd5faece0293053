"""A run in, the lines that trec_eval and its kin read out."""

from __future__ import annotations

from collections.abc import Iterator

from bunko.evaluation.run import Run

# trec_eval keeps scores in 32 bits and orders equal ones by name: a difference it can see keeps our order.
_MIN_SCORE_STEP = 1e-6


def trec_lines(run: Run) -> Iterator[str]:
    """Yield query, Q0, document, rank, score and the run's name for everything that was found."""
    name = "_".join(run.name.split()) or "bunko"
    for result in run.results:
        last = float("inf")
        for rank, found in enumerate(result.documents, 1):
            last = (
                min(found.score, last - max(_MIN_SCORE_STEP, abs(last) * _MIN_SCORE_STEP)) if rank > 1 else found.score
            )
            yield f"{_column_text(result.query.id)} Q0 {_column_text(found.uri)} {rank} {last:.6f} {name}"


def _column_text(text: str) -> str:
    # Columns are told apart by blanks, so an id must not hold any.
    return "_".join(text.split())
