"""Memos, web pages, settings, embedders and answers over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.interfaces.answers import answer_to_dict
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Tool
from tests.http_api.client import ApiClient
from tests.http_api.test_description import check_reply
from tests.http_api.test_tools import wait_for_job
from tests.site import Site
from tests.web.articles import article


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library with two memos."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    source = tmp_path / "diary.jsonl"
    memos = [
        {"title": "蜜柑", "date": "2024-05-01", "tags": ["果物", "買物"], "text": "蜜柑を買った。"},
        {"title": "葡萄", "date": "2024-06-01", "tags": ["果物"], "text": "葡萄を食べた。"},
    ]
    source.write_text("".join(json.dumps(memo, ensure_ascii=False) + "\n" for memo in memos), "utf-8")
    environ = {"BUNKO_EMBEDDING_PROVIDER": "none", "BUNKO_SERVE_TOKEN": "very-secret", "BUNKO_SEARCH_TOP_K": "7"}
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ) as library:
        library.store.tools.put(Tool("diary", "jsonl", "Memos", str(source)))
        library.reindex()
        yield library


def test_the_latest_memos_come_with_their_beginnings(diary: Library) -> None:
    client = ApiClient(diary)
    memos = client.get("/memos/recent", limit=1).json
    check_reply("/memos/recent", memos)
    assert [(memo["title"], memo["date"], memo["beginning"]) for memo in memos["memos"]] == [
        ("葡萄", "2024-06-01", "葡萄を食べた。")
    ]
    assert [memo["title"] for memo in client.get("/memos/recent", tag="買物").json["memos"]] == ["蜜柑"]


def test_tags_are_counted(diary: Library) -> None:
    tags = ApiClient(diary).get("/memos/tags").json
    check_reply("/memos/tags", tags)
    assert tags == {"tags": [{"tag": "果物", "count": 2}, {"tag": "買物", "count": 1}]}


def test_settings_say_where_they_come_from_and_hide_secrets(diary: Library) -> None:
    reply = ApiClient(diary).get("/settings")
    check_reply("/settings", reply.json)
    settings = {setting["key"]: (setting["value"], setting["origin"]) for setting in reply.json["settings"]}
    assert settings["search.top_k"] == ("7", "environment BUNKO_SEARCH_TOP_K")
    assert settings["search.k1"][1] == "default"
    assert b"very-secret" not in reply.body
    reader = ApiClient(diary).limited_to(read=("*",))
    assert reader.get("/settings").status == 403


def test_embedders_say_what_they_lack(diary: Library) -> None:
    reply = ApiClient(diary).limited_to(read=("*",)).get("/embedders").json
    check_reply("/embedders", reply)
    assert {"static", "openai"} <= {embedder["name"] for embedder in reply["embedders"]}
    assert ApiClient(diary).limited_to(read=("diary",)).get("/embedders").status == 403


def test_a_question_is_answered_with_sources_as_by_the_command(diary: Library) -> None:
    reply = ApiClient(diary).post("/ask", {"question": "何を食べた？", "tool": ["diary"]}).json
    check_reply("/ask", reply, method="post")
    expected = answer_to_dict(diary.ask("何を食べた？", tool="diary"))
    assert reply == json.loads(json.dumps(expected))
    assert reply["found"]
    assert ApiClient(diary).post("/ask", {"question": ""}).json["parameter"] == "question"


def test_pages_are_fetched_and_a_site_is_crawled_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    pages = {"/a": article("蜜柑", "蜜柑の本文である。"), "/b": article("葡萄", "葡萄の本文である。")}
    with Site(pages) as site:
        environ = {
            "BUNKO_CRAWL_ALLOWED_HOSTS": site.host,
            "RAG_CRAWL_DELAY_SEC": "0",
            "BUNKO_EMBEDDING_PROVIDER": "none",
        }
        with open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ) as library:
            client = ApiClient(library)
            started = client.post("/web/pages", {"urls": [site.url("/a")]})
            assert started.status == 202
            assert wait_for_job(client, started.json["job"]["id"])["result"]["pages"] == 1
            crawl = client.post("/web/crawls", {"url": site.url("/b"), "pattern": ""}).json["job"]["id"]
            assert wait_for_job(client, crawl)["result"]["pages"] == 1
            tools = client.get("/web").json
            check_reply("/web", tools)
            assert tools["tools"][0]["pages"] == 2
            deleted = client.send("DELETE", "/web/pages", url=site.url("/a"))
            check_reply("/web/pages", deleted.json, method="delete")
            assert deleted.json["url"] == site.url("/a")
            assert client.send("DELETE", "/web/pages", url=site.url("/a")).status == 404
            assert client.post("/web/pages", {"urls": []}).json["parameter"] == "urls"


def test_a_job_does_not_show_the_password_of_an_address(diary: Library) -> None:
    client, address = ApiClient(diary), "http://me:a-password@192.0.2.1/"
    for started in (
        client.post("/web/pages", {"urls": [address]}),
        client.post("/web/crawls", {"url": address, "pattern": ""}),
    ):
        ended = wait_for_job(client, started.json["job"]["id"])
        assert "a-password" not in json.dumps([started.json, ended])
