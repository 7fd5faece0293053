"""Settings files in the current folder: what a documents folder may set is read, and nothing is left unsaid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bunko.library.opening.load_settings import load_library_settings
from bunko.library.opening.paths import locate_library
from bunko.settings import LoadedSettings
from tests.conftest import Run
from tests.mcp.stdio_process import Process
from tests.settings.loading import write_file
from tests.settings.test_folder_files import SEED_CONFIG

CONFIG_TOML = """\
[database]
path = "vector-db.sqlite"
[chunking]
size = 512
overlap = 32
[display]
default_format = "json"
[search]
k = 8
[model]
auto_unload_minutes = 10
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return folder


def load(here: Path, **places: Path) -> LoadedSettings:
    config = places.pop("config", None)
    return load_library_settings(locate_library(environ={}, **places), environ={}, config=config, current_folder=here)


def test_a_config_of_the_current_folder_is_read_as_far_as_a_documents_folder_may_set_it(here: Path) -> None:
    config = write_file(here, "config.toml", CONFIG_TOML)
    loaded = load(here)
    assert (loaded.settings.chunking.size, loaded.settings.search.top_k) == (512, 8)
    assert loaded.origins["search.top_k"] == f"config.toml: {config}"
    assert loaded.settings.database.path is None
    assert loaded.settings.display.default_format == "table"
    assert loaded.notices == []
    assert loaded.current_folder_notices == [
        f"Read from {config}: chunking.size, chunking.overlap, search.top_k.",
        f"Not read from {config}: database.path, display.default_format. The current folder may not set this."
        f" To use the whole file: --config {config}",
    ]
    named = load(here, config=config)
    assert named.settings.database.path == "vector-db.sqlite"
    assert named.current_folder_notices == []


def test_secrets_addresses_providers_and_paths_in_a_dotenv_stay_unread_and_are_named(here: Path) -> None:
    dotenv = write_file(
        here,
        ".env",
        "EMBEDDING_PROVIDER=gemini\nGEMINI_API_KEY=sk-hidden\nOPENAI_BASE_URL=http://evil.example\n"
        "BUNKO_LIBRARY=/elsewhere\nOPENAI_API_KEY_FILE=/etc/passwd\nRAG_BM25_K1=1.6\nDJANGO_SECRET=x\n",
    )
    loaded = load(here)
    assert loaded.settings.search.k1 == 1.6
    embedding = loaded.settings.embedding
    assert (embedding.provider, embedding.gemini_api_key, embedding.openai_api_key) == ("static", "", "")
    assert (embedding.openai_base_url, loaded.settings.library.path) == ("https://api.openai.com/v1", None)
    read, unread = loaded.current_folder_notices
    assert read == f"Read from {dotenv}: search.k1."
    keys = ("library.path", "embedding.provider", "embedding.openai_base_url", "embedding.gemini_api_key")
    assert all(key in unread for key in (*keys, "embedding.openai_api_key", "environment"))
    assert "hidden" not in unread
    assert "DJANGO" not in unread


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("config.yaml", "chunker: {max_chunk_char: 7}\n", "chunker.max_chunk_char"),
        ("bunko.toml", "[search]\ndefualt_top_k = 1\n", "search.defualt_top_k"),
    ],
)
def test_a_misspelled_key_that_is_meant_for_bunko_is_named(name: str, text: str, key: str, here: Path) -> None:
    write_file(here, name, text)
    (notice,) = load(here).current_folder_notices
    assert key in notice


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", "theme: dark\n"),
        ("config.yaml", "database: {host: localhost, port: 5432}\n"),
        ("config.toml", 'title = "x"\n[log]\nlevel = "info"\n'),
        (".env", "DATABASE_URL=postgres://x\nnot a line\n"),
    ],
)
def test_files_of_other_programs_are_not_worth_a_line(name: str, text: str, here: Path) -> None:
    write_file(here, name, text)
    loaded = load(here)
    assert (loaded.notices, loaded.current_folder_notices) == ([], [])


@pytest.mark.parametrize("text", ["search: {top_k: {{ .Values.top_k }}}\n", "search: " + "[" * 900, "#\n" * 100_000])
def test_a_file_that_cannot_be_read_is_skipped_with_a_line(text: str, here: Path) -> None:
    config = write_file(here, "config.yaml", text)
    [notice] = load(here).current_folder_notices
    assert notice.startswith(f"Skipped {config}")


