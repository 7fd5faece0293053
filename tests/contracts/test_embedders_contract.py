"""What every embedder promises; the remote ones ask a service on loopback through their real SDKs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bunko import embedders
from bunko.embedders import embed_and_check
from bunko.protocols import Embedder
from tests.loopback import KEY, Loopback

REMOTE = ("gemini", "openai", "lmstudio", "openrouter", "ollama")
# What needs a model that is not in the package has tests of its own.
HERE = ("static", "hashing")
TEXTS = ["図書館は九時に開く", "The library opens at nine.", "", "x" * 30_000, "\ud800 lone"]


@pytest.fixture
def service() -> Iterator[Loopback]:
    found = Loopback(768)
    yield found
    found.close()


@pytest.fixture(params=[*HERE, *REMOTE])
def embedder(request: pytest.FixtureRequest, service: Loopback) -> Embedder:
    options: dict[str, Any] = {}
    if request.param in REMOTE:
        options = {"base_url": service.address, "api_key": KEY, "retries": 0}
        if request.param not in ("gemini", "openai"):
            options["model"] = "nomic-embed-text"
        elif request.param == "openai":
            options["dimensions"] = 768
    found = embedders.build(request.param, **options)
    assert found is not None
    return found


def test_the_providers_that_are_known_are_tested_here_or_have_tests_of_their_own() -> None:
    assert set(embedders.PROVIDERS) == {*HERE, *REMOTE, "transformers"}


def test_a_row_of_unit_length_comes_for_each_text(embedder: Embedder) -> None:
    for query in (False, True):
        found = embed_and_check(embedder, TEXTS, query=query)
        assert found.shape == (len(TEXTS), embedder.size)
        assert found.dtype == np.float32
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert embedder.embed([]).shape == (0, embedder.size)


def test_a_text_has_the_same_vector_alone_and_among_others(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        assert np.allclose(embedder.embed([text])[0], row, atol=1e-6)


def test_name_size_and_limits_are_read_only_facts(embedder: Embedder) -> None:
    assert embedder.name.startswith(embedder.label)
    assert str(embedder.size) in embedder.name
    assert embedder.batch_size >= 1
    assert -1 <= embedder.noise_floor <= 1
    before = (
        embedder.name,
        embedder.size,
        embedder.label,
        embedder.batch_size,
        embedder.noise_floor,
        embedder.is_remote,
    )
    embedder.embed(TEXTS[:2])
    assert (
        embedder.name,
        embedder.size,
        embedder.label,
        embedder.batch_size,
        embedder.noise_floor,
        embedder.is_remote,
    ) == before


def test_whether_it_can_be_used_is_said_without_asking_for_a_vector(embedder: Embedder, service: Loopback) -> None:
    assert embedder.unavailable_reason() == ""
    assert service.asked == []


def test_it_says_whether_texts_leave_this_process(embedder: Embedder, service: Loopback) -> None:
    embedder.embed(TEXTS[:1])
    assert embedder.is_remote == bool(service.asked)


@pytest.mark.parametrize("provider", ["gemini", "openai", "openrouter"])
def test_a_service_without_a_key_names_the_one_to_set(provider: str) -> None:
    found = embedders.build(provider)
    assert found is not None
    assert f"{provider.upper()}_API_KEY" in found.unavailable_reason()


@pytest.mark.parametrize("provider", ["lmstudio", "ollama"])
def test_a_server_that_is_not_there_is_named(provider: str, service: Loopback) -> None:
    found = embedders.build(provider, base_url=service.address.replace("//", "//me:hunter2@"))
    assert found is not None
    service.close()
    assert "does not answer" in found.unavailable_reason()
    assert service.address in found.unavailable_reason()
    assert "hunter2" not in found.unavailable_reason()


def test_a_server_is_asked_for_its_models_alone(service: Loopback) -> None:
    found = embedders.build("ollama", base_url=f"{service.address}/v1")
    assert found is not None
    assert found.unavailable_reason() == ""
    assert (service.looked, service.asked) == (["/v1/models"], [])
    service.listing = (401, b"who are you")
    assert "rejects the key" in found.unavailable_reason()
    service.listing = (404, b"no such page")
    assert found.unavailable_reason() == "", "not every server lists its models"


def test_an_address_that_is_none_is_told_of() -> None:
    found = embedders.build("ollama", base_url="localhost:11434/v1")
    assert found is not None
    assert "does not answer" in found.unavailable_reason()


@pytest.mark.parametrize(
    ("provider", "module"), [("openai", "openai"), ("lmstudio", "openai"), ("gemini", "google.genai")]
)
def test_a_missing_package_is_said_to_be_missing(provider: str, module: str) -> None:
    extra = "gemini" if provider == "gemini" else "openai"
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        f"from bunko.embedders import build\nprint(build({provider!r}, api_key='k').unavailable_reason())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f'pip install "bunko[{extra}]"' in ran.stdout
