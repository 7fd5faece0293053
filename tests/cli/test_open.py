"""`bunko open` starts the editor at the line, the default program or the browser, and never a shell."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from bunko.interfaces.programs import editor_command, open_command
from tests.conftest import Opener, Run
from tests.site import Site, html, text

GUIDE = "guide/setup.md"
FILE = Path("/notes/a b.md")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VISUAL", "EDITOR", "BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        ("vim", ["vim", "+12", str(FILE)]),
        ("/usr/bin/nvim -R", ["/usr/bin/nvim", "-R", "+12", str(FILE)]),
        ("vi", ["vi", "+12", str(FILE)]),
        ("emacsclient -t", ["emacsclient", "-t", "+12", str(FILE)]),
        ("nano", ["nano", "+12", str(FILE)]),
        ("code --wait", ["code", "--wait", "-g", f"{FILE}:12"]),
        ("cursor", ["cursor", "-g", f"{FILE}:12"]),
        ("codium", ["codium", "-g", f"{FILE}:12"]),
        ("subl -w", ["subl", "-w", f"{FILE}:12"]),
        ("hx", ["hx", f"{FILE}:12"]),
        ("kate", ["kate", "-l", "12", str(FILE)]),
        ("idea", ["idea", "--line", "12", str(FILE)]),
        ("'/opt/My Editor/vim'", ["/opt/My Editor/vim", "+12", str(FILE)]),
        ("ed; rm -rf ~", ["ed;", "rm", "-rf", "~", str(FILE)]),
        ("someeditor", ["someeditor", str(FILE)]),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(editor: str, expected: list[str]) -> None:
    assert editor_command(editor, FILE, 12) == expected


@pytest.mark.parametrize("editor", ["vim", "code", "subl", "kate", "idea"])
def test_without_a_line_an_editor_gets_the_file_only(editor: str) -> None:
    assert editor_command(editor, FILE, 0) == [editor, str(FILE)]


@pytest.mark.parametrize("location", [f"{GUIDE}:L8-L10", f"{GUIDE}:8", f"{GUIDE}#インストール手順"])
def test_print_shows_the_command_and_runs_nothing(
    location: str, run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("VISUAL", "vim")
    ran = run("open", location, "--print", "--docs-dir", notes)
    assert (ran.code, ran.out) == (0, f"vim +8 {notes / GUIDE}\n")
    as_json = run("open", location, "--print", "--json", "--docs-dir", notes).json()
    assert as_json == {"command": ["vim", "+8", str(notes / GUIDE)]}


@pytest.mark.slow
def test_the_editor_is_run_with_the_file_and_no_shell(
    run: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = tmp_path / "record; echo.py"
    recorder.write_text("import sys; open(sys.argv[1], 'w').write('\\n'.join(sys.argv[2:]))")
    name = "a'b $(touch owned).md"
    (notes / name).write_text("# odd\n\ntext\n", encoding="utf-8")
    monkeypatch.setenv("EDITOR", f"'{sys.executable}' '{recorder}' '{tmp_path / 'arguments'}'")
    monkeypatch.chdir(tmp_path)
    assert run("open", f"{name}:L3", "--docs-dir", notes).code == 0
    assert (tmp_path / "arguments").read_text() == str(notes / name)
    assert not (tmp_path / "owned").exists()


@pytest.mark.slow
def test_an_editor_that_is_missing_or_fails_says_what_to_set(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")
    ran = run("open", GUIDE, "--docs-dir", notes)
    assert ran.code == 2
    assert "no-such-editor" in ran.err
    assert "$EDITOR" in ran.err
    monkeypatch.setenv("EDITOR", f"'{sys.executable}' -c 'raise SystemExit(3)'")
    ran = run("open", GUIDE, "--docs-dir", notes)
    assert ran.code == 1
    assert "ended with exit code 3" in ran.err
    monkeypatch.setenv("EDITOR", "vim 'unbalanced")
    assert run("open", GUIDE, "--docs-dir", notes).code == 2


def test_without_an_editor_and_without_a_desktop_the_error_says_what_to_set(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", "")
    ran = run("open", GUIDE, "--docs-dir", notes)
    assert ran.code == 2
    assert "Set $EDITOR" in ran.err


@pytest.mark.parametrize(
    ("platform", "command"),
    [
        ("linux", ["xdg-open"]),
        ("darwin", ["open"]),
        ("win32", ["rundll32", "url.dll,FileProtocolHandler"]),
    ],
)
def test_other_files_and_pages_are_opened_by_the_program_of_the_desktop(
    platform: str, command: list[str], docs: Path, tmp_path: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("xdg-open", "open", "rundll32"):
        (programs / name).touch(0o755)
    (docs / "page.html").write_text("<h1>A page</h1><p>Some text of this page, a sentence.</p>", encoding="utf-8")
    (docs / "a.txt").write_text("text\n", encoding="utf-8")
    environ = {"EDITOR": "vim", "PATH": str(programs), "DISPLAY": ":0"}
    library = open_docs()
    page = library.documents.find("page.html:L1")
    assert open_command(page, environ) == [*command, str(docs / "page.html")]
    assert open_command(library.documents.find("a.txt:1"), environ)[:2] == ["vim", "+1"]
    del environ["EDITOR"]
    assert open_command(library.documents.find("a.txt:1"), environ) == [*command, str(docs / "a.txt")]


def test_a_web_page_is_opened_in_the_browser(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    page = html("<h1>A page</h1><p>Some text of this page, and another sentence of it.</p><h2>Details</h2><p>More.</p>")
    with Site({"/guide?a=1&b=2": page, "/robots.txt": text("")}) as site:
        monkeypatch.setenv("BUNKO_CRAWL_ALLOWED_HOSTS", site.host)
        monkeypatch.setenv("RAG_CRAWL_DELAY_SEC", "0")
        url = site.url("/guide?a=1&b=2")
        assert run("web", "add", url).code == 0
        monkeypatch.setenv("EDITOR", "vim")
        for browser, expected in (
            ("firefox --new-tab", ["firefox", "--new-tab", url]),
            ("w3m %s -M", ["w3m", url, "-M"]),
        ):
            monkeypatch.setenv("BROWSER", browser)
            for location in (url, f"{url}:L1-L2", f"{url}#no-heading"):
                assert run("open", location, "--print", "--json").json() == {"command": expected}
    assert run("get", f"{url}#details").out.startswith("## Details")


def test_a_file_that_is_gone_and_a_pack_without_files_say_so(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "a.md").write_text("# a\n\ntext of the handbook\n", encoding="utf-8")
    run("tool", "add", "-n", "handbook", "-d", "how we work", "-s", folder)
    run("import", "-n", "handbook")
    run("export", "-n", "handbook", "--output", tmp_path / "handbook.bunko")
    run("import-pack", tmp_path / "handbook.bunko", "-n", "copy", "--yes")
    ran = run("open", "a.md", "-n", "copy")
    assert ran.code == 3
    assert "bunko get a.md -n copy" in ran.err
    shutil.rmtree(folder)
    ran = run("open", "a.md", "-n", "handbook")
    assert ran.code == 3
    assert f"{folder / 'a.md'} does not exist" in ran.err
    assert "bunko get a.md -n handbook" in ran.err
