"""The page about models: whoever runs the server chooses one, downloads one, and has vectors computed again."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from huggingface_hub import constants

from bunko.interfaces.tools.jobs import Job
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.loopback_hub import LoopbackHub
from tests.page.conftest import Visit, Visitor
from tests.tiny_models import write_cross_encoder


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A hub on loopback with one reranker, and an empty cache."""
    hub = LoopbackHub()
    reranker = write_cross_encoder(tmp_path / "reranker", file="onnx/model.onnx")
    hub.add("hotchpotch/japanese-reranker-xsmall-v2", reranker)
    for name, value in (("HF_ENDPOINT", hub.address), ("HF_HOME", str(tmp_path / "hf"))):
        monkeypatch.setenv(name, value)
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    # The package has read the environment when it was imported.
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield hub
    hub.close()


def wait_for_job(browser: Visit, name: str) -> Job:
    [job] = [job for job in browser.registry.jobs.visible(browser.caller) if job.name == name]
    for thread in threading.enumerate():
        if thread.name == job.id:
            thread.join(60)
    return job


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"use": "embedder", "name": "hashing"}, {"embedding": {"provider": "hashing"}}),
        ({"use": "model", "name": "ruri-v3-30m"}, {"embedding": {"provider": "onnx", "model": "ruri-v3-30m"}}),
        ({"use": "reranker", "name": "bge-reranker-v2-m3"}, {"search": {"reranker": "bge-reranker-v2-m3"}}),
        ({"use": "reranker", "name": ""}, {}),
        ({"use": "chat", "name": "ollama"}, {"chat": {"provider": "ollama"}}),
    ],
)
def test_a_model_is_chosen_for_the_next_start(
    visit: Visitor, tmp_path: Path, fields: dict[str, str], settings: dict[str, object]
) -> None:
    owner, file = visit(is_owner=True), tmp_path / "config/bunko/bunko.toml"
    reply = owner.post("/library/models", data=fields)
    assert reply.status_code == 303
    assert (tomllib.loads(file.read_text("utf-8")) if file.exists() else {}) == settings
    text = unescape(owner.get(reply.headers["location"]).text)
    assert f"Saved in {file}. It counts when bunko is started again." in text
    assert ("The documents keep their vectors until" in text) == ("embedding" in settings)
    if settings:
        assert '<p class="quiet">after a restart</p>' in text


def test_a_remote_embedder_is_not_asked_for_the_model_of_another(visit: Visitor, tmp_path: Path) -> None:
    owner, file = visit(is_owner=True), tmp_path / "config/bunko/bunko.toml"
    for fields in ({"use": "model", "name": "ruri-v3-30m"}, {"use": "embedder", "name": "gemini"}):
        owner.post("/library/models", data=fields)
    assert tomllib.loads(file.read_text("utf-8")) == {"embedding": {"provider": "gemini"}}


def test_what_cannot_be_used_has_no_button(visit: Visitor) -> None:
    text = visit(is_owner=True).get("/library/models").text
    assert '<button name="name" value="hashing"' in text
    assert '<button name="name" value="static"' not in text, "it is in use"
    assert '<button name="name" value="openai"' not in text, "it has no key"
    assert '<button name="download" value="ruri-v3-30m"' in text
    assert '<button name="download" value="plamo-embedding-1b"' not in text, "there is none to get"


def test_a_model_is_downloaded_and_can_then_be_used(visit: Visitor) -> None:
    owner, name = visit(is_owner=True), "japanese-reranker-xsmall-v2"
    reply = owner.post("/library/models", data={"download": name})
    assert (reply.status_code, reply.headers["location"]) == (303, "/library#jobs")
    job = wait_for_job(owner, "model")
    assert job.error == ""
    assert job.state == "done"
    text = owner.get("/library/models").text
    assert f'<button name="download" value="{name}"' not in text
    assert f'<button name="name" value="{name}"' in text


def test_a_model_that_is_not_there_says_so(visit: Visitor) -> None:
    owner = visit(is_owner=True)
    owner.post("/library/models", data={"download": "no-such-model"})
    job = wait_for_job(owner, "model")
    assert job.state == "failed"
    assert "no-such-model" in job.error
    assert "no-such-model" in owner.get("/library").text


def test_vectors_of_another_embedder_are_computed_again(visit: Visitor, library: Library, tmp_path: Path) -> None:
    owner = visit(is_owner=True)
    assert 'name="reembed"' not in owner.get("/library/models").text
    environ = {"BUNKO_EMBEDDING_PROVIDER": "hashing"}
    with open_library(locate_library(library=tmp_path / "library", environ=environ), environ=environ) as other:
        other.reembed(["docs"])
    text = owner.get("/library/models").text
    assert "These tools still have the vectors of another embedder, and searches use those: docs<" in text
    assert owner.post("/library/models", data={"reembed": "1"}).headers["location"] == "/library#jobs"
    job = wait_for_job(owner, "reembed")
    assert (job.state, job.error) == ("done", "")
    assert (library.resolve_tool("docs").built.embedder or "").startswith("static")
    assert 'name="reembed"' not in owner.get("/library/models").text
    assert "vectors" in owner.get("/library").text


def test_nobody_else_changes_models(visit: Visitor, tmp_path: Path) -> None:
    for visitor in (visit(), visit(is_owner=True, read_only=True)):
        text = visitor.get("/library/models").text
        assert "<button name=" not in text
        for fields in ({"use": "embedder", "name": "hashing"}, {"download": "ruri-v3-30m"}):
            assert visitor.post("/library/models", data=fields).status_code == 403
    assert visit(is_owner=True).post("/library/models", data={"use": "nothing"}).status_code == 400
    assert not (tmp_path / "config/bunko/bunko.toml").exists()
