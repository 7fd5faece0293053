"""Find reranker providers by name and build their rerankers; each provider is one module or entry point."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from bunko.errors import ModelError, UnknownName
from bunko.local_models.catalogue import find_model
from bunko.runtime.plugins import iter_modules, load_plugin

if TYPE_CHECKING:
    from bunko.protocols import Reranker


DEFAULT_PROVIDER = "onnx"
ENTRY_POINT_GROUP = "bunko.rerankers"


@dataclass(frozen=True, slots=True)
class RerankerProvider:
    """A provider of rerankers; each module of `rerankers` that declares one as `PROVIDER` is found by its name."""

    build: Callable[[str], Reranker]  # from the name of a model; an empty one means its default
    extra: str = ""  # of bunko, with the packages it needs; empty if there is none
    description: str = ""  # one line; empty: the first line of the module's docstring


@cache
def builtin_providers() -> Mapping[str, RerankerProvider]:
    """Return the providers of this package by name."""
    return {
        name: provider
        for name, module in iter_modules(sys.modules[__name__], ())
        if (provider := _declared_provider(module)) is not None
    }


def build(name: str) -> Reranker:
    """Return the reranker of a name: a model that runs on onnxruntime, PROVIDER, or PROVIDER:MODEL.

    Installed packages are searched, which takes long, only for a name that is neither built in, listed, nor a path.
    """
    provider_name, _, model = name.partition(":")
    if provider := _builtin(provider_name):
        return provider.build(model)
    if find_model(name) is None and not _is_path(provider_name):
        if provider := _plugin(provider_name):
            return provider.build(model)
        if not _is_path(model):
            raise UnknownName(
                f"There is no reranker called {provider_name!r}",
                hint="Set search.reranker to a reranker of: bunko models, or to the folder of a model.",
            )
    default = _builtin(DEFAULT_PROVIDER)
    assert default is not None
    return default.build(name)


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name


def _builtin(name: str) -> RerankerProvider | None:
    if not name.isidentifier() or find_spec(f"{__name__}.{name}") is None:
        return None
    return _declared_provider(import_module(f"{__name__}.{name}"))


def _plugin(name: str) -> RerankerProvider | None:
    try:
        plugin = load_plugin(ENTRY_POINT_GROUP, name)
    except Exception as error:  # the code of another package may raise anything
        raise ModelError(
            f"The reranker {name!r} cannot be loaded: {error}", hint="Update or reinstall the package that adds it."
        ) from error
    return None if plugin is None else _declared_provider(plugin)


def _declared_provider(plugin: object) -> RerankerProvider | None:
    """Return the provider that a module declares as PROVIDER; an entry point may name a RerankerProvider."""
    if isinstance(plugin, RerankerProvider):
        return plugin
    provider = getattr(plugin, "PROVIDER", None)
    if not isinstance(provider, RerankerProvider):
        return None
    docstring = (plugin.__doc__ or "").partition("\n")[0] if isinstance(plugin, ModuleType) else ""
    return replace(provider, description=provider.description or docstring)
