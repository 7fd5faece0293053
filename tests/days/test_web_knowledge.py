"""The day of somebody who comes from a knowledge base of web pages: five tools over MCP, Slack commands, evaluation."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.chat_service import ChatService, Reply, chat_service
from tests.days.person import Assistant, CharacterPairs, Person, embedding_service
from tests.site import Asked, Site, html, text
from tests.site import Reply as Page
from tests.slack.running_bot import environment
from tests.slack.slack_service import SlackService, slack_service
from tests.slack.test_slack_command import bot_process

pytestmark = pytest.mark.slow

ENVIRONMENT = """\
# RAG MCP Server Configuration
# Copy to .env and edit as needed

# Embedding
EMBEDDING_PROVIDER=local
EMBEDDING_MODEL_LOCAL=nomic-embed-text
EMBEDDING_MODEL_ONLINE=text-embedding-3-small
EMBEDDING_PREFIX_ENABLED=true
LMSTUDIO_BASE_URL=http://localhost:1234/v1
OPENAI_API_KEY=

# Storage
CHROMADB_PERSIST_DIR=./chroma_db
BM25_PERSIST_DIR=./bm25_index

# Chunking
RAG_CHUNK_SIZE=200
RAG_CHUNK_OVERLAP=30

# Search
RAG_RETRIEVAL_COUNT=3
# RAG_SIMILARITY_THRESHOLD=

# Hybrid Search (BM25 + Vector)
RAG_HYBRID_SEARCH_ENABLED=false
RAG_VECTOR_WEIGHT=0.90
RAG_BM25_K1=2.5
RAG_BM25_B=0.50
RAG_MIN_COMBINED_SCORE=0.75

# Crawl
RAG_MAX_CRAWL_PAGES=50
RAG_CRAWL_DELAY_SEC=1.0

# robots.txt
RAG_RESPECT_ROBOTS_TXT=true
RAG_ROBOTS_TXT_CACHE_TTL=3600

# URL Safety Check (Google Safe Browsing API)
RAG_URL_SAFETY_CHECK=false
GOOGLE_SAFE_BROWSING_API_KEY=
RAG_URL_SAFETY_CACHE_TTL=300
RAG_URL_SAFETY_FAIL_OPEN=true
RAG_URL_SAFETY_TIMEOUT=5.0

