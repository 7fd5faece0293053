"""Describe how a chat model is reached: its server, its key, and what every request to it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bunko.runtime.remote import NOT_READY_STATUS, RemoteFailure, key_problem, strip_credentials


class ChatPreset(NamedTuple):
    """A server with a preset name."""

    model: str = ""  # the default model; empty for local servers, whose models are unknown
    key_variable: str = ""  # the environment variable of its key; a local server needs none


PRESETS = {
    "openrouter": ChatPreset("openai/gpt-4o-mini", "OPENROUTER_API_KEY"),
    "openai": ChatPreset("gpt-4o-mini", "OPENAI_API_KEY"),
    "lmstudio": ChatPreset(),
    "ollama": ChatPreset(),
}


@dataclass(frozen=True, slots=True)
class ChatConnection:
    """A model of a provider, and how it is reached."""

    provider: str
    model: str
    address: str
    secret: str = field(default="", repr=False)
    needs_key: bool = True  # if the provider does; a server at another address may need none
    preferences: Mapping[str, Any] = field(default_factory=dict)  # OpenRouter's provider preferences

    @property
    def label(self) -> str:
        """The name of the model, for people."""
        return f"{self.provider}:{self.model}" if self.model else self.provider

    @property
    def fix(self) -> str:
        """What to do if the server rejects the key."""
        return f"Set {PRESETS[self.provider].key_variable or 'chat.api_key'} to a valid key."

    def request_options(self, *, max_tokens: int, temperature: float | None) -> dict[str, Any]:
        """Return what every request has; a temperature of None is the default of the server."""
        # OpenAI's newer models accept only the newer name, and most other servers only the older one.
        length_name = "max_completion_tokens" if self.provider == "openai" else "max_tokens"
        options: dict[str, Any] = {"model": self.model, length_name: max_tokens}
        if temperature is not None:
            options["temperature"] = temperature
        if self.preferences:
            options["extra_body"] = {"provider": dict(self.preferences)}
        return options

    def check(self) -> None:
        """Raise RemoteFailure if nothing can be sent."""
        if not self.model:
            raise RemoteFailure("no model is set; set chat.model", status=NOT_READY_STATUS)
        if not self.address.startswith(("http://", "https://")):
            raise RemoteFailure("chat.base_url must begin with http:// or https://", status=NOT_READY_STATUS)
        if not _is_address(self.address):
            shown = strip_credentials(self.address)
            raise RemoteFailure(f"{shown} is not an address; set chat.base_url", status=NOT_READY_STATUS)
        if self.needs_key and PRESETS[self.provider].key_variable and not self.secret:
            raise RemoteFailure("there is no key", status=401)
        if problem := key_problem(self.secret):
            raise RemoteFailure(problem, status=401)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that cannot be one
        return False
