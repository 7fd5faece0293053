"""Write runs in the TREC run format, which trec_eval reads."""

from __future__ import annotations

from collections.abc import Iterator

from bunko.evaluation.run import Run

# trec_eval stores scores in 32 bits and sorts equal ones by name: a difference it can represent keeps our order.
_MIN_SCORE_STEP = 1e-6


def trec_lines(run: Run) -> Iterator[str]:
    """Yield a line with query, Q0, document, rank, score and run name for each retrieved document."""
    name = "_".join(run.name.split()) or "bunko"
    for result in run.results:
        score = float("inf")
        for rank, document in enumerate(result.documents, 1):
            if rank == 1:
                score = document.score
            else:
                score = min(document.score, score - max(_MIN_SCORE_STEP, abs(score) * _MIN_SCORE_STEP))
            yield f"{_column_text(result.query.id)} Q0 {_column_text(document.uri)} {rank} {score:.6f} {name}"


def _column_text(text: str) -> str:
    # Columns are separated by whitespace, so an id must not contain any.
    return "_".join(text.split())
