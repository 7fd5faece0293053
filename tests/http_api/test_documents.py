"""Documents over HTTP: list them, read them, and see their headings."""

from __future__ import annotations

from pathlib import Path

from tests.http_api.client import ApiClient


def test_documents_are_listed_with_their_date_and_tags(client: ApiClient) -> None:
    reply = client.get("/documents", sort="name", limit=1).json
    assert [document["path"] for document in reply["documents"]] == ["guide/setup.md"]
    assert reply["total"] == 2
    rest = client.get("/documents", sort="name", limit=1, cursor=reply["next_cursor"]).json
    (document,) = rest["documents"]
    assert (document["path"], document["date"], document["tags"]) == ("plain.md", "2024-05-01", ["果物"])
    assert "next_cursor" not in rest


def test_a_document_is_read_whole_or_in_parts(client: ApiClient) -> None:
    whole = client.get("/documents/documents/guide/setup.md").json
    assert (whole["tool"], whole["path"], whole["title"]) == ("documents", "guide/setup.md", "導入")
    assert whole["text"].startswith("# 導入\n\n蜜柑")
    lines = client.get("/documents/documents/guide%2Fsetup.md", lines="3-5").json
    assert lines["text"] == "蜜柑の設定を行う。\n\n## Install"
    assert (lines["line_start"], lines["line_end"], lines["total_lines"]) == (3, 5, whole["total_lines"])


def test_a_long_document_is_read_in_parts_that_together_are_the_whole(client: ApiClient, docs: Path) -> None:
    text = "".join(f"第{number}行の本文。\n" for number in range(100)) + "x" * 950 + "\n終わり"
    (docs / "long.md").write_text(text, "utf-8")
    parts, cursor = [], ""
    while True:
        reply = client.get("/documents/documents/long.md", max_chars=300, cursor=cursor).json
        assert len(reply["text"]) <= 300
        parts.append(reply["text"])
        cursor = reply.get("next_cursor", "")
        if not cursor:
            break
    assert "".join(parts) == text


def test_an_outline_lists_headings_with_their_lines(client: ApiClient) -> None:
    reply = client.get("/outlines/documents/guide/setup.md").json
    assert reply["headings"] == [
        {"level": 1, "text": "導入", "line": 1},
        {"level": 2, "text": "Install", "line": 5},
    ]


def test_a_path_never_means_another_document(client: ApiClient) -> None:
    reply = client.get("/documents/documents/setup")
    assert reply.status == 404
    assert reply.json["hint"] == "Did you mean 'guide/setup.md'?"
    assert client.get("/documents/documents/%2E%2E%2Fetc%2Fpasswd").status == 404


def test_other_addresses_and_methods_are_problems(client: ApiClient) -> None:
    assert client.get("/nothing").json["status"] == 404
    reply = client.post("/search", {})
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
