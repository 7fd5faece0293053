"""Add the settings that embedding providers declare to the core settings, importing providers only when needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from bunko.errors import EmbedderError, UnknownName
from bunko.settings.keyfile import FILE_SUFFIX
from bunko.settings.schema import CORE_SETTINGS
from bunko.settings.setting import MAX_NUMBER, Setting

if TYPE_CHECKING:
    from bunko.embedders.provider import Provider

_SECTION = "embedding"
PROVIDER_KEY = "embedding.provider"
# Environment names of the built-in providers have one of these forms: a name alone shows whether declarations are
# needed, and most starts import none.
_ENV_PREFIXES = ("EMBEDDING_", "BUNKO_EMBEDDING_")
_ENV_SUFFIXES = ("_API_KEY", "_BASE_URL")
_CORE_ENV_NAMES = frozenset(name for setting in CORE_SETTINGS.values() for name in setting.env_names)


def may_be_provider_name(name: str) -> bool:
    """Return whether an environment name may set an option of a built-in provider."""
    base = name.removesuffix(FILE_SUFFIX.upper())
    has_form = base.startswith(_ENV_PREFIXES) or base.endswith(_ENV_SUFFIXES)
    return has_form and name not in _CORE_ENV_NAMES and base not in _CORE_ENV_NAMES


@cache
def builtin_settings() -> Mapping[str, Setting]:
    """Return the settings that the built-in providers declare."""
    from bunko.embedders import builtin_providers

    return _declared_settings(builtin_providers().values())


@cache
def plugin_settings() -> Mapping[str, Setting]:
    """Return the settings that the providers of installed packages declare; they cannot replace another setting."""
    from bunko.embedders import plugin_providers

    return _new_settings(plugin_providers().values())


def _plugin_settings_of(name: str) -> Mapping[str, Setting]:
    """Return the settings of one provider that is not built in; none if it cannot be loaded."""
    from bunko.embedders import builtin_providers, select_provider

    if any(name == builtin or name in provider.aliases for builtin, provider in builtin_providers().items()):
        return {}
    try:
        return _new_settings([select_provider(name).provider])
    except (EmbedderError, UnknownName):  # reported when vectors are needed: searching words needs no embedder
        return {}


@cache
def documented_settings() -> Mapping[str, Setting]:
    """Return the core settings and those of the built-in providers, by section."""
    from bunko.embedders import builtin_providers

    return _merge_settings(builtin_providers(), builtin_settings())


@cache
def all_settings() -> Mapping[str, Setting]:
    """Return every setting, those of installed plugins included, by section."""
    from bunko.embedders import all_providers

    return _merge_settings(all_providers(), {**builtin_settings(), **plugin_settings()})


def needed_settings(
    embedding_keys: Iterable[str], env_names: Iterable[str], providers: Iterable[str]
) -> dict[str, Setting]:
    """Return the settings that are needed to read these keys of [embedding], environment names and providers."""
    settings = dict(CORE_SETTINGS)
    keys = [f"{_SECTION}.{key}" for key in embedding_keys]
    if not _knows_all(settings, keys) or any(map(may_be_provider_name, env_names)):
        settings |= builtin_settings()
    for name in set(providers) - {CORE_SETTINGS[PROVIDER_KEY].default, "none"}:
        settings |= _plugin_settings_of(name)
    if not _knows_all(settings, keys):
        settings |= plugin_settings()
    return settings


def _knows_all(settings: Mapping[str, Setting], keys: Iterable[str]) -> bool:
    return all(key in settings or key.removesuffix(FILE_SUFFIX) in settings for key in keys)


def _new_settings(providers: Iterable[Provider]) -> dict[str, Setting]:
    built_in = {**CORE_SETTINGS, **builtin_settings()}
    return {key: setting for key, setting in _declared_settings(providers).items() if key not in built_in}


def _declared_settings(providers: Iterable[Provider]) -> dict[str, Setting]:
    settings = {}
    for option in (option for provider in providers for option in provider.options):
        metadata = {
            "meaning": option.meaning,
            "env": option.env,
            "low": option.low,
            "high": MAX_NUMBER if option.high is None else option.high,
            "file_names": (),
            "secret": option.secret,
            "derive": None,
        }
        setting = Setting(_SECTION, option.key, option.type, option.default, metadata)
        settings[setting.key] = setting
    return settings


def _merge_settings(providers: Mapping[str, Provider], declared: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the core settings with the declared ones at the end of their section."""
    settings: dict[str, Setting] = {}
    section = ""
    for key, setting in CORE_SETTINGS.items():
        if section == _SECTION != setting.section:
            settings |= declared
        section = setting.section
        settings[key] = _with_provider_names(setting, providers) if key == PROVIDER_KEY else setting
    return settings


def _with_provider_names(setting: Setting, providers: Mapping[str, Provider]) -> Setting:
    names, models = [], []
    for name, provider in providers.items():
        aliases = [alias for alias, declared in provider.aliases.items() if not declared.meaning]
        names.append(f"{name} (or {', '.join(aliases)})" if aliases else name)
        models += [f"{alias} ({declared.meaning})" for alias, declared in provider.aliases.items() if declared.meaning]
    return setting.with_meaning(f"Embedder: {', '.join(names + models)}, or none for no vectors")
