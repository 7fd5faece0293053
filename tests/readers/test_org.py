"""Org files are read with their title, date, tags and headlines."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bunko import chunkers, readers
from bunko.readers import org
from bunko.readers.outline import Heading, unify_line_ends
from bunko.types import Chunk

FIXTURE = Path(__file__).parents[1] / "fixtures" / "formats" / "garden.org"


def headings(source: str) -> list[tuple[int, int, str]]:
    """Return line, level and title of each headline."""
    lines = unify_line_ends(source)
    return [
        (lines.count("\n", 0, mark.start) + 1, mark.level, mark.title)
        for mark in org.scan_outline(lines)
        if isinstance(mark, Heading)
    ]


def chunk_file(source: str) -> list[Chunk]:
    return chunkers.build("auto", min_chars=0).chunks(readers.read(source.encode(), "a.org"))


def test_a_file_of_emacs_has_its_title_date_and_tags() -> None:
    text = readers.read(FIXTURE.read_bytes(), "garden.org")
    assert (text.title, text.date, text.tags) == ("庭の手帳", "2024-04-02", ("garden", "home", "vegetables"))
    assert text.media_type == "text/org"
    assert text.text[text.body_start :].startswith("A short introduction.")


def test_the_outline_is_the_one_that_emacs_sees() -> None:
    # What (org-map-entries) of Emacs 28.2 prints for this file: line, level, heading.
    assert headings(FIXTURE.read_text(encoding="utf-8")) == [
        (7, 1, "Spring"),
        (12, 2, "Tomatoes"),
        (18, 1, "秋の仕事"),
    ]


def test_sections_have_their_headlines_and_lines() -> None:
    found = chunk_file(FIXTURE.read_text(encoding="utf-8"))
    assert [(chunk.heading_path, chunk.first_line, chunk.last_line) for chunk in found] == [
        ((), 5, 5),
        (("Spring",), 7, 11),
        (("Spring", "Tomatoes"), 12, 17),
        (("秋の仕事",), 18, 19),
    ]
    assert found[2].heading == "** TODO [#A] Tomatoes                                   :vegetables:noexport:"


def test_states_priorities_counters_links_and_tags_are_not_part_of_a_title() -> None:
    source = (
        "#+TODO: OPEN(o) | CLOSED(c)\n"
        "* OPEN [#B] Buy [2/3] paint [50%] :home:\n"
        "* DONE\n"
        "* [[https://example.org][The manual]]\n"
        "*bold* is no headline\n"
        " * nor is this\n"
        "* :tagonly:\n"
    )
    assert [title for _, _, title in headings(source)] == ["Buy paint", "DONE", "The manual", ":tagonly:"]


def test_a_timestamp_keeps_its_time_and_a_title_of_two_lines_is_one() -> None:
    text = org.read("#+title: Two\n#+title: lines\n#+date: [2024-01-15 月 09:30]\n\ntext\n", "utf-8")
    assert (text.title, text.date) == ("Two lines", "2024-01-15T09:30:00")


def test_a_headline_ends_a_block_as_in_org_itself() -> None:
    source = "* A\n#+BEGIN_SRC text\nnot closed\n* B\n#+BEGIN_EXAMPLE\n,* quoted\n#+END_EXAMPLE\n"
    marks = list(org.scan_outline(source))
    assert [type(mark).__name__ for mark in marks] == ["Heading", "Heading", "Verbatim"]
    assert source[marks[2].start : marks[2].end].endswith("#+END_EXAMPLE")


def test_code_blocks_are_kept_whole_where_they_fit() -> None:
    code = "#+begin_src sh\n" + "\n\n".join(f"echo {number}" for number in range(20)) + "\n#+end_src"
    text = readers.read(f"* H\n{'Words. ' * 60}\n{code}\n{'More words. ' * 60}\n".encode(), "a.org")
    found = chunkers.build("headings", max_chars=700).chunks(text)
    assert any(code in chunk.text for chunk in found)


@given(st.text(alphabet="* #+:begindsrctx_[]<>\n\r\t2024-", max_size=200))
@settings(deadline=None, max_examples=100)
def test_the_outline_of_any_text_is_in_order_and_inside_of_it(source: str) -> None:
    lines = unify_line_ends(source)
    position = 0
    for mark in org.scan_outline(lines):
        assert position <= mark.start <= mark.end <= len(lines)
        position = mark.end


def test_hostile_files_take_no_more_than_a_moment() -> None:
    # Linear work takes well under a second, a quadratic step minutes.
    for source in (
        "#+begin_src\n" * 50_000,
        "* " + ":a" * 500_000 + ":\n",
        "*" * 1_000_000 + " x\n",
        "* [[" * 200_000,
        ":PROPERTIES:\n" * 100_000,
        ":PROPERTIES:\n" + ":a: b\n" * 100_000,
        "#+TODO: " + "A | " * 10_000 + "\n" + "* A x\n" * 10_000,
        " " * 1_000_000 + "\n* x",
    ):
        text = readers.read(source.encode(), "a.org")
        assert chunkers.build("auto").chunks(text) or not text.text[text.body_start :].strip()
