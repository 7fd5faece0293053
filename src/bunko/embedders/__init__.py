"""Find embedding providers by name and build their embedders; each provider is one module or entry point."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from bunko.embedders.provider import Provider, ProviderAlias, UnusableEmbedder
from bunko.errors import BunkoError, UnknownName
from bunko.runtime.plugins import describe_exception, iter_modules, load_plugin, load_plugins

if TYPE_CHECKING:
    from bunko.protocols import Embedder

DEFAULT_PROVIDER = "static"
ENTRY_POINT_GROUP = "bunko.embedders"
# Modules that providers share; the search for providers does not import them.
HELPER_MODULES = frozenset(
    {
        "checkpoint",
        "embed",
        "long_texts",
        "model_embedder",
        "names",
        "nearest_words",
        "provider",
        "query_cache",
        "remote",
        "subword_table",
        "torch_model",
    }
)


class SelectedProvider(NamedTuple):
    """A provider, its name, and the alias that selected it."""

    name: str
    provider: Provider
    alias: ProviderAlias | None = None


@cache
def builtin_providers() -> Mapping[str, Provider]:
    """Return the providers of this package by name: first the default, then those without an extra."""
    providers: dict[str, Provider] = {}
    for name, module in iter_modules(sys.modules[__name__], HELPER_MODULES):
        providers |= _declared_providers(name, module)
    return dict(sorted(providers.items(), key=lambda item: (item[0] != DEFAULT_PROVIDER, item[1].extra != "")))


@cache
def plugin_providers() -> Mapping[str, Provider]:
    """Return the providers that installed packages add by entry points; a built-in name cannot be replaced."""
    providers: dict[str, Provider] = {}
    for name, plugin in load_plugins(ENTRY_POINT_GROUP).items():
        providers |= _declared_providers(name, plugin)
    return {name: provider for name, provider in providers.items() if name not in builtin_providers()}


def all_providers() -> dict[str, Provider]:
    """Return every provider by name, the built-in ones first."""
    return {**builtin_providers(), **plugin_providers()}


def all_aliases() -> dict[str, str]:
    """Return the provider of each alias."""
    return {alias: name for name, provider in all_providers().items() for alias in provider.aliases}


def select_provider(name: str) -> SelectedProvider:
    """Return the provider of a name or alias; other providers are imported only if no module has that name."""
    if name.isidentifier() and name not in HELPER_MODULES and find_spec(f"{__name__}.{name}") is not None:
        providers: Mapping[str, Provider] = _declared_providers(name, import_module(f"{__name__}.{name}"))
    else:
        providers = builtin_providers()
    selected = _select(name, providers) or _select(name, plugin_provider(name)) or _select(name, plugin_providers())
    if selected is None:
        raise UnknownName(
            f"There is no embedder called {name!r}",
            hint=f"Set embedding.provider to one of: {', '.join((*all_providers(), *all_aliases(), 'none'))}.",
        )
    return selected


def build(provider: str, **options: Any) -> Embedder | None:
    """Return the embedder of a provider, None for `none`; options are passed to the `build` of its module.

    One that raises gives an embedder that says so: searches go on by words.
    """
    if provider == "none":
        return None
    selected = select_provider(provider)
    alias_arguments = selected.alias.arguments if selected.alias else {}
    try:
        return selected.provider.build(**{**selected.provider.arguments, **options, **alias_arguments})
    except BunkoError:
        raise
    except Exception as error:  # the code of another package may raise anything
        return UnusableEmbedder(provider, f"The embedder {provider!r} cannot be built: {describe_exception(error)}")


def _select(name: str, providers: Mapping[str, Provider]) -> SelectedProvider | None:
    if name in providers:
        return SelectedProvider(name, providers[name])
    for provider_name, provider in providers.items():
        if name in provider.aliases:
            return SelectedProvider(provider_name, provider, provider.aliases[name])
    return None


@cache
def plugin_provider(name: str) -> Mapping[str, Provider]:
    """Return what the package that adds a name provides, without importing the other packages."""
    try:
        plugin = load_plugin(ENTRY_POINT_GROUP, name)
    except Exception as error:  # the code of another package may raise anything
        reason = f"The embedder {name!r} cannot be loaded: {describe_exception(error)}"
        return {name: Provider(lambda: UnusableEmbedder(name, reason))}
    return {} if plugin is None else _declared_providers(name, plugin)


def _declared_providers(name: str, plugin: object) -> dict[str, Provider]:
    """Return the providers that a module declares as PROVIDER or PROVIDERS; an entry point may name a Provider."""
    if isinstance(plugin, Provider):
        return {name: plugin}
    providers: Mapping[str, Provider] = getattr(plugin, "PROVIDERS", None) or {name: getattr(plugin, "PROVIDER", None)}
    docstring = (plugin.__doc__ or "").partition("\n")[0] if isinstance(plugin, ModuleType) else ""
    return {
        provider_name: replace(provider, description=provider.description or docstring)
        for provider_name, provider in providers.items()
        if isinstance(provider, Provider)
    }
