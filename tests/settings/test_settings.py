import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bunko.errors import SettingsError
from bunko.settings import SETTINGS, LoadedSettings, Settings, load_settings, settings_reference
from bunko.types import FUSIONS, MODES


def written(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode())
    return path


def value(loaded: LoadedSettings, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(loaded.settings, section), name)


def refused(match: str, **sources) -> SettingsError:
    with pytest.raises(SettingsError, match=match) as caught:
        load_settings(**{"environ": {}, **sources})
    return caught.value


def test_without_any_source_every_setting_has_its_default():
    loaded = load_settings(environ={})
    assert loaded.settings.search.top_k == 5
    assert loaded.settings.chunker.heading_levels == (1, 2, 3)
    assert loaded.settings.scanner.file_extensions == (".md", ".txt")
    assert loaded.settings.library.path is None
    assert {loaded.origins[key] for key in SETTINGS} == {"default"}
    assert (loaded.notices, loaded.config_file) == ([], None)


def test_every_default_is_allowed_by_its_own_limits():
    for key, setting in SETTINGS.items():
        loaded = load_settings(environ={}, flags={key: setting.default})
        assert value(loaded, key) == setting.default == value(load_settings(environ={}), key)


def test_every_setting_has_a_meaning_a_known_kind_and_names_of_its_own():
    names = [name for setting in SETTINGS.values() for name in setting.env_names]
    assert len(names) == len(set(names))
    for setting in SETTINGS.values():
        assert setting.meaning
        assert setting.kind in (str, int, float, bool)


def test_modes_and_fusions_are_those_of_the_search():
    assert SETTINGS["search.mode"].choices == MODES
    assert SETTINGS["search.fusion"].choices == FUSIONS


def test_the_tree_and_the_table_hold_the_same_sections():
    sections = dict.fromkeys(key.partition(".")[0] for key in SETTINGS)
    assert [section.name for section in fields(Settings)] == list(sections)


def test_settings_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        load_settings(environ={}).settings.search.top_k = 6  # type: ignore[misc]


def test_a_section_takes_only_its_own_settings():
    search = replace(load_settings(environ={}).settings.search, top_k=7)
    assert (search.top_k, search.mode) == (7, "hybrid")
    with pytest.raises(TypeError, match="Search has no topk"):
        replace(search, topk=7)
    with pytest.raises(FrozenInstanceError):
        del search.top_k


def test_the_documentation_is_the_generated_reference():
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == settings_reference()


def test_the_reference_names_every_setting_and_every_environment_name():
    page = settings_reference()
    for setting in SETTINGS.values():
        assert f"`{setting.key.partition('.')[2]}`" in page
        assert all(f"`{name}`" in page for name in setting.env_names)


def test_loading_without_files_imports_nothing_heavy():
    heavy = {"yaml", "tomllib", "difflib", "msgspec", "pydantic", "bunko.types"}
    code = f"import sys, bunko.settings as s; s.load(environ={{}}); print({heavy} & sys.modules.keys())"
    child = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=child)
    assert done.stdout.strip() == "set()"


def test_a_flag_wins_over_environment_then_dotenv_then_file_then_default(tmp_path):
    config = written(tmp_path, "bunko.toml", "[chunker]\nchunk_size = 101\nrow_context_size = 9\n")
    dotenv = written(tmp_path, ".env", "RAG_CHUNK_SIZE=102\n")
    environ = {"RAG_CHUNK_SIZE": "103"}
    flags = {"chunker.chunk_size": 104}

    everything = load_settings(flags=flags, environ=environ, config=config)
    no_flag = load_settings(environ=environ, config=config)
    no_environment = load_settings(environ={}, config=config)
    dotenv.unlink()
    file_only = load_settings(environ={}, config=config)

    loads = [everything, no_flag, no_environment, file_only, load_settings(environ={})]
    seen = [(loaded.settings.chunker.chunk_size, loaded.origins["chunker.chunk_size"]) for loaded in loads]
    assert seen == [
        (104, "flag"),
        (103, "environment RAG_CHUNK_SIZE"),
        (102, f".env {dotenv} RAG_CHUNK_SIZE"),
        (101, f"bunko.toml: {config}"),
        (200, "default"),
    ]
    assert everything.settings.chunker.row_context_size == 9
    assert everything.config_file == config


