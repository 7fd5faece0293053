"""Tools over HTTP: add, change, import in the background, and delete them; every change is recorded."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.tools import jobs
from bunko.library.library import Library
from bunko.types.access import ALL_RIGHTS, Caller
from tests.http_api.client import ApiClient
from tests.http_api.test_description import check_reply
from tests.mcp.mcp_client import FILLER

OWNER = Caller("server token", "http", ALL_RIGHTS, is_owner=True)
PATIENCE = 30.0


@pytest.fixture
def owner(library: Library) -> ApiClient:
    """A client of whoever runs the server."""
    return ApiClient(library, OWNER)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text(f"# 蜜柑\n\n蜜柑を買った。{FILLER}", "utf-8")
    return folder


def wait_for_job(client: ApiClient, job_id: str) -> dict[str, Any]:
    for _ in range(int(PATIENCE / 0.01)):
        job: dict[str, Any] = client.get(f"/jobs/{job_id}").json
        if job["status"] != "running":
            return job
        threading.Event().wait(0.01)
    raise AssertionError(job)


def add_notes(client: ApiClient, notes: Path) -> None:
    body = {"name": "notes", "description": "What we bought", "source": str(notes)}
    assert client.post("/tools", body).status == 201


def test_a_folder_is_added_imported_searched_and_deleted(owner: ApiClient, notes: Path, library: Library) -> None:
    added = owner.post("/tools", {"name": "notes", "description": "What we bought", "source": str(notes)})
    check_reply("/tools", added.json, method="post", status="201")
    assert (added.status, added.json["source"], added.json["active"]) == (201, str(notes), True)
    started = owner.post("/tools/notes/import")
    assert started.status == 202
    check_reply("/tools/{name}/import", started.json, method="post", status="202")
    job = wait_for_job(owner, started.json["job"]["id"])
    check_reply("/jobs/{id}", job)
    assert (job["status"], job["result"]["added"], job["done"], job["total"]) == ("done", 1, 1, 1)
    assert owner.get("/search", q="蜜柑").json["results"][0]["tool"] == "notes"
    assert owner.send("DELETE", "/tools/notes").json == {"name": "notes"}
    assert (notes / "one.md").exists()
    assert owner.get("/tools").json == {"tools": []}
    entries = [(entry.who, entry.action, entry.tools, entry.result) for entry in library.store.audit.entries()]
    assert sorted(entries) == sorted(
        ("server token", action, ("notes",), "done") for action in ("tool add", "import", "tool delete")
    )


def test_the_first_import_describes_a_folder_that_has_no_description(owner: ApiClient, notes: Path) -> None:
    assert owner.post("/tools", {"name": "notes", "source": str(notes)}).json["description"] == "Documents in notes"
    wait_for_job(owner, owner.post("/tools/notes/import").json["job"]["id"])
    [tool] = owner.get("/tools").json["tools"]
    assert "蜜柑" in tool["description"]
    owner.send("PATCH", "/tools/notes", body={"description": "Shopping"})
    wait_for_job(owner, owner.post("/tools/notes/import").json["job"]["id"])
    assert owner.get("/tools").json["tools"][0]["description"] == "Shopping"


def test_a_tool_is_changed_and_disabled(owner: ApiClient, notes: Path) -> None:
    add_notes(owner, notes)
    changed = owner.send("PATCH", "/tools/notes", body={"description": "Shopping", "search": {"k1": 2.0}})
    check_reply("/tools/{name}", changed.json, method="patch")
    assert (changed.json["description"], changed.json["search"]) == ("Shopping", {"k1": 2.0})
    assert owner.send("PATCH", "/tools/notes", body={"active": False}).json["active"] is False
    assert [tool["active"] for tool in owner.get("/tools").json["tools"]] == [False]
    assert owner.send("PATCH", "/tools/notes", body={"search": {}}).json.get("search") is None


def test_assistants_see_at_once_which_tools_are_shown_to_them(owner: ApiClient, notes: Path) -> None:
    add_notes(owner, notes)
    with_it = {tool.name for tool in owner.registry.tools()}
    owner.send("PATCH", "/tools/notes", body={"active": False})
    assert with_it - {tool.name for tool in owner.registry.tools()} == {"notes"}
    owner.send("PATCH", "/tools/notes", body={"active": True})
    assert {tool.name for tool in owner.registry.tools()} == with_it


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, "Nothing is to be changed"),
        ({"colour": "red"}, "There is no parameter 'colour'"),
        ({"active": "no"}, "active must be true or false"),
        ({"search": {"magic": 1.0}}, "A tool cannot have the search setting magic = 1.0"),
        ({"search": {"k1": -1.0}}, "A tool cannot have the search setting k1 = -1.0"),
        ({"source": "notes"}, "'notes' is not an absolute path"),
    ],
)
def test_a_wrong_change_is_refused(owner: ApiClient, notes: Path, body: dict[str, Any], detail: str) -> None:
    add_notes(owner, notes)
    reply = owner.send("PATCH", "/tools/notes", body=body)
    assert (reply.status, reply.json["detail"]) == (400, detail)


def test_the_details_of_a_tool_say_what_it_holds_and_what_its_folder_has(owner: ApiClient, notes: Path) -> None:
    add_notes(owner, notes)
    wait_for_job(owner, owner.post("/tools/notes/import", {"mode": "replace"}).json["job"]["id"])
    (notes / "two.md").write_text("# 二\n\n本文。", "utf-8")
    details = owner.get("/tools/notes").json
    check_reply("/tools/{name}", details)
    assert (details["documents"], details["freshness"]["new"]) == (1, 1)
    assert details["document_list"][0]["language"] == "ja"
    routing = owner.get("/tools/routing").json
    check_reply("/tools/routing", routing)
    assert [tool["name"] for tool in routing["tools"]] == ["notes"]


def test_only_whoever_runs_the_server_names_its_folders(library: Library, notes: Path) -> None:
    client = ApiClient(library)  # a token that may change everything
    reply = client.post("/tools", {"name": "etc", "description": "x", "source": "/etc"})
    assert (reply.status, reply.json["detail"]) == (403, "This token may not name folders of the server")
    assert client.post("/tools", {"name": "pages", "description": "Pages", "kind": "web"}).status == 201
    reply = client.send("PATCH", "/tools/pages", body={"source": str(notes)})
    assert reply.status == 403


def test_a_taken_name_and_an_unknown_kind_are_refused(owner: ApiClient, notes: Path) -> None:
    add_notes(owner, notes)
    body = {"name": "notes", "description": "Again", "source": str(notes)}
    assert owner.post("/tools", body).json["detail"] == "A tool named 'notes' already exists"
    assert owner.post("/tools", body | {"name": "search"}).json["detail"] == "'search' is the name of a built-in tool"
    assert owner.post("/tools", body | {"name": "b", "kind": "magic"}).json["detail"] == "There is no kind 'magic'"
    assert owner.post("/tools", {"description": "b"}).json["parameter"] == "name"
    missing = owner.post("/tools", body | {"name": "b", "source": str(notes / "gone")}).json
    assert missing["type"] == "/problems/source"


def test_a_running_job_is_cancelled(owner: ApiClient, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_notes(owner, notes)
    for number in range(300):
        (notes / f"{number}.md").write_text(f"# 文書{number}\n\n{FILLER}", "utf-8")
    job_id = owner.post("/tools/notes/import").json["job"]["id"]
    assert owner.send("DELETE", f"/jobs/{job_id}").status == 200
    assert wait_for_job(owner, job_id)["status"] == "cancelled"
    assert [job["id"] for job in owner.get("/jobs").json["jobs"]] == [job_id]
    assert owner.get("/jobs/nothing").status == 404


def test_too_many_jobs_are_refused_for_now(owner: ApiClient, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_notes(owner, notes)
    monkeypatch.setattr(jobs, "MAX_RUNNING_JOBS", 0)
    reply = owner.post("/tools/notes/import")
    assert (reply.status, reply.headers["retry-after"]) == (429, "5")
    assert reply.json["hint"] == "Wait for one of them, or cancel it with DELETE /api/v1/jobs/ID."


def test_bodies_must_be_json_objects(owner: ApiClient) -> None:
    assert owner.send("POST", "/tools", content=b"{", headers={"content-type": "application/json"}).status == 400
    assert owner.send("POST", "/tools", content=b"name=x").json["status"] == 415
    assert owner.post("/tools", ["x"]).json["detail"] == "body must be an object"
