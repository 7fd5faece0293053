"""The day of somebody who comes from an engine over dated, tagged memos: `init`, `build`, `search`, `serve`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.days.person import Assistant, CharacterPairs, Person, embedding_service
from tests.loopback import KEY, Asked, Reply, said

pytestmark = pytest.mark.slow

CHANGELOG = """\
* Meeting Notes 2024-01-15
  Tags: meeting, january

  Topics discussed:
  - Project timeline
  - Budget allocation

* Python API の使い方 2024-01-20
  Tags: python

  Python の API で機械学習を試した。機械学習は統計学の応用です。

* 読書の記録 2024-02-03
  Tags: 本, january

  統計の入門書を読み終えた。
"""
DIARY = "".join(
    f"* 日記 {number} 20{number // 300:02}-{number // 25 % 12 + 1:02}-{number % 25 + 1:02}\n  出来事その{number}。\n\n"
    for number in range(632)
)
BUILD = "bunko build --input ~/notes --output ~/.digrag/index --with-embeddings --incremental"
INDEX = "--index-dir ~/.digrag/index"


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A folder of notes."""
    person = Person(tmp_path)
    person.write("~/notes/changelog.md", CHANGELOG)
    return person


@pytest.fixture
def openrouter() -> Iterator[CharacterPairs]:
    """OpenRouter, which computes vectors and rewrites each query to the same words."""

    def rewrite(asked: Asked) -> Reply | None:
        return said("統計 入門書") if asked.path.endswith("/chat/completions") else None

    with embedding_service(1024) as service:
        service.always = rewrite
        yield service


def chosen(openrouter: CharacterPairs) -> dict[str, str]:
    """Return the environment of somebody who has chosen OpenRouter."""
    return {
        "OPENROUTER_API_KEY": KEY,
        "OPENROUTER_BASE_URL": f"{openrouter.address}/v1",
        "EMBEDDING_PROVIDER": "openrouter",
    }


def test_a_build_embeds_only_what_was_added_or_modified(person: Person, openrouter: CharacterPairs) -> None:
    person.write("~/notes/diary.txt", DIARY)
    first = person.run(BUILD, **chosen(openrouter))
    assert first.out.splitlines() == [
        "Added: 635", "Modified: 0", "Deleted: 0", "Unchanged: 0", "Embeddings needed: 635",
    ]  # fmt: skip
    assert {asked.path for asked in openrouter.asked} == {"/v1/embeddings"}
    assert {asked.body["model"] for asked in openrouter.asked} == {"mixedbread-ai/mxbai-embed-large-v1"}
    assert {asked.headers["authorization"] for asked in openrouter.asked} == {f"Bearer {KEY}"}
    openrouter.asked.clear()
    changed = DIARY.replace("その10。", "その10、書き直した。").replace("その20。", "その20、書き直した。")
    person.write("~/notes/diary.txt", changed.replace("* 日記 631 2002-02-07\n  出来事その631。\n", ""))
    person.write(
        "~/notes/log.jsonl",
        "".join(
            json.dumps({"title": f"New {n}", "date": "2024-03-01", "text": f"Entry {n}."}) + "\n" for n in range(5)
        ),
    )
    second = person.run(BUILD, **chosen(openrouter))
    assert second.out.splitlines()[:5] == [
        "Added: 5", "Modified: 2", "Deleted: 1", "Unchanged: 632", "Embeddings needed: 7",
    ]  # fmt: skip
    entries = [text for text in openrouter.texts() if "Entry" in text or "書き直した" in text]
    assert len(set(entries)) == 7
    assert person.run(BUILD, **chosen(openrouter)).out.splitlines()[-2:] == ["Unchanged: 639", "Embeddings needed: 0"]


def test_the_three_modes_find_memos_with_their_title_date_and_tags(person: Person) -> None:
    assert person.run("bunko init").code == 0
    built = person.run(BUILD, OPENROUTER_API_KEY=KEY)
    assert (built.code, built.out.splitlines()[0]) == (0, "Added: 3")
    assert "The vectors of memos come from the bundled model (static)." in built.err
    assert "EMBEDDING_PROVIDER=openrouter" in built.err, "the sentence that says how to use the other"
    for mode in ("bm25", "semantic", "hybrid"):
        answer = person.run(f'bunko search "機械学習" --mode {mode} {INDEX} --json').json()
        assert answer["mode"] == mode
        assert isinstance(answer["results"], list)
        hit = answer["results"][0]
        assert (hit["title"], hit["date"], hit["tags"]) == ("Python API の使い方", "2024-01-20", ["python"])
        assert hit["content"] == "Python の API で機械学習を試した。機械学習は統計学の応用です。"
        assert 0 < hit["score"] <= 1
    printed = person.run(f'bunko search "Project timeline" --mode hybrid {INDEX}').out.splitlines()
    assert printed[0].startswith("[1] changelog.md#2024-01-15-Meeting-Notes:L4-L6  score=0.")
    assert printed[1:] == [
        "Meeting Notes  2024-01-15  #meeting #january",
        "Topics discussed:", "• Project timeline", "• Budget allocation",
    ]  # fmt: skip
    fused = json.loads(person.run(f"bunko search 機械学習 {INDEX} --json", BUNKO_MEMOS_FUSION="rrf").out)["results"]
    assert fused[0]["score"] == round(1 / (60 + 1) + 1 / (60 + 1), 4), "the first by words and by vectors"


