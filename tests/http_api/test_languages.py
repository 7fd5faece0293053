"""Errors are told in the language that a client asks for; the codes stay the same."""

from __future__ import annotations

from tests.http_api.client import ApiClient


def test_a_problem_is_told_in_the_language_of_the_client(client: ApiClient) -> None:
    english = client.get("/tools/nothing").json
    japanese = client.get("/tools/nothing", headers={"Accept-Language": "ja,en;q=0.5"}).json
    assert english["detail"].startswith("There is no tool")
    assert "nothing" in japanese["detail"]
    assert "ありません" in japanese["detail"]
    assert (japanese["type"], japanese["status"]) == (english["type"], english["status"])


def test_a_job_says_what_it_is_about(client: ApiClient) -> None:
    [tool] = client.get("/tools").json["tools"]
    job = client.post(f"/tools/{tool['name']}/import", {}).json["job"]
    assert job["subject"] == tool["name"]


def test_a_refused_request_is_told_in_the_language_of_the_client(client: ApiClient) -> None:
    japanese = {"Accept-Language": "ja"}
    refused = [
        client.get("/search?q=" + "a" * 2000, headers=japanese), client.get("/search?k=x", headers=japanese),
        client.get("/nothing", headers=japanese), client.get("/search?q=a&colour=red", headers=japanese),
    ]  # fmt: skip
    for reply in refused:
        assert reply.status >= 400
        assert (
            "ください" in reply.json["detail"] or "ません" in reply.json["detail"] or "います" in reply.json["detail"]
        )
