"""`bunko add`: one verb for folders, vaults, memo files, JSON lines, single documents and web pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.processes import at_a_terminal, subprocess_environment
from tests.conftest import Ran, Run
from tests.site import Site, text
from tests.web.articles import article

MEMOS = "\n".join(
    f"* 庭の記録 {year}-04-0{day} [庭]\n\n{year}年の春、庭に{'チューリップ' if day == 1 else '薔薇'}を植えた。\n"
    for year in (2026, 2020, 2014)
    for day in (2, 1)
)


@pytest.fixture
def add(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run `bunko add` in a library of its own, which the other commands use too."""
    monkeypatch.setenv("BUNKO_LIBRARY", str(tmp_path / "lib"))
    return lambda *arguments: run("add", *arguments)


def write(root: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def tools(run: Run) -> dict[str, dict[str, object]]:
    return {tool["name"]: tool for tool in json.loads(run("tool", "ls", "--json").out)}


def count_documents(run: Run) -> int:
    (tool,) = json.loads(run("status", "--json").out)["tools"]
    return int(tool["documents"])


def test_a_folder_is_told_named_imported_and_what_to_type_next(add: Callable[..., Ran], run: Run, notes: Path) -> None:
    ran = add(notes)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0] == f"{notes}: a folder with 3 documents: 2 Markdown, 1 text"
    assert re.fullmatch(r"Added docs: 3 documents, \d+ chunks", lines[1])
    search = re.search(r'bunko search "(.+)"', ran.out)
    assert search is not None
    assert run("search", search[1]).out.startswith("[1] ")
    assert "bunko connect claude-code" in ran.out
    assert run("search", "京都").out.startswith("[1] temple.md:")


def test_a_description_is_made_from_the_documents_unless_one_is_given(
    add: Callable[..., Ran], run: Run, tmp_path: Path
) -> None:
    write(
        tmp_path / "garden", **{"a.md": "# Watering roses\n\nRoses need water.\n", "b.md": "# Pruning roses\n\nCut.\n"}
    )
    write(
        tmp_path / "cook", **{"a.md": "# Onion soup\n\nFry the onions.\n", "b.md": "# Rice balls\n\nCook the rice.\n"}
    )
    add(tmp_path / "garden")
    add(tmp_path / "cook", "-d", "Recipes for soup and rice balls")
    made = tools(run)
    assert "roses" in str(made["garden"]["description"]).lower()
    assert not re.search(r"\d", str(made["garden"]["description"]))  # a count would soon be wrong
    assert made["cook"]["description"] == "Recipes for soup and rice balls"
    assert run("tool", "check").code == 0


@pytest.mark.parametrize(
    ("files", "shape"),
    [
        ({".obsidian/app.json": "{}", "a.md": "# A\n\nGarden notes.\n"}, "an Obsidian vault with 1 document"),
        ({"logseq/config.edn": "{}", "pages/a.md": "# A\n\nGarden notes.\n"}, "a Logseq graph with 1 document"),
        ({"ChangeLog": MEMOS}, "a folder of memos with 6 entries from 2014 to 2026"),
    ],
)
def test_what_kind_of_folder_it_is_is_told(
    add: Callable[..., Ran], tmp_path: Path, files: dict[str, str], shape: str
) -> None:
    ran = add(write(tmp_path / "vault", **files))
    assert f"{tmp_path / 'vault'}: {shape}" in ran.out


@pytest.mark.parametrize(
    ("name", "content", "kind", "shape"),
    [
        ("ChangeLog", MEMOS, "memos", "a ChangeLog memo file with 6 entries from 2014 to 2026"),
        ("garden.txt", MEMOS, "memos", "a memo file with 6 entries from 2014 to 2026"),
        ("log.jsonl", '{"text": "Roses.", "date": "2024-01-02"}\n' * 2, "jsonl", "a JSON-lines file with 2 entries"),
        ("days.md", "## 2024-01-01\n\nSun.\n\n## 2024-01-02\n\nRain.\n", "memos", "a memo file with 2 entries"),
        ("TODO", "Water the roses tomorrow.\n", "memos", "a memo file with 1 entry"),
        ("CHANGELOG.md", "# Changelog\n\n## 1.0.0\n\n- Roses\n", "folder", "a Markdown document"),
        ("essay.md", "# Roses\n\n* 2024 was dry.\n", "folder", "a Markdown document"),
        ("page.html", "<h1>Roses</h1><p>Red and white ones.</p>", "folder", "an HTML document"),
        ("odd [1]*.rest", "Roses\n=====\n\nRed ones.\n", "folder", "a reStructuredText document"),
        ("settings.xyz", "roses = red\n", "folder", "a .xyz document"),
    ],
)  # fmt: skip
def test_a_file_is_recognised(
    add: Callable[..., Ran], run: Run, tmp_path: Path, name: str, content: str, kind: str, shape: str
) -> None:
    folder = write(tmp_path / "home", **{name: content, "private.md": "# Secret\n\nNot to be indexed.\n"})
    write(folder / "deep", **{name: content})
    ran = add(folder / name)
    assert ran.code == 0, ran.err
    assert f"{folder / name}: {shape}" in ran.out
    (tool,) = tools(run).values()
    assert tool["kind"] == kind
    assert run("search", "Secret", "--mode", "bm25").out.startswith("No results")
    assert count_documents(run) == (6 if content == MEMOS else 2 if "entries" in shape else 1)


