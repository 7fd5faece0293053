"""A reranker puts the first results in order, and whatever goes wrong with it, there is an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event

import pytest

from bunko.errors import ModelError
from bunko.library.library import Library
from bunko.protocols import Reranker
from bunko.search.request import SearchRequest
from tests.conftest import Opener, Run
from tests.tiny_models import write_cross_encoder, write_encoder

# Words find the first text at once; the letters of the query are all in the last one, far down in the ranking.
QUERY = "cat dog"
TEXTS = {
    "a.md": "# fur\n\ncat cat cat\n",
    "b.md": "# ink\n\ncat fur\n",
    "c.md": "# sky\n\ncat is good " + "umbrella in winter " * 8,
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_cross_encoder(tmp_path / "letters")


@pytest.fixture
def opened(docs: Path, open_docs: Opener) -> Callable[..., Library]:
    for name, text in TEXTS.items():
        (docs / name).write_text(text, encoding="utf-8")

    def opener(**settings: str) -> Library:
        return open_docs(**{f"BUNKO_SEARCH_{name.upper()}": value for name, value in settings.items()})

    return opener


class Slow:
    """A reranker that answers only when it may."""

    label = "slow"

    def __init__(self) -> None:
        self.may_answer, self.was_cancelled = Event(), Event()

    def unavailable_reason(self) -> str:
        return ""

    def scores(
        self, query: str, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> list[float] | None:
        self.may_answer.wait()
        if is_cancelled():
            self.was_cancelled.set()
            return None
        return [float(index) for index in range(len(texts))]


class Broken(Slow):
    def __init__(self, error: Exception | list[float]) -> None:
        super().__init__()
        self.error = error

    def scores(
        self, query: str, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> list[float] | None:
        if isinstance(self.error, Exception):
            raise self.error
        return self.error


@pytest.fixture
def use_reranker(monkeypatch: pytest.MonkeyPatch) -> Callable[[Reranker], None]:
    """Let the name in the settings mean this reranker."""

    def use(reranker: Reranker) -> None:
        monkeypatch.setattr("bunko.rerankers.build", lambda name: reranker)

    return use


@pytest.fixture
def slow(use_reranker: Callable[[Reranker], None]) -> Iterator[Slow]:
    reranker = Slow()
    use_reranker(reranker)
    yield reranker
    reranker.may_answer.set()
    assert reranker.was_cancelled.wait(10)


def uris(library: Library, top_k: int | None = None) -> list[str]:
    return [hit.uri for hit in library.search(QUERY, mode="bm25", top_k=top_k).hits]


def test_the_first_results_are_in_the_order_of_the_reranker(opened: Callable[..., Library], model: Path) -> None:
    before = opened().search(QUERY, mode="bm25", top_k=3)
    answer = opened(reranker=str(model)).search(QUERY, mode="bm25", top_k=3, explain=True)
    assert (before.reranker, answer.reranker) == ("", "letters")
    assert answer.notices == before.notices
    assert {hit.uri for hit in answer.hits} == {hit.uri for hit in before.hits}
    assert answer.hits[0].uri == "c.md"
    scores = [hit.explanation.reranker for hit in answer.hits if hit.explanation and hit.explanation.reranker]
    assert [score.rank for score in scores] == [1, 2, 3]
    assert [score.score for score in scores] == sorted((score.score for score in scores), reverse=True)
    by_uri = {hit.uri: hit.score for hit in before.hits}
    assert all(hit.score == by_uri[hit.uri] for hit in answer.hits), "the score stays that of the ranking"
    assert [hit.reranker_score for hit in answer.hits] == [score.score for score in scores]
    assert all(hit.reranker_score is None for hit in before.hits)


def test_results_from_further_down_are_reranked_too(opened: Callable[..., Library], model: Path) -> None:
    assert uris(opened(), top_k=1) != ["c.md"]
    assert uris(opened(reranker=str(model)), top_k=1) == ["c.md"]


def test_only_the_first_results_are_read_and_the_others_follow(opened: Callable[..., Library], model: Path) -> None:
    plain = uris(opened(), top_k=3)
    assert plain[2] == "c.md"
    reranked = uris(opened(reranker=str(model), rerank_count="2"), top_k=3)
    assert reranked[2] == "c.md"
    assert set(reranked[:2]) == set(plain[:2])


def test_hits_are_selected_after_reranking(opened: Callable[..., Library], docs: Path, model: Path) -> None:
    sections = [f"## ink\n\n{words} " + "umbrella in winter " * 8 for words in ("cat cat", "cat is good")]
    (docs / "c.md").write_text("\n\n".join(sections), encoding="utf-8")
    answer = opened(reranker=str(model)).search(f"{QUERY} -fur", mode="bm25", top_k=3, per_document=1)
    assert [hit.uri for hit in answer.hits] == ["c.md"]
    assert "good" in answer.hits[0].text
    assert answer.hits[0].more_in_document == 1
    assert answer.reranker


def test_pages_go_on_in_the_order_of_the_reranker(opened: Callable[..., Library], model: Path) -> None:
    library = opened(reranker=str(model))
    whole = [item.passage.hit.uri for item in library.page(SearchRequest(QUERY, mode="bm25", top_k=3)).results]
    pages, cursor = [], ""
    while True:
        page = library.page(SearchRequest(QUERY, mode="bm25", top_k=1, cursor=cursor))
        pages += [item.passage.hit.uri for item in page.results]
        cursor = page.next_cursor
        if not cursor:
            break
    assert pages == whole


def test_a_search_that_wants_no_reranking_gets_none(opened: Callable[..., Library], model: Path) -> None:
    answer = opened(reranker=str(model)).search(QUERY, mode="bm25", rerank=False)
    assert answer.reranker == ""
    assert answer.hits[0].uri == uris(opened())[0]


def test_a_reranker_that_takes_too_long_leaves_the_order_and_a_notice(
    opened: Callable[..., Library], slow: Slow
) -> None:
    plain = opened().search(QUERY, mode="bm25")
    answer = opened(reranker="slow", rerank_seconds="0.05").search(QUERY, mode="bm25")
    assert answer.hits == plain.hits
    assert answer.reranker == ""
    assert any("slow took longer than 0.05 s; search.rerank_seconds" in notice for notice in answer.notices)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (RuntimeError("it broke"), "RuntimeError: it broke"),
        (ModelError("The model is bad", hint="Get another."), "The model is bad. Get another."),
        ([1.0], "returned 1 scores for 3 texts"),
        ([1.0, float("nan"), 2.0], "scores"),
    ],
)
def test_a_reranker_that_fails_leaves_the_order_and_a_notice(
    opened: Callable[..., Library],
    use_reranker: Callable[[Reranker], None],
    problem: Exception | list[float],
    expected: str,
) -> None:
    use_reranker(Broken(problem))
    plain = opened().search(QUERY, mode="bm25")
    answer = opened(reranker="broken").search(QUERY, mode="bm25")
    assert answer.hits == plain.hits
    notice = next(notice for notice in answer.notices if "not reranked" in notice)
    assert expected in notice


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("japanese-reranker-xsmall-v2", "bunko models get japanese-reranker-xsmall-v2"),
        ("no-such-reranker", "no reranker called"),
        ("/no/such/folder", "does not contain tokenizer.json"),
    ],
)
def test_a_reranker_that_is_not_there_leaves_the_order_and_a_notice(
    opened: Callable[..., Library], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    plain = opened().search(QUERY, mode="bm25")
    answer = opened(reranker=name).search(QUERY, mode="bm25")
    assert answer.hits == plain.hits
    notice = next(notice for notice in answer.notices if "not reranked" in notice)
    assert expected in notice
    assert not notice.endswith("xsmall-v2."), "a command is copied up to the end of the line"


def test_a_model_of_embeddings_is_no_reranker(opened: Callable[..., Library], tmp_path: Path) -> None:
    answer = opened(reranker=str(write_encoder(tmp_path / "encoder"))).search(QUERY, mode="bm25")
    assert answer.hits
    assert any("encoder is not a reranker" in notice for notice in answer.notices)


def test_the_command_line_explains_what_the_reranker_did(
    opened: Callable[..., Library], docs: Path, model: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_SEARCH_RERANKER", str(model))
    found = run("search", QUERY, "--docs-dir", docs, "--mode", "bm25", "--explain")
    assert "reranker 0." in found.out
    assert "  reranker=0.9526\n" in run("search", QUERY, "--docs-dir", docs, "--mode", "bm25").out
    results = run("search", QUERY, "--docs-dir", docs, "--mode", "bm25", "--explain", "--json").json()["results"]
    assert isinstance(results, list)
    assert results[0]["file_path"] == "c.md"
    assert results[0]["explain"]["reranker"]["rank"] == 1
    assert results[0]["reranker_score"] == results[0]["explain"]["reranker"]["score"] == 0.9526