# Debug
RAG_DEBUG_LOG_ENABLED=false
"""
ITEMS = """\
<title>アイテム</title><nav>メニュー</nav><main><h1>しれんのしろ</h1>
<table><tr><th>名前</th><th>場所</th><th>HP</th></tr><tr><td>りゅうおう</td><td>しれんのしろ</td><td>200</td></tr>
<tr><td>ゴーレム</td><td>メルキド</td><td>153</td></tr></table></main>"""
ASYNC = """\
<title>async/await</title><header>見出し</header><article><h1>async/await</h1>
<p>Pythonのasync/awaitは、非同期処理を書くための構文である。</p></article><footer>奥付</footer>"""
INDEX = """\
<title>目次</title><main><h1>目次</h1><a href="/docs/async.html">1</a> <a href="/docs/items.html">2</a>
<a href="/docs/items.html#golem">3</a> <a href="/docs/gone.html">4</a> <a href="/docs/secret.html">5</a>
<a href="/docs/notes.txt">6</a> <a href="https://other.example/z.html">7</a></main>"""


@pytest.fixture
def site() -> Iterator[Site]:
    """A page of links, two articles, a page that robots.txt forbids and one that is gone."""
    pages = {
        "/docs": html(INDEX),
        "/docs/async.html": html(ASYNC),
        "/docs/items.html": html(ITEMS),
        "/docs/secret.html": html("<main>秘密</main>"),
        "/robots.txt": text("User-agent: *\nDisallow: /docs/secret.html\n"),
    }
    with Site(pages) as running:
        yield running


@pytest.fixture
def lm_studio() -> Iterator[CharacterPairs]:
    """The local service that computes the vectors."""
    with embedding_service(768) as service:
        yield service


@pytest.fixture
def person(tmp_path: Path, site: Site, lm_studio: CharacterPairs) -> Person:
    """A library whose .env has the settings as they are, for a site on this machine without a delay."""
    person = Person(tmp_path)
    write_environment(person, site, lm_studio)
    return person


def write_environment(person: Person, site: Site, lm_studio: CharacterPairs, **changed: str) -> None:
    """Write .env into the library, with some values changed."""
    values = {"LMSTUDIO_BASE_URL": f"{lm_studio.address}/v1", "RAG_CRAWL_DELAY_SEC": "0", **changed}
    lines = ENVIRONMENT
    for name, value in values.items():
        lines = re.sub(f"^{name}=.*$", f"{name}={value}", lines, flags=re.M)
    person.write("~/.local/share/bunko/.env", f"{lines}BUNKO_CRAWL_ALLOWED_HOSTS={site.host}\n")


def server(person: Person, *options: str) -> dict[str, Any]:
    """Return the entry of config/mcp_servers.json."""
    arguments = ["-m", "bunko", "serve", "--toolsets", "web", *options]
    entry = {"transport": "stdio", "command": "python", "args": arguments, "env": {}}
    config = person.write("config/mcp_servers.json", json.dumps({"mcpServers": {"rag": entry}}))
    return dict(json.loads(config.read_text(encoding="utf-8"))["mcpServers"]["rag"])


def test_the_five_tools_crawl_search_count_and_delete_as_documented(
    person: Person, site: Site, lm_studio: CharacterPairs
) -> None:
    article, items = site.url("/docs/async.html"), site.url("/docs/items.html")

    async def day(assistant: Assistant) -> None:
        assert {"rag_search", "rag_add", "rag_crawl", "rag_delete", "rag_stats"} <= set(await assistant.tool_names())
        assert await assistant.read("rag_search", query="りゅうおう") == "該当する情報が見つかりませんでした"
        assert await assistant.read("rag_add", url=f"{article}#top") == f"ページを取り込みました: {article} (1チャンク)"
        crawled = await assistant.read("rag_crawl", url=site.url("/docs"), pattern=r"\.html$")
        assert crawled.splitlines()[0] == "完了: 2ページ / 2チャンク / エラー: 1件"
        assert await assistant.read("rag_stats") == "ナレッジベース統計:\n総チャンク数: 2\nソースURL数: 2"
        found = await assistant.read("rag_search", query="りゅうおう", n_results=1)
        assert found.startswith(f"## Source: {items}\n")
        assert "| 名前 | 場所 | HP |" in found
        assert "| りゅうおう | しれんのしろ | 200 |" in found
        assert "メニュー" not in found
        question = await assistant.read("rag_search", query="Pythonのasync/awaitについて教えて", n_results=1)
        assert question.startswith(f"## Source: {article}\n")
        assert "非同期処理を書くための構文である" in question
        broken = await assistant.read("rag_add", url=site.url("/broken-page"))
        assert broken.splitlines()[:3] == [
            "エラー: ページの取り込みに失敗しました。",
            f"URL: {site.url('/broken-page')}",
            "原因: HTTP 404 Not Found",
        ]
        assert await assistant.read("rag_delete", url=article) == f"削除しました: {article} (1チャンク)"
        assert await assistant.read("rag_stats") == "ナレッジベース統計:\n総チャンク数: 1\nソースURL数: 1"

    person.connect(server(person), day)
    assert "/docs/secret.html" not in site.paths
    assert "/docs/notes.txt" not in site.paths
    assert site.paths.count("/robots.txt") == 1
    assert {asked.body["model"] for asked in lm_studio.asked} == {"nomic-embed-text"}
    assert all(sent.startswith(("search_document: ", "search_query: ")) for sent in lm_studio.texts())
    assert "search_query: りゅうおう" in lm_studio.texts()
    assert person.path("bm25_index").is_dir()


def test_addresses_that_are_not_public_pages_are_refused(person: Person, site: Site) -> None:
    site.pages["/moved"] = (302, {"Location": site.url("/docs/async.html")}, b"")

    async def day(assistant: Assistant) -> None:
        for url in ("ftp://example.com/a", "http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]:1/"):
            assert (await assistant.read("rag_add", url=url)).startswith("エラー: ページの取り込みに失敗しました。")
        moved = await assistant.read("rag_add", url=site.url("/moved"))
        assert moved.startswith("エラー: ページの取り込みに失敗しました。")
        assert await assistant.read("rag_stats") == "ナレッジベース統計:\n総チャンク数: 0\nソースURL数: 0"

    person.connect(server(person), day)
    assert "/docs/async.html" not in site.paths


def test_robots_txt_that_cannot_be_read_lets_pages_through_and_a_slow_page_is_given_up(
    person: Person, site: Site, lm_studio: CharacterPairs
) -> None:
    def never(asked: Asked) -> Page:
        site.released.wait()
        return html("")

    site.pages["/robots.txt"] = text("", 503)
    site.pages["/slow"] = never
    person.environ["BUNKO_CRAWL_TIMEOUT_SECONDS"] = "1"

    async def day(assistant: Assistant) -> None:
        added = await assistant.read("rag_add", url=site.url("/docs/async.html"))
        assert added.splitlines()[0] == f"ページを取り込みました: {site.url('/docs/async.html')} (1チャンク)"
        slow = await assistant.read("rag_crawl", url=site.url("/slow"))
        assert slow.splitlines()[:2] == [
            "エラー: クロールに失敗しました。",
            "原因: 接続がタイムアウトしました (1秒)",
        ]

    log = person.connect(server(person), day)
    assert "WARNING" in log
    assert "robots.txt" in log


def test_safe_browsing_keeps_a_reported_page_out(person: Person, site: Site, lm_studio: CharacterPairs) -> None:
    items = site.url("/docs/items.html")

    def judge(asked: Asked) -> Page:
        entries = [entry["url"] for entry in json.loads(asked.body)["threatInfo"]["threatEntries"]]
        matches = [{"threatType": "MALWARE", "threat": {"url": url}} for url in entries if url == items]
        return 200, {"Content-Type": "application/json"}, json.dumps({"matches": matches}).encode()

    site.pages["/v4/threatMatches:find"] = judge
    write_environment(
        person, site, lm_studio, RAG_URL_SAFETY_CHECK="true", GOOGLE_SAFE_BROWSING_API_KEY="a-key-of-the-tests"
    )
    person.environ["BUNKO_SAFETY_BASE_URL"] = site.address

    async def day(assistant: Assistant) -> None:
        refused = await assistant.read("rag_add", url=items)
        assert refused.startswith(f"エラー: ページの取り込みに失敗しました。\nURL: {items}\n原因: ")
        assert (await assistant.read("rag_add", url=site.url("/docs/async.html"))).startswith(
            "ページを取り込みました: "
        )
        assert await assistant.read("rag_stats") == "ナレッジベース統計:\n総チャンク数: 1\nソースURL数: 1"

    person.connect(server(person), day)
    assert "/docs/items.html" not in site.paths


def test_hybrid_search_and_the_log_of_searches_are_switched_on_by_the_same_names(
    person: Person, site: Site, lm_studio: CharacterPairs
) -> None:
    write_environment(person, site, lm_studio, RAG_HYBRID_SEARCH_ENABLED="true", RAG_DEBUG_LOG_ENABLED="true")
    items = site.url("/docs/items.html")

    async def day(assistant: Assistant) -> None:
        await assistant.read("rag_crawl", url=site.url("/docs"))
        answer = await assistant.call("rag_search", query="しれんのしろ ゴーレム")
        assert [result["source"] for result in answer["results"]] == [items]
        assert 0.75 <= answer["results"][0]["score"] <= 1

    log = person.connect(server(person), day)
    assert re.search(r'^INFO RAG retrieve: query="しれんのしろ ゴーレム"$', log, re.M)
    assert re.search(rf'^INFO RAG result 1: distance=0\.\d+ source="{re.escape(items)}"$', log, re.M)
    assert "result 1 text" not in log

    async def next_day(assistant: Assistant) -> None:
        await assistant.call("rag_search", query="しれんのしろ ゴーレム")

    log = person.connect(server(person, "--verbose"), next_day)
    assert re.search(r'^DEBUG RAG result 1 text: "# しれんのしろ', log, re.M)
    write_environment(person, site, lm_studio)
    assert "RAG retrieve" not in person.connect(server(person), next_day)


def test_without_the_embedding_service_pages_are_stored_and_found_by_words(
    person: Person, site: Site, lm_studio: CharacterPairs
) -> None:
    lm_studio.close()
    person.environ["BUNKO_RETRY_BASE_DELAY"] = "0.1"  # seconds, until the service counts as away
    article = site.url("/docs/async.html")

    async def day(assistant: Assistant) -> None:
        added = await assistant.read("rag_add", url=article)
        assert added.startswith(f"ページを取り込みました: {article} (1チャンク)\n")
        assert "失敗しました。" not in added.splitlines()[0]
        assert (await assistant.read("rag_search", query="非同期処理")).startswith(f"## Source: {article}\n")

    person.connect(server(person), day)


@pytest.fixture
def slack() -> Iterator[SlackService]:
    """Slack's Web API."""
    with slack_service() as service:
        yield service


