"""The files of a documents folder: what they may set, and that nothing in them takes over or stops a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko.library.opening.load_settings import load_library_settings
from bunko.library.opening.paths import locate_library
from bunko.settings import LoadedSettings, Setting, all_settings, load_settings
from bunko.settings.folder_files import FOLDER_LIMITS
from tests.conftest import Run
from tests.settings.loading import setting_value, write_file

SETTINGS = all_settings()
# Where data goes and what that costs, what runs, who has access, what is logged, how long the user waits, how their
# machine is used. A setting belongs here unless `FOLDER_LIMITS` says which values a folder of documents may set.
USERS_OWN = {
    "library": "path",
    "database": "path",
    "storage": "kind url password schema pool_size bm25_persist_dir chromadb_persist_dir",
    "index": "kind",
    "ingest": "on",
    "search": "reranker rerank_count rerank_seconds timezone freshness_seconds freshness_wait_seconds",
    "chat": "provider model base_url api_key provider_order provider_sort allow_fallbacks data_collection max_tokens"
    " temperature timeout max_rounds max_total_tokens max_seconds max_cost input_price output_price history_tokens"
    " allowed_tools confirmed_tools keep_history",
    "mcp": "enabled servers_config start_timeout call_timeout max_output_chars",
    "sign_in": "issuer url audience scopes rights_claim read write name_claim client_id client_secret page_scopes",
    "slack": "bot_token app_token signing_secret tools write_users write_channels allowed_domains allowed_tools workers"
    " keep_days api_url",
    "rewrite": "enabled model max_tokens temperature timeout cache_seconds",
    "summarize": "provider model max_tokens temperature timeout max_input_chars",
    "ask": "top_k max_input_chars",
    "web": "top_k chunk_size chunk_overlap vector_weight k1 b min_combined_score robots_unreachable",
    "retry": "max_retries base_delay backoff_factor",
    "chromadb": "url token tenant database timeout write_timeout collection_name",
    "milvus": "uri token database collection_name consistency_level candidates timeout write_timeout retries",
    "display": "default_format",
    "model": "auto_unload_minutes memory_threshold",
    "crawl": "max_pages delay_sec respect_robots_txt robots_txt_cache_ttl concurrency timeout_seconds max_bytes"
    " follow_redirects user_agent allowed_hosts max_crawl_delay",
    "safety": "url_check google_safe_browsing_api_key base_url cache_ttl fail_open timeout",
    "serve": "toolsets read_only max_result_tokens max_schema_tokens mcp api page host port"
    " workers token allowed_hosts requests_per_second audit_lines",
    "log": "debug keep_searches",
}
USERS_OWN_KEYS = {f"{section}.{name}" for section, names in USERS_OWN.items() for name in names.split()}
SEED_CONFIG = """\
embedding:
  model: "gemini-embedding-001"           # Geminiモデル名
  output_dimensionality: 768              # 出力次元数（768 / 1536 / 3072）
  batch_size: 100
  task_type_document: "RETRIEVAL_DOCUMENT"
  task_type_query: "RETRIEVAL_QUERY"
chunker:
  max_chunk_chars: 3000
  min_chunk_chars: 50
  heading_levels: [1, 2, 3]
chromadb:
  collection_name: "documents"
  hnsw_space: "cosine"
  hnsw_construction_ef: 200
  hnsw_search_ef: 100
  hnsw_M: 16
search:
  default_top_k: 5
retry:
  max_retries: 3
  base_delay: 1.0
  backoff_factor: 2.0
scanner:
  file_extensions: [".md", ".txt"]
  exclude_dirs: [".rag-index", "data", ".git", "__pycache__", "node_modules"]
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own config folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "bunko"


def load_docs(docs: Path, text: str = "", *, name: str = "bunko.toml", **options: Any) -> LoadedSettings:
    """Load the settings of a documents folder whose config file has this text."""
    if text:
        write_file(docs, name, text)
    data_dir = options.pop("data_dir", None)
    paths = locate_library(docs_dir=docs, data_dir=data_dir, environ={})
    return load_library_settings(paths, environ={}, **options)


