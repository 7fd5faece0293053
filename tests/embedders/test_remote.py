"""Remote embedders through their real SDKs, against servers on loopback: requests, retries and invalid responses."""

from __future__ import annotations

import base64
import json
from email.utils import formatdate
from time import time

import numpy as np
import pytest

from bunko.embedders import gemini, openai
from bunko.errors import EmbedderError
from bunko.runtime.remote import parse_retry_after
from tests.embedders.providers import Provider, unit
from tests.loopback import KEY, Asked, Loopback, Reply, gemini_error, listed, told


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


def test_a_question_that_was_just_asked_is_not_paid_for_again(provider: Provider) -> None:
    embedder = provider.build()
    first = embedder.embed(["犬はどこ"], query=True)
    assert np.array_equal(embedder.embed(["犬はどこ"], query=True), first)
    embedder.embed(["犬はどこ"])  # as a document it is another text
    assert len(provider.service.asked) == 2


@pytest.mark.parametrize("status", [500, 503])
def test_a_passing_failure_is_tried_again_after_one_two_and_four_seconds(provider: Provider, status: int) -> None:
    provider.service.answers = [provider.error(status, "overloaded")] * 3
    assert provider.build().embed(["a"]).shape[0] == 1
    assert len(provider.service.asked) == 4
    assert all(low <= wait <= low * 1.25 for wait, low in zip(provider.waits, (1, 2, 4), strict=True))


def test_after_the_last_retry_the_error_says_what_was_said(provider: Provider) -> None:
    provider.service.always = lambda _: provider.error(503, "overloaded just now")
    embedder = provider.build()
    with pytest.raises(EmbedderError, match="overloaded just now") as caught:
        embedder.embed(["a"])
    assert "next import" in caught.value.hint
    assert (embedder.stats.calls, embedder.stats.retries) == (4, 3)


def test_too_many_requests_wait_longer_than_other_failures(provider: Provider) -> None:
    provider.service.answers = [provider.error(429, "slow down")] * 2
    provider.build().embed(["a"])
    assert all(wait >= low * 3 for wait, low in zip(provider.waits, (1, 2), strict=True))


def test_retry_after_is_honoured_as_seconds_and_as_a_date(provider: Provider) -> None:
    provider.service.answers = [
        provider.error(429, "slow down", retry_after="17"),
        provider.error(503, "back soon", retry_after=formatdate(time() + 60, usegmt=True)),
    ]
    provider.build().embed(["a"])
    assert 17 <= provider.waits[0] <= 17 * 1.1
    assert 30 <= provider.waits[1] <= 66


def test_gemini_says_in_its_details_how_long_to_wait(service: Loopback) -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "23s"}
    service.answers = [gemini_error(429, "RESOURCE_EXHAUSTED", "quota", detail)]
    provider = Provider("gemini", service)
    provider.build().embed(["a"])
    assert 23 <= provider.waits[0] <= 23 * 1.1


def test_who_would_have_to_wait_for_an_hour_is_told_so_at_once(provider: Provider) -> None:
    provider.service.always = lambda _: provider.error(429, "come back later", retry_after="3600")
    with pytest.raises(EmbedderError, match="429") as caught:
        provider.build().embed(["a"])
    assert "3600 s" in caught.value.hint
    assert (provider.waits, len(provider.service.asked)) == ([], 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_is_refused_is_not_tried_again(provider: Provider, status: int) -> None:
    provider.service.always = lambda _: provider.error(status, "no such thing")
    with pytest.raises(EmbedderError, match=f"{status}.*no such thing"):
        provider.build().embed(["a"])
    assert len(provider.service.asked) == 1


def test_half_an_answer_is_tried_again(provider: Provider) -> None:
    whole = provider.service.well
    provider.service.answers = [
        lambda asked: (200, {}, whole(asked)[2][:-20]),  # JSON that ends in the middle
        lambda asked: (200, {"content-length": "100000"}, whole(asked)[2]),  # a connection that does
    ]
    assert provider.build().embed(["a"]).shape[0] == 1
    assert len(provider.waits) == 2


def test_a_server_that_hangs_is_given_up_on(provider: Provider) -> None:
    def hang(_: Asked) -> None:
        provider.service.released.wait()

    provider.service.always = hang
    with pytest.raises(EmbedderError, match="did not answer"):
        provider.build(timeout=0.2, retries=1).embed(["a"])
    assert len(provider.waits) == 1


def test_a_server_that_is_not_there_is_named(provider: Provider) -> None:
    provider.service.close()
    with pytest.raises(EmbedderError, match=r"did not answer: Connection refused\n") as caught:
        provider.build(retries=0).embed(["a"])
    assert provider.service.address in caught.value.hint


def test_a_wrong_number_of_vectors_is_an_error(provider: Provider) -> None:
    def fewer(asked: Asked) -> Reply:
        content = json.loads(provider.service.well(asked)[2])
        for name in content.keys() & {"data", "embeddings"}:
            content[name] = content[name][1:] if name == "embeddings" else content[name][:-1]
            for at, one in enumerate(content[name]):
                if "index" in one:
                    one["index"] = at
        return told(content)

    provider.service.always = fewer
    with pytest.raises(EmbedderError, match="2 vectors for 3 texts"):
        provider.build().embed(["a", "b", "c"])


@pytest.mark.parametrize("bad", [[float("nan")] * 8, [0.0] * 8])
def test_a_vector_without_a_direction_is_an_error(service: Loopback, bad: list[float]) -> None:
    service.always = lambda _: listed([base64.b64encode(np.asarray(bad, "<f4").tobytes()).decode()])
    with pytest.raises(EmbedderError, match="zero or invalid vector"):
        Provider("openai", service).build().embed(["a"])


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
    with pytest.raises(EmbedderError, match=r"rejected the request \(404\): No such model"):
        openai.build("openrouter", api_key=KEY, base_url=service.address).embed(["a"])
    assert len(service.asked) == 1


def test_a_redirect_takes_the_texts_to_nobody_else(service: Loopback) -> None:
    service.always = lambda asked: (307, {"location": f"{service.address}/elsewhere"}, b"")
    with pytest.raises(EmbedderError, match=r"redirects to another address \(307\)"):
        openai.build("openrouter", api_key=KEY, base_url=service.address).embed(["a"])
    assert "/elsewhere" not in [asked.path for asked in service.asked]


def test_a_changed_size_is_an_error(service: Loopback) -> None:
    embedder = openai.build("ollama", model="own", base_url=service.address)
    embedder.embed(["a"])
    service.size = 9
    with pytest.raises(EmbedderError, match="9 numbers instead of 8"):
        embedder.embed(["b"])


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("soon", None), ("", None), (None, None), ("inf", None)],
)
def test_a_retry_after_that_makes_no_sense_is_none(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value) == seconds
