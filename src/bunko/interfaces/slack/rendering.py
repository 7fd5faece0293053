"""Read and write Slack's messages: their markup, answers with links to their sources, and buttons for feedback."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit

from bunko.interfaces.answers import (
    NOTHING_FOUND,
    introduction,
    readable_sentences,
    remarks,
    visible_citations,
    visible_sources,
)
from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.text import single_line
from bunko.text.labels import remove_hidden_chars
from bunko.text.readable import readable_title
from bunko.types.answers import AnswerSource, CheckedAnswer, CheckedSentence

# <https://example.com|label>, <@U012>, <#C012|general>, <!here>, <!subteam^S012|@team>
_MARKUP = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*|__(?=\S)([^_\n]+?)(?<=\S)__")
_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+(.+?)[ \t]*#*$")
_BULLET = re.compile(r"(?m)^([ \t]*)[*+-][ \t]+")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_SAFE_IN_URL = "!#$%&'()*+,/:;=?@[]~"


def escape(text: str) -> str:
    """Return plain text for a message, with no meaning left in it."""
    return remove_hidden_chars(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """Return the characters that Slack escapes in messages."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def link(url: str, label: str) -> str:
    """Return a link to a web page, or only its label if the address is none."""
    text = escape(" ".join(label.replace("|", "¦").split())) or escape(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        return text
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.username:
        return text
    return f"<{quote(url, safe=_SAFE_IN_URL).replace('&', '&amp;')}|{text}>"


def from_markdown(text: str) -> str:
    """Return Markdown, as models write it, in Slack's markup; links become their labels."""
    text = escape(_LINK.sub(r"\1", text))
    text = _BULLET.sub(r"\1• ", text)
    text = _BOLD.sub(lambda match: f"*{match[1] or match[2]}*", text)
    return _HEADING.sub(lambda match: f"*{match[1].strip('*')}*", text)


def to_plain_text(markup: str, *, bot_user: str = "") -> str:
    """Return what a person wrote: links as they were typed, without mentions of the bot."""

    def plain(match: re.Match[str]) -> str:
        target, label = match[1], match[2]
        if bot_user and target == f"@{bot_user}":
            return ""
        if target[:1] in "@#!":
            return label or target
        return label or target.removeprefix("mailto:")

    return re.sub(r"[ \t\u3000]+", " ", unescape(_MARKUP.sub(plain, markup))).strip()


def split_markup(markup: str) -> list[tuple[str, str]]:
    """Return the parts of a message that are separated by blanks, each with the target of its link if it is one.

    Both are unescaped. A full-width blank separates parts, too.
    """
    parts: list[tuple[str, str]] = []
    for match in re.finditer(r"(?:<[^<>]*>|[^\s<])+|<", markup):
        typed, target = "", ""
        position = 0
        for markup_match in _MARKUP.finditer(match[0]):
            typed += match[0][position : markup_match.start()] + (markup_match[2] or markup_match[1])
            target = target or markup_match[1]
            position = markup_match.end()
        typed += match[0][position:]
        parts.append((unescape(typed), unescape(target)))
    return parts


def split_text(text: str, limit: int) -> list[str]:
    """Return a text in pieces of at most this many characters, cut at line ends and blanks where possible."""
    pieces = []
    while len(text) > limit:
        cut = max(text.rfind("\n", limit // 2, limit), -1)
        if cut < 0:
            cut = max(text.rfind("。", limit // 2, limit - 1) + 1 or -1, text.rfind(" ", limit // 2, limit))
        if cut <= 0:
            cut = limit
            # Neither an entity nor a link may be cut in two.
            for opening, closing in (("&", ";"), ("<", ">")):
                start = text.rfind(opening, max(0, limit - 4000), limit)
                if start > 0 and text.find(closing, start, limit) < 0:
                    cut = min(cut, start)
        pieces.append(text[:cut].rstrip())
        text = text[cut:].lstrip("\n ")
    return [piece for piece in [*pieces, text] if piece]


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
    sentences = readable_sentences(answer)
    body = "".join(_sentence(sentence, sources, messages) for sentence in sentences).strip()
    cited = visible_sources(answer)
    if not sentences:
        body = escape(messages.translate(NOTHING_FOUND))
    elif not answer.model:
        body = f"{escape(messages.translate(introduction(answer)))}\n\n{body}"
    pieces = _limit(split_text(body, _BLOCK_CHARS), _BLOCKS * _MAX_MESSAGES, messages)
    if cited:
        listed = [messages.say("sources")]
        for source in cited:
            title = " ".join(readable_title(source.title, source.uri).split())[:_MAX_LABEL_CHARS]
            place = escape(single_line(source.location))
            place = f"{escape(title)} ({place})" if title else place
            if is_web_page(source):
                place = link(source.uri, title or source.uri[:_MAX_LABEL_CHARS])
            listed.append(f"[{source.number}] {place}")
        pieces += split_text("\n".join(listed), _BLOCK_CHARS)[:_BLOCKS]
    rendered: list[SlackMessage] = [
        {"text": "\n\n".join(group), "blocks": [{"type": "section", "text": _text(piece)} for piece in group]}
        for group in (pieces[start : start + _BLOCKS] for start in range(0, len(pieces), _BLOCKS))
    ]
    blocks: list[SlackMessage] = rendered[-1]["blocks"]
    if answer.notices:
        notices = "\n".join(escape(messages.translate(notice)) for notice in answer.notices)
        blocks.append({"type": "context", "elements": [_text(notices[:_BLOCK_CHARS])]})
    if cited:
        buttons = [
            {
                "type": "button",
                "action_id": action,
                "value": feedback_key,
                "text": {"type": "plain_text", "text": emoji, "emoji": True},
                "accessibility_label": messages.say(name),
            }
            for action, emoji, name in ((GOOD_ACTION, "👍", "good"), (BAD_ACTION, "👎", "bad"))
        ]
        blocks.append({"type": "actions", "elements": buttons})
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


def _limit(pieces: list[str], limit: int, messages: Messages) -> list[str]:
    return pieces if len(pieces) <= limit else [*pieces[: limit - 1], escape(messages.say("cut"))]


def _text(text: str) -> dict[str, Any]:
    # Verbatim: nothing becomes a link or a mention by itself.
    return {"type": "mrkdwn", "text": text, "verbatim": True}