def other_value(setting: Setting) -> object:
    """Return a value that is allowed but not the default."""
    if setting.choices:
        return next((choice for choice in setting.choices if choice != setting.default), setting.choices[0])
    if setting.kind is bool:
        return not setting.default
    item = "other" if setting.kind is str else setting.kind(min(setting.high, max(setting.low, 1)))
    if item == setting.default:
        item = setting.kind(setting.low)
    return [item] if setting.is_list else item


def test_every_setting_is_either_the_users_own_or_has_limits_for_documents_folders() -> None:
    core = {key for key in SETTINGS if not key.startswith("embedding.")}
    assert core - USERS_OWN_KEYS - FOLDER_LIMITS.keys() == set(), (
        "May a folder of documents from somebody else set it? If so, add it to FOLDER_LIMITS with the values that do no"
        " harm; if not, to USERS_OWN."
    )
    assert USERS_OWN_KEYS & FOLDER_LIMITS.keys() == set()
    assert {key for key in USERS_OWN_KEYS | FOLDER_LIMITS.keys() if not key.startswith("embedding.")} == core
    assert FOLDER_LIMITS.keys() <= SETTINGS.keys()


def test_a_documents_folder_sets_none_of_the_users_own_settings_and_one_line_says_so(tmp_path: Path) -> None:
    keys = [key for key in SETTINGS if key not in FOLDER_LIMITS and key != "index.kind"]  # that has one value only
    table: dict[str, dict[str, object]] = {}
    for key in keys:
        section, _, name = key.partition(".")
        table.setdefault(section, {})[name] = other_value(SETTINGS[key])
    table["web"]["chunk_size"] = 9  # more than the overlap
    write_file(tmp_path, "config.yaml", yaml.safe_dump(table))
    loaded = load_settings(environ={}, config_folders=[tmp_path], untrusted_folder=tmp_path, all_providers=True)
    for key in keys:
        assert setting_value(loaded, key) == SETTINGS[key].default, key
    [notice] = loaded.notices
    assert "\n" not in notice
    assert str(tmp_path / "config.yaml") in notice
    trusted = load_settings(environ={}, config_folders=[tmp_path], all_providers=True)
    assert [key for key in keys if setting_value(trusted, key) == SETTINGS[key].default] == []


def test_where_data_is_stored_and_what_is_logged_is_named_in_one_line(run: Run, tmp_path: Path) -> None:
    write_file(tmp_path, "a.md", "# 京都\n\n京都の寺を巡る旅。\n")
    elsewhere = tmp_path / "elsewhere"
    text = f'[storage]\nbm25_persist_dir = "{elsewhere}"\n[log]\ndebug = true\n[search]\ntop_k = 1\n'
    config = write_file(tmp_path, "bunko.toml", text)
    result = run("search", "京都", "--docs-dir", tmp_path)
    assert result.code == 0
    assert f"storage.bm25_persist_dir, log.debug in {config}" in result.err
    assert len(result.err.splitlines()) == 1
    assert not elsewhere.exists()


def test_a_value_that_is_the_default_is_not_worth_a_line(tmp_path: Path, user: Path) -> None:
    loaded = load_docs(tmp_path, SEED_CONFIG, name="config.yaml")
    assert loaded.notices == []
    assert loaded.settings.scanner.file_extensions == (".md", ".txt")
    changed = SEED_CONFIG.replace("gemini-embedding-001", "gemini-embedding-2").replace(
        "max_retries: 3", "max_retries: 9"
    )
    [notice] = load_docs(tmp_path, changed, name="config.yaml").notices
    assert "embedding.model, retry.max_retries in" in notice


def test_how_its_vectors_are_found_is_the_folders_choice_within_limits(tmp_path: Path, user: Path) -> None:
    changed = SEED_CONFIG.replace("hnsw_M: 16", "hnsw_M: 32").replace("768", "1536").replace("ef: 200", "ef: 400")
    changed = changed.replace("batch_size: 100", "batch_size: 50").replace('space: "cosine"', 'space: "l2"')
    loaded = load_docs(tmp_path, changed, name="config.yaml")
    assert loaded.notices == []
    chroma, embedding = loaded.settings.chromadb, loaded.settings.embedding
    assert (chroma.hnsw_M, chroma.hnsw_construction_ef, chroma.hnsw_space) == (32, 400, "l2")
    assert (embedding.output_dimensionality, embedding.batch_size) == (1536, 50)


