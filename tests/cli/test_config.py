"""Settings are shown with their origins, and changed without opening a file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.conftest import Run


@pytest.fixture
def config(run: Run, tmp_path: Path) -> Path:
    """The settings file of the user, which does not exist yet."""
    return tmp_path / "XDG_CONFIG_HOME" / "bunko" / "bunko.toml"


def test_a_setting_is_set_shown_and_removed(run: Run, config: Path) -> None:
    assert "Nothing is set" in run("config").err
    for key, value in (
        ("chat.model", "qwen3"), ("search.top_k", "20"), ("search.vector_weight", "0.25"),
        ("search.bridge", "no"), ("scanner.file_extensions", ".md, .org"),
    ):  # fmt: skip
        ran = run("config", "set", key, value)
        assert (ran.code, ran.out) == (0, f"Set {key} in {config}.\n"), ran.err
    assert tomllib.loads(config.read_text("utf-8")) == {
        "chat": {"model": "qwen3"},
        "search": {"top_k": 20, "vector_weight": 0.25, "bridge": False},
        "scanner": {"file_extensions": [".md", ".org"]},
    }
    shown = run("config").out.splitlines()
    assert f"search.top_k = 20  (bunko.toml: {config})" in shown
    assert not [line for line in shown if line.endswith("(default)")]
    assert list(run("config", "--json").json()) == [line.partition(" =")[0] for line in shown]
    assert run("config", "unset", "search.top_k").out == f"Removed search.top_k from {config}.\n"
    assert "top_k" not in run("config").out
    assert run("config", "unset", "search.top_k").out == f"search.top_k is not set in {config}.\n"


def test_comments_and_other_settings_stay(run: Run, config: Path) -> None:
    config.parent.mkdir(parents=True)
    config.write_text('# mine\n[search]\nmode = "bm25"  # fast\n# how many\ntop_k = 3\n', encoding="utf-8")
    assert run("config", "set", "search.top_k", "7").code == 0
    assert run("config", "set", "search.mode", "hybrid").code == 0
    assert config.read_text("utf-8") == '# mine\n[search]\nmode = "hybrid"  # fast\n# how many\ntop_k = 7\n'


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("search.top_k", "many", "search.top_k is 'many'"),
        ("search.top_k", "-1", "search.top_k is -1"),
        ("search.mode", "magic", "search.mode is 'magic'"),
        ("chunker.chunk_overlap", "500", "chunker.chunk_overlap is 500"),
        ("search.top_kk", "3", "'search.top_kk' is not a setting"),
        ("top_k", "3", "'top_k' is not a setting"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_and_nothing_is_written(
    run: Run, config: Path, key: str, value: str, message: str
) -> None:
    ran = run("config", "set", key, value)
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert not config.exists()


def test_a_secret_is_neither_written_nor_printed(run: Run, config: Path, tmp_path: Path) -> None:
    ran = run("config", "set", "embedding.openai_api_key", "sk-hidden")
    assert ran.code == 2
    assert "OPENAI_API_KEY" in ran.err
    assert "sk-hidden" not in ran.err + ran.out
    assert not config.exists()
    key = tmp_path / "key"
    key.write_text("sk-hidden\n")
    key.chmod(0o600)
    assert run("config", "set", "embedding.openai_api_key_file", key).code == 0
    assert "sk-hidden" not in config.read_text("utf-8")
    shown = run("config").out
    assert "embedding.openai_api_key = ********" in shown
    assert "sk-hidden" not in shown
    assert run("config", "unset", "embedding.openai_api_key").out.startswith("Removed")


def test_what_comes_before_the_file_is_named(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch, docs: Path
) -> None:
    monkeypatch.setenv("BUNKO_SEARCH_TOP_K", "4")
    ran = run("config", "set", "search.top_k", "7")
    assert ran.err == "It is 4 here: environment BUNKO_SEARCH_TOP_K comes before that file.\n"
    monkeypatch.delenv("BUNKO_SEARCH_TOP_K")
    library = config.parent.parent / "library"
    library.mkdir()
    (library / "bunko.toml").write_text("[log]\ndebug = false\n")
    ran = run("config", "set", "search.top_k", "8", "--library", library)
    assert "is read instead of that file" in ran.err
    assert run("config", "set", "search.top_k", "9", "--config", library / "bunko.toml").err == ""
    assert "top_k = 9" in (library / "bunko.toml").read_text("utf-8")


def test_a_file_of_a_secret_that_cannot_be_read_is_not_written(run: Run, config: Path, tmp_path: Path) -> None:
    ran = run("config", "set", "chat.api_key_file", tmp_path / "nothing")
    assert ran.code == 2
    assert "cannot be read" in ran.err
    assert not config.exists()


def test_a_wrong_value_is_mended_by_setting_it_again(run: Run, config: Path) -> None:
    config.parent.mkdir(parents=True)
    config.write_text('[search]\ntop_k = "five"\n', encoding="utf-8")
    assert run("config", "set", "search.top_k", "3").code == 0
    assert run("config", "show", "search.top_k").out.startswith("search.top_k = 3")


def test_a_broken_setting_can_be_removed(run: Run, config: Path) -> None:
    config.parent.mkdir(parents=True)
    config.write_text('[search]\ntop_k = "many"\n', encoding="utf-8")
    assert run("config").code == 2
    assert run("config", "unset", "search.top_k").code == 0
    assert run("config").code == 0


def test_a_japanese_user_reads_it_in_japanese(run: Run, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    assert run("config", "set", "search.top_k", "7").out == f"search.top_k を {config} に設定しました。\n"
    assert "変えるには: bunko config set KEY VALUE" in run("config").err
