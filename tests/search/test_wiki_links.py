"""A wiki link leads to the note that the programs for notes would open."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.search.reading import ReadRequest
from bunko.search.wiki_links import LinkTarget, resolve_wiki_link
from tests.conftest import Opener

NOTES = {
    ".obsidian/app.json": "{}",
    "Index.md": (
        "# Index\n\n[[Garden]]\n\n## はじめに: a *start*\n\nText.\n\n### Deeper\n\nMore.\n\n"
        "## End\n\nA paragraph\nof two lines. ^quote\n"
    ),
    "home/Garden.md": "---\naliases:\n  - 庭園\n  - The yard\n---\nRoses.\n",
    "home/Index.md": "The index of home.\n",
    "work/deep/Garden.md": "A garden of servers.\n",
    "work/Plan.md": "# The great plan\n\nSee [[../home/Garden]].\n",
    "work/paper.txt": "A paper.\n",
    "pages/project___alpha.md": "- item one\n  id:: 64c1f0aa-0000-4000-8000-000000000001\n- item two\n",
    "pages/old%2Fname.md": "Old.\n",
    "journals/2024_01_15.md": "- A day.\n",
    "cafe\u0301.md": "Decomposed.\n",
    "roam/20240115-x.org": (
        "#+title: Roam note\n\n* First\n:PROPERTIES:\n:ID: 2addf7dc-9d6d-4cb7-b841-d59295febdc2\n:END:\nText.\n"
        "* Second\nMore.\n"
    ),
}


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    for name, text in NOTES.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    opened = open_docs(EMBEDDING_PROVIDER="none")
    opened.reindex()
    return opened


def resolve(library: Library, link: str, from_uri: str = "") -> LinkTarget | None:
    return resolve_wiki_link(library.store, library.store.tools.all()[0].id, link, from_uri=from_uri)


@pytest.mark.parametrize(
    ("link", "from_uri", "expected"),
    [
        ("[[Garden]]", "", "home/Garden.md"),
        ("[[garden]]", "Index.md", "home/Garden.md"),
        ("[[Garden]]", "work/deep/other.md", "work/deep/Garden.md"),
        ("[[deep/Garden|label]]", "", "work/deep/Garden.md"),
        ("[[work/deep/Garden.md]]", "home/Garden.md", "work/deep/Garden.md"),
        ("![[../home/Garden]]", "work/Plan.md", "home/Garden.md"),
        ("[[./Plan]]", "work/paper.txt", "work/Plan.md"),
        ("[[Index]]", "home/Garden.md", "home/Index.md"),
        ("[[Index]]", "work/Plan.md", "Index.md"),
        ("[[paper.txt]]", "", "work/paper.txt"),
        ("[[庭園]]", "", "home/Garden.md"),
        ("[[the yard]]", "", "home/Garden.md"),
        ("[[The great plan]]", "", "work/Plan.md"),
        ("[[project/alpha]]", "", "pages/project___alpha.md"),
        ("[[old/name]]", "", "pages/old%2Fname.md"),
        ("[[2024-01-15]]", "", "journals/2024_01_15.md"),
        ("[[Jan 15th, 2024]]", "", "journals/2024_01_15.md"),
        ("[[caf\u00e9]]", "", "cafe\u0301.md"),
        ("[[Roam note]]", "", "roam/20240115-x.org"),
        ("[[file:20240115-x.org][x]]", "roam/20240115-x.org", "roam/20240115-x.org"),
    ],
)
def test_a_name_leads_to_its_note(library: Library, link: str, from_uri: str, expected: str) -> None:
    assert resolve(library, link, from_uri) == LinkTarget(expected)


@pytest.mark.parametrize(
    ("link", "from_uri", "expected"),
    [
        ("[[Index#はじめに: a start]]", "", "Index.md:L5-L11"),
        ("[[Index#Deeper]]", "", "Index.md:L9-L11"),
        ("[[#End]]", "Index.md", "Index.md:L13-L16"),
        ("[[Index#^quote]]", "", "Index.md:L15-L16"),
        ("((64c1f0aa-0000-4000-8000-000000000001))", "", "pages/project___alpha.md:L1-L2"),
        ("[[id:2addf7dc-9d6d-4cb7-b841-d59295febdc2][x]]", "", "roam/20240115-x.org:L3-L7"),
        ("[[file:20240115-x.org::*Second]]", "", "roam/20240115-x.org:L8-L9"),
        ("[[Index#Nowhere]]", "", "Index.md"),
    ],
)
def test_a_heading_or_a_block_is_a_citation_that_can_be_read(
    library: Library, link: str, from_uri: str, expected: str
) -> None:
    target = resolve(library, link, from_uri)
    assert target is not None
    assert target.citation == expected
    reading = library.documents.read(ReadRequest(target.citation))
    assert reading.text
    assert link.startswith("[[#") or library.documents.read(ReadRequest(link)) == reading


@pytest.mark.parametrize(
    "link", ["[[Nowhere]]", "[[#Heading]]", "((00000000-0000-4000-8000-000000000000))", "", "[[../..]]"]
)
def test_a_link_to_nothing_leads_nowhere(library: Library, link: str) -> None:
    assert resolve(library, link) is None
