"""Parse what people write to the bot: a command, or a question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bunko.interfaces.slack.mrkdwn import split_markup, to_plain_text

Verb = Literal["crawl", "add", "status", "delete", "allow", "disallow", "domains", "help"]
_VERBS: tuple[Verb, ...] = get_args(Verb)
CHANGING_VERBS: tuple[Verb, ...] = ("crawl", "add", "delete", "allow", "disallow")
EXAMPLES: dict[Verb, str] = {
    "crawl": r"rag crawl https://example.com/docs \.html$",
    "add": "rag add https://example.com/guide",
    "delete": "rag delete https://example.com/guide",
    "allow": "rag allow example.com",
    "disallow": "rag disallow example.com",
}

_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』", "`": "`", "(": ")", "（": "）", "【": "】"}
_FORMATS = {sign: sign for sign in "*_~"}  # of Slack: bold, italic, struck out
_PUNCTUATION = "。、，．！？!?,;；"
_WORD = re.compile(r"-*[a-z]+")
_HELP_WORDS = ("help", "ヘルプ")
# What Japanese keyboards type for a backslash; no address has any of these.
_BACKSLASHES = str.maketrans(dict.fromkeys("¥￥＼", "\\"))


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its argument: a URL or a domain, and the pattern of a crawl."""

    verb: Verb
    argument: str = ""
    pattern: str = ""


def parse_message(markup: str, *, bot_user: str = "") -> Command | str:
    """Return the command in a message, else its question as plain text."""
    mention = rf"<@{re.escape(bot_user)}(?:\|[^<>]*)?>[\s,、:：]*" if bot_user else r"\A\s+"
    own_text = re.sub(mention, " ", markup).strip()
    parts = split_markup(_unquote(own_text, _QUOTES | _FORMATS))
    words = [unicodedata.normalize("NFKC", typed).casefold().strip(_PUNCTUATION) for typed, _ in parts[:2]]
    if not parts or (len(words) == 1 and words[0] in _HELP_WORDS):
        return Command("help")
    if words[0] != "rag":
        return to_plain_text(own_text, bot_user=bot_user)
    if len(words) == 1 or words[1] in _HELP_WORDS:
        return Command("help")
    verb = next((verb for verb in _VERBS if verb == words[1]), None)
    if verb is None:
        # A misspelt command has a URL or nothing after it; anything else may be a question about RAG.
        is_misspelt = _WORD.fullmatch(words[1]) and (len(parts) == 2 or _is_url(_url(parts[2])))
        return Command("help") if is_misspelt else to_plain_text(own_text, bot_user=bot_user)
    return _parse_command(verb, parts[2:])


def _parse_command(verb: Verb, arguments: Sequence[tuple[str, str]]) -> Command:
    """Return a command; one that has several addresses, of which it can take only one, gets none."""
    if verb in ("allow", "disallow"):
        is_one = sum("." in typed for typed, _ in arguments) <= 1
        return Command(verb, _unquote(arguments[0][0]) if arguments and is_one else "")
    url = _url(arguments[0]) if arguments else ""
    if verb == "crawl":
        pattern = _unquote(" ".join(typed for typed, _ in arguments[1:])).translate(_BACKSLASHES)
        return Command(verb, url if _is_url(url) else "", pattern)
    is_one = sum(_is_url(_url(argument)) for argument in arguments) <= 1
    return Command(verb, url if _is_url(url) and is_one else "")


def _url(part: tuple[str, str]) -> str:
    """Return the address of a part: the target of its link, else what was typed."""
    typed, target = part
    return target if target and target[0] not in "@#!" else _unquote(typed)


def _is_url(text: str) -> bool:
    return re.match(r"(?i)https?://[^\s/]", text) is not None


def _unquote(text: str, quotes: Mapping[str, str] = _QUOTES) -> str:
    """Return a text without the quotes around it and without the end of a Japanese sentence after it."""
    text = text.strip().rstrip("。、，．！？")
    while len(text) >= 2 and quotes.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    return text
