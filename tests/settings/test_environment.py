"""Settings from environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.settings import all_settings, load_settings
from tests.settings.loading import load_error, setting_value, write_file

SETTINGS = all_settings()


@pytest.mark.parametrize(
    ("name", "text", "key", "expected"),
    [
        ("BUNKO_LIBRARY", "/books", "library.path", "/books"),
        ("BM25_PERSIST_DIR", "./bm25_index", "storage.bm25_persist_dir", "./bm25_index"),
        ("CHROMADB_PERSIST_DIR", "./chroma_db", "storage.chromadb_persist_dir", "./chroma_db"),
        ("EMBEDDING_PROVIDER", "local", "embedding.provider", "local"),
        ("EMBEDDING_MODEL_LOCAL", "m", "embedding.model_local", "m"),
        ("EMBEDDING_MODEL_ONLINE", "m", "embedding.model_online", "m"),
        ("EMBEDDING_PREFIX_ENABLED", "true", "embedding.prefix_enabled", True),
        (
            "LMSTUDIO_BASE_URL",
            "http://localhost:9/v1",
            "embedding.lmstudio_base_url",
            "http://localhost:9/v1",
        ),
        ("OPENAI_API_KEY", "k", "embedding.openai_api_key", "k"),
        ("RAG_CHUNK_SIZE", "300", "web.chunk_size", 300),
        ("RAG_CHUNK_OVERLAP", "0", "web.chunk_overlap", 0),
        ("RAG_VECTOR_WEIGHT", "0.90", "search.vector_weight", 0.9),
        ("RAG_BM25_K1", "2.5", "search.k1", 2.5),
        ("RAG_BM25_B", "1", "search.b", 1.0),
        ("RAG_SIMILARITY_THRESHOLD", "0.5", "search.similarity_threshold", 0.5),
        ("RAG_MIN_COMBINED_SCORE", "0.75", "search.min_combined_score", 0.75),
        ("RAG_HYBRID_SEARCH_ENABLED", "false", "search.hybrid_enabled", False),
        ("RAG_RETRIEVAL_COUNT", "4", "web.top_k", 4),
        ("RAG_MAX_CRAWL_PAGES", "9", "crawl.max_pages", 9),
        ("RAG_CRAWL_DELAY_SEC", "0.5", "crawl.delay_sec", 0.5),
        ("RAG_RESPECT_ROBOTS_TXT", "off", "crawl.respect_robots_txt", False),
        ("RAG_ROBOTS_TXT_CACHE_TTL", "60", "crawl.robots_txt_cache_ttl", 60),
        ("RAG_URL_SAFETY_CHECK", "YES", "safety.url_check", True),
        ("GOOGLE_SAFE_BROWSING_API_KEY", "k", "safety.google_safe_browsing_api_key", "k"),
        ("RAG_URL_SAFETY_CACHE_TTL", "1", "safety.cache_ttl", 1),
        ("RAG_URL_SAFETY_FAIL_OPEN", "0", "safety.fail_open", False),
        ("RAG_URL_SAFETY_TIMEOUT", "2", "safety.timeout", 2.0),
        ("RAG_DEBUG_LOG_ENABLED", "1", "log.debug", True),
        ("BUNKO_CHROMADB_HNSW_M", "32", "chromadb.hnsw_M", 32),
        ("BUNKO_CHUNKER_HEADING_LEVELS", "1, 2", "chunker.heading_levels", (1, 2)),
        ("BUNKO_SCANNER_FILE_EXTENSIONS", ".md,.rst,", "scanner.file_extensions", (".md", ".rst")),
    ],
)
def test_an_environment_name_sets_its_setting(name: str, text: str, key: str, expected: object) -> None:
    loaded = load_settings(environ={name: text})
    assert setting_value(loaded, key) == expected
    assert type(setting_value(loaded, key)) is type(expected)
    assert loaded.origins[key] == f"environment {name}"


def test_every_setting_answers_to_its_own_bunko_name() -> None:
    for key, setting in SETTINGS.items():
        name = "BUNKO_" + key.replace(".", "_").upper()
        default = setting.default
        text = "x" if default in (None, "", ()) and setting.kind is str else setting.display_value(default)
        if setting.choices:
            text = setting.choices[-1]
        elif setting.optional and setting.kind is not str:
            text = "1"
        assert load_settings(environ={name: text}).origins[key] == f"environment {name}"


def test_the_bunko_name_wins_over_the_other_name_and_over_dotenv(tmp_path: Path) -> None:
    write_file(tmp_path, ".env", "BUNKO_WEB_CHUNK_SIZE=301\n")
    both = {"BUNKO_WEB_CHUNK_SIZE": "302", "RAG_CHUNK_SIZE": "303"}
    assert load_settings(environ=both).settings.web.chunk_size == 302
    other = load_settings(environ={"RAG_CHUNK_SIZE": "303"}, dotenv_folders=[tmp_path])
    assert other.settings.web.chunk_size == 303


def test_an_empty_environment_value_takes_back_an_optional_setting(tmp_path: Path) -> None:
    config = write_file(tmp_path, "bunko.toml", "[search]\nsimilarity_threshold = 0.5\n")
    loaded = load_settings(environ={"RAG_SIMILARITY_THRESHOLD": " "}, config=config)
    assert loaded.settings.search.similarity_threshold is None
    assert loaded.origins["search.similarity_threshold"] == "environment RAG_SIMILARITY_THRESHOLD"


def test_an_empty_environment_value_of_any_other_setting_is_as_good_as_unset(tmp_path: Path) -> None:
    config = write_file(tmp_path, "bunko.toml", "[crawl]\nmax_pages = 101\n")
    loaded = load_settings(environ={"RAG_MAX_CRAWL_PAGES": "", "OPENAI_API_KEY": ""}, config=config)
    assert loaded.settings.crawl.max_pages == 101
    assert loaded.origins["embedding.openai_api_key"] == "default"
    passed_on = load_settings(environ={"BUNKO_CRAWL_MAX_PAGES": "", "RAG_MAX_CRAWL_PAGES": "102"})
    assert passed_on.settings.crawl.max_pages == 102


def test_unknown_names_in_the_environment_are_ignored() -> None:
    loaded = load_settings(environ={"BUNKO_SEARCH_TOPK": "x", "RAG_ENABLED": "x", "PATH": "x"})
    assert set(loaded.origins.values()) == {"default"}


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("RAG_CHUNK_SIZE", "many", "a whole number of at least 1"),
        ("RAG_CHUNK_SIZE", "2.5", "a whole number of at least 1"),
        ("RAG_CHUNK_SIZE", "9" * 5000, "a whole number of at least 1"),
        ("RAG_BM25_B", "nan", "a number from 0 to 1"),
        ("RAG_BM25_K1", "inf", "a number from 0 to 10"),
        ("RAG_RESPECT_ROBOTS_TXT", "maybe", "true or false"),
        ("BUNKO_CHUNKER_HEADING_LEVELS", "1,7", "a list of whole numbers from 1 to 6"),
        ("BUNKO_SEARCH_MODE", "magic", "one of bm25, semantic, hybrid"),
    ],
)
def test_a_wrong_environment_value_is_refused_by_name_with_what_is_allowed(name: str, text: str, allowed: str) -> None:
    error = load_error(f"environment {name}", environ={name: text})
    assert allowed in error.message
    assert "default" in error.hint
    assert len(error.message) < 300
