"""reStructuredText is read with its section titles, as docutils finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bunko import chunkers, readers
from bunko.readers import rst
from bunko.readers.outline import Heading, unify_line_ends

FIXTURE = Path(__file__).parents[1] / "fixtures" / "formats" / "moving.rst"
MANUAL = """\
.. _top:

########
Übersicht
########

:Date: 2024-01-15
:Tags: guide, 手引き

Intro paragraph::

    Not a title
    ===========

Erste Schritte
==============
Text directly below.

1. Numbered title
-----------------

- a list item
-------------

Not a title, because
it has two lines
----------------

日本語
------

.. note:: Inside
   -------------

   text

.. code-block:: text

   Literal
   =======

======  =====
table   cells
======  =====
a       b
======  =====

Zweites Kapitel
===============

----

a
-

.. target directly above
Third
-----

abc
--
"""


def titles(source: str) -> list[tuple[int, int, str]]:
    """Return line, level and title of each section."""
    lines = unify_line_ends(source)
    return [
        (lines.count("\n", 0, mark.end) + 1, mark.level, mark.title)
        for mark in rst.scan_outline(lines)
        if isinstance(mark, Heading)
    ]


def docutils_titles(source: str) -> list[tuple[int, int, str]]:
    """Return the same as docutils finds it: the line of the underline, the level and the title."""
    core: Any = pytest.importorskip("docutils.core")
    nodes: Any = pytest.importorskip("docutils.nodes")
    settings = {"report_level": 5, "halt_level": 5, "doctitle_xform": False, "warning_stream": False}
    document = core.publish_doctree(source, settings_overrides=settings)
    found = []
    for section in document.findall(nodes.section):
        level, parent = 1, section.parent
        while isinstance(parent, nodes.section):
            level, parent = level + 1, parent.parent
        found.append((level, section.next_node(nodes.title).astext()))
    lines = source.split("\n")
    numbered, line = [], 0
    for level, title in found:
        line = next(number for number in range(line, len(lines)) if lines[number].strip() == title)
        numbered.append((line + 2, level, title))
    return numbered


@pytest.mark.parametrize("source", [MANUAL, FIXTURE.read_text(encoding="utf-8")], ids=["by hand", "pandoc"])
def test_the_sections_are_those_of_docutils(source: str) -> None:
    assert titles(source) == docutils_titles(source)


def test_the_levels_follow_the_order_of_the_styles() -> None:
    assert titles(MANUAL) == [
        (5, 1, "Übersicht"),
        (16, 2, "Erste Schritte"),
        (20, 3, "1. Numbered title"),
        (30, 3, "日本語"),
        (49, 2, "Zweites Kapitel"),
        (54, 3, "a"),
        (58, 3, "Third"),
    ]


def test_title_date_and_tags_come_from_the_text() -> None:
    text = readers.read(MANUAL.encode(), "docs/manual.rst")
    assert (text.title, text.date, text.tags) == ("Übersicht", "2024-01-15", ("guide", "手引き"))
    post = b".. title: A post\n.. slug: a\n.. date: 2024-01-15 09:30:00 UTC\n.. tags: x, y\n\nText.\n"
    nikola = readers.read(post, "a.rst")
    assert (nikola.title, nikola.date, nikola.tags) == ("A post", "2024-01-15T09:30:00", ("x", "y"))


def test_sections_have_their_titles_and_the_lines_of_the_file() -> None:
    found = chunkers.build("auto", min_chars=0).chunks(readers.read(FIXTURE.read_bytes(), "moving.rst"))
    paths = {chunk.heading_path: (chunk.first_line, chunk.last_line) for chunk in found}
    assert paths[("引っ越しの計画", "引っ越しの後", "近所への挨拶")] == (29, 32)
    assert paths[("引っ越しの計画", "Before the move", "Boxes")] == (10, 22)
    source = FIXTURE.read_text(encoding="utf-8").split("\n")
    for chunk in found:
        assert "\n".join(source[chunk.first_line - 1 : chunk.last_line]).strip() == chunk.text.strip()


@pytest.mark.slow
def test_hostile_files_take_no_more_than_a_moment() -> None:
    # Linear work takes well under a second, a quadratic step minutes.
    for source in (
        "=\n" * 10_000,
        "x\n=\n" * 10_000,
        "::\n" * 10_000,
        " " * 500_000 + "x\n====\n",
        "a::\n" + "\n" * 50_000 + "b\n",
        "::" * 500_000 + "x\n",
        "x" * 1_000_000 + "\n" + "=" * 1_000_000 + "\n",
        "".join(f"{' ' * depth}a::\n\n" for depth in range(500)),
        ":a: b\n" * 20_000,
    ):
        text = readers.read(source.encode(), "a.rst")
        assert chunkers.build("auto").chunks(text)
