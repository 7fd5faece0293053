"""The day of somebody who comes from a server over one folder: `search` and `reindex` over MCP, and config.yaml."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.days.person import Assistant, CharacterPairs, Person, embedding_service
from tests.loopback import KEY
from tests.settings.test_folder_files import SEED_CONFIG

pytestmark = pytest.mark.slow

SETUP = """\
この文書は環境構築の全体の流れを示す。最初に前提条件を確かめ、そのあとで順に進めること。途中で止めてもよい。

# セットアップ

この節には、準備に要る物を書く。機材の手配には一週間ほどかかるので、早めに申請書を総務へ出しておくこと。

## インストール手順

Python 3.11以上をインストールし、環境構築を始める。仮想環境を作り、依存パッケージを入れてから起動する。

#### 補足

この見出しは第四階層なので、区切りにならない。
"""
FAQ = """\
# よくある質問

## 環境設定

環境変数は .env に書く。設定の変更は再起動のあとに有効になる。書き込み権限に注意する。
"""
MEMO = "環境構築の際には、プロキシの設定を先に済ませること。社内ネットワークからは証明書も必要になるので注意する。\n"
LONG = "# 長い節\n\n" + "この文は、三千字を超える節を作るために何度も繰り返される。" * 200 + "\n"
FIELDS = {"file_path", "heading", "content", "score", "chunk_index"}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A folder as the documents of that server describe it, with files that are not to be read."""
    person = Person(tmp_path)
    for name, text in {"docs/setup.md": SETUP, "docs/faq.md": FAQ, "notes/memo.txt": MEMO}.items():
        person.write(f"~/documents/{name}", text)
    for name in ("data/files.md", "node_modules/a/readme.md", "__pycache__/b.txt", ".git/c.md", "notes/picture.png"):
        person.write(f"~/documents/{name}", "環境構築\n")
    return person


def server(person: Person, *options: str) -> dict[str, object]:
    """Return the entry of .claude.json for this person's folder."""
    documents = str(person.home / "documents")
    entry = {"command": "python", "args": ["-m", "bunko", "--docs-dir", documents, *options], "cwd": str(person.home)}
    person.write("~/.claude.json", json.dumps({"mcpServers": {"local-rag": entry}}))
    return dict(json.loads(person.path("~/.claude.json").read_text(encoding="utf-8"))["mcpServers"]["local-rag"])


def touch(path: Path, *, after: int) -> None:
    changed = path.stat().st_mtime + after
    os.utime(path, (changed, changed))


def test_the_first_search_indexes_the_folder_and_answers_in_the_documented_shape(person: Person) -> None:
    async def day(assistant: Assistant) -> None:
        assert {"search", "reindex"} <= set(await assistant.tool_names())
        answer = await assistant.call("search", query="環境構築の方法", top_k=5)
        assert answer["query"] == "環境構築の方法"
        assert answer["total_chunks"] == 5
        results = answer["results"]
        assert all(set(result) >= FIELDS for result in results)
        assert [result["score"] for result in results] == sorted((hit["score"] for hit in results), reverse=True)
        assert all(0 <= result["score"] <= 1 for result in results)
        assert all(result["score"] == round(result["score"], 4) for result in results)
        by_path = {(result["file_path"], result["chunk_index"]): result for result in results}
        steps = by_path["docs/setup.md", 2]
        assert steps["heading"] == "## インストール手順"
        assert steps["content"].startswith("## インストール手順\n\nPython 3.11以上をインストールし")
        assert "#### 補足" in steps["content"]
        assert by_path["docs/setup.md", 0]["content"].startswith("この文書は")
        assert by_path["docs/setup.md", 0]["heading"] == by_path["notes/memo.txt", 0]["heading"] == ""
        assert len((await assistant.call("search", query="環境構築", top_k=1))["results"]) == 1

    person.connect(server(person), day)
    assert (person.home / "documents" / ".rag-index").is_dir()


