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

from bunko.records import Found
from bunko.text import analyzer
from bunko.text.nouns import is_boilerplate, plain
from bunko.types import Tool

# Questions for each tool: enough to tell 60 % from 80 %.
_MOST_QUESTIONS = 60
_LONGEST_QUESTION = 80
# A heading of fewer words is asked together with its document's title.
_TELLING = 2
# Below so many questions a share means nothing.
_ENOUGH = 3
# A tool is in trouble if this share of the questions that words can route go elsewhere.
_LOST = 1 / 3
# Descriptions that share so many of their words are one description.
_ALIKE = 0.7
_FEWEST_WORDS = 2
_LONGEST = 600
_EXAMPLES = 3
# What is left of Markdown in a heading.
_MARKS = re.compile(r"[\[\]*`\\#|]+")
# Words that describe any tool: they neither tell it from another nor count as a description.
_GENERIC = """
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
    taken: Counter[str] = field(default_factory=Counter)  # which other tool took how many; a tie takes a part
    examples: dict[str, list[str]] = field(default_factory=dict)  # which other tool took what

    @property
    def share(self) -> float:
        """Return the share of questions that went to the right tool."""
        return self.credit / self.questions if self.questions else 0.0


@dataclass(frozen=True, slots=True)
class Warned:
    """One thing that would mislead an assistant."""

    code: str  # empty, generic, long, same, alike, lost
    tools: tuple[str, ...]
    message: str
    hint: str = ""


@dataclass(slots=True)
class Routing:
    """What was measured and what is wrong."""

    routes: list[Route]
    warnings: list[Warned]
    silent: list[str]  # tools that hold nothing to ask about

    @property
    def accuracy(self) -> float | None:
        """Return the share of all questions that went right; None where there is no choice or no question."""
        asked = sum(route.questions for route in self.routes)
        return sum(route.credit for route in self.routes) / asked if asked and len(self.routes) > 1 else None

    @property
    def matched(self) -> tuple[float, int]:
        """Return how many questions that share a word with a description went right, and how many those are."""
        guessed = sum(route.unmatched for route in self.routes)
        right = sum(route.credit for route in self.routes) - guessed / max(1, len(self.routes))
        return right, sum(route.questions for route in self.routes) - guessed


def questions(chunks: Iterable[Found], *, most: int = _MOST_QUESTIONS) -> list[str]:
    """Return questions that some chunks answer, made from titles and headings, spread over them, each once."""
    found: dict[str, None] = {}
    for one in chunks:
        headings = [one.title, *one.chunk.heading_path]
        for heading in headings:
            text = _plain(heading)
            if not text or is_boilerplate(text):
                continue
            title = _plain(one.title)
            if len(_spelt(text)) < _TELLING and title not in ("", text) and not is_boilerplate(title):
                text = f"{title} {text}"
            if _telling(text):
                found.setdefault(text[:_LONGEST_QUESTION])
    every = list(found)
    return [every[number * len(every) // most] for number in range(most)] if len(every) > most else every


def measure(tools: Sequence[Tool], asked: Mapping[str, Sequence[str]], *, flags: str = "") -> Routing:
    """Send each tool's questions, by its name, to the description that fits best, and tell what goes wrong.

    `flags` name the library to the commands that hints speak of.
    """
    own = {tool.name: _telling(f"{tool.name} {tool.description}") for tool in tools}
    idf = _idf(list(own.values()))
    routes = [_route(tool.name, asked.get(tool.name, ()), own, idf) for tool in tools]
    warnings = [warned for tool in tools for warned in _described(tool)]
    warnings += _alike(tools)
    if len(tools) > 1:
        warnings += [warned for route in routes for warned in _lost(route)]
    warnings = [replace(warned, hint=warned.hint + flags) for warned in warnings]
    return Routing(routes, warnings, [route.tool for route in routes if not route.questions])


def _plain(heading: str) -> str:
    return " ".join(_MARKS.sub(" ", plain(heading)).split())


def _telling(text: str) -> frozenset[str]:
    """Return the words of a text that can tell one tool from another; numbers and generic ones cannot."""
    return frozenset(one for one in _spelt(text) if not one.isdigit()) - _generic()


def _spelt(text: str) -> set[str]:
    return {term.spelling for run in analyzer.runs(text) for term in analyzer.terms(run)}


@cache
def _generic() -> frozenset[str]:
    return frozenset(_spelt(_GENERIC))


def _idf(texts: Sequence[frozenset[str]]) -> dict[str, float]:
    held = Counter(key for text in texts for key in text)
    return {key: log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for key, count in held.items()}


def _route(name: str, asked: Sequence[str], own: Mapping[str, frozenset[str]], idf: Mapping[str, float]) -> Route:
    route = Route(name, questions=len(asked))
    for question in asked:
        wanted = sorted(_telling(question))
        scores = {other: sum(idf[key] for key in wanted if key in has) for other, has in own.items()}
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
                route.taken[other] += 1
                if len(some := route.examples.setdefault(other, [])) < _EXAMPLES:
                    some.append(question)
    return route


def _described(tool: Tool) -> list[Warned]:
    """Return what is wrong with one description by itself."""
    hint = _better(tool.name)
    said = _telling(tool.description)
    if not tool.description.strip():
        return [Warned("empty", (tool.name,), f"{tool.name} has no description", hint)]
    if len(said) < _FEWEST_WORDS:
        return [
            Warned("generic", (tool.name,), f"{tool.name}: the description says too little: {tool.description}", hint)
        ]
    if len(tool.description) > _LONGEST:
        length = len(tool.description)
        message = f"{tool.name}: the description has {length:,} characters, and assistants read it at every call"
        return [Warned("long", (tool.name,), message, hint)]
    return []


def _alike(tools: Sequence[Tool]) -> list[Warned]:
    """Return the tools whose descriptions are one, and the pairs whose descriptions nearly are."""
    same: dict[str, list[str]] = {}
    for tool in tools:
        if text := " ".join(tool.description.split()).casefold():
            same.setdefault(text, []).append(tool.name)
    found = []
    for names in same.values():
        if len(names) > 1:
            message = f"{', '.join(names[:-1])} and {names[-1]} have the same description"
            found.append(Warned("same", tuple(names), message, f"Say what sets them apart. {_better(names[-1])}"))
    firsts = {names[0]: _telling(text) for text, names in same.items()}
    for (one, a), (other, b) in combinations(firsts.items(), 2):
        if a & b and len(a & b) >= _ALIKE * len(a | b):
            message = f"{one} and {other} are described in nearly the same words"
            found.append(Warned("alike", (one, other), message, f"Say what sets them apart. {_better(other)}"))
    return found


def _lost(route: Route) -> list[Warned]:
    """Return whether too many of a tool's questions went elsewhere."""
    matched = route.questions - route.unmatched
    lost = matched - route.right - route.tied / 2
    if matched < _ENOUGH or lost <= _LOST * matched:
        return []
    other, count = max(route.taken.items(), key=lambda item: (item[1], item[0]))
    message = (
        f"{route.tool}: {matched - route.right} of {matched} questions fit another tool as well or better,"
        f" {count} of them {other}, e.g. {route.examples[other][0]}"
    )
    hint = f"Say what sets it apart from {other}. {_better(route.tool)}"
    return [Warned("lost", (route.tool, other), message, hint)]


def _better(name: str) -> str:
    return f"Take one from its documents: bunko tool describe -n {shlex.quote(name)} --write"
