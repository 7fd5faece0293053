"""Arbitrary input gives settings or a SettingsError, never another exception."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bunko.errors import SettingsError
from bunko.settings import all_settings, load_settings

SETTINGS = all_settings()

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


def check_loading(**sources: Any) -> None:
    try:
        keys = [row[0] for row in load_settings(**{"environ": {}, **sources}).rows()]
    except SettingsError:
        return
    assert keys == list(SETTINGS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings")


@settings(deadline=None)
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"RAG_CHUNK_SIZE=\x00")
@example(b"\xff\xfeR\x00A\x00")
def test_no_dotenv_content_breaks_loading(folder: Path, content: bytes) -> None:
    (folder / ".env").write_bytes(content)
    check_loading(dotenv_folders=[folder])


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.text(st.characters(exclude_characters="\0")), max_size=4))
def test_no_environment_breaks_loading(environ: dict[str, str]) -> None:
    check_loading(environ=environ)


@settings(deadline=None)
@given(st.sampled_from(["a.toml", "a.yaml"]), st.binary() | st.text().map(lambda t: t.encode("utf-8", "replace")))
def test_no_config_content_breaks_loading(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    check_loading(config=folder / name)


@settings(deadline=None)
@given(
    st.sampled_from(SECTION_NAMES),
    st.sampled_from(KEY_NAMES),
    st.text("0123456789.-_+eExXabf\"'[]{}=,:# \n\\truefalsnif", max_size=30),
)
@example("search", "k1", "0x" + "f" * 5000)
@example("search", "top_k", "1e400")
def test_no_toml_value_breaks_loading(folder: Path, section: str, key: str, text: str) -> None:
    (folder / "b.toml").write_text(f"[{section}]\n{key} = {text}\n", encoding="utf-8")
    check_loading(config=folder / "b.toml")


@pytest.mark.slow
@settings(deadline=None)
@given(TABLES)
def test_no_yaml_table_breaks_loading(folder: Path, table: dict[str, object]) -> None:
    (folder / "b.yaml").write_text(yaml.safe_dump(table, allow_unicode=False), encoding="utf-8")
    check_loading(config=folder / "b.yaml")


@given(st.dictionaries(st.sampled_from(sorted(SETTINGS)) | st.text(max_size=10), ANY_VALUE, max_size=3))
def test_no_flag_breaks_loading(flags: dict[str, object]) -> None:
    check_loading(flags=flags)
