"""Tools and their headings in, whether an assistant could tell the tools apart by their descriptions out.

A question made from a tool's own heading goes to the tool whose name and description share the rarest words with it:
BM25 over so few, so short texts is the sum of the shared words' idf. An assistant knows more than that; where plain
words mislead, it has nothing else to go by.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from math import isclose, log

from bunko.records import ChunkRow
from bunko.text import analyzer
from bunko.text.nouns import is_boilerplate, plain_text
from bunko.types import Tool

# Questions for each tool: enough to tell 60 % from 80 %.
_MAX_QUESTIONS = 60
_MAX_QUESTION_LENGTH = 80
# A heading of fewer words is asked together with its document's title.
_MIN_HEADING_WORDS = 2
# Below so many questions a share means nothing.
_MIN_QUESTIONS = 3
# A tool is in trouble if this share of the questions that words can route go elsewhere.
_MAX_LOST_SHARE = 1 / 3
# Descriptions that share so many of their words are one description.
_SIMILAR_SHARE = 0.7
_MIN_DESCRIPTION_WORDS = 2
_MAX_DESCRIPTION_LENGTH = 600
_MAX_EXAMPLES = 3
# What is left of Markdown in a heading.
_MARKDOWN_MARKS = re.compile(r"[\[\]*`\\#|]+")
# Words that describe any tool: they neither tell it from another nor count as a description.
_GENERIC_TEXT = """
    about all answer ask contain data database describe description doc docs document documentation file folder
    general help info information knowledge main mainly markdown md misc my note page project question read reference
    search stuff text thing tool topic use various
    文書 文章 資料 書類 情報 知識 知る 検索 調べる 探す 使う 使用 利用 為る 事 物 時 質問 内容 主
    フォルダ フォルダー ファイル ドキュメント データ ツール テキスト メモ ノート 色々 様々 全て 件
    関する 有る 入る まとめる 集 類 に関する文書、主な内容は資料について調べるときに使う
    性 化 的 者 法 時 用 式 型 系 率 力 等 方 前 後 中
    """


@dataclass(slots=True)
class Route:
    """Where the questions of one tool went."""

    tool: str
    questions: int = 0
    right: int = 0
    tied: int = 0  # several descriptions fit as well, this tool's among them
    unmatched: int = 0  # no description has a word of the question
    credit: float = 0.0  # right ones, and of the others what guessing would get right
    lost_to: Counter[str] = field(default_factory=Counter)  # which other tool took how many; a tie takes a part
    examples: dict[str, list[str]] = field(default_factory=dict)  # which other tool took what

    @property
    def share(self) -> float:
        """Return the share of questions that went to the right tool."""
        return self.credit / self.questions if self.questions else 0.0


@dataclass(frozen=True, slots=True)
class RoutingWarning:
    """One thing that would mislead an assistant."""

    code: str  # empty, generic, long, same, alike, lost
    tools: tuple[str, ...]
    message: str
    hint: str = ""


@dataclass(slots=True)
class RoutingReport:
    """What was measured and what is wrong."""

    routes: list[Route]
    warnings: list[RoutingWarning]
    empty_tools: list[str]  # tools that hold nothing to ask about

    @property
    def accuracy(self) -> float | None:
        """Return the share of all questions that went right; None where there is no choice or no question."""
        asked = sum(route.questions for route in self.routes)
        return sum(route.credit for route in self.routes) / asked if asked and len(self.routes) > 1 else None

    @property
    def matched_counts(self) -> tuple[float, int]:
        """Return how many questions that share a word with a description went right, and how many those are."""
        guessed = sum(route.unmatched for route in self.routes)
        right = sum(route.credit for route in self.routes) - guessed / max(1, len(self.routes))
        return right, sum(route.questions for route in self.routes) - guessed


def make_questions(chunks: Iterable[ChunkRow], *, limit: int = _MAX_QUESTIONS) -> list[str]:
    """Return questions that some chunks answer, made from titles and headings, spread over them, each once."""
    found: dict[str, None] = {}
    for one in chunks:
        headings = [one.title, *one.chunk.heading_path]
        for heading in headings:
            text = _plain_heading(heading)
            if not text or is_boilerplate(text):
                continue
            title = _plain_heading(one.title)
            if len(_spellings(text)) < _MIN_HEADING_WORDS and title not in ("", text) and not is_boilerplate(title):
                text = f"{title} {text}"
            if _distinctive_words(text):
                found.setdefault(text[:_MAX_QUESTION_LENGTH])
    every = list(found)
    return [every[number * len(every) // limit] for number in range(limit)] if len(every) > limit else every


def measure_routing(tools: Sequence[Tool], questions: Mapping[str, Sequence[str]], *, flags: str = "") -> RoutingReport:
    """Send each tool's questions, by its name, to the description that fits best, and tell what goes wrong.

    `flags` name the library to the commands that hints speak of.
    """
    own = {tool.name: _distinctive_words(f"{tool.name} {tool.description}") for tool in tools}
    idf = _idf(list(own.values()))
    routes = [_route_questions(tool.name, questions.get(tool.name, ()), own, idf) for tool in tools]
    warnings = [warned for tool in tools for warned in _description_warnings(tool)]
    warnings += _similarity_warnings(tools)
    if len(tools) > 1:
        warnings += [warned for route in routes for warned in _misrouting_warnings(route)]
    warnings = [replace(warned, hint=warned.hint + flags) for warned in warnings]
    return RoutingReport(routes, warnings, [route.tool for route in routes if not route.questions])


def _plain_heading(heading: str) -> str:
    return " ".join(_MARKDOWN_MARKS.sub(" ", plain_text(heading)).split())


def _distinctive_words(text: str) -> frozenset[str]:
    """Return the words of a text that can tell one tool from another; numbers and generic ones cannot."""
    return frozenset(one for one in _spellings(text) if not one.isdigit()) - _generic_words()


def _spellings(text: str) -> set[str]:
    return {term.spelling for run in analyzer.runs(text) for term in analyzer.terms(run)}


@cache
def _generic_words() -> frozenset[str]:
    return frozenset(_spellings(_GENERIC_TEXT))


def _idf(texts: Sequence[frozenset[str]]) -> dict[str, float]:
    held = Counter(key for text in texts for key in text)
    return {key: log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for key, count in held.items()}


def _route_questions(
    name: str, questions: Sequence[str], tool_words: Mapping[str, frozenset[str]], idf: Mapping[str, float]
) -> Route:
    route = Route(name, questions=len(questions))
    for question in questions:
        wanted = sorted(_distinctive_words(question))
        scores = {other: sum(idf[key] for key in wanted if key in has) for other, has in tool_words.items()}
        best = max(scores.values())
        winners = [other for other, score in scores.items() if isclose(score, best)]
        if best == 0:
            route.unmatched += 1
        elif winners == [name]:
            route.right += 1
        elif name in winners:
            route.tied += 1
        if name in winners:
            route.credit += 1 / len(winners)
        for other in winners:
            if other != name and best > 0:
                route.lost_to[other] += 1
                if len(some := route.examples.setdefault(other, [])) < _MAX_EXAMPLES:
                    some.append(question)
    return route


def _description_warnings(tool: Tool) -> list[RoutingWarning]:
    """Return what is wrong with one description by itself."""
    hint = _describe_hint(tool.name)
    said = _distinctive_words(tool.description)
    if not tool.description.strip():
        return [RoutingWarning("empty", (tool.name,), f"{tool.name} has no description", hint)]
    if len(said) < _MIN_DESCRIPTION_WORDS:
        return [
            RoutingWarning(
                "generic", (tool.name,), f"{tool.name}: the description says too little: {tool.description}", hint
            )
        ]
    if len(tool.description) > _MAX_DESCRIPTION_LENGTH:
        length = len(tool.description)
        message = f"{tool.name}: the description has {length:,} characters, and assistants read it at every call"
        return [RoutingWarning("long", (tool.name,), message, hint)]
    return []


def _similarity_warnings(tools: Sequence[Tool]) -> list[RoutingWarning]:
    """Return the tools whose descriptions are one, and the pairs whose descriptions nearly are."""
    same: dict[str, list[str]] = {}
    for tool in tools:
        if text := " ".join(tool.description.split()).casefold():
            same.setdefault(text, []).append(tool.name)
    found = []
    for names in same.values():
        if len(names) > 1:
            message = f"{', '.join(names[:-1])} and {names[-1]} have the same description"
            found.append(
                RoutingWarning("same", tuple(names), message, f"Say what sets them apart. {_describe_hint(names[-1])}")
            )
    firsts = {names[0]: _distinctive_words(text) for text, names in same.items()}
    for (one, a), (other, b) in combinations(firsts.items(), 2):
        if a & b and len(a & b) >= _SIMILAR_SHARE * len(a | b):
            message = f"{one} and {other} are described in nearly the same words"
            found.append(
                RoutingWarning("alike", (one, other), message, f"Say what sets them apart. {_describe_hint(other)}")
            )
    return found


def _misrouting_warnings(route: Route) -> list[RoutingWarning]:
    """Return whether too many of a tool's questions went elsewhere."""
    matched = route.questions - route.unmatched
    lost = matched - route.right - route.tied / 2
    if matched < _MIN_QUESTIONS or lost <= _MAX_LOST_SHARE * matched:
        return []
    other, count = max(route.lost_to.items(), key=lambda item: (item[1], item[0]))
    message = (
        f"{route.tool}: {matched - route.right} of {matched} questions fit another tool as well or better,"
        f" {count} of them {other}, e.g. {route.examples[other][0]}"
    )
    hint = f"Say what sets it apart from {other}. {_describe_hint(route.tool)}"
    return [RoutingWarning("lost", (route.tool, other), message, hint)]


def _describe_hint(name: str) -> str:
    return f"Take one from its documents: bunko tool describe -n {shlex.quote(name)} --write"
