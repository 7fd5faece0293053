"""`bunko chat`: keys, commands, what is kept, and what a pipe gets."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from bunko.interfaces.chat.answering import open_answerer
from bunko.interfaces.chat.saved_chats import SavedChats, chat_folder
from bunko.interfaces.chat.setup import build_chat_server
from bunko.interfaces.cli.commands.chat_prompt import ChatPrompt, converse
from bunko.interfaces.cli.commands.chat_session import ChatSession
from bunko.library.library import Library
from tests.chat.chat_service import ChatService, Reply, Request, chat_service
from tests.conftest import Opener, Run

BACKUPS = "# Backups\n\nBackups are kept for 35 days in the Osaka region. Restoring one takes two hours.\n"
QUESTION = "How long are backups kept?"
ENTER, ALT_ENTER, CTRL_C, CTRL_D, UP = "\r", "\x1b\r", "\x03", "\x04", "\x1b[A"
PASTE = "\x1b[200~{}\x1b[201~"


def search_and_say(request: Request, text: str = "Backups are kept for 35 days [1].") -> Reply:
    """Search once for each question, then say this."""
    if request["messages"][-1]["role"] == "user":
        return Reply(calls=[("search", json.dumps({"query": f"backups {len(request['messages'])}"}))])
    return Reply(text)


@pytest.fixture
def service() -> Iterator[ChatService]:
    with chat_service() as loopback:
        loopback.script = search_and_say
        yield loopback


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own, and an empty current folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    return tmp_path / "data"


@pytest.fixture
def notes(docs: Path, home: Path) -> Path:
    (docs / "backups.md").write_text(BACKUPS, encoding="utf-8")
    return docs


def with_model(service: ChatService, **settings: str) -> dict[str, str]:
    """Return the environment of somebody whose chat model this is."""
    named = {"PROVIDER": "lmstudio", "MODEL": "m", "BASE_URL": service.address, **settings}
    return {f"BUNKO_CHAT_{name}": value for name, value in named.items()}


def talk(library: Library, *keys: str, resume: bool = False) -> ChatSession:
    """Type these keys into a conversation and then Ctrl-D."""

    async def run() -> ChatSession:
        folder = chat_folder(library.paths)
        with create_pipe_input() as pipe:
            prompt = ChatPrompt(folder / "questions", input=pipe, output=DummyOutput())
            async with open_answerer(library, build_chat_server(library.settings)) as answerer:
                chats = SavedChats(folder)
                session = ChatSession(library, answerer, chats=chats, read_line=prompt.ask_user)
                if resume:
                    session.resume(chats.latest(1)[0])
                pipe.send_text("".join(keys) + CTRL_D)
                await converse(session, prompt)
                return session

    return anyio.run(run)


def questions(session: ChatSession) -> list[str]:
    return [exchange.question for exchange in session.chat.exchanges]


def asked(service: ChatService) -> list[str]:
    """Return what the model was last reminded of and asked."""
    return [str(message["content"]) for message in service.requests[-1]["messages"] if message["role"] == "user"]


@pytest.mark.slow
def test_questions_are_answered_and_later_ones_see_earlier_answers(
    notes: Path, open_docs: Opener, service: ChatService, capsys: pytest.CaptureFixture[str]
) -> None:
    session = talk(open_docs(**with_model(service)), QUESTION, ENTER, "本当に？", ENTER)
    out, err = capsys.readouterr()
    assert out.count("Backups are kept for 35 days. [1]") == 2
    assert "[1] backups.md:L1-L3" in out
    assert "200 tokens read, 40 written" in err
    assert questions(session) == [QUESTION, "本当に？"]
    assert asked(service) == [QUESTION, "本当に？"]


def test_alt_enter_a_backslash_and_a_paste_make_several_lines(notes: Path, open_docs: Opener) -> None:
    keys = ["one", ALT_ENTER, "two\\", ENTER, "three", ENTER, PASTE.format("four\nfive"), " six", ENTER]
    assert questions(talk(open_docs(), *keys)) == ["one\ntwo\nthree", "four\nfive six"]


def test_up_brings_back_the_questions_of_earlier_conversations(notes: Path, open_docs: Opener, home: Path) -> None:
    library = open_docs()
    talk(library, QUESTION, ENTER, "京都はどこ？", ENTER)
    assert questions(talk(library, UP, UP, ENTER)) == [QUESTION]
    (folder,) = (home / "bunko" / "chats").iterdir()
    for path in [folder, *folder.iterdir()]:
        assert path.stat().st_mode & 0o077 == 0, f"others can read {path}"


def test_ctrl_c_clears_the_line_and_ctrl_d_ends(notes: Path, open_docs: Opener) -> None:
    assert questions(talk(open_docs(), "half a quest", CTRL_C, QUESTION, ENTER)) == [QUESTION]


def test_without_a_model_answers_are_quoted(notes: Path, open_docs: Opener, capsys: pytest.CaptureFixture[str]) -> None:
    talk(open_docs(), QUESTION, ENTER, "/model", ENTER, "/tools", ENTER)
    out = capsys.readouterr().out
    assert "Backups are kept for 35 days in the Osaka region. [1]" in out
    assert out.count("Set chat.provider and chat.model to use one") == 2


def test_a_conversation_is_resumed_with_its_answers_and_sources(
    notes: Path, open_docs: Opener, service: ChatService, capsys: pytest.CaptureFixture[str]
) -> None:
    library = open_docs(**with_model(service))
    talk(library, QUESTION, ENTER)
    talk(library, "/clear", ENTER, "Something else?", ENTER, "/resume", ENTER, "/resume 2", ENTER, "本当に？", ENTER)
    assert asked(service) == [QUESTION, "本当に？"]
    assert capsys.readouterr().out.count(f"> {QUESTION}") == 1
    session = talk(library, "/sources", ENTER, "And then?", ENTER, resume=True)
    assert "There are no sources yet." not in capsys.readouterr().out
    assert asked(service) == [QUESTION, "本当に？", "And then?"]
    assert questions(session) == [QUESTION, "本当に？", "And then?"]
    assert [source.citation for source in session.sources.values()] == ["backups.md:L1-L3"]


@pytest.mark.slow
def test_a_source_opens_as_bunko_open_does(
    notes: Path,
    open_docs: Opener,
    service: ChatService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    editor = tmp_path / "vim"
    editor.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path / "arguments"}"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    talk(open_docs(**with_model(service)), "/open 1", ENTER, QUESTION, ENTER, "/open [1]", ENTER, "/open 7", ENTER)
    assert (tmp_path / "arguments").read_text().split() == ["+1", str(notes / "backups.md")]
    err = capsys.readouterr().err
    assert "There is no source 1" in err
    assert "There is no source 7" in err


def test_commands(
    notes: Path, open_docs: Opener, service: ChatService, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    service.script = lambda request: search_and_say(request, "Backups are kept for 35 days [1]. Bob likes them [9].")
    file = tmp_path / "current" / "answers.md"
    session = talk(
        open_docs(**with_model(service)),
        *("/help", ENTER, "／tools", ENTER, "/toolz", ENTER, "/etc", ENTER, "/save answers.md", ENTER),
        *(QUESTION, ENTER, "/strict", ENTER, QUESTION, ENTER, "/model other", ENTER, QUESTION, ENTER),
        *("/sources", ENTER, "/save answers.md", ENTER, "/save answers.md", ENTER, "/exit", ENTER, "never", ENTER),
    )
    out, err = capsys.readouterr()
    assert "/resume [N]" in out
    assert "rag_add" in out
    assert "Did you mean /tools?" in err
    assert "There is no command /etc" in err
    assert "There is nothing to save yet" in err
    assert "The model is lmstudio:other from now on." in out
    assert service.requests[-1]["model"] == "other"
    assert len(session.chat.exchanges) == 3
    saved = file.read_text(encoding="utf-8")
    assert saved.count(f"## {QUESTION}") == 3
    assert saved.count("Bob") == 2, "once in the sentence and once in its remark: the strict answers have neither"
    assert "there is no source [9]" in saved
    assert "answers.md exists" in err


@pytest.mark.slow
@pytest.mark.parametrize(("reply", "is_called"), [("y", True), ("", False), ("always", True)])
def test_a_tool_that_changes_something_is_called_if_the_user_agrees(
    notes: Path,
    open_docs: Opener,
    service: ChatService,
    reply: str,
    is_called: bool,
) -> None:
    service.script = lambda request: (
        Reply("Done.") if request["messages"][-1]["role"] == "tool" else Reply(calls=[("reindex", "{}")])
    )
    library = open_docs(**with_model(service, CONFIRMED_TOOLS="reindex"))
    talk(library, "Reindex.", ENTER, reply, ENTER)
    results = [str(message["content"]) for message in service.requests[-1]["messages"] if message["role"] == "tool"]
    assert ("unchanged" in results[0]) == is_called
    assert ("does not want this call" in results[0]) == (not is_called)


def pipe(run: Run, monkeypatch: pytest.MonkeyPatch, lines: Sequence[str], *arguments: str | Path) -> tuple[int, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    ran = run("chat", *arguments)
    return ran.code, ran.out


def test_a_pipe_gets_plain_answers_to_its_lines(
    run: Run, notes: Path, service: ChatService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in with_model(service).items():
        monkeypatch.setenv(name, value)
    code, out = pipe(run, monkeypatch, [QUESTION, "", "/etc/hosts?"], "--docs-dir", notes)
    assert code == 0
    assert out == (
        f"> {QUESTION}\n\nBackups are kept for 35 days. [1]\n\n[1] backups.md:L1-L3\n\n"
        "> /etc/hosts?\n\nBackups are kept for 35 days. [1]\n\n[1] backups.md:L1-L3\n\n"
    )
    pipe(run, monkeypatch, ["本当に？"], "--docs-dir", notes, "--resume", "--model", "other")
    assert asked(service) == [QUESTION, "/etc/hosts?", "本当に？"]
    assert service.requests[-1]["model"] == "other"


def test_a_pipe_without_answers_ends_with_1(run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = pipe(run, monkeypatch, ["What is the capital of Mongolia?"], "--docs-dir", notes)
    assert (code, out.splitlines()[2]) == (1, "The library does not say.")
    assert pipe(run, monkeypatch, [QUESTION], "--docs-dir", notes, "--model", "m")[0] != 0
    assert pipe(run, monkeypatch, [], "--docs-dir", notes, "--json")[0] == 2


def test_nothing_is_kept_if_the_settings_say_so(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BUNKO_CHAT_KEEP_HISTORY", "false")
    pipe(run, monkeypatch, [QUESTION], "--docs-dir", notes)
    assert not list(tmp_path.rglob("chats"))
