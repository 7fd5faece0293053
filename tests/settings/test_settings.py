"""Declared settings, and which source of a value wins."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import pytest

from bunko.readers import default_suffixes
from bunko.settings import Settings, all_settings, load_settings
from bunko.settings.docs import settings_reference
from bunko.types import FUSIONS, MODES
from tests.settings.loading import load_error, setting_value, write_file

SETTINGS = all_settings()


def test_without_any_source_every_setting_has_its_default() -> None:
    loaded = load_settings(environ={})
    assert loaded.settings.search.top_k == 5
    assert loaded.settings.chunker.heading_levels == (1, 2, 3)
    assert loaded.settings.scanner.file_extensions == default_suffixes()
    assert loaded.settings.library.path is None
    assert {origin for _, _, origin in loaded.rows()} == {"default"}
    assert (loaded.notices, loaded.config_file) == ([], None)


def test_every_default_is_allowed_by_its_own_limits() -> None:
    for key, setting in SETTINGS.items():
        loaded = load_settings(environ={}, flags={key: setting.default})
        assert setting_value(loaded, key) == setting.default == setting_value(load_settings(environ={}), key)


def test_every_setting_has_a_meaning_a_known_kind_and_names_of_its_own() -> None:
    names = [name for setting in SETTINGS.values() for name in setting.env_names]
    assert len(names) == len(set(names))
    for setting in SETTINGS.values():
        assert setting.meaning
        assert setting.kind in (str, int, float, bool)


def test_modes_and_fusions_are_those_of_the_search() -> None:
    assert SETTINGS["search.mode"].choices == MODES
    assert SETTINGS["search.fusion"].choices == FUSIONS


def test_the_tree_and_the_table_hold_the_same_sections() -> None:
    sections = dict.fromkeys(key.partition(".")[0] for key in SETTINGS)
    assert [section.name for section in fields(Settings)] == list(sections)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        load_settings(environ={}).settings.search.top_k = 6  # type: ignore[misc]


def test_a_section_takes_only_its_own_settings() -> None:
    search = replace(load_settings(environ={}).settings.search, top_k=7)
    assert (search.top_k, search.mode) == (7, "hybrid")
    with pytest.raises(TypeError, match="SearchSection has no topk"):
        replace(search, topk=7)  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        del search.top_k


def test_the_documentation_is_the_generated_reference() -> None:
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == settings_reference()


def test_the_reference_names_every_setting_and_every_environment_name() -> None:
    page = settings_reference()
    for setting in SETTINGS.values():
        assert f"`{setting.key.partition('.')[2]}`" in page
        assert all(f"`{name}`" in page for name in setting.env_names)


@pytest.mark.slow
def test_loading_without_files_imports_nothing_heavy() -> None:
    heavy = {"yaml", "tomllib", "difflib", "msgspec", "pydantic"}
    code = f"import sys, bunko.settings as s; s.load_settings(environ={{}}); print({heavy} & sys.modules.keys())"
    child = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=child)
    assert done.stdout.strip() == "set()"


def modules_loaded_with(**environ: str) -> set[str]:
    code = f"import sys, bunko.settings as s; s.load_settings(environ={environ!r}); print(*sys.modules)"
    child = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=child)
    return set(done.stdout.split())


@pytest.mark.slow
def test_no_provider_is_imported_if_nothing_may_set_one_of_its_options() -> None:
    loaded = modules_loaded_with(
        EMBEDDING_PROVIDER="static", BUNKO_EMBEDDING_PARALLEL="2", GOOGLE_SAFE_BROWSING_API_KEY="k", RAG_CHUNK_SIZE="99"
    )
    assert not {name for name in loaded if name.startswith("bunko.embedders")}


@pytest.mark.slow
def test_reading_the_options_of_providers_imports_nothing_heavy() -> None:
    loaded = modules_loaded_with(OPENAI_API_KEY="k", EMBEDDING_PROVIDER="gemini")
    assert {"bunko.embedders.openai", "bunko.embedders.gemini", "bunko.embedders.transformers"} <= loaded
    assert not {"numpy", "logging", "importlib.metadata", "bunko.embedders.remote"} & loaded


def test_a_flag_wins_over_environment_then_dotenv_then_file_then_default(tmp_path: Path) -> None:
    config = write_file(tmp_path, "bunko.toml", "[web]\nchunk_size = 101\n[chunker]\nrow_context_size = 9\n")
    dotenv = write_file(tmp_path, ".env", "RAG_CHUNK_SIZE=102\n")
    environ = {"RAG_CHUNK_SIZE": "103"}
    flags = {"web.chunk_size": 104}

    everything = load_settings(flags=flags, environ=environ, config=config)
    no_flag = load_settings(environ=environ, config=config)
    no_environment = load_settings(environ={}, config=config)
    dotenv.unlink()
    file_only = load_settings(environ={}, config=config)

    loads = [everything, no_flag, no_environment, file_only, load_settings(environ={})]
    seen = [(loaded.settings.web.chunk_size, loaded.origins["web.chunk_size"]) for loaded in loads]
    assert seen == [
        (104, "flag"),
        (103, "environment RAG_CHUNK_SIZE"),
        (102, f".env {dotenv} RAG_CHUNK_SIZE"),
        (101, f"bunko.toml: {config}"),
        (None, "default"),
    ]
    assert everything.settings.chunker.row_context_size == 9
    assert everything.config_file == config


def test_flags_that_were_not_given_change_nothing() -> None:
    loaded = load_settings(flags={"search.top_k": None}, environ={"BUNKO_SEARCH_TOP_K": "7"})
    assert (loaded.settings.search.top_k, loaded.origins["search.top_k"]) == (
        7,
        "environment BUNKO_SEARCH_TOP_K",
    )


def test_a_flag_may_be_a_path_or_a_tuple(tmp_path: Path) -> None:
    flags = {"library.path": tmp_path, "scanner.file_extensions": (".rst",)}
    loaded = load_settings(flags=flags, environ={})
    assert loaded.settings.library.path == str(tmp_path)
    assert loaded.settings.scanner.file_extensions == (".rst",)


def test_a_wrong_or_unknown_flag_is_refused() -> None:
    assert "flag" in load_error("search.top_k is 0", flags={"search.top_k": 0}).message
    assert "[search] top_k" in load_error("search.topk", flags={"search.topk": 3}).hint
    assert "[search] top_k" in load_error("serch.top_k", flags={"serch.top_k": 3}).hint
    assert "[search]" in load_error("serch.topk", flags={"serch.topk": 3}).hint


def test_rows_give_every_setting_in_order_with_value_and_origin() -> None:
    loaded = load_settings(environ={"BUNKO_SCANNER_EXCLUDE_DIRS": "a,b"}, flags={"search.loanwords": False})
    rows = {key: (shown, origin) for key, shown, origin in loaded.rows()}
    assert list(rows) == list(SETTINGS)
    assert rows["scanner.exclude_dirs"] == ("a, b", "environment BUNKO_SCANNER_EXCLUDE_DIRS")
    assert rows["search.loanwords"] == ("false", "flag")
    assert rows["search.similarity_threshold"] == ("not set", "default")
    assert rows["search.k1"] == ("1.2", "default")


def test_a_secret_is_shown_nowhere(tmp_path: Path) -> None:
    config = write_file(tmp_path, "bunko.toml", '[embedding]\nopenai_api_key = "sk-hidden"\n')
    loaded = load_settings(environ={"GOOGLE_SAFE_BROWSING_API_KEY": "sk-hidden"}, config=config)
    assert loaded.settings.embedding.openai_api_key == "sk-hidden"
    assert loaded.settings.safety.google_safe_browsing_api_key == "sk-hidden"
    assert "sk-hidden" not in repr(loaded) + repr(loaded.rows())
    assert ("embedding.openai_api_key", "********", f"bunko.toml: {config}") in loaded.rows()

    write_file(tmp_path, "bunko.toml", '[embedding]\nopenai_api_key = ["sk-hidden"]\n')
    assert "sk-hidden" not in str(load_error("embedding.openai_api_key", config=config))
    config = write_file(tmp_path, "config.yaml", "embedding:\n  openai_api_key: 'sk-hidden\n")
    assert "sk-hidden" not in str(load_error("not valid YAML", config=config))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "BUNKO_CHUNKER_CHUNK_OVERLAP",
            "200",
            "chunk_overlap is 200 .* less than chunker.chunk_size, which is 200 .default",
        ),
        ("BUNKO_CHUNKER_CHUNK_SIZE", "30", "chunk_overlap is 30 .default.* less than chunker.chunk_size, which is 30"),
        (
            "BUNKO_CHUNKING_OVERLAP",
            "1024",
            "chunking.overlap is 1024 .* less than chunking.size, which is 1024",
        ),
        (
            "BUNKO_CHUNKER_MAX_CHUNK_CHARS",
            "49",
            "min_chunk_chars is 50 .* at most .*max_chunk_chars, which is 49",
        ),
    ],
)
def test_an_impossible_pair_is_refused_with_both_keys_and_origins(name: str, text: str, message: str) -> None:
    assert f"environment {name}" in load_error(message, environ={name: text}).message


def test_pairs_at_their_limit_are_fine() -> None:
    environ = {"BUNKO_CHUNKER_CHUNK_OVERLAP": "199", "BUNKO_CHUNKER_MIN_CHUNK_CHARS": "3000"}
    assert load_settings(environ=environ).settings.chunker.chunk_overlap == 199


def test_a_folder_of_documents_cannot_choose_who_is_sent_its_texts_or_your_keys(tmp_path: Path) -> None:
    (tmp_path / "bunko.toml").write_text(
        '[embedding]\nprovider = "openai"\nopenai_base_url = "http://elsewhere.example/v1"\n', encoding="utf-8"
    )
    theirs = load_settings(environ={"OPENAI_API_KEY": "k"}, config_folders=[tmp_path], untrusted_folder=tmp_path)
    assert theirs.settings.embedding.provider == "static"
    assert "elsewhere" not in theirs.settings.embedding.openai_base_url
    [notice] = theirs.notices
    assert "embedding.provider, embedding.openai_base_url in " in notice
    ours = load_settings(environ={"OPENAI_API_KEY": "k"}, config_folders=[tmp_path])
    assert "elsewhere" in ours.settings.embedding.openai_base_url
