"""Read the commands and questions that people write to the bot, and run the commands."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import anyio.to_thread

from bunko.errors import BunkoError
from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.servers import CURRENT_CALLER, MCPToolNotFoundError
from bunko.interfaces.chat.setup import ChatTools, crawl_timeout
from bunko.interfaces.slack.domains import ALL, AllowedDomains, parse_domain
from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.slack.rendering import split_markup, to_plain_text
from bunko.interfaces.slack.rights import Sender
from bunko.settings import Settings
from bunko.types.access import ALL_RIGHTS

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


_log = logging.getLogger("bunko.slack")

_TOOLS: dict[Verb, str] = {"crawl": "rag_crawl", "add": "rag_add", "status": "rag_stats", "delete": "rag_delete"}
_EVERYONE = "*"
_PROBLEM_MARK = "- "  # begins a line about one page in the result of a crawl


class RagCommands:
    """Checks who may run a command, runs it, and says how it ended."""

    def __init__(self, settings: Settings, messages: Messages, tools: ChatTools, domains: AllowedDomains) -> None:
        self._settings, self._messages, self._tools, self._domains = settings, messages, tools, domains

    def may_change_library(self, sender: Sender) -> bool:
        """Return whether the settings allow the sender to change the library there."""
        slack = self._settings.slack
        return (
            _EVERYONE in slack.write_users or sender.user in slack.write_users or sender.channel in slack.write_channels
        )

    async def refusal(self, command: Command, sender: Sender) -> str:
        """Return why a command is not run, or an empty string."""
        if command.verb in CHANGING_VERBS and not self.may_change_library(sender):
            _log.info("%s may not run rag %s in %s", sender.user, command.verb, sender.channel)
            return self._messages.say("not_allowed", user=sender.user)
        if command.verb in _TOOLS and not await self._has_tool(command, sender):
            return self._disabled()
        if command.verb in ("crawl", "add", "delete") and not command.argument:
            return self._messages.say("no_url", example=EXAMPLES[command.verb])
        if command.verb in ("allow", "disallow") and not parse_domain(command.argument):
            return self._messages.say("no_domain", example=EXAMPLES[command.verb])
        if command.verb in ("crawl", "add"):
            host, is_allowed = await anyio.to_thread.run_sync(self._domains.check, command.argument)
            if not is_allowed:
                return self._messages.say("domain_refused", domain=host)
        return ""

    async def _has_tool(self, command: Command, sender: Sender) -> bool:
        manager = self._take_rights(command, sender).manager
        if manager is None:
            return False
        return any(tool.tool.name == _TOOLS[command.verb] for tool in await manager.tools())

    def _take_rights(self, command: Command, sender: Sender) -> ChatTools:
        """Call tools on behalf of the sender from now on; return those that a command may use."""
        caller = sender.caller(self._settings.slack.tools)
        if command.verb in CHANGING_VERBS:  # the right to change the library includes reading it
            caller = replace(caller, rights=ALL_RIGHTS)
        CURRENT_CALLER.set(caller)
        return self._tools.limited_to(caller.rights)

    def start_message(self, command: Command) -> str:
        """Return what is said before a command that takes long, or an empty string."""
        return self._messages.say("crawl_started") if command.verb == "crawl" else ""

    async def run(self, command: Command, sender: Sender, *, is_repeated: bool = False) -> str:
        """Run a command that was not refused, and return what to say about it."""
        if command.verb == "help":
            return self._messages.say("help")
        if command.verb in ("allow", "disallow", "domains"):
            return await anyio.to_thread.run_sync(lambda: self._change_domains(command, sender))
        result = await self._call_tool(command, self._take_rights(command, sender).manager)
        return f"{result}\n{self._messages.say('repeated')}" if is_repeated and command.verb != "status" else result

    async def _call_tool(self, command: Command, manager: MCPManager | None) -> str:
        arguments: dict[str, object] = {"url": command.argument} if command.argument else {}
        if command.verb == "crawl" and command.pattern:
            arguments["pattern"] = command.pattern
        timeout = crawl_timeout(self._settings) if command.verb == "crawl" else self._settings.mcp.call_timeout
        if manager is None:
            return self._disabled()
        try:
            output = await manager.call_tool(_TOOLS[command.verb], arguments, timeout=timeout)
        except MCPToolNotFoundError:
            return self._disabled()
        except BunkoError as error:
            _log.warning("rag %s failed: %s", command.verb, error.message)
            changes = [self._messages.translate(change) for change in manager.announcements()]
            reason = "\n".join([self._messages.translate(error.message), *changes])
            return self._failure(command, reason)
        if not output.text.strip():
            return self._messages.say("no_output", verb=command.verb)
        if output.is_error:
            # The tools of bunko say in the same words what failed.
            is_complete = output.text.startswith(("エラー:", "Error:"))
            text = self._messages.translate(output.text)
            return text if is_complete else self._failure(command, text)
        if command.verb == "crawl":
            lines = [line for line in output.text.splitlines() if not line.startswith(_PROBLEM_MARK)]
            return self._messages.say("crawl_done", result="\n".join(lines))
        return output.text

    def _disabled(self) -> str:
        """Return that a tool is not offered, and which servers are away, of which one may be the reason."""
        problems = self._tools.manager.problems.values() if self._tools.manager is not None else ()
        return "\n".join([self._messages.say("disabled"), *map(self._messages.translate, problems)])

    def _failure(self, command: Command, reason: str) -> str:
        return self._messages.say(f"{command.verb}_failed", url=command.argument, reason=reason)

    def _change_domains(self, command: Command, sender: Sender) -> str:
        messages, domain = self._messages, parse_domain(command.argument)
        if command.verb == "allow":
            is_first = not self._domains.rules() and domain != ALL
            self._domains.allow(domain, sender.user)
            lines = [messages.say("domain_allowed", domain=domain)]
            return "\n".join([*lines, *([messages.say("list_begins")] if is_first else [])])
        if command.verb == "disallow":
            self._domains.disallow(domain, sender.user)
            return messages.say("domain_disallowed", domain=domain)
        rules = self._domains.rules()
        if not rules:
            return messages.say("all_domains")
        allowed = [name for name, is_allowed in sorted(rules.items()) if is_allowed]
        refused = [f"× {name}" for name, is_allowed in sorted(rules.items()) if not is_allowed and name != ALL]
        if not allowed:
            return messages.say("no_domains")
        return messages.say("domains", domains="\n".join([*(f"・{name}" for name in allowed), *refused]))