def test_the_documents_folder_comes_first_and_the_users_own_file_last(here: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    write_file(here, "config.yaml", "search: {top_k: 8, k1: 1.6}\nchunker: {max_chunk_chars: 600}\n")
    write_file(docs, "config.yaml", "search: {top_k: 7}\n")
    write_file(tmp_path / "home" / "bunko", "bunko.toml", "[search]\ntop_k = 3\nk1 = 2.0\nb = 0.5\n")
    loaded = load(here, docs_dir=docs)
    search = loaded.settings.search
    assert (search.top_k, search.k1, search.b, loaded.settings.chunker.max_chunk_chars) == (7, 1.6, 0.5, 600)
    assert loaded.current_folder_notices == [f"Read from {here / 'config.yaml'}: search.k1, chunker.max_chunk_chars."]


def test_values_that_do_not_go_with_the_users_own_are_left_out(here: Path, tmp_path: Path) -> None:
    write_file(tmp_path / "home" / "bunko", "bunko.toml", "[chunker]\nmin_chunk_chars = 900\n")
    write_file(here, "config.yaml", "chunker: {max_chunk_chars: 600}\n")
    loaded = load(here)
    assert (loaded.settings.chunker.min_chunk_chars, loaded.settings.chunker.max_chunk_chars) == (900, 3000)
    [notice] = loaded.current_folder_notices
    assert "Not read from" in notice


def test_a_folder_that_is_read_anyway_is_not_read_twice(here: Path, tmp_path: Path) -> None:
    write_file(here, "config.yaml", "log: {debug: true}\nsearch: {top_k: 8}\n")
    as_library = load(here, library=here)
    assert (as_library.settings.log.debug, as_library.current_folder_notices) == (True, [])
    as_documents = load(here, docs_dir=here)
    assert (as_documents.settings.search.top_k, as_documents.current_folder_notices) == (8, [])
    assert "log.debug" in as_documents.notices[0]
    below = write_file(here / "library", "bunko.toml", "[log]\ndebug = true\n")
    assert load(here, library=below.parent).settings.log.debug, "only the current folder itself is not trusted"


def test_each_command_says_so_once_on_stderr(here: Path, run: Run, docs: Path) -> None:
    write_file(docs, "a.md", "# 京都\n\n京都の寺を巡る旅。\n")
    config = write_file(here, "config.yaml", SEED_CONFIG.replace("default_top_k: 5", "default_top_k: 9"))
    for command in (("reindex",), ("search", "京都"), ("status",), ("config", "show"), ("search", "京都", "--json")):
        ran = run(*command, "--docs-dir", docs)
        assert ran.code == 0
        assert ran.err.count(f"Read from {config}: ") == 1
        assert "Read from" not in ran.out
    assert f"search.top_k = 9  (config.yaml: {config})" in run("config", "show", "--docs-dir", docs).out


def test_what_was_read_and_what_was_not_is_said_in_japanese(
    here: Path, run: Run, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(docs, "a.md", "# 京都\n\n京都の寺を巡る旅。\n")
    config = write_file(here, "config.yaml", SEED_CONFIG.replace("default_top_k: 5", "default_top_k: 9"))
    own = write_file(docs, "config.toml", "[retry]\nmax_retries = 9\n[search]\ntop_k = 9\n")
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", "ja")
    read, ignored, *_ = run("reindex", "--docs-dir", docs).err.splitlines()
    assert ignored.startswith(f"無視した設定: {own} の retry.max_retries。文書のフォルダーからは設定できません。")
    assert re.fullmatch(rf"{config} から読んだ設定: embedding\.[^。 ]*、ほか \d 個。", read)


@pytest.mark.slow
def test_a_server_that_another_programs_readme_starts_answers_and_keeps_stdout_for_the_protocol(
    here: Path, tmp_path: Path, docs: Path
) -> None:
    write_file(docs, "setup.md", "# 環境構築\n\n環境構築の方法を説明する。\n")
    config = write_file(here, "config.yaml", "search:\n  default_top_k: 3\nchromadb:\n  collection_name: mine\n")
    process = Process(tmp_path, "--docs-dir", docs, "--verbose", command=())
    process.shake_hands()
    assert {tool["name"] for tool in process.ask("tools/list")["tools"]} >= {"search", "reindex"}
    answer = process.ask("tools/call", {"name": "search", "arguments": {"query": "環境構築の方法"}})
    assert "setup.md" in str(answer)
    assert "Read from" not in str(answer)
    assert process.end() == 0
    assert all(line.startswith("{") for line in process.lines)
    assert f"Read from {config}: search.top_k." in process.stderr()
    assert f"Not read from {config}: chromadb.collection_name." in process.stderr()
