"""Reports and judgements over the API: the same files as those of the commands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bunko.evaluation.judge import Judgements, default_file
from bunko.evaluation.report_store import ReportStore
from bunko.library.library import Library
from tests.http_api.client import ApiClient


@pytest.fixture
def judged(client: ApiClient) -> tuple[ApiClient, Library, str]:
    library = client.registry.library()
    [tool] = library.tools()
    library.import_(tool.name)
    return client, library, tool.name


def test_reports_are_listed_and_shown(client: ApiClient) -> None:
    report: dict[str, Any] = {
        "created_at": "2026-01-01T10:00:00+00:00", "judged": {"name": "notes", "queries": 3}, "mode": "bm25",
        "modes": {"bm25": {"measures": {"ndcg@5": 0.5}}},
    }  # fmt: skip
    assert client.get("/evaluations").json == {"evaluations": []}
    ReportStore(client.registry.library().paths.folder).keep(report)
    [listed] = client.get("/evaluations").json["evaluations"]
    assert (listed["kind"], listed["measure"], listed["score"]) == ("evaluation", "ndcg@5", 0.5)
    assert client.get(f"/evaluations/{listed['id']}").json["report"] == report
    assert client.get("/evaluations/nothing").status == 404
    assert client.limited_to(read=("other",)).get("/evaluations").status == 403


def test_a_judgement_is_in_the_file_that_the_command_writes(judged: tuple[ApiClient, Library, str]) -> None:
    client, library, tool = judged
    documents = client.get("/judgements", tool=tool, q="葡萄").json["documents"]
    assert documents[0]["path"] == "plain.md"
    assert documents[0]["grade"] is None
    reply = client.post("/judgements", {"tool": tool, "query": "葡萄", "path": "plain.md", "grade": 3})
    assert reply.json == {"tool": tool, "queries": 1, "judgements": 1}
    path = default_file(library, library.resolve_tool(tool))
    assert Judgements(path, tool).grade("葡萄", "plain.md") == 3
    assert json.loads(path.read_text("utf-8"))["queries"][0]["language"] == "ja"
    assert client.get("/judgements", tool=tool, q="葡萄").json["documents"][0]["grade"] == 3
    client.post("/judgements", {"tool": tool, "query": "葡萄", "path": "plain.md", "grade": None})
    assert not path.exists()
    assert [entry.action for entry in library.store.audit.entries()].count("judge") == 2


def test_recorded_searches_wait_until_they_are_judged(judged: tuple[ApiClient, Library, str]) -> None:
    client, library, tool = judged
    library.store.cache.log_search("葡萄", tool, "2026-01-01", limit=10)
    library.store.cache.log_search("private question", "", "2026-01-01", limit=10)
    assert client.get("/judgements", tool=tool).json["waiting"] == ["private question", "葡萄"]
    # What others have searched in the whole library is not for a token of one tool.
    limited = client.limited_to(write=(tool,))
    assert limited.get("/judgements", tool=tool).json["waiting"] == ["葡萄"]
    client.post("/judgements", {"tool": tool, "query": "葡萄", "path": "plain.md", "grade": 0})
    assert limited.get("/judgements", tool=tool).json["waiting"] == []


def test_who_may_only_read_a_tool_does_not_judge_it(judged: tuple[ApiClient, Library, str]) -> None:
    client, _, tool = judged
    reader = client.limited_to(read=("*",))
    assert reader.get("/judgements", tool=tool, q="葡萄").status == 403
    body = {"tool": tool, "query": "葡萄", "path": "plain.md", "grade": 1}
    assert reader.post("/judgements", body).status == 403


@pytest.mark.parametrize(("field", "value", "status"), [("path", "no.md", 404), ("grade", 4, 400), ("query", "", 400)])
def test_what_cannot_be_judged_is_refused(
    judged: tuple[ApiClient, Library, str], field: str, value: Any, status: int
) -> None:
    client, _, tool = judged
    body = {"tool": tool, "query": "葡萄", "path": "plain.md", "grade": 1} | {field: value}
    assert client.post("/judgements", body).status == status
