"""Work on the outbox, in order within a thread: answer questions, run commands, keep feedback as judgements."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Protocol

import anyio
import anyio.to_thread

from bunko.errors import BunkoError
from bunko.evaluation.judge import Judgements, default_file, hold_judgements
from bunko.interfaces.answers import visible_sources
from bunko.interfaces.slack.commands import Command, RagCommands, parse_message
from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.slack.rendering import SlackMessage, render_answer, render_text
from bunko.interfaces.slack.rights import Sender
from bunko.interfaces.slack.threads import ThreadAnswers
from bunko.interfaces.slack.web_api import Replies, SlackAway, SlackRefused, SlackTokenRejected, Thread
from bunko.library.library import Library
from bunko.protocols import OutboxStore
from bunko.text.normalise import escape_surrogates
from bunko.types import Tool
from bunko.types.records import OutboxEntry


class Feedback:
    """Judges the sources of an answer by the votes of people: each has one vote, and the majority decides."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()

    def store(self, answer: Mapping[str, Any], votes: Mapping[str, Mapping[str, Any]]) -> None:
        """Store the votes about an answer as judgements of its sources, with who voted and when."""
        balance = sum(1 if vote["good"] else -1 for vote in votes.values())
        grade = None if balance == 0 else 1 if balance > 0 else 0
        question, uris_by_tool = answer["question"], self._uris_by_tool(answer["sources"])
        with self._lock:
            for tool, uris in uris_by_tool:
                try:
                    with hold_judgements(self._library):
                        judgements = Judgements(default_file(self._library, tool), tool.name)
                        for uri in uris:
                            judgements.set_grade(question, escape_surrogates(uri), grade)
                        judgements.set_feedback(question, {"votes": votes, "sources": answer["sources"]})
                except BunkoError as error:
                    _log.warning("The feedback on an answer was not stored as a judgement: %s", error.message)

    def _uris_by_tool(self, sources: list[Mapping[str, str]]) -> list[tuple[Tool, list[str]]]:
        """Return the documents of this library among the sources; those of other servers are left out."""
        uris_by_tool = [
            (tool, list(dict.fromkeys(source["uri"] for source in sources if self._is_from(tool, source))))
            for tool in self._library.tools()
        ]
        return [(tool, uris) for tool, uris in uris_by_tool if uris]

    def _is_from(self, tool: Tool, source: Mapping[str, str]) -> bool:
        """Return whether a tool has a source; another server may be one for this library, too."""
        if self._library.documents.stored.get(tool.id, source["uri"]) is None:
            return False
        if not source["server"]:
            return source["tool"] == tool.name
        try:
            check = self._library.verify_citation(source["citation"], source["hash"], tool=tool.name)
        except BunkoError:
            return False
        return check.status in ("same", "moved")


_log = logging.getLogger("bunko.slack")

_MAX_ATTEMPTS = 3  # of work that ended the process, before it is given up
_HISTORY = 20  # questions of a thread that are read after a restart; the model sees what fits
_REFUSAL_HINTS = {
    "missing_scope": "Install the app again with the manifest of bunko slack manifest.",
    "msg_too_long": "Lower chat.max_tokens.",
    "is_archived": "The channel is archived.",
}
_START_PART = "start"
_SOURCE_FIELDS = ("server", "tool", "uri", "citation", "hash")  # what feedback needs to know of a source


