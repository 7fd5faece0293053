"""Files that a .gitignore leaves out, compared with git itself."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.sources.gitignore import PathPatterns, parse_patterns
from tests.sources.folders import folder, reasons, remember, scan_uris, uris, write


def test_gitignore_files_apply_below_their_folder_and_the_deeper_one_wins(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "*.txt\n/top.md\nbuild/\n")
    write(tmp_path / "keep/.gitignore", "!wanted.txt\n")
    for uri in [
        "top.md",
        "x/top.md",
        "a.txt",
        "keep/wanted.txt",
        "keep/b.txt",
        "build/c.md",
        "x/build/d.md",
        "build.md",
    ]:
        write(tmp_path / uri)
    assert scan_uris(tmp_path) == ["build.md", "keep/wanted.txt", "x/top.md"]
    assert len(scan_uris(tmp_path, respect_gitignore=False)) == 8


def test_nothing_is_taken_back_from_an_ignored_folder(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "secret/\n!secret/a.md\nopen/*\n!open/b.md\n")
    write(tmp_path / "secret/.gitignore", "!*\n")
    for uri in ["secret/a.md", "open/b.md", "open/c.md"]:
        write(tmp_path / uri)
    assert scan_uris(tmp_path) == ["open/b.md"]


def test_what_a_gitignore_says_of_a_folder_does_not_outweigh_what_another_says_of_a_file_in_it(
    tmp_path: Path,
) -> None:
    write(tmp_path / ".gitignore", "*.txt\ntmp/\n")
    write(tmp_path / "a/.gitignore", "!tmp/\n")
    for uri in ["a/tmp/x.txt", "a/tmp/x.md", "tmp/y.md"]:
        write(tmp_path / uri)
    assert scan_uris(tmp_path) == ["a/tmp/x.md"]


def test_a_file_that_a_new_gitignore_takes_out_is_deleted(tmp_path: Path) -> None:
    write(tmp_path / "a.md")
    write(tmp_path / "b.md")
    source = folder(tmp_path)
    known = remember(source)
    write(tmp_path / ".gitignore", "b.md\n")
    assert source.scan(known).deleted == ["b.md"]


def test_a_gitignore_may_have_a_bom_and_windows_line_ends_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", b"\xef\xbb\xbfa.md\r\n\xff\xfe*\r\nb.md")
    for uri in ["a.md", "b.md", "c.md"]:
        write(tmp_path / uri)
    assert scan_uris(tmp_path) == ["c.md"]


def test_a_gitignore_that_is_no_plain_file_is_reported_and_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "a.md")
    os.mkfifo(tmp_path / ".gitignore")
    write(tmp_path / "sub/b.md")
    (tmp_path / "sub/.gitignore").symlink_to("../a.md")
    scan = folder(tmp_path).scan({})
    assert uris(scan.added) == ["a.md", "sub/b.md"]
    assert "not a regular file" in reasons(scan)[".gitignore"]
    assert "through a link" in reasons(scan)["sub/.gitignore"]


def test_a_pattern_made_to_take_forever_does_not(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "*a" * 40 + "b\n" + "**/a/" * 40 + "b\n")
    write(tmp_path / ("a" * 250 + ".md"))
    write(tmp_path / ("a/" * 100 + "a.md"))
    assert len(scan_uris(tmp_path)) == 2


def test_a_gitignore_of_any_size_is_read_in_time_that_grows_with_its_length(tmp_path: Path) -> None:
    write(
        tmp_path / ".gitignore",
        "[" + "[:" * 200_000 + "\n" + "".join(f"name{at}\n" for at in range(5_000)) + "last.md\n",
    )
    for name in ("a.md", "last.md", *(f"{at}.md" for at in range(200))):
        write(tmp_path / name)
    assert "last.md" not in scan_uris(tmp_path)
    assert len(scan_uris(tmp_path)) == 201


def test_japanese_names_are_matched_by_the_character(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "/下書き/\n第?章.md\n[あ-お].md\n")
    for uri in ["下書き/a.md", "第一章.md", "第十一章.md", "う.md", "か.md"]:
        write(tmp_path / uri)
    assert scan_uris(tmp_path) == ["か.md", "第十一章.md"]


# git takes `?` and `[…]` for a byte and we for a character, so these stay within ASCII.
NAMES = [
    "a",
    "b",
    "ab",
    "abc",
    "a.md",
    "x.md",
    "A.md",
    "[a].md",
    "!x.md",
    "#x.md",
    "a-b",
    "z]",
    "d.d",
    "a\\b.md",
]


SETS = ["[ab]", "[!a]", "[^b]", "[a-c]", "[]z]", "[z-a]", "[a-]", "[\\]a]", "[[:alpha:]]", "[[:nope:]]", "["]


GLOBS = [
    *SETS,
    "a",
    "b",
    "ab",
    ".md",
    "*.md",
    "*",
    "?",
    "]",
    "\\*",
    "\\[",
    "\\a",
    "\\",
    "#",
    "!",
    " ",
    "\\ ",
    "-",
]


def random_pattern(chance: random.Random) -> str:
    segments = [
        chance.choice([*NAMES, "**", "*", "".join(chance.choices(GLOBS, k=chance.randint(1, 3)))])
        for _ in range(chance.choice([1, 1, 2, 3]))
    ]
    negated, anchored, folders_only = (chance.random() < 0.25 for _ in range(3))
    # Two stars inside a segment are one by the book, yet git takes `a**/b` for `a` and `**/b`.
    path = "/".join(segment if segment == "**" else segment.replace("**", "*") for segment in segments)
    return "!" * negated + "/" * anchored + path + "/" * folders_only


def random_tree(chance: random.Random, here: Path, depth: int = 0) -> None:
    for name in chance.sample([*NAMES, "new\nline"], chance.randint(2, 7)):
        if depth < 3 and chance.random() < 0.45:
            (here / name).mkdir()
            random_tree(chance, here / name, depth + 1)
        else:
            write(here / (name if name.endswith(".md") else f"{name}.txt"))
    if depth == 0 or chance.random() < 0.35:
        lines = [random_pattern(chance) for _ in range(chance.randint(1, 5))]
        write(here / ".gitignore", chance.choice(["\n", "\r\n"]).join(lines))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
@pytest.mark.parametrize("seed", range(60))
def test_random_gitignore_files_mean_what_they_mean_to_git(tmp_path: Path, seed: int) -> None:
    random_tree(random.Random(seed), tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    listed = subprocess.run(
        ["git", "-C", tmp_path, "ls-files", "--others", "-z", "--exclude-per-directory=.gitignore"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout.decode()
    assert scan_uris(tmp_path) == sorted(uri for uri in listed.split("\0") if uri.endswith((".md", ".txt")))


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("*?[]!/\\-^:#")), st.text())
def test_no_pattern_is_too_strange_to_be_asked(text: str, path: str) -> None:
    for folder_wanted in (True, False):
        assert parse_patterns(text).verdict(path, path, is_folder=folder_wanted) in (True, False, None)


def test_the_last_pattern_that_matches_decides() -> None:
    rules = PathPatterns(["*.md", "!a.md", "docs/a.md", "!b/"])
    assert rules.verdict("x.md", "x.md", is_folder=False) is True
    assert rules.verdict("a.md", "a.md", is_folder=False) is False
    assert rules.verdict("docs/a.md", "a.md", is_folder=False) is True
    assert rules.verdict("b", "b", is_folder=False) is None
    assert rules.verdict("b", "b", is_folder=True) is False
    many = PathPatterns(["*.md", *(f"{'!' if at % 2 else ''}{at % 150}.md" for at in range(451)), "!x/*.md", "x/7.md"])
    assert [many.verdict(path, path, is_folder=False) for path in ("0.md", "1.md", "200.md")] == [True, False, True]
    assert [many.verdict(f"x/{name}", name, is_folder=False) for name in ("0.md", "7.md")] == [False, True]