@pytest.fixture
def model() -> Iterator[ChatService]:
    """The chat model of the assistant."""
    with chat_service() as service:
        yield service


def test_the_bot_follows_its_commands_in_threads_and_answers_from_the_pages(
    person: Person, site: Site, slack: SlackService, model: ChatService, monkeypatch: pytest.MonkeyPatch
) -> None:
    server(person)
    monkeypatch.chdir(person.current)
    assert person.run("bunko init").code == 0
    question = "Pythonのasync/awaitについて教えて"
    model.replies = [
        Reply(calls=[("rag_search", json.dumps({"query": question}))]),
        Reply("Pythonのasync/awaitは、非同期処理を書くための構文である。[1]"),
    ]
    environ = environment(
        slack,
        **person.environ,
        MCP_ENABLED="true",
        MCP_SERVERS_CONFIG="config/mcp_servers.json",
        BUNKO_SLACK_WRITE_USERS="U1",
        BUNKO_CHAT_PROVIDER="ollama",
        BUNKO_CHAT_MODEL="m",
        BUNKO_CHAT_BASE_URL=model.address,
    )
    article, gone = site.url("/docs/async.html"), site.url("/docs/gone.html")
    commands = [
        rf"rag crawl {site.url('/docs')} \.html$", f"rag add {article}", "rag status", f"rag delete {article}",
        f"rag add {gone}",
    ]  # fmt: skip
    answers = []
    with bot_process(person.home / ".local/share/bunko", environ) as (_, sender):
        for command in commands:
            number = len(slack.messages) + (2 if "crawl" in command else 1)
            ts = sender.mention(command)
            slack.wait_for(number)
            answers.append([message["text"] for message in slack.in_thread(ts)])
            if command == "rag status":
                asked = sender.mention(question)
                slack.wait_for(number + 1)
                [answer] = slack.in_thread(asked)
    crawl, add, status, delete, error = answers
    assert crawl[0] == "クロールを開始しました... (リンク収集中)"
    assert crawl[1].splitlines()[0] == "└─ 完了: 2ページ / 2チャンク / エラー: 1件"
    assert add[0].splitlines()[0].startswith(f"ページを取り込みました: {article} (1チャンク")
    assert status == ["ナレッジベース統計:\n総チャンク数: 2\nソースURL数: 2"]
    assert delete == [f"削除しました: {article} (1チャンク)"]
    assert error[0].splitlines()[:3] == [
        "エラー: ページの取り込みに失敗しました。", f"URL: {gone}", "原因: HTTP 404 Not Found",
    ]  # fmt: skip
    assert "非同期処理を書くための構文である" in answer["text"]
    assert article in json.dumps(answer["blocks"])
    assert not any(message.get("reply_broadcast") for message in slack.messages)
    offered = {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert "rag_search" in offered
    assert not offered & {"rag_add", "rag_crawl", "rag_delete"}, "only commands of allowed users change something"


def test_without_mcp_the_commands_say_that_they_are_disabled(
    person: Person, slack: SlackService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(person.current)
    assert person.run("bunko init").code == 0
    environ = environment(slack, **person.environ, MCP_ENABLED="false", BUNKO_SLACK_WRITE_USERS="U1")
    with bot_process(person.home / ".local/share/bunko", environ) as (_, sender):
        sender.mention("rag status")
        [message] = slack.wait_for(1)
    assert message["text"].startswith("エラー: RAG機能が無効です。管理者に連絡してください。")


EVALUATE = """\
bunko evaluate \\
  --chunk-size 200 \\
  --chunk-overlap 30 \\
  --vector-weight 0.6 \\
  --dataset tests/fixtures/rag_evaluation_dataset.json \\
  --output-dir .tmp/rag-evaluation \\
  --baseline-file tests/fixtures/rag/baseline.json \\
  --persist-dir .tmp/test_chroma_db \\
  --n-results 5 \\
  --threshold 0.5 \\
"""
INIT_TEST_DB = """\
bunko init-test-db \\
  --chunk-size 200 \\
  --chunk-overlap 30 \\
  --persist-dir .tmp/test_chroma_db \\
  --fixture tests/fixtures/rag_test_documents.json
"""
DOCUMENTS = [
    (
        "https://example.com/items",
        "アイテム",
        "| 名前 | 場所 | HP |\n| --- | --- | --- |\n| りゅうおう | しれんのしろ | 200 |",
    ),
    ("https://example.com/async", "async/await", "Pythonのasync/awaitは、非同期処理を書くための構文である。"),
    ("https://example.com/soup", "スープ", "玉葱を炒めてから水を加える。"),
]


def test_the_commands_that_evaluate_report_and_notice_a_regression(tmp_path: Path) -> None:
    person = Person(tmp_path)
    fixture = [{"source_url": url, "title": title, "content": content} for url, title, content in DOCUMENTS]
    person.write("tests/fixtures/rag_test_documents.json", json.dumps({"documents": fixture}))
    queries = [
        {
            "id": "1",
            "query": "りゅうおう",
            "expected_sources": [DOCUMENTS[0][0]],
            "negative_sources": [DOCUMENTS[2][0]],
        },
        {"id": "2", "query": "非同期処理", "expected_sources": [DOCUMENTS[1][0]], "expected_keywords": ["構文"]},
    ]
    person.write("tests/fixtures/rag_evaluation_dataset.json", json.dumps({"queries": queries}))
    person.path("tests/fixtures/rag").mkdir()
    built = person.run(INIT_TEST_DB)
    assert (built.code, built.out) == (0, "Wrote .tmp/test_chroma_db: 3 documents, 3 chunks.\n")
    unchecked = person.run(f"{EVALUATE}  --fail-on-regression")
    assert unchecked.code == 3, "there is no baseline yet"
    saved = person.run(f"{EVALUATE}  --save-baseline")
    assert saved.code == 0, saved.err
    measures = json.loads(person.path(".tmp/rag-evaluation/report.json").read_text(encoding="utf-8"))["measures"]
    assert measures["precision"] == measures["recall"] == measures["f1"] == measures["ndcg@5"] == measures["mrr@5"] == 1
    report = person.path(".tmp/rag-evaluation/report.md").read_text(encoding="utf-8")
    assert "ndcg@5" in report
    assert "mrr@5" in report
    assert person.run(f"{EVALUATE}  --fail-on-regression").code == 0
    fixture[0]["content"], fixture[1]["content"] = "空のページ。", "空のページ。"
    person.write("tests/fixtures/rag_test_documents.json", json.dumps({"documents": fixture}))
    shutil.rmtree(person.path(".tmp/test_chroma_db"))
    worse = person.run(f"{EVALUATE}  --fail-on-regression")
    assert worse.code == 1, worse.out
    for option in ("--chunk-size", "--chunk-overlap", "--vector-weight"):
        missing = person.run(re.sub(rf"  {option} [\d.]+ \\\n", "", f"{EVALUATE}  --fail-on-regression"))
        assert (missing.code, f"'{option}'" in missing.err) == (2, True)