def test_how_its_documents_are_read_cut_and_ranked_is_the_folders_choice(tmp_path: Path, user: Path) -> None:
    loaded = load_docs(
        tmp_path,
        '[chunker]\nkind = "headings"\nmax_chunk_chars = 1500\n[search]\ntop_k = 8\nmode = "bm25"\nk1 = 1.6\n'
        '[scanner]\nfile_extensions = [".md", ".RST", "html"]\nexclude_dirs = [".git", ".rag-index/", "drafts"]\n'
        'max_file_bytes = 1000000\n[display]\nlanguage = "ja"\n',
    )
    assert loaded.notices == []
    assert (loaded.settings.chunker.kind, loaded.settings.chunker.max_chunk_chars) == ("headings", 1500)
    assert (loaded.settings.search.top_k, loaded.settings.search.mode, loaded.settings.search.k1) == (8, "bm25", 1.6)
    assert loaded.settings.scanner.exclude_dirs == (".git", ".rag-index/", "drafts")
    assert loaded.settings.display.language == "ja"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scanner.file_extensions", [".md", ".env"]),
        ("scanner.file_extensions", [".pem"]),
        ("scanner.file_extensions", [""]),
        ("scanner.exclude_dirs", ["drafts"]),
        ("scanner.exclude_dirs", [".git"]),
        ("scanner.respect_gitignore", False),
        ("scanner.max_file_bytes", 10**12),
        ("chunker.max_chunk_chars", 10**9),
        ("chunker.max_chunk_chars", 1),
        ("chunker.chunk_size", 1),
        ("chunker.chunk_overlap", 199),
        ("chunker.row_context_size", 10**6),
        ("chunking.overlap", 1000),
        ("search.top_k", 1000),
        ("memos.top_k", 1000),
        ("chromadb.hnsw_M", 10_000),
        ("chromadb.hnsw_construction_ef", 10**6),
        ("chromadb.hnsw_search_ef", 10**6),
        ("embedding.batch_size", 1),
        ("embedding.output_dimensionality", 1_000_000),
        ("embedding.task_type_query", "x" * 100),
    ],
)
def test_a_value_that_would_harm_the_user_is_ignored(key: str, value: object, tmp_path: Path, user: Path) -> None:
    section, _, name = key.partition(".")
    loaded = load_docs(tmp_path, f"[{section}]\n{name} = {json.dumps(value)}\n")
    assert setting_value(loaded, key) == SETTINGS[key].default
    [notice] = loaded.notices
    assert f"{key} ({FOLDER_LIMITS[key].text}) in" in notice


def test_a_library_that_was_shipped_inside_the_folder_is_not_trusted(tmp_path: Path, user: Path) -> None:
    docs = tmp_path / "docs"
    write_file(docs / ".rag-index", "bunko.toml", '[chat]\nbase_url = "http://evil.example"\n[search]\ntop_k = 9\n')
    write_file(
        docs / ".rag-index", ".env", "BUNKO_CHAT_PROVIDER=openai\nBUNKO_TOKEN=known\nBUNKO_CHUNKER_CHUNK_SIZE=300\n"
    )
    loaded = load_docs(docs)
    assert (loaded.settings.chat.base_url, loaded.settings.chat.provider, loaded.settings.serve.token) == (
        None,
        None,
        "",
    )
    assert (loaded.settings.search.top_k, loaded.settings.chunker.chunk_size) == (9, 300)
    [notice] = loaded.notices
    assert all(key in notice for key in ("chat.base_url", "chat.provider", "serve.token"))
    (tmp_path / "link").symlink_to(docs / ".rag-index")
    assert load_docs(docs, data_dir=tmp_path / "link").settings.chat.base_url is None


