"""The map of documents: computed once for each state of its tools, and kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.overview import document_map
from bunko.library.overview.document_map import DocumentMap, MapPoint
from bunko.library.overview.layout import Layout, lay_out
from bunko.library.overview.views import MAX_GROUPS, choose_color, group_points
from bunko.types import LineSpan, Tool
from bunko.types.records import ListedDocument

SUBJECTS = {
    "sea": "The tide comes in and the boats leave the harbour for the open sea.",
    "bread": "Knead the dough, let it rise, and bake the bread in a hot oven.",
    "star": "A telescope shows the rings of a planet and the craters of the moon.",
}


@pytest.fixture
def library(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """Two tools with nine documents about three subjects."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    other = tmp_path / "other"
    other.mkdir()
    for subject, sentence in SUBJECTS.items():
        for number in range(3):
            folder = other if subject == "star" else docs
            (folder / f"{subject}{number}.md").write_text(f"# {subject} {number}\n\n{sentence}\n", "utf-8")
    with open_at(tmp_path) as opened:
        opened.add(docs, name="docs")
        opened.add(other, name="other")
        opened.import_()
        yield opened


def open_at(folder: Path) -> Library:
    environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}
    return open_library(locate_library(library=folder / "library", environ=environ), environ=environ)


def places(document_map: DocumentMap) -> dict[tuple[int, str], tuple[float, float]]:
    positions = document_map.layout.positions.tolist()
    return {name: (x, y) for name, (x, y) in zip(document_map.names, positions, strict=True)}


def forbid_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        pytest.fail("the map was computed again")

    monkeypatch.setattr(document_map, "lay_out", fail)


def test_each_document_has_a_place_near_those_of_its_subject(library: Library) -> None:
    points, _, left_out = library.maps.points(library.tools())
    assert left_out == 0
    place_of = {point.document.uri: np.array([point.x, point.y]) for point in points}
    assert len(place_of) == 9
    near = np.linalg.norm(place_of["sea0.md"] - place_of["sea1.md"])
    assert near < np.linalg.norm(place_of["sea0.md"] - place_of["bread0.md"])
    assert near < np.linalg.norm(place_of["sea0.md"] - place_of["star0.md"])


