"""Strings made to break things, wherever a string can come in: nothing breaks, and what is text is found."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from bunko.errors import BunkoError, QueryError
from bunko.interfaces import serialize
from bunko.interfaces.cli.main import EXIT_CODES
from bunko.interfaces.cli.terminal import render, render_results, result_formats
from bunko.library.library import Library
from bunko.search.request import SearchRequest
from bunko.text.dates import resolve_date
from bunko.text.tags import normalise_tag
from bunko.types import MAX_TAG_CHARS, MODES, Mode, Report
from bunko.types.records import Filter
from tests.slow import corpus

pytestmark = pytest.mark.slow

HOSTILE = (
    # Nothing, and what looks like nothing.
    " ", "\t", "\u3000", "\u00a0\u2003\u202f", "\u200b\u200c\u200d", "\u2060\ufeff", "\u180e\u115f\u3164",
    "\u2800",
    # Control characters, and lines that end in other ways.
    "bell\x07 back\x08 escape\x1b[31mred\x1b[0m", "\x1b]0;a new title\x07\x1b[2J\x1b[H", "a\x00b",
    "\x7f\x80\x9f", "one\rtwo\rthree\r", "one\x0btwo\x0cthree\x85four\u2028five\u2029six", "\r\n\n\r\n\r",
    "\x1a\x04",
    # Writing direction, and marks that stack.
    "\u202eこれは逆さま\u202c", "\u2066\u2067\u2068入れ子\u2069\u2069\u2069", "שלום לעולם עם abc בפנים",
    "مرحبا ١٢٣ abc", "e" + "\u0301\u0323\u0331\u035c" * 40, "ぱ" + "\u3099" * 30, "ก็็็็็็็็็็", "i̇İıI", "ﷺﷻ",
    # Emoji, and the joints between them.
    "👩‍👩‍👧‍👦🏳️‍🌈👨🏽‍🚀", "🇯🇵🇯", "1️⃣2️⃣#️⃣", "\U0001f468\u200d", "\U0001f3fb\U0001f3ff", "☺︎☺️",
    "🫠🫥\U0010ffff\U000e0001",
    # Width, composition, lookalikes.
    "ｱｲｳｴｵﾞﾟＡＢＣ１２３", "ガギグ と ｶﾞｷﾞｸﾞ と カ\u3099キ\u3099", "ﬁ ﬂ ㍿ ㌔ ① Ⅷ ½ ™", "раураl gооgle",
    "𝓕𝓪𝓷𝓬𝔂 𝕥𝕖𝕩𝕥", "𠮷野家の𩸽", "髙﨑",
    # Queries, shells and templates of others.
    "'; DROP TABLE documents; --", '" OR 1=1 --', "x' UNION SELECT key FROM vectors --", "100%_LIKE\\_",
    "NEAR(a b) OR *", "$(touch broken) `id` ; rm -rf -- *", "| cat > out && :(){ :|:& };:",
    "{{7*7}} ${7*7} <%= 7*7 %> #{7*7}", "%s%n%x%(a)s", "{0.__class__.__init__} {}",
    "<script>alert(1)</script><!-- ]]> &amp; <![CDATA[", "[bold red]x[/] [/red] [link=a]b[/link]",
    "\\x41\\u0041\\N{DIGIT ONE}\\", "${jndi:ldap://127.0.0.1/a}", "=cmd|' /C calc'!A0", '+1+1,"a""b",@SUM(1:9)',
    "-h", "--help",
    # Paths.
    "../../../up/and/away", "..\\..\\windows", "CON", "nul.txt.", "~root/.ssh", "file:///etc/hosts",
    "a//b/./c", "*?[a]{b,c}!", "[z-a]", "[!", "[]]", "**/**/**", "(?P<a>", "a{99999}", ".", "..",
    # Pieces of other formats.
    "---", "---\ntitle: [\n---", "+++\ntitle = '''\n+++", "key: &a [*a, *a]",
    "!!python/object/apply:os.system ['id']", '{"a": [1, {"b": null}', "[section]\nkey = 1979-05-27T07:32:00Z",
    "| a | b |\n|---|", "```\nnever closed", "<!-- never closed", "# \n## \n###", "Title\n=====\n-----",
    "> " * 300, "* " * 300, "[" * 3000, "](" * 3000, "|" * 3000, "`" * 3001, "#" * 3000,
    "\ufeffmark\ufeffin the middle\ufeff", "a\ufffeb\uffff", "null", "NaN", "-0", "1e999", "0x7fffffffffffffff",
    "９" * 400,
    # Length.
    "長" * 5000, "w" * 20_000, "ab" * 10_000 + "!", "ー" * 3000, "っ" * 3000, "a1" * 5000, "." * 5000,
    "。" * 5000, "\n" * 5000, " x" * 5000, "é" * 3000, "CamelCase" * 800, "snake_" * 1000, "日 " * 3000,
)  # fmt: skip
# What Linux hands over for a file name or an argument that is no valid UTF-8, and what JSON can smuggle in.
BROKEN = ("\udcff\udcfe", "a\udc80b", "\ud800", "\udfff\ud800", "語\udce3")


def marker(place: str, number: int) -> str:
    """Return a word that stands in one document only, of letters only so that nothing cuts it in two."""
    return place + f"{number:04d}".translate(str.maketrans("0123456789", "bcdfghjklm")) + "q"


@dataclass(frozen=True)
class Imported:
    """The library of all hostile documents, what its import said, and which documents it was given."""

    library: Library
    report: Report
    docs: Path
    markers: dict[str, str]  # uri → the word it must be found by
    rest: set[str]  # what need not be text: indexed, or reported


def write_all(docs: Path) -> tuple[dict[str, str], set[str]]:
    markers: dict[str, str] = {}
    rest: set[str] = set()

    def put(uri: str, text: str, word: str | None) -> None:
        with suppress(OSError, ValueError, UnicodeEncodeError):  # not a name this system allows, or not text at all
            path = docs / uri
            data = text.encode()
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            if word is None:
                rest.add(uri)
            else:
                markers[uri] = word

    for number, string in enumerate((*HOSTILE, *BROKEN)):
        line = string.replace("\0", " ")  # a NUL makes a file binary; everything else stands as it is
        quoted = json.dumps(line, ensure_ascii=False)
        put(f"raw/{number}.txt", string, None)
        put(f"raw/{number}.md", string, None)
        for suffix in ("md", "txt"):
            word = marker(f"content{suffix}", number)
            put(f"content/{number}.{suffix}", f"前の段落 {word} です。\n\n{line}\n\n後の段落。", word)
        word = marker("heading", number)
        put(f"heading/{number}.md", f"# {line}\n\n本文 {word} です。\n\n## {line}\n\n続き。", word)
        word = marker("front", number)
        put(f"front/{number}.md", f"---\ntitle: {line}\ndate: {line}\ntags: {line}\n---\n\n本文 {word} です。", word)
        word = marker("toml", number)
        put(f"toml/{number}.md", f"+++\ntitle = {quoted}\ndate = {line}\n+++\n\n本文 {word} です。", word)
        word = marker("tag", number)
        put(f"tag/{number}.md", f"---\ntitle: {quoted}\ntags:\n  - {quoted}\n---\n\n本文 {word} です。", word)
        word = marker("table", number)
        put(f"table/{number}.md", f"| {line} | b |\n|---|---|\n| {word} | {line} |\n", word)
        word = marker("name", number)
        if "/" not in string and string not in {".", ".."}:
            put(f"name/{string}.md", f"# 題\n\n本文 {word} です。", word)
            put(f"name/{string}/{number}.md", f"# 題\n\n本文 {word}folder です。", f"{word}folder")
    word = marker("line", 0)
    put("long/line.txt", f"{word} " + "とても長い一行 a very long line " * 30_000, word)
    return markers, rest


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    docs = tmp_path_factory.mktemp("hostile") / "docs"
    docs.mkdir()
    markers, rest = write_all(docs)
    assert len(markers) > 700
    library = corpus.opened(docs)
    yield Imported(library, library.reindex(), docs, markers, rest)
    library.close()


def printable(uri: str) -> str:
    """Return a name as it is reported: what is not valid UTF-8 is written out."""
    return uri.encode(errors="backslashreplace").decode()


def test_every_document_is_indexed_or_reported_and_the_import_goes_through(imported: Imported) -> None:
    stored = corpus.stored(imported.library)
    reported = {problem.uri for problem in imported.report.problems}
    given = {printable(uri) for uri in (*imported.markers, *imported.rest)}
    missing = {uri for uri in given - stored.keys() - reported if not any(uri.startswith(f"{r}/") for r in reported)}
    assert not missing
    assert all(problem.reason.strip() for problem in imported.report.problems)
    for uri, text in stored.items():
        assert text == (imported.docs / uri).read_bytes().decode("utf-8-sig"), uri


def test_only_blank_binary_or_misnamed_documents_are_left_out(imported: Imported) -> None:
    stored = corpus.stored(imported.library)
    for uri in imported.markers.keys() - stored.keys():
        assert printable(uri) != uri, f"{uri!r} is text with a good name, and is not indexed"
    for problem in imported.report.problems:
        if problem.uri in imported.rest:
            text = (imported.docs / problem.uri).read_text(encoding="utf-8")
            controls = sum(character < " " or character == "\x7f" for character in text)
            assert not text.strip() or "\0" in text or controls > len(text) / 10, f"{text!r}: {problem.reason}"


def test_every_indexed_document_is_found_by_a_word_of_its_own(imported: Imported) -> None:
    stored = corpus.stored(imported.library)
    lost = []
    for uri, word in imported.markers.items():
        if uri not in stored:
            continue
        limits: list[tuple[Mode, int]] = [("bm25", 5), ("hybrid", 30)]
        for mode, limit in limits:
            hits = imported.library.search(word, mode=mode, top_k=limit, refresh=False).hits
            if uri not in {hit.uri for hit in hits}:
                lost.append((uri, word, mode))
    assert not lost


def test_every_string_can_be_searched_for_in_every_mode_and_shown(
    imported: Imported, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for string in (*HOSTILE, *BROKEN, "".join(HOSTILE), "\x00" * 10):
        if not string.strip():
            with pytest.raises(QueryError, match="empty"):
                imported.library.page(SearchRequest(string))
            continue
        for mode in MODES:
            request = SearchRequest(string, mode=mode, top_k=3, explain=True, refresh=False, join_chunks=False)
            page = imported.library.page(request)
            assert len(page.results) <= 3
            printed = json.dumps(serialize.page_to_dict(page), ensure_ascii=False)
            assert json.loads(printed)["query"] == string
            result_formats.to_text(page)
        render_results.show_page(page)
    shown = capsys.readouterr().out
    assert "\x1b]0;" not in shown, "a document can change the title of the terminal"
    assert "\x1b[2J" not in shown, "a document can clear the terminal"
    assert not set(shown) & set("\x07\x08\x00\x9b"), "a document can ring or erase"


def test_every_string_that_is_text_finds_itself(imported: Imported) -> None:
    lost = []
    for number, string in enumerate(HOSTILE):
        if not any(character.isalnum() for character in string) or "\0" in string:
            continue
        hits = imported.library.search(string, where=Filter(path=f"content/{number}.md"), refresh=False).hits
        if not hits:
            lost.append(string[:40])
    assert not lost


def test_every_string_can_be_a_filter(imported: Imported) -> None:
    for number, string in enumerate(
        (*HOSTILE, *BROKEN, *(f"[{inside}]" for inside in ("!", "a--b", "a&&b", "~~", "||")))
    ):
        for where in (Filter(path=string), Filter(path=f"{string}/**"), Filter(tags=(normalise_tag(string),))):
            with suppress(BunkoError):  # an impossible pattern may be refused, in a sentence
                imported.library.search("本文", where=where, refresh=False)
        with suppress(BunkoError):
            resolve_date(string, datetime(2024, 1, 15))
        # YAML can hold what can be printed; a front matter with anything else is no front matter. A long tag is none.
        is_tag = 0 < len(normalise_tag(string)) <= MAX_TAG_CHARS
        if is_tag and string.isprintable() and f"tag/{number}.md" in imported.markers:
            answer = imported.library.search(
                "本文", where=Filter(tags=(normalise_tag(string),)), top_k=1000, refresh=False
            )
            assert f"tag/{number}.md" in {hit.uri for hit in answer.hits}, string[:40]


def test_a_second_import_finds_nothing_changed(imported: Imported) -> None:
    report = imported.library.reindex()
    assert (report.added, report.updated, report.deleted, report.moved) == (0, 0, 0, 0)
    assert report.total_chunks == imported.report.total_chunks
    assert {problem.uri for problem in report.problems} == {problem.uri for problem in imported.report.problems}


def test_doctor_and_status_can_tell_about_hostile_documents(imported: Imported) -> None:
    assert imported.library.store.check() == ""
    assert not [finding for finding in imported.library.maintenance.diagnose() if finding.state == "error"]
    status = imported.library.status()
    render.show_status(status)
    render.show_findings(imported.library.maintenance.diagnose())


@pytest.mark.parametrize(
    "name", ["a[/red]b", "%s {0} $(id)", "--help", "-", "'; DROP TABLE tools; --", "\x1b[2J\u202e"], ids=ascii
)
def test_a_folder_may_have_any_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = tmp_path / name
    docs.mkdir(parents=True)
    (docs / "a.md").write_text("# 京都\n\n寺の庭を訪ねた日の、少し長めの記録。", encoding="utf-8")
    for command in (("reindex",), ("search", "京都"), ("status",), ("doctor",)):
        done = corpus.run(*command, "--docs-dir", docs)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    with corpus.opened(docs) as library:
        render.show_status(library.status())
        render.show_findings(library.maintenance.diagnose())
        render_results.show_page(library.page(SearchRequest("京都")))
    assert "\x1b[2J" not in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode there")
def test_a_folder_whose_name_is_no_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    docs = tmp_path / os.fsdecode(b"\xff\xfe docs")
    docs.mkdir()
    (docs / "a.md").write_text("# 京都\n\n寺の庭を訪ねた日の、少し長めの記録。", encoding="utf-8")
    for command in (("reindex",), ("search", "京都"), ("status",), ("doctor",)):
        done = corpus.run(*command, "--docs-dir", docs)
        assert done.returncode == EXIT_CODES["settings"]
        assert "not valid UTF-8" in done.stderr
        assert "Traceback" not in done.stderr


# The system lets no NUL through, and of broken text only what stands for single bytes.
@pytest.mark.parametrize("query", [*HOSTILE[8:10], *HOSTILE[12:14], "[/red]", *BROKEN[:2], BROKEN[4]], ids=ascii)
def test_a_real_command_line_takes_any_argument_the_system_lets_through(query: str, imported: Imported) -> None:
    done = corpus.run("search", "--docs-dir", imported.docs, "--no-refresh", "--json", "--", query)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    json.loads(done.stdout)