def test_flags_that_were_not_given_change_nothing():
    loaded = load_settings(flags={"search.top_k": None}, environ={"BUNKO_SEARCH_TOP_K": "7"})
    assert (loaded.settings.search.top_k, loaded.origins["search.top_k"]) == (
        7,
        "environment BUNKO_SEARCH_TOP_K",
    )


def test_a_flag_may_be_a_path_or_a_tuple(tmp_path):
    flags = {"library.path": tmp_path, "scanner.file_extensions": (".rst",)}
    loaded = load_settings(flags=flags, environ={})
    assert loaded.settings.library.path == str(tmp_path)
    assert loaded.settings.scanner.file_extensions == (".rst",)


def test_a_wrong_or_unknown_flag_is_refused():
    assert "flag" in refused("search.top_k is 0", flags={"search.top_k": 0}).message
    assert "[search] top_k" in refused("search.topk", flags={"search.topk": 3}).hint
    assert "[search] top_k" in refused("serch.top_k", flags={"serch.top_k": 3}).hint
    assert "[search]" in refused("serch.topk", flags={"serch.topk": 3}).hint


def test_rows_give_every_setting_in_order_with_value_and_origin():
    loaded = load_settings(environ={"BUNKO_SCANNER_EXCLUDE_DIRS": "a,b"}, flags={"search.loanwords": False})
    rows = {key: (shown, origin) for key, shown, origin in loaded.rows()}
    assert list(rows) == list(SETTINGS)
    assert rows["scanner.exclude_dirs"] == ("a, b", "environment BUNKO_SCANNER_EXCLUDE_DIRS")
    assert rows["search.loanwords"] == ("false", "flag")
    assert rows["search.similarity_threshold"] == ("not set", "default")
    assert rows["search.k1"] == ("1.2", "default")


def test_a_secret_is_shown_nowhere(tmp_path):
    config = written(tmp_path, "bunko.toml", '[embedding]\nopenai_api_key = "sk-hidden"\n')
    loaded = load_settings(environ={"GOOGLE_SAFE_BROWSING_API_KEY": "sk-hidden"}, config=config)
    assert loaded.settings.embedding.openai_api_key == "sk-hidden"
    assert loaded.settings.safety.google_safe_browsing_api_key == "sk-hidden"
    assert "sk-hidden" not in repr(loaded) + repr(loaded.rows())
    assert ("embedding.openai_api_key", "********", f"bunko.toml: {config}") in loaded.rows()

    written(tmp_path, "bunko.toml", '[embedding]\nopenai_api_key = ["sk-hidden"]\n')
    assert "sk-hidden" not in str(refused("embedding.openai_api_key", config=config))
    config = written(tmp_path, "config.yaml", "embedding:\n  openai_api_key: 'sk-hidden\n")
    assert "sk-hidden" not in str(refused("not valid YAML", config=config))


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
        ("RAG_CHUNK_SIZE", "300", "chunker.chunk_size", 300),
        ("RAG_CHUNK_OVERLAP", "0", "chunker.chunk_overlap", 0),
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
def test_an_environment_name_sets_its_setting(name, text, key, expected):
    loaded = load_settings(environ={name: text})
    assert value(loaded, key) == expected
    assert type(value(loaded, key)) is type(expected)
    assert loaded.origins[key] == f"environment {name}"


def test_every_setting_answers_to_its_own_bunko_name():
    for key, setting in SETTINGS.items():
        name = "BUNKO_" + key.replace(".", "_").upper()
        default = setting.default
        text = "x" if default in (None, "", ()) and setting.kind is str else setting.display_value(default)
        if setting.choices:
            text = setting.choices[-1]
        elif setting.optional and setting.kind is not str:
            text = "1"
        assert load_settings(environ={name: text}).origins[key] == f"environment {name}"


def test_the_bunko_name_wins_over_the_other_name_and_over_dotenv(tmp_path):
    written(tmp_path, ".env", "BUNKO_CHUNKER_CHUNK_SIZE=301\n")
    both = {"BUNKO_CHUNKER_CHUNK_SIZE": "302", "RAG_CHUNK_SIZE": "303"}
    assert load_settings(environ=both).settings.chunker.chunk_size == 302
    other = load_settings(environ={"RAG_CHUNK_SIZE": "303"}, dotenv_folders=[tmp_path])
    assert other.settings.chunker.chunk_size == 303


