"""Source code is chunked by its definitions, with their qualified names and lines."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko import chunkers, readers
from bunko.readers import code
from bunko.readers.outline import Heading, Verbatim, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.types import Chunk, Text

needs_grammars = pytest.mark.skipif(
    subprocess.run(
        [sys.executable, "-c", "import tree_sitter_python, tree_sitter_bash"], capture_output=True
    ).returncode
    != 0,
    reason="needs the extra code",
)
PYTHON = '''\
"""A module."""
import os

LIMIT = 3

# Keeps numbers.
# 数を数える。
@decorated(
    1)
class Counter(Base):
    """Counts things."""

    start = 0

    def add(self, number):
        def inner():
            return number
        return inner()

    stop = 9

    async def reset(self): return None

if os.name == "nt":
    def only_here():
        return LIMIT

def main():
    return Counter

main()
'''
EXAMPLES = {
    "a.py": (
        PYTHON,
        {
            (): [(1, 4), (24, 24), (31, 31)],
            ("Counter",): [(6, 13), (20, 20)],
            ("Counter", "add"): [(15, 18)],
            ("Counter", "reset"): [(22, 22)],
            ("only_here",): [(25, 26)],
            ("main",): [(28, 29)],
        },
    ),
    "a.js": (
        "/** Adds. */\nexport function add(a, b) { return a + b }\n\nclass Box {\n  constructor() {}\n\n  open() {\n"
        "    1\n  }\n}\nconst twice = (x) => x * 2\nconst limit = 3\n",
        {
            ("add",): [(1, 2)],
            ("Box",): [(4, 4)],
            ("Box", "constructor"): [(5, 5)],
            ("Box", "open"): [(7, 10)],
            ("twice",): [(11, 11)],
            (): [(12, 12)],
        },
    ),
    "a.ts": (
        "interface Shape { area(): number }\n\nnamespace Geometry {\n  export class Circle implements Shape {\n"
        "    area() {\n      return 3\n    }\n  }\n}\n",
        {
            ("Shape",): [(1, 1)],
            ("Geometry",): [(3, 3)],
            ("Geometry", "Circle"): [(4, 4)],
            ("Geometry", "Circle", "area"): [(5, 9)],
        },
    ),
    "a.tsx": ("export const View = () => <p>hello</p>\n", {("View",): [(1, 1)]}),
    "a.go": (
        "package main\n\n// Push adds.\nfunc (s *Stack[T]) Push(x T) {\n}\n\ntype Stack struct {\n"
        "}\n\nfunc main() {\n}\n",
        {(): [(1, 1)], ("Stack", "Push"): [(3, 5)], ("Stack",): [(7, 8)], ("main",): [(10, 11)]},
    ),
    "a.rs": (
        "#[derive(Debug)]\nstruct Point { x: i32 }\n\nimpl<T> Shape<T> for Point {\n    fn area(&self) -> i32 {\n"
        "        0\n    }\n}\nmod other;\n",
        {("Point",): [(1, 2), (4, 4)], ("Point", "area"): [(5, 8)], (): [(9, 9)]},
    ),
    "a.java": (
        "package x;\n\n/** A list. */\npublic class List {\n    @Override\n"
        "    public int size() {\n        return 0;\n    }\n}\n",
        {(): [(1, 1)], ("List",): [(3, 4)], ("List", "size"): [(5, 9)]},
    ),
    "a.c": (
        '#include <stdio.h>\nstatic char *name(void) {\n    return "x";\n}\n\nstruct point {\n'
        "    int x;\n};\nstruct point p;\n",
        {(): [(1, 1), (9, 9)], ("name",): [(2, 4)], ("point",): [(6, 8)]},
    ),
    "a.cpp": (
        "namespace app {\ntemplate <class T>\nclass List {\n  T &size() { return x; }\n};\n}\n"
        "int app::count() {\n  return 1;\n}\n",
        {
            ("app",): [(1, 1)],
            ("app", "List"): [(2, 3)],
            ("app", "List", "size"): [(4, 6)],
            ("app", "count"): [(7, 9)],
        },
    ),
    "a.rb": (
        "module App\n  class Cart\n    def add(item)\n      item\n    end\n\n    def self.open\n"
        "    end\n    LIMIT = 3\n  end\nend\n",
        {
            ("App",): [(1, 1)],
            ("App", "Cart"): [(2, 2), (9, 11)],
            ("App", "Cart", "add"): [(3, 5)],
            ("App", "Cart", "open"): [(7, 8)],
        },
    ),
    "a.cs": (
        "namespace A.B {\n  [Serializable]\n  class C {\n    public C() { }\n\n    int M() {\n"
        "      return 1;\n    }\n  }\n}\n",
        {
            ("A", "B"): [(1, 1)],
            ("A", "B", "C"): [(2, 3)],
            ("A", "B", "C", "C"): [(4, 4)],
            ("A", "B", "C", "M"): [(6, 10)],
        },
    ),
    "a.php": (
        "<?php\nclass Cart {\n    function add() {\n        return 1;\n    }\n}\nfunction helper() {\n}\n",
        {(): [(1, 1)], ("Cart",): [(2, 2)], ("Cart", "add"): [(3, 6)], ("helper",): [(7, 8)]},
    ),
    "a.sh": ("set -e\n\n# Builds.\nbuild() {\n  make\n}\n", {(): [(1, 1)], ("build",): [(3, 6)]}),
}


def chunks(name: str, source: str) -> list[Chunk]:
    return chunkers.build("auto", min_chars=0).chunks(readers.read(source.encode(), name))


def sections(name: str, source: str) -> dict[tuple[str, ...], list[tuple[int, int]]]:
    """Return the lines under each qualified name."""
    text = readers.read(source.encode(), name)
    marks = [mark for mark in scan_outline(source, media_type=text.media_type) if isinstance(mark, Heading)]
    found: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    path: list[Heading] = []
    start = 0
    for mark in [*marks, Heading(len(source), len(source), 1, "", "")]:
        body = source[start : mark.start]
        if body.strip():
            blank = len(body) - len(body.lstrip("\n"))
            first, last = (
                source.count("\n", 0, start + blank) + 1,
                source.count("\n", 0, start + len(body.rstrip())) + 1,
            )
            found.setdefault(tuple(heading.title for heading in path if heading.title), []).append((first, last))
        path = [*(heading for heading in path if heading.level < mark.level), mark]
        start = mark.start
    return found


@needs_grammars
@pytest.mark.parametrize("name", EXAMPLES)
def test_definitions_have_their_qualified_names_and_lines(name: str) -> None:
    source, expected = EXAMPLES[name]
    assert sections(name, source) == expected


def test_every_language_has_an_example() -> None:
    suffixes = {name.removeprefix("a") for name in EXAMPLES}
    assert all(suffixes & set(language.suffixes) for language in code.LANGUAGES_BY_TYPE.values())


@needs_grammars
def test_code_between_definitions_belongs_to_what_is_around_it() -> None:
    found = {chunk.text.strip(): chunk for chunk in chunks("a.py", PYTHON)}
    assert found["stop = 9"].heading_path == ("Counter",)
    assert found["main()"].heading_path == ()
    assert found["main()"].first_line == 31
    whole = next(chunk for text, chunk in found.items() if text.startswith("# Keeps numbers."))
    assert whole.heading == "class Counter(Base):"


@needs_grammars
def test_positions_are_right_in_text_with_wide_characters_and_windows_line_ends() -> None:
    source = "# 数える関数😀\r\ndef 数える(値):\r\n    return '値'\r\n\r\n\r\ndef next_one():\r\n    pass\r\n"
    first, second = chunks("a.py", source)
    assert (first.heading_path, first.first_line, first.last_line) == (("数える",), 1, 3)
    assert (second.heading_path, second.first_line, second.last_line) == (("next_one",), 6, 7)
    assert second.text.startswith("def next_one")


@needs_grammars
def test_a_long_function_is_cut_between_lines_and_keeps_its_name() -> None:
    body = "".join(f"        value_{number} = 'A sentence. Then! What?'\n" for number in range(300))
    found = chunks("a.py", f"class A:\n    x = 1\n\n    def long(self):\n{body}")
    parts = [chunk for chunk in found if chunk.heading_path == ("A", "long")]
    assert len(parts) > 3
    assert all(part.text.splitlines()[-1].endswith(("What?'", "def long(self):")) for part in parts)


@pytest.mark.slow
def test_without_the_grammars_code_is_still_read() -> None:
    program = """
        import sys
        sys.modules["tree_sitter"] = None
        from bunko import chunkers, readers
        text = readers.read(b"def f():\\n    return 1\\n", "a.py")
        print(text.media_type, [chunk.text for chunk in chunkers.build("auto").chunks(text)])
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout == "text/x-python ['def f():\\n    return 1']\n"