def test_an_unchanged_map_is_not_computed_again_not_even_by_another_process(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = library.maps.build(library.tools())
    forbid_computing(monkeypatch)
    assert library.maps.build(library.tools()) is first
    with open_at(tmp_path) as again:
        kept = again.maps.build(again.tools())
    assert places(kept) == places(first)
    assert kept.layout.place(first.layout.mean) == first.layout.place(first.layout.mean)
    assert kept.areas == first.areas


def test_a_changed_document_changes_the_map_but_does_not_flip_it(library: Library, docs: Path) -> None:
    before = places(library.maps.build(library.tools()))
    (docs / "bread3.md").write_text(f"# bread 3\n\n{SUBJECTS['bread']}\n", "utf-8")
    (docs / "sea0.md").unlink()
    library.import_("docs")
    after = places(library.maps.build(library.tools()))
    uris = {uri for _, uri in after}
    assert "bread3.md" in uris
    assert "sea0.md" not in uris
    moved = [np.subtract(after[name], before[name]) for name in after.keys() & before.keys()]
    width = np.ptp(list(before.values()))
    assert max(np.linalg.norm(moved, axis=1)) < width / 4


def test_a_change_of_another_tool_changes_nothing(
    library: Library, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [tool for tool in library.tools() if tool.name == "other"]
    first = library.maps.build(tools)
    (docs / "new.md").write_text("# New\n\nSomething else.\n", "utf-8")
    library.import_("docs")
    forbid_computing(monkeypatch)
    assert library.maps.build(tools) is first
    assert {uri for _, uri in places(first)} == {"star0.md", "star1.md", "star2.md"}


def test_a_map_of_fewer_tools_depends_on_no_other_document(library: Library, docs: Path) -> None:
    tools = [tool for tool in library.tools() if tool.name == "other"]
    alone = places(library.maps.build(tools))
    for number in range(3):
        (docs / f"sea{number}.md").write_text("# Something else\n\nTrains and stations.\n", "utf-8")
    library.import_("docs")
    library.maps._maps.clear()
    for file in library.paths.folder.rglob("*-map-*.arrays"):
        file.unlink()
    assert places(library.maps.build(tools)) == alone


@pytest.mark.parametrize("content", [b"", b"x" * 300])
def test_a_damaged_file_is_written_again(library: Library, tmp_path: Path, content: bytes) -> None:
    expected = places(library.maps.build(library.tools()))
    (file,) = (tmp_path / "library").rglob("*-map-*.arrays")
    file.write_bytes(content)
    with open_at(tmp_path) as again:
        assert places(again.maps.build(again.tools())) == expected
    assert len(file.read_bytes()) > 300


def test_a_folder_that_cannot_be_written_is_no_error(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "a file"
    folder.write_text("")
    library.maps._folder = folder
    assert len(places(library.maps.build(library.tools()))) == 9


def test_documents_without_vectors_are_counted_but_have_no_place(library: Library, tmp_path: Path) -> None:
    environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "0", "BUNKO_EMBEDDING_PROVIDER": "none"}
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.md").write_text("# Plain\n\nWithout vectors.\n", "utf-8")
    library.close()
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ) as lexical:
        lexical.add(tmp_path / "plain", name="plain")
        lexical.import_("plain")
        points, _, left_out = lexical.maps.points(lexical.tools())
        assert (len(points), left_out) == (9, 1)
        plain = [tool for tool in lexical.tools() if tool.name == "plain"]
        assert lexical.maps.points(plain) == ([], [], 1)
        assert lexical.maps.points([]) == ([], [], 0)


def test_only_a_few_maps_are_kept(library: Library, tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / f"more{number}"
        folder.mkdir()
        (folder / "a.md").write_text(f"# More {number}\n\nA text about {number}.\n", "utf-8")
        library.add(folder, name=f"more{number}")
    library.import_()
    for tools in itertools.combinations(library.tools(), 2):
        library.maps.build(tools)
    assert len(list((tmp_path / "library").rglob("*-map-*.arrays"))) == 8


def test_nothing_of_a_deleted_tool_is_kept(library: Library, tmp_path: Path) -> None:
    library.maps.build(library.tools())
    library.delete_tool("other")
    library.maps.build(library.tools())
    (file,) = (tmp_path / "library").rglob("*-map-*.arrays")
    assert b"sea0.md" in file.read_bytes()
    assert b"star0.md" not in file.read_bytes()


def test_documents_of_a_tool_stay_where_they_are_when_a_tool_is_added(library: Library, tmp_path: Path) -> None:
    before = places(library.maps.build(library.tools()))
    (tmp_path / "third").mkdir()
    for number in range(3):
        (tmp_path / "third" / f"{number}.md").write_text(f"# Trains {number}\n\nA train stops at a station.\n", "utf-8")
    library.add(tmp_path / "third", name="third")
    library.import_("third")
    after = places(library.maps.build(library.tools()))
    assert len(after) == 12
    moved = [np.subtract(after[name], before[name]) for name in before]
    assert np.median(np.linalg.norm(moved, axis=1)) < np.ptp(list(before.values())) / 4


def test_the_library_can_be_written_and_read_while_a_map_is_computed(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def write_and_read(*arguments: Any) -> Layout:
        library.store.cache.log_search("tide", "docs", "2026-03-01", limit=100)
        seen.extend(search.query for search in library.store.cache.logged_searches())  # not from a state before
        return lay_out(*arguments)

    monkeypatch.setattr(document_map, "lay_out", write_and_read)
    library.maps.build(library.tools())
    assert seen == ["tide"]


def test_names_on_a_map_are_from_its_own_tools(library: Library, tmp_path: Path) -> None:
    for name, word in (("red", "crimson"), ("blue", "azure")):
        (tmp_path / name).mkdir()
        for number in range(40):
            text = f"# The {word} lantern {chr(97 + number % 26)}\n\n{SUBJECTS['star']}\n"
            (tmp_path / name / f"{number}.md").write_text(text, "utf-8")
        library.add(tmp_path / name, name=name)
        library.import_(name)
    (tmp_path / "red" / "more").mkdir()
    for number in range(40):
        (tmp_path / "red" / "more" / f"{number}.md").write_text(f"# Copper kettle {number}\n\nBoil water.\n", "utf-8")
    library.import_("red")
    names = [area.name("en") for area in library.maps.build(library.tools()).areas]
    assert any("azure" in name for name in names)
    limited = [tool for tool in library.tools() if tool.name == "red"]
    names = [area.name("en") for area in library.maps.build(limited).areas]
    assert any("crimson" in name for name in names)
    assert not any("azure" in name for name in names)


def point(tool: str = "docs", day: str = "", *tags: str, uri: str = "a.md", language: str = "") -> MapPoint:
    listed = ListedDocument(uri, "A", day, tags, "text/markdown", 1, 0, LineSpan())
    return MapPoint(Tool(tool), listed, 0, 0, language)


def test_points_are_grouped_by_tool_the_largest_first() -> None:
    groups, numbers = group_points([point("a"), point("b"), point("b")], "tool")
    assert [(group.name, group.kind, group.count) for group in groups] == [("b", "value", 2), ("a", "value", 1)]
    assert numbers == [1, 0, 0]


def test_a_point_with_many_tags_belongs_to_the_most_frequent() -> None:
    rare = [point("t", "", f"rare{number}") for number in range(MAX_GROUPS + 2)]
    points = [point("t", "", "旅", "食"), point("t", "", "食"), point("t", "", "食"), point("t"), *rare]
    groups, numbers = group_points(points, "tag")
    assert groups[0].name == "食"
    assert groups[0].count == 3
    assert [group.kind for group in groups[-2:]] == ["other", "none"]
    assert numbers[:4] == [0, 0, 0, len(groups) - 1]
    assert sum(group.count for group in groups) == len(points)


def test_years_are_in_their_order_and_the_early_ones_are_one_group() -> None:
    this_year = date(2026, 1, 1).year
    points = [point("t", f"{year}-05-01") for year in range(this_year - 11, this_year + 1)] + [point("t")]
    groups, numbers = group_points(points, "year")
    kinds = [group.kind for group in groups]
    assert kinds == ["earlier", *["value"] * MAX_GROUPS, "none"]
    assert (groups[0].name, groups[0].count) == ("2019", 4)
    assert [group.name for group in groups[1:-1]] == [str(year) for year in range(2019, 2027)]
    assert numbers[0] == numbers[3] == 0
    assert numbers[4] == 1
    assert groups[numbers[-1]].kind == "none"


def test_points_are_grouped_by_the_folders_below_those_that_all_share() -> None:
    points = [point(uri=f"site/docs/{name}") for name in ("guide/a.md", "guide/deep/b.md", "api/c.md", "d.md")]
    groups, numbers = group_points(points, "folder")
    assert [(group.name, group.kind) for group in groups] == [("guide", "value"), ("api", "value"), ("", "none")]
    assert numbers == [0, 0, 1, 2]
    other = point("blog", uri="guide/e.md")
    groups, _ = group_points([*points, other], "folder")
    assert {group.name for group in groups} == {"docs/guide", "docs/api", "docs", "blog"}


def test_points_are_grouped_by_language_and_kind() -> None:
    points = [point(uri="a.MD", language="ja"), point(uri="b.md", language="en"), point(uri="https://x.org/page")]
    assert [group.name for group in group_points(points, "language")[0]] == ["en", "ja", ""]
    assert [group.name for group in group_points(points, "kind")[0]] == [".md", "markdown"]


def test_colours_are_by_default_what_tells_documents_apart() -> None:
    assert choose_color([point("a"), point("b")]) == "tool"
    assert choose_color([point(uri="guide/a.md"), point(uri="api/b.md")]) == "folder"
    assert choose_color([point(), point()]) == "year"
    assert choose_color([]) == "year"
