"""Show the settings, the embedders and the local models."""

from __future__ import annotations

from operator import itemgetter

from bunko.interfaces.api.endpoint import Call, Endpoint
from bunko.interfaces.fields import Fields, of
from bunko.interfaces.serialize_state import EmbedderFields, ModelFields


class SettingFields(Fields):
    """A setting, and where its value comes from; secrets are masked."""

    key: str = of(itemgetter(0))
    value: str = of(itemgetter(1))
    origin: str = of(itemgetter(2))


class SettingsReply(Fields):
    """All settings."""

    settings: list[SettingFields]


class EmbeddersReply(Fields):
    """All embedders."""

    embedders: list[EmbedderFields]


class ModelsReply(Fields):
    """All known local models."""

    models: list[ModelFields]


def show_settings(call: Call) -> dict[str, object]:
    """Show all settings with where each comes from; needs the right to change everything."""
    return {"settings": [SettingFields.fill(row) for row in call.library.setting_rows()]}


def list_embedders(call: Call) -> dict[str, object]:
    """List the embedders and what each lacks; needs the right to read everything."""
    return {"embedders": [EmbedderFields.fill(status) for status in call.library.embedders()]}


def list_models(call: Call) -> dict[str, object]:
    """List good local models and what each lacks; needs the right to read everything."""
    return {"models": [ModelFields.fill(status) for status in call.library.local_models()]}


ENDPOINTS = [
    Endpoint("GET", "/settings", show_settings, SettingsReply, right="read"),
    Endpoint("GET", "/embedders", list_embedders, EmbeddersReply, right="read", is_long=True),
    Endpoint("GET", "/models", list_models, ModelsReply, right="read", is_long=True),
]
