"""`bunko embedders`: what can make vectors, what each lacks, and what one makes of sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.embedders import all_providers
from bunko.runtime.installation import install_command
from tests.cli.processes import at_a_terminal
from tests.conftest import Run
from tests.loopback import KEY, Loopback, openai_error


@pytest.fixture
def service() -> Iterator[Loopback]:
    found = Loopback(8)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("LMSTUDIO_BASE_URL", "OLLAMA_BASE_URL"):  # what listens on this machine is not for tests
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")


def listed(run: Run, *arguments: str) -> dict[str, dict[str, object]]:
    found = run("embedders", "--json", *arguments).json()["embedders"]
    assert isinstance(found, list)
    return {one["name"]: one for one in found}


def test_every_provider_is_listed_with_what_it_lacks(run: Run, service: Loopback) -> None:
    found = listed(run)
    assert list(found) == list(all_providers())
    assert [name for name, one in found.items() if one["in_use"]] == ["static"]
    assert (found["static"]["ready"], found["static"]["install"], found["static"]["key"]) == (True, "", "")
    assert found["openai"]["key"] == "OPENAI_API_KEY"
    assert "OPENAI_API_KEY" in str(found["openai"]["missing"])
    assert found["gemini"]["install"] == install_command("gemini")
    assert found["gemini"]["model"] == "gemini-embedding-001"
    assert found["ollama"]["install"] == install_command("openai")
    assert "does not answer" in str(found["ollama"]["missing"])
    assert all(one["about"] for one in found.values())
    assert len({str(one["about"]) for one in found.values()}) == len(found)


def test_what_is_there_is_ready_and_nothing_is_embedded_to_know_it(
    run: Run, service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_BASE_URL", f"{service.address}/v1")
    monkeypatch.setenv("BUNKO_EMBEDDING_MODEL_OLLAMA", "own")
    monkeypatch.setenv("EMBEDDING_PROVIDER", "ollama")
    found = listed(run)
    assert found["openai"]["ready"] is True
    assert (found["ollama"]["ready"], found["ollama"]["in_use"], found["ollama"]["model"]) == (True, True, "own")
    assert (service.asked, service.looked) == ([], ["/v1/models"])
    plain = run("embedders")
    assert "ollama\tin use\town" in plain.out
    assert KEY not in plain.out + plain.err


def test_a_name_that_stands_for_another_is_in_use_under_that(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_PROVIDER", "online")
    assert [name for name, one in listed(run).items() if one["in_use"]] == ["openai"]
    assert "openai\tin use, but: No API key is set." in run("embedders").out
    monkeypatch.setenv("EMBEDDING_PROVIDER", "none")
    assert not [name for name, one in listed(run).items() if one["in_use"]]


def test_a_config_file_is_heard(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "bunko.toml"
    config.write_text('[embedding]\nprovider = "hashing"\n', encoding="utf-8")
    assert [name for name, one in listed(run, "--config", str(config)).items() if one["in_use"]] == ["hashing"]
    assert json.loads(run("embedders", "test", "--json", "--config", config).out)["name"].startswith("hashing:")
    assert run("embedders", "--config", config, "test").out.startswith("hashing:")


def test_a_trial_compares_sentences_of_both_languages(run: Run) -> None:
    found = run("embedders", "test", "--json").json()
    others = found["other_meaning"]
    assert isinstance(others, list)
    assert found["dimension"] == 256
    assert isinstance(found["same_meaning"], float)
    assert found["same_meaning"] > max(others)
    told = run("embedders", "test", "static").out.splitlines()
    assert "256 dimensions" in told[0]
    assert [float(line.split("\t")[0]) for line in told[1:]] == pytest.approx(
        [found["same_meaning"], *others], abs=0.001
    )


def test_a_model_that_knows_one_language_is_told_of(run: Run) -> None:
    assert "does not know both languages" in run("embedders", "test", "hashing").err


def test_a_trial_of_a_service_asks_it_once(run: Run, service: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMSTUDIO_BASE_URL", f"{service.address}/v1")
    monkeypatch.setenv("EMBEDDING_MODEL_LOCAL", "own")
    assert run("embedders", "test", "local", "--json").json()["name"] == "lmstudio:own:8"
    assert [len(asked.texts) for asked in service.asked] == [3]


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("elsewhere", 6, "no embedder called"),
        ("none", 6, "is not an embedding provider"),
        ("gemini", 5, "GEMINI_API_KEY"),
    ],
)
def test_what_cannot_be_tried_says_why(name: str, code: int, told: str, run: Run) -> None:
    failed = run("embedders", "test", name)
    assert failed.code == code
    assert told in failed.err


def test_a_service_that_refuses_is_heard_without_the_key(
    run: Run, service: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", service.address)
    service.always = lambda _: openai_error(401, f"Incorrect API key provided: {KEY}")
    failed = run("embedders", "test", "openai")
    assert failed.code == 5
    assert "rejected the credentials" in failed.err
    assert KEY not in failed.err


@pytest.mark.slow
def test_a_terminal_gets_a_table(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COLUMNS": "200", "TERM": "xterm", "PYTHONUTF8": "1"}
    environ |= {"LMSTUDIO_BASE_URL": "http://127.0.0.1:9/v1", "OLLAMA_BASE_URL": "http://127.0.0.1:9/v1"}
    screen = at_a_terminal("embedders", env=environ)
    assert "───" in screen
    assert 'pip install "bunko[gemini]"' in screen


@pytest.mark.slow
def test_listing_them_loads_no_sdk(tmp_path: Path) -> None:
    code = (
        "import sys; from bunko.interfaces.cli.main import main; main(['embedders'])\n"
        "print({'openai', 'google.genai', 'torch', 'transformers'} & sys.modules.keys())"
    )
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environ |= {"LMSTUDIO_BASE_URL": "http://127.0.0.1:9/v1", "OLLAMA_BASE_URL": "http://127.0.0.1:9/v1"}
    ran = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("set()\n")
