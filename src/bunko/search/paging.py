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
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.text.sentences import sentence_ends
from bunko.text.token_count import estimate_tokens


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins: a window of hits, a passage in it, a character in that."""

    first_hit: int = 0
    passage_index: int = 0
    char_offset: int = 0
    generation: int = 0

    def encode(self, request_key: str) -> str:
        """Return the cursor as a client carries it; it fits this question alone."""
        numbers = [self.first_hit, self.passage_index, self.char_offset, self.generation]
        return base64.urlsafe_b64encode(json.dumps([_digest(request_key), *numbers]).encode()).decode().rstrip("=")


def decode_cursor(text: str, request_key: str) -> Cursor:
    """Return what a client carried, or say that it is not ours."""
    try:
        padded = text + "=" * (-len(text) % 4)
        digest, *numbers = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
        first, passage, character, generation = (int(number) for number in numbers)
    except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error) as error:
        raise QueryError("This cursor was not made here", hint="Leave it out to start again.") from error
    if digest != _digest(request_key) or min(first, passage, character) < 0 or first > 1000:
        raise QueryError(
            "This cursor belongs to another question",
            hint="Repeat the call it came with, changing nothing but the cursor, or leave the cursor out.",
        )
    return Cursor(first, passage, character, generation)


@dataclass(frozen=True, slots=True)
class PageItem:
    """A passage as far as it fits a page."""

    passage: Passage
    text: str
    has_start: bool  # at the passage's beginning, not where the last page stopped
    has_end: bool


def build_page(
    passages: Sequence[Passage],
    start: Cursor,
    *,
    token_budget: int,
    tokens_per_passage: int | None,
    overhead_tokens: Callable[[Passage], int],
) -> tuple[list[PageItem], Cursor | None]:
    """Return what fits, at least one piece, and where to go on; None if nothing is left of these passages.

    With `per_passage` each passage is only begun, and its rest is left to whoever asks for details. `frame` says what a
    passage costs beside its text.
    """
    pieces: list[PageItem] = []
    left = token_budget
    for number in range(start.passage_index, len(passages)):
        passage = passages[number]
        skipped = start.char_offset if number == start.passage_index else 0
        text = remove_hidden_chars(passage.text)[skipped:]
        around = overhead_tokens(passage)
        room = left - around
        cost = estimate_tokens(text)
        if pieces and room < min(cost, token_budget // 8):
            return pieces, Cursor(start.first_hit, number, skipped, start.generation)
        allowed = min(room, tokens_per_passage) if tokens_per_passage else room
        short = text if cost <= allowed else truncate_to_budget(text, allowed)
        pieces.append(PageItem(passage, short, has_start=not skipped, has_end=len(short) == len(text)))
        left -= around + (cost if short is text else estimate_tokens(short))
        if len(short) < len(text) and tokens_per_passage is None:
            return pieces, Cursor(start.first_hit, number, skipped + len(short), start.generation)
    return pieces, None


def truncate_to_budget(text: str, token_budget: int) -> str:
    """Return as much of a text's beginning as fits, cut after a sentence if one ends in the second half."""
    if estimate_tokens(text) <= token_budget:
        return text
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= token_budget:
            low = middle
        else:
            high = middle - 1
    last = max((end for end in sentence_ends(text[: low + 1]) if end <= low), default=0)
    return text[: last if last > low // 2 else low]


def _digest(request_key: str) -> str:
    return hashlib.sha256(request_key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
