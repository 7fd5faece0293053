"""Queries rewritten by a chat model on loopback: what is sent, what is searched, what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.llm.client import PRESETS
from bunko.llm.rewrite import NOT_REWRITTEN, rewrite_query
from bunko.search.request import SearchRequest
from bunko.settings import load_settings
from tests.conftest import Run
from tests.llm.notes import QUESTION, WORDS, Notes, build_chat, titles
from tests.loopback import KEY, Loopback, chatting, openai_error, said
from tests.mcp.mcp_client import call
from tests.mcp.test_memos_toolset import DIARY, write


def test_better_words_are_searched_and_shown_and_nothing_but_the_query_is_sent(notes: Notes) -> None:
    answer = notes.ask()
    assert (answer.query, answer.rewritten_query, answer.searched_query) == (QUESTION, WORDS, WORDS)
    assert titles(answer)[0] == "朝のランニング"
    assert answer.notices == []
    [asked] = notes.service.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    role, question = asked.body.pop("messages")
    assert (role["role"], question) == ("system", {"role": "user", "content": QUESTION})
    assert asked.body == {"model": "openai/gpt-4o-mini", "max_tokens": 200, "temperature": 0.0}
    assert not any(word in role["content"] for word in ("予算", "diary", "佐藤"))


def test_a_key_alone_sends_nothing_and_the_answer_says_what_to_set(notes: Notes) -> None:
    answer = notes.ask("走る", BUNKO_CHAT_PROVIDER="")
    assert titles(answer) == ["朝のランニング"]
    assert answer.rewritten_query == ""
    assert "chat.provider" in answer.notices[0]
    assert notes.service.asked == []


def test_queries_are_rewritten_only_where_a_search_or_the_settings_say_so(notes: Notes) -> None:
    assert notes.ask(rewrite=None).rewritten_query == ""
    assert notes.ask(rewrite=False, BUNKO_REWRITE_ENABLED="true").rewritten_query == ""
    assert notes.library(BUNKO_REWRITE_ENABLED="true").search(QUESTION).rewritten_query == ""  # a program that measures
    assert notes.service.asked == []
    assert notes.ask(rewrite=None, BUNKO_REWRITE_ENABLED="true").rewritten_query == WORDS


def test_openrouter_is_told_which_providers_are_wanted_and_others_are_not(notes: Notes) -> None:
    wanted: dict[str, Any] = {
        "BUNKO_CHAT_PROVIDER_ORDER": "cerebras, groq",
        "BUNKO_CHAT_PROVIDER_SORT": "latency",
        "BUNKO_CHAT_ALLOW_FALLBACKS": "false",
        "BUNKO_CHAT_DATA_COLLECTION": "deny",
        "BUNKO_REWRITE_MODEL": "own",
        "BUNKO_REWRITE_TEMPERATURE": "",
    }
    notes.ask(**wanted)
    own: dict[str, Any] = {
        "BUNKO_CHAT_PROVIDER": "openai",
        "OPENAI_BASE_URL": notes.service.address,
        "OPENAI_API_KEY": "k",
    }
    notes.ask(**wanted, **own)
    first, second = [asked.body for asked in notes.service.asked]
    del first["messages"], second["messages"]
    preferences = {
        "order": ["cerebras", "groq"], "sort": "latency", "allow_fallbacks": False, "data_collection": "deny",
    }  # fmt: skip
    assert first == {"model": "own", "max_tokens": 200, "provider": preferences}
    assert second == {"model": "own", "max_completion_tokens": 200}


def test_a_providers_key_never_goes_to_another_address(notes: Notes) -> None:
    notes.ask(BUNKO_CHAT_PROVIDER="ollama", BUNKO_CHAT_BASE_URL=notes.service.address, BUNKO_CHAT_MODEL="own")
    notes.ask(BUNKO_CHAT_BASE_URL=notes.service.address)
    notes.ask(BUNKO_CHAT_BASE_URL=notes.service.address, BUNKO_CHAT_API_KEY="another", BUNKO_CHAT_MODEL="own")
    assert [asked.headers["authorization"] for asked in notes.service.asked] == [
        "Bearer none", "Bearer none", "Bearer another",
    ]  # fmt: skip


def test_the_same_reply_has_other_wordings_and_a_passage(notes: Notes) -> None:
    notes.service.always = lambda _: said(f"{WORDS}\n- ジョギングの記録\n- jogging\n> 川沿いを五キロ走った。")
    answer = notes.ask()
    assert (answer.rewritten_query, answer.wordings) == (
        WORDS,
        ("ジョギングの記録", "jogging", "川沿いを五キロ走った。"),
    )
    assert notes.ask().wordings == answer.wordings  # from the cache
    assert len(notes.service.asked) == 1


def test_the_question_of_an_answer_is_rewritten_where_the_settings_say_so(notes: Notes) -> None:
    question = SearchRequest(QUESTION, kinds=("memos",), mode="bm25")
    library = notes.library(BUNKO_REWRITE_ENABLED="true")
    assert not library.answers.ask(question, use_model=False).sources
    assert notes.service.asked == []
    assert library.answers.ask(question).sources[0].title == "朝のランニング"
    rewriting, *_ = notes.service.asked
    assert rewriting.body["messages"][1]["content"] == QUESTION


def test_words_that_find_nothing_give_way_to_the_query(notes: Notes) -> None:
    notes.service.always = lambda _: said("zyxwvutsrq")
    answer = notes.ask("走る")
    assert titles(answer) == ["朝のランニング"]
    assert answer.rewritten_query == ""
    assert "found nothing" in answer.notices[0]


def test_a_model_that_thinks_aloud_or_quotes_is_understood(notes: Notes) -> None:
    notes.service.answers = [
        said("<think>\nwhat do they mean?\n</think>\n\n「走る」"),
        said("走る", finish_reason="length"),
    ]
    assert notes.ask().rewritten_query == "走る"
    assert notes.ask("別の問い").rewritten_query == "走る…"


def test_the_command_shows_what_was_searched(notes: Notes, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in chatting(notes.service).items():
        monkeypatch.setenv(name, value)
    place = ("--library", notes.folder / "library", "--mode", "bm25")
    ran = run("search", QUESTION, "--rewrite", *place)
    assert ran.out.startswith(f"searched: {WORDS}\n\n[1] diary.txt#2024-02-03-朝のランニング")
    found: Any = run("search", QUESTION, "--rewrite", "--extract", "snippet", "--json", *place).json()
    assert (found["query"], found["rewritten"]) == (QUESTION, WORDS)
    assert found["results"][0]["marks"]  # of the words that were searched
    assert "searched:" not in run("search", QUESTION, *place).out
    monkeypatch.setenv("BUNKO_REWRITE_ENABLED", "true")
    assert "rewritten" in run("search", QUESTION, "--json", *place).json()
    assert "rewritten" not in run("search", QUESTION, "--no-rewrite", "--json", *place).json()
    notes.service.always = lambda _: openai_error(401, "who are you")
    ran = run("search", "走る", *place)
    assert (ran.code, "who are you" in ran.err) == (0, True)
    assert ran.out.startswith("[1] diary.txt")


def test_an_assistant_may_ask_for_it_and_sees_what_was_searched(notes: Notes) -> None:
    desk = ToolRegistry(lambda: notes.library(), toolsets=("memos",))
    result = call(desk, "query_memos", {"query": QUESTION, "enable_rewrite": True, "search_mode": "bm25"})
    found = result.structured_content or {}
    assert found["rewritten"] == WORDS
    assert found["results"][0]["title"] == "朝のランニング"
    text = result.content[0].text  # type: ignore[union-attr]
    assert f">\n{WORDS}\n</excerpt-" in text
    plain = call(desk, "query_memos", {"query": QUESTION}).structured_content or {}
    assert "rewritten" not in plain
    notes.service.always = lambda _: openai_error(500, "broken", retry_after="0")
    failed = call(desk, "query_memos", {"query": "走る", "enable_rewrite": True, "search_mode": "bm25"})
    assert (failed.structured_content or {})["results"][0]["title"] == "朝のランニング"
    assert "broken" in (failed.structured_content or {})["notices"][0]
    assert "broken" in failed.content[0].text  # type: ignore[union-attr]
    desk.close()


def test_a_further_page_is_of_the_same_words_or_refused(notes: Notes) -> None:
    runs = [f"\n* 走る {day} 2024-05-{day:02}\n\n  {'川沿いを走った。' * 40}\n" for day in range(1, 20)]
    write(notes.folder / "diary.txt", DIARY + "".join(runs), after=9)
    environ = {"BUNKO_SERVE_MAX_RESULT_TOKENS": "1000"}
    desk = ToolRegistry(lambda: notes.library(**environ), toolsets=("memos",))
    asked = {"query": QUESTION, "enable_rewrite": True, "extract": "full", "search_mode": "bm25", "top_k": 20}
    first = call(desk, "query_memos", asked).structured_content or {}
    second = call(desk, "query_memos", asked | {"cursor": first["next_cursor"]})
    assert not second.is_error
    notes.rows("DELETE FROM answers")
    notes.service.always = lambda _: said("走る")
    other = call(desk, "query_memos", asked | {"cursor": first["next_cursor"]})
    assert other.is_error
    desk.close()


def test_a_folder_of_documents_cannot_have_queries_sent_anywhere(tmp_path: Path) -> None:
    (tmp_path / "bunko.toml").write_text(
        '[chat]\nprovider = "openai"\nbase_url = "http://elsewhere.example"\napi_key = "theirs"\n'
        '[rewrite]\nenabled = true\n[summarize]\nprovider = "llm"\n[embedding]\nopenrouter_api_key = "theirs"\n',
        encoding="utf-8",
    )
    theirs = load_settings(environ={}, config_folders=[tmp_path], untrusted_folder=tmp_path)
    [notice] = theirs.notices
    for key in ("chat.provider", "chat.base_url", "chat.api_key", "rewrite.enabled", "summarize.provider"):
        assert key in notice
    settings = theirs.settings
    assert (settings.chat.provider, settings.chat.base_url, settings.chat.api_key) == (None, None, "")
    assert settings.embedding.openrouter_api_key == ""  # its owner would see what is sent
    assert (settings.rewrite.enabled, settings.summarize.provider) == (False, "rule")
    assert load_settings(environ={}, config_folders=[tmp_path]).settings.rewrite.enabled


def test_an_empty_query_is_not_sent(service: Loopback) -> None:
    class Nothing:
        def get(self, key: bytes) -> str | None:
            raise AssertionError("nothing was asked")

        def put(self, key: bytes, value: str) -> None:
            raise AssertionError("nothing was answered")

    assert rewrite_query(" \n", build_chat(service), Nothing()) == (NOT_REWRITTEN, "")
    assert service.asked == []


def test_odd_queries_reach_the_model_as_text(notes: Notes) -> None:
    notes.service.always = lambda _: (200, {}, json.dumps(json.loads(said("走る\ud800")[2])).encode())
    assert notes.ask("走る\ud800\nだっけ").rewritten_query == "走る"
    assert notes.service.asked[0].body["messages"][1]["content"] == "走る\\ud800 だっけ"


def test_the_settings_that_the_page_shows_are_settings(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "memos.md").read_text(encoding="utf-8")
    block = page.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "bunko.toml").write_text(block, encoding="utf-8")
    settings = load_settings(environ={}, config=tmp_path / "bunko.toml").settings
    assert (settings.chat.provider, settings.chat.data_collection) == ("openrouter", "deny")
    assert (settings.rewrite.enabled, settings.summarize.provider) == (True, "llm")
    assert settings.chat.model == PRESETS["openrouter"].model
