"""A tool and its key phrases in, a description that an assistant can choose it by out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from bunko.records import Found
from bunko.search.keyphrases import Phrase
from bunko.text.hidden_chars import clean
from bunko.text.language import language as language_of
from bunko.types import Tool

Language = Literal["ja", "en"]
# Assistants read all descriptions at every call.
LONGEST = 300
_TOPICS = 4
_QUESTIONS = 5
_LONGEST_FOLDER = 40


@dataclass(frozen=True, slots=True)
class Proposal:
    """A description made from a tool's own documents, and what it was made from."""

    tool: Tool
    description: str
    language: Language
    phrases: list[Phrase]


def describe(tool: Tool, phrases: Sequence[Phrase], *, documents: int, language: Language) -> str:
    """Return one or two sentences: how many documents from where, their topics, and when to ask."""
    folder = " ".join(clean(PurePath(tool.source).name).split())[:_LONGEST_FOLDER]
    write = _japanese if language == "ja" else _english
    names = [phrase.text for phrase in phrases]
    for count in range(min(len(names), _TOPICS + _QUESTIONS), 0, -1):
        # The main topics take the larger half where there are few.
        cut = min(_TOPICS, (count + 1) // 2)
        text = write(folder, documents, names[:cut], names[cut:count])
        if len(text) <= LONGEST:
            return text
    return write(folder, documents, [], [])[:LONGEST]


def _english(folder: str, documents: int, topics: Sequence[str], questions: Sequence[str]) -> str:
    text = f"{documents:,} document{'s' * (documents != 1)}"
    text += f" from the folder {folder}" if folder else ""
    text += f", mainly about {_listed(topics, 'and')}." if topics else "."
    return f"{text} Search this for questions about {_listed(questions, 'or')}." if questions else text


def _japanese(folder: str, documents: int, topics: Sequence[str], questions: Sequence[str]) -> str:
    text = f"「{folder}」フォルダの文書{documents:,}件。" if folder else f"文書{documents:,}件。"
    text += f"主な内容は{'、'.join(topics)}。" if topics else ""
    return f"{text}{'、'.join(questions)}について調べるときに使う。" if questions else text


def _listed(names: Sequence[str], last: str) -> str:
    if len(names) < 3:
        return f" {last} ".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def spoken(chunks: Iterable[Found]) -> Language:
    """Return the language most of some chunks are in."""
    found = Counter(language_of(one.chunk.text) for one in chunks)
    return "ja" if found["ja"] > found["en"] else "en"
