"""The public Python API: what is exported, what it costs to import, and that the documented examples run."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import pytest

import bunko

ROOT = Path(__file__).parents[2]
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
EXAMPLES = [
    pytest.param(page, number, id=f"{page}-{number}", marks=[pytest.mark.slow] if number else [])
    for page in ("docs/python.md", "README.md", "README.ja.md")
    for number in range(len(_PYTHON.findall((ROOT / page).read_text(encoding="utf-8"))))
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which `notes` holds the sample documents."""
    shutil.copytree(ROOT / "examples" / "library", tmp_path / "notes")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def test_the_exported_names_are_these() -> None:
    assert bunko.__all__ == [
        "Answer", "BunkoError", "EmbedderError", "Filter", "Hit", "Library", "LibraryError", "Page", "QueryError",
        "Report", "SearchRequest", "SettingsError", "SourceError", "Tool", "UnknownName", "open",
    ]  # fmt: skip
    for name in bunko.__all__:
        assert getattr(bunko, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = bunko.nothing  # type: ignore[attr-defined]


SIGNATURES = {
    "open": "(path: 'str | PathLike[str] | None' = None, *, read_only: 'bool' = False,"
    " environ: 'Mapping[str, str] | None' = None, **settings: 'object') -> 'Library'",
    "Library.search": "(self, query: 'str', *, also: 'str | Sequence[str]' = (), passage: 'str' = '',"
    " tool: 'str | Sequence[str] | None' = None, kinds: 'Sequence[str]' = (),"
    " mode: 'Mode | None' = None, top_k: 'int | None' = None, per_document: 'int | None' = None,"
    " fill_up: 'bool' = False,"
    " min_score: 'float | None' = None, operators: 'bool' = True, where: 'Filter' = NO_FILTER, explain: 'bool' = False,"
    " refresh: 'bool' = True, rewrite: 'bool | None' = False, rerank: 'bool' = True,"
    " use_tool_settings: 'bool' = True, **ranking: 'OptionValue') -> 'Answer'",
    "Library.page": "(self, request: 'SearchRequest', *, overhead_tokens: 'Callable[[Passage], int]' = …,"
    " observer: 'Observer' = …) -> 'Page'",
    "Library.read": "(self, location: 'str', *, tool: 'str | None' = None) -> 'str'",
    "Library.add": "(self, source: 'str | Path', *, name: 'str', description: 'str' = '', kind: 'str' = 'folder')"
    " -> 'Tool'",
    "Library.import_": "(self, *names: 'str', observer: 'Observer' = …) -> 'Report'",
    "Library.delete_tool": "(self, name: 'str', *, observer: 'Observer' = …) -> 'None'",
    "Library.verify_citation": "(self, citation: 'str', digest: 'str', *, tool: 'str | None' = None)"
    " -> 'CitationCheck'",
    "Library.close": "(self) -> 'None'",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_signatures_are_these(name: str) -> None:
    function = bunko
    for part in name.split("."):
        function = getattr(function, part)
    signature = str(inspect.signature(function))  # type: ignore[arg-type]
    signature = re.sub(r"<function .*? at 0x[0-9a-f]+>|Observer\([^)]*(?:\([^)]*\)[^)]*)*\)(?=[,)])", "…", signature)
    signature = re.sub(r"= Filter\(.*?\), explain", "= NO_FILTER, explain", signature)
    assert signature == SIGNATURES[name]


def test_the_tools_of_a_library_are_listed_by_a_call_and_changed_by_their_methods(folder: Path) -> None:
    with bunko.open(folder / "my.db", embedding_provider="none") as library:
        assert library.tools() == []
        added = library.tools.add("notes", "How we work", folder / "notes")
        assert library.tools() == [added] == [library.tools.get("notes")]
        assert library.tools.update("notes", description="What we do").description == "What we do"
        assert not library.tools.set_active("notes", active=False).active


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells the time of each thread")
def test_a_program_that_searches_wakes_no_threads_of_blas(tmp_path: Path) -> None:
    memos = (
        f'{{"text": "memo {number} about lens {number % 97} and mirror {number % 89}"}}\n' for number in range(4000)
    )
    (tmp_path / "memos.jsonl").write_text("".join(memos), encoding="utf-8")
    code = (
        "import bunko, threading; from pathlib import Path\n"
        "def others():\n"
        "    stats = [path.read_text().rpartition(')')[2].split() for path in Path('/proc/self/task').glob('*/stat')"
        " if path.parent.name != str(threading.get_native_id())]\n"
        "    return sum(int(stat[11]) + int(stat[12]) for stat in stats)\n"
        "with bunko.open('my.db') as library:\n"
        "    library.tools.add('memos', 'What happened', Path('memos.jsonl'), kind='memos')\n"
        "    assert len(library.search('lens', mode='semantic').hits) > 1\n"
        "    before = others()\n"
        "    for number in range(200): library.search(f'a mirror with lens {number}', mode='semantic', refresh=False)\n"
        "    print(others() - before)"
    )
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environ)
    assert int(done.stdout) < 5, done.stderr  # hundredths of a second; before, as many as the searches took


@pytest.mark.slow
def test_importing_bunko_loads_nothing_heavy() -> None:
    heavy = {"numpy", "sqlite3", "click", "fugashi", "mcp"}
    code = f"import sys, bunko; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.slow
@pytest.mark.parametrize(("page", "number"), EXAMPLES)
def test_the_documented_examples_run(page: str, number: int, folder: Path) -> None:
    code = _PYTHON.findall((ROOT / page).read_text(encoding="utf-8"))[number]
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout or "assert" in code


@pytest.mark.slow
def test_the_examples_of_the_page_run_one_after_the_other(folder: Path) -> None:
    code = "\n".join(_PYTHON.findall((ROOT / "docs" / "python.md").read_text(encoding="utf-8")))
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"  # (<.*>|\S+:L\S+)$", code, re.M)
    assert len(shown) == 2
    assert [line for line in shown if line not in done.stdout.splitlines()] == []


