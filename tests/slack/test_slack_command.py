"""The command `bunko slack`: its settings, its manifest, and a bot that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.chat.chat_service import Reply, Request, chat_service, last_question
from tests.cli.processes import TerminalProcess, subprocess_environment
from tests.conftest import Run
from tests.slack.conftest import StartBot
from tests.slack.running_bot import environment, open_test_library
from tests.slack.slack_service import BOT_TOKEN, SIGNING_SECRET, Failure, Sender, SlackService


def test_the_manifest_has_what_the_bot_needs(run: Run) -> None:
    manifest = yaml.safe_load(run("slack", "manifest").out)
    assert manifest["settings"]["socket_mode_enabled"]
    assert manifest["settings"]["event_subscriptions"] == {"bot_events": ["app_mention", "message.im"]}
    assert {"app_mentions:read", "chat:write", "im:history"} <= set(manifest["oauth_config"]["scopes"]["bot"])
    over_http = json.loads(run("slack", "manifest", "--url", "https://bot.example.com/", "--json").out)
    assert over_http["settings"]["interactivity"]["request_url"] == "https://bot.example.com/slack/events"
    assert not over_http["settings"]["socket_mode_enabled"]


@pytest.fixture
def library(library_folder: Path) -> Path:
    """The folder of a library that exists."""
    open_test_library(library_folder, {}).close()
    return library_folder


@pytest.mark.parametrize(("options", "name"), [([], "SLACK_APP_TOKEN"), (["--http", "0"], "SLACK_SIGNING_SECRET")])
def test_a_missing_token_is_named(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], name: str
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", BOT_TOKEN)
    for other in ("SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"):
        monkeypatch.delenv(other, raising=False)
    done = run("slack", *options, "--library", library)
    assert (done.code, f"The bot needs {name}" in done.err) == (2, True)
    assert BOT_TOKEN not in done.err + done.out


@pytest.mark.parametrize("option", ["--library", "--database"])
def test_a_library_that_does_not_exist_is_an_error(
    run: Run, tmp_path: Path, slack: SlackService, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    for name, value in environment(slack).items():
        monkeypatch.setenv(name, value)
    slack.script = lambda method, arguments: Failure("invalid_auth")  # or the bot would run
    done = run("slack", "--http", "0", option, tmp_path / "mistyped")
    assert done.code == 10
    assert f"There is no library at {tmp_path / 'mistyped'}" in done.err
    assert f"bunko add DIR {option} {tmp_path / 'mistyped'}" in done.err
    assert not (tmp_path / "mistyped").exists()


def test_a_token_that_slack_rejects_is_an_error_without_the_token(
    run: Run, library: Path, slack: SlackService, monkeypatch: pytest.MonkeyPatch
) -> None:
    slack.script = lambda method, arguments: Failure("invalid_auth")
    for name, value in environment(slack).items():
        monkeypatch.setenv(name, value)
    done = run("slack", "--http", "0", "--library", library)
    assert done.code == 2
    assert "Slack rejects the token of the bot: invalid_auth" in done.err
    assert not {BOT_TOKEN, SIGNING_SECRET} & set(done.err.split())


def test_other_machines_are_kept_out_unless_that_is_wanted(
    run: Run, library: Path, slack: SlackService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(slack).items():
        monkeypatch.setenv(name, value)
    done = run("slack", "--http", "0.0.0.0:0", "--library", library)
    assert done.code == 2
    assert "--allow-remote" in done.err
    assert run("slack", "--http", "x").code == 2


def test_a_token_in_the_environment_is_no_reason_to_warn(
    bot: StartBot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", BOT_TOKEN)
    with bot():
        pass
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []


def write_their_list(marker: Path) -> None:
    """Write a list into the current folder whose only server leaves a file behind when it is started."""
    server = {"command": sys.executable, "args": ["-c", f"open({str(marker)!r}, 'w')"]}
    Path("config").mkdir()
    Path("config/mcp_servers.json").write_text(json.dumps({"mcpServers": {"theirs": server}}), "utf-8")


@pytest.mark.slow
def test_a_list_in_the_current_folder_starts_nothing_unless_it_is_named(
    bot: StartBot,
    slack: SlackService,
    library_folder: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marker = tmp_path / "started"
    write_their_list(marker)
    with bot() as sender:
        sender.mention("rag status")
        assert slack.wait_for(1)[0]["text"].startswith("ナレッジベース統計:")
    assert not marker.exists()
    assert "config/mcp_servers.json is not used, because it starts programs" in caplog.text
    monkeypatch.setenv("MCP_SERVERS_CONFIG", "config/mcp_servers.json")
    with bot(MCP_SERVERS_CONFIG="config/mcp_servers.json") as sender:
        sender.mention("rag status")
        assert "RAG機能が無効です" in slack.wait_for(2)[1]["text"]
    assert marker.exists()


@pytest.mark.slow
def test_at_a_terminal_the_operator_is_asked_about_a_list_in_the_current_folder(
    library: Path, slack: SlackService, tmp_path: Path
) -> None:
    marker = tmp_path / "started"
    write_their_list(marker)
    env = subprocess_environment(tmp_path, XDG_DATA_HOME=str(tmp_path / "data"), **environment(slack))
    for reply, is_started in ((b"n\r", False), (b"y\r", True)):
        terminal = TerminalProcess("slack", "--http", "0", "--library", library, env=env, cwd=Path.cwd())
        terminal.wait_for("Do you trust this file")
        assert str(marker) in terminal.written.decode().replace("\r\n", "")
        terminal.type(reply)
        terminal.wait_for("Press Ctrl-C to stop")
        terminal.type(b"\x03")
        assert terminal.close() == 0
        assert marker.exists() == is_started


@contextmanager
def bot_process(library: Path, environ: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], Sender]]:
    """Run the command in a process of its own, which is killed at the end."""
    command = [sys.executable, "-m", "bunko", "slack", "--http", "0", "--library", str(library)]
    process = subprocess.Popen(command, env={**os.environ, **environ}, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if match := re.search(r"Listening on (\S+)", line):
                break
        else:
            raise AssertionError("the bot did not start")
        lines: list[str] = []
        reader = threading.Thread(target=lines.extend, args=(process.stderr,), daemon=True)
        reader.start()
        try:
            yield process, Sender(match[1])
        except AssertionError as error:
            error.add_note("The bot said:\n" + "".join(lines))
            raise
        finally:
            process.kill()
            reader.join()  # a stream that is closed while it is read raises an error in the thread
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.slow
def test_a_bot_that_is_killed_answers_the_rest_after_a_restart_and_nothing_twice(
    library: Path, slack: SlackService
) -> None:
    killed = threading.Event()
    process_to_kill: list[subprocess.Popen[str]] = []

    def kill_after(method: str, arguments: dict[str, object]) -> Failure | None:
        # The message is posted, but the bot never learns about that.
        if method == "chat.postMessage" and len(slack.messages) >= 10 and process_to_kill:
            os.kill(process_to_kill.pop().pid, signal.SIGKILL)
            killed.set()
            return Failure(hang_up=True, is_done=True)
        return None

    def answer(request: Request) -> Reply:
        return Reply(f"Answer to {last_question(request)}")

    slack.script = kill_after
    with chat_service() as service:
        service.script = answer
        environ = environment(
            slack, BUNKO_CHAT_PROVIDER="ollama", BUNKO_CHAT_MODEL="m", BUNKO_CHAT_BASE_URL=service.address
        )
        questions: dict[str, str] = {}
        with bot_process(library, environ) as (process, sender):
            for number in range(9):
                questions[sender.mention(f"early {number}")] = f"early {number}"
            slack.wait_for(9)
            process_to_kill.append(process)
            slack.script = lambda method, arguments: None  # hold the kill until all are acknowledged
            hold = threading.Event()

            def slow_answer(request: Request) -> Reply:
                assert hold.wait(60)
                return answer(request)

            service.script = slow_answer
            for number in range(20):
                questions[sender.mention(f"late {number}")] = f"late {number}"
            slack.script = kill_after
            hold.set()
            assert killed.wait(60)
            process.wait(30)
        service.script = answer
        with bot_process(library, environ) as (process, sender):
            slack.wait_for(29)
            questions[sender.mention("last")] = "last"
            slack.wait_for(30)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    assert len(slack.messages) == 30
    answers = {message["thread_ts"]: message["text"].partition(" :warning:")[0] for message in slack.messages}
    assert answers == {ts: f"Answer to {question}" for ts, question in questions.items()}
