"""Who may ask about which tools: what slack.tools does not allow in a channel does not exist there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bunko.library.library import Library
from tests.chat.chat_service import ChatService, Reply
from tests.conftest import Run
from tests.slack.running_bot import environment, running_bot, with_model
from tests.slack.slack_service import Failure, SlackService

SECRET = "合併の相手は北海工業である。"
QUESTION = "合併の相手は？"


@pytest.fixture
def open_two_tools(open_slack_library: Callable[..., Library], tmp_path: Path) -> Callable[..., Library]:
    """Open a library with the tools handbook and merger."""

    def open_library(**environ: str) -> Library:
        library = open_slack_library(**environ)
        for name, text in (("handbook", "休暇は二十日である。"), ("merger", SECRET)):
            (tmp_path / name).mkdir()
            (tmp_path / name / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
            library.add(tmp_path / name, name=name, description=f"All about {name}")
        library.reindex()
        return library

    return open_library


def test_by_default_every_tool_may_be_asked_about(open_two_tools: Callable[..., Library], slack: SlackService) -> None:
    with running_bot(open_two_tools()) as sender:
        sender.mention(QUESTION)
        assert "北海工業" in json.dumps(slack.wait_for(1)[0], ensure_ascii=False)


def test_a_tool_that_is_not_named_for_a_channel_does_not_exist_there(
    open_two_tools: Callable[..., Library], slack: SlackService
) -> None:
    tools = "*=handbook, CBOARD=merger, CALL=*"
    with running_bot(open_two_tools(BUNKO_SLACK_TOOLS=tools)) as sender:
        answers = {}
        for number, channel in enumerate(("C1", "CBOARD", "CALL", "D1"), 1):
            sender.mention(QUESTION, channel=channel)
            answers[channel] = json.dumps(slack.wait_for(number)[-1], ensure_ascii=False)
        sender.mention("休暇は何日か", channel="CBOARD")
        assert "二十日" in json.dumps(slack.wait_for(5)[-1], ensure_ascii=False)
    assert ["北海工業" in answers[channel] for channel in ("C1", "CBOARD", "CALL", "D1")] == [False, True, True, False]
    assert "merger" not in answers["C1"] + answers["D1"]


def test_a_model_neither_sees_nor_reads_what_may_not_be_asked_about(
    open_two_tools: Callable[..., Library], slack: SlackService, service: ChatService
) -> None:
    calls = [
        ("merger", json.dumps({"query": QUESTION})),
        ("search", json.dumps({"query": QUESTION, "tool": "merger"})),
        ("search", json.dumps({"query": QUESTION})),
        ("read", json.dumps({"document": "merger.md"})),
        ("read", json.dumps({"document": "merger.md", "tool": "merger"})),
        ("rag_search", json.dumps({"query": QUESTION})),
        ("list", "{}"),
    ]
    service.replies = [Reply(calls=calls), Reply("わかりません。")]
    with running_bot(open_two_tools(BUNKO_SLACK_TOOLS="CBOARD=merger,C1=handbook", **with_model(service))) as sender:
        sender.mention(QUESTION)
        slack.wait_for(1)
        seen = json.dumps(list(service.requests), ensure_ascii=False)
        assert "handbook" in seen
        assert "All about merger" not in seen
        assert "北海工業" not in seen
        assert "北海工業" not in json.dumps(slack.messages, ensure_ascii=False)
        service.requests.clear()
        service.replies = [Reply(calls=[("merger", json.dumps({"query": QUESTION}))]), Reply("北海工業である。[1]")]
        sender.mention(QUESTION, channel="CBOARD")
        slack.wait_for(2)
        assert "北海工業" in json.dumps([request["messages"] for request in service.requests], ensure_ascii=False)


@pytest.mark.slow
def test_tools_of_other_servers_are_offered_only_where_everything_may_be_read(
    open_two_tools: Callable[..., Library], slack: SlackService, service: ChatService
) -> None:
    server = Path(__file__).with_name("failing_rag_server.py")
    servers = {"bunko": {"transport": "builtin"}, "weather": {"command": sys.executable, "args": [str(server)]}}
    Path("servers.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    library = open_two_tools(
        BUNKO_SLACK_TOOLS="C1=handbook,CALL=*", MCP_SERVERS_CONFIG=str(Path("servers.json").resolve()),
        BUNKO_SLACK_ALLOWED_TOOLS="*", **with_model(service),
    )  # fmt: skip
    service.script = lambda request: Reply("わかりません。")
    offered = {}
    with running_bot(library) as sender:
        for number, channel in enumerate(("C1", "CALL"), 1):
            service.requests.clear()
            sender.mention(QUESTION, channel=channel)
            slack.wait_for(number)
            offered[channel] = json.dumps(service.requests[0]["tools"], ensure_ascii=False)
    assert "weather" in offered["CALL"]
    assert "weather" not in offered["C1"]
    assert "merger" in offered["CALL"]
    assert "merger" not in offered["C1"]


def test_the_status_counts_what_may_be_asked_about(open_two_tools: Callable[..., Library], slack: SlackService) -> None:
    library = open_two_tools(BUNKO_SLACK_TOOLS="C1=handbook", BUNKO_SLACK_WRITE_USERS="UBOSS")
    with running_bot(library) as sender:
        sender.mention("rag status", channel="C2")
        [message] = slack.wait_for(1)
    assert "merger" not in message["text"]
    assert "総チャンク数: 0" in message["text"]


@pytest.mark.parametrize(
    ("tools", "lines"),
    [
        (
            "",
            [
                "Everyone in Slack who can write to the bot, also guests and connected organisations, may ask about"
                " every tool: handbook, merger",
                "Limit that with slack.tools.",
            ],
        ),
        (
            "*=handbook,C1=merger,C2=*,C2=gone",
            [
                "In every channel and direct message, everyone may ask about: handbook",
                "In the channel C1, everyone may ask about: handbook, merger",
                "In the channel C2, everyone may ask about: handbook, merger",
                "slack.tools names 'gone', which is no tool of the library.",
            ],
        ),
    ],
)
def test_the_command_says_at_its_start_who_may_ask_about_what(
    open_two_tools: Callable[..., Library],
    library_folder: Path,
    run: Run,
    slack: SlackService,
    monkeypatch: pytest.MonkeyPatch,
    tools: str,
    lines: list[str],
) -> None:
    open_two_tools().close()
    for name, value in environment(slack, BUNKO_SLACK_TOOLS=tools).items():
        monkeypatch.setenv(name, value)
    slack.script = lambda method, arguments: Failure("invalid_auth")  # or the bot would run
    assert run("slack", "--http", "0", "--library", library_folder).err.splitlines()[: len(lines)] == lines


def test_an_entry_that_names_no_channel_or_no_tool_is_an_error(
    open_two_tools: Callable[..., Library],
    library_folder: Path,
    run: Run,
    slack: SlackService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    open_two_tools().close()
    for name, value in environment(slack, BUNKO_SLACK_TOOLS="handbook").items():
        monkeypatch.setenv(name, value)
    done = run("slack", "--http", "0", "--library", library_folder)
    assert (done.code, "slack.tools has 'handbook', but each entry must be CHANNEL=TOOL" in done.err) == (2, True)