def test_a_plain_search_names_the_library_that_was_built(person: Person) -> None:
    person.run(BUILD)
    lost = person.run('bunko search "クエリ" --mode hybrid')
    assert lost.code == 10
    assert f"There is no library at {person.home / '.local/share/bunko'}" in lost.err
    assert f"bunko search QUERY --library {person.home / '.digrag/index'}" in lost.err
    plain = {"command": "bunko", "args": ["serve", "--toolsets", "memos"]}

    async def lost_assistant(assistant: Assistant) -> None:
        answer = await assistant.read("query_memos", query="Budget")
        assert "If another library has one, name it with --library DIR." in answer

    person.connect(plain, lost_assistant)
    empty = person.run('bunko search "クエリ" --mode hybrid')
    assert (empty.code, "was searched, and it is empty." in empty.err) == (1, True)
    assert f"bunko search 'クエリ' --library {person.home / '.digrag/index'}" in empty.err
    assert person.run("bunko build --input ~/notes").code == 0
    assert "Meeting Notes" in person.run('bunko search "Budget" --mode hybrid').out

    async def day(assistant: Assistant) -> None:
        answer = await assistant.call("query_memos", query="Budget")
        assert answer["results"][0]["title"] == "Meeting Notes"

    person.connect(plain, day)


def test_texts_are_extracted_and_summarized_without_a_network(person: Person) -> None:
    long = "本文の一文がここに続く。" * 40
    person.write(
        "~/notes/long.md", f"---\ntitle: 長い記録\ndate: 2024-05-05\ntags: [長文]\n---\n{long}水族館に行った。\n"
    )
    person.run(BUILD)

    def text(options: str) -> str:
        found = json.loads(person.run(f"bunko search 水族館 {INDEX} --json {options}").out)
        return str(found["results"][0]["content"])

    snippet = text("--extract snippet")
    assert snippet.endswith("本文の一文がここに続く。水族館に行った。")
    assert 100 < len(snippet) <= 150
    assert "**水族館**に行った。" in person.run(f"bunko search 水族館 {INDEX} --extract snippet").out
    assert text("--extract full").endswith("本文の一文がここに続く。水族館に行った。")
    assert len(text("--extract full --max-chars 100")) <= 100
    entry = person.run(f"bunko search Budget --extract entry {INDEX} -k 1").out
    assert "* Meeting Notes 2024-01-15" in entry
    assert "- Budget allocation" in entry
    summary = person.run(f'bunko search "Budget 統計" --mode bm25 --summary {INDEX}').out.splitlines()
    assert summary[0] == "3 results, 2024-01-15 to 2024-02-03"
    assert summary[1] == "tags: january (2), meeting (1), python (1), 本 (1)"


def test_a_chat_model_rewrites_each_query_once(person: Person, openrouter: CharacterPairs) -> None:
    person.run(BUILD)
    environ = {**chosen(openrouter), "EMBEDDING_PROVIDER": "static", "BUNKO_CHAT_PROVIDER": "openrouter"}
    environ["BUNKO_REWRITE_TIMEOUT"] = "20"
    command = f'bunko search "数字の本のこと" --rewrite {INDEX} --json'
    for _ in range(2):
        found = json.loads(person.run(command, **environ).out)
        assert found["rewritten"] == "統計 入門書"
        assert found["results"][0]["title"] == "読書の記録"
    assert [asked.path for asked in openrouter.asked] == ["/v1/chat/completions"]


def test_an_assistant_queries_memos_and_lists_tags_and_the_latest(person: Person) -> None:
    person.run(BUILD)

    async def day(assistant: Assistant) -> None:
        assert {"query_memos", "list_tags", "get_recent_memos"} <= set(await assistant.tool_names())
        answer = await assistant.call("query_memos", query="Project timeline", search_mode="hybrid")
        [memo] = answer["results"]
        assert answer["total"] == 1
        assert (memo["title"], memo["date"], memo["tags"]) == ("Meeting Notes", "2024-01-15", ["meeting", "january"])
        assert "Budget allocation" in memo["snippet"]
        assert memo["id"]
        assert 0 < memo["score"] <= 1
        tags = await assistant.call("list_tags")
        assert {row["tag"]: row["count"] for row in tags["tags"]} == {"january": 2, "meeting": 1, "python": 1, "本": 1}
        recent = await assistant.call("get_recent_memos", limit=2)
        assert [(memo["title"], memo["date"]) for memo in recent["results"]] == [
            ("読書の記録", "2024-02-03"),
            ("Python API の使い方", "2024-01-20"),
        ]
        tagged = await assistant.call("query_memos", query="統計", tag_filter="python")
        assert [memo["title"] for memo in tagged["results"]] == ["Python API の使い方"]

    server = {
        "command": "bunko",
        "args": ["serve", "--toolsets", "memos", "--library", str(person.home / ".digrag/index")],
    }
    person.connect(server, day)
