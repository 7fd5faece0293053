"""Settings from `.env` files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bunko.settings import load_settings
from tests.settings.loading import load_error, write_file


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("EMBEDDING_MODEL_LOCAL=m", "m"),
        ("  export EMBEDDING_MODEL_LOCAL = m  ", "m"),
        ("EMBEDDING_MODEL_LOCAL=m # why", "m"),
        ("EMBEDDING_MODEL_LOCAL=m#1", "m#1"),
        ("EMBEDDING_MODEL_LOCAL=#m", "#m"),
        ("EMBEDDING_MODEL_LOCAL= # nothing", "nomic-embed-text"),
        ("EMBEDDING_MODEL_LOCAL=", "nomic-embed-text"),
        ("EMBEDDING_MODEL_LOCAL='a # b'  # why", "a # b"),
        (r"EMBEDDING_MODEL_LOCAL='a\n'", r"a\n"),
        ('EMBEDDING_MODEL_LOCAL="a = b"#why', "a = b"),
        (r'EMBEDDING_MODEL_LOCAL="say \"hi\" C:\\new\new"', r'say "hi" C:\new\new'),
        ("EMBEDDING_MODEL_LOCAL=日本語\u2028モデル", "日本語\u2028モデル"),
        ("# EMBEDDING_MODEL_LOCAL=m", "nomic-embed-text"),
        ("EMBEDDING_MODEL_LOCAL=a\nEMBEDDING_MODEL_LOCAL=b", "b"),
        ("\ufeffEMBEDDING_MODEL_LOCAL=m\r\n", "m"),
    ],
)
def test_a_dotenv_line_is_read_like_a_shell_would(tmp_path: Path, line: str, expected: object) -> None:
    write_file(tmp_path, ".env", f"{line}\n")
    loaded = load_settings(environ={}, dotenv_folders=[tmp_path])
    assert loaded.settings.embedding.model_local == expected
    assert loaded.notices == []


def test_strange_dotenv_lines_are_skipped_with_their_numbers_and_never_their_text(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_bytes(
        b"# \x83\x65 a comment may be anything\n"
        b"sk-hidden\n"
        b"OPENAI_API_KEY='sk-hidden\n"
        b'OPENAI_API_KEY="sk-hidden" sk-hidden\n'
        b"OPENAI_API_KEY=\xff-hidden\n"
        b"1X=sk-hidden\n"
        b"UNKNOWN_NAME=sk-hidden\n"
        b"RAG_CHUNK_SIZE=101\n"
    )
    loaded = load_settings(environ={}, dotenv_folders=[tmp_path])
    assert loaded.settings.web.chunk_size == 101
    assert loaded.settings.embedding.openai_api_key == ""
    assert loaded.notices == [f"{path}: skipped lines that are not NAME=value: 2, 3, 4, 5, 6."]


def test_a_wrong_value_in_dotenv_is_refused_with_file_and_name(tmp_path: Path) -> None:
    path = write_file(tmp_path, ".env", "RAG_CHUNK_SIZE=many\n")
    error = load_error("'many'", dotenv_folders=[tmp_path])
    assert f".env {path} RAG_CHUNK_SIZE" in error.message


def test_dotenv_is_read_beside_the_config_file_and_the_library_comes_first(tmp_path: Path) -> None:
    config = write_file(tmp_path / "docs", "bunko.toml", "")
    write_file(tmp_path / "docs", ".env", "RAG_CHUNK_SIZE=101\nRAG_BM25_K1=2\n")
    write_file(tmp_path / "library", ".env", "RAG_CHUNK_SIZE=102\n")
    found = load_settings(environ={}, config_folders=[config.parent], dotenv_folders=[tmp_path / "library"])
    named = load_settings(environ={}, config=config, dotenv_folders=[tmp_path / "library"])
    for loaded in (found, named):
        assert (loaded.settings.web.chunk_size, loaded.settings.search.k1) == (102, 2.0)


def test_dotenv_in_the_working_directory_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "here", ".env", "RAG_CHUNK_SIZE=101\n")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    loaded = load_settings(environ={}, config_folders=[tmp_path / "docs"], dotenv_folders=[tmp_path / "docs"])
    assert loaded.settings.web.chunk_size is None


def test_a_dotenv_folder_or_one_that_is_not_there_is_no_dotenv(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    loaded = load_settings(environ={}, dotenv_folders=[tmp_path, tmp_path / "none"])
    assert (loaded.settings.web.chunk_size, loaded.notices) == (None, [])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_file_that_may_not_be_read_is_refused_by_name(tmp_path: Path) -> None:
    write_file(tmp_path, ".env", "").chmod(0)
    assert str(tmp_path / ".env") in load_error("cannot be read", dotenv_folders=[tmp_path]).message
