"""Several searches of one process at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import Opener
from tests.library.test_library import put
from tests.loopback import Asked, Loopback

PATIENCE = 20.0


@pytest.fixture
def service() -> Iterator[Loopback]:
    running = Loopback(768)
    yield running
    running.close()


def test_a_search_by_words_answers_while_another_waits_for_its_vector(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    library = open_docs(EMBEDDING_PROVIDER="local", LMSTUDIO_BASE_URL=f"{service.address}/v1",
                        BUNKO_EMBEDDING_QUERY_TIMEOUT="60", BUNKO_SEARCH_FRESHNESS_SECONDS="3600")  # fmt: skip
    library.reindex()
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(_: Asked) -> None:
        is_asked.set()
        may_answer.wait(PATIENCE)

    service.always = wait
    with ThreadPoolExecutor(2) as threads:
        by_meaning = threads.submit(library.search, "旅の計画", mode="hybrid")
        assert is_asked.wait(PATIENCE)
        by_words = threads.submit(library.search, "京都", mode="bm25")
        assert [hit.uri for hit in by_words.result(PATIENCE).hits] == ["a.md"]
        assert not by_meaning.done()
        may_answer.set()
        assert by_meaning.result(PATIENCE).mode == "hybrid"
