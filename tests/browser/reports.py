"""Reports as `bunko evaluate` and `bunko sweep` write them, with made-up scores."""

from __future__ import annotations

from typing import Any

_MEASURES = {"ndcg@5": 0.0, "recall@5": 0.08, "mrr@5": 0.01, "hit@1": -0.08, "hit@5": 0.13, "f1": -0.26}
_MODES = {"bm25": 0.69, "semantic": 0.61, "hybrid": 0.74}
_QUESTIONS = [
    "京都ではどこに泊まったか",
    "Who is on call on Sundays?",
    "予報サービスの API キー",
    "holidays in May",
    "経費の精算",
]


def evaluation_report() -> dict[str, Any]:
    """Return a report with three modes."""
    return {
        "bunko": "0.1.0",
        "created_at": "2026-03-02T09:30:00+00:00",
        "judged": {"name": "handbook", "queries": 48, "documents": 12, "chunks": 41},
        "n_results": 5,
        "settings": {"chunker": "auto", "embedder": "static:1:256", "fusion": "cc", "vector_weight": 0.3, "k1": 1.2},
        "mode": "hybrid",
        "modes": {mode: _run(score) for mode, score in _MODES.items()},
        "comparisons": [{"first": "bm25", "second": "hybrid", "measures": _differences()}],
    }


def _run(base: float) -> dict[str, Any]:
    measures = {name: round(base + offset, 6) for name, offset in _MEASURES.items()}
    return {
        "measures": measures,
        "intervals": {name: [round(value - 0.06, 6), round(value + 0.05, 6)] for name, value in measures.items()},
        "queries": [
            {"id": str(number), "query": question, "measures": {"ndcg@5": number / 8}}
            for number, question in enumerate(_QUESTIONS)
        ],
    }


def _differences() -> dict[str, Any]:
    return {
        name: {"difference": 0.05 + shift, "interval": [0.01 + shift, 0.09 + shift], "wins": 9, "losses": 3}
        for name, shift in ((name, offset / 4) for name, offset in _MEASURES.items())
    }


def sweep_report() -> dict[str, Any]:
    """Return a sweep over two settings."""
    weights, k1s = [round(number / 10, 1) for number in range(11)], [0.8, 1.2, 1.6]
    points = [
        {
            "settings": {"vector_weight": weight, "k1": k1},
            "tuning": 0.74 - (weight - 0.4) ** 2 * 0.5 - abs(k1 - 1.2) * 0.02,
            "held_out": 0.72 - (weight - 0.3) ** 2 * 0.45 - abs(k1 - 1.2) * 0.015,
            "measures": {},
        }
        for weight in weights
        for k1 in k1s
    ]
    return {
        "bunko": "0.1.0",
        "created_at": "2026-03-03T21:05:00+00:00",
        "complete": True,
        "judged": {"name": "handbook", "queries": 48, "documents": 12, "tuning": 24, "held_out": 24},
        "measure": "ndcg@10",
        "measured": len(points),
        "total": len(points),
        "grid": [{"name": "vector_weight", "values": weights}, {"name": "k1", "values": k1s}],
        "best": {"settings": {"vector_weight": 0.4, "k1": 1.2}, "held_out": 0.7155},
        "now": {"settings": {"vector_weight": 0.3, "k1": 1.2}},
        "verdict": "not proven",
        "toml": "[search]\nvector_weight = 0.4\nk1 = 1.2",
        "points": points,
    }