class Handler:
    """Handles one entry of the outbox at a time and thread; workers limit how many threads are worked on."""

    def __init__(
        self,
        outbox: OutboxStore,
        replies: Replies,
        commands: RagCommands,
        answers: ThreadAnswers,
        feedback: Feedback,
        messages: Messages,
        *,
        bot_user: str,
        workers: int,
    ) -> None:
        self._outbox, self._replies, self._commands, self._answers = outbox, replies, commands, answers
        self._feedback, self._messages, self._bot_user = feedback, messages, bot_user
        self._workers = anyio.CapacityLimiter(workers)

    async def handle(self, entry: OutboxEntry, *, is_new: bool) -> None:
        """Bring an entry to its end; raise SlackAway if that must be tried again.

        An entry that is not new may be from before a crash: what it says may have been posted already.
        """
        if entry.request.get("kind") == "feedback":
            await self._keep_feedback(entry)
            return
        thread = Thread(entry.request["channel"], entry.request["thread_ts"])
        try:
            posted = set() if is_new else await self._replies.posted_parts(thread, entry.key)
            if entry.state == "waiting":
                entry = await self._work(entry, thread, posted)
            await self._replies.post_missing(thread, entry.key, entry.answer["messages"], posted)
        except SlackRefused as refused:
            hint = _REFUSAL_HINTS.get(refused.error, "Invite the bot to the channel.")
            _log.warning("An answer cannot be posted in %s: %s. %s", thread.channel, refused.error, hint)
            await self._update(replace(entry, state="failed"))
            return
        # What was posted is in Slack; the rest is the history of the thread, and what feedback is about.
        answer = {name: value for name, value in entry.answer.items() if name != "messages"}
        await self._update(replace(entry, state="done", answer=answer))

    async def _work(self, entry: OutboxEntry, thread: Thread, posted: set[str]) -> OutboxEntry:
        """Return the entry with its answer, which is stored before any of it is posted."""
        failure = {"messages": self._text(self._messages.say("failed"))}
        if entry.attempts >= _MAX_ATTEMPTS:
            _log.warning("A message is given up: the bot ended %d times while it worked on it", entry.attempts)
        try:
            answer = failure if entry.attempts >= _MAX_ATTEMPTS else await self._answer(entry, thread, posted)
        except (SlackAway, SlackRefused, SlackTokenRejected):
            raise
        except BunkoError as error:
            _log.warning("A message was not answered: %s. %s", error.message, error.hint)
            answer = failure
        except Exception:
            _log.exception("A message was not answered")  # a bug, which must not keep others from their answers
            answer = failure
        entry = replace(entry, state="answered", answer=answer)
        await self._update(entry)
        return entry

    async def _answer(self, entry: OutboxEntry, thread: Thread, posted: set[str]) -> dict[str, object]:
        request = entry.request
        message = parse_message(request["text"], bot_user=self._bot_user)
        sender = Sender(request["user"], request["channel"])
        if isinstance(message, Command):
            if refusal := await self._commands.refusal(message, sender):
                return {"messages": self._text(refusal)}
            start = self._commands.start_message(message)
            if start and _START_PART not in posted:
                await self._replies.post(thread, entry.key, _START_PART, self._text(start)[0])
            async with self._workers:
                await self._update(replace(entry, attempts=entry.attempts + 1))
                result = await self._commands.run(message, sender, is_repeated=entry.attempts > 0)
            return {"messages": self._text(result)}
        async with self._workers:
            await self._update(replace(entry, attempts=entry.attempts + 1))
            return await self._answer_question(entry, message, sender)

    async def _answer_question(self, entry: OutboxEntry, question: str, sender: Sender) -> dict[str, object]:
        finished = await anyio.to_thread.run_sync(
            lambda: self._outbox.finished(entry.bot, entry.thread, limit=_HISTORY)
        )
        history = [(past.answer["question"], past.answer["text"]) for past in finished if past.answer.get("question")]
        answer = await self._answers.answer(question, entry.thread, sender, history)
        if answer is None:
            return {"messages": self._text(self._messages.say("disabled"))}
        sources = [{name: getattr(source, name) for name in _SOURCE_FIELDS} for source in visible_sources(answer)]
        return {
            "messages": render_answer(answer, self._messages, feedback_key=entry.key),
            "question": question,
            "text": "".join(f"{sentence.before}{sentence.text}" for sentence in answer.sentences).strip(),
            "sources": sources,
        }

    async def _keep_feedback(self, entry: OutboxEntry) -> None:
        request = entry.request
        await anyio.to_thread.run_sync(self._store_vote, request["answer"], request["user"], bool(request["good"]))
        await self._update(replace(entry, state="done"))

    def _store_vote(self, answer_key: str, user: str, is_good: bool) -> None:
        judged = self._outbox.get(answer_key)
        if judged is None or not judged.answer.get("question"):
            _log.info("Feedback on an answer that is no longer kept was left out")
            return
        vote = {"good": is_good, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        votes = {**judged.answer.get("votes", {}), user: vote}
        self._outbox.update(replace(judged, answer={**judged.answer, "votes": votes}))
        self._feedback.store(judged.answer, votes)

    async def _update(self, entry: OutboxEntry) -> None:
        await anyio.to_thread.run_sync(self._outbox.update, entry)

    def _text(self, text: str) -> list[SlackMessage]:
        return render_text(text, self._messages)


_MAX_LOADED = 1000
POLL_SECONDS = 1.0  # another process of the same bot may add entries, too
FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS = 2.0, 300.0  # before a reply is tried again
_GIVE_UP_SECONDS = 86_400.0  # an answer that comes a day later does not help
_PRUNE_SECONDS = 3600.0


class EntryHandler(Protocol):
    """Handles entries of the outbox."""

    async def handle(self, entry: OutboxEntry, *, is_new: bool) -> None:
        """Bring an entry to its end; raise SlackAway if that must be tried again."""


class Dispatcher:
    """Works on the outbox of one bot until it is cancelled."""

    def __init__(self, outbox: OutboxStore, bot: str, handler: EntryHandler, *, keep_seconds: float) -> None:
        self._outbox, self._bot, self._handler, self._keep_seconds = outbox, bot, handler, keep_seconds
        self._wake_event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._busy_threads: set[str] = set()
        self._changed_threads: set[str] = set()  # since the outbox was read, so that what was read of them is outdated
        self._tried: set[str] = set()  # keys; what they say may have been posted
        self._delays: dict[str, tuple[float, float]] = {}  # by thread: the last delay, and when to go on

    def wake(self) -> None:
        """Look at the outbox now; may be called from any thread."""
        self._loop.call_soon_threadsafe(self._wake_event.set)

    async def run(self) -> None:
        """Handle entries as they come; raise SlackTokenRejected if nothing can be posted any more."""
        is_first, next_prune = True, 0.0
        async with anyio.create_task_group() as tasks:
            while True:
                self._wake_event.clear()
                self._changed_threads.clear()
                try:
                    entries = await anyio.to_thread.run_sync(
                        lambda: self._outbox.unfinished(self._bot, limit=_MAX_LOADED)
                    )
                    if time.monotonic() >= next_prune:
                        next_prune = time.monotonic() + _PRUNE_SECONDS
                        await anyio.to_thread.run_sync(self._outbox.prune, time.time() - self._keep_seconds)
                except BunkoError as error:
                    _log.warning("The outbox cannot be read: %s. %s", error.message, error.hint)
                    entries = []
                else:
                    # These may be from before a crash.
                    self._tried |= {entry.key for entry in entries} if is_first else set()
                    is_first = False
                for entry in entries:
                    is_free = entry.thread not in self._busy_threads and entry.thread not in self._changed_threads
                    if is_free and self._is_due(entry.thread):
                        self._busy_threads.add(entry.thread)
                        tasks.start_soon(self._handle, entry)
                with anyio.move_on_after(POLL_SECONDS):
                    await self._wake_event.wait()

    def _is_due(self, thread: str) -> bool:
        return thread not in self._delays or time.monotonic() >= self._delays[thread][1]

    async def _handle(self, entry: OutboxEntry) -> None:
        is_new = entry.key not in self._tried
        self._tried.add(entry.key)
        try:
            await self._handler.handle(entry, is_new=is_new)
            self._delays.pop(entry.thread, None)
            self._tried.discard(entry.key)
        except SlackTokenRejected:
            raise
        except SlackAway as problem:
            await self._postpone(entry, str(problem))
        except BunkoError as error:  # of the library
            await self._postpone(entry, error.message)
        except Exception as error:
            _log.exception("An entry of the outbox was not handled")
            await self._postpone(entry, type(error).__name__)
        finally:
            self._busy_threads.discard(entry.thread)
            self._changed_threads.add(entry.thread)
            self._wake_event.set()

    async def _postpone(self, entry: OutboxEntry, problem: str) -> None:
        last_delay, _ = self._delays.get(entry.thread, (FIRST_DELAY_SECONDS / 2, 0.0))
        delay = min(last_delay * 2, MAX_DELAY_SECONDS)
        self._delays[entry.thread] = delay, time.monotonic() + delay
        if time.time() - entry.created_at < _GIVE_UP_SECONDS:
            _log.warning("A reply is tried again in %g s: %s", delay, problem)
            return
        _log.error("A reply was given up after a day: %s", problem)
        try:
            stored = await anyio.to_thread.run_sync(self._outbox.get, entry.key)
            await anyio.to_thread.run_sync(self._outbox.update, replace(stored or entry, state="failed"))
        except BunkoError as error:
            _log.warning("%s. %s", error.message, error.hint)
