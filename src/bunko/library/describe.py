"""Write the description of a tool from its key phrases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from bunko.records import ChunkRow
from bunko.search.keyphrases import Phrase
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.text.language import detect_language
from bunko.types import Tool

Language = Literal["ja", "en"]
# Assistants read every description with every call.
MAX_DESCRIPTION_LENGTH = 300
_MAX_TOPICS = 4
_MAX_QUESTIONS = 5
_MAX_FOLDER_LENGTH = 40


@dataclass(frozen=True, slots=True)
class DescriptionProposal:
    """A description generated from a tool's documents, with the phrases it was made from."""

    tool: Tool
    description: str
    language: Language
    phrases: list[Phrase]


def describe_tool(tool: Tool, phrases: Sequence[Phrase], *, documents: int, language: Language) -> str:
    """Return one or two sentences: the number of documents and their folder, the topics, and when to search it."""
    folder = " ".join(remove_hidden_chars(PurePath(tool.source).name).split())[:_MAX_FOLDER_LENGTH]
    write = _describe_in_japanese if language == "ja" else _describe_in_english
    names = [phrase.text for phrase in phrases]
    for count in range(min(len(names), _MAX_TOPICS + _MAX_QUESTIONS), 0, -1):
        # With few phrases, the main topics get the larger half.
        topic_count = min(_MAX_TOPICS, (count + 1) // 2)
        text = write(folder, documents, names[:topic_count], names[topic_count:count])
        if len(text) <= MAX_DESCRIPTION_LENGTH:
            return text
    return write(folder, documents, [], [])[:MAX_DESCRIPTION_LENGTH]


def _describe_in_english(folder: str, documents: int, topics: Sequence[str], questions: Sequence[str]) -> str:
    text = f"{documents:,} document{'s' * (documents != 1)}"
    text += f" from the folder {folder}" if folder else ""
    text += f", mainly about {_join_names(topics, 'and')}." if topics else "."
    return f"{text} Search this for questions about {_join_names(questions, 'or')}." if questions else text


def _describe_in_japanese(folder: str, documents: int, topics: Sequence[str], questions: Sequence[str]) -> str:
    text = f"「{folder}」フォルダの文書{documents:,}件。" if folder else f"文書{documents:,}件。"
    text += f"主な内容は{'、'.join(topics)}。" if topics else ""
    return f"{text}{'、'.join(questions)}について調べるときに使う。" if questions else text


def _join_names(names: Sequence[str], conjunction: str) -> str:
    if len(names) < 3:
        return f" {conjunction} ".join(names)
    return f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def main_language(chunks: Iterable[ChunkRow]) -> Language:
    """Return the language that most of the chunks are in."""
    counts = Counter(detect_language(row.chunk.text) for row in chunks)
    return "ja" if counts["ja"] > counts["en"] else "en"
