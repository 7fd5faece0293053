"""bunko where a package is missing, or raises: what does not need it works, and the rest says so in one sentence."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.cli.main import EXIT_CODES
from tests.cli.processes import type_at_a_terminal
from tests.slow import corpus
from tests.slow.packages import ROOT, is_compiled, python_with_broken, python_without

pytestmark = pytest.mark.slow

JAPANESE, ENGLISH, HTML = "環境構築の方法", "how the server indexes", "roses in summer"
DOCUMENTS = {
    "ja.md": "---\ntitle: 手引き\ntags: [環境]\n---\n# 検索エンジン\n\n環境構築の方法を説明します。サーバーの設定。\n",
    "en.md": "# Search engines\n\nThe server keeps documents and indexes them quickly.\n",
    "page.html": "<html><body><h1>Gardens</h1><p>Roses need much water in the summer.</p></body></html>",
}
QUERIES = {JAPANESE: "ja.md", ENGLISH: "en.md", HTML: "page.html"}


@dataclass(frozen=True)
class Without:
    """What does not work without a package."""

    waiting: tuple[str, ...] = ()  # documents that are imported only when it is back
    commands: tuple[str, ...] = ()  # that end with one sentence


# All that `dependencies` in pyproject.toml names; click is the command line itself.
PACKAGES = {
    "anyio": Without(),
    "docutils": Without(),
    "filelock": Without(commands=("add",)),
    "fugashi": Without(waiting=("ja.md",)),
    "google-re2": Without(),
    "h11": Without(),
    "httpcore2": Without(),
    "idna": Without(),
    "Jinja2": Without(),
    "markdown-it-py": Without(),
    "MarkupSafe": Without(),
    "nh3": Without(),
    "numpy": Without(commands=("add", "search", "status", "call")),
    "platformdirs": Without(commands=("add", "search", "status", "serve")),
    "prometheus-client": Without(),
    "prompt_toolkit": Without(),
    "pydantic": Without(),
    "pypdfium2": Without(),
    "PyStemmer": Without(commands=("add",)),  # there is no document without a word of Latin letters
    "PyYAML": Without(waiting=("ja.md",)),
    "rich": Without(),
    "selectolax": Without(waiting=("page.html",)),
    "sentencepiece": Without(),
    "simsimd": Without(),
    "starlette": Without(),
    "typing_extensions": Without(),
    "uvicorn": Without(),
    "watchfiles": Without(),
}
# What new.md waits for; with the last one, only its vector does.
NEEDED_BY_NEW = ("filelock", "fugashi", "PyStemmer", "sentencepiece")
WAYS = {"missing": python_without, "broken": python_with_broken}


@dataclass(frozen=True)
class Bunko:
    """Runs bunko where a package is missing or broken."""

    package: str
    command: list[str]
    environ: dict[str, str]

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command, which never ends in a traceback."""
        ran = subprocess.run(
            [*self.command, "-m", "bunko", *map(str, arguments)],
            env=corpus.environment(**self.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=corpus.PATIENCE,
        )
        assert "Traceback" not in ran.stdout + ran.stderr, ran.stderr
        return ran

    def sentence(self) -> re.Pattern[str]:
        """Return what is said about the package: its version, and the command that helps."""
        name = re.escape(self.package).replace("_", "[-_]")
        return re.compile(
            rf"(?i)The package {name} is not installed\W+Install it with: pip install \"{name}[<>=]"
            rf"|{name} [\d.]+ cannot be used \(.+\)\W+Install it again with: pip install --force-reinstall \"{name}=="
        )

    def says_why(self, ran: subprocess.CompletedProcess[str]) -> bool:
        """Return whether a command ended with one sentence about the package."""
        return bool(ran.returncode and self.sentence().search(ran.stderr) and ran.stderr.count("\n") <= 3)


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that was made with all packages; its folder has changed since."""
    folder = tmp_path_factory.mktemp("healthy")
    write_documents(folder / "docs")
    added = corpus.run("add", folder / "docs", "--library", folder / "library")
    assert added.returncode == 0, added.stderr
    (folder / "docs" / "new.md").write_text("# 新しい English\n\n昨日の記録です。\n", "utf-8")
    return folder


def write_documents(docs: Path) -> None:
    docs.mkdir()
    for name, text in DOCUMENTS.items():
        (docs / name).write_text(text, "utf-8")


def best_document(ran: subprocess.CompletedProcess[str]) -> str:
    """Return the document of the best hit, or an empty string."""
    assert ran.returncode in (0, 1), ran.stderr
    results: list[dict[str, Any]] = json.loads(ran.stdout)["results"]
    return str(results[0]["file_path"]) if results else ""


def test_every_dependency_is_named_here() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    names = {re.split(r"[^\w.-]", dependency)[0] for dependency in dependencies}
    assert names - {"click"} == PACKAGES.keys()
    assert {"fugashi", "numpy", "simsimd"} <= {name for name in PACKAGES if is_compiled(name)}
    assert not is_compiled("click")


@pytest.fixture(params=[(package, way) for package in PACKAGES for way in WAYS], ids="-".join)
def without(request: pytest.FixtureRequest, tmp_path: Path) -> Bunko:
    package, way = request.param
    folder = tmp_path / "python"
    folder.mkdir()
    return Bunko(package, *WAYS[way](package, folder))


def test_a_library_is_searched_without_a_package(without: Bunko, healthy: Path, tmp_path: Path) -> None:
    ends = PACKAGES[without.package].commands
    library = tmp_path / "library"
    shutil.copytree(healthy / "library", library)
    for query, document in QUERIES.items():
        searched = without.run("search", query, "--library", library, "--json")
        if "search" in ends:
            assert without.says_why(searched)
            continue
        assert best_document(searched) == document
        notices = "\n".join(json.loads(searched.stdout).get("notices", []))
        assert len(without.sentence().findall(notices)) == (without.package in NEEDED_BY_NEW), notices
    status = without.run("status", "--library", library)
    if "status" in ends:
        assert without.says_why(status)
    else:
        count = 3 if without.package in NEEDED_BY_NEW and without.package != "sentencepiece" else 4
        assert f"{count} documents, {count} chunks" in status.stdout


def test_a_folder_is_added_without_a_package_and_the_rest_follows(without: Bunko, tmp_path: Path) -> None:
    expected = PACKAGES[without.package]
    docs, library = tmp_path / "docs", tmp_path / "library"
    write_documents(docs)
    added = without.run("add", docs, "--library", library)
    if "add" in expected.commands:
        assert without.says_why(added)
    else:
        assert added.returncode == 0, added.stderr
        assert bool(without.sentence().search(added.stderr)) is bool(expected.waiting or says_vectors_wait(without))
        for query, document in QUERIES.items():
            searched = without.run("search", query, "--library", library, "--json")
            assert (best_document(searched) == document) is (document not in expected.waiting)
    # With the package, a search imports what waited, as if nothing had been the matter.
    if not library.exists():
        corpus.run("add", docs, "--library", library)
    for query, document in QUERIES.items():
        assert best_document(corpus.run("search", query, "--library", library, "--json")) == document
    assert "3 documents, 3 chunks, 3 vectors" in corpus.run("status", "--library", library).stdout


def says_vectors_wait(without: Bunko) -> bool:
    return without.package == "sentencepiece"


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}


def test_an_assistant_searches_without_a_package(without: Bunko, healthy: Path, tmp_path: Path) -> None:
    ends = PACKAGES[without.package].commands
    library = tmp_path / "library"
    shutil.copytree(healthy / "library", library)
    command = [*without.command, "-m", "bunko", "serve", "--library", str(library)]
    environ = corpus.environment(**without.environ)
    if "serve" in ends:
        served = without.run("serve", "--library", library)
        assert without.says_why(served)
        return
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, encoding="utf-8"
        ) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None

        def ask(number: int, method: str, **params: Any) -> dict[str, Any]:
            assert server.stdin is not None
            assert server.stdout is not None
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            while (answer := json.loads(server.stdout.readline())).get("id") != number:
                pass
            result: dict[str, Any] = answer["result"]
            return result

        ask(1, "initialize", **HELLO)
        server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        for number, (query, document) in enumerate(QUERIES.items(), 2):
            found = ask(number, "tools/call", name="search", arguments={"query": query})
            text = found["content"][0]["text"]
            if "call" in ends:
                assert found["isError"]
                assert without.sentence().search(text)
            else:
                assert document in text
        server.stdin.close()
        server.wait(corpus.PATIENCE)
    assert "Traceback" not in (tmp_path / "log").read_text()


NEEDED_BY_COMMANDS = {
    "google-re2": ("web", "crawl", "http://127.0.0.1:8099/", "guide"),
    "httpcore2": ("web", "add", "http://127.0.0.1:8099/"),
    "idna": ("web", "add", "http://日本語.example/"),
    **dict.fromkeys(
        ("anyio", "h11", "Jinja2", "MarkupSafe", "prometheus-client", "pydantic", "starlette", "uvicorn"),
        ("serve", "--http", "--port", "0"),
    ),
}
# What these have is called by requests only, so a server starts where it is broken.
CALLED_BY_REQUESTS = ("anyio", "h11", "MarkupSafe")


@pytest.mark.parametrize(
    ("way", "package"),
    [
        pytest.param(way, package, id=f"{package}-{name}")
        for package in NEEDED_BY_COMMANDS
        for name, way in WAYS.items()
        if name == "missing" or package not in CALLED_BY_REQUESTS
    ],
)
def test_what_needs_a_package_says_so(
    way: Callable[[str, Path], tuple[list[str], dict[str, str]]],
    package: str,
    healthy: Path,
    tmp_path: Path,
) -> None:
    library, folder = tmp_path / "library", tmp_path / "python"
    folder.mkdir()
    shutil.copytree(healthy / "library", library)
    command, environ = way(package, folder)
    without = Bunko(package, command, environ | {"BUNKO_CRAWL_ALLOWED_HOSTS": "127.0.0.1"})
    ran = without.run(*NEEDED_BY_COMMANDS[package], "--library", library)
    assert ran.returncode
    assert without.sentence().search(ran.stderr), ran.stderr


@pytest.mark.parametrize(("package", "command"), [("rich", "search"), ("prompt_toolkit", "find")])
def test_a_terminal_that_cannot_be_drawn_on_says_so(package: str, command: str, healthy: Path, tmp_path: Path) -> None:
    library, folder = tmp_path / "library", tmp_path / "python"
    folder.mkdir()
    shutil.copytree(healthy / "library", library)
    environ = corpus.environment(**python_with_broken(package, folder)[1])
    written = type_at_a_terminal("q\x1b", command, "server", "--library", library, env=environ)
    assert "Traceback" not in written
    assert re.search(rf"{package.replace('_', '[-_]')} [\d.]+ cannot be used", written)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_watch_without_events_polls(
    way: Callable[[str, Path], tuple[list[str], dict[str, str]]], healthy: Path, tmp_path: Path
) -> None:
    library, folder = tmp_path / "library", tmp_path / "python"
    folder.mkdir()
    shutil.copytree(healthy / "library", library)
    command, environ = way("watchfiles", folder)
    log = tmp_path / "log"
    with log.open("w") as file:
        watch = subprocess.Popen(
            [*command, "-m", "bunko", "watch", "--library", str(library)],
            env=corpus.environment(**environ), stdout=file, stderr=file, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        corpus.wait_until(lambda: "polling every" in log.read_text("utf-8"), "the watch polls")
        assert re.search(r"watchfiles.*(not installed|cannot be used)", log.read_text("utf-8"))
        assert "Traceback" not in log.read_text("utf-8")
    finally:
        watch.kill()
        watch.wait()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_source_code_is_divided_by_lines_without_a_parser(
    way: Callable[[str, Path], tuple[list[str], dict[str, str]]], tmp_path: Path
) -> None:
    docs, library, folder = tmp_path / "docs", tmp_path / "library", tmp_path / "python"
    docs.mkdir()
    folder.mkdir()
    (docs / "parser.py").write_text("def parse_headings(text):\n    return text.splitlines()\n", "utf-8")
    without = Bunko("tree-sitter", *way("tree-sitter", folder))
    added = without.run("add", docs, "--include", "*.py", "--library", library)
    assert added.returncode == 0
    assert "divided by its lines" in added.stderr
    assert best_document(without.run("search", "parse headings", "--library", library, "--json")) == "parser.py"


def test_memos_wait_for_a_package(tmp_path: Path) -> None:
    memos, library, folder = tmp_path / "ChangeLog", tmp_path / "library", tmp_path / "python"
    memos.write_text("2024-01-14  Hanako\n\n\t* Garden: the roses need water.\n", "utf-8")
    assert corpus.run("add", memos, "--library", library).returncode == 0
    folder.mkdir()
    without = Bunko("fugashi", *python_without("fugashi", folder))
    for topic in ("環境構築", "京都"):
        memos.write_text(f"2024-01-15  花子\n\n\t* {topic}: 寺で設定した。\n\n{memos.read_text('utf-8')}", "utf-8")
        searched = json.loads(without.run("search", "roses", "--library", library, "--json").stdout)
        assert [result["title"] for result in searched["results"]] == ["Garden"]
        assert without.sentence().search("\n".join(searched["notices"]))
        searched = json.loads(corpus.run("search", topic, "--library", library, "--json").stdout)
        assert searched["results"][0]["title"] == topic


def test_windows_of_tokens_wait_for_the_tokenizer(tmp_path: Path) -> None:
    docs, library, folder = tmp_path / "docs", tmp_path / "library", tmp_path / "python"
    write_documents(docs)
    folder.mkdir()
    assert corpus.run("add", docs, "--library", library).returncode == 0
    without = Bunko("sentencepiece", *python_without("sentencepiece", folder))
    rebuild = ("import", "-n", "docs", "--mode", "replace", "--chunker", "tokens", "--library", library)
    rebuilt = without.run(*rebuild)
    assert without.says_why(rebuilt), rebuilt.stderr
    assert "unfinished" not in without.run("status", "--library", library).stdout
    assert best_document(without.run("search", ENGLISH, "--library", library, "--json")) == "en.md"
    assert corpus.run(*rebuild).returncode == 0
    assert best_document(corpus.run("search", ENGLISH, "--library", library, "--json")) == "en.md"


@pytest.mark.parametrize("package", ["fugashi", "PyStemmer", "sentencepiece", "selectolax", "PyYAML"])
def test_a_rebuild_without_a_package_loses_nothing(package: str, healthy: Path, tmp_path: Path) -> None:
    library, folder = tmp_path / "library", tmp_path / "python"
    folder.mkdir()
    shutil.copytree(healthy / "library", library)
    without = Bunko(package, *python_without(package, folder))
    assert without.sentence().search(
        without.run("import", "-n", "docs", "--mode", "replace", "--library", library).stderr
    )
    for query, document in QUERIES.items():
        assert best_document(without.run("search", query, "--library", library, "--json")) == document


def test_doctor_names_a_package_that_cannot_be_used(healthy: Path, tmp_path: Path) -> None:
    library, folder = tmp_path / "library", tmp_path / "python"
    folder.mkdir()
    shutil.copytree(healthy / "library", library)
    without = Bunko("fugashi", *python_with_broken("fugashi", folder))
    doctor = without.run("doctor", "--library", library)
    assert doctor.returncode == 1
    assert re.search(r"FAIL packages: fugashi [\d.]+ cannot be used", doctor.stdout)


def test_the_traceback_of_a_package_is_shown_on_request(tmp_path: Path) -> None:
    without = Bunko("numpy", *python_without("numpy", tmp_path))
    ended = without.run("status", "--library", tmp_path)
    assert ended.returncode == EXIT_CODES["package"]
    with pytest.raises(AssertionError, match="Traceback"):
        without.run("status", "--library", tmp_path, "--verbose")
