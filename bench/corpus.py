"""A number of pages in, mixed Japanese and English Markdown out: a corpus of our own, the same every time.

Words follow Zipf's law with a flattened head: the commonest noun is in about a quarter of the chunks, half of all
words occur once or twice. Pages have topics, so that words come in bursts as they do in real documents.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from bench.vocabulary import COUNTERS, ENDS, ENGLISH, FORMS, GLUE, KANA, LINKS, LOANWORDS, NOUNS, SYLLABLES, VERBS

CHUNKS_A_PAGE = 8
# Sections of one page after the other: all sizes occur, and any ten pages have eighty.
_SECTIONS = (6, 10, 4, 12, 8)
TAGS = (
    "仕事",
    "会議",
    "開発",
    "読書",
    "健康",
    "旅行",
    "家族",
    "料理",
    "idea",
    "todo",
    "music",
    "budget",
    "学習",
    "買い物",
)
# Flattens the head of the curve (Zipf-Mandelbrot): without it the first word would be in every chunk.
_FLATTENED = 30


class Memo(NamedTuple):
    """A thought of one day."""

    title: str
    date: str
    tags: tuple[str, ...]
    text: str


class _Urn:
    """Draws words, the n-th of them with a chance that falls with n."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._chances = list(itertools.accumulate(1 / (rank + _FLATTENED) for rank in range(1, len(words) + 1)))

    def draws(self, chance: random.Random, number: int) -> Iterator[str]:
        return iter(chance.choices(self._words, cum_weights=self._chances, k=number))


_MIXED = [word for pair in zip(NOUNS[::3], NOUNS[1::3], NOUNS[2::3], LOANWORDS, strict=False) for word in pair]
_SUBJECTS = _Urn([*_MIXED, *(word for word in NOUNS if word not in set(_MIXED))])
_VERBS = _Urn([verb + form for form in FORMS for verb in VERBS])
_ENGLISH = _Urn(ENGLISH)


