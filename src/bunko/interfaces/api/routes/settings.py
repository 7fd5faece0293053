"""Show the settings and the embedders."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from bunko.interfaces.api.endpoint import Call, Endpoint
from bunko.interfaces.serialize_library import embedder_to_dict


class SettingFields(TypedDict):
    """A setting, and where its value comes from; secrets are masked."""

    key: str
    value: str
    origin: str


class SettingsReply(TypedDict):
    """All settings."""

    settings: list[SettingFields]


class EmbedderFields(TypedDict):
    """An embedder, and what it lacks."""

    name: str
    about: str
    in_use: bool
    ready: bool
    missing: str
    model: str
    install: str
    key: str
    remote: bool


class EmbeddersReply(TypedDict):
    """All embedders."""

    embedders: list[EmbedderFields]


def show_settings(call: Call) -> dict[str, Any]:
    """Show all settings with where each comes from; needs the right to change everything."""
    rows = call.library.setting_rows()
    return {"settings": [{"key": key, "value": value, "origin": origin} for key, value, origin in rows]}


def list_embedders(call: Call) -> dict[str, Any]:
    """List the embedders and what each lacks; needs the right to read everything."""
    return {"embedders": [embedder_to_dict(status) for status in call.library.embedders()]}


ENDPOINTS = [
    Endpoint("GET", "/settings", show_settings, SettingsReply, right="read"),
    Endpoint("GET", "/embedders", list_embedders, EmbeddersReply, right="read", is_long=True),
]
