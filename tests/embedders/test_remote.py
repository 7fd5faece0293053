"""Remote embedders through their real SDKs, against servers on loopback that speak their formats."""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import numpy as np
import pytest

from bunko import embedders
from bunko.embedders import gemini, openai
from bunko.embedders.remote import Remote
from bunko.errors import EmbedderError, UnknownName
from bunko.remote import parse_retry_after
from bunko.settings import load_settings
from tests.conftest import Opener
from tests.loopback import KEY, Asked, Loopback, Reply, gemini_error, listed, openai_error, told


@pytest.fixture
def service() -> Iterator[Loopback]:
    found = Loopback()
    yield found
    found.close()


class Asking:
    """An embedder of each kind, and how long it waited."""

    def __init__(self, kind: str, service: Loopback) -> None:
        self.kind, self.service = kind, service
        self.waits: list[float] = []

    def build(self, **options: Any) -> Remote:
        options = {"sleep": self.waits.append, "api_key": KEY, "timeout": 10.0, **options}
        if self.kind == "gemini":
            return gemini.build(base_url=self.service.address, **options)
        if "dimensions" not in options:
            options = {"model": "text-embedding-3-small", "dimensions": 8, **options}
        return openai.build(base_url=f"{self.service.address}/v1", **options)

    def error(self, status: int, message: str, **headers: str) -> Reply:
        if self.kind == "gemini":
            return gemini_error(status, "UNAVAILABLE", message, **headers)
        return openai_error(status, message, **headers)


@pytest.fixture(params=["openai", "gemini"])
def asking(request: pytest.FixtureRequest, service: Loopback) -> Asking:
    return Asking(request.param, service)


def unit(numbers: Sequence[float]) -> np.ndarray:
    row = np.asarray(numbers, np.float32)
    return row / np.linalg.norm(row)


# What goes over the wire


def test_openai_is_asked_in_base64_and_vectors_come_back_in_the_order_of_the_texts(service: Loopback) -> None:
    embedder = openai.build(model="text-embedding-3-small", base_url=service.address, api_key=KEY, dimensions=16)
    found = embedder.embed(["犬", "cat", "鳥"])
    assert np.allclose(found, [unit(service.numbers(text, 16)) for text in ("犬", "cat", "鳥")], atol=1e-6)
    asked = service.asked[0]
    assert asked.path == "/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "text-embedding-3-small",
        "input": ["犬", "cat", "鳥"],
        "dimensions": 16,
        "encoding_format": "base64",
    }
    assert (embedder.name, embedder.size, embedder.noise_floor) == (
        "openai:text-embedding-3-small:16:average-8191", 16, -1.0,
    )  # fmt: skip


def test_a_server_that_writes_numbers_out_is_understood_too(service: Loopback) -> None:
    service.answers = [listed([[3.0, 4.0], [0.0, 2.0]])]
    embedder = openai.build("lmstudio", model="own", base_url=service.address)
    assert embedder.embed(["a", "b"]).tolist() == pytest.approx(np.array([[0.6, 0.8], [0, 1]]))


