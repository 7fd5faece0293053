"""Return the sentence of a hit that is nearest to the query by vectors."""

from __future__ import annotations

import itertools

from bunko.text.sentences import passage_ranges
from bunko.types import Hit


def nearest_sentence(hit: Hit) -> str:
    """Return the nearest sentence without the headings above it; empty if none is known or only a title is near."""
    if hit.sentence is None:
        return ""
    text, start, end = _nearest_range(hit, hit.sentence)
    body_start = len(text) - len(hit.chunk.text)  # the title and the headings above the text have vectors too
    lines = text[max(start, body_start) : end].splitlines()
    headings = {"", *hit.chunk.headings(hit.title)}
    return "\n".join(itertools.dropwhile(lambda line: line.strip("# \t") in headings, lines)).strip()


def nearest_heading(hit: Hit) -> str:
    """Return the lowest heading of the nearest passage, for a passage of headings alone; empty if none is known."""
    if hit.sentence is None:
        return ""
    text, start, end = _nearest_range(hit, hit.sentence)
    return next((heading for line in reversed(text[start:end].splitlines()) if (heading := line.strip("# \t"))), "")


def _nearest_range(hit: Hit, position: int) -> tuple[str, int, int]:
    """Return the text that was embedded, and the range of a passage in it; empty if it has no such passage."""
    text = hit.chunk.text_in_context(hit.title)
    ranges = passage_ranges(text)
    return (text, *ranges[position]) if position < len(ranges) else (text, 0, 0)
