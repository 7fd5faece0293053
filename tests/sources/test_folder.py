"""Scanning a folder: which files are found, and which were added, changed, moved or deleted."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from bunko.protocols import Scan, Source
from bunko.types import Fingerprint, SourceEntry
from tests.sources.folders import LONG_AGO, SECOND, folder, remember, scan_uris, uris, write


def test_files_at_every_depth_are_found_in_the_order_of_their_uris(tmp_path: Path) -> None:
    for uri in ["b.md", "a/z.md", "a.md", "a/b/c/d.txt", "あ/い.md"]:
        write(tmp_path / uri)
    assert scan_uris(tmp_path) == ["a.md", "a/b/c/d.txt", "a/z.md", "b.md", "あ/い.md"]


def test_an_entry_tells_size_and_time(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "12345", modified_ns=LONG_AGO + 7)
    assert folder(tmp_path).scan({}).added == [SourceEntry("a.md", 5, LONG_AGO + 7)]


def test_extensions_are_compared_without_regard_to_case(tmp_path: Path) -> None:
    for name in ["a.MD", "b.Md", "c.txt", "d.pdf", "md", "e.md.bak"]:
        write(tmp_path / name)
    assert scan_uris(tmp_path, extensions=["md", ".TXT"]) == ["a.MD", "b.Md", "c.txt"]


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
    assert scan_uris(tmp_path, exclude_dirs=[".git", "node_modules/", "drafts.md"]) == ["x/c.md", "y/drafts.md"]


def test_hidden_files_and_folders_are_ordinary_ones(tmp_path: Path) -> None:
    write(tmp_path / ".hidden/a.md")
    write(tmp_path / ".note.md")
    assert scan_uris(tmp_path) == [".hidden/a.md", ".note.md"]


def test_include_takes_only_what_matches_it_or_lies_in_a_folder_that_does(tmp_path: Path) -> None:
    for uri in ["a.md", "docs/b.md", "docs/deep/c.md", "docs/deep/drafts/d.md", "x/docs/e.md", "x/README.md"]:
        write(tmp_path / uri)
    assert scan_uris(tmp_path, include=["/docs/"]) == ["docs/b.md", "docs/deep/c.md", "docs/deep/drafts/d.md"]
    assert scan_uris(tmp_path, include=["/docs/", "!drafts/"]) == ["docs/b.md", "docs/deep/c.md"]
    assert scan_uris(tmp_path, include=["README.md", "x/**/e.md"]) == ["x/README.md", "x/docs/e.md"]


def test_exclude_wins_over_include_and_over_what_a_gitignore_takes_back(tmp_path: Path) -> None:
    for uri in ["docs/a.md", "docs/private/b.md", "docs/c.tmp.md"]:
        write(tmp_path / uri)
    write(tmp_path / ".gitignore", "!private/\n")
    assert scan_uris(tmp_path, include=["docs/"], exclude=["private/", "*.tmp.md"]) == ["docs/a.md"]


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


@pytest.mark.slow
def test_a_tree_deeper_than_the_recursion_limit_is_walked(tmp_path: Path) -> None:
    write(tmp_path / "top.md")
    deepest = tmp_path
    for _ in range(sys.getrecursionlimit() + 200):
        deepest /= "d"
        deepest.mkdir()
    bottom = write(deepest / "a.md")
    try:
        assert scan_uris(tmp_path) == [bottom.relative_to(tmp_path).as_posix(), "top.md"]
    finally:
        # Whoever clears the temporary folder may not be able to go that deep.
        bottom.unlink()
        os.removedirs(deepest)


def test_hard_links_are_files_of_their_own(tmp_path: Path) -> None:
    os.link(write(tmp_path / "a.md"), tmp_path / "b.md")
    assert scan_uris(tmp_path) == ["a.md", "b.md"]


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
