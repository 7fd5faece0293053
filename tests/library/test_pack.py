"""A tool goes into one file and comes out in another library: the same answers there, or no change at all."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from bunko.errors import LibraryError, SettingsError, SourceError, UnknownName
from bunko.library.packs import pack
from bunko.library.packs.pack import open_pack
from bunko.library.tools import catalog
from bunko.library.tools.build_config import ToolConfig
from bunko.stores import memory
from bunko.types.tool_options import ToolOptions
from tests.library.packs import QUERIES, OpenNamed, answers, import_pack_file, library_contents


def test_a_pack_answers_in_another_library_with_the_same_scores_and_nothing_is_embedded(
    open_named: OpenNamed, packed: Path, notes_folder: Path, tmp_path: Path
) -> None:
    home, there = open_named("home"), open_named("there")
    tool, report = import_pack_file(there, packed)
    assert (report.added, report.embedded, report.notices) == (4, 0, [])
    assert (tool.name, tool.description, tool.options) == (
        "notes",
        "旅と運用の記録",
        ToolOptions(exclude=("draft*",)),
    )
    before = answers(home, "notes")
    assert answers(there, "notes") == before
    assert all(before[query, "bm25"] for query in QUERIES)
    assert {finding.state for finding in there.maintenance.diagnose()} == {"ok"}
    assert there.search("京都", tool="notes").notices == []


def test_a_pack_follows_no_folder_until_the_user_chooses_one(
    open_named: OpenNamed, packed: Path, notes_folder: Path, tmp_path: Path
) -> None:
    secret = "# 秘密\n\n誰にも見せないつもりで書いた、少し長めの文章です。"
    there = open_named("there")
    # A folder of this machine that has one of the pack's documents.
    notes_folder.mkdir()
    (notes_folder / "kyoto.md").write_bytes((tmp_path / "away" / "kyoto.md").read_bytes())
    (notes_folder / "secret.md").write_text(secret, encoding="utf-8")
    tool, _ = import_pack_file(there, packed)
    # A folder that appears later.
    (notes_folder / "secret.md").unlink()
    (notes_folder / "kyoto.md").unlink()
    notes_folder.rmdir()
    second, _ = import_pack_file(there, packed, name="second")
    (tmp_path / "away").rename(notes_folder)
    (notes_folder / "secret.md").write_text(secret, encoding="utf-8")
    assert (tool.source, second.source) == ("", "")
    for name in ("notes", "second"):
        answer = there.search("誰にも見せない秘密", tool=name)
        assert "secret.md" not in [hit.uri for hit in answer.hits]
        assert answer.notices == []
    assert there.reindex().unchanged == 8
    assert [status.source_state for status in there.status().tools] == ["ok", "ok"]
    there.tools.update("notes", source=notes_folder)
    assert "secret.md" in [hit.uri for hit in there.search("誰にも見せない秘密", tool="notes").hits]


def test_a_tool_without_a_folder_is_never_rebuilt_from_nothing(open_named: OpenNamed, packed: Path) -> None:
    there = open_named("there")
    import_pack_file(there, packed)
    before = library_contents(there)
    with pytest.raises(SourceError, match="notes follows no folder") as refused:
        there.import_tools(["notes"], "replace")
    assert "--replace" in refused.value.hint
    assert library_contents(there) == before
    assert there.tool_status("notes").changes is not None


def test_a_tool_without_a_folder_can_be_packed_again(open_named: OpenNamed, packed: Path, tmp_path: Path) -> None:
    there, third = open_named("there"), open_named("third")
    import_pack_file(there, packed)
    there.packs.export_tool("notes", tmp_path / "again.bunko")
    import_pack_file(third, tmp_path / "again.bunko")
    assert answers(third, "notes") == answers(there, "notes")


def test_the_name_and_description_can_be_chosen(open_named: OpenNamed, packed: Path) -> None:
    tool, _ = import_pack_file(open_named("there"), packed, name="travel", description="自分の\n言葉")
    assert (tool.name, tool.description) == ("travel", "自分の 言葉")


def test_every_field_of_every_document_survives(open_named: OpenNamed, packed: Path) -> None:
    home, there = open_named("home"), open_named("there")
    import_pack_file(there, packed)
    (_, before), (_, after) = library_contents(home), library_contents(there)
    assert after == before
    keys = [key for document in before[0] for key in document.vector_keys]
    vectors = home.store.vectors.get(keys)
    assert len(vectors) > 3
    assert {key: row.tolist() for key, row in there.store.vectors.get(keys).items()} == {
        key: row.tolist() for key, row in vectors.items()
    }
    assert home.store.documents.fingerprints(1) == there.store.documents.fingerprints(
        catalog.get_tool(there.store, "notes").id
    )


def test_a_pack_goes_from_and_to_a_library_in_memory(open_named: OpenNamed, packed: Path, tmp_path: Path) -> None:
    home = open_named("home")
    with open_pack(packed) as one:
        store = memory.build()
        tool = store.tools.put(one.tool)
        recipe = ToolConfig(home.paths, home.settings, home.store)
        cutting, built = recipe.chunker_settings(tool), recipe.build_info(tool)
        pack.load_pack(store, tool, one, cutting, home.embedder(), built)
    pack.write_pack(store, tool, tmp_path / "again.bunko")
    with open_pack(packed) as one, open_pack(tmp_path / "again.bunko") as two:
        first, second = list(one.records()), list(two.records())
    assert [record.prepared for record in first] == [record.prepared for record in second]
    for old, new in zip(first, second, strict=True):
        assert np.array_equal(old.vectors, new.vectors)  # type: ignore[arg-type]


def test_an_existing_tool_is_replaced_only_on_request_and_then_follows_no_folder(
    open_named: OpenNamed, packed: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kobe.md").write_text("# 神戸\n\n神戸の港から船に乗った日の、少し長めの記録です。", encoding="utf-8")
    there = open_named("there")
    there.tools.add("notes", "前からあるもの", other)
    there.import_tools(["notes"])
    there.tools.set_active("notes", active=False)
    before = library_contents(there)
    with pytest.raises(SettingsError, match="already") as refused:
        import_pack_file(there, packed)
    assert "--replace" in refused.value.hint
    assert "-n" in refused.value.hint
    assert library_contents(there) == before
    second, _ = import_pack_file(there, packed, name="travel")
    assert [tool.name for tool in there.tools()] == ["notes", "travel"]
    assert answers(there, "travel") == answers(open_named("home"), "notes")
    there.delete_tool(second.name)
    tool, report = import_pack_file(there, packed, replace_existing=True)
    assert (tool.source, tool.active, report.added) == ("", False, 4)
    found = there.search("神戸の港", tool="notes")
    assert not [hit for hit in found.hits if hit.uri == "kobe.md"]
    assert tool.id == catalog.get_tool(there.store, "notes").id


def test_names_that_no_tool_may_have_are_refused(open_named: OpenNamed, packed: Path) -> None:
    there = open_named("there")
    for name in ("~notes", "///"):
        with pytest.raises(SettingsError):
            import_pack_file(there, packed, name=name)
    assert there.store.tools.all() == []


def test_the_folder_given_is_the_one_that_is_followed(open_named: OpenNamed, packed: Path, tmp_path: Path) -> None:
    there = open_named("there")
    with pytest.raises(SourceError, match="no folder"):
        import_pack_file(there, packed, source=tmp_path / "nowhere")
    tool, _ = import_pack_file(there, packed, source=tmp_path / "away")
    assert tool.source == str(tmp_path / "away")
    assert there.search("京都", tool="notes").notices == []
    report = there.import_tools(["notes"], "update")
    assert (report.unchanged, report.added, report.updated, report.deleted) == (4, 0, 0, 0)


def test_a_library_that_cuts_or_embeds_otherwise_makes_its_own_from_the_texts(
    open_named: OpenNamed, packed: Path, notes_folder: Path, tmp_path: Path
) -> None:
    other = {"BUNKO_CHUNKER_KIND": "prose", "BUNKO_CHUNKER_CHUNK_SIZE": "40", "BUNKO_CHUNKER_CHUNK_OVERLAP": "0"}
    there, fresh = open_named("there", **other), open_named("fresh", **other)
    _, report = import_pack_file(there, packed)
    assert "chunked again" in report.notices[0]
    (tmp_path / "away").rename(notes_folder)
    fresh.tools.add("notes", "旅と運用の記録", notes_folder)
    fresh.import_tools(["notes"])
    assert answers(there, "notes") == answers(fresh, "notes")
    bare = open_named("bare", EMBEDDING_PROVIDER="none")
    assert import_pack_file(bare, packed)[1].embedded == 0
    assert bare.status().tools[0].totals.vectors == 0
    assert bare.search("京都", mode="bm25").hits


def test_a_pack_without_vectors_is_embedded_where_it_arrives(
    open_named: OpenNamed, notes_folder: Path, tmp_path: Path
) -> None:
    bare, there = open_named("bare", EMBEDDING_PROVIDER="none"), open_named("there")
    bare.tools.add("notes", "記録", notes_folder)
    bare.import_tools(["notes"])
    bare.packs.export_tool("notes", tmp_path)
    _, report = import_pack_file(there, tmp_path / "notes.bunko")
    assert report.embedded == report.total_chunks
    assert "embedded again" in report.notices[0]
    assert there.search("京都の寺", mode="semantic").hits


def test_a_tool_that_wants_no_vectors_gets_none_where_it_arrives(
    open_named: OpenNamed, notes_folder: Path, tmp_path: Path
) -> None:
    home, there = open_named("home"), open_named("there")
    home.tools.add("notes", "記録", notes_folder, options=ToolOptions(embedder="none"))
    home.import_tools(["notes"])
    home.packs.export_tool("notes", tmp_path)
    _, report = import_pack_file(there, tmp_path / "notes.bunko")
    assert report.embedded == 0
    assert there.status().tools[0].totals.vectors == 0
    assert there.search("京都の寺").hits


def test_an_export_replaces_a_pack_but_nothing_else_and_leaves_nothing_half_written(
    open_named: OpenNamed, packed: Path, tmp_path: Path
) -> None:
    home = open_named("home")
    _, path, size = home.packs.export_tool(None, packed)
    assert (path, size) == (packed, packed.stat().st_size)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(SourceError, match="not a pack"):
        home.packs.export_tool("notes", tmp_path / "letter.txt")
    with pytest.raises(SourceError, match="cannot be written"):
        home.packs.export_tool("notes", tmp_path / "nowhere" / "x.bunko")
    assert (tmp_path / "letter.txt").read_text() == "dear"
    assert not list(tmp_path.rglob("*.tmp"))
    empty = tmp_path / "empty"
    empty.mkdir()
    home.tools.add("empty", "何もない", empty)
    with pytest.raises(LibraryError, match="no documents yet"):
        home.packs.export_tool("empty", tmp_path)
    with pytest.raises(UnknownName, match="No tool was named"):
        home.packs.export_tool(None, tmp_path)


def test_a_pack_names_no_secret_and_no_setting(open_named: OpenNamed, notes_folder: Path, tmp_path: Path) -> None:
    with open_named("home", OPENAI_API_KEY="sk-hidden", BUNKO_TOKEN="let-me-in") as library:
        library.tools.add("notes", "記録", notes_folder)
        library.import_tools(["notes"])
        _, path, _ = library.packs.export_tool("notes", tmp_path)
    _, manifest, body = path.read_bytes()[:-32].split(b"\n", 2)
    everything = manifest + zlib.decompress(body)
    assert b"sk-hidden" not in everything
    assert b"let-me-in" not in everything
    assert set(json.loads(manifest)) == {"bunko", "made_at", "documents", "chunks", "characters", "tool"}
