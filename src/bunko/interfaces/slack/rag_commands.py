"""Run the commands of the bot through the tools of the MCP servers."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import anyio.to_thread

from bunko.errors import BunkoError
from bunko.interfaces.chat.builtin_server import CURRENT_CALLER
from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.servers import MCPToolNotFoundError
from bunko.interfaces.chat.setup import ChatTools, crawl_timeout
from bunko.interfaces.slack.commands import CHANGING_VERBS, EXAMPLES, Command, Verb
from bunko.interfaces.slack.domains import ALL, AllowedDomains, parse_domain
from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.slack.rights import Sender
from bunko.settings import Settings
from bunko.types.access import ALL_RIGHTS

_log = logging.getLogger("bunko.slack")

_TOOLS: dict[Verb, str] = {"crawl": "rag_crawl", "add": "rag_add", "status": "rag_stats", "delete": "rag_delete"}
_EVERYONE = "*"
_PROBLEM_MARK = "- "  # begins a line about one page in the result of a crawl


class RagCommands:
    """Checks who may run a command, runs it, and says how it ended."""

    def __init__(self, settings: Settings, messages: Messages, tools: ChatTools, domains: AllowedDomains) -> None:
        self._settings, self._messages, self._tools, self._domains = settings, messages, tools, domains

    def may_change_library(self, sender: Sender) -> bool:
        """Return whether the settings allow somebody to change the library there."""
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
        if command.verb in CHANGING_VERBS:  # whoever may change the library may also read it
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
        arguments: dict[str, Any] = {"url": command.argument} if command.argument else {}
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