def test_an_empty_environment_value_takes_back_an_optional_setting(tmp_path):
    config = written(tmp_path, "bunko.toml", "[search]\nsimilarity_threshold = 0.5\n")
    loaded = load_settings(environ={"RAG_SIMILARITY_THRESHOLD": " "}, config=config)
    assert loaded.settings.search.similarity_threshold is None
    assert loaded.origins["search.similarity_threshold"] == "environment RAG_SIMILARITY_THRESHOLD"


def test_an_empty_environment_value_of_any_other_setting_is_as_good_as_unset(tmp_path):
    config = written(tmp_path, "bunko.toml", "[chunker]\nchunk_size = 101\n")
    loaded = load_settings(environ={"RAG_CHUNK_SIZE": "", "OPENAI_API_KEY": ""}, config=config)
    assert loaded.settings.chunker.chunk_size == 101
    assert loaded.origins["embedding.openai_api_key"] == "default"
    passed_on = load_settings(environ={"BUNKO_CHUNKER_CHUNK_SIZE": "", "RAG_CHUNK_SIZE": "102"})
    assert passed_on.settings.chunker.chunk_size == 102


def test_unknown_names_in_the_environment_are_ignored():
    loaded = load_settings(environ={"BUNKO_SEARCH_TOPK": "x", "RAG_ENABLED": "x", "PATH": "x"})
    assert set(loaded.origins.values()) == {"default"}


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("RAG_CHUNK_SIZE", "many", "a whole number of at least 1"),
        ("RAG_CHUNK_SIZE", "2.5", "a whole number of at least 1"),
        ("RAG_CHUNK_SIZE", "9" * 5000, "a whole number of at least 1"),
        ("RAG_BM25_B", "nan", "a number from 0 to 1"),
        ("RAG_BM25_K1", "inf", "a number of at least 0"),
        ("RAG_RESPECT_ROBOTS_TXT", "maybe", "true or false"),
        ("BUNKO_CHUNKER_HEADING_LEVELS", "1,7", "a list of whole numbers from 1 to 6"),
        ("BUNKO_SEARCH_MODE", "magic", "one of bm25, semantic, hybrid"),
    ],
)
def test_a_wrong_environment_value_is_refused_by_name_with_what_is_allowed(name, text, allowed):
    error = refused(f"environment {name}", environ={name: text})
    assert allowed in error.message
    assert "default" in error.hint
    assert len(error.message) < 300


def test_both_older_config_files_are_read_as_they_are(tmp_path):
    yaml_file = written(
        tmp_path / "a",
        "config.yaml",
        "embedding:\n  model: gemini-embedding-001\n  output_dimensionality: 1536\n"
        "chunker:\n  heading_levels: [1, 2]\n"
        "chromadb:\n  hnsw_space: ip\n  hnsw_M: 32\n"
        "search:\n  default_top_k: 7  # 返却件数\n"
        "retry:\n  base_delay: 1\n"
        'scanner:\n  file_extensions: [".md"]\n',
    )
    toml_file = written(
        tmp_path / "b",
        "config.toml",
        '[database]\npath = "vector-db.sqlite"\n[chunking]\nsize = 512\noverlap = 64\n'
        '[display]\ndefault_format = "json"\n[search]\nk = 8\n'
        "[model]\nauto_unload_minutes = 10\nmemory_threshold = 0.8\n",
    )
    from_yaml = load_settings(environ={}, config_folders=[yaml_file.parent])
    assert from_yaml.settings.search.top_k == 7
    assert from_yaml.origins["search.top_k"] == f"config.yaml: {yaml_file}"
    assert from_yaml.settings.chromadb.hnsw_M == 32
    assert from_yaml.settings.chunker.heading_levels == (1, 2)
    assert type(from_yaml.settings.retry.base_delay) is float
    from_toml = load_settings(environ={}, config_folders=[toml_file.parent])
    assert from_toml.settings.database.path == "vector-db.sqlite"
    assert from_toml.settings.search.top_k == 8
    assert from_toml.settings.display.default_format == "json"


