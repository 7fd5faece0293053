"""Generate Markdown pages and memos in Japanese and English, the same every time.

Words follow Zipf's law with a flattened head: the commonest noun is in about a quarter of the chunks, half of all
words occur once or twice. Pages have topics, so that words are clustered as in real documents.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from bench.vocabulary import COUNTERS, ENDS, ENGLISH, FORMS, GLUE, KANA, LINKS, LOANWORDS, NOUNS, SYLLABLES, VERBS

CHUNKS_PER_PAGE = 8
# Sections per page, in turn: all sizes occur, and any ten pages have eighty sections.
_SECTION_COUNTS = (6, 10, 4, 12, 8)
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
_RANK_OFFSET = 30


class Memo(NamedTuple):
    """A dated memo."""

    title: str
    date: str
    tags: tuple[str, ...]
    text: str


class _WordSampler:
    """Samples words; the probability of the n-th falls with n."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._cumulative_weights = list(
            itertools.accumulate(1 / (rank + _RANK_OFFSET) for rank in range(1, len(words) + 1))
        )

    def sample(self, rng: random.Random, count: int) -> Iterator[str]:
        return iter(rng.choices(self._words, cum_weights=self._cumulative_weights, k=count))


_MIXED = [word for pair in zip(NOUNS[::3], NOUNS[1::3], NOUNS[2::3], LOANWORDS, strict=False) for word in pair]
_SUBJECTS = _WordSampler([*_MIXED, *(word for word in NOUNS if word not in set(_MIXED))])
_VERBS = _WordSampler([verb + form for form in FORMS for verb in VERBS])
_ENGLISH = _WordSampler(ENGLISH)