SYNTAX = (
    "def class if : ( ) [ ] { } ; = < > * & fn impl struct func type \n \t # // /* */ ' \" ` x 1 :: . , @ $ \\ 日"
).split(" ")


@needs_grammars
@pytest.mark.parametrize("media_type", code.LANGUAGES_BY_TYPE)
@given(st.lists(st.sampled_from([*SYNTAX, "\n", "\r\n", " "]), max_size=60).map(" ".join) | st.text(max_size=80))
@settings(deadline=None, max_examples=30)
def test_any_text_has_an_outline_in_order_and_inside_of_it(media_type: str, source: str) -> None:
    lines = unify_line_ends(source)
    position = 0
    for mark in scan_outline(lines, media_type=media_type):
        assert position <= mark.start <= mark.end <= len(lines)
        position = mark.end if isinstance(mark, Heading) else mark.start
    covered: set[int] = set()
    for chunk in chunkers.build("auto", max_chars=40).chunks(Text(source, media_type, "utf-8")):
        covered.update(range(chunk.start, chunk.end))
    assert not [at for at, character in enumerate(source) if at not in covered and not character.isspace()]


HOSTILE = (
    "x=([" * 200_000,
    "(" * 500_000,
    "{" * 500_000,
    "x " * 450_000,
    "def f(): pass; " * 50_000,
    "class A{" * 50_000,
    "\n".join(" " * depth + "if x:" for depth in range(1200)),
    "a" * 990_000,
    " " * 990_000,
    "/*" * 400_000,
    "'" * 400_000,
    "<" * 400_000,
    "-\n" * 300_000,
    "else if(x)\n" * 50_000,
    "x=([" * 24_000,
    "x=([" * 2_400,
)


