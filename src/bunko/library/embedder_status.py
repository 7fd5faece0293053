"""The settings in, what can make vectors out: each provider and what it lacks, and a trial of one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from time import perf_counter

from bunko import embedders
from bunko.embedders import embed_and_check
from bunko.embedders.openai import PRESETS
from bunko.errors import EmbedderError, UnknownName
from bunko.library.build_config import build_embedder
from bunko.settings import Settings

# One thing said in both languages, and another thing: a model that knows both languages puts the first two together.
JAPANESE_SENTENCE, ENGLISH_SENTENCE, OTHER_SENTENCE = (
    "図書館は毎朝九時に開きます。",
    "The library opens at nine every morning.",
    "Cutting an onion makes my eyes water.",
)
_KEY_NAMES = {"gemini": "GEMINI_API_KEY or GOOGLE_API_KEY"}


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """One provider of vectors, as the settings have it."""

    name: str
    description: str
    is_used: bool
    unavailable_reason: str  # what it lacks and how to get that; nothing if it can be used
    model: str
    install_command: str  # the command that brings its packages; nothing where they come with bunko
    key_name: str  # the name of its key in the environment; nothing where it needs none
    is_remote: bool  # whether texts are sent to a server

    @property
    def state(self) -> str:
        """Say whether it is in use, ready, or lacks something."""
        if self.unavailable_reason:
            return f"in use, but: {self.unavailable_reason}" if self.is_used else self.unavailable_reason
        return "in use" if self.is_used else "ready"


@dataclass(frozen=True, slots=True)
class EmbedderTrial:
    """What a provider made of three sentences."""

    name: str  # of the embedder
    size: int
    seconds: float  # for all three, loading among it
    same_meaning: float  # cosine of the two that say the same in two languages
    other_meaning: tuple[float, float]  # of each of them and the one that says something else


def provider_statuses(settings: Settings) -> list[ProviderStatus]:
    """Return all providers; nothing is embedded, loaded or paid for."""
    used = embedders.ALIASES.get(settings.embedding.provider, settings.embedding.provider)
    # A name that stands for a provider with a model of its own is meant with that model.
    return [_provider_status(settings, name, name == used) for name in embedders.PROVIDERS]


def _provider_status(settings: Settings, name: str, is_used: bool) -> ProviderStatus:
    asked = settings.embedding.provider if is_used else name
    embedder = build_embedder(settings, asked)
    assert embedder is not None
    preset = PRESETS.get(name)
    about = (
        preset.description if preset else (import_module(f"bunko.embedders.{name}").__doc__ or "").partition("\n")[0]
    )
    extra = "openai" if preset else name
    return ProviderStatus(
        name,
        about,
        is_used,
        embedder.unavailable_reason(),
        _model_name(embedder.label),
        "" if name in ("static", "hashing") else f'pip install "bunko[{extra}]"',
        preset.key_variable if preset else _KEY_NAMES.get(name, ""),
        embedder.is_remote,
    )


def _model_name(label: str) -> str:
    """Return the model in a label, without what else the vectors depend on."""
    provider, _, model = label.partition(":")
    return model.partition(":")[0] if provider == "gemini" else model.removesuffix(":prefixed")


def try_embedder(settings: Settings, provider: str) -> EmbedderTrial:
    """Embed a sentence in two languages and another one, and compare them."""
    embedder = build_embedder(settings, provider)
    if embedder is None:
        known = ", ".join((*embedders.PROVIDERS, *embedders.ALIASES))
        raise UnknownName(f"{provider!r} makes no vectors", hint=f"Name one of: {known}.")
    if missing := embedder.unavailable_reason():
        raise EmbedderError(f"{provider} cannot be tried", hint=missing)
    start = perf_counter()
    found = embed_and_check(embedder, [JAPANESE_SENTENCE, ENGLISH_SENTENCE, OTHER_SENTENCE])
    seconds = perf_counter() - start
    cosines = found @ found.T
    others = (float(cosines[0, 2]), float(cosines[1, 2]))
    return EmbedderTrial(embedder.name, embedder.size, seconds, float(cosines[0, 1]), others)
