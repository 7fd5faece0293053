"""Build embedders from the settings, and recognise them by name."""

from __future__ import annotations

from typing import Any

from bunko import embedders
from bunko.embedders.embed import as_remote, unavailable_reason
from bunko.embedders.names import display_name
from bunko.errors import EmbedderError
from bunko.protocols import Embedder
from bunko.settings import Settings


def build_embedder(settings: Settings, provider: str) -> Embedder | None:
    """Build the embedder of a provider from the settings; return None for `none`."""
    return None if provider == "none" else embedders.build(provider, **embedder_arguments(settings, provider))


def embedder_arguments(settings: Settings, provider: str) -> dict[str, Any]:
    """Return the arguments of an embedder: its own settings, and those of all embedders that it takes."""
    embedding, retry, model = settings.embedding, settings.retry, settings.model
    _, declared, alias = embedders.select_provider(provider)
    shared: dict[str, Any] = {
        "max_tokens": embedding.max_tokens, "too_long": embedding.too_long, "batch": embedding.batch_size,
        "parallel": embedding.parallel, "timeout": embedding.timeout, "query_timeout": embedding.query_timeout,
        "retries": retry.max_retries, "delay": retry.base_delay, "backoff": retry.backoff_factor,
        "idle": model.auto_unload_minutes * 60 or float("inf"), "threshold": model.memory_threshold,
    }  # fmt: skip
    arguments = declared.option_arguments(vars(embedding)) | {name: shared[name] for name in declared.shared}
    return {**arguments, **(alias.arguments if alias else {})}


def is_named(embedder: Embedder, name: str) -> bool:
    """Return whether an embedder has a name; a service is not asked for the vector size of another model."""
    if remote := as_remote(embedder):
        remote.restore_size(name)
        if not name.startswith(f"{remote.label}:"):
            return False
    try:
        return embedder.name == name
    except EmbedderError:  # a model that cannot be loaded
        return False


def lost_reason(recorded: str, embedder: Embedder | None) -> str:
    """Return why the embedder in the settings is not the recorded one: another model, one that is gone, a change."""
    name = display_name(recorded)
    if embedder is None or display_name(embedder.label) != name:
        return f"its embedder {name} is not in the settings"
    if missing_reason(recorded, embedder):
        return f"{name} cannot be used"
    if is_earlier_model(recorded, embedder):
        return f"the model {name} is newer than its vectors"
    return f"the options or files of {name} have changed since its vectors were computed"


def is_earlier_model(recorded: str, embedder: Embedder | None) -> bool:
    """Return whether vectors were computed with the bundled model of an earlier bunko."""
    return embedder is not None and recorded.startswith("static:") and embedder.label.startswith("static:")


def missing_reason(recorded: str, embedder: Embedder | None) -> str:
    """Return what the embedder in the settings lacks and how to get it, if it is the recorded one; else nothing."""
    if embedder is None or embedder.is_remote or display_name(embedder.label) != display_name(recorded):
        return ""
    return unavailable_reason(embedder)


def model_arguments(provider: str) -> list[str]:
    """Return the arguments of a provider that its vectors depend on; keys and URLs come from the settings alone."""
    options = embedders.select_provider(provider).provider.options
    return [option.argument for option in options if not option.secret and option.argument != "base_url"]
