"""Say who may read which tools in which channels of Slack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bunko.errors import SettingsError
from bunko.types.access import ALL_RIGHTS, ALL_TOOLS, Caller, Rights

EVERYWHERE = "*"  # in place of a channel: all of them, and direct messages


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a message, and where."""

    user: str
    channel: str

    def caller(self, entries: Sequence[str]) -> Caller:
        """Return the sender with the rights that slack.tools gives there."""
        return Caller(f"slack:{self.user}", "slack", channel_rights(entries, self.channel))


def channel_rights(entries: Sequence[str], channel: str) -> Rights:
    """Return what slack.tools allows in a channel; without entries, everything."""
    tools = tuple(tool for place, tool in map(parse_entry, entries) if place in (channel, EVERYWHERE))
    return Rights(read=tools) if entries and ALL_TOOLS not in tools else ALL_RIGHTS


def parse_entry(entry: str) -> tuple[str, str]:
    """Return channel and tool of an entry of slack.tools; raise SettingsError if it is not CHANNEL=TOOL."""
    channel, _, tool = (part.strip() for part in entry.partition("="))
    if not channel or not tool:
        raise SettingsError(
            f"slack.tools has {entry!r}, but each entry must be CHANNEL=TOOL",
            hint="Write C012AB3CD=notes, with * for every channel or every tool.",
        )
    return channel, tool
