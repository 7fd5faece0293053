"""A few seconds of the load test: clients search while an import runs, and nobody gets an error or a wrong answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "bench" / "load.py").exists(), reason="the load test is in the repository only"),
]


def run_load(*arguments: str) -> dict[str, Any]:
    """Run the load test, and return what it measured."""
    command = [sys.executable, "-m", "bench.load", "--clients", "6", "--seconds", "5", "--chunks", "160", "--json"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=SECONDS, cwd=ROOT, check=False
    )
    assert done.stdout, done.stderr
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def assert_right(measured: dict[str, Any]) -> None:
    """Check that each answer was right, each error has a reason, and nothing was lost or left behind."""
    assert measured["errors"] == {}
    assert measured["wrong"] == []
    assert measured["lost"] == []
    assert measured["searches"] >= 6
    assert measured["imports"] >= 1
    assert measured["server_cpu_ms"] > 0


def test_clients_of_two_workers_get_right_answers_while_an_import_runs() -> None:
    measured = run_load()
    assert_right(measured)
    assert measured["outages"] == {}
