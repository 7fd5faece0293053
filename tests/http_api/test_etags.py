"""Answers have an ETag that changes with what the caller may read, and with nothing else."""

from __future__ import annotations

from pathlib import Path

from bunko.library.library import Library
from tests.http_api.client import ApiClient
from tests.mcp.mcp_client import FILLER, add_tool


def test_an_unchanged_answer_is_not_sent_again(client: ApiClient) -> None:
    client.get("/documents")  # imports them
    first = client.get("/search", q="蜜柑")
    again = client.get("/search", headers={"If-None-Match": f'"x", {first.headers["etag"]}'}, q="蜜柑")
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert client.get("/search", headers={"If-None-Match": first.headers["etag"]}, q="葡萄").status == 200


def test_a_changed_document_changes_the_answer(client: ApiClient, docs: Path) -> None:
    client.get("/documents")
    etag = client.get("/search", q="蜜柑").headers["etag"]
    (docs / "new.md").write_text(f"# 蜜柑\n\n蜜柑と蜜柑。{FILLER}", "utf-8")
    changed = client.get("/search", headers={"If-None-Match": etag}, q="蜜柑")
    assert changed.status == 200
    assert "new.md" in [result["file_path"] for result in changed.json["results"]]


def test_an_answer_with_a_notice_has_none(client: ApiClient) -> None:
    reply = client.get("/search", q="蜜柑", mode="hybrid")
    assert reply.json["notices"]
    assert "etag" not in reply.headers


def test_a_hidden_tool_changes_nothing_for_who_may_not_read_it(library: Library) -> None:
    add_tool(library, "notes", "Notes.", "蜜柑を買った。")
    add_tool(library, "diary", "Diary.", "蜜柑を食べた。")
    library.reindex()
    limited = ApiClient(library).limited_to(read=("notes", "diary"))

    def look() -> list[object]:
        search = limited.get("/search", q="蜜柑", top_k=1)
        freshness, cursor = search.json["freshness"], search.json["next_cursor"]
        return [search.headers["etag"], freshness["generation"], cursor, limited.get("/status").json]

    before, generation = look(), library.store.generation()
    add_tool(library, "secret", "Plans.", "葡萄の計画。")
    library.import_("secret")
    assert library.store.generation() != generation
    assert look() == before
    everybody = ApiClient(library).get("/status").json
    assert everybody["generation"] == library.store.generation()
    assert [tool["name"] for tool in everybody["tools"]] == ["diary", "notes", "secret"]
