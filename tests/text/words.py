"""The words that a text comes to."""

from __future__ import annotations

from bunko.text import analyzer


def spellings(text: str) -> list[str]:
    """Return the terms of a text, in their order."""
    return [term.spelling for run in analyzer.runs(text) for term in analyzer.terms(run)]