def test_the_first_folder_with_a_config_file_wins_and_bunko_toml_comes_first(tmp_path):
    empty, first, second = tmp_path / "none", tmp_path / "first", tmp_path / "second"
    written(second, "bunko.toml", "[search]\ntop_k = 1\n")
    folders = [empty, first, second]
    assert load_settings(environ={}, config_folders=folders).settings.search.top_k == 1
    for name, text, top_k in [
        ("config.toml", "[search]\ntop_k = 2\n", 2),
        ("config.yaml", "search:\n  top_k: 3\n", 3),
        ("bunko.toml", "[search]\ntop_k = 4\n", 4),
    ]:
        path = written(first, name, text)
        loaded = load_settings(environ={}, config_folders=folders)
        assert (loaded.settings.search.top_k, loaded.config_file) == (top_k, path)


def test_a_named_config_file_wins_over_the_ones_that_could_be_found(tmp_path):
    written(tmp_path / "docs", "bunko.toml", "[search]\ntop_k = 1\n")
    named = written(tmp_path, "mine.yml", "search: {top_k: 2}\n")
    loaded = load_settings(environ={}, config=named, config_folders=[tmp_path / "docs"])
    assert (loaded.settings.search.top_k, loaded.config_file) == (2, named)


@pytest.mark.parametrize("text", ["theme: dark\n", "- one\n- two\n", "", "just words"])
def test_a_found_config_of_another_program_is_skipped_with_a_notice(tmp_path, text):
    foreign = written(tmp_path / "docs", "config.yaml", text)
    ours = written(tmp_path / "library", "config.toml", "[search]\ntop_k = 9\n")
    loaded = load_settings(environ={}, config_folders=[foreign.parent, ours.parent])
    assert loaded.config_file == ours
    assert len(loaded.notices) == 1
    assert str(foreign) in loaded.notices[0]


def test_a_foreign_config_does_not_lend_its_dotenv(tmp_path):
    written(tmp_path, "config.toml", 'title = "someone else\'s"\n')
    written(tmp_path, ".env", "RAG_CHUNK_SIZE=101\n")
    assert load_settings(environ={}, config_folders=[tmp_path]).settings.chunker.chunk_size == 200


def test_a_named_config_without_our_sections_is_refused_for_its_unknown_key(tmp_path):
    refused("'theme' is not a setting", config=written(tmp_path, "config.yaml", "theme: dark\n"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bunko.toml", ""),
        ("bunko.toml", "[search]\n"),
        ("config.yaml", ""),
        ("config.yaml", "# nothing\n"),
        ("config.yaml", "search:\n  # top_k: 3\n"),
        ("bunko.toml", "\ufeff[search]\r\ntop_k = 5\r\n"),
        ("config.yaml", "\ufeffsearch:\r\n  top_k: 5\r\n"),
    ],
)
def test_partial_files_are_fine(tmp_path, name, text):
    assert load_settings(environ={}, config=written(tmp_path, name, text)).settings.search.top_k == 5


def test_nothing_takes_back_an_optional_setting_in_a_file(tmp_path):
    null = load_settings(environ={}, config=written(tmp_path, "a.yaml", "search: {min_combined_score: null}\n"))
    assert null.settings.search.min_combined_score is None
    empty = load_settings(environ={}, config=written(tmp_path, "a.toml", '[library]\npath = ""\n'))
    assert empty.settings.library.path is None


