"""Tell which chat models the settings could use, and what each lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bunko.llm.connection import PRESETS
from bunko.settings import Settings


@dataclass(frozen=True, slots=True)
class ChatStatus:
    """The state of one chat provider under the current settings."""

    provider: str
    is_used: bool
    model: str  # empty if none is set
    missing: Literal["", "key", "model"]
    key_name: str  # the environment variable of its key; empty if it needs none


def chat_statuses(settings: Settings) -> list[ChatStatus]:
    """Return the status of all chat providers; nothing is sent to them."""
    chat, statuses = settings.chat, []
    for provider, preset in PRESETS.items():
        is_used = chat.provider == provider
        model = (chat.model if is_used else "") or preset.model
        has_own_server = is_used and bool(chat.base_url)
        secret = (chat.api_key if is_used else "") or getattr(settings.embedding, f"{provider}_api_key", "")
        missing: Literal["", "key", "model"] = ""
        if preset.key_variable and not secret and not has_own_server:
            missing = "key"
        elif not model:
            missing = "model"
        statuses.append(ChatStatus(provider, is_used, model, missing, preset.key_variable))
    return statuses
