"""The names by which assistants see the tools of a library."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import SettingsError, UnknownName
from bunko.library.tools import catalog
from bunko.library.tools.assistant_names import assistant_name, assistant_names
from bunko.protocols import Store
from bunko.stores import memory
from bunko.types import Tool
from bunko.types.tool_options import ToolOptions

VALID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


def add(store: Store, name: str, folder: Path) -> str:
    """Add a tool, and return how assistants see it."""
    return assistant_name(catalog.Tools(store).add(name, "x", folder))


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("日記", "nikki"),
        ("レシピ", "reshipi"),
        ("API仕様", "API_shiyo"),
        ("api docs", "api_docs"),
        ("Café", "Cafe"),
        ("notes-2024", "notes-2024"),
        ("a" * 70, "a" * 40),
    ],
)
def test_assistants_see_a_reading(name: str, seen: str, tmp_path: Path) -> None:
    assert add(memory.build(), name, tmp_path) == seen


@pytest.mark.parametrize("name", ["Дневник", "노트", "笔记", "📚", "Дневник 2024"])
def test_a_name_that_cannot_be_read_gets_a_safe_one_of_its_own(name: str, tmp_path: Path) -> None:
    seen = add(memory.build(), name, tmp_path)
    assert re.fullmatch(r"(tool|2024)_[0-9a-f]{6}", seen)
    assert add(memory.build(), name, tmp_path) == seen


def test_names_of_the_same_reading_stay_apart_and_keep_their_names(tmp_path: Path) -> None:
    store = memory.build()
    assert add(store, "記者", tmp_path) == "kisha"
    second = add(store, "汽車", tmp_path)
    assert re.fullmatch(r"kisha_[0-9a-f]{6}", second)
    catalog.delete_tool(store, "記者")
    assert assistant_name(catalog.get_tool(store, "汽車")) == second


def test_a_name_that_another_tool_is_seen_by_is_refused_with_both(tmp_path: Path) -> None:
    store = memory.build()
    add(store, "日記", tmp_path)
    with pytest.raises(SettingsError, match="'Nikki' and '日記' would look the same to an assistant: nikki"):
        add(store, "Nikki", tmp_path)


def test_a_tool_is_found_by_its_name_and_by_the_one_that_assistants_see(tmp_path: Path) -> None:
    store = memory.build()
    add(store, "日記", tmp_path)
    assert catalog.get_tool(store, "nikki").name == catalog.get_tool(store, "日記").name == "日記"
    with pytest.raises(UnknownName) as caught:
        catalog.get_tool(store, "recipes")
    assert "日記 (nikki)" in caught.value.hint


def test_a_tool_of_an_older_library_keeps_the_name_that_it_had() -> None:
    assert re.fullmatch(r"tool_[0-9a-f]{6}", assistant_name(Tool("旅の記録")))
    assert re.fullmatch(r"api_docs_[0-9a-f]{6}", assistant_name(Tool("api docs")))


@pytest.mark.parametrize("alias", ["", "a b", "a\nb", "日記", "../x", "x" * 41])
def test_a_stored_name_that_no_client_accepts_has_no_effect(alias: str) -> None:
    assert VALID.fullmatch(seen := assistant_name(Tool("旅の記録", options=ToolOptions(alias=alias))))
    assert seen != alias


@given(st.lists(st.text(max_size=60), unique=True, max_size=12), st.sampled_from(["", "nikki", "search"]))
def test_names_are_safe_and_all_different_whatever_is_stored(names: list[str], alias: str) -> None:
    tools = [Tool(name, options=ToolOptions(alias=alias or None)) for name in names]
    seen = assistant_names(tools)
    assert set(seen) == set(names)
    assert len(set(seen.values())) == len(names)
    assert all(VALID.fullmatch(name) for name in seen.values())


def test_the_options_of_a_pack_do_not_choose_the_name(tmp_path: Path) -> None:
    store = memory.build()
    foreign = replace(Tool("日記", description="x"), options=ToolOptions(alias="search"))
    adapted = catalog.adapt_foreign_tool(
        store, foreign, name="日記", description=None, source=None, replace_existing=False
    )
    assert assistant_name(adapted) == "nikki"
    assert assistant_name(catalog.Tools(store).copy(replace(foreign, source=str(tmp_path)))) == "nikki"
