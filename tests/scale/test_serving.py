"""Servers over the engines of a team: they say when one is away, and answers stay right whatever is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.interfaces.http import monitoring
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from tests.http.server import ask, serve_app
from tests.mcp.test_endpoints import read_metrics
from tests.scale.engines import chroma_server
from tests.scale.postgres_server import PostgresServer, environment
from tests.slow import corpus
from tests.slow.test_load import assert_right, run_load

pytestmark = pytest.mark.scale


def test_a_database_that_is_away_is_told_in_time_and_so_is_its_return(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "CACHE_SECONDS", 0.0)
    postgres = PostgresServer()
    try:
        corpus.write(docs, {"a.md": corpus.document("京都の寺")})
        with open_library(
            paths_for_folder(tmp_path / "library"), environ=environment(postgres.new_library())
        ) as library:
            library.add(docs, name="docs")
            library.import_("docs")
            with serve_app(ToolRegistry(lambda: library)) as port:
                assert ask(port, "/readyz").status == 200
                postgres.stop()
                reply = ask(port, "/readyz")
                assert reply.status == 503
                assert str(postgres.folder) not in reply.text
                assert ask(port, "/healthz").status == 200
                assert read_metrics(port)["bunko_ready"] == 0
                postgres.start()
                corpus.wait_until(lambda: ask(port, "/readyz").status == 200, "it is ready again")
                assert read_metrics(port)["bunko_ready"] == 1
    finally:
        postgres.remove()


def test_an_index_that_is_behind_the_library_shows_by_how_much(docs: Path, tmp_path: Path) -> None:
    corpus.write(docs, {"a.md": corpus.document("京都の寺")})
    with chroma_server(tmp_path / "chroma") as server:
        environ = {"BUNKO_INDEX_KIND": "chroma", "BUNKO_CHROMADB_URL": f"http://127.0.0.1:{server.port}"}
        with open_library(paths_for_folder(tmp_path / "library"), environ=environ) as library:
            library.add(docs, name="docs")
            library.import_("docs")
            with serve_app(ToolRegistry(lambda: library)) as port:
                assert read_metrics(port)["bunko_index_lag_generations"] == 0
                # Another process, which knows nothing of Chroma, adds a document.
                corpus.write(docs, {"b.md": corpus.document("奈良の鹿")})
                arguments = ("import", "-n", "docs", "--mode", "update", "--library", tmp_path / "library")
                assert corpus.run(*arguments, BUNKO_INDEX_KIND="embedded").returncode == 0
                samples = read_metrics(port)
                assert samples["bunko_index_lag_generations"] >= 1
                assert samples["bunko_index_pending_documents"] >= 1
                library.index.sync("docs")
                samples = read_metrics(port)
                assert samples["bunko_index_lag_generations"] == 0
                assert samples["bunko_index_pending_documents"] == 0


def test_answers_stay_right_while_workers_are_killed_and_the_database_restarts() -> None:
    measured = run_load("--seconds", "10", "--postgres", "--disturb")
    assert_right(measured)
    assert measured["outages"]["its worker was killed"]["count"] >= 1
    assert measured["outages"]["the database was away"]["count"] == 1
