"""Define how a provider of embeddings declares its needs, its settings and its names, and what is said without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from bunko.errors import EmbedderError
from bunko.runtime.installation import install_command

if TYPE_CHECKING:
    from bunko.protocols import Embedder
    from bunko.types import Vectors

# Arguments of `build` that come from settings that all providers share. A provider lists those that it takes.
REQUEST_ARGUMENTS = (
    "max_tokens", "too_long", "batch", "parallel", "timeout", "query_timeout", "retries", "delay", "backoff",
)  # fmt: skip
LOCAL_MODEL_ARGUMENTS = ("max_tokens", "too_long", "idle", "threshold")


@dataclass(frozen=True, slots=True)
class ProviderOption:
    """A setting of a provider in the section [embedding], and the argument of `build` that gets its value."""

    key: str
    argument: str
    default: object
    meaning: str
    type: Any = str  # an annotation: str, bool, int, float, Literal[...], or one of these | None
    env: str = ""  # further environment names, besides BUNKO_EMBEDDING_<KEY>, separated by spaces
    low: float = 0
    high: float | None = None
    secret: bool = False


# The model of gemini and of onnx, whose default is another one: the default of the setting means that there too.
GEMINI_MODEL = "gemini-embedding-001"
MODEL_OPTION = ProviderOption(
    "model", "model", GEMINI_MODEL, "Model of gemini, or of onnx: a name of bunko models, or a folder; else ruri-v3-30m"
)


@dataclass(frozen=True, slots=True)
class ProviderAlias:
    """Another name of a provider, and the arguments that it sets instead of the settings."""

    arguments: Mapping[str, object] = field(default_factory=dict)
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of embeddings; each module of `embedders` that declares one as `PROVIDER` is found by its name."""

    build: Callable[..., Embedder]
    extra: str = ""  # of bunko, with the packages it needs; empty if there is none
    description: str = ""  # one line; empty: the first line of the module's docstring
    arguments: Mapping[str, object] = field(default_factory=dict)  # that `build` always gets
    shared: tuple[str, ...] = ()  # arguments that come from settings of all providers
    options: tuple[ProviderOption, ...] = ()
    aliases: Mapping[str, ProviderAlias] = field(default_factory=dict)

    @property
    def key_name(self) -> str:
        """Return the environment names of its API key, or an empty string if it needs none."""
        return " or ".join(name for option in self.options if option.secret for name in option.env.split())

    def option_arguments(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of `build` from values by key; an option that is not set has its default."""
        return {option.argument: values.get(option.key, option.default) for option in self.options}


_REMEDY = "Update or reinstall the package that adds it."


class UnusableEmbedder:
    """An embedder that says why there is none."""

    noise_floor = -1.0
    batch_size = 1
    is_remote = False

    def __init__(self, label: str, reason: str) -> None:
        self.label, self._reason = label, reason

    @property
    def name(self) -> str:
        """Raise: only an embedder knows what its vectors depend on."""
        self._fail()

    @property
    def size(self) -> int:
        """Raise: only an embedder knows its size."""
        self._fail()

    def unavailable_reason(self) -> str:
        """Return why the embedder cannot be built, and what to do."""
        return f"{self._reason}. {_REMEDY}"

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Raise: there is no embedder."""
        self._fail()

    def _fail(self) -> NoReturn:
        raise EmbedderError(self._reason, hint=_REMEDY)


def missing_package_error(package: str, extra: str) -> EmbedderError:
    """Return the error for a missing package of an extra."""
    return EmbedderError(f"The package {package} is not installed", hint=f"Install it with: {install_command(extra)}")
