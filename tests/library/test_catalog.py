"""Tools: what may be called how, and what happens to their documents."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SettingsError, SourceError, UnknownName
from bunko.library.tools import catalog
from bunko.stores import memory
from bunko.types import Tool
from bunko.types.tool_options import ToolOptions


def test_a_folder_is_registered_under_a_name_with_its_description(tmp_path: Path) -> None:
    store = memory.build()
    options = ToolOptions(include=("*.md",), exclude=("drafts/",))
    made = catalog.Tools(store).add("api-docs", "  How the\nAPI works ", tmp_path, options=options)
    assert (made.name, made.description, made.source) == ("api-docs", "How the API works", str(tmp_path))
    assert made.options == options
    assert catalog.get_tool(store, "api-docs") == made


@pytest.mark.parametrize("name", ["", "~docs", "///", "、。"])
def test_a_name_without_letters_or_of_a_rebuild_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be a tool's name"):
        catalog.Tools(memory.build()).add(name, "x", tmp_path)


def test_names_that_would_look_the_same_to_an_assistant_are_refused_with_both(tmp_path: Path) -> None:
    store = memory.build()
    catalog.Tools(store).add("api docs", "x", tmp_path)
    with pytest.raises(SettingsError, match="'API_docs' and 'api docs'"):
        catalog.Tools(store).add("API_docs", "x", tmp_path)
    with pytest.raises(SettingsError, match="already"):
        catalog.Tools(store).add("api docs", "x", tmp_path)
    with pytest.raises(SettingsError, match="'API docs' and 'api docs' differ only in case"):
        catalog.Tools(store).add("API docs", "x", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a/b", "api docs", "a" * 70, "日記", "📚"])
def test_a_name_that_assistants_would_not_accept_is_taken_and_told_as_they_see_it(name: str, tmp_path: Path) -> None:
    added = bunko(tmp_path, "tool", "add", "-n", name, "-d", "x y", "-s", str(tmp_path))
    [seen] = re.findall(r"Assistants see it as ([a-zA-Z0-9_-]{1,40})\.", added.stdout)
    [listed] = json.loads(bunko(tmp_path, "tool", "ls", "--json").stdout)
    assert listed["assistant_name"] == seen
    assert "alias" not in listed


def test_a_file_in_the_place_of_a_folder_is_called_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    with pytest.raises(SourceError, match=r"a\.md is a file, not a folder"):
        catalog.Tools(memory.build()).add("docs", "x", tmp_path / "a.md")


def test_a_tool_needs_a_description_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="description"):
        catalog.Tools(memory.build()).add("docs", " ", tmp_path)
    with pytest.raises(SourceError, match="no folder"):
        catalog.Tools(memory.build()).add("docs", "x", tmp_path / "nowhere")


@pytest.mark.parametrize(
    "pattern",
    ["../../*", "..", "guide/../../x.md", "!../x", "./a.md", "..\\x", "", " ", "C:\\docs\\*.md", "~/a.md", "\0"],
)
@pytest.mark.parametrize("option", ["include", "exclude"])
def test_a_pattern_that_no_file_of_the_folder_can_match_is_refused(option: str, pattern: str, tmp_path: Path) -> None:
    store = memory.build()
    catalog.Tools(store).add("docs", "x", tmp_path)
    values: dict[str, Any] = {option: ("*.md", pattern)}
    options = ToolOptions(**values)
    with pytest.raises(SettingsError, match="no file in the folder"):
        catalog.Tools(store).add("other", "x", tmp_path, options=options)
    with pytest.raises(SettingsError, match="no file in the folder"):
        catalog.Tools(store).update("docs", **values)
    assert catalog.tools(store)[0].options.include == ()
    accepted = ("*.md", "/guide/**", "!draft.md", "a..b.md", "..md", "x/", ".hidden", r"\#1.md", "[ab]?.md")
    values = {option: accepted}
    assert getattr(catalog.Tools(store).update("docs", **values).options, option) == accepted


def test_a_name_or_description_that_a_person_cannot_read_is_refused_or_cleaned(tmp_path: Path) -> None:
    store = memory.build()
    for name in ("notes\n", "no\u202etes", "no\u200btes", "n" * 101):
        with pytest.raises(SettingsError, match="invisible characters"):
            catalog.Tools(store).add(name, "記録", tmp_path)
    with pytest.raises(SettingsError, match="1,001 characters"):
        catalog.Tools(store).add("notes", "x" * 1001, tmp_path)
    tool = catalog.Tools(store).add("notes", " 旅の\n記\u202e録\x07 ", tmp_path)
    assert tool.description == "旅の 記録"
    assert catalog.Tools(store).update("notes", description="a\u200b\r\nb").description == "a b"


def test_a_tool_is_changed_hidden_and_removed_by_name(tmp_path: Path) -> None:
    store = memory.build()
    catalog.Tools(store).add("docs", "old", tmp_path)
    store.tools.put(Tool("~docs"))
    assert catalog.Tools(store).update("docs", description="new").description == "new"
    assert catalog.Tools(store).set_active("docs", active=False).active is False
    catalog.delete_tool(store, "docs")
    assert store.tools.all() == []
    with pytest.raises(UnknownName, match="no tool called 'docs'"):
        catalog.get_tool(store, "docs")


def bunko(tmp_path: Path, *arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    environ = os.environ | {
        "BUNKO_LIBRARY": str(tmp_path / "library"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "EMBEDDING_PROVIDER": "none",
    }
    command = [sys.executable, "-m", "bunko", *arguments]
    return subprocess.run(command, env=environ, input=answer, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_life_of_a_tool_on_the_command_line(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# 京都\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。")
    (docs / "draft.md").write_text("# 下書き\n\nこれはまだ下書きなので、検索の対象にはしないでおくつもりの文章である。")
    added = bunko(tmp_path, "tool", "add", "-n", "travel", "-d", "旅の記録", "-s", str(docs), "--exclude", "draft.md")
    assert "1 file to import. Import it with: bunko import -n travel\n" in added.stdout
    assert bunko(tmp_path, "tool", "ls").stdout == "travel\n"
    assert bunko(tmp_path, "import", "-n", "travel").stdout.startswith("1 added")
    again = bunko(tmp_path, "import", "-n", "travel")
    assert again.returncode != 0
    assert "--mode update" in again.stderr
    assert "--mode replace" in again.stderr
    assert "1 unchanged" in bunko(tmp_path, "import", "-n", "travel", "--mode", "update").stdout
    assert "1 updated" in bunko(tmp_path, "import", "-n", "travel", "--mode", "replace").stdout
    assert "a.md" in bunko(tmp_path, "search", "京都", "-n", "travel").stdout
    assert bunko(tmp_path, "tool", "disable", "-n", "travel").stdout == "Disabled travel.\n"
    assert bunko(tmp_path, "tool", "ls").stdout == ""
    listed = json.loads(bunko(tmp_path, "tool", "ls", "--all", "--format", "json").stdout)
    assert [(one["name"], one["active"], one["exclude"]) for one in listed] == [("travel", False, ["draft.md"])]
    kept = bunko(tmp_path, "tool", "delete", "-n", "travel", answer="n\n")
    assert kept.returncode == 1
    assert "1 document and 1 chunk from the index" in kept.stderr
    assert "Nothing was deleted" in kept.stderr
    assert "Deleted travel" in bunko(tmp_path, "tool", "delete", "-n", "travel", "-y").stdout
    assert list((tmp_path / "library" / "index").glob("*.segment")) == []
    assert (docs / "a.md").exists()


@pytest.mark.slow
def test_one_import_takes_in_all_tools(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# {name}\n\nThe documents of {name} are about quite different things.")
        bunko(tmp_path, "tool", "add", "-n", name, "-d", f"About {name}", "-s", str(tmp_path / name))
    assert bunko(tmp_path, "import", "--all").stdout.startswith("2 added")
    assert "Specify --name or --all\n" in bunko(tmp_path, "import").stderr
    assert "cannot be used together" in bunko(tmp_path, "import", "--all", "-n", "one").stderr


@pytest.mark.slow
def test_a_deletion_that_nobody_confirms_says_that_nothing_was_deleted(tmp_path: Path) -> None:
    bunko(tmp_path, "tool", "add", "-n", "one", "-d", "About one", "-s", str(tmp_path))
    unanswered = bunko(tmp_path, "tool", "delete", "-n", "one")
    assert unanswered.returncode == 1
    assert "Nothing was deleted; use -y to delete without confirmation" in unanswered.stderr
    assert "Interrupted" not in unanswered.stderr
    assert bunko(tmp_path, "tool", "ls").stdout == "one\n"


@pytest.mark.slow
def test_ctrl_c_at_the_question_says_that_nothing_was_deleted(tmp_path: Path) -> None:
    bunko(tmp_path, "tool", "add", "-n", "one", "-d", "About one", "-s", str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-m", "bunko", "tool", "delete", "-n", "one"],
        env=os.environ | {"BUNKO_LIBRARY": str(tmp_path / "library"), "XDG_CONFIG_HOME": str(tmp_path / "config")},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        asked = b""
        while b"[y/N]" not in asked:
            asked += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1
    assert b"Nothing was deleted" in told
    assert bunko(tmp_path, "tool", "ls").stdout == "one\n"
