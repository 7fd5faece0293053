"""A package that is installed beside bunko adds a reranker by an entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bunko import rerankers

MODULE = '''\
"""Prefers long texts."""

from bunko.rerankers import RerankerProvider


class Longest:
    def __init__(self, model):
        self.label = f"longest {model}"

    def unavailable_reason(self):
        return ""

    def scores(self, query, texts, *, is_cancelled=lambda: False):
        return [float(len(text)) for text in texts]


PROVIDER = RerankerProvider(Longest)
'''


@pytest.mark.slow
@pytest.mark.parametrize("name", ["longest:model", "longest:organisation/model"])
def test_an_installed_reranker_puts_the_results_in_order(tmp_path: Path, name: str) -> None:
    packages, docs = tmp_path / "packages", tmp_path / "docs"
    metadata = packages / "bunko_longest-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bunko-longest\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[bunko.rerankers]\nlongest = bunko_longest\n")
    (packages / "bunko_longest.py").write_text(MODULE, encoding="utf-8")
    docs.mkdir()
    (docs / "short.md").write_text("cat", encoding="utf-8")
    (docs / "long.md").write_text("cat " + "umbrella in winter " * 8, encoding="utf-8")
    environ = {
        **os.environ,
        **{name: str(tmp_path / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")},
        "PYTHONPATH": os.pathsep.join([str(packages), *sys.path]),
        "BUNKO_SEARCH_RERANKER": name,
    }
    command = [sys.executable, "-m", "bunko", "search", "cat", "--docs-dir", str(docs), "--mode", "bm25", "--json"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert [result["file_path"] for result in json.loads(done.stdout)["results"]] == ["long.md", "short.md"]
    assert "not reranked" not in done.stderr


def test_a_new_module_of_the_package_is_a_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "longest.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(rerankers, "__path__", [*rerankers.__path__, str(tmp_path)])
    assert rerankers.build("longest:organisation/model").label == "longest organisation/model"
