"""A tool goes into one file and comes out in another library: the same answers there, or no change at all."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bunko.errors import BunkoError, LibraryError, LibraryTooNew, SettingsError, SourceError, UnknownName
from bunko.library import catalog, pack
from bunko.library.build_config import ToolConfig
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.pack import Pack, open_pack, records
from bunko.library.paths import locate_library
from bunko.stores import memory
from bunko.text.term_codec import pack_terms as pack_terms
from bunko.types import Tool
from tests.conftest import Run

QUERIES = ("京都の寺", "サーバーの設定", "how to validate a form", "庭園", "GitHubActions")
TEXTS = {
    "kyoto.md": "# 京都\n\n## 寺\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。\n" * 3,
    "guide/server.md": "---\ntitle: サーバーの手引き\ndate: 2024-01-15\ntags: [運用]\n---\n# 設定\n\nサーバー\n",
    "guide/form.txt": "How to validate a form: check every field, and say what is wrong beside it.\n",
    "表.md": "# 表\n\n| 名前 | 値 |\n|---|---|\n| GitHubActions | on |\n| 京都 | 庭園 |\n",
}
Opened = Callable[..., Library]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Open a library by its name; settings are given as environment names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made: list[Library] = []

    def opener(name: str, **environ: str) -> Library:
        environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"} | environ
        made.append(open_library(locate_library(library=tmp_path / name, environ={}), environ=environ))
        return made[-1]

    yield opener
    for library in made:
        library.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def packed(at: Opened, notes: Path, tmp_path: Path) -> Path:
    """A pack of four documents; the folder is away afterwards."""
    with at("home") as library:
        catalog.add_tool(library.store, "notes", "旅と運用の記録", notes, exclude=["draft*"])
        library.import_tools(["notes"])
        library.export_tool("notes", tmp_path / "notes.bunko")
    notes.rename(tmp_path / "away")
    return tmp_path / "notes.bunko"


def answers(library: Library, tool: str) -> dict[tuple[str, str], list[Any]]:
    return {
        (query, mode): [
            (hit.uri, hit.chunk, hit.title, hit.date, hit.tags, hit.content_hash, round(hit.score, 9))
            for hit in library.search(query, tool=tool, mode=mode).hits
        ]
        for query in QUERIES
        for mode in ("bm25", "semantic", "hybrid")
    }  # type: ignore[misc]


def taken(library: Library, path: Path, **options: Any) -> tuple[Tool, Any]:
    with open_pack(path) as one:
        return library.import_pack(one, **options)


def state(library: Library) -> tuple[Any, ...]:
    """Return all a library holds, but for its own ids."""
    tools = library.store.tools()
    return tools, [library.store.export_documents(tool.id, library.store.uris(tool.id)) for tool in tools]


def test_a_pack_answers_in_another_library_with_the_same_scores_and_nothing_is_embedded(
    at: Opened, packed: Path, notes: Path, tmp_path: Path
) -> None:
    home, there = at("home"), at("there")
    tool, report = taken(there, packed)
    assert (report.added, report.embedded, report.notices) == (4, 0, [])
    assert (tool.name, tool.description, tool.options) == ("notes", "旅と運用の記録", {"exclude": ["draft*"]})
    assert tool.source == str(notes)
    before = answers(home, "notes")
    assert answers(there, "notes") == before
    assert all(before[query, "bm25"] for query in QUERIES)
    assert {finding.state for finding in there.diagnose()} == {"ok"}
    # The folder is away: what came in stays, and the answer says so.
    assert "has vanished" in " ".join(there.search("京都", tool="notes").notices)
    (tmp_path / "away").rename(notes)
    (notes / "new.md").write_text("# 大阪\n\n大阪の城を見た日の、少し長めの記録です。", encoding="utf-8")
    assert [hit.uri for hit in there.search("大阪の城", tool="notes").hits] == ["new.md"]


def test_every_field_of_every_document_survives(at: Opened, packed: Path) -> None:
    home, there = at("home"), at("there")
    taken(there, packed)
    (_, before), (_, after) = state(home), state(there)
    assert after == before
    keys = [key for document in before[0] for key in document.vector_keys]
    vectors = home.store.vectors(keys)
    assert len(vectors) > 3
    assert {key: row.tolist() for key, row in there.store.vectors(keys).items()} == {
        key: row.tolist() for key, row in vectors.items()
    }
    assert home.store.fingerprints(1) == there.store.fingerprints(catalog.get_tool(there.store, "notes").id)


def test_a_pack_goes_from_and_to_a_library_in_memory(at: Opened, packed: Path, tmp_path: Path) -> None:
    home = at("home")
    with open_pack(packed) as one:
        store = memory.build()
        tool = store.put_tool(one.tool)
        recipe = ToolConfig(home.paths, home.settings, home.store)
        cutting, built = recipe.chunker_settings(tool), recipe.build_facts(tool)
        pack.load_pack(store, tool, one, cutting, home.embedder(), built)
    pack.write_pack(store, tool, tmp_path / "again.bunko")
    with open_pack(packed) as one, open_pack(tmp_path / "again.bunko") as two:
        first, second = list(one.records()), list(two.records())
    assert [record.prepared for record in first] == [record.prepared for record in second]
    for old, new in zip(first, second, strict=True):
        assert np.array_equal(old.vectors, new.vectors)  # type: ignore[arg-type]


def test_an_existing_tool_is_replaced_only_on_request_and_keeps_its_folder(
    at: Opened, packed: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kobe.md").write_text("# 神戸\n\n神戸の港から船に乗った日の、少し長めの記録です。", encoding="utf-8")
    there = at("there")
    catalog.add_tool(there.store, "notes", "前からあるもの", other)
    there.import_tools(["notes"])
    catalog.set_tool_active(there.store, "notes", active=False)
    before = state(there)
    with pytest.raises(SettingsError, match="already") as refused:
        taken(there, packed)
    assert "--replace" in refused.value.hint
    assert "-n" in refused.value.hint
    assert state(there) == before
    second, _ = taken(there, packed, name="travel")
    assert [tool.name for tool in there.tools()] == ["notes", "travel"]
    assert answers(there, "travel") == answers(at("home"), "notes")
    there.delete_tool(second.name)
    tool, report = taken(there, packed, replacing=True)
    assert (tool.source, tool.active, report.added) == (str(other), False, 4)
    found = there.search("神戸の港", tool="notes", refresh=False)
    assert not [hit for hit in found.hits if hit.uri == "kobe.md"]
    assert tool.id == catalog.get_tool(there.store, "notes").id


def test_names_that_no_tool_may_have_are_refused(at: Opened, packed: Path) -> None:
    there = at("there")
    for name in ("search", "~notes", "京都"):
        with pytest.raises(SettingsError):
            taken(there, packed, name=name)
    assert there.store.tools() == []


def test_the_folder_given_is_the_one_that_is_followed(at: Opened, packed: Path, tmp_path: Path) -> None:
    there = at("there")
    with pytest.raises(SourceError, match="no folder"):
        taken(there, packed, source=tmp_path / "nowhere")
    tool, _ = taken(there, packed, source=tmp_path / "away")
    assert tool.source == str(tmp_path / "away")
    assert there.search("京都", tool="notes").notices == []
    report = there.import_tools(["notes"], "update")
    assert (report.unchanged, report.added, report.updated, report.deleted) == (4, 0, 0, 0)


def test_a_pack_cannot_choose_a_folder_of_this_machine_that_is_not_its_own(
    at: Opened, packed: Path, notes: Path, tmp_path: Path
) -> None:
    there = at("there")
    notes.mkdir()
    (notes / "secret.md").write_text("# 秘密\n\n誰にも見せないつもりで書いた、少し長めの文章です。", encoding="utf-8")
    with pytest.raises(SourceError, match="holds none of its documents") as refused:
        taken(there, packed)
    assert "-s" in refused.value.hint
    assert there.store.tools() == []
    (notes / "kyoto.md").write_bytes((tmp_path / "away" / "kyoto.md").read_bytes())
    assert taken(there, packed)[0].source == str(notes)


def test_a_library_that_cuts_or_embeds_otherwise_makes_its_own_from_the_texts(
    at: Opened, packed: Path, notes: Path, tmp_path: Path
) -> None:
    other = {"BUNKO_CHUNKER_KIND": "prose", "RAG_CHUNK_SIZE": "40", "RAG_CHUNK_OVERLAP": "0"}
    there, fresh = at("there", **other), at("fresh", **other)
    _, report = taken(there, packed)
    assert "cut anew" in report.notices[0]
    (tmp_path / "away").rename(notes)
    catalog.add_tool(fresh.store, "notes", "旅と運用の記録", notes)
    fresh.import_tools(["notes"])
    assert answers(there, "notes") == answers(fresh, "notes")
    bare = at("bare", EMBEDDING_PROVIDER="none")
    assert taken(bare, packed)[1].embedded == 0
    assert bare.status().tools[0].totals.vectors == 0
    assert bare.search("京都", mode="bm25").hits


def test_a_pack_without_vectors_is_embedded_where_it_arrives(at: Opened, notes: Path, tmp_path: Path) -> None:
    bare, there = at("bare", EMBEDDING_PROVIDER="none"), at("there")
    catalog.add_tool(bare.store, "notes", "記録", notes)
    bare.import_tools(["notes"])
    bare.export_tool("notes", tmp_path)
    _, report = taken(there, tmp_path / "notes.bunko")
    assert report.embedded == report.total_chunks
    assert "embedded here" in report.notices[0]
    assert there.search("京都の寺", mode="semantic").hits


def test_a_tool_that_wants_no_vectors_gets_none_where_it_arrives(at: Opened, notes: Path, tmp_path: Path) -> None:
    home, there = at("home"), at("there")
    catalog.add_tool(home.store, "notes", "記録", notes, embedder="none")
    home.import_tools(["notes"])
    home.export_tool("notes", tmp_path)
    _, report = taken(there, tmp_path / "notes.bunko")
    assert report.embedded == 0
    assert there.status().tools[0].totals.vectors == 0
    assert there.search("京都の寺").hits


def rewritten(path: Path, change: Callable[[dict[str, Any], list[bytes]], None]) -> Path:
    """Write a pack anew with a right checksum after a change of its head and its records."""
    data = path.read_bytes()
    magic, head, body = data[:-32].split(b"\n", 2)
    whole = json.loads(head)
    with open_pack(path) as one:
        parts = [records.encode_record(record.prepared, record.vectors) for record in one.records()]
    assert b"".join(parts) == zlib.decompress(body)
    change(whole, parts)
    made = magic + b"\n" + json.dumps(whole).encode() + b"\n" + zlib.compress(b"".join(parts))
    evil = path.with_name("evil.bunko")
    evil.write_bytes(made + hashlib.sha256(made).digest())
    return evil


def record(part: bytes, **change: Any) -> bytes:
    line, _, rest = part.partition(b"\n")
    return json.dumps(json.loads(line) | change).encode() + b"\n" + rest


def head(**change: Any) -> Callable[[dict[str, Any], list[bytes]], None]:
    return lambda whole, parts: whole.update(change)


def tool(**change: Any) -> Callable[[dict[str, Any], list[bytes]], None]:
    return lambda whole, parts: whole["tool"].update(change)


def first(**change: Any) -> Callable[[dict[str, Any], list[bytes]], None]:
    def apply(whole: dict[str, Any], parts: list[bytes]) -> None:
        parts[0] = record(parts[0], **change)

    return apply


@pytest.mark.parametrize(
    "change",
    [
        first(uri="../../etc/passwd"),
        first(uri="/etc/passwd"),
        first(uri="a/../../b.md"),
        first(uri="a//b.md"),
        first(uri=""),
        first(uri="\ud800.md"),
        first(uri="zzz.md"),
        first(uri=["a.md"]),
        first(text="\ud800"),
        first(text=5),
        first(hash="xyz"),
        first(size=-1),
        first(size=2**70),
        first(size=True),
        first(body=10**6),
        first(tags="京都"),
        first(chunks=[]),
        first(chunks=[[0, 10**9, 1, 1, "", [], None]]),
        first(chunks=[[5, 2, 1, 1, "", [], None]]),
        first(chunks=[[0, 1, 1, 1, "", "path", None]]),
        first(chunks=[[0, 1, 1, 1]]),
        first(terms=10**12),
        first(terms=3),
        first(vectors=10**9),
        first(vectors=7),
        head(documents=5),
        head(chunks=1),
        head(tool=[]),
        head(bunko=None),
        tool(kind="web"),
        tool(source="relative/path"),
        tool(options={"include": "x"}),
        tool(options={"chunk_size": "big"}),
        tool(options={"other": {"deep": {}}}),
        tool(active="yes"),
        tool(built=None),
        lambda whole, parts: parts.pop(),
        lambda whole, parts: parts.append(parts[-1]),
        lambda whole, parts: parts.append(b"[" * 100_000 + b"\n"),
        lambda whole, parts: parts.append(b"{}"),
        lambda whole, parts: parts.append(b"\xff\n"),
        lambda whole, parts: parts.append(b"1" * 5000 + b"\n"),
    ],
)
def test_a_pack_with_a_right_checksum_and_wrong_content_is_refused_before_anything_is_written(
    at: Opened, packed: Path, change: Callable[[dict[str, Any], list[bytes]], None]
) -> None:
    with pytest.raises(SourceError, match="not a whole pack") as refused, open_pack(rewritten(packed, change)):
        pass
    assert "Nothing was changed" in refused.value.hint


def test_words_of_another_version_are_found_anew_in_the_texts(at: Opened, packed: Path) -> None:
    def older(whole: dict[str, Any], parts: list[bytes]) -> None:
        whole["tool"]["built"]["words"] = "of long ago"
        for number, part in enumerate(parts):
            line, _, rest = part.partition(b"\n")
            facts = json.loads(line)
            terms = pack_terms([[number]] * len(facts["chunks"]))
            parts[number] = record(line + b"\n" + terms + rest[facts["terms"] :], terms=len(terms))

    there = at("there")
    _, report = taken(there, rewritten(packed, older))
    assert "found anew" in report.notices[0]
    assert report.embedded == 0
    assert answers(there, "notes") == answers(at("home"), "notes")


def test_options_that_make_no_sense_here_are_refused_before_anything_is_written(at: Opened, packed: Path) -> None:
    there = at("there")
    before = state(there)
    with pytest.raises(BunkoError, match="chunker"):
        taken(there, rewritten(packed, tool(options={"chunker": "magic"})))
    assert state(there) == before


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 3.0])
def test_a_vector_that_is_none_is_refused(packed: Path, bad: float) -> None:
    def spoil(whole: dict[str, Any], parts: list[bytes]) -> None:
        parts[0] = parts[0][:-4] + np.array([bad], "<f4").tobytes()

    with pytest.raises(SourceError, match="unit length"), open_pack(rewritten(packed, spoil)):
        pass


def test_terms_that_are_out_of_order_are_refused(packed: Path) -> None:
    def spoil(whole: dict[str, Any], parts: list[bytes]) -> None:
        line, _, rest = parts[0].partition(b"\n")
        facts = json.loads(line)
        at = 4 + 4 * len(facts["chunks"])
        parts[0] = line + b"\n" + rest[:at] + rest[at + 8 : at + 16] + rest[at : at + 8] + rest[at + 16 :]

    with pytest.raises(SourceError, match="out of order"), open_pack(rewritten(packed, spoil)):
        pass


def test_a_small_file_that_would_fill_a_disk_is_refused(packed: Path) -> None:
    def bomb(whole: dict[str, Any], parts: list[bytes]) -> None:
        parts.append(b'{"uri":"z","text":"' + b"a" * 150_000_000)

    evil = rewritten(packed, bomb)
    assert evil.stat().st_size < 1_000_000
    with pytest.raises(SourceError, match="grow"), open_pack(evil):
        pass


def test_chunks_that_repeat_a_text_without_end_are_refused(packed: Path) -> None:
    text = "a" * 100_000
    many = first(text=text, body=0, chunks=[[0, len(text), 1, 1, "", [], None]] * 2000)
    with pytest.raises(SourceError, match="grow"), open_pack(rewritten(packed, many)):
        pass


def test_what_is_not_a_pack_or_a_newer_one_says_so(at: Opened, packed: Path, tmp_path: Path) -> None:
    for name, content in (
        ("a.txt", b"hello"),
        ("b.db", b"SQLite format 3\0"),
        ("c.bunko", b""),
        ("d", b"bunko pack x\n"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match="not a bunko pack"), open_pack(tmp_path / name):
            pass
    for missing in (tmp_path / "nothing.bunko", tmp_path):
        with pytest.raises(SourceError, match="no file"), open_pack(missing):
            pass
    newer = tmp_path / "newer.bunko"
    newer.write_bytes(packed.read_bytes().replace(b"bunko pack 1\n", b"bunko pack 2\n", 1))
    with pytest.raises(LibraryTooNew, match="pack format 2"), open_pack(newer):
        pass


def test_a_truncated_pack_is_refused_wherever_it_was_cut(packed: Path) -> None:
    data = packed.read_bytes()
    for size in {*range(0, len(data), len(data) // 60), len(data) - 1, len(data) - 32, len(data) - 33}:
        packed.write_bytes(data[:size])
        with pytest.raises(SourceError), open_pack(packed):
            pass
    packed.write_bytes(data + b"x")
    with pytest.raises(SourceError, match="checksum"), open_pack(packed):
        pass


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(1, 255), signed=st.booleans())
def test_a_changed_byte_never_gets_through_or_breaks_us(packed: Path, place: float, value: int, signed: bool) -> None:
    good = packed.read_bytes()
    data = bytearray(good[: -32 if signed else None])
    data[int(place * len(data))] ^= value
    if signed:
        data += hashlib.sha256(data).digest()  # whoever changed it made the checksum fit
    changed = packed.with_name("changed.bunko")
    changed.write_bytes(data)
    try:
        with open_pack(changed) as one:
            assert signed
            assert isinstance(one, Pack)
    except BunkoError:
        pass


def test_an_export_replaces_a_pack_but_nothing_else_and_leaves_nothing_half_written(
    at: Opened, packed: Path, tmp_path: Path
) -> None:
    home = at("home")
    _, path, size = home.export_tool(None, packed)
    assert (path, size) == (packed, packed.stat().st_size)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(SourceError, match="not a pack"):
        home.export_tool("notes", tmp_path / "letter.txt")
    with pytest.raises(SourceError, match="cannot be written"):
        home.export_tool("notes", tmp_path / "nowhere" / "x.bunko")
    assert (tmp_path / "letter.txt").read_text() == "dear"
    assert not list(tmp_path.rglob("*.tmp"))
    empty = tmp_path / "empty"
    empty.mkdir()
    catalog.add_tool(home.store, "empty", "何もない", empty)
    with pytest.raises(LibraryError, match="no documents yet"):
        home.export_tool("empty", tmp_path)
    with pytest.raises(UnknownName, match="Which tool"):
        home.export_tool(None, tmp_path)


def test_a_pack_names_no_secret_and_no_setting(at: Opened, notes: Path, tmp_path: Path) -> None:
    with at("home", OPENAI_API_KEY="sk-hidden", BUNKO_TOKEN="let-me-in") as library:
        catalog.add_tool(library.store, "notes", "記録", notes)
        library.import_tools(["notes"])
        _, path, _ = library.export_tool("notes", tmp_path)
    _, manifest, body = path.read_bytes()[:-32].split(b"\n", 2)
    everything = manifest + zlib.decompress(body)
    assert b"sk-hidden" not in everything
    assert b"let-me-in" not in everything
    assert set(json.loads(manifest)) == {"bunko", "made_at", "documents", "chunks", "characters", "tool"}


def bunko(tmp_path: Path, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BUNKO_", "RAG_", "EMBEDDING_"))}
    environ = kept | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "PYTHONUTF8": "1"} | environ
    command = [sys.executable, "-m", "bunko", *map(str, arguments)]
    return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("failpoint", ["pack.batch", "store.document", "store.swapped", "store.commit:3"])
def test_a_killed_import_leaves_the_old_tool_and_the_next_one_is_whole(
    at: Opened, packed: Path, tmp_path: Path, failpoint: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kobe.md").write_text("# 神戸\n\n神戸の港から船に乗った日の、少し長めの記録です。", encoding="utf-8")
    with at("there") as there:
        catalog.add_tool(there.store, "notes", "前からあるもの", other)
        there.import_tools(["notes"])
        before = answers(there, "notes")
    into = ("import-pack", packed, "--library", tmp_path / "there")
    killed = bunko(tmp_path, *into, "--replace", BUNKO_FAILPOINT=failpoint)
    assert killed.returncode == -9
    fresh = bunko(tmp_path, "import-pack", packed, "--library", tmp_path / "new", BUNKO_FAILPOINT=failpoint)
    assert fresh.returncode == -9
    there, new = at("there"), at("new")
    assert answers(there, "notes") == before
    assert catalog.get_tool(there.store, "notes").description == "前からあるもの"
    assert new.tools() == []
    for library, options in ((there, {"replacing": True}), (new, {})):
        taken(library, packed, **options)
        assert [one.name for one in library.store.tools()] == ["notes"]
        assert library.store.totals(catalog.get_tool(library.store, "notes").id).documents == 4
    assert answers(new, "notes") == answers(at("home"), "notes")


def test_an_interrupted_import_leaves_the_library_as_it_was(at: Opened, packed: Path) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    there = at("there")
    taken(there, packed, name="first")
    before = state(there)
    with pytest.raises(KeyboardInterrupt):
        taken(there, packed, progress=interrupt)
    assert state(there) == before
    assert answers(there, "first") == answers(at("home"), "notes")


def test_a_rebuild_does_not_go_on_from_what_a_killed_import_left(at: Opened, packed: Path, tmp_path: Path) -> None:
    killed = bunko(
        tmp_path, "import-pack", packed, "--library", tmp_path / "home", "--replace", BUNKO_FAILPOINT="pack.batch"
    )
    assert killed.returncode == -9
    home = at("home")
    assert "~notes" in [one.name for one in home.store.tools()]
    (tmp_path / "away").rename(tmp_path / "notes")
    (tmp_path / "notes" / "表.md").unlink()
    report = home.import_tools(["notes"], "replace")
    assert (report.updated, report.deleted) == (3, 1)
    assert [one.name for one in home.store.tools()] == ["notes"]


def test_the_commands_tell_sizes_and_exit_codes_and_json(at: Opened, packed: Path, tmp_path: Path) -> None:
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
    took = bunko(tmp_path, "import-pack", "x.bunko", *there)
    assert took.returncode == 0
    assert took.stdout.startswith("Imported notes: 4 documents")
    assert "does not exist on this machine" in took.stderr
    again = bunko(tmp_path, "import-pack", "x.bunko", *there)
    assert again.returncode == 2
    assert "--replace" in again.stderr
    told = json.loads(bunko(tmp_path, "import-pack", "x.bunko", *there, "-n", "two", "--json").stdout)
    assert (told["name"], told["added"], told["source_exists"]) == ("two", 4, False)
    found = bunko(tmp_path, "search", "京都の寺", "-n", "two", *there)
    assert "kyoto.md" in found.stdout
    assert "has vanished" in found.stderr


def test_a_folder_with_its_own_index_can_be_packed_too(tmp_path: Path, notes: Path) -> None:
    assert bunko(tmp_path, "reindex", "--docs-dir", notes).returncode == 0
    wrote = bunko(tmp_path, "export", "--docs-dir", notes, "-o", "d.bunko")
    assert wrote.returncode == 0, wrote.stderr
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("# 神戸\n\n神戸の港から船に乗った日の、少し長めの記録です。", encoding="utf-8")
    took = bunko(tmp_path, "import-pack", "d.bunko", "--docs-dir", other, "-n", "theirs")
    assert took.returncode == 0, took.stderr
    assert "Searches pick up changes in" in took.stderr
    assert "kyoto.md" in bunko(tmp_path, "search", "京都の寺", "--docs-dir", other).stdout


def test_a_refused_pack_leaves_no_new_library_behind(run: Run, packed: Path, tmp_path: Path) -> None:
    place, file = tmp_path / "fresh", tmp_path / "kept" / "one.db"
    file.parent.mkdir()
    for flags in (("--library", place), ("--database", file)):
        for wrong in (("-n", "search"), ("-s", tmp_path / "nowhere")):
            assert run("import-pack", packed, *wrong, *flags).code in (2, 3)
            assert not place.exists()
            assert list(file.parent.iterdir()) == []
    assert run("import-pack", packed, "--library", place).code == 0
    assert run("import-pack", packed, "--library", place).code == 2
    assert run("tool", "ls", "--library", place).out == "notes\n"
