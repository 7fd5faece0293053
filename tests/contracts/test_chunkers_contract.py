"""What every chunker promises, over every kind and over text that nobody would write."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bunko import chunkers
from bunko.readers.outline import Heading, scan_outline, unify_line_ends
from bunko.types import Chunk, Text

FRAGMENTS = (
    *(
        "\n",
        "\n\n",
        "\r\n",
        "\r\n\r\n",
        "\r",
        " ",
        "    ",
        "\t",
        "\u3000",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u2028",
    ),
    *(
        "# 見出し",
        "## B ##",
        "### C {#c}",
        "#### deep",
        "#",
        "#no",
        "表題\n===",
        "Sub\n---",
        "---",
        "=",
        "-",
        "--",
    ),
    *("```", "````", "~~~", "```py", "- ```", "   ```", "<!--", "-->", "<!-- x -->", "<pre>", "</pre>"),
    *(
        "<h2>HTML</h2>",
        "<h1",
        "> 引用",
        "- item",
        "1. item",
        "| a | b |",
        "|---|:-:|",
        "| 1 | 2 |",
        "|",
        "|-|",
    ),
    *("a\tb\tc", "名前  HP  MP", "1 2 3", "+++", "title: x", "...", "{", "\\", "`"),
    *(
        "日本語の文です。",
        "これは「引用。」です！",
        "Dr. No said 3.14. Why?",
        "e.g. this",
        "、",
        "。",
        "word " * 9,
    ),
    *(
        "長い" * 40,
        "x" * 70,
        "https://example.org/?q=1!",
        "\x00",
        "\x1b[0m",
        "\ufeff",
        "\u202e\u2066",
        "\ud800",
    ),
    *(
        "👩‍👩‍👧‍👦",
        "👍🏽",
        "🇯🇵",
        "か\u3099",
        "e\u0301",
        "葛\U000e0100",
        "❤\ufe0f",
        "\u0301" * 12,
        "\u200d",
        "ﾊﾞ",
        "คำ",
    ),
)
TEXTS = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join),
    st.text(alphabet=" \t\n\ra。.#-=`|>\u0301", max_size=80),
    st.text(max_size=200),
)
LIMITS = st.fixed_dictionaries(
    {
        "max_chars": st.integers(1, 12) | st.integers(1, 120),
        "min_chars": st.integers(0, 60),
        "heading_levels": st.sets(st.integers(1, 6)).map(tuple),
        "size": st.integers(1, 12) | st.integers(1, 90),
        "overlap": st.integers(0, 100),
        "row_context": st.integers(0, 3),
    }
)
MEDIA_TYPES = st.sampled_from(["text/markdown", "text/plain"])
CLINGING = "\u200d\uff9e\uff9f🏻🏼🏽🏾🏿"
every_kind = pytest.mark.parametrize("kind", [*chunkers.KINDS, "pages"])


def document(content: str, media_type: str = "text/markdown", body: int = 0) -> Text:
    return Text(content, media_type, "utf-8", body_start=body)


def torn(content: str, at: int) -> bool:
    """Say whether a cut there would part a character from the marks that belong to it."""
    before, after = content[at - 1 : at], content[at : at + 1]
    if not before.strip() or not after.strip():
        return False
    return unicodedata.category(after)[0] == "M" or after in CLINGING or before == "\u200d"


def ink(content: str) -> int:
    return sum(not character.isspace() for character in content)


@every_kind
@given(content=TEXTS, limits=LIMITS, media_type=MEDIA_TYPES, data=st.data())
@settings(deadline=None, max_examples=100)
def test_every_non_blank_character_of_the_body_is_in_some_chunk(
    kind: str, content: str, limits: dict[str, Any], media_type: str, data: st.DataObject
) -> None:
    # A body begins at the beginning of a line.
    starts = [0, *(match.end() for match in re.finditer("\n", content))]
    body = data.draw(st.sampled_from(starts))
    covered: set[int] = set()
    for chunk in chunkers.build(kind, **limits).chunks(document(content, media_type, body)):
        assert body <= chunk.start
        covered.update(range(chunk.start, chunk.end))
    assert not [
        position
        for position in range(body, len(content))
        if position not in covered and not content[position].isspace()
    ]


@every_kind
@given(content=TEXTS, limits=LIMITS, media_type=MEDIA_TYPES)
@settings(deadline=None, max_examples=100)
def test_positions_point_back_to_the_source(kind: str, content: str, limits: dict[str, Any], media_type: str) -> None:
    found = chunkers.build(kind, **limits).chunks(document(content, media_type))
    assert [chunk.index for chunk in found] == list(range(len(found)))
    for chunk in found:
        assert 0 <= chunk.start < chunk.end <= len(content)
        written = content[chunk.start : chunk.end]
        assert written == written.rstrip()
        assert re.split(r"\r\n|\n|\r", written)[0].strip()
        assert chunk.first_line == line_of(content, chunk.start)
        assert chunk.last_line == line_of(content, chunk.end - 1)
        assert chunk.text.endswith(written)
        header = chunk.text.removesuffix(written)
        assert header in content
        if kind in ("prose", "paragraphs", "tokens"):
            assert not header


def line_of(content: str, at: int) -> int:
    return 1 + len(re.findall(r"\r\n|\n|\r", content[:at]))


@pytest.mark.parametrize("kind", [*(kind for kind in chunkers.KINDS if kind != "tokens"), "pages"])
@given(content=TEXTS, limits=LIMITS)
@settings(deadline=None, max_examples=100)
def test_no_chunk_is_longer_than_the_limit_unless_one_written_character_is(
    kind: str, content: str, limits: dict[str, Any]
) -> None:
    limit = limits["size"] if kind == "prose" else limits["max_chars"]
    for chunk in chunkers.build(kind, **limits).chunks(document(content)):
        if len(chunk.text) > limit:  # with the repeated header of a table
            assert all(torn(content, at) for at in range(chunk.start + 1, chunk.end))


@every_kind
@given(content=TEXTS, limits=LIMITS)
@settings(deadline=None, max_examples=100)
def test_no_written_character_is_torn_apart(kind: str, content: str, limits: dict[str, Any]) -> None:
    for chunk in chunkers.build(kind, **limits).chunks(document(content)):
        assert not torn(content, chunk.start)
        assert not torn(content, chunk.end)


@given(content=TEXTS, limits=LIMITS)
@settings(deadline=None, max_examples=100)
def test_a_small_paragraph_stays_alone_only_where_it_fits_nowhere(content: str, limits: dict[str, Any]) -> None:
    found = chunkers.build("paragraphs", **limits).chunks(document(content))
    assert all(before.end <= after.start for before, after in pairwise(found))
    for before, after in pairwise(found):
        for chunk in (before, after):
            if ink(content[chunk.start : chunk.end]) < limits["min_chars"]:
                assert after.end - before.start > limits["max_chars"]


class Outline:
    """The headings of a text, and the path of each character under those that split."""

    def __init__(self, content: str, levels: Sequence[int]) -> None:
        self.content = unify_line_ends(content)
        self.headings = [block for block in scan_outline(self.content) if isinstance(block, Heading)]
        self._levels = levels

    def text_start(self, at: int) -> int:
        """Return the first character from an offset on that is neither blank nor in a heading."""
        for heading in self.headings:
            if heading.start <= self._skip_blanks(at) < heading.end:
                at = heading.end
        return self._skip_blanks(at)

    def parts_from_its_text(self, heading: Heading, cut: int) -> bool:
        """Say whether a cut separates a heading from the first text under it or under its own headings."""
        at = self._skip_blanks(heading.end)
        for deeper in self.headings:
            if deeper.start <= at < deeper.end and deeper.level > heading.level:
                at = self._skip_blanks(deeper.end)
        is_text = at < len(self.content) and not any(other.start <= at < other.end for other in self.headings)
        return is_text and heading.start < cut <= at

    def row_start(self, heading: Heading) -> int:
        """Return where the headings begin that have no text between them and this one."""
        start = heading.start
        for earlier in reversed(self.headings):
            if earlier.start < start and self._skip_blanks(earlier.end) == start:
                start = earlier.start
        return start

    def _skip_blanks(self, at: int) -> int:
        return len(self.content) - len(self.content[at:].lstrip())

    def path(self, at: int) -> tuple[str, ...]:
        path: list[Heading] = []
        for heading in self.headings:
            if heading.start <= at and heading.level in self._levels:
                path = [*(parent for parent in path if parent.level < heading.level), heading]
        return tuple(heading.title for heading in path if heading.title)


SECTIONS = st.lists(
    st.sampled_from(
        [
            *("# 章\n", "## 節\n", "### 項\n\n", "#### 細目\n", "題\n==\n", "副題\n--\n", "#\n", "\n", "\n\n"),
            *(
                "短い文。\n",
                "長い文が続いています。" * 4 + "\n\n",
                "word " * 9 + "\n",
                "x" * 50 + "\n",
                "```\n# 印\n```\n",
            ),
            "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 9 + "\n",
        ]
    ),
    max_size=25,
).map("".join)
SECTION_LIMITS = st.fixed_dictionaries(
    {
        "max_chars": st.integers(40, 200),
        "min_chars": st.integers(0, 60),
        "heading_levels": st.sampled_from([(1, 2, 3), (1, 2, 3, 4, 5, 6), (2,), (1, 3)]),
        "overlap": st.integers(0, 30),
        "size": st.integers(5, 60),
    }
)


@pytest.mark.parametrize("kind", ["headings", "entry", "auto", "pages", "tokens"])
@given(content=SECTIONS, limits=SECTION_LIMITS)
@settings(deadline=None, max_examples=100)
def test_the_heading_path_of_a_chunk_is_that_of_its_first_text(kind: str, content: str, limits: dict[str, Any]) -> None:
    found = chunkers.build(kind, **limits).chunks(document(content))
    outline = Outline(content, range(1, 7) if kind == "tokens" else limits["heading_levels"])
    if not any(chunk.heading for chunk in found):
        return  # an entry that fits and a text that is a table have no sections
    for chunk in found:
        text_start = outline.text_start(chunk.start)
        if text_start < chunk.end:
            assert chunk.heading_path == outline.path(text_start)


@pytest.mark.parametrize("kind", ["headings", "entry", "auto", "pages"])
@given(content=SECTIONS, limits=SECTION_LIMITS)
@example(
    content="word " * 9 + "\n題\n==\n## 節\n### 項\n\n短い文。\n",  # the first heading is longer than a chunk
    limits={"max_chars": 42, "min_chars": 0, "heading_levels": (1, 3), "overlap": 0, "size": 5},
)
@settings(deadline=None, max_examples=100)
def test_no_chunk_ends_in_a_heading_whose_text_is_in_the_next(kind: str, content: str, limits: dict[str, Any]) -> None:
    outline = Outline(content, limits["heading_levels"])
    for chunk in chunkers.build(kind, **limits).chunks(document(content)):
        for heading in outline.headings:
            if chunk.start <= heading.start and outline.parts_from_its_text(heading, chunk.end):
                # Only a row of headings that would leave no space for the text.
                row_start = min(chunk.start, outline.row_start(heading))
                assert outline.text_start(heading.start) - row_start > limits["max_chars"] // 2


@every_kind
@given(blank=st.text(alphabet=" \t\r\n\u3000\x0b\x85\u2028", max_size=30), limits=LIMITS)
@settings(deadline=None, max_examples=100)
def test_blank_text_has_no_chunks(kind: str, blank: str, limits: dict[str, Any]) -> None:
    assert chunkers.build(kind, **limits).chunks(document(blank)) == []


@every_kind
@given(content=TEXTS, limits=LIMITS)
@settings(deadline=None, max_examples=30)
def test_the_same_text_gives_the_same_chunks(kind: str, content: str, limits: dict[str, Any]) -> None:
    first: list[Chunk] = chunkers.build(kind, **limits).chunks(document(content))
    assert chunkers.build(kind, **limits).chunks(document(content)) == first


@every_kind
@pytest.mark.parametrize(
    "content",
    [
        "> a\n" + "===\n" * 20_000,
        "- a\n" + "--\n" * 20_000,
        "```a\n" * 20_000,
        "".join(f"{'`' * length}\n" for length in range(400, 3, -1)),
        "<!--\n" * 20_000,
        "# " + " " * 100_000 + "x",
        " " * 100_000 + "x",
        "\n" * 100_000 + "x",
        "e" + "\u0301" * 50_000,
        "|a|b|\n|-|-|\n" + "|1|2|\n" * 2_000,
        "a.b!c?" * 20_000,
        "<h1>" * 20_000,
        "# a\n" * 5_000,
        "a\n\n" * 5_000,
        "x {" * 20_000 + "}",
        "[" * 50_000,
    ],
    ids=range(16),
)
def test_hostile_text_takes_no_more_than_a_moment(kind: str, content: str) -> None:
    # Linear work takes well under a second here, a quadratic step minutes.
    before = time.process_time()
    found = chunkers.build(kind).chunks(document(content))
    assert time.process_time() - before < 5
    assert sum(ink(content[chunk.start : chunk.end]) for chunk in found) >= ink(content)