def test_documents_of_one_folder_become_one_tool(add: Callable[..., Ran], run: Run, tmp_path: Path) -> None:
    folder = write(
        tmp_path / "papers", **{f"{name}.md": f"# {name}\n\nAbout {name}.\n" for name in ("roses", "soup", "tax")}
    )
    ran = add(folder / "roses.md", folder / "soup.md")
    assert "2 documents: 2 Markdown" in ran.out
    assert list(tools(run)) == ["papers"]
    assert run("search", "tax", "--mode", "bm25").out.startswith("No results")
    again = add(folder / "roses.md")
    assert "Updated papers: 0 added" in again.out
    assert list(tools(run)) == ["papers"]


def test_adding_the_same_path_again_updates_it(add: Callable[..., Ran], run: Run, notes: Path) -> None:
    add(notes)
    described = tools(run)["docs"]["description"]
    (notes / "new.md").write_text("# 新しい\n\n新しい文書です。\n", encoding="utf-8")
    ran = add(f"{notes}/")
    assert ran.code == 0
    assert "Updated docs: 1 added, 0 updated, 0 deleted, 3 unchanged" in ran.out
    assert tools(run)["docs"]["description"] == described
    add(notes, "-d", "What we noted", "--exclude", "*.txt")
    assert tools(run)["docs"]["description"] == "What we noted"
    assert count_documents(run) == 3


def test_a_path_that_is_a_tool_is_not_added_under_another_name(add: Callable[..., Ran], run: Run, notes: Path) -> None:
    add(notes)
    ran = add(notes, "-n", "other")
    assert ran.code == 2
    assert f"{notes} is already the tool 'docs'" in ran.err
    assert "leave out -n" in ran.err
    assert list(tools(run)) == ["docs"]


def test_a_name_that_is_taken_is_an_error_before_anything_is_imported(
    add: Callable[..., Ran], run: Run, notes: Path, tmp_path: Path
) -> None:
    add(notes)
    ran = add(write(tmp_path / "b", **{"b.md": "# B\n\nRoses.\n"}), "-n", "docs")
    assert (ran.code, ran.out) == (2, "")
    assert "already exists" in ran.err
    assert add(tmp_path / "b", "-n", "search").code == 2
    assert list(tools(run)) == ["docs"]


def test_a_memo_file_of_bunko_build_is_updated(add: Callable[..., Ran], run: Run, tmp_path: Path) -> None:
    write(tmp_path, ChangeLog=MEMOS)
    assert run("build", "--input", tmp_path / "ChangeLog").code == 0
    assert "Updated memos: 0 added" in add(tmp_path / "ChangeLog").out
    assert list(tools(run)) == ["memos"]


def test_an_import_that_was_interrupted_is_described_when_it_is_continued(
    add: Callable[..., Ran], run: Run, tmp_path: Path
) -> None:
    folder = write(tmp_path / "garden", **{"a.md": "# Watering roses\n\nRoses need water.\n"})
    run("tool", "add", "-n", "garden", "-d", "Documents in garden", "-s", folder)
    add(folder)
    assert "Watering roses" in str(tools(run)["garden"]["description"])


def test_a_document_of_a_tool_is_not_added_twice(add: Callable[..., Ran], run: Run, notes: Path) -> None:
    add(notes)
    ran = add(notes / "temple.md")
    assert "Updated docs: 0 added" in ran.out
    assert f"{notes / 'temple.md'}: part of docs" in ran.out
    assert list(tools(run)) == ["docs"]