def test_a_config_that_was_named_and_cannot_be_read_is_refused(tmp_path):
    assert str(tmp_path / "none.toml") in refused("No such file", config=tmp_path / "none.toml").message
    (tmp_path / "folder.toml").mkdir()
    refused("cannot be read", config=tmp_path / "folder.toml")
    refused("is not a config file", config=written(tmp_path, "bunko.ini", "[search]\n"))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("bunko.toml", b"[search\n", "not valid TOML.*line 1"),
        ("bunko.toml", b"[search]\ntop_k = 1\ntop_k = 2\n", "not valid TOML"),
        ("bunko.toml", b"a = " + b"[" * 100_000, "not valid TOML"),
        ("bunko.toml", b"a = " + b"9" * 5000, "not valid TOML"),
        ("bunko.toml", "# 検索\n".encode("cp932"), "not UTF-8.*line 1"),
        ("bunko.toml", b"search = 5\n", "search is a number .* table"),
        ("bunko.toml", b'search = "fast"\n', "search is text .* table"),
        ("bunko.toml", b"[[search]]\ntop_k = 1\n", "search is a list .* table"),
        ("config.yaml", b"search: [1\n", "not valid YAML.*line 2"),
        ("config.yaml", b"a: 1\n---\nb: 2\n", "not valid YAML"),
        ("config.yaml", b"search: !!timestamp x\n", "not valid YAML"),
        ("config.yaml", b"search: !!python/name:os.system x\n", "not valid YAML"),
        ("config.yaml", b"search: 2024-99-99\n", "not valid YAML"),
        ("config.yaml", b"a: " + b"[" * 5000, "not valid YAML"),
        ("config.yaml", b"\x00", "not valid YAML"),
        ("config.yaml", b"\xff\xfes\x00", "not UTF-8"),
        ("config.yaml", b"- one\n", "holds a list"),
        ("config.yaml", b"search: fast\n", "search is text .* table"),
        ("config.yaml", b"search:\n  ? 0x" + b"f" * 5000 + b"\n  : 1\n", "huge number"),
        ("config.yaml", b"? [1, 2]\n: 3\n", "not valid YAML"),
        ("config.yaml", b"1: 3\n", "'1' is not a setting"),
        ("config.yaml", b"search: {2024-01-01: 3}\n", "is not a setting"),
    ],
)
def test_a_broken_config_file_is_refused_by_name(tmp_path, name, content, problem):
    config = tmp_path / name
    config.write_bytes(content)
    error = refused(problem, config=config)
    assert str(config) in error.message
    assert error.hint


def test_a_broken_file_is_refused_when_it_was_only_found(tmp_path):
    written(tmp_path, "config.yaml", "search: [1\n")
    refused("not valid YAML", folders=[tmp_path])


@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ("[search]\ntopk = 5\n", "search.topk", "[search] top_k"),
        ("[chromadb]\nhnsw_m = 5\n", "chromadb.hnsw_m", "[chromadb] hnsw_M"),
        ("[serch]\ntop_k = 5\n", "serch", "[search]"),
        ("[Search]\ntop_k = 5\n", "Search", "[search]"),
        ("chunk_size = 5\n", "chunk_size", "[chunker] chunk_size"),
        ("[search]\nchunk_size = 5\n", "search.chunk_size", "[chunker] chunk_size"),
        ('"search.top_k" = 5\n', "search.top_k", "[search] top_k"),
        ("[search.weights]\nvector = 1\n", "search.weights", "[search] "),
        ('[""]\n', "''", "["),
    ],
)
def test_an_unknown_key_is_refused_with_file_key_and_the_nearest_known_one(tmp_path, text, key, nearest):
    config = written(tmp_path, "bunko.toml", text)
    error = refused("is not a setting", config=config)
    assert key in error.message
    assert str(config) in error.message
    assert nearest in error.hint


