"""A plugin that raises costs its own part: a document, or the search by meaning."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunko import embedders, readers, sources
from tests.conftest import Opener, Run

READER = """
from bunko.readers.reader import Reader
from bunko.types import Text

class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")

def read(data):
    if data.startswith(b"raise"):
        raise ValueError("no such\\n  section")
    if data.startswith(b"silent"):
        raise Silent
    if data.startswith(b"none"):
        return None
    if data.startswith(b"number"):
        return Text(5, "text/shout", "utf-8")
    if data.startswith(b"half"):
        return Text("half \\ud800 a character", "text/shout", "utf-8", title="\\udc00")
    return Text(text=data.decode(), media_type="text/shout", encoding="utf-8")

DEFAULT_SUFFIXES = ()

READER = Reader(read, suffixes=(".shout",), media_type="text/shout", default_suffixes=DEFAULT_SUFFIXES)
"""
EMBEDDER = """
from bunko.embedders import hashing
from bunko.embedders.provider import Provider

class Toy(hashing.Hashing):
    label = "toy"

    def __init__(self):
        super().__init__(16)
        self.name = "toy:16"

    def unavailable_reason(self):
        return ""

    def embed(self, texts, *, query=False):
        if {condition}:
            {failure}
        return super().embed(texts, query=query)

def build():
    {build}
    return Toy()

PROVIDER = Provider(build)
"""

SOURCE = """
from bunko.protocols import Scan
from bunko.sources.kind import SourceKind
from bunko.types import ExcerptEntry, Text

class Toys:
    def scan(self, fingerprints):
        {scan}
        text = Text("赤い積み木", "text/plain", "utf-8")
        entry = ExcerptEntry("blocks", 0, 0, content_hash="1", text=text, length=5)
        return Scan(unchanged=1) if fingerprints else Scan(added=[entry])

    def read(self, entry):
        raise AssertionError

    def has_vanished(self, known_uris):
        {vanished}
        return False

def build(spec):
    {build}
    return Toys()

KIND = SourceKind(build)
"""

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package with one module that adds a plugin of a kind, called toy."""
    packages = tmp_path / "packages"
    monkeypatch.syspath_prepend(packages)

    def forget() -> None:
        for cached in (
            readers.plugin_readers,
            readers.plugin_suffixes,
            embedders.plugin_providers,
            embedders.plugin_provider,
            sources.plugin_kinds,
            sources.find_kind,
        ):
            cached.cache_clear()

    def installer(kind: str, source: str) -> None:
        monkeypatch.delitem(sys.modules, "toy_plugin", raising=False)
        metadata = packages / "toy_plugin-1.0.dist-info"
        metadata.mkdir(parents=True, exist_ok=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-plugin\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[bunko.{kind}]\ntoy = toy_plugin\n")
        (packages / "toy_plugin.py").write_text(source, encoding="utf-8")
        forget()

    yield installer
    forget()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("raise", "Its reader raised ValueError: no such section"),
        ("silent", "Its reader raised Silent"),
        ("none", "Its reader returned no text but NoneType"),
        ("number", "Its reader returned no text but int"),
    ],
)
def test_a_reader_that_raises_fails_its_document_alone(
    install: Install, open_docs: Opener, docs: Path, content: str, reason: str
) -> None:
    install("readers", READER)
    (docs / "a.md").write_text("京都の寺\n", encoding="utf-8")
    (docs / "b.shout").write_text(content, encoding="utf-8")
    (docs / "c.shout").write_text("大阪の城\n", encoding="utf-8")
    library = open_docs(BUNKO_SCANNER_FILE_EXTENSIONS=".md,.shout")
    assert [hit.uri for hit in library.search("大阪の城").hits][:1] == ["c.shout"]
    report = library.reindex(rebuild=True)
    assert [(problem.uri, problem.reason.partition("\n")[0]) for problem in report.problems] == [("b.shout", reason)]
    assert [hit.uri for hit in library.search("京都の寺").hits][:1] == ["a.md"]


def test_a_folder_imports_the_default_suffixes_of_an_installed_reader_and_keeps_them_without_it(
    install: Install, open_docs: Opener, docs: Path
) -> None:
    (docs / "a.md").write_text("京都の寺\n", encoding="utf-8")
    (docs / "b.shout").write_text("大阪の城\n", encoding="utf-8")
    install("chunkers", "")
    library = open_docs()
    assert library.search("大阪の城", mode="bm25").hits == []

    install("readers", READER.replace("DEFAULT_SUFFIXES = ()", "DEFAULT_SUFFIXES = ('.shout',)"))
    library = open_docs()
    answer = library.search("大阪の城")
    assert ([hit.uri for hit in answer.hits][:1], answer.notices) == (["b.shout"], [])

    for broken in ("raise ValueError('an update')", ""):
        install("readers", broken)
        library = open_docs()
        (docs / "c.shout").write_text("神戸の港\n", encoding="utf-8")
        (docs / "a.md").write_text(f"奈良の寺 {broken}\n", encoding="utf-8")
        assert [hit.uri for hit in library.search("奈良の寺").hits][:1] == ["a.md"]
        assert [hit.uri for hit in library.search("大阪の城").hits][:1] == ["b.shout"]
        assert library.search("神戸", mode="bm25").hits == []
    (docs / "b.shout").unlink()
    assert [hit.uri for hit in open_docs().search("大阪の城", mode="bm25").hits] == []


