"""Say which local models are on this machine and in use, and which chat models the settings could use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bunko import rerankers
from bunko.errors import BunkoError, UnknownName
from bunko.llm.client import PRESETS
from bunko.local_models import RUN_PACKAGES, missing_package
from bunko.local_models.catalogue import KNOWN_MODELS, KnownModel
from bunko.local_models.files import LocalModel
from bunko.local_models.hub import FetchedFile, Hub, remove_model
from bunko.settings import Settings


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A known model and its state on this machine."""

    model: KnownModel
    onnx_path: Path | None  # None: it is not here
    is_used: bool
    unavailable_reason: str  # and how to get it; empty if it can be used

    @property
    def state(self) -> str:
        """Return whether the model is in use, here, or how to get it."""
        if not self.model.onnx_repo:
            return "needs torch"
        if self.onnx_path is None:
            return "in use, but not here" if self.is_used else "not here"
        return "in use" if self.is_used else "here"


@dataclass(frozen=True, slots=True)
class RerankerStatus:
    """The reranker of the settings, listed or not."""

    name: str
    unavailable_reason: str


def model_statuses(settings: Settings) -> list[ModelStatus]:
    """Return the status of all known models; nothing is loaded, and nobody is asked."""
    used = _used_models(settings)
    return [_status(model, model.name in used) for model in KNOWN_MODELS]


def _status(model: KnownModel, is_used: bool) -> ModelStatus:
    local_model = LocalModel(model.name)
    files = local_model.find()
    if model.onnx_repo:
        reason = missing_package(*RUN_PACKAGES) or local_model.missing_reason()
    else:
        reason = f"There is no ONNX file of {model.name}"
    return ModelStatus(model, files.onnx if files else None, is_used, reason)


def reranker_status(settings: Settings) -> RerankerStatus | None:
    """Return the reranker that the settings name, None if they name none; it is built, but not loaded."""
    if not settings.search.reranker:
        return None
    try:
        reranker = rerankers.build(settings.search.reranker)
        return RerankerStatus(reranker.label, reranker.unavailable_reason())
    except BunkoError as error:
        return RerankerStatus(settings.search.reranker, f"{error.message}. {error.hint}".rstrip())


def naming_setting(settings: Settings, name: str) -> str:
    """Return the setting that names a model, empty if none does."""
    return _used_models(settings).get(_listed_name(name), "")


def _used_models(settings: Settings) -> dict[str, str]:
    """Return the models that the settings name, with the setting of each."""
    from bunko.embedders.onnx import resolve_model

    used = {_listed_name((settings.search.reranker or "").removeprefix("onnx:")): "search.reranker"}
    if settings.embedding.provider == "onnx":
        used[_listed_name(resolve_model(settings.embedding.model))] = "embedding.model"
    if settings.embedding.provider == "plamo":
        used["plamo-embedding-1b"] = "embedding.provider"
    return used


def _listed_name(name: str) -> str:
    """Return the name of a model in the list; any other name as it is, such as that of a folder."""
    known = LocalModel(name).known
    return known.name if known else name


def get_model(name: str, progress: Callable[[str, int, int], None]) -> list[FetchedFile]:
    """Download what a model lacks, and check all of it."""
    return Hub().fetch(_find_model(name), progress)


def delete_model(name: str) -> int:
    """Remove a model from this machine, and return the bytes that became free."""
    return remove_model(_find_model(name))


def _find_model(name: str) -> LocalModel:
    model = LocalModel(name)
    if model.known is None and "/" not in name and not model.is_folder:
        names = ", ".join(known.name for known in KNOWN_MODELS)
        raise UnknownName(f"There is no model called {name!r}", hint=f"Choose one of: {names}; or OWNER/NAME.")
    return model


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
