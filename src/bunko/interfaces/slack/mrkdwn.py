"""Read and write the markup of Slack's messages; text of documents can neither mention anybody nor fake a link."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from bunko.text.labels import remove_hidden_chars

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
