"""Secrets in the user's data folder: made once, for their owner alone, and never beside documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.errors import SettingsError
from bunko.library.opening.paths import locate_library
from bunko.library.rights.user_secret import load_or_create_secret, token_path

HINT = "Set BUNKO_TOKEN instead."


def test_a_token_file_is_made_once_and_read_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "library" / "token"
    token = load_or_create_secret(path, hint=HINT)
    assert load_or_create_secret(path, hint=HINT) == token
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_token_file_that_others_can_read_is_refused_with_the_command_that_helps(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("secret-token\n")
    for mode in (0o644, 0o640, 0o604):
        path.chmod(mode)
        with pytest.raises(SettingsError, match="is readable by other users") as caught:
            load_or_create_secret(path, hint=HINT)
        assert caught.value.hint == f"Run: chmod 600 '{path}'"
        assert "secret-token" not in str(caught.value)
    path.chmod(0o600)
    assert load_or_create_secret(path, hint=HINT) == "secret-token"


def test_a_token_file_that_cannot_be_read_or_made_is_told_in_a_sentence(tmp_path: Path) -> None:
    garbled = tmp_path / "garbled"
    garbled.write_bytes("秘密".encode())
    with pytest.raises(SettingsError, match="cannot be read"):
        load_or_create_secret(garbled, hint=HINT)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere" / "at all")
    with pytest.raises(SettingsError, match="cannot be written") as caught:
        load_or_create_secret(tmp_path / "gone" / "token", hint=HINT)
    assert "BUNKO_TOKEN" in caught.value.hint


def test_each_library_has_a_token_of_its_own_in_the_data_folder(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "other" / "docs").mkdir(parents=True)
    libraries = [
        locate_library(docs_dir=docs, environ={}),
        locate_library(docs_dir=tmp_path / "other" / "docs", environ={}),
        locate_library(library=tmp_path / "library", environ={}),
        locate_library(environ={}),
    ]
    paths = [token_path(library) for library in libraries]
    assert len(set(paths)) == 4
    assert all(path.is_relative_to(tmp_path / "data" / "bunko") for path in paths)
    assert paths[3] == tmp_path / "data" / "bunko" / "token"  # as before: the default library lies there
    assert token_path(libraries[0]) == paths[0]