def test_one_setting_under_two_names_is_refused(tmp_path):
    config = written(tmp_path, "bunko.toml", "[search]\nk = 5\ndefault_top_k = 6\n")
    refused("search.k and search.default_top_k are the same", config=config)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("search:\n  top_k: true", "search.top_k is true"),
        ("search:\n  top_k: 5.0", "search.top_k is 5.0"),
        ("search:\n  top_k: '5'", "search.top_k is '5'"),
        ("search:\n  top_k:", "search.top_k is nothing"),
        ("search:\n  top_k: 0", "search.top_k is 0"),
        ("search:\n  top_k: 1001", "search.top_k is 1001"),
        ("search:\n  top_k: [5]", r"search.top_k is \[5\]"),
        ("search:\n  top_k: 2024-01-01", "search.top_k is a date"),
        ("search:\n  k1: -0.1", "search.k1 is -0.1"),
        ("search:\n  k1: .nan", "search.k1 is nan"),
        ("search:\n  k1: .inf", "search.k1 is inf"),
        ("search:\n  k1: true", "search.k1 is true"),
        ("search:\n  k1: 0x" + "f" * 5000, "search.k1 is a huge number"),
        ("search:\n  vector_weight: 1.1", "search.vector_weight is 1.1"),
        ("search:\n  similarity_threshold: 2.1", "search.similarity_threshold is 2.1"),
        ("search:\n  min_combined_score: 1.1", "search.min_combined_score is 1.1"),
        ("search:\n  mode: fast", "search.mode is 'fast'"),
        ("search:\n  loanwords: 1", "search.loanwords is 1"),
        ("chunking:\n  size: 511", "chunking.size is 511"),
        ("chunking:\n  size: 4097", "chunking.size is 4097"),
        ("chunker:\n  heading_levels: [0]", r"chunker.heading_levels is \[0\]"),
        ("chunker:\n  heading_levels: 2", "chunker.heading_levels is 2"),
        ("chunker:\n  heading_levels: [1, true]", r"chunker.heading_levels is \[1, true\]"),
        ("scanner:\n  file_extensions: .md", "scanner.file_extensions is '.md'"),
        ("scanner:\n  file_extensions: [1]", r"scanner.file_extensions is \[1\]"),
        ("scanner:\n  file_extensions: &a [*a]", "scanner.file_extensions is a list"),
        ("embedding:\n  model: 5", "embedding.model is 5"),
        ("embedding:\n  model: ' '", "embedding.model is ' '"),
        ('library:\n  path: "a\\0b"', "library.path is 'a"),
        ("display:\n  language: fr", "display.language is 'fr'"),
        ("model:\n  memory_threshold: 80", "model.memory_threshold is 80"),
        ("log:\n  debug: {a: 1}", "log.debug is a table"),
    ],
)
def test_a_value_of_the_wrong_type_or_out_of_range_is_refused(tmp_path, text, found):
    config = written(tmp_path, "config.yaml", text)
    error = refused(found, config=config)
    assert str(config) in error.message
    assert "must be" in error.message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "RAG_CHUNK_OVERLAP",
            "200",
            "chunk_overlap is 200 .* less than chunker.chunk_size, which is 200 .default",
        ),
        ("RAG_CHUNK_SIZE", "30", "chunk_overlap is 30 .default.* less than chunker.chunk_size, which is 30"),
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
def test_an_impossible_pair_is_refused_with_both_keys_and_origins(name, text, message):
    assert f"environment {name}" in refused(message, environ={name: text}).message


def test_pairs_at_their_limit_are_fine():
    environ = {"RAG_CHUNK_OVERLAP": "199", "BUNKO_CHUNKER_MIN_CHUNK_CHARS": "3000"}
    assert load_settings(environ=environ).settings.chunker.chunk_overlap == 199


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
def test_a_dotenv_line_is_read_like_a_shell_would(tmp_path, line, expected):
    written(tmp_path, ".env", f"{line}\n")
    loaded = load_settings(environ={}, dotenv_folders=[tmp_path])
    assert loaded.settings.embedding.model_local == expected
    assert loaded.notices == []


def test_strange_dotenv_lines_are_skipped_with_their_numbers_and_never_their_text(tmp_path):
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
    assert loaded.settings.chunker.chunk_size == 101
    assert loaded.settings.embedding.openai_api_key == ""
    assert loaded.notices == [f"{path}: not NAME=value, skipped: line 2, 3, 4, 5, 6."]


def test_a_wrong_value_in_dotenv_is_refused_with_file_and_name(tmp_path):
    path = written(tmp_path, ".env", "RAG_CHUNK_SIZE=many\n")
    error = refused("'many'", dotenv_folders=[tmp_path])
    assert f".env {path} RAG_CHUNK_SIZE" in error.message


def test_dotenv_is_read_beside_the_config_file_and_the_library_comes_first(tmp_path):
    config = written(tmp_path / "docs", "bunko.toml", "")
    written(tmp_path / "docs", ".env", "RAG_CHUNK_SIZE=101\nRAG_BM25_K1=2\n")
    written(tmp_path / "library", ".env", "RAG_CHUNK_SIZE=102\n")
    found = load_settings(environ={}, config_folders=[config.parent], dotenv_folders=[tmp_path / "library"])
    named = load_settings(environ={}, config=config, dotenv_folders=[tmp_path / "library"])
    for loaded in (found, named):
        assert (loaded.settings.chunker.chunk_size, loaded.settings.search.k1) == (102, 2.0)


