"""Cut results into pages that fit a token budget."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bunko.errors import QueryError
from bunko.search.passages import Passage
from bunko.search.request import MAX_HITS
from bunko.text.labels import remove_hidden_chars
from bunko.text.sentences import sentence_ends
from bunko.text.token_count import estimate_tokens, max_tokens

# The digest of a request, and four numbers; int() refuses thousands of digits.
_CURSOR = re.compile(r"([0-9a-f]{8})" + r"\.([0-9]{1,100})" * 4)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page starts: the first hit, a passage among its passages, a character of that passage."""

    first_hit: int = 0
    passage_index: int = 0
    char_offset: int = 0
    generation: int = 0

    def encode(self, request_key: str) -> str:
        """Return the cursor as text for the client, valid for this request only."""
        numbers = [self.first_hit, self.passage_index, self.char_offset, self.generation]
        return ".".join([_digest(request_key), *map(str, numbers)])


def parse_cursor(text: str) -> tuple[Cursor, str]:
    """Return the cursor that a client sent, and the digest of the request that it belongs to."""
    match = _CURSOR.fullmatch(text.strip())
    if match is None:
        raise QueryError("The cursor is invalid", hint="Leave it out to start again.")
    first, passage, character, generation = (int(number) for number in match.groups()[1:])
    if first > MAX_HITS:
        raise _foreign_cursor_error()
    return Cursor(first, passage, character, generation), match[1]


def hide_generation(cursor: str) -> str:
    """Return a cursor without the generation of the library."""
    return f"{cursor.rpartition('.')[0]}.0" if cursor else ""


def check_cursor(digest: str, request_key: str) -> None:
    """Raise an error if a cursor with this digest belongs to another request."""
    if digest != _digest(request_key):
        raise _foreign_cursor_error()


def _foreign_cursor_error() -> QueryError:
    return QueryError(
        "The cursor belongs to another request",
        hint="Repeat the original call with only the cursor added, or leave the cursor out.",
    )


class PageItem(NamedTuple):
    """The part of a passage that fits on a page."""

    passage: Passage
    text: str
    has_start: bool  # starts at the passage's beginning, not where the last page stopped
    has_end: bool
    more_in_document: int = 0  # hits of the same document that were left out in favour of others


def build_page(
    passages: Sequence[Passage],
    start: Cursor,
    *,
    token_budget: int | None,
    tokens_per_passage: int | None,
    overhead_tokens: Callable[[Passage], int],
) -> tuple[list[PageItem], Cursor | None]:
    """Return the items that fit on a page, at least one, and the start of the next page, None after the last.

    With `tokens_per_passage` each passage is cut to that length and not continued on the next page. `overhead_tokens`
    returns what a passage costs besides its text. Without a budget, all passages are returned as they are stored;
    with one, a model will read them, so hidden characters are removed.
    """
    if token_budget is None:
        return [PageItem(passage, passage.text, has_start=True, has_end=True) for passage in passages], None
    if not (start.char_offset or tokens_per_passage):
        rest = passages[start.passage_index :]
        # Most pages are far below their budget, and then there is nothing to count.
        tokens = sum([max_tokens(len(passage.text)) for passage in rest])
        if tokens <= token_budget and tokens + sum(map(overhead_tokens, rest)) <= token_budget:
            texts = [remove_hidden_chars(passage.text) for passage in rest]
            return [PageItem(*item, has_start=True, has_end=True) for item in zip(rest, texts, strict=True)], None
    items: list[PageItem] = []
    tokens_left = token_budget
    for index in range(start.passage_index, len(passages)):
        passage = passages[index]
        offset = start.char_offset if index == start.passage_index else 0
        text = remove_hidden_chars(passage.text)[offset:]
        overhead = overhead_tokens(passage)
        available = tokens_left - overhead
        cost = estimate_tokens(text)
        if items and available < min(cost, token_budget // 8):
            return items, Cursor(start.first_hit, index, offset, start.generation)
        allowed = min(available, tokens_per_passage) if tokens_per_passage else available
        shown_text = text if cost <= allowed else truncate_to_budget(text, allowed)
        items.append(PageItem(passage, shown_text, has_start=not offset, has_end=len(shown_text) == len(text)))
        tokens_left -= overhead + (cost if shown_text is text else estimate_tokens(shown_text))
        if len(shown_text) < len(text) and tokens_per_passage is None:
            return items, Cursor(start.first_hit, index, offset + len(shown_text), start.generation)
    return items, None


def truncate_to_budget(text: str, token_budget: int) -> str:
    """Return the longest beginning of a text that fits, cut after a sentence if one ends in the second half of it."""
    if estimate_tokens(text) <= token_budget:
        return text
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= token_budget:
            low = middle
        else:
            high = middle - 1
    sentence_end = max((end for end in sentence_ends(text[: low + 1]) if end <= low), default=0)
    return text[: sentence_end if sentence_end > low // 2 else low]


def _digest(request_key: str) -> str:
    return hashlib.sha256(request_key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
