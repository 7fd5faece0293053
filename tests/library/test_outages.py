"""An embedding service that is away costs quality, never the answer: words answer, and vectors follow later."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.embedders.embed import as_remote
from bunko.errors import EmbedderError
from bunko.library.importing import outages
from bunko.library.library import Library
from tests.conftest import Opener, Ran, Run
from tests.library.test_library import put
from tests.loopback import Asked, Loopback, Reply, openai_error


def remote(service: Loopback, **more: str) -> dict[str, str]:
    return {"EMBEDDING_PROVIDER": "local", "LMSTUDIO_BASE_URL": f"{service.address}/v1"} | more


def away(_: Asked) -> Reply:
    return openai_error(503, "out of order")


def counts(library: Library) -> tuple[int, int]:
    """Return how many chunks there are, and how many have a vector."""
    totals = library.store.stats.totals(library.resolve_tool(None).id)
    return totals.chunks, totals.vectors


def end_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "PAUSE_SECONDS", 0.0)


def test_words_answer_at_once_and_the_next_search_does_not_even_ask(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    library = open_docs(**remote(service))
    library.reindex()
    service.asked.clear()
    service.always = away
    for mode in ("hybrid", "semantic"):
        answer = library.search("京都", mode=mode)
        assert (answer.mode, [hit.uri for hit in answer.hits]) == ("bm25", ["a.md"])
        assert ["Only words were searched" in notice for notice in answer.notices] == [True]
        assert "out of order" in answer.notices[0]
        assert 0.6 <= answer.hits[0].score <= 1, "what a client's threshold lets through as well"
    assert len(service.asked) == 1, "neither a retry nor a second attempt"
    another = open_docs(**remote(service))
    assert another.search("京都").mode == "bm25"
    assert len(service.asked) == 1, "another process has heard of it"


def test_the_search_asks_again_after_a_moment(
    docs: Path, open_docs: Opener, service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都の話")
    library = open_docs(**remote(service))
    library.reindex()
    service.always = away
    assert library.search("京都 1").mode == "bm25"
    service.always = lambda _: None
    assert library.search("京都 2").mode == "bm25"
    end_pause(monkeypatch)
    library.close()
    library = open_docs(**remote(service))
    monkeypatch.setattr(library.store.cache, "cached_answer", lambda *_: None)
    assert library.search("京都 3").mode == "hybrid"


def test_a_service_that_never_answers_is_waited_for_only_briefly(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    library = open_docs(**remote(service), BUNKO_EMBEDDING_QUERY_TIMEOUT="0.2")
    library.reindex()

    def hang(_: Asked) -> Reply:
        service.released.wait()
        return openai_error(503, "too late")

    service.always = hang
    answer = library.search("京都")
    assert (answer.mode, len(answer.hits)) == ("bm25", 1)
    assert "did not answer within 0.2 s" in answer.notices[0]
    put(docs, "b.md", "奈良の話")
    assert [hit.uri for hit in library.search("奈良", mode="bm25").hits][:1] == ["b.md"]
    assert library.search("奈良").hits[0].uri == "b.md"


@pytest.mark.parametrize("mode", ["bm25", "hybrid"])
def test_changed_files_are_found_by_words_meanwhile_and_embedded_later(
    mode: str, docs: Path, open_docs: Opener, service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都の話")
    library = open_docs(**remote(service))
    library.reindex()
    service.always = away
    put(docs, "b.md", "奈良の話")
    answer = library.search("奈良", mode=mode)  # type: ignore[arg-type]
    assert answer.hits[0].uri == "b.md"
    assert counts(library) == (2, 1)
    service.always = lambda _: None
    service.asked.clear()
    end_pause(monkeypatch)
    library.close()
    library = open_docs(**remote(service))
    monkeypatch.setattr(library.store.cache, "cached_answer", lambda *_: None)
    answer = library.search("奈良")
    assert (answer.mode, answer.notices) == ("hybrid", [])
    assert counts(library) == (2, 2)
    assert not any("京都" in text for text in service.texts()), "nothing is paid for twice"
    assert not library.resolve_tool(None).built.lacks_vectors


def test_an_import_goes_on_by_words_and_the_next_one_computes_the_vectors(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    library = open_docs(**remote(service, BUNKO_RETRY_MAX_RETRIES="0"))
    library.reindex()
    service.always = away
    for number in range(150):
        put(docs, f"{number}.md", f"奈良の話 {number}")
    report = library.reindex()
    assert report.added == 150
    (notice,) = report.notices
    assert "documents without vectors" in notice
    assert "out of order" in notice
    warnings = [finding.message for finding in library.maintenance.diagnose() if finding.state == "warning"]
    assert warnings[0] == "some documents have no vectors yet"
    assert ["vector search was not checked" in message for message in warnings[1:]] == [True]
    service.always = lambda _: None
    report = library.reindex()
    assert (report.unchanged, report.embedded, report.notices) == (151, 150, [])
    assert counts(library) == (151, 151)


def test_a_wrong_key_is_said_and_nothing_is_lost(docs: Path, open_docs: Opener, service: Loopback) -> None:
    put(docs, "a.md", "京都の話")
    settings = {
        "EMBEDDING_PROVIDER": "openai", "OPENAI_BASE_URL": service.address, "OPENAI_API_KEY": "k",
        "BUNKO_EMBEDDING_DIMENSIONS": "8",
    }  # fmt: skip
    library = open_docs(**settings)
    library.reindex()
    service.always = lambda _: openai_error(401, "who are you")
    put(docs, "b.md", "奈良の話")
    report = library.reindex()
    assert report.added == 1
    assert ["OPENAI_API_KEY" in notice for notice in report.notices] == [True]
    assert library.search("奈良").hits[0].uri == "b.md"


def test_a_rebuild_that_cannot_be_embedded_leaves_the_old_index(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    open_docs().reindex()
    service.always = away
    library = open_docs(**remote(service, BUNKO_RETRY_MAX_RETRIES="0"))
    with pytest.raises(EmbedderError, match="out of order"):
        library.reindex(rebuild=True)
    answer = library.search("京都")
    assert (answer.mode, len(answer.hits)) == ("hybrid", 1)


def test_a_tool_that_never_got_a_vector_takes_the_embedder_of_the_settings(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    service.always = away
    first = open_docs(**remote(service, BUNKO_RETRY_MAX_RETRIES="0", BUNKO_EMBEDDING_DIMENSIONS="8"))
    assert first.reindex().added == 1
    assert counts(first) == (1, 0)
    library = open_docs()
    report = library.reindex()
    assert (report.embedded, report.notices) == (1, [])
    answer = library.search("京都")
    assert (answer.mode, answer.notices) == ("hybrid", [])


def test_without_its_embedder_a_tool_is_searched_by_words_and_goes_on_when_it_is_back(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    open_docs(**remote(service)).reindex()
    library = open_docs()
    put(docs, "b.md", "奈良の話")
    answer = library.search("奈良")
    assert (answer.mode, answer.hits[0].uri) == ("bm25", "b.md")
    (notice,) = answer.notices
    assert notice.startswith(
        "Only the words of documents are searched: its embedder lmstudio nomic-embed-text is not in the settings."
    )
    assert f"bunko reembed --docs-dir {docs}" in notice
    put(docs, "c.md", "大阪の話")
    assert ["bunko reembed" in notice for notice in library.reindex().notices] == [True]
    service.asked.clear()
    back = open_docs(**remote(service))
    assert back.reindex().embedded == 2
    answer = back.search("大阪")
    assert (answer.mode, answer.notices) == ("hybrid", [])
    assert counts(back) == (3, 3)


def test_another_model_of_the_same_service_does_not_change_the_model_of_a_tool(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    def settings(model: str) -> dict[str, str]:
        return {
            "EMBEDDING_PROVIDER": "openai", "OPENAI_BASE_URL": service.address, "OPENAI_API_KEY": "k",
            "EMBEDDING_MODEL_ONLINE": model, "BUNKO_EMBEDDING_DIMENSIONS": "8",
        }  # fmt: skip

    put(docs, "a.md", "京都の話")
    open_docs(**settings("first")).reindex()
    library = open_docs(**settings("second"))
    put(docs, "b.md", "奈良の話")
    service.asked.clear()
    answer = library.search("奈良")
    assert (answer.mode, answer.hits[0].uri) == ("hybrid", "b.md")
    assert {asked.body["model"] for asked in service.asked} == {"first"}
    assert ["bunko reembed" in notice for notice in answer.notices] == [True]
    library.reembed(["documents"])
    assert library.search("大阪").notices == []
    assert service.asked[-1].body["model"] == "second"


def test_a_library_cannot_choose_a_service_or_a_model_that_the_settings_do_not_name(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    open_docs(**remote(service)).reindex()
    service.asked.clear()
    key = {"LMSTUDIO_BASE_URL": f"{service.address}/v1"}
    assert open_docs(**key).search("京都").mode == "bm25"
    assert open_docs(**key, EMBEDDING_PROVIDER="hashing").search("京都").mode == "bm25"
    assert service.asked == []


def test_the_shell_answers_by_words_and_says_so(
    docs: Path, run: Run, service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in remote(service, BUNKO_RETRY_MAX_RETRIES="0").items():
        monkeypatch.setenv(name, value)
    put(docs, "a.md", "京都の話")
    assert run("reindex", "--docs-dir", docs).code == 0
    service.always = away
    put(docs, "b.md", "奈良の話")
    found = run("search", "奈良", "--docs-dir", docs)
    assert (found.code, "b.md" in found.out) == (0, True)
    assert found.err.count("Only words were searched") == 1
    shown = run("search", "奈良", "--docs-dir", docs, "--json").json()
    assert shown["mode"] == "bm25"
    kept = run("reindex", "--docs-dir", docs)
    assert kept.code == 0
    assert "documents without vectors" in kept.out + kept.err


def test_a_first_search_while_the_service_is_away_imports_by_words(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    service.always = away
    for settings in (remote(service), {"EMBEDDING_PROVIDER": "openai"}):
        library = open_docs(**settings)
        answer = library.search("京都")
        assert ([hit.uri for hit in answer.hits], len(answer.notices)) == (["a.md"], 1)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of LM Studio in the settings; its port refuses connections."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        settings = {"EMBEDDING_PROVIDER": "local", "LMSTUDIO_BASE_URL": address, "BUNKO_RETRY_MAX_RETRIES": "0"}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        yield address


def import_folder(docs: Path, run: Run, library: Path) -> Ran:
    run("tool", "add", "-n", "notes", "-d", "覚え書き", "-s", docs, "--library", library)
    return run("import", "-n", "notes", "--library", library)


@pytest.mark.parametrize("command", ["reindex", "add", "import"])
def test_a_first_import_goes_on_by_words_while_the_service_is_not_started(
    docs: Path, run: Run, tmp_path: Path, stopped: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都の話")
    library = tmp_path / "library"
    place = ("--docs-dir", docs) if command == "reindex" else ("--library", library)
    match command:
        case "reindex":
            imported = run("reindex", *place)
        case "add":
            imported = run("add", docs, "-d", "覚え書き", *place)
        case _:
            imported = import_folder(docs, run, library)
    assert imported.code == 0, imported.err
    assert "documents without vectors, which are found by their words" in imported.out + imported.err
    assert "Connection refused" in imported.out + imported.err
    found = run("search", "京都", *place)
    assert (found.code, "a.md" in found.out) == (0, True)
    service = Loopback(768)
    try:
        monkeypatch.setenv("LMSTUDIO_BASE_URL", f"{service.address}/v1")
        again = run("reindex", *place)
        assert (again.code, "without vectors" in again.out + again.err) == (0, False)
        shown = run("search", "京都", *place, "--json").json()
        assert shown["mode"] == "hybrid"
    finally:
        service.close()


def test_a_model_of_unknown_size_is_asked_once_while_the_service_is_not_started(
    docs: Path, open_docs: Opener, stopped: str
) -> None:
    for number in range(150):
        put(docs, f"{number}.md", f"京都の話 {number}")
    settings = {"EMBEDDING_PROVIDER": "local", "LMSTUDIO_BASE_URL": stopped, "BUNKO_RETRY_MAX_RETRIES": "0"}
    library = open_docs(**settings, EMBEDDING_MODEL_LOCAL="of-unknown-size")
    embedder = as_remote(library.embedder())
    assert embedder is not None
    for _ in range(2):
        calls = embedder.stats.calls
        (notice,) = library.reindex().notices
        assert "documents without vectors" in notice
        assert embedder.stats.calls == calls + 1
    assert len(library.search("京都").hits) > 0


def test_a_service_without_its_key_is_still_an_error_of_the_first_import(
    docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都の話")
    monkeypatch.setenv("EMBEDDING_PROVIDER", "openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ran = run("reindex", "--docs-dir", docs)
    assert (ran.code, "OPENAI_API_KEY" in ran.err) == (5, True)


def test_without_an_embedder_in_the_settings_a_tool_keeps_the_bundled_one(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都の話")
    open_docs().reindex()
    answer = open_docs(EMBEDDING_PROVIDER="none").search("京都")
    assert (answer.mode, answer.hits[0].vector_distance is not None) == ("hybrid", True)
    assert ["a different embedder" in notice for notice in answer.notices] == [True]


def test_the_pause_ends_with_another_key_and_with_an_import_that_works(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    def settings(key: str) -> dict[str, str]:
        return {
            "EMBEDDING_PROVIDER": "openai", "OPENAI_BASE_URL": service.address, "OPENAI_API_KEY": key,
            "BUNKO_EMBEDDING_DIMENSIONS": "8",
        }  # fmt: skip

    put(docs, "a.md", "京都の話")
    open_docs(**settings("good")).reindex()
    service.always = lambda asked: None if "good" in asked.headers["authorization"] else openai_error(401, "who?")
    assert open_docs(**settings("bad")).search("京都 1").mode == "bm25"
    assert open_docs(**settings("good")).search("京都 2").mode == "hybrid", "another key is another service"
    service.always = away
    assert open_docs(**settings("good")).search("京都 3").mode == "bm25"
    service.always = lambda _: None
    put(docs, "b.md", "奈良の話")
    open_docs(**settings("good")).reindex()
    assert open_docs(**settings("good")).search("京都 4").mode == "hybrid"


@pytest.mark.slow
def test_an_import_that_a_search_gives_up_is_no_failure_of_the_service(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    library = open_docs(**remote(service))
    library.reindex()
    for number in range(3):
        put(docs, f"{number}.md", f"奈良の話 {number}")
    query_only = threading.Event()

    def slow_documents(asked: Asked) -> Reply | None:
        if any("search_document" in text for text in asked.texts):
            query_only.wait(3)
        return None

    service.always = slow_documents
    answer = library.search("奈良")
    assert answer.mode == "hybrid"
    assert ["no vectors yet" in notice for notice in answer.notices] == [True]
    query_only.set()
    library.close()
    service.always = lambda _: None
    assert open_docs(**remote(service)).search("奈良 2").mode == "hybrid"


def test_an_import_does_not_speak_of_missing_vectors_when_none_is_missing(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    put(docs, "a.md", "京都の話")
    open_docs(**remote(service)).reindex()
    library = open_docs()
    assert not any("without vectors" in notice for notice in library.reindex().notices)
    bare = open_docs(EMBEDDING_PROVIDER="none")
    bare.reindex(rebuild=True)
    assert ["bunko reembed" in notice for notice in open_docs().reindex().notices] == [True]
