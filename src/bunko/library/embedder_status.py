"""The settings in, what can make vectors out: each provider and what it lacks, and a trial of one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from time import perf_counter

from bunko import embedders
from bunko.embedders import checked
from bunko.embedders.openai import PRESETS
from bunko.errors import EmbedderError, UnknownName
from bunko.library.build_config import embedder_for
from bunko.settings import Settings

# One thing said in both languages, and another thing: a model that knows both languages puts the first two together.
JAPANESE, ENGLISH, OTHER = (
    "図書館は毎朝九時に開きます。",
    "The library opens at nine every morning.",
    "Cutting an onion makes my eyes water.",
)
_KEYS = {"gemini": "GEMINI_API_KEY or GOOGLE_API_KEY"}


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider of vectors, as the settings have it."""

    name: str
    about: str
    is_used: bool
    missing: str  # what it lacks and how to get that; nothing if it can be used
    model: str
    install: str  # the command that brings its packages; nothing where they come with bunko
    key: str  # the name of its key in the environment; nothing where it needs none
    is_remote: bool  # whether texts are sent to a server

    @property
    def state(self) -> str:
        """Say whether it is in use, ready, or lacks something."""
        if self.missing:
            return f"in use, but: {self.missing}" if self.is_used else self.missing
        return "in use" if self.is_used else "ready"


@dataclass(frozen=True, slots=True)
class Trial:
    """What a provider made of three sentences."""

    name: str  # of the embedder
    size: int
    seconds: float  # for all three, loading among it
    same: float  # cosine of the two that say the same in two languages
    others: tuple[float, float]  # of each of them and the one that says something else


def providers(settings: Settings) -> list[Provider]:
    """Return all providers; nothing is embedded, loaded or paid for."""
    used = embedders.ALIASES.get(settings.embedding.provider, settings.embedding.provider)
    # A name that stands for a provider with a model of its own is meant with that model.
    return [_provider(settings, name, name == used) for name in embedders.PROVIDERS]


def _provider(settings: Settings, name: str, is_used: bool) -> Provider:
    asked = settings.embedding.provider if is_used else name
    embedder = embedder_for(settings, asked)
    assert embedder is not None
    preset = PRESETS.get(name)
    about = preset.about if preset else (import_module(f"bunko.embedders.{name}").__doc__ or "").partition("\n")[0]
    extra = "openai" if preset else name
    return Provider(
        name,
        about,
        is_used,
        embedder.available(),
        _model(embedder.label),
        "" if name in ("static", "hashing") else f'pip install "bunko[{extra}]"',
        preset.key if preset else _KEYS.get(name, ""),
        embedder.remote,
    )


def _model(label: str) -> str:
    """Return the model in a label, without what else the vectors depend on."""
    provider, _, model = label.partition(":")
    return model.partition(":")[0] if provider == "gemini" else model.removesuffix(":prefixed")


def trial(settings: Settings, provider: str) -> Trial:
    """Embed a sentence in two languages and another one, and compare them."""
    embedder = embedder_for(settings, provider)
    if embedder is None:
        known = ", ".join((*embedders.PROVIDERS, *embedders.ALIASES))
        raise UnknownName(f"{provider!r} makes no vectors", hint=f"Name one of: {known}.")
    if missing := embedder.available():
        raise EmbedderError(f"{provider} cannot be tried", hint=missing)
    start = perf_counter()
    found = checked(embedder, [JAPANESE, ENGLISH, OTHER])
    seconds = perf_counter() - start
    cosines = found @ found.T
    others = (float(cosines[0, 2]), float(cosines[1, 2]))
    return Trial(embedder.name, embedder.size, seconds, float(cosines[0, 1]), others)