def write(folder: Path, chunks: int) -> int:
    """Write pages of about `chunks` chunks into a folder; return their size in bytes."""
    total_bytes = 0
    for name, text in pages(chunks // CHUNKS_PER_PAGE):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        total_bytes += path.write_bytes(text.encode())
    return total_bytes


def pages(count: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """Yield names and Markdown texts; a page has eight sections on average, each of about 400 characters."""
    for page in range(count):
        # A page does not depend on the pages before it.
        rng = random.Random(seed * 1_000_003 + page)
        sections = _SECTION_COUNTS[page % len(_SECTION_COUNTS)]
        nouns = _SUBJECTS.sample(rng, 64 * sections)
        verbs = _VERBS.sample(rng, 26 * sections)
        words = _ENGLISH.sample(rng, 70 * sections)
        topic = [next(nouns), *rng.sample(NOUNS, 3), rng.choice(LOANWORDS), _rare_name(rng)]
        lines = [f"# {topic[1]}{topic[2]}と{topic[0]} {page}", ""]
        for section in range(1, sections + 1):
            lines += [f"## {section}. {rng.choice(topic)}の{next(nouns)}", ""]
            lines += ["".join(_sentence(rng, topic, nouns, verbs) for _ in range(rng.randint(8, 13))), ""]
            lines += _extra_block(rng, nouns, words)
        yield f"{page % 97:02d}/{page:06d}.md", "\n".join(lines)


def memos(count: int, seed: int = 11) -> Iterator[Memo]:
    """Yield dated memos, newest first, as in a changelog of many years; about 200 characters each."""
    today = date(2024, 12, 29)
    for index in range(count):
        rng = random.Random(seed * 1_000_003 + index)
        nouns, verbs, words = _SUBJECTS.sample(rng, 96), _VERBS.sample(rng, 40), _ENGLISH.sample(rng, 120)
        topic = [next(nouns), *rng.sample(NOUNS, 2), rng.choice(LOANWORDS), _rare_name(rng)]
        # Ten years, whatever the count: most days have no memo, or many.
        day = today - timedelta(days=index * 3650 // count)
        tags = tuple(dict.fromkeys(rng.choices(TAGS, weights=range(len(TAGS), 0, -1), k=rng.randint(0, 3))))
        lines = ["".join(_sentence(rng, topic, nouns, verbs) for _ in range(rng.randint(2, 6)))]
        if rng.random() < 0.3:
            lines += [f"- {next(nouns)}を{next(verbs)}" for _ in range(rng.randint(2, 4))]
        if rng.random() < 0.3:
            lines.append(" ".join(_english_sentence(rng, words) for _ in range(rng.randint(1, 3))))
        title = f"{rng.choice(topic)}の{next(nouns)}" if rng.random() < 0.8 else _english_sentence(rng, words)[:40]
        yield Memo(title, day.isoformat(), tags, "\n".join(lines))


def changelog(entries: Iterable[Memo]) -> Iterator[str]:
    """Yield memos as entries of a changelog."""
    for memo in entries:
        tags = f"  Tags: {', '.join(memo.tags)}\n" if memo.tags else ""
        body = "".join(f"  {line}\n" for line in memo.text.split("\n"))
        yield f"* {memo.title} {memo.date}\n{tags}\n{body}\n"


def write_jsonl(path: Path, count: int) -> None:
    """Write memos as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        for memo in memos(count):
            file.write(json.dumps(memo._asdict(), ensure_ascii=False) + "\n")


def _sentence(rng: random.Random, topic: list[str], nouns: Iterator[str], verbs: Iterator[str]) -> str:
    subject = rng.choice(topic) if rng.random() < 0.3 else next(nouns)
    end = rng.choice(ENDS) if rng.random() < 0.4 else "。"
    match rng.randrange(5):
        case 0:
            return f"{subject}の{next(nouns)}は、{next(nouns)}{next(nouns)}を{next(verbs)}{end}"
        case 1:
            return f"{next(nouns)}を{next(verbs)}{subject}の{next(nouns)}を{next(verbs)}{end}"
        case 2:
            return f"{subject}{next(nouns)}と{next(nouns)}に{next(verbs)}{end}"
        case 3:
            quantity = f"{rng.randint(2, 999)}{rng.choice(COUNTERS)}"
            return f"{_rare_name(rng)}の{subject}では{next(nouns)}が{quantity}で、{next(verbs)}{end}"
        case _:
            return f"{rng.choice(LINKS)}{subject}から{next(nouns)}へ{next(verbs)}{end}"


def _extra_block(rng: random.Random, nouns: Iterator[str], words: Iterator[str]) -> list[str]:
    kind = rng.random()
    if kind < 0.4:
        return [" ".join(_english_sentence(rng, words) for _ in range(rng.randint(2, 4))), ""]
    if kind < 0.55:
        name, first, second = f"{next(words)}_{next(words)}", next(words), next(words)
        return [
            "```python",
            f"def {name}({first}: int, {second}: str = {_invented_word(rng)!r}) -> {next(words).title()}:",
            f"    return {next(words)}.{next(words)}({first}, {second})[{rng.randint(0, 99)}]",
            "```",
            "",
        ]
    if kind < 0.7:
        rows = [f"| {next(nouns)} | {rng.randint(1, 9999)} | {_ticket_code(rng)} |" for _ in range(rng.randint(2, 6))]
        return ["| 項目 | 値 | 備考 |", "|---|---|---|", *rows, ""]
    if kind < 0.8:
        return [f"- {next(nouns)}: `{next(words)}{next(words).title()}`" for _ in range(rng.randint(2, 5))] + [""]
    return [f"詳細は{_ticket_code(rng)}と{_rare_name(rng)}を参照。", ""]


def _english_sentence(rng: random.Random, words: Iterator[str]) -> str:
    sentence = [next(words) if rng.random() < 0.6 else rng.choice(GLUE) for _ in range(rng.randint(7, 15))]
    if rng.random() < 0.3:
        sentence.append(_invented_word(rng).title())
    return " ".join(sentence).capitalize() + "."


def _ticket_code(rng: random.Random) -> str:
    return f"{rng.choice(('DEC', 'REQ', 'BUG', 'FAQ'))}-{rng.randint(1, 9999):04d}"


def _rare_name(rng: random.Random) -> str:
    # The long tail: names of people and products, most of which occur in one place only.
    return "".join(rng.choices(KANA, k=rng.randint(3, 4)))


def _invented_word(rng: random.Random) -> str:
    return "".join(rng.choices(SYLLABLES, k=3))