def test_a_documents_folder_may_name_the_default_suffixes_of_an_installed_reader(
    install: Install, open_docs: Opener, docs: Path
) -> None:
    (docs / "b.shout").write_text("大阪の城\n", encoding="utf-8")
    (docs / "bunko.toml").write_text('[scanner]\nfile_extensions = ["shout"]\n', encoding="utf-8")
    install("readers", READER.replace("DEFAULT_SUFFIXES = ()", "DEFAULT_SUFFIXES = ('.shout',)"))
    assert [hit.uri for hit in open_docs().search("大阪の城").hits] == ["b.shout"]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("raise ValueError('no\\n vectors today')", "toy raised ValueError: no vectors today"),
        ("raise KeyError('x')", "toy raised KeyError: 'x'"),
        ("return [[0.0] * 16 for _ in texts]", "toy returned list instead of vectors"),
        ("return None", "toy returned NoneType instead of vectors"),
        ("return super().embed(texts).astype(float) + 2.5e299", "toy returned NaN or infinity"),
    ],
)
def test_an_embedder_that_raises_is_an_outage_and_words_answer(
    install: Install, run: Run, docs: Path, failure: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_EMBEDDING_PROVIDER", "toy")
    (docs / "a.md").write_text("京都の寺\n", encoding="utf-8")
    install("embedders", EMBEDDER.format(condition="query", failure=failure, build="pass"))
    assert run("reindex", "--docs-dir", docs).code == 0
    searched = run("search", "寺", "--docs-dir", docs)
    assert (searched.code, "a.md" in searched.out) == (0, True), searched.err
    assert reason in searched.err

    install("embedders", EMBEDDER.format(condition="not query", failure=failure, build="pass"))
    (docs / "b.md").write_text("大阪の城\n", encoding="utf-8")
    searched = run("search", "城", "--docs-dir", docs, "--mode", "bm25")
    assert (searched.code, "b.md" in searched.out) == (0, True), searched.err
    assert reason in run("reindex", "--docs-dir", docs).err


def test_half_a_character_from_a_reader_is_stored_as_its_escape(
    install: Install, open_docs: Opener, docs: Path
) -> None:
    install("readers", READER)
    (docs / "b.shout").write_text("half", encoding="utf-8")
    library = open_docs(BUNKO_SCANNER_FILE_EXTENSIONS=".shout")
    assert "\\ud800" in library.search("character").hits[0].text


def test_an_embedder_that_cannot_say_whether_it_is_there_is_not_available(
    install: Install, run: Run, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_EMBEDDING_PROVIDER", "toy")
    (docs / "a.md").write_text("京都の寺\n", encoding="utf-8")
    source = EMBEDDER.format(condition="False", failure="pass", build="pass")
    install("embedders", source.replace('return ""', "raise ValueError('no answer')"))
    ran = run("reindex", "--docs-dir", docs)
    assert ran.code == 5
    assert "toy raised ValueError: no answer" in ran.err


@pytest.mark.parametrize(
    "source",
    [
        EMBEDDER.format(condition="False", failure="pass", build="raise ValueError('no key')"),
        "raise ValueError('no key')",
    ],
)
def test_an_embedder_that_cannot_be_built_is_an_outage(
    install: Install, run: Run, docs: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_EMBEDDING_PROVIDER", "toy")
    (docs / "a.md").write_text("京都の寺\n", encoding="utf-8")
    install("embedders", EMBEDDER.format(condition="False", failure="pass", build="pass"))
    assert run("reindex", "--docs-dir", docs).code == 0
    install("embedders", source)
    searched = run("search", "寺", "--docs-dir", docs)
    assert (searched.code, "a.md" in searched.out) == (0, True), searched.err
    assert "no key" in searched.err


@pytest.mark.parametrize("part", ["scan", "vanished", "build"])
def test_a_source_that_raises_keeps_its_documents_and_ends_no_search(
    install: Install, run: Run, tmp_path: Path, docs: Path, part: str
) -> None:
    works = {"scan": "pass", "vanished": "pass", "build": "pass"}
    install("sources", SOURCE.format(**works))
    library = ("--library", tmp_path / "library")
    (docs / "a.md").write_text("京都の寺\n", encoding="utf-8")
    assert run("add", docs, "-n", "notes", *library).code == 0
    assert run("tool", "add", "-n", "toys", "-d", "Toys", "--kind", "toy", "-s", docs, *library).code == 0
    assert run("import", "-n", "toys", *library).code == 0

    install("sources", SOURCE.format(**works | {part: "raise KeyError('x')"}))
    for query, path in (("積み木", "blocks"), ("寺", "a.md")):
        searched = run("search", query, *library)
        assert (searched.code, path in searched.out) == (0, True), searched.err
        assert "The source 'toy' raised KeyError: 'x'; results come from the existing index." in searched.err
    for command in (["import", "-n", "toys", "--mode", "update"], ["import", "-n", "toys", "--mode", "replace"]):
        failed = run(*command, *library)
        assert failed.code != 0
        assert "The source 'toy' raised KeyError: 'x'" in failed.err
    described = run("status", "-n", "toys", *library)
    assert described.code == 0 or "The source 'toy' raised KeyError: 'x'" in described.err
    listed = run("status", *library)
    assert (listed.code, re.search("toys: active.* 1 document", listed.out) is not None) == (0, True), listed.err
    assert "blocks" in run("search", "積み木", *library).out
