"""Keys, presets and settings of remote embedders, and imports through them."""

from __future__ import annotations

import logging
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from bunko import embedders
from bunko.embedders import gemini, openai
from bunko.errors import EmbedderError, UnknownName
from bunko.settings import load_settings
from tests.conftest import Opener
from tests.embedders.providers import Provider
from tests.loopback import KEY, Asked, Loopback, Reply, openai_error


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_is_in_no_error_no_log_and_no_name(
    provider: Provider, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "bunko")
    provider.service.always = lambda _: provider.error(status, f"Incorrect API key provided: {KEY}.")
    embedder = provider.build(retries=1)
    with pytest.raises(EmbedderError) as caught:
        embedder.embed(["a"])
    shown = "".join(traceback.format_exception(caught.value))
    assert "Incorrect API key provided: ********." in shown
    error: BaseException | None = caught.value
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    for text in (shown, repr(error), caplog.text, embedder.name, repr(embedder), str(vars(embedder))):
        assert KEY not in text


def test_the_sdks_log_no_key_either(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    provider.build().embed(["a"])
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


def test_a_key_that_cannot_be_sent_is_said_to_be_wrong_at_once(provider: Provider) -> None:
    embedder = provider.build(api_key="sk-…")
    assert "contains a character that is not allowed in a key" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="the key contains a character that is not allowed in a key") as caught:
        embedder.embed(["a"])
    assert "sk-" not in str(caught.value)
    assert provider.waits == []


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
    Provider("gemini", service).build().embed(["a"])
    assert service.asked[0].headers["x-goog-api-key"] == KEY
    assert "Using GOOGLE_API_KEY" not in caplog.text


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


@pytest.mark.slow
def test_a_missing_package_names_the_extra() -> None:
    for module, extra in (("openai", "openai"), ("google.genai", "gemini")):
        code = (
            f"import sys; sys.modules[{module!r}] = None\n"
            f"from bunko.embedders import build\nbuild({extra!r}, api_key='k').embed(['a'])"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert f'pip install "bunko[{extra}]"' in ran.stderr


@pytest.mark.slow
def test_naming_an_embedder_loads_no_sdk() -> None:
    code = (
        "import sys; from bunko.embedders import build\n"
        "print(build('openai').name, build('gemini').name, {'openai', 'google.genai'} & sys.modules.keys())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("set()\n")


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
    assert ["out of order" in notice for notice in library.reindex().notices] == [True]
    paid = {text for asked in service.asked for text in asked.texts} - set(refused)
    assert 50 <= len(paid) <= 200
    service.asked.clear()
    assert library.reindex().embedded == 250 - len(paid)
    again = [text for asked in service.asked for text in asked.texts]
    again = [text for text in again if text.startswith(openai.DOCUMENT_PREFIX)]  # an import also tries some questions
    assert len(again) == 250 - len(paid)
    assert not paid & set(again)
