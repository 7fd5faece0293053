"""What only whoever started the server may do: choose folders, and open documents in the editor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.http_api.client import ApiClient
from tests.http_api.test_description import check_reply
from tests.library.watching import wait_until


def test_nobody_else_opens_documents_or_lists_folders(client: ApiClient) -> None:
    for reply in (client.get("/folders"), client.post("/documents/documents/plain.md/open", {"line": 1})):
        assert reply.status == 403
        assert reply.json["hint"] == "Start one with: bunko ui"


@pytest.mark.slow
def test_a_document_is_opened_in_the_editor_at_the_line(
    client: ApiClient, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor, written = tmp_path / "code", tmp_path / "arguments"
    script = (
        f"#!{sys.executable}\nimport os, sys\npath = {str(written)!r}\n"
        "open(path + '.new', 'w').write(repr(sys.argv[1:]))\nos.rename(path + '.new', path)\n"
    )
    editor.write_text(script, "utf-8")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    local = ApiClient(client.registry.library(), is_local=True)
    reply = local.post("/documents/documents/guide/setup.md/open", {"line": 5})
    check_reply("/documents/{tool}/{path}/open", reply.json, method="post")
    assert reply.json == {"tool": "documents", "path": "guide/setup.md"}
    wait_until(written.exists, "the editor was started")
    assert written.read_text("utf-8") == repr(["-g", f"{docs / 'guide/setup.md'}:5"])


def test_an_editor_that_needs_a_terminal_is_an_error(client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "vim")
    local = ApiClient(client.registry.library(), is_local=True)
    reply = local.post("/documents/documents/plain.md/open")
    assert (reply.status, reply.json["detail"]) == (400, "vim needs a terminal")
    assert local.post("/documents/documents/gone.md/open").status == 404


def test_a_folder_lists_its_folders_first(client: ApiClient, docs: Path) -> None:
    local = ApiClient(client.registry.library(), is_local=True)
    (docs / ".hidden").mkdir()
    reply = local.get("/folders", path=str(docs)).json
    check_reply("/folders", reply)
    assert [(entry["name"], entry["kind"]) for entry in reply["entries"]] == [("guide", "folder"), ("plain.md", "file")]
    assert (reply["path"], reply["parent"], reply["truncated"]) == (str(docs), str(docs.parent), False)
    hidden = local.get("/folders", path=str(docs), hidden="true").json["entries"]
    assert ".hidden" in [entry["name"] for entry in hidden]
    assert local.get("/folders").json["path"] == str(Path.home())
    for path in ("guide", str(docs / "gone"), str(docs / "plain.md")):
        assert local.get("/folders", path=path).json["type"] == "/problems/source"