def test_a_hit_says_where_it_is_and_read_returns_exactly_that(folder: Path) -> None:
    with bunko.open("notes", embedding_provider="none") as library:
        hit = library.search("shiomi-ctl rollback").hits[0]
        lines = (folder / "notes" / hit.path).read_text(encoding="utf-8").splitlines()
        first, last = hit.lines
        assert hit.citation == f"{hit.path}:L{first}-L{last}"
        assert library.read(hit.citation) == "\n".join(lines[first - 1 : last])
        assert hit.text == library.read(hit.citation).strip()
        assert library.read(hit.path).splitlines() == lines
        assert library.read(f"{hit.path}:L{first}") == lines[first - 1]
        with pytest.raises(bunko.UnknownName, match=r"There is no document or passage 'nowhere\.md'"):
            library.read("nowhere.md")


def test_what_python_shows_of_a_library_an_answer_and_a_hit_says_what_it_is(folder: Path) -> None:
    with bunko.open("notes", embedding_provider="none") as library:
        assert repr(library) == f"<Library {folder / 'notes'}: documents>"
        answer = library.search("shiomi-ctl rollback", top_k=1)
        citation, score = answer.hits[0].citation, answer.hits[0].score
        assert repr(answer) == f"<Answer to 'shiomi-ctl rollback': 1 hit of 59 chunks, bm25, best {citation}>"
        assert repr(answer.hits[0]).startswith(f"<Hit {citation} score={score:.4f} '## Rolling back a release Every")
        assert len(repr(answer.hits[0])) < 130
        nothing = library.search("xyzzyx")
        assert repr(nothing) == "<Answer to 'xyzzyx': 0 hits of 59 chunks, bm25>"
    assert repr(library) == f"<Library {folder / 'notes'}: closed or not readable>"
    with bunko.open(folder / "my.db", embedding_provider="none") as library:
        assert repr(library) == f"<Library {folder / 'my.db'}: no tools>"


def test_an_answer_is_counted_and_iterated_over_its_hits(folder: Path) -> None:
    with bunko.open("notes", embedding_provider="none") as library:
        answer = library.search("station", top_k=3)
        assert (len(answer), list(answer)) == (3, answer.hits)
        assert not library.search("xyzzyx")