def test_names_are_made_from_the_path_and_are_all_different(add: Callable[..., Ran], run: Run, tmp_path: Path) -> None:
    text = {"a.md": "# Roses\n\nRed and white ones.\n"}
    names = ["notes", "x/notes", "My Notes (2024)", ".hidden", "search", "旅行2024"]
    ran = add(*(write(tmp_path / name, **text) for name in names))
    assert ran.code == 0, ran.err
    assert sorted(tools(run)) == sorted(["notes", "notes-2", "My-Notes-2024", "hidden", "search-2", "旅行2024"])
    assert ran.out.count("Added ") == 6


def test_a_name_without_a_latin_letter_is_no_obstacle(add: Callable[..., Ran], run: Run, tmp_path: Path) -> None:
    ran = add(write(tmp_path / "日記", **{"a.md": "# 庭\n\n薔薇を植えた。\n"}))
    assert ran.code == 0, ran.err
    assert run("search", "薔薇").out.startswith("[1] a.md")


def test_a_wrong_path_creates_nothing(add: Callable[..., Ran], notes: Path, tmp_path: Path) -> None:
    ran = add(notes, tmp_path / "nowhere")
    assert ran.code == 3
    assert f"There is no file or folder {tmp_path / 'nowhere'}" in ran.err
    assert not (tmp_path / "lib").exists()
    assert "https://example.com/docs" in add("example.com/docs").err
    assert "http:// and https://" in add("ftp://example.com/docs").err


def test_a_folder_with_nothing_to_read_creates_nothing_and_says_what_reads_it(
    add: Callable[..., Ran], run: Run, tmp_path: Path
) -> None:
    folder = write(tmp_path / "code", **{"a.py": "x = 1\n", "data/b.md": "# B\n\nRoses.\n"})
    ran = add(folder)
    assert ran.code == 3
    assert (
        f"There is nothing to index in {folder}: its files are not read: 1 .py; the folder data is skipped" in ran.err
    )
    assert f"bunko add {folder} --include '*.py'" in ran.err
    assert f"To read data, add it by itself: bunko add {folder}/data" in ran.err
    assert not (tmp_path / "lib").exists()
    ran = add(folder, "--include", "*.py")
    assert f"{folder}: a folder with 1 document: 1 source code" in ran.out
    assert f"Skipped 1 folder by its name (scanner.exclude_dirs): {folder}/data." in ran.err


def test_a_file_that_cannot_be_read_creates_nothing(add: Callable[..., Ran], tmp_path: Path) -> None:
    write(tmp_path, **{"broken.pdf": b"%PDF-1.7 nothing", "picture.png": b"\x89PNG\r\n\x1a\n\0\0"})
    for name in ("broken.pdf", "picture.png"):
        ran = add(tmp_path / name)
        assert ran.code == 3
        assert name in ran.err
        assert not (tmp_path / "lib").exists()


def test_files_that_are_not_read_are_counted(add: Callable[..., Ran], notes: Path) -> None:
    write(
        notes,
        **{"a.png": b"\x89PNG\0", "b.png": b"\x89PNG\0", "c.zip": b"PK\0", ".DS_Store": b"x", ".cache/d.zip": b"x"},
    )
    assert "Not read: 2 .png, 1 .zip" in add(notes).out


def test_several_paths_take_no_name_and_patterns_are_for_folders(
    add: Callable[..., Ran], notes: Path, tmp_path: Path
) -> None:
    ran = add(notes, write(tmp_path / "b", **{"b.md": "# B\n"}), "-n", "both")
    assert ran.code == 2
    assert "--name" in ran.err
    ran = add("https://example.com/", "--include", "*.md")
    assert ran.code == 2
    assert "--include" in ran.err
    assert not (tmp_path / "lib").exists()


def test_json_says_all_of_it(add: Callable[..., Ran], notes: Path) -> None:
    (tool,) = json.loads(add(notes, "--json").out)["tools"]
    assert (tool["name"], tool["kind"], tool["added"], tool["documents"]) == ("docs", "folder", True, 3)
    assert tool["formats"] == {"Markdown": 2, "text": 1}
    assert tool["found"] == "a folder with 3 documents: 2 Markdown, 1 text"
    assert tool["import"]["added"] == 3
    (tool,) = json.loads(add(notes, "--json").out)["tools"]
    assert tool["added"] is False


