"""What every embedder promises; the remote ones ask a service on loopback through their real SDKs."""

from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunko import embedders
from bunko.embedders.embed import embed_and_check
from bunko.embedders.provider import LOCAL_MODEL_ARGUMENTS, Provider, ProviderOption
from bunko.protocols import Embedder
from bunko.settings.providers import builtin_settings, may_be_provider_name
from bunko.settings.validate import check_value
from tests.loopback import KEY, Loopback
from tests.tiny_models import write_encoder

PROVIDERS = embedders.builtin_providers()
REMOTE = [name for name, provider in PROVIDERS.items() if "retries" in provider.shared]
WITH_KEY = [name for name, provider in PROVIDERS.items() if provider.key_name]
# A model that is not in the package has tests of its own, in tests/models.
TESTED = [name for name, provider in PROVIDERS.items() if provider.shared != LOCAL_MODEL_ARGUMENTS]
OPTIONS = [(name, option) for name, provider in PROVIDERS.items() for option in provider.options]
TEXTS = ["図書館は九時に開く", "The library opens at nine.", "", "x" * 30_000, "\ud800 lone"]


@pytest.fixture
def service() -> Iterator[Loopback]:
    loopback = Loopback(768)
    yield loopback
    loopback.close()


@pytest.fixture(params=TESTED)
def embedder(request: pytest.FixtureRequest, service: Loopback, tmp_path: Path) -> Embedder:
    provider = PROVIDERS[request.param]
    options: dict[str, Any] = {"model": str(write_encoder(tmp_path / "model"))} if request.param == "onnx" else {}
    if request.param in REMOTE:
        options = {"base_url": service.address, "api_key": KEY, "retries": 0}
    if "dimensions" in {option.argument for option in provider.options}:
        options["dimensions"] = 768
    embedder = embedders.build(request.param, **options)
    assert embedder is not None
    return embedder


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_says_what_it_is_and_names_an_extra_that_exists(name: str) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    provider = PROVIDERS[name]
    assert provider.description.endswith(".")
    assert "\n" not in provider.description
    assert provider.extra in ("", *project["optional-dependencies"])


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_argument_that_a_provider_declares_is_one_of_its_build(name: str) -> None:
    provider = PROVIDERS[name]
    aliases = [argument for alias in provider.aliases.values() for argument in alias.arguments]
    options = [option.argument for option in provider.options]
    assert len(options) == len(set(options))
    parameters = inspect.signature(provider.build).parameters
    assert {*provider.arguments, *provider.shared, *options, *aliases} <= set(parameters)


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_defaults_of_the_options_are_those_of_build(name: str) -> None:
    provider: Provider = PROVIDERS[name]
    by_options = provider.build(**{**provider.arguments, **provider.option_arguments({})})
    assert by_options.label == provider.build(**provider.arguments).label


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_an_option_is_a_setting_that_its_names_alone_announce(name: str, option: ProviderOption) -> None:
    setting = builtin_settings()[f"embedding.{option.key}"]
    assert setting.default == option.default
    assert check_value(setting, option.default, "default") == option.default
    assert all(map(may_be_provider_name, setting.env_names))
    if option.secret:
        assert option.env


def test_options_of_the_same_key_are_the_same_option() -> None:
    by_key: dict[str, ProviderOption] = {}
    for _, option in OPTIONS:
        assert by_key.setdefault(option.key, option) == option


def test_every_module_declares_a_provider_or_is_a_helper() -> None:
    modules = {module.name for module in pkgutil.iter_modules(embedders.__path__)}
    assert modules > embedders.HELPER_MODULES
    for name in modules - embedders.HELPER_MODULES:
        assert name in PROVIDERS


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


@pytest.mark.parametrize("provider", WITH_KEY)
def test_a_service_without_a_key_names_the_one_to_set(provider: str) -> None:
    embedder = embedders.build(provider)
    assert embedder is not None
    assert PROVIDERS[provider].key_name.split()[0] in embedder.unavailable_reason()


@pytest.mark.parametrize("provider", [name for name in REMOTE if name not in WITH_KEY])
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


@pytest.mark.slow
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
