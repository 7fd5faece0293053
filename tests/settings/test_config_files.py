"""Settings from TOML and YAML config files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.settings import load_settings
from tests.settings.loading import load_error, write_file


def test_both_older_config_files_are_read_as_they_are(tmp_path: Path) -> None:
    yaml_file = write_file(
        tmp_path / "a",
        "config.yaml",
        "embedding:\n  model: gemini-embedding-001\n  output_dimensionality: 1536\n"
        "chunker:\n  heading_levels: [1, 2]\n"
        "chromadb:\n  hnsw_space: ip\n  hnsw_M: 32\n"
        "search:\n  default_top_k: 7  # 返却件数\n"
        "retry:\n  base_delay: 1\n"
        'scanner:\n  file_extensions: [".md"]\n',
    )
    toml_file = write_file(
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


def test_the_first_folder_with_a_config_file_wins_and_bunko_toml_comes_first(tmp_path: Path) -> None:
    empty, first, second = tmp_path / "none", tmp_path / "first", tmp_path / "second"
    write_file(second, "bunko.toml", "[search]\ntop_k = 1\n")
    folders = [empty, first, second]
    assert load_settings(environ={}, config_folders=folders).settings.search.top_k == 1
    for name, text, top_k in [
        ("config.toml", "[search]\ntop_k = 2\n", 2),
        ("config.yaml", "search:\n  top_k: 3\n", 3),
        ("bunko.toml", "[search]\ntop_k = 4\n", 4),
    ]:
        path = write_file(first, name, text)
        loaded = load_settings(environ={}, config_folders=folders)
        assert (loaded.settings.search.top_k, loaded.config_file) == (top_k, path)


def test_a_named_config_file_wins_over_the_ones_that_could_be_found(tmp_path: Path) -> None:
    write_file(tmp_path / "docs", "bunko.toml", "[search]\ntop_k = 1\n")
    named = write_file(tmp_path, "mine.yml", "search: {top_k: 2}\n")
    loaded = load_settings(environ={}, config=named, config_folders=[tmp_path / "docs"])
    assert (loaded.settings.search.top_k, loaded.config_file) == (2, named)


@pytest.mark.parametrize("text", ["theme: dark\n", "- one\n- two\n", "", "just words"])
def test_a_found_config_of_another_program_is_skipped_with_a_notice(tmp_path: Path, text: str) -> None:
    foreign = write_file(tmp_path / "docs", "config.yaml", text)
    ours = write_file(tmp_path / "library", "config.toml", "[search]\ntop_k = 9\n")
    loaded = load_settings(environ={}, config_folders=[foreign.parent, ours.parent])
    assert loaded.config_file == ours
    assert len(loaded.notices) == 1
    assert str(foreign) in loaded.notices[0]


def test_a_foreign_config_does_not_lend_its_dotenv(tmp_path: Path) -> None:
    write_file(tmp_path, "config.toml", 'title = "someone else\'s"\n')
    write_file(tmp_path, ".env", "RAG_CHUNK_SIZE=101\n")
    assert load_settings(environ={}, config_folders=[tmp_path]).settings.web.chunk_size is None


def test_a_named_config_without_our_sections_is_refused_for_its_unknown_key(tmp_path: Path) -> None:
    load_error("'theme' is not a setting", config=write_file(tmp_path, "config.yaml", "theme: dark\n"))


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
def test_partial_files_are_fine(tmp_path: Path, name: str, text: str) -> None:
    assert load_settings(environ={}, config=write_file(tmp_path, name, text)).settings.search.top_k == 5


def test_nothing_takes_back_an_optional_setting_in_a_file(tmp_path: Path) -> None:
    null = load_settings(environ={}, config=write_file(tmp_path, "a.yaml", "search: {min_combined_score: null}\n"))
    assert null.settings.search.min_combined_score is None
    empty = load_settings(environ={}, config=write_file(tmp_path, "a.toml", '[library]\npath = ""\n'))
    assert empty.settings.library.path is None


def test_a_config_that_was_named_and_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path / "none.toml") in load_error("No such file", config=tmp_path / "none.toml").message
    (tmp_path / "folder.toml").mkdir()
    load_error("cannot be read", config=tmp_path / "folder.toml")
    load_error("is not a config file", config=write_file(tmp_path, "bunko.ini", "[search]\n"))


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
        ("config.yaml", b"- one\n", "contains a list"),
        ("config.yaml", b"search: fast\n", "search is text .* table"),
        ("config.yaml", b"search:\n  ? 0x" + b"f" * 5000 + b"\n  : 1\n", "huge number"),
        ("config.yaml", b"? [1, 2]\n: 3\n", "not valid YAML"),
        ("config.yaml", b"1: 3\n", "'1' is not a setting"),
        ("config.yaml", b"search: {2024-01-01: 3}\n", "is not a setting"),
    ],
)
def test_a_broken_config_file_is_refused_by_name(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    config = tmp_path / name
    config.write_bytes(content)
    error = load_error(problem, config=config)
    assert str(config) in error.message
    assert error.hint


def test_a_broken_file_is_refused_when_it_was_only_found(tmp_path: Path) -> None:
    write_file(tmp_path, "config.yaml", "search: [1\n")
    load_error("not valid YAML", config_folders=[tmp_path])


@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ("[search]\ntopk = 5\n", "search.topk", "[search] top_k"),
        ("[chromadb]\nhnsw_m = 5\n", "chromadb.hnsw_m", "[chromadb] hnsw_M"),
        ("[serch]\ntop_k = 5\n", "serch", "[search]"),
        ("[Search]\ntop_k = 5\n", "Search", "[search]"),
        ("chunk_size = 5\n", "chunk_size", "[chunker] chunk_size"),
        ("topk = 5\n", "topk", "[search] top_k"),
        ('[chunk]\nkind = "auto"\n', "chunk", "[chunk"),
        ('[chunking]\nkind = "auto"\n', "chunking.kind", "[chunker] kind"),
        ("[search]\nchunk_size = 5\n", "search.chunk_size", "[chunker] chunk_size"),
        ('"search.top_k" = 5\n', "search.top_k", "[search] top_k"),
        ("[search.weights]\nvector = 1\n", "search.weights", "[search] "),
        ('[""]\n', "''", "["),
    ],
)
def test_an_unknown_key_is_refused_with_file_key_and_the_nearest_known_one(
    tmp_path: Path, text: str, key: str, nearest: str
) -> None:
    config = write_file(tmp_path, "bunko.toml", text)
    error = load_error("is not a setting", config=config)
    assert key in error.message
    assert str(config) in error.message
    assert nearest in error.hint


def test_one_setting_under_two_names_is_refused(tmp_path: Path) -> None:
    config = write_file(tmp_path, "bunko.toml", "[search]\nk = 5\ndefault_top_k = 6\n")
    load_error("search.k and search.default_top_k are the same", config=config)


@pytest.mark.parametrize(
    ("text", "problem"),
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
def test_a_value_of_the_wrong_type_or_out_of_range_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    config = write_file(tmp_path, "config.yaml", text)
    error = load_error(problem, config=config)
    assert str(config) in error.message
    assert "must be" in error.message
