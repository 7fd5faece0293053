"""Imports whose connections are cut and whose server restarts end as if nothing had happened."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.types.records import DatabaseServer
from tests.scale.postgres_server import PostgresServer, environment
from tests.scale.test_postgres_connections import DROP_CONNECTIONS
from tests.scale.test_postgres_processes import answers
from tests.slow import corpus

pytestmark = pytest.mark.scale

FILES = {f"{number % 9}/{number}.md": corpus.document(f"{number}") for number in range(200)}
SEED = int(os.environ.get("BUNKO_TEST_SEED", "17"))


def contents(library: Library) -> list[object]:
    """Return all documents, chunks and keys of vectors of the first tool, and whether each vector is there."""
    [tool] = library.tools()
    store = library.store
    documents = store.documents.export(tool.id, list(store.documents.fingerprints(tool.id)))
    keys = [key for document in documents for key in document.vector_keys]
    assert store.vectors.missing(keys) == set()
    return [
        (prepared.document.uri, prepared.document.content_hash, prepared.chunks, prepared.vector_keys)
        for prepared in documents
    ]


def drop_often(postgres: PostgresServer, chance: random.Random, process: subprocess.Popen[str]) -> int:
    """Cut connections of bunko at random moments while a process runs; return how many."""
    dropped = 0
    while process.poll() is None:
        dropped += len(postgres.execute(DROP_CONNECTIONS))
        time.sleep(chance.uniform(0.005, 0.2))
    return dropped


def restart_twice(postgres: PostgresServer, chance: random.Random, process: subprocess.Popen[str]) -> int:
    """Restart the server at random moments while a process runs; return how often."""
    restarts = 0
    while process.poll() is None and restarts < 2:
        time.sleep(chance.uniform(0.2, 1.0))
        postgres.stop() if restarts else postgres.kill()
        postgres.start()
        restarts += 1
    return restarts


@pytest.mark.parametrize("disturb", [drop_often, restart_twice])
@pytest.mark.parametrize("mode", ["update", "replace"])
def test_an_import_that_is_disturbed_ends_as_if_nothing_had_happened(
    mode: str,
    disturb: Callable[[PostgresServer, random.Random, subprocess.Popen[str]], int],
    postgres: PostgresServer,
    server: DatabaseServer,
    docs: Path,
    tmp_path: Path,
) -> None:
    corpus.write(docs, FILES)
    place = ("--library", tmp_path / "machine")
    added = corpus.run("tool", "add", "-n", "docs", "-d", "Notes", "-s", docs, *place, **environment(server))
    assert added.returncode == 0, added.stderr
    chance = random.Random(SEED)
    disturbances = runs = 0
    ended_well = False
    while not ended_well:
        runs += 1
        process = corpus.start("import", "-n", "docs", "--mode", mode, *place, **environment(server))
        if runs <= 3:
            disturbances += disturb(postgres, chance, process)
        # A server that is away just then is waited for, several times if it must be.
        _, errors = process.communicate(timeout=4 * corpus.PATIENCE)
        ended_well = process.returncode == 0
        # It may fail only with a sentence, and then runs again, the last time undisturbed.
        assert "Traceback" not in errors, errors
        assert ended_well or "Error: " in errors, errors
        assert runs <= 4, errors
    assert disturbances
    with (
        open_library(paths_for_folder(tmp_path / "machine"), environ=environment(server)) as library,
        open_library(paths_for_folder(tmp_path / "undisturbed"), environ={}) as undisturbed,
    ):
        undisturbed.add(docs, name="docs")
        undisturbed.import_("docs")
        assert contents(library) == contents(undisturbed)
        assert answers(library) == answers(undisturbed)
        assert [finding for finding in library.maintenance.diagnose() if finding.state == "error"] == []
