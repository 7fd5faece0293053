"""Declare the settings of answers to questions."""

# No `from __future__ import annotations` here: `Setting` reads types from the real annotations.
from bunko.settings.setting import Section, setting


class AskSection(Section):
    """How questions are answered; the chat model is the one in [chat]."""

    top_k: int = setting(8, "Number of passages that an answer may cite", low=1, high=50)
    model: str | None = setting(None, "Model to use. Not set: chat.model")
    max_tokens: int = setting(1000, "Maximum length of the answer, in tokens", low=1)
    temperature: float | None = setting(0.0, "Sampling temperature. Not set: the default of the server", high=2)
    timeout: float = setting(60.0, "Maximum time to wait for an answer, in seconds", low=0.1)
    max_input_chars: int = setting(16_000, "Maximum number of characters of the passages to send", low=100)
