"""Batches, long texts and parallel requests of remote embedders."""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np
import pytest

from bunko.embedders import openai
from bunko.errors import EmbedderError
from tests.embedders.providers import Provider, unit
from tests.loopback import Asked, Loopback, Reply, openai_error


def test_a_batch_that_is_refused_for_its_size_is_halved(provider: Provider) -> None:
    most = 3

    def strict(asked: Asked) -> Reply | None:
        if len(asked.texts) <= most:
            return None
        return provider.error(400, f"at most {most} requests can be in one batch")

    provider.service.always = strict
    texts = [f"text {number}" for number in range(10)]
    embedder = provider.build()
    found = embedder.embed(texts)
    size = embedder.size
    assert np.allclose(found, [unit(provider.service.numbers(text, size)) for text in texts], atol=1e-6)
    assert provider.waits == []


def test_a_known_limit_splits_a_long_text_and_averages_its_parts(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bunko")
    text = "吾輩は猫である。名前はまだ無い。" * 10
    embedder = provider.build(max_tokens=64)
    found = embedder.embed(["short", text])
    parts = provider.service.asked[0].texts[1:]
    assert "".join(parts) == text
    assert 3 <= len(parts) <= 5
    assert all(len(part) <= 64 for part in parts)
    rows = [unit(provider.service.numbers(part, embedder.size)) for part in parts]
    mean = np.average(rows, axis=0, weights=[len(part) for part in parts])
    assert np.allclose(found[1], mean / np.linalg.norm(mean), atol=1e-5)
    assert "1 text was too long for" in caplog.text
    assert embedder.stats.too_long == 1


def test_a_long_text_can_be_cut_instead(provider: Provider) -> None:
    provider.build(max_tokens=64, too_long="cut").embed(["犬" * 200])
    (asked,) = provider.service.asked
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


def test_a_text_of_which_a_part_is_too_long_again_is_counted_once(provider: Provider) -> None:
    def refuse(asked: Asked) -> Reply | None:
        return provider.error(400, "input is too long") if any(text.count("b") > 60 for text in asked.texts) else None

    provider.service.always = refuse
    embedder = provider.build()
    assert len(embedder.embed(["a" * 100 + "b" * 200, "short"])) == 2
    assert embedder.stats.too_long == 1


def test_a_server_that_finds_everything_too_long_is_believed_in_the_end(service: Loopback) -> None:
    service.always = lambda _: openai_error(413, "payload too large")
    with pytest.raises(EmbedderError, match="413"):
        openai.build("ollama", model="own", base_url=service.address).embed(["犬" * 500])
    assert len(service.asked) < 12


def test_odd_texts_reach_the_server_as_text(provider: Provider) -> None:
    assert provider.build().embed(["", "\ud800x"]).shape[0] == 2
    assert provider.service.asked[0].texts == [" ", "\ufffdx"]


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
    embedder = Provider("openai", service).build(batch=2, parallel=3)
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
    embedder = Provider("openai", service).build(batch=2, parallel=1)
    callers = [threading.Thread(target=embedder.embed, args=([f"text {number}"],)) for number in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (most, len(service.asked)) == (1, 5)


@pytest.mark.slow
def test_who_is_told_to_wait_no_longer_gets_what_has_come(service: Loopback) -> None:
    hung = threading.Event()

    def hang(asked: Asked) -> None:
        if asked.texts == ["text 2"]:
            hung.set()
            service.released.wait(60)

    service.always = hang
    embedder = Provider("openai", service).build(batch=1, parallel=3, timeout=300)
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
        Provider("openai", service).build(batch=1, parallel=2).embed([f"text {number}" for number in range(50)])
    assert len(service.asked) < 50
