"""Say which embedding providers could be used, and try one."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from bunko import embedders
from bunko.embedders.embed import embed_and_check, unavailable_reason
from bunko.embedders.provider import Provider
from bunko.errors import EmbedderError, UnknownName
from bunko.library.tools.embedder import build_embedder, embedder_arguments
from bunko.runtime.installation import install_command
from bunko.settings import Settings

# The same statement in both languages, and a different one: a bilingual model places the first two close together.
JAPANESE_SENTENCE, ENGLISH_SENTENCE, OTHER_SENTENCE = (
    "図書館は毎朝九時に開きます。",
    "The library opens at nine every morning.",
    "Cutting an onion makes my eyes water.",
)


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """The state of one embedding provider under the current settings."""

    name: str
    description: str
    is_used: bool
    unavailable_reason: str  # what it lacks and how to get it; empty if it can be used
    model: str
    install_command: str  # the command that installs its packages; empty if they come with bunko
    key_name: str  # the environment variable of its API key; empty if it needs none
    is_remote: bool  # whether texts are sent to a server

    @property
    def state(self) -> str:
        """Return whether it is in use, ready, or what it lacks."""
        if self.unavailable_reason:
            return f"in use, but: {self.unavailable_reason}" if self.is_used else self.unavailable_reason
        return "in use" if self.is_used else "ready"


@dataclass(frozen=True, slots=True)
class EmbedderTrial:
    """The result of embedding three sentences with one provider."""

    name: str  # of the embedder
    size: int
    seconds: float  # for all three, including loading
    same_meaning: float  # cosine of the two that say the same in two languages
    other_meaning: tuple[float, float]  # cosine of each of them and the unrelated sentence


def provider_statuses(settings: Settings) -> list[ProviderStatus]:
    """Return the status of all providers without embedding, loading or paying for anything."""
    used = embedders.all_aliases().get(settings.embedding.provider, settings.embedding.provider)
    # An alias may select a model of its own, so the provider in use is built under the name in the settings.
    return [
        _provider_status(settings, name, provider, name == used) for name, provider in embedders.all_providers().items()
    ]


def _provider_status(settings: Settings, name: str, provider: Provider, is_used: bool) -> ProviderStatus:
    selected_name = settings.embedding.provider if is_used else name
    embedder = build_embedder(settings, selected_name)
    assert embedder is not None
    return ProviderStatus(
        name,
        provider.description,
        is_used,
        unavailable_reason(embedder),
        _model_name(embedder.label, embedder_arguments(settings, selected_name).get("model")),
        install_command(provider.extra) if provider.extra else "",
        provider.key_name,
        embedder.is_remote,
    )


def _model_name(label: str, model: str | None) -> str:
    """Return the model in a label, without the other options the vectors depend on."""
    _, _, description = label.partition(":")
    return model if model and description.startswith(model) else description


def try_embedder(settings: Settings, provider: str) -> EmbedderTrial:
    """Embed a sentence in two languages and an unrelated one, and compare them."""
    embedder = build_embedder(settings, provider)
    if embedder is None:
        names = ", ".join((*embedders.all_providers(), *embedders.all_aliases()))
        raise UnknownName(f"{provider!r} is not an embedding provider", hint=f"Choose one of: {names}.")
    if missing := unavailable_reason(embedder):
        raise EmbedderError(f"{provider} is not available", hint=missing)
    start = perf_counter()
    vectors = embed_and_check(embedder, [JAPANESE_SENTENCE, ENGLISH_SENTENCE, OTHER_SENTENCE])
    seconds = perf_counter() - start
    cosines = vectors @ vectors.T
    other_meaning = (float(cosines[0, 2]), float(cosines[1, 2]))
    return EmbedderTrial(embedder.name, embedder.size, seconds, float(cosines[0, 1]), other_meaning)
