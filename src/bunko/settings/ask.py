"""Declare the settings of the passages that questions are answered from."""

# No `from __future__ import annotations` here: `Setting` reads types from the real annotations.
from bunko.settings.setting import Section, setting


class AskSection(Section):
    """Answers from one search: quotes if no chat model is set, and Library.ask with the model in [chat]."""

    top_k: int = setting(8, "Number of passages that an answer may cite", low=1, high=50)
    max_input_chars: int = setting(
        16_000, "Library.ask: maximum number of characters of the passages that are sent to the model", low=100
    )