def test_a_library_outside_the_folder_and_a_named_file_are_trusted(tmp_path: Path, user: Path) -> None:
    docs, library = tmp_path / "docs", tmp_path / "library"
    docs.mkdir()
    write_file(library, "bunko.toml", "[log]\ndebug = true\n")
    assert load_docs(docs, data_dir=library).settings.log.debug
    named = write_file(docs, "bunko.toml", "[log]\ndebug = true\n")
    write_file(docs / ".rag-index", ".env", "BUNKO_TOKEN=known\n")
    loaded = load_docs(docs, config=named)
    assert (loaded.settings.log.debug, loaded.settings.serve.token) == (True, "")


def test_a_folders_file_does_not_hide_the_users_own(tmp_path: Path, user: Path) -> None:
    write_file(user, "bunko.toml", "[safety]\nurl_check = true\n[search]\ntop_k = 3\nk1 = 2.0\n")
    write_file(user, ".env", "GOOGLE_SAFE_BROWSING_API_KEY=mine\n")
    loaded = load_docs(tmp_path / "docs", "[safety]\nurl_check = false\n[search]\ntop_k = 7\n")
    assert loaded.settings.safety.url_check
    assert loaded.settings.safety.google_safe_browsing_api_key == "mine"
    assert (loaded.settings.search.top_k, loaded.settings.search.k1) == (7, 2.0)


def test_the_users_own_file_is_trusted_inside_a_home_that_is_searched(tmp_path: Path, user: Path) -> None:
    write_file(user, "bunko.toml", "[log]\ndebug = true\n")
    assert load_docs(tmp_path).settings.log.debug


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bunko.toml", "not = [toml"),
        ("bunko.toml", "[serch]\ntop_k = 3\n"),
        ("bunko.toml", '[search]\ntop_k = "many"\nmood = "good"\n'),
        ("bunko.toml", "search = 3\n"),
        ("bunko.toml", f"{'.'.join('a' * 30_000)} = 1\n"),
        ("bunko.toml", "#\n" * 100_000),
        ("config.yaml", "search: {top_k: {{ .Values.top_k }}}\n"),
        ("config.yaml", "a: &a {k: v}\nb: &b {<<: [*a, *a]}\nsearch: {<<: [*b, *b]}\n"),
        ("config.yaml", f"search: {'[' * 900}\n"),
        (".rag-index/.env", "x" * 100_000),
    ],
)
def test_nothing_in_a_folders_file_stops_a_command(name: str, text: str, tmp_path: Path, user: Path) -> None:
    (tmp_path / ".rag-index").mkdir()
    loaded = load_docs(tmp_path, text, name=name)
    assert loaded.settings.search.top_k == 5
    [notice] = loaded.notices
    assert str(tmp_path / name) in notice
    assert len(notice) < 600


def test_values_that_do_not_go_with_the_users_own_are_ignored(tmp_path: Path, user: Path) -> None:
    write_file(user, "bunko.toml", "[chunker]\nmin_chunk_chars = 900\n")
    loaded = load_docs(tmp_path / "docs", "[chunker]\nmax_chunk_chars = 600\n")
    assert (loaded.settings.chunker.min_chunk_chars, loaded.settings.chunker.max_chunk_chars) == (900, 3000)
    assert loaded.origins["chunker.max_chunk_chars"] == "default"
    assert "chunker.max_chunk_chars in" in loaded.notices[0]


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(sorted({key.partition(".")[0] for key in SETTINGS})) | st.text(max_size=5),
        st.dictionaries(
            st.sampled_from(sorted({key.partition(".")[2] for key in SETTINGS})) | st.text(max_size=5),
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.lists(st.integers()),
            max_size=3,
        )
        | st.integers(),
        max_size=4,
    )
)
def test_no_file_of_a_folder_raises_an_error(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, object]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "folder-files"
    write_file(folder, "config.yaml", yaml.safe_dump(table, allow_unicode=False))
    loaded = load_settings(environ={}, config_folders=[folder], untrusted_folder=folder)
    assert all("\n" not in notice for notice in loaded.notices)
