"""Links in double brackets are parsed as the programs that write them do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.text.wiki_links import WikiLink, find_wiki_links, parse_wiki_link


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[[Note]]", WikiLink("Note")),
        ("Note", WikiLink("Note")),
        ("[[folder/ノート.md|label]]", WikiLink("folder/ノート.md", label="label")),
        ("[[Note#Heading]]", WikiLink("Note", heading="Heading")),
        ("[[Note#Outer#Inner|x]]", WikiLink("Note", heading="Inner", label="x")),
        ("[[#Here]]", WikiLink("", heading="Here")),
        ("[[Note#^a1b2]]", WikiLink("Note", block="a1b2")),
        ("![[picture.png|300]]", WikiLink("picture.png", label="300", is_embed=True)),
        (r"[[Note\|in a table]]", WikiLink("Note", label="in a table")),
        ("[[file:garden.org::*Spring][the garden]]", WikiLink("garden.org", heading="Spring", label="the garden")),
        ("[[id:2ADDF7DC-1][x]]", WikiLink("", block="2addf7dc-1", label="x")),
        (
            "((64c1f0aa-0000-4000-8000-000000000001))",
            WikiLink("", block="64c1f0aa-0000-4000-8000-000000000001"),
        ),
        ("", WikiLink("")),
    ],
)
def test_a_link_has_its_parts(link: str, expected: WikiLink) -> None:
    assert parse_wiki_link(link) == expected


def test_the_links_of_a_text_are_found_in_order() -> None:
    text = "See [[A]], ![[B#C]] and {{embed [[D]]}}; [[not\na link]] [[]] [x](y) [[E|e]]."
    assert [(link.name, link.is_embed) for link in find_wiki_links(text)] == [
        ("A", False),
        ("B", True),
        ("D", True),
        ("E", False),
    ]


@given(st.text(alphabet="[]()!|#^:*{} \nabid-", max_size=60))
def test_any_text_can_be_parsed(text: str) -> None:
    parse_wiki_link(text)
    list(find_wiki_links(text))


def test_a_text_of_brackets_takes_no_more_than_a_moment() -> None:
    assert list(find_wiki_links("[[" * 200_000)) == []
    assert list(find_wiki_links("[[" + "a" * 500_000)) == []
