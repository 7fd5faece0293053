"""Return the sentence of a hit that is nearest to the query by vectors."""

from __future__ import annotations

import itertools

from bunko.text.sentences import passage_ranges
from bunko.types import Hit


def nearest_sentence(hit: Hit) -> str:
    """Return the nearest sentence without the headings above it; empty if none is known or only a title is near."""
    if hit.sentence is None:
        return ""
    text = hit.chunk.text_in_context(hit.title)
    ranges = passage_ranges(text)
    if hit.sentence >= len(ranges):
        return ""
    start, end = ranges[hit.sentence]
    body_start = len(text) - len(hit.chunk.text)  # the title and the headings above the text have vectors too
    lines = text[max(start, body_start) : end].splitlines()
    headings = {"", *hit.chunk.headings(hit.title)}
    return "\n".join(itertools.dropwhile(lambda line: line.strip("# \t") in headings, lines)).strip()
