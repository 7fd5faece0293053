"""Work on what is in the outbox: answer questions, run commands, keep feedback."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.to_thread

from bunko.errors import BunkoError
from bunko.interfaces.answers import visible_sources
from bunko.interfaces.slack.commands import Command, parse_message
from bunko.interfaces.slack.feedback import Feedback
from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.slack.rag_commands import RagCommands
from bunko.interfaces.slack.rendering import SlackMessage, render_answer, render_text
from bunko.interfaces.slack.replies import Replies, Thread
from bunko.interfaces.slack.rights import Sender
from bunko.interfaces.slack.threads import ThreadAnswers
from bunko.interfaces.slack.web_api import SlackAway, SlackRefused, SlackTokenRejected
from bunko.protocols import OutboxStore
from bunko.types.records import OutboxEntry

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

    async def _answer(self, entry: OutboxEntry, thread: Thread, posted: set[str]) -> dict[str, Any]:
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

    async def _answer_question(self, entry: OutboxEntry, question: str, sender: Sender) -> dict[str, Any]:
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
