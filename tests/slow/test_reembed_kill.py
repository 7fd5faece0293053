"""A change of embedders killed at any moment leaves the old vectors or the new ones, and the next one completes it."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.interfaces.cli.main import INTERRUPTED_EXIT_CODE
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.loopback import Loopback
from tests.slow import corpus

pytestmark = pytest.mark.slow

FILES = {f"{number}.md": corpus.document(f"{number}") for number in range(260)}  # more than two transactions
OLD, NEW = {"EMBEDDING_PROVIDER": "static"}, {"EMBEDDING_PROVIDER": "hashing"}
PLACES = [
    "reembed.batch:1", "reembed.batch:3", "store.commit:1", "store.commit:2", "store.committed:1", "store.committed:3",
    "reembed.rekeyed", "store.commit:4", "store.committed:4", "store.committed:5", "store.committed:6",
    "derived.arrays",
]  # fmt: skip


def opened(docs: Path, environ: dict[str, str]) -> Library:
    home = locate_library(docs_dir=docs, environ={})
    return open_library(home, environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0", **environ})


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    docs = tmp_path_factory.mktemp("before") / "docs"
    docs.mkdir()
    corpus.write(docs, FILES)
    with opened(docs, OLD) as library:
        library.reindex()
    return docs


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> corpus.Contents:
    docs = tmp_path_factory.mktemp("wanted") / "docs"
    docs.mkdir()
    corpus.write(docs, FILES)
    with opened(docs, NEW) as library:
        library.reindex()
        return corpus.contents(library)


def check_one_or_the_other(docs: Path) -> None:
    """Assert that all vectors are those of one embedder, the one that the library names."""
    with opened(docs, OLD) as old, opened(docs, NEW) as new:
        is_new = str(old.resolve_tool(None).built.embedder).startswith("hashing")
        library = new if is_new else old
        assert library.store.check() == ""
        for query in corpus.QUERIES:
            library.search(query, mode="semantic", refresh=False)
        assert not [one for one in library.maintenance.diagnose() if one.state == "error"]
        assert corpus.stored(library) == FILES


def check_completed(docs: Path, wanted: corpus.Contents) -> None:
    check_one_or_the_other(docs)
    done = corpus.run("reembed", "--docs-dir", docs, **NEW)
    assert done.returncode == 0, done.stderr
    with opened(docs, NEW) as library:
        assert corpus.contents(library) == wanted
        rows = sqlite3.connect(library.paths.database)
        assert rows.execute("SELECT count(*) FROM vectors").fetchone() == (
            rows.execute("SELECT count(DISTINCT vector_key) FROM chunks").fetchone()
        )
        assert rows.execute("SELECT count(*) FROM kept").fetchone() == (0,)
        rows.close()


@pytest.mark.parametrize("place", PLACES)
def test_killed_at_a_named_place_it_is_one_or_the_other_and_is_completed_by_the_next(
    place: str, before: Path, wanted: corpus.Contents, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(before, docs)
    died = corpus.run("reembed", "--docs-dir", docs, **NEW, BUNKO_FAILPOINT=place)
    assert died.returncode == -signal.SIGKILL, died.stderr
    check_completed(docs, wanted)


def test_killed_before_the_swap_the_old_vectors_answer_as_before(before: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(before, docs)
    with opened(docs, OLD) as library:
        old = corpus.contents(library)
    died = corpus.run("reembed", "--docs-dir", docs, **NEW, BUNKO_FAILPOINT="reembed.rekeyed")
    assert died.returncode == -signal.SIGKILL, died.stderr
    with opened(docs, OLD) as library:
        assert corpus.contents(library) == old


@pytest.fixture
def service() -> Iterator[Loopback]:
    found = Loopback(8)
    yield found
    found.close()


def test_killed_while_a_service_is_asked_nothing_that_was_stored_is_paid_for_again(
    before: Path, tmp_path: Path, service: Loopback
) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(before, docs)
    environ = {
        "EMBEDDING_PROVIDER": "ollama", "OLLAMA_BASE_URL": service.address, "BUNKO_EMBEDDING_MODEL_OLLAMA": "own",
        "BUNKO_EMBEDDING_BATCH_SIZE": "20",
    }  # fmt: skip
    died = corpus.run("reembed", "--docs-dir", docs, **environ, BUNKO_FAILPOINT="reembed.batch:1")
    assert died.returncode == -signal.SIGKILL, died.stderr
    with opened(docs, OLD) as library:
        rows = sqlite3.connect(library.paths.database)
        (kept,) = rows.execute("SELECT count(*) FROM kept").fetchone()
        (chunks,) = rows.execute("SELECT count(DISTINCT vector_key) FROM chunks").fetchone()
        rows.close()
    assert kept >= 100
    service.asked.clear()
    done = corpus.run("reembed", "--docs-dir", docs, "--json", **environ)
    assert done.returncode == 0, done.stderr
    # A question is one line. The last request of the killed process may arrive late, and a slow one is repeated.
    documents = {text for text in service.texts() if "\n" in text}
    assert len(documents) == chunks - kept


def test_ctrl_c_leaves_the_old_vectors_and_keeps_what_came(before: Path, tmp_path: Path, service: Loopback) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(before, docs)
    environ = {
        "EMBEDDING_PROVIDER": "ollama", "OLLAMA_BASE_URL": service.address, "BUNKO_EMBEDDING_MODEL_OLLAMA": "own",
        "BUNKO_EMBEDDING_BATCH_SIZE": "20",
    }  # fmt: skip
    last: list[float] = []

    def slow(_: object) -> None:
        last.append(time.monotonic())
        if len(last) > 8:
            service.released.wait(0.3)

    service.always = slow
    with corpus.start("reembed", "--docs-dir", docs, **environ) as process:
        corpus.wait_until(lambda: len(last) > 10, "it never asked")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=corpus.PATIENCE)
    assert process.returncode == INTERRUPTED_EXIT_CODE, err
    assert "Traceback" not in err
    with opened(docs, OLD) as library:
        assert library.search("京都", mode="semantic", refresh=False).hits
        rows = sqlite3.connect(library.paths.database)
        (kept,) = rows.execute("SELECT count(*) FROM kept").fetchone()
        rows.close()
    assert kept >= 100
