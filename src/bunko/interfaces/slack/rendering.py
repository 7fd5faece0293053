"""Render answers as Slack messages: sentences with links to their sources, and buttons for feedback."""

from __future__ import annotations

from typing import Any

from bunko.interfaces.answers import (
    NOTHING_FOUND,
    introduction,
    remarks,
    visible_citations,
    visible_sentences,
    visible_sources,
)
from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.slack.mrkdwn import escape, from_markdown, link, split_text
from bunko.interfaces.text import single_line
from bunko.types.answers import AnswerSource, CheckedAnswer, CheckedSentence

SlackMessage = dict[str, Any]  # what `chat.postMessage` is given, without the place

GOOD_ACTION, BAD_ACTION = "bunko_good", "bunko_bad"
# A block holds 3,000 characters, a message 50 blocks, and Slack cuts its text at 40,000 characters.
_BLOCK_CHARS = 2900
_BLOCKS = 10
_MAX_MESSAGES = 4
_PLAIN_CHARS = 3900
_MAX_LABEL_CHARS = 150


def render_text(text: str, messages: Messages) -> list[SlackMessage]:
    """Return plain text as messages; nothing in it has a meaning to Slack."""
    pieces = _limit(split_text(escape(text), _PLAIN_CHARS), _MAX_MESSAGES, messages)
    return [{"text": piece, "mrkdwn": False} for piece in pieces]


def render_answer(answer: CheckedAnswer, messages: Messages, *, feedback_key: str) -> list[SlackMessage]:
    """Return an answer as messages; `feedback_key` comes back with a click on a button."""
    sources = {source.number: source for source in answer.sources}
    sentences = visible_sentences(answer)
    body = "".join(_sentence(sentence, sources, messages) for sentence in sentences).strip()
    cited = visible_sources(answer)
    if not sentences:
        body = escape(messages.translate(NOTHING_FOUND))
    elif not answer.model:
        body = f"{escape(messages.translate(introduction(answer)))}\n\n{body}"
    pieces = _limit(split_text(body, _BLOCK_CHARS), _BLOCKS * _MAX_MESSAGES, messages)
    if cited:
        listed = "\n".join(f"[{source.number}] {_place(source)}" for source in cited)
        pieces += split_text(f"{messages.say('sources')}\n{listed}", _BLOCK_CHARS)[:_BLOCKS]
    rendered: list[SlackMessage] = [
        {"text": "\n\n".join(group), "blocks": [{"type": "section", "text": _text(piece)} for piece in group]}
        for group in (pieces[start : start + _BLOCKS] for start in range(0, len(pieces), _BLOCKS))
    ]
    blocks: list[SlackMessage] = rendered[-1]["blocks"]
    if answer.notices:
        notices = "\n".join(escape(messages.translate(notice)) for notice in answer.notices)
        blocks.append({"type": "context", "elements": [_text(notices[:_BLOCK_CHARS])]})
    if cited:
        blocks.append(_feedback_buttons(messages, feedback_key))
    return rendered


def _sentence(sentence: CheckedSentence, sources: dict[int, AnswerSource], messages: Messages) -> str:
    marks = {
        citation.number: f"[{'+' if citation.added else ''}{citation.number}]"
        for citation in visible_citations(sentence)
        if citation.number in sources
    }
    linked = "".join(
        link(sources[number].uri, mark) if is_web_page(sources[number]) else escape(mark)
        for number, mark in marks.items()
    )
    notes = messages.say("between_remarks").join(messages.translate(remark) for remark in remarks(sentence))
    text = from_markdown(f"{sentence.before}{sentence.text}")
    return f"{text}{f' {linked}' if linked else ''}{f' :warning: ({escape(notes)})' if notes else ''}"


def is_web_page(source: AnswerSource) -> bool:
    """Return whether a source has an address that people can open."""
    return source.uri.startswith(("http://", "https://"))


def _place(source: AnswerSource) -> str:
    """Return where a source is: a link to its page, or the name of its file and the place in it."""
    title = " ".join(source.title.split())[:_MAX_LABEL_CHARS]
    if is_web_page(source):
        return link(source.uri, title or source.uri[:_MAX_LABEL_CHARS])
    place = escape(single_line(source.location))
    return f"{escape(title)} ({place})" if title else place


def _limit(pieces: list[str], limit: int, messages: Messages) -> list[str]:
    return pieces if len(pieces) <= limit else [*pieces[: limit - 1], escape(messages.say("cut"))]


def _text(text: str) -> dict[str, Any]:
    # Verbatim: nothing becomes a link or a mention by itself.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _feedback_buttons(messages: Messages, key: str) -> dict[str, Any]:
    buttons = [
        {
            "type": "button",
            "action_id": action,
            "value": key,
            "text": {"type": "plain_text", "text": emoji, "emoji": True},
            "accessibility_label": messages.say(name),
        }
        for action, emoji, name in ((GOOD_ACTION, "👍", "good"), (BAD_ACTION, "👎", "bad"))
    ]
    return {"type": "actions", "elements": buttons}
