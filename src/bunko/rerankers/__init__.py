"""Find reranker providers by name and build their rerankers; each provider is one module or entry point."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from bunko.errors import ModelError, UnknownName
from bunko.rerankers.provider import RerankerProvider

if TYPE_CHECKING:
    from bunko.protocols import Reranker

DEFAULT_PROVIDER = "onnx"
ENTRY_POINT_GROUP = "bunko.rerankers"
# Modules that providers share; the search for providers does not import them.
HELPER_MODULES = frozenset({"provider"})


@cache
def builtin_providers() -> Mapping[str, RerankerProvider]:
    """Return the providers of this package by name."""
    from bunko.plugins import iter_modules

    return {
        name: provider
        for name, module in iter_modules(sys.modules[__name__], HELPER_MODULES)
        if (provider := _declared_provider(module)) is not None
    }


def build(name: str) -> Reranker:
    """Return the reranker of a name: a model that runs on onnxruntime, PROVIDER, or PROVIDER:MODEL.

    The provider of an installed package is looked for only if the name is not that of a listed model or a path.
    """
    provider_name, _, model = name.partition(":")
    if provider_name == DEFAULT_PROVIDER:
        return _builtin(DEFAULT_PROVIDER).build(model)
    from bunko.local_models.catalogue import find_model

    if find_model(name) is None and "/" not in name and "\\" not in name:
        return _plugin(provider_name).build(model)
    return _builtin(DEFAULT_PROVIDER).build(name)


def _builtin(name: str) -> RerankerProvider:
    provider = _declared_provider(import_module(f"{__name__}.{name}"))
    assert provider is not None
    return provider


def _plugin(name: str) -> RerankerProvider:
    from bunko.plugins import load_plugin

    try:
        plugin = load_plugin(ENTRY_POINT_GROUP, name)
    except Exception as error:  # the code of another package may raise anything
        raise ModelError(
            f"The reranker {name!r} cannot be loaded: {error}", hint="Update or reinstall the package that adds it."
        ) from error
    provider = None if plugin is None else _declared_provider(plugin)
    if provider is None:
        raise UnknownName(
            f"There is no reranker called {name!r}",
            hint="Set search.reranker to a reranker of: bunko models, or to the folder of a model.",
        )
    return provider


def _declared_provider(plugin: object) -> RerankerProvider | None:
    """Return the provider that a module declares as PROVIDER; an entry point may name a RerankerProvider."""
    if isinstance(plugin, RerankerProvider):
        return plugin
    provider = getattr(plugin, "PROVIDER", None)
    if not isinstance(provider, RerankerProvider):
        return None
    docstring = (plugin.__doc__ or "").partition("\n")[0] if isinstance(plugin, ModuleType) else ""
    return replace(provider, description=provider.description or docstring)
