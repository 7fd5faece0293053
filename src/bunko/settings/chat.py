"""Declare the settings of chat models and of conversations with them."""

# No `from __future__ import annotations` here: `Setting` reads types and choices from the real annotations.
from typing import Literal

from bunko.settings.setting import Section, setting


class ChatSection(Section):
    """Which chat model answers questions, rewrites queries and writes summaries, and what an answer may cost."""

    provider: Literal["openrouter", "openai", "lmstudio", "ollama"] | None = setting(
        None,
        "Service that answers questions, rewrites queries and writes summaries. Not set: none, and nothing is sent",
    )
    model: str | None = setting(None, "Chat model. Not set: gpt-4o-mini on openrouter and openai")
    base_url: str | None = setting(
        None, "URL of an OpenAI-compatible server. Not set: the URL of the provider in [embedding]"
    )
    api_key: str = setting(
        "", "API key. Not set: the key of the provider in [embedding], unless base_url is set", secret=True
    )
    provider_order: tuple[str, ...] = setting((), "OpenRouter: providers to try, in this order")
    provider_sort: Literal["price", "throughput", "latency"] | None = setting(
        None, "OpenRouter: prefer providers by this criterion"
    )
    allow_fallbacks: bool | None = setting(None, "OpenRouter: fall back to other providers")
    data_collection: Literal["allow", "deny"] | None = setting(
        None, "OpenRouter: deny excludes providers that store requests"
    )
    max_tokens: int = setting(2000, "Maximum length of an answer, in tokens", low=1)
    temperature: float | None = setting(
        None, "Sampling temperature of answers. Not set: the default of the server", high=2
    )
    timeout: float = setting(60.0, "Maximum time without a word from the model, in seconds", low=0.1)
    max_rounds: int = setting(6, "How often the model may call tools for an answer", high=100)
    max_total_tokens: int = setting(
        100_000, "Tokens that the model may read and write for an answer before it has to answer", low=1
    )
    max_seconds: float = setting(120.0, "Maximum time of an answer, in seconds", low=1)
    max_cost: float | None = setting(
        None, "What an answer may cost, by input_price and output_price, before the model has to answer"
    )
    input_price: float = setting(0.0, "Price of a million tokens that the model reads")
    output_price: float = setting(0.0, "Price of a million tokens that the model writes")
    history_tokens: int = setting(8000, "How much of a conversation the model is reminded of, in tokens")
    allowed_tools: tuple[str, ...] = setting(
        (), "Tools that change something and that the model may call by itself: add_memo, calendar_*. Empty: none"
    )
    confirmed_tools: tuple[str, ...] = setting(
        (), "Tools that change something and that bunko chat may call after you have agreed to the call. Empty: none"
    )
    keep_history: bool = setting(
        True, "Keep what was asked and answered in bunko chat in your data folder, to resume it later"
    )