class _Cells(HTMLParser):
    """The elements of a page, and the texts of its cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_jupyter_shows_a_table_to_which_no_document_adds_markup(folder: Path) -> None:
    bad = "<script>alert(1)</script> & <img src=x onerror=alert(2)>"
    for path in (folder / "notes").rglob("*.*"):
        path.unlink()
    (folder / "notes" / "a&b.md").write_text(f"# {bad}\n\nkujira {bad} {'くじら' * 200}\n", encoding="utf-8")
    with bunko.open("notes", embedding_provider="none") as library:
        answer = library.search(f"kujira {bad}")
    answer.notices.append(bad)
    page = _Cells(answer._repr_html_())
    assert set(page.elements) == {"p", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    number, score, citation, heading, text = page.cells
    assert (number, score, citation) == ("1", f"{answer.hits[0].score:.4f}", answer.hits[0].citation)
    assert "alert(1)" in heading
    assert bad in text
    assert text.endswith("…")
    assert len(text) == 301


def test_a_path_names_a_folder_a_library_or_its_file(folder: Path) -> None:
    for name in ("my.db", "handbook.sqlite"):
        with bunko.open(folder / name, embedding_provider="none") as library:
            assert library.tools() == []
            library.add(folder / "notes" / "handbook", name="handbook")
            assert library.import_("handbook").added == 4
    with bunko.open(folder / "my.db", read_only=True, embedding_provider="none") as library:
        assert [tool.name for tool in library.tools()] == ["handbook"]
        assert library.search("rollback").hits
    with bunko.open("notes", embedding_provider="none") as library:
        library.reindex()
    with bunko.open("notes/.rag-index", embedding_provider="none") as library:
        assert [tool.name for tool in library.tools()] == ["documents"]
    with bunko.open() as library:
        assert library.tools() == []


def test_a_folder_with_the_settings_of_a_library_on_a_server_is_no_folder_of_documents(folder: Path) -> None:
    (folder / "team").mkdir()
    (folder / "team" / "bunko.toml").write_text('[storage]\nkind = "postgres"\nurl = "postgresql://127.0.0.1:1/none"\n')
    with pytest.raises(bunko.SettingsError, match="has settings of a library on a server") as raised:
        bunko.open("team")
    assert "bunko status --library team" in raised.value.hint
    assert [path.name for path in (folder / "team").iterdir()] == ["bunko.toml"]


def test_a_setting_that_does_not_exist_is_refused(folder: Path) -> None:
    with pytest.raises(bunko.SettingsError, match=r"search\.topk"):
        bunko.open("notes", search_topk=3)
    with pytest.raises(bunko.UnknownName, match="no store called 'nothing'"):
        bunko.open("notes", storage_kind="nothing")


def test_a_library_in_memory_leaves_no_file_behind(folder: Path) -> None:
    with bunko.open(folder / "none.db", storage_kind="memory", embedding_provider="none") as library:
        library.add("notes/handbook", name="handbook")
        library.import_()
        assert library.search("rollback").hits
    assert not (folder / "none.db").exists()


def test_eight_threads_search_one_library_and_each_gets_its_own_answer(folder: Path) -> None:
    queries = ["走る", "shiomi-ctl rollback", "玉葱", "station_id", "休暇", "DEC-0054", "RateLimiter", "家賃"]
    with bunko.open("notes") as library:
        expected = {query: [hit.citation for hit in library.search(query).hits] for query in queries}
        assert all(expected.values())

        def search(query: str) -> list[bool]:
            return [[hit.citation for hit in library.search(query).hits] == expected[query] for _ in range(25)]

        with ThreadPoolExecutor(8) as pool:
            assert all(all(outcome) for outcome in pool.map(search, queries))


def test_lines_beyond_the_end_of_a_document_are_an_error_and_not_an_empty_text(folder: Path) -> None:
    with bunko.open("notes") as library, pytest.raises(bunko.UnknownName, match=r"oncall\.md has no line 900"):
        library.read("handbook/oncall.md:L900-L901")


def test_a_closed_library_says_so_and_does_not_ask_to_delete_anything(folder: Path) -> None:
    with bunko.open("notes") as library:
        library.search("release")
    with pytest.raises(bunko.LibraryError, match="is closed") as caught:
        library.search("release")
    assert "Delete" not in caught.value.hint


def test_a_document_that_was_taken_for_a_library_is_not_to_be_deleted(folder: Path) -> None:
    with pytest.raises(bunko.LibraryError, match="not a readable library") as caught:
        bunko.open("notes/handbook/oncall.md")
    assert caught.value.hint.startswith("If it is one of your own files, keep it")