def test_a_reindex_reports_what_changed_by_time_and_then_by_content(person: Person) -> None:
    documents = person.home / "documents"

    async def day(assistant: Assistant) -> None:
        summary = await assistant.call("reindex")
        assert summary | {"added": 3, "updated": 0, "deleted": 0, "unchanged": 0, "total_chunks": 5} == summary
        touch(documents / "docs/faq.md", after=60)
        summary = await assistant.call("reindex")
        assert summary | {"added": 0, "updated": 0, "deleted": 0, "unchanged": 3} == summary
        person.write("~/documents/docs/faq.md", FAQ.replace("再起動", "再読み込み"))
        touch(documents / "docs/faq.md", after=120)
        person.write("~/documents/docs/new-feature.md", LONG)
        (documents / "notes/memo.txt").unlink()
        summary = await assistant.call("reindex")
        assert summary | {"added": 1, "updated": 1, "deleted": 1, "unchanged": 1} == summary
        found = await assistant.call("search", query="設定の変更", top_k=1)
        assert "再読み込みのあとに有効になる" in found["results"][0]["content"]
        found = await assistant.call("search", query="プロキシ 証明書")
        assert "notes/memo.txt" not in [result["file_path"] for result in found["results"]]
        assert found["total_chunks"] == summary["total_chunks"]

    person.connect(server(person), day)
    parts = person.run("bunko get docs/new-feature.md --docs-dir ~/documents --outline")
    assert "# 長い節" in parts.out
    found = json.loads(person.run("bunko search 三千字を超える節 --docs-dir ~/documents --json --per-document 0").out)
    texts = [hit["content"] for hit in found["results"] if hit["file_path"] == "docs/new-feature.md"]
    assert texts
    assert all(len(text) <= 3000 and text.rstrip().endswith("。") for text in texts), "split between sentences"


def test_an_empty_folder_answers_with_an_empty_list(person: Person) -> None:
    shutil.rmtree(person.home / "documents")
    (person.home / "documents").mkdir()

    async def day(assistant: Assistant) -> None:
        answer = await assistant.call("search", query="環境構築の方法")
        assert (answer["results"], answer["total_chunks"]) == ([], 0)

    person.connect(server(person), day)


def test_verbose_shows_each_step_with_its_time_and_the_index_may_be_elsewhere(person: Person) -> None:
    async def day(assistant: Assistant) -> None:
        await assistant.call("search", query="環境構築の方法", top_k=5)

    log = person.connect(server(person, "--data-dir", str(person.home / "index"), "--verbose"), day)
    assert (person.home / "index").is_dir()
    assert not (person.home / "documents" / ".rag-index").exists()
    documents, time = re.escape(str(person.home / "documents")), r"\d+\.\dms"
    lines = [
        rf"DEBUG \[reindex\] scanning docs_dir={documents}",
        r"DEBUG \[reindex\] scan result: 3 files \(new=3, updated=0, deleted=0, unchanged=0\)",
        r"DEBUG \[reindex\] processing: docs/setup\.md",
        rf"DEBUG \[TIMER\] file_scan: {time}",
        rf"DEBUG \[TIMER\]   hash_compute: {time}",
        rf"DEBUG \[TIMER\]   chunk_split: {time} \(3 chunks, chars=\[\d+, \d+, \d+\]\)",
        rf"DEBUG \[TIMER\]   sqlite_write: {time} \(3 documents\)",
        rf"DEBUG \[TIMER\] reindex_total: {time}",
        r"DEBUG \[reindex\] work by step: \w+ \d+%(, \w+ \d+%)+",
        r"DEBUG \[reindex\] summary: added=3, updated=0, deleted=0, unchanged=0, total_chunks=5",
        r'DEBUG \[search\] query="環境構築の方法", top_k=5',
        rf"DEBUG \[TIMER\] query_embedding: {time}",
        rf"DEBUG \[TIMER\] vector_query: {time}",
        r"DEBUG \[search\] results: \d chunks returned",
        r'DEBUG \[search\]   \[\d\] score=0\.\d\d file=notes/memo\.txt heading=""',
        r'DEBUG \[search\]   \[\d\] score=0\.\d\d file=docs/setup\.md heading="## インストール手順"',
        rf"DEBUG \[TIMER\] search_total: {time}",
    ]
    for line in lines:
        assert re.search(f"^{line}$", log, re.M), f"{line} is not in:\n{log}"
    assert log.index("[reindex] summary") < log.index("[search] query=") < log.index("search_total")


