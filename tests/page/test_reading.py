"""Documents as people read them: each format by its own structure, in parts that fit together, with their links."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from html import unescape
from itertools import pairwise
from typing import Any

import pytest

from bunko.interfaces.page.document import show_document
from bunko.library.access import LibraryAccess
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Text
from bunko.types.access import ALL_RIGHTS, Caller

Read = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("reading")
    (folder / "docs").mkdir()
    environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "3600", "BUNKO_EMBEDDING_PROVIDER": "none"}
    with open_library(locate_library(library=folder / "library", environ=environ), environ=environ) as library:
        library.add(folder / "docs", name="docs", description="Documents.")
        yield library


@pytest.fixture
def read(library: Library) -> Read:
    """Return what is shown of a text, among some other documents."""

    def show(
        text: str,
        media_type: str = "text/markdown",
        *,
        uri: str = "a/b.md",
        others: tuple[str, ...] = (),
        body: int = 0,
        **asked: Any,
    ) -> dict[str, Any]:
        documents = {other: Text("# Other\n", "text/markdown", "utf-8") for other in others}
        documents[uri] = Text(text, media_type, "utf-8", title="The title", body_start=body)
        library.replace_texts(library.resolve_tool("docs"), documents)
        access = LibraryAccess(library, Caller("tester", "http", ALL_RIGHTS))
        start = time.process_time()
        shown = show_document(access, "docs", uri, **asked)
        return shown | {"seconds": time.process_time() - start}

    return show


def html(shown: dict[str, Any]) -> str:
    assert shown["view"] == "read"
    return str(shown["html"])


def test_blocks_have_the_names_of_their_lines(read: Read) -> None:
    assert html(read("# The title\n\n## Part `one` {#one}\n\ntext\nmore\n\n- a\n- b\n\n```\ncode\n\nend\n```\n")) == (
        '<h3 id="L3">Part <code>one</code> </h3>\n<p id="L5">text\n<span id="L6"></span>more</p>\n'
        '<ul>\n<li id="L8">a</li>\n<li id="L9">b</li>\n</ul>\n'
        '<pre><code><span id="L12">code</span>\n<span id="L13"></span>\n<span id="L14">end</span></code></pre>\n'
    )


def test_what_was_found_is_marked_where_it_stands(read: Read) -> None:
    text = "one needle\n\n- a\n- a needle\n\n| x |\n|---|\n| needle |\n\n```\nfirst\nneedle\n```\n"
    shown = html(read(text, hit="L4-L12", terms="needle"))
    assert "one needle" in shown
    assert '<li id="L4"><p class="hit tight">a <mark>needle</mark></p></li>' in re.sub(r"\s*\n\s*", "", shown)
    assert '<tr class="hit" id="L8">' in shown
    assert 'id="L11">first</span>' in shown.replace(' class="hit"', "")
    assert "<mark>needle</mark></span></code>" in shown


def test_footnotes_boxes_images_and_marks_of_site_generators(read: Read) -> None:
    shown = html(
        read(
            "text[^1] {{< new >}}`{{< kept >}}`\n\n[^1]: A footnote.\n\n::: tip Look\n![a bridge](x.png)\n:::\n\n"
            "/// note | Mind\nthe gap\n///\n\n> [!NOTE]\n> Careful\n\n{* ../x.py hl[1] *}\n\n"
            "<img src='x.png' alt='a tower'>\n"
        )
    )
    assert '<p id="L1">text<sup>1</sup> <code>{{&lt; kept &gt;}}</code></p>' in shown
    assert '<p id="L3"><sup>1</sup>A footnote.</p>' in shown
    assert '<div class="callout"><p class="callout-title" id="L5">Look</p>' in shown
    assert '<span class="image">a bridge</span>' in shown
    assert re.search(
        r'<div class="callout"><p class="callout-title" id="L9">Mind</p>\n<p id="L10">the gap</p>\n</div>', shown
    )
    assert "<strong>Note</strong>" in shown
    assert "x.py" not in shown
    assert "a tower" in shown


def test_japanese_lines_are_joined_without_a_blank(read: Read) -> None:
    assert "鏡は<span" in html(read("望遠鏡の鏡は\n柔らかい布で磨く。\n"))


def test_front_matter_is_not_read_but_what_was_found_in_it_is_shown_in_the_source(read: Read) -> None:
    text = "---\ntitle: x\n---\nbody\n"
    assert html(read(text, body=17)) == '<p id="L4">body</p>\n'
    assert read(text, body=17, hit="L2")["view"] == "source"
    assert read("a\n\n<!--\nhidden\n-->\n", hit="L4")["view"] == "source"


def test_code_and_logs_are_shown_as_source(read: Read) -> None:
    assert read("x = 1\n", "text/x-python", uri="a.py")["view"] == "source"
    assert read("12:00 error\n", "text/plain", uri="server.log")["view"] == "source"
    assert html(read("Dear <b>\n  you\n", "text/plain", uri="a.txt")) == (
        '<p class="plain"><span id="L1"></span>Dear &lt;b&gt;\n<span id="L2"></span>  you</p>'
    )
    assert 'id="L1">x = 1</span>' in html(read("x = 1\n", "text/x-python", uri="a.py", view="read"))


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("[x](c.md)", "/documents/docs/a/c.md"),
        ("[x](../d.md#some-part)", "/documents/docs/d.md?section=some-part"),
        ("[x](./)", "/documents/docs/a/index.md"),
        ("[x](/docs/deep/page/)", "/documents/docs/site/docs/deep/page.md"),
        ("[x](/docs/deep/page.html)", "/documents/docs/site/docs/deep/page.md"),
        ("[x](c)", "/documents/docs/a/c.md"),
        ("[[d]]", "/documents/docs/d.md"),
        ("[[d#Some part|x]]", "/documents/docs/d.md?section=Some%20part"),
        ("<a href='c.md'>x</a>", "/documents/docs/a/c.md"),
        ("[x][c]\n\n[c]: c.md", "/documents/docs/a/c.md"),
        ("[x](https://example.com/a?b=c&d)", "https://example.com/a?b=c&d"),
        ("[x](gone.md)", ""),
        ("[x](/docs/gone/)", ""),
        ("[x](../../../etc/passwd)", ""),
        ("[[gone]]", ""),
        ("[x](mailto:a@example.com)", "mailto:a@example.com"),
    ],
)
def test_a_link_leads_to_a_document_or_to_another_site_or_is_text(read: Read, link: str, leads_to: str) -> None:
    others = ("a/c.md", "d.md", "a/index.md", "site/docs/deep/page.md")
    shown = html(read(link, others=others))
    assert [unescape(address) for address in re.findall(r'href="([^"]*)"', shown)] == ([leads_to] if leads_to else [])
    assert ('target="_blank"' in shown) == leads_to.startswith("https")


def test_a_link_within_a_document_leads_to_the_line_of_its_heading(read: Read) -> None:
    shown = html(read("[a](#first-part) [b](#own) [c](#gone)\n\n## First part\n\n## Second {#own}\n"))
    assert re.findall(r'data-line="(\d+)"', shown) == ["3", "5"]


def all_parts(read: Read, text: str, media_type: str = "text/markdown", **asked: Any) -> list[dict[str, Any]]:
    parts = [read(text, media_type, **asked)]
    while parts[-1]["after"]:
        lines = re.findall(r"lines=([\d-]+)", parts[-1]["after"])[0]
        parts.append(read(text, media_type, lines=lines))
    return parts


def test_parts_follow_each_other_and_begin_where_blocks_begin(read: Read) -> None:
    code = "```\n" + "\n".join(f"code {number}" for number in range(500)) + "\n```\n"
    table = "| h |\n|---|\n" + "".join(f"| cell {number} |\n" for number in range(500))
    text = f"# A\n\n{code}\n## B\n\n{table}\n## C\n\n" + "- item\n" * 500 + "\n## D\n\nthe end\n"
    parts = all_parts(read, text)
    assert all(after["first"] == before["last"] + 1 for before, after in pairwise(parts))
    assert parts[-1]["last"] == text.count("\n")
    for part in parts:
        shown = html(part)
        assert "```" not in shown
        assert "| cell" not in shown
        if "cell " in shown:
            assert "<th>h</th>" in shown
        if "code " in shown:
            assert shown.count("<pre>") == 1
    names = [name for part in parts for name in re.findall(r'id="(L\d+)"', html(part))]
    assert len(names) == len(set(names))
    back = re.findall(r"lines=([\d-]+)", parts[-1]["before"])[0]
    assert read(text, lines=back)["last"] == parts[-1]["first"] - 1


def test_a_part_around_a_hit_contains_it(read: Read) -> None:
    text = "\n\n".join(f"Paragraph {number}." for number in range(5000))
    shown = read(text, hit="L8001", terms="Paragraph")
    assert shown["first"] < 8001 < shown["last"]
    assert 'class="hit" id="L8001"' in html(shown)


@pytest.mark.parametrize("hit", ["", "L4003"])
def test_a_megabyte_is_shown_within_a_second(read: Read, hit: str) -> None:
    section = "## Heading\n\n" + "A sentence with *marks* and a [link](x.md). " * 20 + "\n\n- item\n- item\n\n"
    shown = read(section * (1_000_000 // len(section)), hit=hit, terms="sentence")
    assert shown["after"]
    assert len(html(shown)) > 10_000
    assert shown["seconds"] < 1


@pytest.mark.parametrize(
    ("text", "media_type", "line"),
    [
        ("# T\n\nSee ![a\nb](c.png) and\nword.\n", "text/markdown", 5),
        ("T\n=\n\n.. |s| replace:: one\n   two\n\nA |s| of\nword.\n", "text/x-rst", 8),
        ("T\n=\n\n.. figure:: a.png\n\n   A word.\n", "text/x-rst", 6),
    ],
)
def test_what_goes_over_lines_does_not_move_those_below(read: Read, text: str, media_type: str, line: int) -> None:
    shown = html(read(text, media_type, hit=f"L{line}", terms="word"))
    assert re.search(rf'id="L{line}"[^>]*>(?:</span>)?(?:A )?<mark>word</mark>', shown)
    assert 'class="hit"' in shown


def test_a_link_to_the_page_of_a_folder_leads_there_beside_a_page_of_its_name(read: Read) -> None:
    shown = html(read("[x](c/README.md) [y](c.md)\n", others=("a/c.md", "a/c/README.md")))
    assert re.findall(r'href="([^"]*)"', shown) == ["/documents/docs/a/c/README.md", "/documents/docs/a/c.md"]


def test_a_line_of_blanks_above_a_table_takes_no_time(read: Read) -> None:
    shown = read("| a | b |\n" + " " * 50_000 + "| c\n" + "| 1 | 2 |\n" * 400, lines="300-400")
    assert "| 1 | 2 |" in html(shown)
    assert shown["seconds"] < 1


def test_org_is_read_by_its_own_structure(read: Read) -> None:
    text = (
        "#+TITLE: x\n* TODO Plan :tag:\n:PROPERTIES:\n:ID: a\n:END:\nSome *bold*, /italic/, =code= and "
        "[[https://example.com/][a site]].\n"
        "- [ ] open\n- term :: what it means\n#+BEGIN_SRC python\nx = *1*\n#+END_SRC\n#+BEGIN_QUOTE\nsaid\n"
        "#+END_QUOTE\n"
        "| a | b |\n|---+---|\n| 1 | 2 |\n"
    )
    shown = html(read(text, "text/org", uri="a.org"))
    assert '<h2 id="L2">Plan</h2>' in shown
    assert "<strong>bold</strong>, <em>italic</em>, <code>code</code>" in shown
    assert ">a site</a>" in shown
    assert '<li id="L7">☐ open</li>' in shown
    assert "<strong>term</strong> what it means" in shown
    assert '<pre><code><span id="L10">x = *1*</span></code></pre>' in shown
    assert '<blockquote id="L13">\n<p>said</p>' in shown
    assert "<th>a</th>" in shown
    assert 'id="L17">\n<td>1</td>' in shown
    assert "PROPERTIES" not in shown


def test_restructured_text_is_read_by_its_own_structure(read: Read) -> None:
    text = (
        "Title\n=====\n\nSee :class:`~a.b.Name` and :ref:`the rest <rest>`.\n\n.. note:: Take care\n\n.. "
        "versionadded:: 1.2\n   Something.\n\n"
        "Code::\n\n   x = 1\n\n==  ==\na   b\n==  ==\n1   2\n==  ==\n\n.. unknown:: arg\n   :opt: 1\n\n   "
        "*content*\n\n.. _rest:\n\nRest\n----\n\nEnd\n"
    )
    shown = html(read(text, "text/x-rst", uri="a.rst", hit="L24"))
    assert '<h2 id="L1">Title</h2>' in shown
    assert "<code>Name</code>" in shown
    assert '<a data-line="28" href="/documents/docs/a.rst?section=rest"' in shown
    assert "Take care" in shown
    assert "<strong>versionadded</strong> 1.2\n" in shown
    assert "Something." in shown
    assert '<span id="L13">x = 1</span>' in shown
    assert '<p id="L18">1</p>' in shown
    assert (
        '<p id="L24" class="hit"><em>content</em></p>' in shown
        or '<p class="hit" id="L24"><em>content</em></p>' in shown
    )
    assert '<h3 id="L28">Rest</h3>' in shown


def test_a_sheet_has_the_names_of_its_cells(read: Read) -> None:
    text = "# Book\n\n## Prices!B3:C5\n\n| name | price |\n| --- | --- |\n| tea | 2 |\n| milk | 1 |\n"
    shown = html(read(text, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", uri="a.xlsx"))
    assert re.findall(r'class="cell"[^>]*>(\w+)<', shown) == ["3", "B", "C", "4", "5"]


def test_a_mail_has_a_head_and_keeps_its_lines(read: Read) -> None:
    text = "Subject: *Hi*\nFrom: Ann <ann@example.com>\n\nHello,\n    see <b>you</b>\n\n> quoted\n----\nAnn\n"
    shown = html(read(text, "message/rfc822", uri="a.eml"))
    assert "<strong>Subject:</strong> *Hi*<br>" in shown
    assert "&lt;ann@example.com&gt;" in shown
    assert "Hello,<br>" in shown
    assert "&lt;b&gt;you&lt;/b&gt;" in shown
    assert "<blockquote" in shown


def test_the_text_of_extracted_pages_is_not_taken_for_markup(read: Read) -> None:
    shown = html(read("# Title\n\n1 < 2 <b>x</b>\n\n    indented\n", "text/html", uri="a.html"))
    assert "1 &lt; 2 &lt;b&gt;x&lt;/b&gt;" in shown
    assert "<pre>" not in shown