def write(folder: Path, chunks: int) -> int:
    """Write pages that come to about so many chunks into a folder; return their bytes."""
    written = 0
    for name, text in pages(chunks // CHUNKS_A_PAGE):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        written += path.write_bytes(text.encode())
    return written


def pages(number: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """Return names and Markdown texts; a page has eight sections on average, each about 400 characters."""
    for page in range(number):
        # A page is the same whatever came before it.
        chance = random.Random(seed * 1_000_003 + page)
        sections = _SECTIONS[page % len(_SECTIONS)]
        nouns = _SUBJECTS.draws(chance, 64 * sections)
        verbs = _VERBS.draws(chance, 26 * sections)
        words = _ENGLISH.draws(chance, 70 * sections)
        topic = [next(nouns), *chance.sample(NOUNS, 3), chance.choice(LOANWORDS), _name(chance)]
        lines = [f"# {topic[1]}{topic[2]}と{topic[0]} {page}", ""]
        for section in range(1, sections + 1):
            lines += [f"## {section}. {chance.choice(topic)}の{next(nouns)}", ""]
            lines += ["".join(_sentence(chance, topic, nouns, verbs) for _ in range(chance.randint(8, 13))), ""]
            lines += _extra(chance, nouns, words)
        yield f"{page % 97:02d}/{page:06d}.md", "\n".join(lines)


def memos(number: int, seed: int = 11) -> Iterator[Memo]:
    """Return dated memos, the newest first, as in a changelog that somebody keeps for years: 200 characters each."""
    today = date(2024, 12, 29)
    for at in range(number):
        chance = random.Random(seed * 1_000_003 + at)
        nouns, verbs, words = _SUBJECTS.draws(chance, 96), _VERBS.draws(chance, 40), _ENGLISH.draws(chance, 120)
        topic = [next(nouns), *chance.sample(NOUNS, 2), chance.choice(LOANWORDS), _name(chance)]
        # Ten years, whatever the number: most days have no memo, or many.
        day = today - timedelta(days=at * 3650 // number)
        tags = tuple(dict.fromkeys(chance.choices(TAGS, weights=range(len(TAGS), 0, -1), k=chance.randint(0, 3))))
        lines = ["".join(_sentence(chance, topic, nouns, verbs) for _ in range(chance.randint(2, 6)))]
        if chance.random() < 0.3:
            lines += [f"- {next(nouns)}を{next(verbs)}" for _ in range(chance.randint(2, 4))]
        if chance.random() < 0.3:
            lines.append(" ".join(_english(chance, words) for _ in range(chance.randint(1, 3))))
        title = f"{chance.choice(topic)}の{next(nouns)}" if chance.random() < 0.8 else _english(chance, words)[:40]
        yield Memo(title, day.isoformat(), tags, "\n".join(lines))


def changelog(found: Iterable[Memo]) -> Iterator[str]:
    """Return memos as the entries of a changelog."""
    for memo in found:
        tags = f"  Tags: {', '.join(memo.tags)}\n" if memo.tags else ""
        body = "".join(f"  {line}\n" for line in memo.text.split("\n"))
        yield f"* {memo.title} {memo.date}\n{tags}\n{body}\n"


def _sentence(chance: random.Random, topic: list[str], nouns: Iterator[str], verbs: Iterator[str]) -> str:
    subject = chance.choice(topic) if chance.random() < 0.3 else next(nouns)
    end = chance.choice(ENDS) if chance.random() < 0.4 else "。"
    match chance.randrange(5):
        case 0:
            return f"{subject}の{next(nouns)}は、{next(nouns)}{next(nouns)}を{next(verbs)}{end}"
        case 1:
            return f"{next(nouns)}を{next(verbs)}{subject}の{next(nouns)}を{next(verbs)}{end}"
        case 2:
            return f"{subject}{next(nouns)}と{next(nouns)}に{next(verbs)}{end}"
        case 3:
            many = f"{chance.randint(2, 999)}{chance.choice(COUNTERS)}"
            return f"{_name(chance)}の{subject}では{next(nouns)}が{many}で、{next(verbs)}{end}"
        case _:
            return f"{chance.choice(LINKS)}{subject}から{next(nouns)}へ{next(verbs)}{end}"


def _extra(chance: random.Random, nouns: Iterator[str], words: Iterator[str]) -> list[str]:
    kind = chance.random()
    if kind < 0.4:
        return [" ".join(_english(chance, words) for _ in range(chance.randint(2, 4))), ""]
    if kind < 0.55:
        name, first, second = f"{next(words)}_{next(words)}", next(words), next(words)
        return [
            "```python",
            f"def {name}({first}: int, {second}: str = {_made_up(chance)!r}) -> {next(words).title()}:",
            f"    return {next(words)}.{next(words)}({first}, {second})[{chance.randint(0, 99)}]",
            "```",
            "",
        ]
    if kind < 0.7:
        rows = [f"| {next(nouns)} | {chance.randint(1, 9999)} | {_code(chance)} |" for _ in range(chance.randint(2, 6))]
        return ["| 項目 | 値 | 備考 |", "|---|---|---|", *rows, ""]
    if kind < 0.8:
        return [f"- {next(nouns)}: `{next(words)}{next(words).title()}`" for _ in range(chance.randint(2, 5))] + [""]
    return [f"詳細は{_code(chance)}と{_name(chance)}を参照。", ""]


def _english(chance: random.Random, words: Iterator[str]) -> str:
    found = [next(words) if chance.random() < 0.6 else chance.choice(GLUE) for _ in range(chance.randint(7, 15))]
    if chance.random() < 0.3:
        found.append(_made_up(chance).title())
    return " ".join(found).capitalize() + "."


def _code(chance: random.Random) -> str:
    return f"{chance.choice(('DEC', 'REQ', 'BUG', 'FAQ'))}-{chance.randint(1, 9999):04d}"


def _name(chance: random.Random) -> str:
    # The long tail: names of people and products, most of which occur in one place only.
    return "".join(chance.choices(KANA, k=chance.randint(3, 4)))


def _made_up(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=3))
