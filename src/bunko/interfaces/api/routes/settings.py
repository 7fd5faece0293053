"""Show the settings, the embedders and the local models."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from bunko.interfaces.api.endpoint import Call, Endpoint
from bunko.interfaces.serialize_library import embedder_to_dict, model_to_dict


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


class ModelFields(TypedDict):
    """A model that runs on the machine of the server, and what it lacks."""

    name: str
    purpose: Literal["embedder", "reranker"]
    about: str
    here: bool
    in_use: bool
    missing: str
    megabytes: int | None
    dimension: int | None  # of a vector
    languages: list[str]
    licence: str
    repository: str
    onnx_repository: str


class ModelsReply(TypedDict):
    """All known local models."""

    models: list[ModelFields]


def show_settings(call: Call) -> dict[str, Any]:
    """Show all settings with where each comes from; needs the right to change everything."""
    rows = call.library.setting_rows()
    return {"settings": [{"key": key, "value": value, "origin": origin} for key, value, origin in rows]}


def list_embedders(call: Call) -> dict[str, Any]:
    """List the embedders and what each lacks; needs the right to read everything."""
    return {"embedders": [embedder_to_dict(status) for status in call.library.embedders()]}


def list_models(call: Call) -> dict[str, Any]:
    """List good local models and what each lacks; needs the right to read everything."""
    return {"models": [model_to_dict(status) for status in call.library.local_models()]}


ENDPOINTS = [
    Endpoint("GET", "/settings", show_settings, SettingsReply, right="read"),
    Endpoint("GET", "/embedders", list_embedders, EmbeddersReply, right="read", is_long=True),
    Endpoint("GET", "/models", list_models, ModelsReply, right="read", is_long=True),
]