@pytest.fixture
def gemini() -> Iterator[CharacterPairs]:
    """The service that computes the vectors."""
    with embedding_service(768) as service:
        yield service


def test_its_config_file_and_gemini_work_as_before_once_gemini_is_chosen(
    person: Person, gemini: CharacterPairs
) -> None:
    person.write("~/documents/config.yaml", SEED_CONFIG.replace("default_top_k: 5", "default_top_k: 2"))
    for number in range(120):
        person.write(f"~/documents/many/{number}.txt", f"{number} 番目の記録。" + MEMO)
    quiet = person.run("bunko reindex --docs-dir ~/documents --data-dir ~/first", GEMINI_API_KEY=KEY)
    assert (quiet.code, gemini.asked) == (0, []), "a key alone sends nothing"
    environ = {"GEMINI_API_KEY": KEY, "EMBEDDING_PROVIDER": "gemini", "GEMINI_BASE_URL": gemini.address}
    ran = person.run("bunko reindex --docs-dir ~/documents --json --verbose", **environ)
    assert (ran.code, json.loads(ran.out)["added"]) == (0, 123), ran.err
    assert re.search(r"^DEBUG \[TIMER\]   gemini_embed: \d+\.\dms \(batch_size=\d+\)$", ran.err, re.M)
    sent = [request for asked in gemini.asked for request in asked.body["requests"]]
    assert [request["taskType"] for request in sent] == ["RETRIEVAL_DOCUMENT"] * 125
    assert max(len(asked.body["requests"]) for asked in gemini.asked) <= 100
    assert {request["outputDimensionality"] for request in sent} == {768}
    assert {asked.path for asked in gemini.asked} == {"/v1/models/gemini-embedding-001:batchEmbedContents"}
    assert {asked.headers["x-goog-api-key"] for asked in gemini.asked} == {KEY}
    gemini.asked.clear()
    person.write("~/documents/docs/added.md", "# 追記\n\n" + MEMO + "この一文だけが新しいので、これだけが送られる。\n")
    found = person.run("bunko search インストール手順 --docs-dir ~/documents --json", **environ).json()
    assert isinstance(found["results"], list)
    assert len(found["results"]) == 2
    assert found["results"][0]["heading"] == "## インストール手順"
    sent = [request for asked in gemini.asked for request in asked.body["requests"]]
    assert [request["taskType"] for request in sent].count("RETRIEVAL_DOCUMENT") == 1
    assert "インストール手順" in [request["content"]["parts"][0]["text"] for request in sent]


def test_a_config_file_in_the_current_folder_is_read_and_named(person: Person) -> None:
    config = person.write("config.yaml", "search:\n  default_top_k: 1\nretry:\n  max_retries: 9\n")
    ran = person.run("bunko search 環境構築 --docs-dir ~/documents --json")
    assert len(json.loads(ran.out)["results"]) == 1
    assert f"Read from {config}: search.top_k." in ran.err
    assert f"Not read from {config}: retry.max_retries." in ran.err
    assert f"To use the whole file: --config {config}" in ran.err
    whole = person.run("bunko search 環境構築 --docs-dir ~/documents --json --config config.yaml")
    assert (len(json.loads(whole.out)["results"]), whole.err) == (1, "")
