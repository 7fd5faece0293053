"""Secrets in files of their own: read, checked, and shown nowhere."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.errors import SettingsError
from bunko.settings import all_settings, keyfile, load_settings
from bunko.settings.starter import starter_config
from tests.conftest import Opener, Run
from tests.loopback import KEY, Loopback, openai_error

SETTINGS = all_settings()

SECRETS = sorted(key for key, setting in SETTINGS.items() if setting.secret)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"\ufeff  {KEY}\n\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def service() -> Iterator[Loopback]:
    found = Loopback(8)
    yield found
    found.close()


def value(loaded: object, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(loaded.settings, section), name)  # type: ignore[attr-defined]


def test_there_are_secrets_to_test_with() -> None:
    assert {"embedding.openai_api_key", "safety.google_safe_browsing_api_key", "serve.token"} <= set(SECRETS)


@pytest.mark.parametrize("name", SECRETS)
def test_every_secret_may_lie_in_a_file_that_the_environment_names(name: str, key: Path) -> None:
    for variable in SETTINGS[name].env_names:
        loaded = load_settings(environ={f"{variable}_FILE": str(key)})
        assert value(loaded, name) == KEY
        assert loaded.origins[name] == f"file {key}, named by environment {variable}_FILE"
        assert loaded.notices == []
        assert KEY not in json.dumps(loaded.rows()) + repr(loaded)
        assert {row[0]: row[1] for row in loaded.rows()}[name] == "********"


@pytest.mark.parametrize("name", SECRETS)
def test_every_secret_may_lie_in_a_file_that_a_config_file_names(name: str, key: Path) -> None:
    section, _, own = name.partition(".")
    config = key.with_name("bunko.toml")
    config.write_text(f'[{section}]\n{own}_file = "{key.name}"\n', encoding="utf-8")
    assert value(load_settings(environ={}, config=config), name) == KEY


def test_a_dotenv_file_may_name_one_beside_it(key: Path) -> None:
    (key.parent / ".env").write_text("OPENAI_API_KEY_FILE=./key\n", encoding="utf-8")
    assert load_settings(environ={}, dotenv_folders=[key.parent]).settings.embedding.openai_api_key == KEY


def test_what_is_not_secret_has_no_file(key: Path) -> None:
    assert load_settings(environ={"EMBEDDING_PROVIDER_FILE": str(key)}).settings.embedding.provider == "static"
    config = key.with_name("bunko.toml")
    config.write_text(f'[embedding]\nprovider_file = "{key}"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="provider_file"):
        load_settings(environ={}, config=config)


def test_the_secret_itself_wins_over_its_file_and_the_environment_over_a_config_file(key: Path) -> None:
    named = {"OPENAI_API_KEY_FILE": str(key)}
    assert load_settings(environ={"OPENAI_API_KEY": "own", **named}).settings.embedding.openai_api_key == "own"
    assert load_settings(environ={"OPENAI_API_KEY": " ", **named}).settings.embedding.openai_api_key == KEY
    config = key.with_name("bunko.toml")
    config.write_text('[embedding]\nopenai_api_key_file = "not there"\n', encoding="utf-8")
    loaded = load_settings(environ=named, config=config)  # what does not hold is not looked at
    assert loaded.settings.embedding.openai_api_key == KEY


def test_a_key_and_its_file_in_one_config_file_are_one_too_many(key: Path) -> None:
    config = key.with_name("bunko.toml")
    config.write_text(f'[embedding]\nopenai_api_key = "{KEY}"\nopenai_api_key_file = "key"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="the same setting") as caught:
        load_settings(environ={}, config=config)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (f"{KEY}\nmore".encode(), "more than one line"),
        (f"{KEY} {KEY}".encode(), "more than one line"),
        (KEY.encode() + b"\0", "more than one line"),
        (KEY.encode() + b"\xff", "more than one line"),
        (KEY.encode() * 1000, "more than one line"),
    ],
)
def test_a_file_that_holds_no_secret_is_an_error_that_names_it(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings(environ={"OPENAI_API_KEY_FILE": str(path)})
    for told in (str(path), "embedding.openai_api_key", "OPENAI_API_KEY_FILE"):
        assert told in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files here")
def test_a_folder_or_a_pipe_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(SettingsError):
            load_settings(environ={"OPENAI_API_KEY_FILE": str(path)})


@pytest.mark.skipif(os.name != "posix", reason="permissions are of another kind")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_told_of(mode: int, key: Path) -> None:
    key.chmod(mode)
    loaded = load_settings(environ={"OPENAI_API_KEY_FILE": str(key)})
    assert loaded.settings.embedding.openai_api_key == KEY
    assert [f"chmod 600 {key}" in notice for notice in loaded.notices] == [True]


def test_a_secret_that_a_container_engine_has_mounted_is_as_it_should_be(
    key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key.chmod(0o644)
    monkeypatch.setattr(keyfile, "CONTAINER_SECRETS", key.parent)
    assert load_settings(environ={"OPENAI_API_KEY_FILE": str(key)}).notices == []


@pytest.mark.parametrize("name", SECRETS)
def test_a_folder_of_documents_cannot_name_a_file_to_read(name: str, key: Path, docs: Path) -> None:
    section, _, own = name.partition(".")
    (docs / "bunko.toml").write_text(f'[{section}]\n{own}_file = "{key}"\n', encoding="utf-8")
    (docs / ".env").write_text(f"{SETTINGS[name].env_names[0]}_FILE={key}\n", encoding="utf-8")
    loaded = load_settings(environ={}, config_folders=[docs], dotenv_folders=[docs], untrusted_folder=docs)
    assert value(loaded, name) == ""
    [notice] = loaded.notices
    assert notice.count(name) == 2


def test_a_path_that_is_none_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "bunko.toml"
    for written in ("5", '""', "[]"):
        config.write_text(f"[embedding]\nopenai_api_key_file = {written}\n", encoding="utf-8")
        with pytest.raises(SettingsError, match="path of a file"):
            load_settings(environ={}, config=config)


@pytest.mark.parametrize("written", ["~nobody-of-that-name/key", "a\0b"])
def test_a_path_that_leads_nowhere_is_refused_in_a_sentence(written: str) -> None:
    with pytest.raises(SettingsError, match="cannot be found"):
        load_settings(environ={"OPENAI_API_KEY_FILE": written})


def test_a_password_in_an_address_is_masked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMSTUDIO_BASE_URL", "http://me:hunter2@localhost:1/v1")
    for shown in (run("config", "show"), run("config", "show", "--json")):
        assert "http://********@localhost:1/v1" in shown.out
        assert "hunter2" not in shown.out


def test_the_file_to_begin_with_says_that_a_file_can_be_named() -> None:
    for name in SECRETS:
        assert f"{name.partition('.')[2]}_file" in starter_config()


def test_a_key_from_a_file_reaches_the_service_and_nobody_else(
    service: Loopback,
    key: Path,
    docs: Path,
    run: Run,
    open_docs: Opener,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    (docs / "a.md").write_text("# 犬\n\nDogs bark at night.\n", encoding="utf-8")
    environ = {
        "EMBEDDING_PROVIDER": "openai", "OPENAI_BASE_URL": service.address, "OPENAI_API_KEY_FILE": str(key),
        "BUNKO_EMBEDDING_DIMENSIONS": "8", "BUNKO_RETRY_MAX_RETRIES": "0",
    }  # fmt: skip
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    place = ("--docs-dir", docs)
    commands = [
        ("config", "show"), ("config", "show", "--json"), ("reindex", "-v"), ("search", "犬", "--json"), ("status",),
        ("status", "--json"), ("doctor",), ("embedders",), ("embedders", "--json"), ("embedders", "test", "-v"),
    ]  # fmt: skip
    shown = [run(*command, *place) for command in commands]
    assert all(one.code == 0 for one in shown)
    assert {asked.headers["authorization"] for asked in service.asked} == {f"Bearer {KEY}"}
    service.always = lambda asked: openai_error(401, f"no such key: {asked.headers['authorization']}")
    refused = [run("embedders", "test", *place), run("search", "犬 2", "--mode", "semantic", *place)]
    assert [one.code for one in refused] == [5, 0]
    assert "Only words were searched" in refused[1].err
    for one in (*shown, *refused):
        assert KEY not in one.out + one.err
    assert KEY not in caplog.text
    for path in docs.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()
