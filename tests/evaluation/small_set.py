"""A small judged set that the tests of `bunko evaluate` write to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOSTILE = "<script>alert('x')</script> & <img src=http://evil.example/x onerror=alert(1)> \u202eabc"
DOCUMENTS = [
    (
        "https://example.com/ryuuou",
        "ドラゴンクエスト",
        "| 名前 | 強さ |\n|---|---|\n| りゅうおう | 100 |\n| スライム | 1 |",
    ),
    ("https://example.com/setup", "環境構築", "Python の仮想環境を作り、依存を入れます。"),
    ("https://example.com/backup", "Backup", "Copy the database every night. Keep seven copies."),
    ("https://example.com/hostile", HOSTILE, f"Copy and paste. {HOSTILE}"),
]
QUERIES: list[dict[str, Any]] = [
    {"id": "q1", "query": "りゅうおう", "expected_sources": [DOCUMENTS[0][0]], "expected_keywords": ["100"]},
    {"id": "q2", "query": "仮想環境の作り方", "expected_sources": [DOCUMENTS[1][0]], "kind": "question"},
    {"id": "q3", "query": f"copy the database {HOSTILE}", "expected_sources": [DOCUMENTS[2][0]], "notes": HOSTILE},
    {"id": "q4", "query": "quantum", "expected_sources": [], "negative_sources": [DOCUMENTS[2][0]]},
]
NEEDED = ("--chunk-size", "200", "--chunk-overlap", "30", "--vector-weight", "0.6")


def load_report(folder: str | Path = ".tmp/rag-evaluation") -> dict[str, Any]:
    report: dict[str, Any] = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    return report
