"""Measure whether an assistant can choose the right tool by the tools' names and descriptions.

A question made from a tool's heading is routed to the tool whose name and description share the rarest words with it:
BM25 over so few and so short texts is the sum of the idf of the shared words. An assistant knows more than that, but
where the words mislead, it has little else to choose by.
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

from bunko.text import analyzer
from bunko.text.nouns import is_boilerplate, plain_text
from bunko.types import Tool
from bunko.types.records import ChunkRow

# Questions per tool: enough to distinguish 60 % from 80 %.
_MAX_QUESTIONS = 60
_MAX_QUESTION_LENGTH = 80
# A heading of fewer words is combined with its document's title.
_MIN_HEADING_WORDS = 2
# With fewer questions, a share is not significant.
_MIN_QUESTIONS = 3
# Warn about a tool if more than this share of its matched questions go to other tools.
_MAX_LOST_SHARE = 1 / 3
# Descriptions that share this many of their words count as the same.
_SIMILAR_SHARE = 0.7
_MIN_DESCRIPTION_WORDS = 2
_MAX_DESCRIPTION_LENGTH = 600
_MAX_EXAMPLES = 3
# Markdown characters that remain in a heading.
_MARKDOWN_MARKS = re.compile(r"[\[\]*`\\#|]+")
# Words that fit any tool: they do not distinguish tools and do not count as a description.
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
    """Where the questions of one tool were routed."""

    tool: str
    questions: int = 0
    right: int = 0
    tied: int = 0  # several descriptions fit equally well, this tool's among them
    unmatched: int = 0  # no description shares a word with the question
    credit: float = 0.0  # right ones, plus the expected share of ties and unmatched ones by guessing
    lost_to: Counter[str] = field(default_factory=Counter)  # how many questions each other tool won or tied
    examples: dict[str, list[str]] = field(default_factory=dict)  # questions each other tool won or tied

    @property
    def share(self) -> float:
        """Return the share of questions routed to the right tool."""
        return self.credit / self.questions if self.questions else 0.0


@dataclass(frozen=True, slots=True)
class RoutingWarning:
    """A problem that would mislead an assistant."""

    code: str  # empty, generic, long, same, alike, lost
    tools: tuple[str, ...]
    message: str
    hint: str = ""


@dataclass(slots=True)
class RoutingReport:
    """The routes of all tools, and warnings about their descriptions."""

    routes: list[Route]
    warnings: list[RoutingWarning]
    empty_tools: list[str]  # tools without questions

    @property
    def accuracy(self) -> float | None:
        """Return the share of all questions routed right; None with one tool or no questions."""
        total = sum(route.questions for route in self.routes)
        return sum(route.credit for route in self.routes) / total if total and len(self.routes) > 1 else None

    @property
    def matched_counts(self) -> tuple[float, int]:
        """Return how many of the questions that match a description were routed right, and how many match."""
        unmatched = sum(route.unmatched for route in self.routes)
        right = sum(route.credit for route in self.routes) - unmatched / max(1, len(self.routes))
        return right, sum(route.questions for route in self.routes) - unmatched


def make_questions(chunks: Iterable[ChunkRow], *, limit: int = _MAX_QUESTIONS) -> list[str]:
    """Return distinct questions made from the titles and headings of chunks, spread evenly over them."""
    questions: dict[str, None] = {}
    for row in chunks:
        for heading in (row.title, *row.chunk.heading_path):
            text = _plain_heading(heading)
            if not text or is_boilerplate(heading) or is_boilerplate(text):
                continue
            title = _plain_heading(row.title)
            if len(_spellings(text)) < _MIN_HEADING_WORDS and title not in ("", text) and not is_boilerplate(title):
                text = f"{title} {text}"
            if _distinctive_words(text):
                questions.setdefault(text[:_MAX_QUESTION_LENGTH])
    distinct = list(questions)
    if len(distinct) <= limit:
        return distinct
    return [distinct[index * len(distinct) // limit] for index in range(limit)]


def measure_routing(tools: Sequence[Tool], questions: Mapping[str, Sequence[str]], *, flags: str = "") -> RoutingReport:
    """Route each tool's questions to the best-fitting description, and return the routes and warnings.

    `questions` are keyed by tool name; `flags` select the library in the commands of hints.
    """
    tool_words = {tool.name: _distinctive_words(f"{tool.name} {tool.description}") for tool in tools}
    texts = list(tool_words.values())
    document_counts = Counter(word for text in texts for word in text)
    idf = {word: log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in document_counts.items()}
    routes = [_route_questions(tool.name, questions.get(tool.name, ()), tool_words, idf) for tool in tools]
    warnings = [warning for tool in tools for warning in _description_warnings(tool)]
    warnings += _similarity_warnings(tools)
    if len(tools) > 1:
        warnings += [warning for route in routes for warning in _misrouting_warnings(route)]
    warnings = [replace(warning, hint=warning.hint + flags) for warning in warnings]
    return RoutingReport(routes, warnings, [route.tool for route in routes if not route.questions])


def _plain_heading(heading: str) -> str:
    return " ".join(_MARKDOWN_MARKS.sub(" ", plain_text(heading)).split())


def _distinctive_words(text: str) -> frozenset[str]:
    """Return the words of a text that distinguish tools: neither numbers nor generic words."""
    return frozenset(word for word in _spellings(text) if not word.isdigit()) - _generic_words()


def _spellings(text: str) -> set[str]:
    return {term.spelling for run in analyzer.runs(text) for term in analyzer.terms(run)}


@cache
def _generic_words() -> frozenset[str]:
    return frozenset(_spellings(_GENERIC_TEXT))


def _route_questions(
    name: str, questions: Sequence[str], tool_words: Mapping[str, frozenset[str]], idf: Mapping[str, float]
) -> Route:
    route = Route(name, questions=len(questions))
    for question in questions:
        query_words = sorted(_distinctive_words(question))
        scores = {tool: sum(idf[word] for word in query_words if word in words) for tool, words in tool_words.items()}
        best = max(scores.values())
        winners = [tool for tool, score in scores.items() if isclose(score, best)]
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
                examples = route.examples.setdefault(other, [])
                if len(examples) < _MAX_EXAMPLES:
                    examples.append(question)
    return route


def _description_warnings(tool: Tool) -> list[RoutingWarning]:
    """Return the problems of one description by itself."""
    hint = _describe_hint(tool.name)
    words = _distinctive_words(tool.description)
    if not tool.description.strip():
        return [RoutingWarning("empty", (tool.name,), f"{tool.name} has no description", hint)]
    if len(words) < _MIN_DESCRIPTION_WORDS:
        return [
            RoutingWarning(
                "generic", (tool.name,), f"{tool.name}: the description is too general: {tool.description}", hint
            )
        ]
    if len(tool.description) > _MAX_DESCRIPTION_LENGTH:
        length = len(tool.description)
        message = f"{tool.name}: the description has {length:,} characters, which assistants read with every call"
        return [RoutingWarning("long", (tool.name,), message, hint)]
    return []


def _similarity_warnings(tools: Sequence[Tool]) -> list[RoutingWarning]:
    """Warn about tools with the same description, and pairs with nearly the same one."""
    names_by_text: dict[str, list[str]] = {}
    for tool in tools:
        if text := " ".join(tool.description.split()).casefold():
            names_by_text.setdefault(text, []).append(tool.name)
    warnings = []
    for names in names_by_text.values():
        if len(names) > 1:
            message = f"{', '.join(names[:-1])} and {names[-1]} have the same description"
            warnings.append(
                RoutingWarning("same", tuple(names), message, f"Describe how they differ. {_describe_hint(names[-1])}")
            )
    words_by_tool = {names[0]: _distinctive_words(text) for text, names in names_by_text.items()}
    for (tool_a, words_a), (tool_b, words_b) in combinations(words_by_tool.items(), 2):
        if words_a & words_b and len(words_a & words_b) >= _SIMILAR_SHARE * len(words_a | words_b):
            message = f"{tool_a} and {tool_b} are described in nearly the same words"
            warnings.append(
                RoutingWarning(
                    "alike", (tool_a, tool_b), message, f"Describe how they differ. {_describe_hint(tool_b)}"
                )
            )
    return warnings


def _misrouting_warnings(route: Route) -> list[RoutingWarning]:
    """Warn if too many of a tool's questions were routed to other tools."""
    matched = route.questions - route.unmatched
    lost = matched - route.right - route.tied / 2
    if matched < _MIN_QUESTIONS or lost <= _MAX_LOST_SHARE * matched:
        return []
    other, count = max(route.lost_to.items(), key=lambda item: (item[1], item[0]))
    message = (
        f"{route.tool}: {matched - route.right} of {matched} questions fit another tool as well or better,"
        f" {count} of them {other}, e.g. {route.examples[other][0]}"
    )
    hint = f"Describe how it differs from {other}. {_describe_hint(route.tool)}"
    return [RoutingWarning("lost", (route.tool, other), message, hint)]


def _describe_hint(name: str) -> str:
    return f"Generate one from its documents: bunko tool describe -n {shlex.quote(name)} --write"