def test_gemini_is_told_the_task_and_the_size_and_cut_vectors_get_unit_length_again(service: Loopback) -> None:
    embedder = gemini.build(base_url=service.address, api_key=KEY, size=1536)
    found = embedder.embed(["犬", "cat"])
    assert np.allclose(found, [unit(service.numbers(text, 1536)) for text in ("犬", "cat")], atol=1e-6)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    embedder.embed(["犬はどこ"], query=True)
    documents, query = service.asked
    assert documents.path.endswith("/models/gemini-embedding-001:batchEmbedContents")
    assert documents.headers["x-goog-api-key"] == KEY
    assert {(one["taskType"], one["outputDimensionality"]) for one in documents.body["requests"]} == {
        ("RETRIEVAL_DOCUMENT", 1536)
    }
    assert query.body["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
    assert "1536" in embedder.name


def test_gemini_gets_at_most_a_hundred_texts_a_request(service: Loopback) -> None:
    embedder = gemini.build(base_url=service.address, api_key=KEY, batch=500)
    texts = [f"text {number}" for number in range(250)]
    found = embedder.embed(texts)
    assert sorted(len(asked.texts) for asked in service.asked) == [50, 100, 100]
    assert np.allclose(found, [unit(service.numbers(text, 768)) for text in texts], atol=1e-6)


@pytest.mark.parametrize(
    ("model", "given", "document", "query"),
    [
        ("nomic-embed-text", None, "search_document: 犬", "search_query: 犬"),
        ("text-embedding-nomic-embed-text-v1.5", None, "search_document: 犬", "search_query: 犬"),
        ("nomic-embed-text", False, "犬", "犬"),
        ("bge-m3", None, "犬", "犬"),
        ("bge-m3", True, "search_document: 犬", "search_query: 犬"),
    ],
)
def test_prefixes_are_put_before_texts_for_nomic_models_unless_said_otherwise(
    service: Loopback, model: str, given: bool | None, document: str, query: str
) -> None:
    service.size = 768
    embedder = openai.build("lmstudio", model=model, base_url=service.address, prefix=given)
    embedder.embed(["犬"])
    embedder.embed(["犬"], query=True)
    assert [asked.texts for asked in service.asked] == [[document], [query]]


def test_prefixes_model_and_size_are_in_the_name(service: Loopback) -> None:
    service.size = 768
    built = [
        openai.build("lmstudio", base_url=service.address),
        openai.build("lmstudio", base_url=service.address, prefix=False),
        openai.build("lmstudio", base_url=service.address, dimensions=256),
        openai.build("lmstudio", base_url=service.address, model="nomic-embed-text-v2"),
        openai.build("ollama", base_url=service.address),
        openai.build("ollama", base_url=service.address, too_long="cut"),
        gemini.build(),
        gemini.build(size=3072),
        gemini.build(document="SEMANTIC_SIMILARITY"),
    ]
    assert len({embedder.name for embedder in built}) == len(built)
    assert not service.asked


def test_a_model_that_is_not_known_is_asked_once_for_its_size(service: Loopback) -> None:
    service.size = 12
    embedder = openai.build("ollama", model="own", base_url=service.address)
    assert (embedder.size, embedder.name, embedder.size) == (12, "ollama:own:12", 12)
    assert len(service.asked) == 1


def test_a_server_without_a_key_is_not_shown_the_key_of_openai(
    service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    openai.build("lmstudio", model="own", base_url=service.address).embed(["a"])
    assert KEY not in json.dumps(service.asked[0].headers)


def test_a_question_that_was_just_asked_is_not_paid_for_again(asking: Asking) -> None:
    embedder = asking.build()
    first = embedder.embed(["犬はどこ"], query=True)
    assert np.array_equal(embedder.embed(["犬はどこ"], query=True), first)
    embedder.embed(["犬はどこ"])  # as a document it is another text
    assert len(asking.service.asked) == 2


# What goes wrong


@pytest.mark.parametrize("status", [500, 503])
def test_a_passing_failure_is_tried_again_after_one_two_and_four_seconds(asking: Asking, status: int) -> None:
    asking.service.answers = [asking.error(status, "overloaded")] * 3
    assert asking.build().embed(["a"]).shape[0] == 1
    assert len(asking.service.asked) == 4
    assert all(low <= wait <= low * 1.25 for wait, low in zip(asking.waits, (1, 2, 4), strict=True))


def test_after_the_last_retry_the_error_says_what_was_said(asking: Asking) -> None:
    asking.service.always = lambda _: asking.error(503, "overloaded just now")
    embedder = asking.build()
    with pytest.raises(EmbedderError, match="overloaded just now") as caught:
        embedder.embed(["a"])
    assert "next import" in caught.value.hint
    assert (embedder.stats.calls, embedder.stats.retries) == (4, 3)


def test_too_many_requests_wait_longer_than_other_failures(asking: Asking) -> None:
    asking.service.answers = [asking.error(429, "slow down")] * 2
    asking.build().embed(["a"])
    assert all(wait >= low * 3 for wait, low in zip(asking.waits, (1, 2), strict=True))


def test_retry_after_is_honoured_as_seconds_and_as_a_date(asking: Asking) -> None:
    asking.service.answers = [
        asking.error(429, "slow down", retry_after="17"),
        asking.error(503, "back soon", retry_after=formatdate(time() + 60, usegmt=True)),
    ]
    asking.build().embed(["a"])
    assert 17 <= asking.waits[0] <= 17 * 1.1
    assert 30 <= asking.waits[1] <= 66


def test_gemini_says_in_its_details_how_long_to_wait(service: Loopback) -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "23s"}
    service.answers = [gemini_error(429, "RESOURCE_EXHAUSTED", "quota", detail)]
    asking = Asking("gemini", service)
    asking.build().embed(["a"])
    assert 23 <= asking.waits[0] <= 23 * 1.1


def test_who_would_have_to_wait_for_an_hour_is_told_so_at_once(asking: Asking) -> None:
    asking.service.always = lambda _: asking.error(429, "come back later", retry_after="3600")
    with pytest.raises(EmbedderError, match="429") as caught:
        asking.build().embed(["a"])
    assert "3600 s" in caught.value.hint
    assert (asking.waits, len(asking.service.asked)) == ([], 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_is_refused_is_not_tried_again(asking: Asking, status: int) -> None:
    asking.service.always = lambda _: asking.error(status, "no such thing")
    with pytest.raises(EmbedderError, match=f"{status}.*no such thing"):
        asking.build().embed(["a"])
    assert len(asking.service.asked) == 1


def test_half_an_answer_is_tried_again(asking: Asking) -> None:
    whole = asking.service.well
    asking.service.answers = [
        lambda asked: (200, {}, whole(asked)[2][:-20]),  # JSON that ends in the middle
        lambda asked: (200, {"content-length": "100000"}, whole(asked)[2]),  # a connection that does
    ]
    assert asking.build().embed(["a"]).shape[0] == 1
    assert len(asking.waits) == 2


def test_a_server_that_hangs_is_given_up_on(asking: Asking) -> None:
    def hang(_: Asked) -> None:
        asking.service.released.wait()

    asking.service.always = hang
    with pytest.raises(EmbedderError, match="did not answer"):
        asking.build(timeout=0.2, retries=1).embed(["a"])
    assert len(asking.waits) == 1


def test_a_server_that_is_not_there_is_named(asking: Asking) -> None:
    asking.service.close()
    with pytest.raises(EmbedderError, match="did not answer") as caught:
        asking.build(retries=0).embed(["a"])
    assert asking.service.address in caught.value.hint


def test_a_wrong_number_of_vectors_is_an_error(asking: Asking) -> None:
    def fewer(asked: Asked) -> Reply:
        content = json.loads(asking.service.well(asked)[2])
        for name in content.keys() & {"data", "embeddings"}:
            content[name] = content[name][1:] if name == "embeddings" else content[name][:-1]
            for at, one in enumerate(content[name]):
                if "index" in one:
                    one["index"] = at
        return told(content)

    asking.service.always = fewer
    with pytest.raises(EmbedderError, match="2 vectors for 3 texts"):
        asking.build().embed(["a", "b", "c"])


@pytest.mark.parametrize("bad", [[float("nan")] * 8, [0.0] * 8])
def test_a_vector_without_a_direction_is_an_error(service: Loopback, bad: list[float]) -> None:
    service.always = lambda _: listed([base64.b64encode(np.asarray(bad, "<f4").tobytes()).decode()])
    with pytest.raises(EmbedderError, match="zero or invalid vector"):
        Asking("openai", service).build().embed(["a"])


@pytest.mark.parametrize("bad", [["a", "b"], [{}, {}], [[1, 1], [2, 2]], [1e300, 1]])
def test_a_vector_of_what_is_no_number_is_an_error(service: Loopback, bad: list[object]) -> None:
    service.answers = [listed([bad])]
    with pytest.raises(EmbedderError, match="zero or invalid vector"):
        openai.build("ollama", model="own", base_url=service.address).embed(["a"])


def test_the_size_of_an_answer_that_is_refused_is_not_believed(service: Loopback) -> None:
    service.answers = [listed([[1.0, 2.0], [1.0, 2.0, 3.0]]), listed([[float("nan")] * 5])]
    embedder = openai.build("ollama", model="own", base_url=service.address)
    for texts in (["a", "b"], ["a"]):
        with pytest.raises(EmbedderError):
            embedder.embed(texts)
    assert embedder.embed(["a"]).shape == (1, 8)


def test_a_failure_in_the_shape_of_an_answer_is_heard(service: Loopback) -> None:
    service.always = lambda _: told({"error": {"message": "No such model", "code": 404}})
    with pytest.raises(EmbedderError, match=r"refused \(404\): No such model"):
        openai.build("openrouter", api_key=KEY, base_url=service.address).embed(["a"])
    assert len(service.asked) == 1


def test_a_changed_size_is_an_error(service: Loopback) -> None:
    embedder = openai.build("ollama", model="own", base_url=service.address)
    embedder.embed(["a"])
    service.size = 9
    with pytest.raises(EmbedderError, match="9 numbers instead of 8"):
        embedder.embed(["b"])


# What is too large


def test_a_batch_that_is_refused_for_its_size_is_halved(asking: Asking) -> None:
    most = 3

    def strict(asked: Asked) -> Reply | None:
        if len(asked.texts) <= most:
            return None
        return asking.error(400, f"at most {most} requests can be in one batch")

    asking.service.always = strict
    texts = [f"text {number}" for number in range(10)]
    embedder = asking.build()
    found = embedder.embed(texts)
    size = embedder.size
    assert np.allclose(found, [unit(asking.service.numbers(text, size)) for text in texts], atol=1e-6)
    assert asking.waits == []


def test_a_known_limit_splits_a_long_text_and_averages_its_parts(
    asking: Asking, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bunko")
    text = "吾輩は猫である。名前はまだ無い。" * 10
    embedder = asking.build(max_tokens=64)
    found = embedder.embed(["short", text])
    parts = asking.service.asked[0].texts[1:]
    assert "".join(parts) == text
    assert 3 <= len(parts) <= 5
    assert all(len(part) <= 64 for part in parts)
    rows = [unit(asking.service.numbers(part, embedder.size)) for part in parts]
    mean = np.average(rows, axis=0, weights=[len(part) for part in parts])
    assert np.allclose(found[1], mean / np.linalg.norm(mean), atol=1e-5)
    assert "1 text was too long for" in caplog.text
    assert embedder.stats.too_long == 1


def test_a_long_text_can_be_cut_instead(asking: Asking) -> None:
    asking.build(max_tokens=64, too_long="cut").embed(["犬" * 200])
    (asked,) = asking.service.asked
    assert [set(text) for text in asked.texts] == [{"犬"}]
    assert len(asked.texts[0]) <= 64


@pytest.mark.parametrize("too_long", ["average", "cut"])
def test_a_text_that_only_the_server_finds_too_long_is_split_too(
    service: Loopback, too_long: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def strict(asked: Asked) -> Reply | None:
        if max(map(len, asked.texts)) > 50:
            return openai_error(400, "This model's maximum context length is 50 tokens, however you requested 300")
        return None

    caplog.set_level(logging.INFO, "bunko")
    service.always = strict
    embedder = openai.build("ollama", model="own", base_url=service.address, too_long=too_long)
    text = "All work and no play. " * 10
    found = embedder.embed(["before", text, "after"])
    assert np.allclose(found[[0, 2]], [unit(service.numbers(one, 8)) for one in ("before", "after")], atol=1e-6)
    taken = [one for asked in service.asked if strict(asked) is None for one in asked.texts if "work" in one]
    assert "".join(taken) == text if too_long == "average" else text.startswith("".join(taken))
    rows = [unit(service.numbers(part, 8)) for part in taken]
    mean = np.average(rows, axis=0, weights=[len(part) for part in taken])
    assert np.allclose(found[1], mean / np.linalg.norm(mean), atol=1e-5)
    assert "1 text was too long for" in caplog.text


def test_a_text_of_which_a_part_is_too_long_again_is_counted_once(asking: Asking) -> None:
    def refuse(asked: Asked) -> Reply | None:
        return asking.error(400, "input is too long") if any(text.count("b") > 60 for text in asked.texts) else None

    asking.service.always = refuse
    embedder = asking.build()
    assert len(embedder.embed(["a" * 100 + "b" * 200, "short"])) == 2
    assert embedder.stats.too_long == 1


def test_a_server_that_finds_everything_too_long_is_believed_in_the_end(service: Loopback) -> None:
    service.always = lambda _: openai_error(413, "payload too large")
    with pytest.raises(EmbedderError, match="413"):
        openai.build("ollama", model="own", base_url=service.address).embed(["犬" * 500])
    assert len(service.asked) < 12


def test_odd_texts_reach_the_server_as_text(asking: Asking) -> None:
    assert asking.build().embed(["", "\ud800x"]).shape[0] == 2
    assert asking.service.asked[0].texts == [" ", "\ufffdx"]


# Many at once


def test_requests_are_in_flight_together_but_never_more_than_allowed(service: Loopback) -> None:
    together = threading.Barrier(3)
    now, most = 0, 0
    lock = threading.Lock()

    def wait(_: Asked) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(timeout=30)  # passes only when three requests are here at once
        with lock:
            now -= 1

    service.always = wait
    embedder = Asking("openai", service).build(batch=2, parallel=3)
    texts = [f"text {number}" for number in range(12)]
    found = embedder.embed(texts)
    assert np.allclose(found, [unit(service.numbers(text, 8)) for text in texts], atol=1e-6)
    assert (most, len(service.asked), embedder.batch_size) == (3, 6, 6)


def test_callers_share_what_is_allowed_and_a_single_request_counts_too(service: Loopback) -> None:
    now, most = 0, 0
    lock = threading.Lock()

    def wait(_: Asked) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.02)
        with lock:
            now -= 1

    service.always = wait
    embedder = Asking("openai", service).build(batch=2, parallel=1)
    callers = [threading.Thread(target=embedder.embed, args=([f"text {number}"],)) for number in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (most, len(service.asked)) == (1, 5)


def test_who_is_told_to_wait_no_longer_gets_what_has_come(service: Loopback) -> None:
    hung = threading.Event()

    def hang(asked: Asked) -> None:
        if asked.texts == ["text 2"]:
            hung.set()
            service.released.wait(60)

    service.always = hang
    embedder = Asking("openai", service).build(batch=1, parallel=3, timeout=300)
    failed: list[EmbedderError] = []

    def ask() -> None:
        with pytest.raises(EmbedderError, match="was cancelled") as caught:
            embedder.embed([f"text {number}" for number in range(3)])
        failed.append(caught.value)

    caller = threading.Thread(target=ask)
    caller.start()
    assert hung.wait(30)
    embedder.cancel()
    caller.join(30)
    assert sorted(failed[0].partial_vectors) == [0, 1]


def test_a_failure_ends_what_has_not_begun(service: Loopback) -> None:
    service.always = lambda _: openai_error(401, "who are you")
    with pytest.raises(EmbedderError, match="who are you"):
        Asking("openai", service).build(batch=1, parallel=2).embed([f"text {number}" for number in range(50)])
    assert len(service.asked) < 50


# Keys


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_is_in_no_error_no_log_and_no_name(asking: Asking, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "bunko")
    asking.service.always = lambda _: asking.error(status, f"Incorrect API key provided: {KEY}.")
    embedder = asking.build(retries=1)
    with pytest.raises(EmbedderError) as caught:
        embedder.embed(["a"])
    shown = "".join(traceback.format_exception(caught.value))
    assert "Incorrect API key provided: ********." in shown
    error: BaseException | None = caught.value
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    for text in (shown, repr(error), caplog.text, embedder.name, repr(embedder), str(vars(embedder))):
        assert KEY not in text


def test_the_sdks_log_no_key_either(asking: Asking, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asking.build().embed(["a"])
    assert caplog.records
    assert KEY not in caplog.text


def test_a_password_in_an_address_is_not_shown(service: Loopback) -> None:
    service.always = lambda _: openai_error(404, "no such model")
    address = service.address.replace("//", "//me:hunter2@")
    embedder = openai.build("ollama", model="own", base_url=address)
    with pytest.raises(EmbedderError) as caught:
        embedder.embed(["a"])
    assert "hunter2" not in str(caught.value)
    service.always = lambda _: openai_error(401, "who are you")
    with pytest.raises(EmbedderError) as caught:
        embedder.embed(["a"])
    assert "hunter2" not in str(caught.value)
    assert embedder.unavailable_reason() == "", "a server that takes them is found all the same"
    service.close()
    assert "does not answer" in embedder.unavailable_reason()
    assert "hunter2" not in embedder.unavailable_reason()


@pytest.mark.parametrize(
    ("provider", "name"),
    [("openai", "OPENAI_API_KEY"), ("openrouter", "OPENROUTER_API_KEY"), ("gemini", "GEMINI_API_KEY")],
)
def test_without_a_key_the_error_names_the_one_to_set(
    provider: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # the settings say what is used, not what the SDK finds by itself
    embedder = embedders.build(provider)
    assert embedder is not None
    with pytest.raises(EmbedderError, match="no API key is set") as caught:
        embedder.embed(["a"])
    assert name in caught.value.hint


def test_a_key_that_cannot_be_sent_is_said_to_be_wrong_at_once(asking: Asking) -> None:
    embedder = asking.build(api_key="sk-…")
    assert "holds a character that no key has" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="the key holds a character that no key has") as caught:
        embedder.embed(["a"])
    assert "sk-" not in str(caught.value)
    assert asking.waits == []


def test_an_address_that_is_none_is_told_of(service: Loopback) -> None:
    embedder = openai.build("ollama", model="own", base_url="http://[bad", retries=0)
    assert "http://[bad does not answer" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="did not answer"):
        embedder.embed(["a"])


def test_where_both_names_of_its_key_are_set_gemini_says_nothing_that_is_wrong(
    service: Loopback, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_API_KEY", "another")
    Asking("gemini", service).build().embed(["a"])
    assert service.asked[0].headers["x-goog-api-key"] == KEY
    assert "Using GOOGLE_API_KEY" not in caplog.text


# Names and settings


def test_presets_are_known_without_asking_anybody() -> None:
    wanted = {
        "openai": ("text-embedding-3-small", 1536),
        "lmstudio": ("nomic-embed-text", 768),
        "openrouter": ("mixedbread-ai/mxbai-embed-large-v1", 1024),
        "ollama": ("nomic-embed-text", 768),
        "gemini": ("gemini-embedding-001", 768),
    }
    for provider, (model, size) in wanted.items():
        embedder = embedders.build(provider)
        assert embedder is not None
        assert embedder.name.startswith(f"{provider}:{model}:")
        assert embedder.size == size


def test_local_is_lm_studio_and_online_is_openai() -> None:
    for alias, provider in (("local", "lmstudio"), ("online", "openai")):
        ours, theirs = embedders.build(alias), embedders.build(provider)
        assert ours is not None
        assert theirs is not None
        assert ours.name == theirs.name
    with pytest.raises(UnknownName, match="elsewhere"):
        embedders.build("elsewhere")


def test_the_presets_are_the_defaults_of_the_settings() -> None:
    embedding = load_settings(environ={}).settings.embedding
    assert openai.PRESETS["openai"][:2] == (embedding.openai_base_url, embedding.model_online)
    assert openai.PRESETS["lmstudio"][:2] == (embedding.lmstudio_base_url, embedding.model_local)
    assert openai.PRESETS["openrouter"][:2] == (embedding.openrouter_base_url, embedding.model_openrouter)
    assert openai.PRESETS["ollama"][:2] == (embedding.ollama_base_url, embedding.model_ollama)
    assert (embedding.gemini_base_url, embedding.model) == (gemini.ADDRESS, gemini.MODEL)


@pytest.mark.parametrize("name", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_gemini_takes_either_name_of_its_key(service: Loopback, open_docs: Opener, name: str) -> None:
    environ = {"EMBEDDING_PROVIDER": "gemini", "GEMINI_BASE_URL": service.address, name: KEY}
    embedder = open_docs(**environ).embedder()
    assert embedder is not None
    embedder.embed(["a"])
    assert service.asked[0].headers["x-goog-api-key"] == KEY


def test_a_missing_package_names_the_extra() -> None:
    for module, extra in (("openai", "openai"), ("google.genai", "gemini")):
        code = (
            f"import sys; sys.modules[{module!r}] = None\n"
            f"from bunko.embedders import build\nbuild({extra!r}, api_key='k').embed(['a'])"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert f'pip install "bunko[{extra}]"' in ran.stderr


def test_naming_an_embedder_loads_no_sdk() -> None:
    code = (
        "import sys; from bunko.embedders import build\n"
        "print(build('openai').name, build('gemini').name, {'openai', 'google.genai'} & sys.modules.keys())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("set()\n")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("soon", None), ("", None), (None, None), ("inf", None)],
)
def test_a_retry_after_that_makes_no_sense_is_none(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value) == seconds


# Through the library


def local(service: Loopback) -> dict[str, str]:
    return {
        "EMBEDDING_PROVIDER": "local",
        "LMSTUDIO_BASE_URL": f"{service.address}/v1",
        "BUNKO_RETRY_MAX_RETRIES": "0",
    }


def test_a_library_imports_and_searches_through_a_server(service: Loopback, docs: Path, open_docs: Opener) -> None:
    service.size = 768
    (docs / "dog.md").write_text("# Dogs\n\nDogs bark at night.\n", encoding="utf-8")
    library = open_docs(**local(service), BUNKO_SEARCH_MODE="semantic")
    assert library.reindex().embedded == 1
    assert service.asked[0].path == "/v1/embeddings"
    assert service.asked[0].texts[0].startswith("search_document: ")
    assert library.search("犬").hits[0].uri == "dog.md"
    assert service.asked[-1].texts == ["search_query: 犬"]


def test_after_a_failure_half_way_the_next_import_pays_for_the_rest_alone(
    service: Loopback, docs: Path, open_docs: Opener
) -> None:
    service.size = 768
    for number in range(250):  # more than two transactions
        (docs / f"{number:03}.md").write_text(f"# Page {number}\n\nText of page {number}.\n", encoding="utf-8")
    library = open_docs(**local(service))
    refused: list[str] = []

    def refuse(asked: Asked) -> Reply:
        refused.extend(asked.texts)
        return openai_error(500, "out of order")

    service.answers = [lambda _: None, refuse]
    with pytest.raises(EmbedderError, match="out of order"):
        library.reindex()
    paid = {text for asked in service.asked for text in asked.texts} - set(refused)
    assert 50 <= len(paid) <= 200
    service.asked.clear()
    assert library.reindex().embedded == 250 - len(paid)
    again = [text for asked in service.asked for text in asked.texts]
    again = [text for text in again if text.startswith(openai.DOCUMENT_PREFIX)]  # an import also tries some questions
    assert len(again) == 250 - len(paid)
    assert not paid & set(again)
