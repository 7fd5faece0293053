"""Keep conversations in the user's data folder, so that they can be resumed; only their owner may read them."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from bunko.interfaces.chat.conversation import Exchange
from bunko.interfaces.chat.private_files import write_private
from bunko.library.opening.paths import LibraryPaths, user_data_folder
from bunko.library.rights.user_secret import token_path
from bunko.types.answers import AnswerSource

_log = logging.getLogger("bunko.chat")

_VERSION = 1
MAX_CHATS = 100  # of a library; the oldest are deleted
_MAX_FILE_BYTES = 20_000_000
_CITATION = re.compile(r"\s?\[\+?\d{1,3}\]")


@dataclass(frozen=True, slots=True)
class SavedExchange:
    """A question, what was answered, and what the reader saw of it: checked and marked."""

    question: str
    answer: str
    shown: str
    first_source: int = 1
    model: str = ""  # empty: quoted

    def exchange(self) -> Exchange:
        """Return it as a model sees it; the numbers in a quoted answer are not those of a conversation."""
        answer = self.answer if self.model else _CITATION.sub("", self.answer)
        return Exchange(self.question, answer, self.first_source)


@dataclass(slots=True)
class SavedChat:
    """A conversation as it is kept."""

    name: str
    exchanges: list[SavedExchange] = field(default_factory=list)
    sources: dict[int, AnswerSource] = field(default_factory=dict)  # that models were shown

    @property
    def title(self) -> str:
        """The first question."""
        return " ".join(self.exchanges[0].question.split()) if self.exchanges else ""

    @property
    def started_at(self) -> str:
        """When it began, to the minute."""
        try:
            return datetime.strptime(self.name[:15], "%Y%m%d-%H%M%S").strftime("%Y-%m-%d %H:%M")
        except ValueError:
            return ""


def chat_folder(paths: LibraryPaths) -> Path:
    """Return the folder of a library's conversations."""
    token = token_path(paths)  # the library's name in the user's data folder
    return user_data_folder() / "chats" / ("default" if token.parent == user_data_folder() else token.name)


class SavedChats:
    """The conversations about one library, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new(self) -> SavedChat:
        """Return a conversation that has not begun."""
        return SavedChat(f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}")

    def latest(self, limit: int = 10) -> list[SavedChat]:
        """Return the conversations that can be read, the last used first."""
        chats: list[SavedChat] = []
        for path in self._paths():
            chat = _read(path)
            chats += [chat] if chat is not None and chat.exchanges else []
            if len(chats) == limit:
                break
        return chats

    def save(self, chat: SavedChat) -> None:
        """Write a conversation, and delete the oldest ones if there are too many; a failure is only logged."""
        content = {
            "version": _VERSION,
            "exchanges": [asdict(exchange) for exchange in chat.exchanges],
            "sources": [asdict(source) for source in chat.sources.values()],
        }
        try:
            write_private(self._folder / f"{chat.name}.json", json.dumps(content, ensure_ascii=False, indent=1))
            for path in self._paths()[MAX_CHATS:]:
                path.unlink(missing_ok=True)
        except (OSError, UnicodeEncodeError) as error:
            _log.warning("The conversation was not saved: %s", error)

    def _paths(self) -> list[Path]:
        """Return the files of the conversations, the last used first."""
        times: dict[Path, tuple[int, str]] = {}
        for path in self._folder.glob("*.json"):
            with suppress(OSError):  # another process deletes the oldest
                times[path] = path.stat().st_mtime_ns, path.name
        return sorted(times, key=lambda path: times[path], reverse=True)


def _read(path: Path) -> SavedChat | None:
    """Return the conversation of a file; None if the file cannot be read or was written by something else."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            return None
        content: Any = json.loads(path.read_text("utf-8"))
        if content["version"] != _VERSION:
            return None
        exchanges = [SavedExchange(**row) for row in content["exchanges"]]
        sources = [AnswerSource(**{**row, "headings": tuple(row["headings"])}) for row in content["sources"]]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        _log.debug("%s is not a conversation: %r", path, error)
        return None
    return SavedChat(path.stem, exchanges, {source.number: source for source in sources})


def to_markdown(exchanges: Sequence[SavedExchange]) -> str:
    """Return a conversation as Markdown."""
    return "\n\n".join(f"## {' '.join(exchange.question.split())}\n\n{exchange.shown}" for exchange in exchanges) + "\n"