@needs_grammars
@pytest.mark.slow
@pytest.mark.parametrize("case", [0, 1, 6])
def test_hostile_code_is_given_up_after_a_time(case: int) -> None:
    # Without the limits, some of these take minutes.
    text = readers.read(HOSTILE[case].encode(), "a.py")
    assert all(isinstance(mark, Verbatim) for mark in scan_outline(text.text, media_type=text.media_type))


@needs_grammars
@pytest.mark.slow
@pytest.mark.parametrize("media_type", code.LANGUAGES_BY_TYPE)
@pytest.mark.parametrize("case", range(len(HOSTILE)))
def test_hostile_code_of_every_language_is_given_up_after_a_time(case: int, media_type: str) -> None:
    list(scan_outline(HOSTILE[case], media_type=media_type))


@needs_grammars
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_code_that_fills_the_memory_of_its_parser_is_cut_like_any_text() -> None:
    program = """
        import re
        from bunko.readers.outlines import scan_outline

        # Without a limit, the parser of Java needs 3 GB for it.
        print(len(list(scan_outline("a<" * 20_000, media_type="text/x-java"))))
        print(len(list(scan_outline("class A {}\\n" * 2_000, media_type="text/x-java"))))
        peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
        print(int(peak[1]) < 500_000)
        """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "2000", "True"]


def test_a_line_of_20_megabytes_is_cut_like_any_text() -> None:
    text = readers.read(b"var x=[" + b"1," * 10_000_000 + b"]", "a.js")
    assert list(scan_outline(text.text, media_type=text.media_type)) == [(0, len(text.text))]