def test_dotenv_in_the_working_directory_is_never_read(tmp_path, monkeypatch):
    written(tmp_path / "here", ".env", "RAG_CHUNK_SIZE=101\n")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    loaded = load_settings(environ={}, config_folders=[tmp_path / "docs"], dotenv_folders=[tmp_path / "docs"])
    assert loaded.settings.chunker.chunk_size == 200


def test_a_dotenv_folder_or_one_that_is_not_there_is_no_dotenv(tmp_path):
    (tmp_path / ".env").mkdir()
    loaded = load_settings(environ={}, dotenv_folders=[tmp_path, tmp_path / "none"])
    assert (loaded.settings.chunker.chunk_size, loaded.notices) == (200, [])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_file_that_may_not_be_read_is_refused_by_name(tmp_path):
    written(tmp_path, ".env", "").chmod(0)
    assert str(tmp_path / ".env") in refused("cannot be read", dotenv_folders=[tmp_path]).message


ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
SECTION_NAMES = sorted({key.partition(".")[0] for key in SETTINGS})
KEY_NAMES = sorted({key.partition(".")[2] for key in SETTINGS})
TABLES = st.dictionaries(
    st.sampled_from(SECTION_NAMES),
    st.dictionaries(st.sampled_from(KEY_NAMES) | st.text(max_size=5), ANY_VALUE, max_size=2) | ANY_VALUE,
    max_size=3,
)
NAMES = sorted(name for setting in SETTINGS.values() for name in setting.env_names)


def settles(**sources) -> None:
    try:
        shown = [row[0] for row in load_settings(**{"environ": {}, **sources}).rows()]
    except SettingsError:
        return
    assert shown == list(SETTINGS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("settings")


@settings(deadline=None)
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"RAG_CHUNK_SIZE=\x00")
@example(b"\xff\xfeR\x00A\x00")
def test_no_dotenv_content_breaks_loading(folder, content):
    (folder / ".env").write_bytes(content)
    settles(dotenv_folders=[folder])


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.text(st.characters(exclude_characters="\0")), max_size=4))
def test_no_environment_breaks_loading(environ):
    settles(environ=environ)


@settings(deadline=None)
@given(st.sampled_from(["a.toml", "a.yaml"]), st.binary() | st.text().map(lambda t: t.encode("utf-8", "replace")))
def test_no_config_content_breaks_loading(folder, name, content):
    (folder / name).write_bytes(content)
    settles(config=folder / name)


@settings(deadline=None)
@given(
    st.sampled_from(SECTION_NAMES),
    st.sampled_from(KEY_NAMES),
    st.text("0123456789.-_+eExXabf\"'[]{}=,:# \n\\truefalsnif", max_size=30),
)
@example("search", "k1", "0x" + "f" * 5000)
@example("search", "top_k", "1e400")
def test_no_toml_value_breaks_loading(folder, section, key, text):
    (folder / "b.toml").write_text(f"[{section}]\n{key} = {text}\n", encoding="utf-8")
    settles(config=folder / "b.toml")


@settings(deadline=None)
@given(TABLES)
def test_no_yaml_table_breaks_loading(folder, table):
    (folder / "b.yaml").write_text(yaml.safe_dump(table, allow_unicode=False), encoding="utf-8")
    settles(config=folder / "b.yaml")


@given(st.dictionaries(st.sampled_from(sorted(SETTINGS)) | st.text(max_size=10), ANY_VALUE, max_size=3))
def test_no_flag_breaks_loading(flags):
    settles(flags=flags)


def test_a_folder_of_documents_cannot_choose_who_is_sent_its_texts_or_your_keys(tmp_path):
    (tmp_path / "bunko.toml").write_text(
        '[embedding]\nprovider = "openai"\nopenai_base_url = "http://elsewhere.example/v1"\n', encoding="utf-8"
    )
    theirs = load_settings(environ={"OPENAI_API_KEY": "k"}, config_folders=[tmp_path], untrusted_folder=tmp_path)
    assert theirs.settings.embedding.provider == "static"
    assert "elsewhere" not in theirs.settings.embedding.openai_base_url
    assert len([notice for notice in theirs.notices if "is ignored" in notice]) == 2
    ours = load_settings(environ={"OPENAI_API_KEY": "k"}, config_folders=[tmp_path])
    assert "elsewhere" in ours.settings.embedding.openai_base_url