@pytest.mark.slow
def test_a_terminal_gets_a_progress_bar(notes: Path, tmp_path: Path) -> None:
    environment = subprocess_environment(
        tmp_path, TERM="xterm-256color", COLUMNS="80", BUNKO_LIBRARY=str(tmp_path / "l")
    )
    printed = at_a_terminal("add", notes, env=environment)
    assert "Importing" in printed
    assert "3/3 files" in printed
    assert "bunko search" in printed


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    pages = {
        "/a": article("Roses", "A page about white roses in the garden."),
        "/b": article("Tulips", "A page about red tulips."),
        "/robots.txt": text("User-agent: *\nAllow: /\n"),
    }
    with Site(pages) as site:
        monkeypatch.setenv("BUNKO_CRAWL_ALLOWED_HOSTS", site.host)
        monkeypatch.setenv("RAG_CRAWL_DELAY_SEC", "0")
        yield site


def test_a_web_page_goes_where_web_add_puts_it(add: Callable[..., Ran], run: Run, site: Site, notes: Path) -> None:
    ran = add(site.url("/a"), notes)
    assert ran.code == 0, ran.err
    assert f"{site.url('/a')}: a web page" in ran.out
    assert "Added to knowledge: 1 page, 1 chunk" in ran.out
    assert f"bunko web crawl {site.url('/a')}" in ran.out
    assert sorted(tools(run)) == ["docs", "knowledge"]
    assert "1 unchanged" in add(site.url("/a")).out
    add(site.url("/b"), "-n", "flowers", "-d", "Pages about tulips")
    assert tools(run)["flowers"]["description"] == "Pages about tulips"


def test_a_page_that_cannot_be_fetched_is_an_error_and_creates_nothing(
    add: Callable[..., Ran], site: Site, tmp_path: Path
) -> None:
    ran = add(site.url("/missing"))
    assert ran.code == 8
    assert "404" in ran.err
    assert not (tmp_path / "lib").exists()


def test_an_empty_path_is_an_error_and_not_the_current_folder(
    add: Callable[..., Ran], run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notes)  # as after: bunko add "$UNSET"
    for ran in (
        add(""),
        run("reindex", "--docs-dir", ""),
        run("tool", "add", "-n", "a", "-d", "Notes", "-s", ""),
    ):
        assert ran.code == 2
        assert "the path is empty" in ran.err
    assert not (notes / ".rag-index").exists()


def test_a_moved_folder_is_not_added_twice_but_its_tool_told_where_it_is(
    add: Callable[..., Ran], run: Run, notes: Path, tmp_path: Path
) -> None:
    add(notes)
    moved = notes.rename(tmp_path / "moved")
    (moved / "temple.md").write_text("# 金閣寺\n\n一枚だけ書き直した。\n", encoding="utf-8")
    ran = add(moved)
    assert ran.code == 2
    assert f"{moved} has the documents of docs, whose folder {notes} is missing" in ran.err
    assert f"bunko tool update -n docs -s {moved}" in ran.err
    assert run("tool", "update", "-n", "docs", "-s", moved).code == 0
    assert "Updated docs: 0 added, 1 updated" in add(moved).out
    assert list(tools(run)) == ["docs"]


def test_a_moved_folder_can_be_added_as_another_tool_by_a_name(
    add: Callable[..., Ran], notes: Path, tmp_path: Path
) -> None:
    add(notes)
    assert add(notes.rename(tmp_path / "moved"), "-n", "copy").code == 0


def test_a_missing_folder_with_other_documents_is_not_mistaken_for_the_added_one(
    add: Callable[..., Ran], notes: Path, tmp_path: Path
) -> None:
    add(notes)
    notes.rename(tmp_path / "moved")
    write(tmp_path / "cook", **{"a.md": "# Onion soup\n\nFry the onions.\n"})
    assert add(tmp_path / "cook").err == ""


def test_another_name_for_a_folder_that_is_added_already_is_given_by_rename(
    add: Callable[..., Ran], run: Run, notes: Path
) -> None:
    add(notes)
    ran = add(notes, "-n", "handbook")
    assert ran.code == 2
    assert "bunko tool rename docs handbook" in ran.err
    assert run("tool", "rename", "docs", "handbook").code == 0


def test_files_that_are_not_read_are_told_with_the_setting_that_reads_them(
    add: Callable[..., Ran], notes: Path
) -> None:
    write(notes, **{"app.py": "print(1)\n", "photo.heic": "x"})
    ran = add(notes)
    assert "Not read: 1 .heic, 1 .py. Read .py: set scanner.source_code to true.\n" in ran.out
