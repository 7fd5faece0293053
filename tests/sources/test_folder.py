"""What a folder source sees, skips, reports and remembers, on real files."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import SourceError
from bunko.protocols import Scan, Source
from bunko.sources.folder import Folder
from bunko.sources.gitignore import PathPatterns, parse_patterns
from bunko.types import Fingerprint, SourceEntry

LONG_AGO = 1_700_000_000 * 10**9
SECOND = 10**9
NOBODY = 65534


def folder(root: Path, **options: object) -> Folder:
    settings: dict[str, object] = {
        "extensions": [".md", ".txt"],
        "exclude_dirs": [".git", "node_modules"],
        "max_file_bytes": 1_000_000,
    }
    return Folder(root, **{**settings, **options})  # type: ignore[arg-type]


def write(path: Path, content: str | bytes = "words", *, modified_ns: int = LONG_AGO) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, ns=(modified_ns, modified_ns))
    return path


def remember(source: Folder) -> dict[str, Fingerprint]:
    known = {}
    for found in source.scan({}).added:
        content, entry = source.read(found)
        known[entry.uri] = Fingerprint(hashlib.sha256(content).hexdigest(), entry.size, entry.modified_ns)
    return known


def uris(entries: list[SourceEntry]) -> list[str]:
    return [entry.uri for entry in entries]


def found(root: Path, **options: object) -> list[str]:
    return uris(folder(root, **options).scan({}).added)


def reasons(scan: Scan) -> dict[str, str]:
    return {problem.uri: problem.reason for problem in scan.problems}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that an ordinary user can reach, unlike tmp_path when root runs the tests."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Give up root's right to read everything, if we have it."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_files_at_every_depth_are_found_in_the_order_of_their_uris(tmp_path: Path) -> None:
    for uri in ["b.md", "a/z.md", "a.md", "a/b/c/d.txt", "あ/い.md"]:
        write(tmp_path / uri)
    assert found(tmp_path) == ["a.md", "a/b/c/d.txt", "a/z.md", "b.md", "あ/い.md"]


def test_an_entry_tells_size_and_time(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "12345", modified_ns=LONG_AGO + 7)
    assert folder(tmp_path).scan({}).added == [SourceEntry("a.md", 5, LONG_AGO + 7)]


def test_extensions_are_compared_without_regard_to_case(tmp_path: Path) -> None:
    for name in ["a.MD", "b.Md", "c.txt", "d.pdf", "md", "e.md.bak"]:
        write(tmp_path / name)
    assert found(tmp_path, extensions=["md", ".TXT"]) == ["a.MD", "b.Md", "c.txt"]


def test_excluded_folders_are_skipped_by_name_at_any_depth_and_files_of_that_name_are_not(
    tmp_path: Path,
) -> None:
    for uri in [
        "node_modules/a.md",
        "x/node_modules/b.md",
        "x/c.md",
        ".git/d.md",
        "drafts.md/e.md",
        "y/drafts.md",
    ]:
        write(tmp_path / uri)
    assert found(tmp_path, exclude_dirs=[".git", "node_modules/", "drafts.md"]) == ["x/c.md", "y/drafts.md"]


def test_hidden_files_and_folders_are_ordinary_ones(tmp_path: Path) -> None:
    write(tmp_path / ".hidden/a.md")
    write(tmp_path / ".note.md")
    assert found(tmp_path) == [".hidden/a.md", ".note.md"]


def test_include_takes_only_what_matches_it_or_lies_in_a_folder_that_does(tmp_path: Path) -> None:
    for uri in ["a.md", "docs/b.md", "docs/deep/c.md", "docs/deep/drafts/d.md", "x/docs/e.md", "x/README.md"]:
        write(tmp_path / uri)
    assert found(tmp_path, include=["/docs/"]) == ["docs/b.md", "docs/deep/c.md", "docs/deep/drafts/d.md"]
    assert found(tmp_path, include=["/docs/", "!drafts/"]) == ["docs/b.md", "docs/deep/c.md"]
    assert found(tmp_path, include=["README.md", "x/**/e.md"]) == ["x/README.md", "x/docs/e.md"]


def test_exclude_wins_over_include_and_over_what_a_gitignore_takes_back(tmp_path: Path) -> None:
    for uri in ["docs/a.md", "docs/private/b.md", "docs/c.tmp.md"]:
        write(tmp_path / uri)
    write(tmp_path / ".gitignore", "!private/\n")
    assert found(tmp_path, include=["docs/"], exclude=["private/", "*.tmp.md"]) == ["docs/a.md"]


def test_odd_names_just_work(tmp_path: Path) -> None:
    names = [
        "new\nline.md",
        "quote'\"`.md",
        " space .md",
        "tab\t.md",
        "\u202ebidi\u202c.md",
        "👩‍👩‍👧‍👦.md",
        "back\\slash.md",
        "*?[x].md",
        "-rf.md",
        "%2e%2e.md",
        "か\u3099.md",
        "が.md",
        "あ" * 84 + ".md",
        "\x7f\x01.md",
    ]
    for name in names:
        write(tmp_path / "odd\nfolder" / name)
    source = folder(tmp_path)
    scan = source.scan({})
    assert uris(scan.added) == sorted(f"odd\nfolder/{name}" for name in names)
    assert scan.problems == []
    assert all(source.read(entry) == (b"words", entry) for entry in scan.added)


def test_a_tree_deeper_than_the_recursion_limit_is_walked(tmp_path: Path) -> None:
    write(tmp_path / "top.md")
    deepest = tmp_path
    for _ in range(sys.getrecursionlimit() + 200):
        deepest /= "d"
        deepest.mkdir()
    bottom = write(deepest / "a.md")
    try:
        assert found(tmp_path) == [bottom.relative_to(tmp_path).as_posix(), "top.md"]
    finally:
        # Whoever clears the temporary folder may not be able to go that deep.
        bottom.unlink()
        os.removedirs(deepest)


def test_hard_links_are_files_of_their_own(tmp_path: Path) -> None:
    os.link(write(tmp_path / "a.md"), tmp_path / "b.md")
    assert found(tmp_path) == ["a.md", "b.md"]


def test_a_root_that_is_itself_a_link_is_resolved_once(tmp_path: Path) -> None:
    write(tmp_path / "real/a.md")
    (tmp_path / "link").symlink_to("real")
    source = folder(tmp_path / "link")
    assert source.root == (tmp_path / "real").resolve()
    (tmp_path / "link").unlink()
    assert uris(source.scan({}).added) == ["a.md"]


def test_it_fits_the_shape_of_a_source(tmp_path: Path) -> None:
    source: Source = folder(tmp_path)
    assert source.scan({}) == Scan()


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
    assert found(tmp_path) == ["build.md", "keep/wanted.txt", "x/top.md"]
    assert len(found(tmp_path, respect_gitignore=False)) == 8


def test_nothing_is_taken_back_from_an_ignored_folder(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "secret/\n!secret/a.md\nopen/*\n!open/b.md\n")
    write(tmp_path / "secret/.gitignore", "!*\n")
    for uri in ["secret/a.md", "open/b.md", "open/c.md"]:
        write(tmp_path / uri)
    assert found(tmp_path) == ["open/b.md"]


def test_what_a_gitignore_says_of_a_folder_does_not_outweigh_what_another_says_of_a_file_in_it(
    tmp_path: Path,
) -> None:
    write(tmp_path / ".gitignore", "*.txt\ntmp/\n")
    write(tmp_path / "a/.gitignore", "!tmp/\n")
    for uri in ["a/tmp/x.txt", "a/tmp/x.md", "tmp/y.md"]:
        write(tmp_path / uri)
    assert found(tmp_path) == ["a/tmp/x.md"]


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
    assert found(tmp_path) == ["c.md"]


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
    assert len(found(tmp_path)) == 2


def test_japanese_names_are_matched_by_the_character(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "/下書き/\n第?章.md\n[あ-お].md\n")
    for uri in ["下書き/a.md", "第一章.md", "第十一章.md", "う.md", "か.md"]:
        write(tmp_path / uri)
    assert found(tmp_path) == ["か.md", "第十一章.md"]


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
    assert found(tmp_path) == sorted(uri for uri in listed.split("\0") if uri.endswith((".md", ".txt")))


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


def test_a_folder_in_which_nothing_changed_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "a.md")
    write(tmp_path / "sub/b.md")
    source = folder(tmp_path)
    known = {uri: Fingerprint("a hash that would not match", 5, LONG_AGO) for uri in ["a.md", "sub/b.md"]}
    assert source.scan(known) == Scan(unchanged=2)


def test_added_updated_deleted_and_unchanged_are_told_apart(tmp_path: Path) -> None:
    for name in ["same.md", "grown.md", "edited.md", "gone.md"]:
        write(tmp_path / name, f"{name} has words")
    source = folder(tmp_path)
    known = remember(source)
    write(tmp_path / "grown.md", "more words than before by far", modified_ns=LONG_AGO + SECOND)
    write(tmp_path / "edited.md", "EDITED.md HAS WORDS", modified_ns=LONG_AGO + SECOND)
    (tmp_path / "gone.md").unlink()
    write(tmp_path / "new.md", "brand new")
    scan = source.scan(known)
    assert (uris(scan.added), uris(scan.updated), scan.deleted) == (
        ["new.md"],
        ["edited.md", "grown.md"],
        ["gone.md"],
    )
    assert (scan.unchanged, scan.touched, scan.moved, scan.problems) == (1, [], {}, [])


def test_an_edit_that_keeps_the_time_is_seen_by_its_size(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "short")
    source = folder(tmp_path)
    known = remember(source)
    write(tmp_path / "a.md", "longer")
    assert uris(source.scan(known).updated) == ["a.md"]


def test_a_file_with_another_time_and_the_same_content_is_touched_and_unchanged(tmp_path: Path) -> None:
    write(tmp_path / "a.md")
    source = folder(tmp_path)
    known = remember(source)
    os.utime(tmp_path / "a.md", ns=(LONG_AGO - SECOND, LONG_AGO - SECOND))
    scan = source.scan(known)
    (touched,) = scan.touched
    assert (touched.uri, touched.size, touched.modified_ns) == ("a.md", 5, LONG_AGO - SECOND)
    assert scan == Scan(unchanged=1, touched=[touched])


def test_a_time_that_was_too_fresh_to_trust_is_checked_by_content(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "right")
    write(tmp_path / "b.md", "right")
    source = folder(tmp_path)
    known = {
        uri: Fingerprint(hashlib.sha256(content).hexdigest(), 5, 0)
        for uri, content in [("a.md", b"right"), ("b.md", b"wrong")]
    }
    scan = source.scan(known)
    assert (uris(scan.touched), uris(scan.updated), scan.unchanged) == (["a.md"], ["b.md"], 1)


def test_a_time_that_can_never_be_trusted_is_not_news_at_every_scan(tmp_path: Path) -> None:
    write(tmp_path / "epoch.md", modified_ns=0)
    write(tmp_path / "future.md", modified_ns=4_000_000_000 * SECOND)
    source = folder(tmp_path)
    known = {uri: Fingerprint(hashlib.sha256(b"words").hexdigest(), 5, 0) for uri in ["epoch.md", "future.md"]}
    assert source.scan(known) == Scan(unchanged=2)


@pytest.mark.parametrize(
    ("age_ns", "trusted"),
    [
        (0, False),
        (1, False),
        (2 * SECOND, False),
        (2 * SECOND + 1, True),
        (-1, False),
        (-3600 * SECOND, False),
    ],
)
def test_a_time_is_trusted_once_it_is_two_seconds_old(age_ns: int, trusted: bool) -> None:
    assert SourceEntry("a.md", 1, LONG_AGO - age_ns, LONG_AGO).trusted_modified_ns() == (
        LONG_AGO - age_ns if trusted else 0
    )


def test_a_moved_file_is_recognised_by_its_content(tmp_path: Path) -> None:
    write(tmp_path / "old.md", "the same words")
    source = folder(tmp_path)
    known = remember(source)
    (tmp_path / "sub").mkdir()
    (tmp_path / "old.md").rename(tmp_path / "sub/new.md")
    scan = source.scan(known)
    assert scan.moved == {"sub/new.md": "old.md"}
    assert (uris(scan.added), scan.deleted) == (["sub/new.md"], ["old.md"])


def test_a_new_file_of_the_same_size_and_another_content_did_not_move(tmp_path: Path) -> None:
    write(tmp_path / "old.md", "12345")
    source = folder(tmp_path)
    known = remember(source)
    (tmp_path / "old.md").unlink()
    write(tmp_path / "new.md", "54321")
    scan = source.scan(known)
    assert (uris(scan.added), scan.deleted, scan.moved) == (["new.md"], ["old.md"], {})


def test_each_old_file_moves_to_one_place_only(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "twin")
    write(tmp_path / "b.md", "twin")
    source = folder(tmp_path)
    known = remember(source)
    for name in ["a.md", "b.md"]:
        (tmp_path / name).unlink()
    for name in ["x.md", "y.md", "z.md"]:
        write(tmp_path / name, "twin")
    scan = source.scan(known)
    assert scan.moved == {"x.md": "a.md", "y.md": "b.md"}
    assert uris(scan.added) == ["x.md", "y.md", "z.md"]


def test_a_copy_of_a_file_that_stays_is_not_a_move(tmp_path: Path) -> None:
    write(tmp_path / "a.md")
    source = folder(tmp_path)
    known = remember(source)
    write(tmp_path / "b.md")
    scan = source.scan(known)
    assert (uris(scan.added), scan.deleted, scan.moved, scan.unchanged) == (["b.md"], [], {}, 1)


def test_links_that_leave_loop_or_dangle_are_reported(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/secret.md").parent
    root = tmp_path / "root"
    write(root / "a.md")
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside)
    (root / "everything").symlink_to("/")
    (root / "loop.md").symlink_to("loop.md")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    (root / "dangling.md").symlink_to("nothing.md")
    (root / "through-a-file.md").symlink_to("a.md/b.md")
    (root / "program.so").symlink_to("nothing.so")
    scan = folder(root).scan({})
    assert uris(scan.added) == ["a.md"]
    told = reasons(scan)
    assert all("outside the folder" in told.pop(uri) for uri in ["file.md", "folder", "everything"])
    assert all("points to itself" in told.pop(uri) for uri in ["loop.md", "ping", "pong"])
    assert all("broken link" in told.pop(uri) for uri in ["dangling.md", "through-a-file.md"])
    assert told == {}


def test_a_link_to_something_inside_is_skipped_in_silence(tmp_path: Path) -> None:
    write(tmp_path / "docs/a.md")
    (tmp_path / "b.md").symlink_to("docs/a.md")
    (tmp_path / "shortcut").symlink_to("docs")
    (tmp_path / "docs/up").symlink_to("..")
    scan = folder(tmp_path).scan({})
    assert (uris(scan.added), scan.problems) == (["docs/a.md"], [])


def test_a_folder_beside_the_root_with_a_longer_name_is_outside(tmp_path: Path) -> None:
    write(tmp_path / "root-of-evil/a.md")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link.md").symlink_to(tmp_path / "root-of-evil/a.md")
    assert "outside the folder" in reasons(folder(tmp_path / "root").scan({}))["link.md"]


def test_ignored_and_excluded_links_are_not_reported(tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to("/")
    (tmp_path / "ignored.md").symlink_to("/etc/hostname")
    write(tmp_path / ".gitignore", "ignored.md\n")
    assert folder(tmp_path).scan({}).problems == []


def test_pipes_and_sockets_are_reported_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    os.mkfifo(tmp_path / "pipe.so")
    with socket.socket(socket.AF_UNIX) as server:
        with_short_path = os.open(tmp_path, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{with_short_path}/socket.md")
        os.close(with_short_path)
    source = folder(tmp_path)
    scan = source.scan({})
    assert scan.added == []
    assert set(reasons(scan)) == {"pipe.md", "socket.md"}
    assert all("not a regular file" in reason for reason in reasons(scan).values())
    for uri in ["pipe.md", "socket.md"]:
        with pytest.raises(SourceError, match="not a regular file"):
            source.read(SourceEntry(uri, 1, LONG_AGO))


def test_a_file_that_became_a_pipe_empty_too_large_or_a_link_is_deleted(tmp_path: Path) -> None:
    for name in ["pipe.md", "empty.md", "large.md", "link.md", "folder.md", "fine.md"]:
        write(tmp_path / name)
    source = folder(tmp_path, max_file_bytes=10)
    known = remember(source)
    for name in ["pipe.md", "link.md", "folder.md"]:
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "link.md").symlink_to("/etc/hostname")
    (tmp_path / "folder.md").mkdir()
    write(tmp_path / "empty.md", "")
    write(tmp_path / "large.md", "x" * 11)
    scan = source.scan(known)
    assert scan.deleted == ["empty.md", "folder.md", "large.md", "link.md", "pipe.md"]
    assert list(reasons(scan)) == ["empty.md", "large.md", "link.md", "pipe.md"]
    assert scan.unchanged == 1


def test_the_size_limit_is_named_with_its_setting(tmp_path: Path) -> None:
    write(tmp_path / "exact.md", "x" * 1000)
    write(tmp_path / "large.md", "x" * 1001)
    scan = folder(tmp_path, max_file_bytes=1000).scan({})
    assert uris(scan.added) == ["exact.md"]
    assert reasons(scan) == {
        "large.md": "has 1,001 bytes, more than the limit of 1,000; raise scanner.max_file_bytes to index it"
    }


def test_names_that_are_not_unicode_are_reported_in_printable_form(tmp_path: Path) -> None:
    Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.md")).write_text("words")
    write(Path(os.fsdecode(bytes(tmp_path) + b"/\xff")) / "a.md")
    write(tmp_path / "fine.md")
    scan = folder(tmp_path).scan({})
    assert uris(scan.added) == ["fine.md"]
    assert list(reasons(scan)) == ["\\udcff", "caf\\udce9.md"]
    assert all("not valid Unicode" in reason for reason in reasons(scan).values())


def test_a_folder_that_cannot_be_listed_keeps_what_is_known_of_it(tmp_path: Path) -> None:
    # A path longer than the system takes: that stops even root.
    write(tmp_path / "a.md")
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=at)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = deeper
    os.close(at)
    source = folder(tmp_path)
    (problem,) = source.scan({}).problems
    assert "cannot be listed" in problem.reason
    known = {uri: Fingerprint("hash", 5, LONG_AGO) for uri in ["a.md", f"{problem.uri}/deep.md", "gone.md"]}
    assert source.scan(known).deleted == ["gone.md"]


def test_files_and_folders_without_permission_are_reported_and_stay_known(open_folder: Path) -> None:
    for uri in ["fine.md", "known.md", "new.md", "closed/a.md"]:
        write(open_folder / uri)
    source = folder(open_folder)
    known = remember(source)
    del known["new.md"]
    for uri in ["known.md", "new.md", "closed"]:
        os.utime(open_folder / uri, ns=(LONG_AGO + SECOND, LONG_AGO + SECOND))
        (open_folder / uri).chmod(0)
    with ordinary_user():
        scan = source.scan(known)
        with pytest.raises(SourceError, match=r"new\.md cannot be read \(Permission denied\)"):
            source.read(SourceEntry("new.md", 5, LONG_AGO))
    (open_folder / "closed").chmod(0o700)
    assert list(reasons(scan)) == ["closed", "known.md", "new.md"]
    assert all("Permission denied" in reason for reason in reasons(scan).values())
    assert (scan.added, scan.updated, scan.deleted, scan.unchanged) == ([], [], [], 1)


def test_reading_returns_the_entry_as_it_is_now(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "old")
    source = folder(tmp_path)
    (entry,) = source.scan({}).added
    write(tmp_path / "a.md", "newer", modified_ns=LONG_AGO + SECOND)
    assert source.read(entry) == (b"newer", SourceEntry("a.md", 5, LONG_AGO + SECOND))


def test_a_file_that_is_gone_grown_or_no_file_is_refused_with_advice(tmp_path: Path) -> None:
    write(tmp_path / "large.md", "x" * 11)
    (tmp_path / "folder.md").mkdir()
    source = folder(tmp_path, max_file_bytes=10)
    for uri, reason in [
        ("gone.md", "no longer exists"),
        ("large.md", "limit of 10"),
        ("folder.md", "not a regular file"),
    ]:
        with pytest.raises(SourceError, match=reason) as caught:
            source.read(SourceEntry(uri, 5, LONG_AGO))
        assert caught.value.message.startswith(uri)
        assert caught.value.hint.endswith(".")


def test_nothing_outside_the_root_is_ever_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/secret.md").parent
    root = tmp_path / "root"
    write(root / "docs/secret.md")
    source = folder(root)
    (entry,) = source.scan({}).added
    shutil.rmtree(root / "docs")
    (root / "docs").symlink_to(outside)
    (root / "link.md").symlink_to(outside / "secret.md")
    for uri in [entry.uri, "link.md", "../outside/secret.md"]:
        with pytest.raises(SourceError, match="link"):
            source.read(SourceEntry(uri, 5, LONG_AGO))


def test_a_file_that_is_being_written_is_refused_and_never_half_read(tmp_path: Path) -> None:
    path = write(tmp_path / "log.md", b"x" * 4_000_000)
    source = folder(tmp_path, max_file_bytes=1_000_000_000)
    forever = "import sys; f = open(sys.argv[1], 'ab', 0); print(flush=True)\nwhile True: f.write(b'more')"

    def read_often() -> None:
        # The scheduler may let a read slip through between two writes; it must then be a whole one.
        for _ in range(1000):
            content, entry = source.read(SourceEntry("log.md", 0, 0))
            assert len(content) == entry.size

    with subprocess.Popen([sys.executable, "-c", forever, path], stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(SourceError, match="is being written"):
                read_often()
        finally:
            writer.kill()


def test_a_root_that_is_missing_or_no_folder_cannot_be_scanned(tmp_path: Path) -> None:
    for root in [tmp_path / "missing", write(tmp_path / "file.md")]:
        with pytest.raises(SourceError, match="cannot be read") as caught:
            folder(root).scan({})
        assert "Check the path" in caught.value.hint


def test_a_root_that_vanished_or_was_emptied_is_lost(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    write(root / "a.md")
    source = folder(root)
    assert not source.has_vanished(["a.md"])
    (root / "a.md").unlink()
    assert source.has_vanished(["a.md"])
    assert not source.has_vanished([])
    root.rmdir()
    assert source.has_vanished([])
    with pytest.raises(SourceError, match="cannot be read"):
        source.scan({"a.md": Fingerprint("hash", 5, LONG_AGO)})
    root.write_text("a file in its place")
    assert source.has_vanished(["a.md"])


def test_a_root_that_may_not_be_listed_is_lost(open_folder: Path) -> None:
    write(open_folder / "disk/a.md")
    source = folder(open_folder / "disk")
    (open_folder / "disk").chmod(0)
    with ordinary_user():
        assert source.has_vanished(["a.md"])
    (open_folder / "disk").chmod(0o700)
