"""Packs through the commands: killed and interrupted imports, exit codes and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from bunko.library.tools import catalog
from bunko.runtime.observer import Observer
from tests.conftest import Run
from tests.library.packs import OpenNamed, answers, import_pack_file, library_contents


def bunko(tmp_path: Path, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BUNKO_", "RAG_", "EMBEDDING_"))}
    environ = kept | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "PYTHONUTF8": "1"} | environ
    command = [sys.executable, "-m", "bunko", *map(str, arguments)]
    return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)


def answer_at_a_terminal(tmp_path: Path, answer: str, *arguments: str | Path) -> tuple[int, str]:
    """Run a command at a terminal, type an answer, and return the exit code and all that was shown."""
    pty = pytest.importorskip("pty", reason="there are no terminals to open on this system")
    ours, theirs = pty.openpty()
    environ = os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "bunko", *map(str, arguments)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=tmp_path) as process:
        os.close(theirs)
        os.write(ours, answer.encode())
        shown = b""
        with suppress(OSError):  # Linux tells the end of a terminal so
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    return process.returncode, shown.decode()


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", ["store.swapped", "pack.batch", "store.document", "store.commit:3"])
def test_a_killed_import_leaves_the_old_tool_and_the_next_one_is_whole(
    open_named: OpenNamed, packed: Path, tmp_path: Path, failpoint: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kobe.md").write_text("# 神戸\n\n神戸の港から船に乗った日の、少し長めの記録です。", encoding="utf-8")
    with open_named("there") as there:
        there.tools.add("notes", "前からあるもの", other)
        there.import_tools(["notes"])
        before = answers(there, "notes")
    killed = bunko(
        tmp_path,
        "import-pack",
        packed,
        "--yes",
        "--replace",
        "--library",
        tmp_path / "there",
        BUNKO_FAILPOINT=failpoint,
    )
    assert killed.returncode == -9
    fresh = bunko(tmp_path, "import-pack", packed, "--yes", "--library", tmp_path / "new", BUNKO_FAILPOINT=failpoint)
    assert fresh.returncode == -9
    there, new = open_named("there"), open_named("new")
    assert answers(there, "notes") == before
    assert catalog.get_tool(there.store, "notes").description == "前からあるもの"
    assert new.tools() == []
    for library, options in ((there, {"replace_existing": True}), (new, {})):
        import_pack_file(library, packed, **options)
        assert [one.name for one in library.store.tools.all()] == ["notes"]
        assert library.store.stats.totals(catalog.get_tool(library.store, "notes").id).documents == 4
    assert answers(new, "notes") == answers(open_named("home"), "notes")


@pytest.mark.slow
def test_the_next_export_removes_what_a_killed_one_left(open_named: OpenNamed, packed: Path, tmp_path: Path) -> None:
    place = tmp_path / "stick"
    place.mkdir()
    export = ("export", "-n", "notes", "--library", tmp_path / "home", "-o")
    assert bunko(tmp_path, *export, place / "a.bunko", BUNKO_FAILPOINT="pack.written").returncode == -9
    (place / ".a.bunko.tmp").write_text("not bunko's")
    assert len(list(place.iterdir())) == 2
    assert bunko(tmp_path, *export, place / "b.bunko").returncode == 0
    assert sorted(path.name for path in place.iterdir()) == [".a.bunko.tmp", "b.bunko"]


def test_an_interrupted_import_leaves_the_library_as_it_was(open_named: OpenNamed, packed: Path) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    there = open_named("there")
    import_pack_file(there, packed, name="first")
    before = library_contents(there)
    with pytest.raises(KeyboardInterrupt):
        import_pack_file(there, packed, observer=Observer(on_progress=interrupt))
    assert library_contents(there) == before
    assert answers(there, "first") == answers(open_named("home"), "notes")


@pytest.mark.slow
def test_a_rebuild_does_not_go_on_from_what_a_killed_import_left(
    open_named: OpenNamed, packed: Path, tmp_path: Path
) -> None:
    killed = bunko(
        tmp_path, "import-pack", packed, "-y", "--library", tmp_path / "home", "--replace", BUNKO_FAILPOINT="pack.batch"
    )
    assert killed.returncode == -9
    home = open_named("home")
    assert "~notes" in [one.name for one in home.store.tools.all()]
    (tmp_path / "away").rename(tmp_path / "notes")
    (tmp_path / "notes" / "表.md").unlink()
    report = home.import_tools(["notes"], "replace")
    assert (report.updated, report.deleted) == (3, 1)
    assert [one.name for one in home.store.tools.all()] == ["notes"]


@pytest.mark.slow
def test_the_commands_tell_sizes_and_exit_codes_and_json(open_named: OpenNamed, packed: Path, tmp_path: Path) -> None:
    home, there = ("--library", tmp_path / "home"), ("--library", tmp_path / "there")
    packed.unlink()
    wrote = bunko(tmp_path, "export", "-n", "notes", *home)
    assert wrote.returncode == 0
    assert wrote.stdout.startswith("Wrote notes.bunko: 4 documents, ")
    assert "kB" in wrote.stdout
    told = json.loads(bunko(tmp_path, "export", "-n", "notes", "-o", "x.bunko", *home, "--json").stdout)
    assert (told["name"], told["documents"]) == ("notes", 4)
    assert told["bytes"] == (tmp_path / told["file"]).stat().st_size
    (tmp_path / "broken.bunko").write_bytes((tmp_path / "x.bunko").read_bytes()[:-1])
    failed = bunko(tmp_path, "import-pack", "broken.bunko", *there)
    assert (failed.returncode, "checksum" in failed.stderr) == (3, True)
    assert not (tmp_path / "there").exists()
    took = bunko(tmp_path, "import-pack", "x.bunko", "--yes", *there)
    assert took.returncode == 0
    assert took.stdout.startswith("Imported notes: 4 documents")
    assert "It follows no folder" in took.stderr
    again = bunko(tmp_path, "import-pack", "x.bunko", "--yes", *there)
    assert again.returncode == 2
    assert "--replace" in again.stderr
    mine = ("-n", "two", "-d", "My words")
    told = json.loads(bunko(tmp_path, "import-pack", "x.bunko", *there, *mine, "--json").stdout)
    assert (told["name"], told["description"], told["added"], told["source"]) == ("two", "My words", 4, "")
    found = bunko(tmp_path, "search", "京都の寺", "-n", "two", *there)
    assert "kyoto.md" in found.stdout
    assert found.stderr == ""
    assert "from no folder" in bunko(tmp_path, "status", *there).stdout


@pytest.mark.slow
def test_a_folder_with_its_own_index_can_be_packed_too(tmp_path: Path, notes_folder: Path) -> None:
    assert bunko(tmp_path, "reindex", "--docs-dir", notes_folder).returncode == 0
    wrote = bunko(tmp_path, "export", "--docs-dir", notes_folder, "-o", "d.bunko")
    assert wrote.returncode == 0, wrote.stderr
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("# 神戸\n\n神戸の港から船に乗った日の、少し長めの記録です。", encoding="utf-8")
    refused = bunko(tmp_path, "import-pack", "d.bunko", "--docs-dir", other, "-n", "theirs", "--yes")
    assert refused.returncode == 2
    assert "is for that folder only" in refused.stderr
    library = ("--library", tmp_path / "library")
    took = bunko(tmp_path, "import-pack", "d.bunko", *library, "-n", "theirs", "--yes")
    assert took.returncode == 0, took.stderr
    assert "kyoto.md" in bunko(tmp_path, "search", "京都の寺", *library).stdout


def test_a_refused_pack_leaves_no_new_library_behind(run: Run, packed: Path, tmp_path: Path) -> None:
    place, file = tmp_path / "fresh", tmp_path / "kept" / "one.db"
    file.parent.mkdir()
    for flags in (("--library", place), ("--database", file)):
        for wrong in (("-n", "search"), ("-s", tmp_path / "nowhere")):
            assert run("import-pack", packed, "-y", *wrong, *flags).code in (2, 3)
            assert not place.exists()
            assert list(file.parent.iterdir()) == []
    assert run("import-pack", packed, "-y", "--library", place).code == 0
    assert run("import-pack", packed, "-y", "--library", place).code == 2
    assert run("tool", "ls", "--library", place).out == "notes\n"


@pytest.mark.slow
def test_a_pack_is_not_imported_under_the_name_of_a_built_in_tool(packed: Path, tmp_path: Path) -> None:
    refused = bunko(tmp_path, "import-pack", packed, "-y", "-n", "search", "--library", tmp_path / "there")
    assert refused.returncode == 2
    assert "search" in refused.stderr
    assert not (tmp_path / "there").exists()


def test_where_nobody_can_be_asked_the_texts_of_a_pack_must_be_accepted_or_replaced(
    run: Run, packed: Path, tmp_path: Path
) -> None:
    there = ("--library", tmp_path / "there")
    for options in ((), ("-n", "mine"), ("-d", "My words"), ("--json",)):
        refused = run("import-pack", packed, *options, *there)
        assert refused.code == 2
        assert (refused.out != "") == ("--json" in options)  # an error as an object
        assert "--yes" in refused.err
        assert not (tmp_path / "there").exists()
    assert "旅と運用の記録" in run("import-pack", packed, *there).err
    assert run("import-pack", packed, "-n", "mine", "-d", "My words", *there).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_at_a_terminal_the_texts_of_a_pack_are_shown_and_confirmed(
    packed: Path, tmp_path: Path, answer: str, code: int
) -> None:
    there = ("--library", tmp_path / "there")
    returned, screen = answer_at_a_terminal(tmp_path, f"{answer}\n", "import-pack", packed, *there)
    assert returned == code, screen
    assert "description:  旅と運用の記録" in screen
    assert "Import the tool?" in screen
    assert (tmp_path / "there").exists() == (code == 0)
