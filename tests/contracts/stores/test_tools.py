"""What every store promises about tools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bunko.errors import SettingsError
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.types import SourceEntry, Tool
from bunko.types.build_info import NOT_BUILT, BuildInfo
from bunko.types.records import FailedDocument
from bunko.types.tool_options import ToolOptions
from tests.contracts.documents import prepared, search_results


def test_tools_are_kept_by_name(store: Store) -> None:
    first = store.tools.put(Tool("b", description="one"))
    store.tools.put(Tool("a"))
    again = store.tools.put(Tool("b", description="two", built=BuildInfo(words=1)))
    assert again.id == first.id
    assert [(tool.name, tool.description) for tool in store.tools.all()] == [("a", ""), ("b", "two")]
    assert store.tools.all()[1].built == BuildInfo(words=1)


def test_two_tools_never_see_each_others_documents(store: Store) -> None:
    first, second = store.tools.put(Tool("one")), store.tools.put(Tool("two"))
    store.documents.write(first.id, upsert=[prepared("same.md", "京都の寺")])
    store.documents.write(second.id, upsert=[prepared("same.md", "奈良の寺")])
    assert [uri for uri, *_ in search_results(store, first, ToolIndex(store, first.id, None), "奈良")] == []
    assert store.documents.fingerprints(first.id)["same.md"] != store.documents.fingerprints(second.id)["same.md"]


def test_a_shadow_takes_the_place_of_its_tool_in_one_step(store: Store) -> None:
    tool, shadow = store.tools.put(Tool("docs")), store.tools.put(Tool("~docs"))
    live = ToolIndex(store, tool.id, None)
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺"), prepared("b.md", "奈良の鹿")])
    assert search_results(store, tool, live, "京都")
    store.documents.write(
        shadow.id,
        upsert=[prepared("b.md", "大阪の城")],
        fail=[FailedDocument(SourceEntry("c.md", 1, 1, 10**18), "h", "bad")],
    )
    assert not search_results(store, tool, live, "大阪")
    store.tools.swap(Tool("docs", id=tool.id, built=BuildInfo(words=2)), shadow)
    assert [uri for uri, *_ in search_results(store, tool, live, "大阪 京都 奈良")] == ["b.md"]
    assert set(store.documents.fingerprints(tool.id)) == {"b.md", "c.md"}
    assert [(stored.name, stored.built) for stored in store.tools.all()] == [("docs", BuildInfo(words=2))]
    assert store.check() == ""


def test_a_dropped_tool_takes_its_documents_along(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺")])
    store.tools.drop(tool.id)
    assert store.tools.all() == []
    assert store.documents.fingerprints(tool.id) == {}


def test_a_shadow_becomes_a_tool_in_one_step(store: Store) -> None:
    other = store.tools.put(Tool("kept"))
    store.documents.write(other.id, upsert=[prepared("k.md", "大阪")])
    shadow = store.tools.put(Tool("~docs", active=False))
    store.documents.write(shadow.id, upsert=[prepared("a.md", "京都")])
    adopted = store.tools.adopt_documents(Tool("docs", description="new", built=BuildInfo(words=1)), shadow)
    assert [(stored.name, stored.id, stored.description) for stored in store.tools.all()] == [
        ("docs", adopted.id, "new"),
        ("kept", other.id, ""),
    ]
    live = ToolIndex(store, adopted.id, None)
    assert [uri for uri, *_ in search_results(store, adopted, live, "京都")] == ["a.md"]
    again = store.tools.put(Tool("~docs", active=False))
    assert again.id not in (adopted.id, other.id)
    store.documents.write(again.id, upsert=[prepared("b.md", "奈良")])
    second = store.tools.adopt_documents(
        Tool("docs", source="/elsewhere", active=False, options=ToolOptions(exclude=("x",))), again
    )
    assert second.id == adopted.id
    stored = next(tool for tool in store.tools.all() if tool.name == "docs")
    assert (stored.source, stored.active, stored.options, stored.built) == (
        "/elsewhere",
        False,
        ToolOptions(exclude=("x",)),
        NOT_BUILT,
    )
    assert not search_results(store, second, live, "京都")
    assert [uri for uri, *_ in search_results(store, second, live, "奈良")] == ["b.md"]
    assert len(store.tools.all()) == 2
    assert list(store.documents.fingerprints(other.id)) == ["k.md"]


def test_a_renamed_tool_keeps_its_id_its_documents_and_its_index(store: Store) -> None:
    tool, shadow = store.tools.put(Tool("docs")), store.tools.put(Tool("~docs"))
    live = ToolIndex(store, tool.id, None)
    store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺")])
    generation = store.generation()
    options = ToolOptions(alias="bunsho")
    store.tools.rename(replace(tool, name="文書", options=options), replace(shadow, name="~文書"))
    assert {(stored.id, stored.name) for stored in store.tools.all()} == {(tool.id, "文書"), (shadow.id, "~文書")}
    assert [stored.options for stored in store.tools.all() if stored.name == "文書"] == [options]
    assert [uri for uri, *_ in search_results(store, tool, live, "京都")] == ["a.md"]
    assert store.generation() == generation


def test_a_tool_is_never_renamed_to_the_name_of_another(store: Store) -> None:
    first, _ = store.tools.put(Tool("one")), store.tools.put(Tool("two"))
    with pytest.raises(SettingsError, match="A tool named 'two' already exists"):
        store.tools.rename(replace(first, name="two"))
    assert [tool.name for tool in store.tools.all()] == ["one", "two"]
    store.tools.rename(replace(first, name="One"))
    assert {tool.name for tool in store.tools.all()} == {"One", "two"}
