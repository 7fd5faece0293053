"""Passages and a token budget in, one page of them and where the next one begins out."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bunko.errors import QueryError
from bunko.search.passages import Passage
from bunko.text.hidden_chars import clean
from bunko.text.sentences import ends
from bunko.text.token_count import tokens


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins: a window of hits, a passage in it, a character in that."""

    first: int = 0
    passage: int = 0
    character: int = 0
    generation: int = 0

    def written(self, question: str) -> str:
        """Return the cursor as a client carries it; it fits this question alone."""
        numbers = [self.first, self.passage, self.character, self.generation]
        return base64.urlsafe_b64encode(json.dumps([_digest(question), *numbers]).encode()).decode().rstrip("=")


def read_cursor(text: str, question: str) -> Cursor:
    """Return what a client carried, or say that it is not ours."""
    try:
        padded = text + "=" * (-len(text) % 4)
        digest, *numbers = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
        first, passage, character, generation = (int(number) for number in numbers)
    except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error) as error:
        raise QueryError("This cursor was not made here", hint="Leave it out to start again.") from error
    if digest != _digest(question) or min(first, passage, character) < 0 or first > 1000:
        raise QueryError(
            "This cursor belongs to another question",
            hint="Repeat the call it came with, changing nothing but the cursor, or leave the cursor out.",
        )
    return Cursor(first, passage, character, generation)


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage as far as it fits a page."""

    passage: Passage
    text: str
    begins: bool  # at the passage's beginning, not where the last page stopped
    ends: bool


def page(
    passages: Sequence[Passage],
    begin: Cursor,
    *,
    budget: int,
    per_passage: int | None,
    frame: Callable[[Passage], int],
) -> tuple[list[Piece], Cursor | None]:
    """Return what fits, at least one piece, and where to go on; None if nothing is left of these passages.

    With `per_passage` each passage is only begun, and its rest is left to whoever asks for details. `frame` says what a
    passage costs beside its text.
    """
    pieces: list[Piece] = []
    left = budget
    for number in range(begin.passage, len(passages)):
        passage = passages[number]
        skipped = begin.character if number == begin.passage else 0
        text = clean(passage.text)[skipped:]
        around = frame(passage)
        room = left - around
        cost = tokens(text)
        if pieces and room < min(cost, budget // 8):
            return pieces, Cursor(begin.first, number, skipped, begin.generation)
        allowed = min(room, per_passage) if per_passage else room
        short = text if cost <= allowed else fitting(text, allowed)
        pieces.append(Piece(passage, short, begins=not skipped, ends=len(short) == len(text)))
        left -= around + (cost if short is text else tokens(short))
        if len(short) < len(text) and per_passage is None:
            return pieces, Cursor(begin.first, number, skipped + len(short), begin.generation)
    return pieces, None


def fitting(text: str, budget: int) -> str:
    """Return as much of a text's beginning as fits, cut after a sentence if one ends in the second half."""
    if tokens(text) <= budget:
        return text
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if tokens(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    last = max((end for end in ends(text[: low + 1]) if end <= low), default=0)
    return text[: last if last > low // 2 else low]


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:8]
