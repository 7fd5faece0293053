"""Write the description of a tool from its key phrases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from bunko.search.keyphrases import Phrase
from bunko.sources import section_of
from bunko.text.labels import remove_hidden_chars
from bunko.text.language import detect_language
from bunko.types import Tool
from bunko.types.records import ChunkRow

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


def describe_tool(tool: Tool, phrases: Sequence[Phrase], *, documents: int | None = None, language: Language) -> str:
    """Return one or two sentences: the number of documents and their source, the topics, and when to search it."""
    write = _describe_in_japanese if language == "ja" else _describe_in_english
    names = [phrase.text for phrase in phrases]
    subject = (_japanese_subject if language == "ja" else _english_subject)(tool, documents)
    for count in range(min(len(names), _MAX_TOPICS + _MAX_QUESTIONS), 0, -1):
        # With few phrases, the main topics get the larger half.
        topic_count = min(_MAX_TOPICS, (count + 1) // 2)
        text = write(subject, names[:topic_count], names[topic_count:count])
        if len(text) <= MAX_DESCRIPTION_LENGTH:
            return text
    return write(subject, [], [])[:MAX_DESCRIPTION_LENGTH]


def _english_subject(tool: Tool, documents: int | None) -> str:
    if file := _single_file(tool):
        return f"The document {file}"
    has_entries, name = section_of(tool.kind) == "memos", _source_name(tool)
    noun = "memo" if has_entries else "document"
    if documents is None:
        subject = f"{noun.capitalize()}s"
    else:
        subject = f"{documents:,} {noun}{'s' * (documents != 1)}"
    if not name:
        return subject
    return f"{subject} {'in' if has_entries else 'from the folder'} {name}"


def _japanese_subject(tool: Tool, documents: int | None) -> str:
    if file := _single_file(tool):
        return f"文書「{file}」。"
    has_entries, name = section_of(tool.kind) == "memos", _source_name(tool)
    place = f"「{name}」{'' if has_entries else 'フォルダー'}の" if name else ""
    return f"{place}{'メモ' if has_entries else '文書'}{'' if documents is None else f'{documents:,}件'}。"


def _source_name(tool: Tool) -> str:
    return _short_name(PurePath(tool.source).name)


def _single_file(tool: Tool) -> str:
    """Return the name of the only file of its folder that a tool includes, or an empty string."""
    patterns = tool.options.include
    is_file = len(patterns) == 1 and patterns[0].startswith("/") and patterns[0].count("/") == 1
    return _short_name(patterns[0].removeprefix("/").replace("\\", "")) if is_file else ""


def _short_name(name: str) -> str:
    return " ".join(remove_hidden_chars(name).split())[:_MAX_FOLDER_LENGTH]


def _describe_in_english(subject: str, topics: Sequence[str], questions: Sequence[str]) -> str:
    text = subject + (f", mainly about {_join_names(topics, 'and')}." if topics else ".")
    return f"{text} Search this for questions about {_join_names(questions, 'or')}." if questions else text


def _describe_in_japanese(subject: str, topics: Sequence[str], questions: Sequence[str]) -> str:
    text = subject + (f"主な内容は{'、'.join(topics)}。" if topics else "")
    return f"{text}{'、'.join(questions)}について調べるときに使う。" if questions else text


def _join_names(names: Sequence[str], conjunction: str) -> str:
    if len(names) < 3:
        return f" {conjunction} ".join(names)
    return f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def main_language(chunks: Iterable[ChunkRow]) -> Language:
    """Return the language that most of the chunks are in."""
    counts = Counter(detect_language(row.chunk.text) for row in chunks)
    return "ja" if counts["ja"] > counts["en"] else "en"
