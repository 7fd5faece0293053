"""What narrows a search: counted values as links, filters that can be removed, and what is like a document."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from bunko.library.library import Library
from bunko.types.access import Rights
from tests.page.conftest import Visitor
from tests.page.test_search_page import names

_FACET = re.compile(r'<h2 id="facet-(\w+)">.*?</ul>', re.DOTALL)
_VALUE = re.compile(r'<a href="([^"]*)"><bdi>(.*?)</bdi> <span class="count">(\d+)</span>')
_CHIP = re.compile(r'<a class="chip" href="([^"]*)".*?<span>(\w[\w ]*) <bdi>(.*?)</bdi>')


def facets(text: str) -> dict[str, dict[str, tuple[int, str]]]:
    """Return the counts and addresses of a page by facet and value."""
    return {
        match[1]: {unescape(value): (int(count), unescape(link)) for link, value, count in _VALUE.findall(match[0])}
        for match in _FACET.finditer(text)
    }


def chips(text: str) -> dict[tuple[str, str], str]:
    return {(name, unescape(value)): unescape(link) for link, name, value in _CHIP.findall(text)}


@pytest.fixture
def garden(library: Library, docs: Path) -> Library:
    """Documents about a garden in two folders, two languages and two years."""
    for folder, name, date, text in (
        ("garden", "moss.md", "2023-04-01\ntags: [flat]", "Moss grows in the shade."),
        ("garden", "2023-05-01-fern.txt", "", "Ferns like moss."),
        ("garden/north", "wall.md", "2024-01-01\ntags: [flat]", "Moss on the wall."),
        ("guide", "苔.md", "2024-02-01", "苔は moss のことで、日陰を好む。"),
    ):
        (docs / folder).mkdir(exist_ok=True)
        head = f"---\ndate: {date}\n---\n" if date else ""
        (docs / folder / name).write_text(f"{head}{text}\n", "utf-8")
    library.import_("docs")
    return library


def test_what_narrows_a_search_is_counted_by_document(browser: TestClient, garden: Library) -> None:
    text = browser.get("/", params={"q": "moss", "mode": "bm25", "tool": "docs"}).text
    assert "Documents: 4" in text
    assert {name: {value: count for value, (count, _) in values.items()} for name, values in facets(text).items()} == {
        "folder": {"garden": 3, "guide": 1},
        "kind": {".md": 3, ".txt": 1},
        "language": {"English": 3, "Japanese": 1},
        "year": {"2024": 2, "2023": 2},
        "tag": {"#flat": 2},
    }


@pytest.mark.parametrize(
    ("facet", "value", "parameter"),
    [
        ("folder", "garden", {"path": ["garden/**"]}),
        ("kind", ".txt", {"path": ["*.txt"]}),
        ("language", "Japanese", {"language": ["ja"]}),
        ("year", "2023", {"since": ["2023"], "until": ["2023"]}),
        ("tag", "#flat", {"tag": ["flat"]}),
    ],
)
def test_a_value_leads_to_as_many_documents_as_it_says(
    browser: TestClient, garden: Library, facet: str, value: str, parameter: dict[str, list[str]]
) -> None:
    text = browser.get("/", params={"q": "moss", "mode": "bm25", "tool": "docs"}).text
    count, address = facets(text)[facet][value]
    assert parse_qs(urlsplit(address).query).items() >= parameter.items()
    narrowed = browser.get(address).text
    assert len(names(narrowed)) == count
    assert f"Documents: {count}<" in narrowed


def test_tools_are_counted_where_there_are_several(browser: TestClient, garden: Library) -> None:
    text = browser.get("/", params={"q": "moss 味噌", "mode": "bm25"}).text
    assert {value: count for value, (count, _) in facets(text)["tool"].items()} == {"docs": 4, "kitchen": 1}


def test_each_filter_can_be_removed_alone(browser: TestClient, garden: Library) -> None:
    parameters: dict[str, str | list[str]] = {
        "q": "moss",
        "tool": "docs",
        "path": "garden/**/*.md",
        "since": "2023",
        "until": "2023",
    }
    parameters |= {"language": "en", "tag": ["flat", "wet"]}
    text = browser.get("/", params=parameters).text
    found = chips(text)
    assert set(found) == {
        ("Tool", "docs"), ("Folder", "garden"), ("File type", ".md"), ("Language", "English"), ("Date", "2023"),
        ("Tag", "#flat"), ("Tag", "#wet"),
    }  # fmt: skip
    assert parse_qs(urlsplit(found["Folder", "garden"]).query)["path"] == ["*.md"]
    assert parse_qs(urlsplit(found["File type", ".md"]).query)["path"] == ["garden/**"]
    assert parse_qs(urlsplit(found["Tag", "#flat"]).query)["tag"] == ["wet"]
    assert not {"since", "until"} & parse_qs(urlsplit(found["Date", "2023"]).query).keys()
    assert 'name="language" value="en"' in text  # what is typed next is searched with it


def test_folders_go_deeper_and_other_patterns_are_left_alone(browser: TestClient, garden: Library) -> None:
    deeper = facets(browser.get("/", params={"q": "moss", "path": "garden/**"}).text)
    assert parse_qs(urlsplit(deeper["folder"]["north"][1]).query)["path"] == ["garden/north/**"]
    other = browser.get("/", params={"q": "moss", "path": "gard?n/*.md"}).text
    assert not {"folder", "kind"} & facets(other).keys()
    assert ("Path", "gard?n/*.md") in chips(other)


@pytest.mark.parametrize("folder", ["[draft]", "C#"])
def test_a_folder_with_the_signs_of_a_pattern_or_an_entry_is_meant_literally(
    browser: TestClient, docs: Path, library: Library, folder: str
) -> None:
    for name in (folder, "d"):
        (docs / name).mkdir()
        (docs / name / "moss.md").write_text("Moss.", "utf-8")
    library.import_("docs")
    text = browser.get("/", params={"q": "moss", "mode": "bm25", "tool": "docs"}).text
    count, address = facets(text)["folder"][folder]
    narrowed = browser.get(address).text
    assert (count, len(names(narrowed))) == (1, 1)
    assert ("Folder", folder) in chips(narrowed)


def test_more_documents_than_are_counted_are_at_least_so_many(
    browser: TestClient, garden: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bunko.interfaces.page.facets.MAX_DOCUMENTS", 3)
    text = browser.get("/", params={"q": "moss", "mode": "bm25", "tool": "docs"}).text
    assert "Documents: at least 3" in text
    assert "The best 3 documents are counted." in text


def test_scripts_get_what_narrows_alone_and_typing_does_not_wait_for_it(browser: TestClient, garden: Library) -> None:
    text = browser.get("/", params={"q": "moss", "part": "facets"}).text
    assert text.lstrip().startswith('<aside id="facets"')
    assert "<html" not in text
    assert "facet-" not in browser.get("/", params={"q": "moss", "part": "results", "typed": "true"}).text
    wrong = browser.get("/", params={"q": "moss", "since": "whenever", "part": "facets"})
    assert wrong.status_code == 200
    assert facets(wrong.text) == {}


def test_documents_are_listed_that_are_like_one(browser: TestClient, garden: Library) -> None:
    text = browser.get("/", params={"q": "shade", "tool": "docs", "mode": "bm25"}).text
    address = unescape(re.findall(r'<a class="like" href="([^"]*)"', text)[0])
    assert parse_qs(urlsplit(address).query) == {"like": ["docs/garden/moss.md"]}
    similar = browser.get(address).text
    assert '<h2 class="like-of">Documents like <a href="/documents/docs/garden/moss.md"><bdi>moss.md</bdi>' in similar
    assert set(names(similar)) >= {"wall.md", "2023-05-01-fern.txt"}
    assert "moss.md</bdi></a>\n</h2>" not in similar  # not itself
    assert "why-link" not in similar
    assert browser.get("/", params={"like": "docs/gone.md"}).status_code == 404


def test_nothing_of_a_tool_that_somebody_may_not_read_is_counted_or_like(visit: Visitor, garden: Library) -> None:
    limited = visit(Rights(read=("docs",)))
    assert "kitchen" not in limited.get("/", params={"q": "moss 味噌"}).text
    similar = limited.get("/", params={"like": "docs/bread.md"}).text
    assert "moss.md" in similar
    assert "kitchen" not in similar
    assert limited.get("/", params={"like": "kitchen/味噌.md"}).status_code == 404
