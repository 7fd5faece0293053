"""Merge flags, environment, `.env` and config files into the settings, and record the origin of each value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from bunko.errors import SettingsError
from bunko.settings import files
from bunko.settings.folder_files import FolderFiles
from bunko.settings.keyfile import FILE_SUFFIX, KeyFile
from bunko.settings.providers import PROVIDER_KEY, all_settings, needed_settings
from bunko.settings.schema import CORE_SETTINGS, SECTIONS, Settings
from bunko.settings.setting import Setting
from bunko.settings.validate import (
    broken_pairs,
    check_pairs,
    check_value,
    describe_type,
    describe_value,
    parse_value,
    unknown_setting_error,
)
from bunko.types.ranking import OPTIONS

_Assignment = tuple[str, object, str]  # key, value, origin
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*(?=@)")  # user name and password in a URL
_URL_PASSWORD = re.compile(r"(?<=password=)[^&\s]+")

_WEB_FALLBACKS = {"web.chunk_size": "chunker.chunk_size", "web.chunk_overlap": "chunker.chunk_overlap"} | {
    f"web.{name}": f"search.{name}" for name, option in OPTIONS.items() if option.web is not None
}


@dataclass(frozen=True, eq=False)
class LoadedSettings:
    """The effective settings, the origin of each, and notices for the user."""

    settings: Settings
    origins: dict[str, str]
    notices: list[str]
    config_file: Path | None
    current_folder_notices: list[str] = field(default_factory=list)  # for the terminal, not for answers

    def rows(self) -> list[tuple[str, str, str]]:
        """Return key, value and origin of every setting, with secrets masked."""
        rows = []
        for key, setting in all_settings().items():
            value = vars(getattr(self.settings, setting.section)).get(setting.name, setting.default)
            displayed_value = _URL_CREDENTIALS.sub("********", setting.display_value(value))
            displayed_value = _URL_PASSWORD.sub("********", displayed_value)
            rows.append((key, displayed_value, self.origins.get(key, "default")))
        return rows


def load_settings(
    *,
    flags: Mapping[str, object] = {},
    environ: Mapping[str, str],
    config: Path | None = None,
    config_folders: Sequence[Path] = (),
    dotenv_folders: Sequence[Path] = (),
    untrusted_folder: Path | None = None,
    trusted_folders: Sequence[Path] = (),
    current_folder: Path | None = None,
    all_providers: bool = False,
) -> LoadedSettings:
    """Merge all sources: flags override the environment, then `.env`, the config file, the defaults.

    Without `config`, the first config file in `config_folders` is used. `.env` is read in `dotenv_folders`, then in
    the folder of the config file; the first folder that sets a value wins. `untrusted_folder` is a documents folder
    that may come from somebody else: its files may set only what `FOLDER_LIMITS` allows, over the first config file
    outside of it. `trusted_folders` belong to the user even if they are inside it. What `current_folder` has itself is
    limited in the same way, and counts after the documents folder. The settings that embedding providers declare are
    loaded if a source may set one of them; with `all_providers`, for all that are installed.
    """
    notices: list[str] = []
    folder_files = FolderFiles(untrusted_folder, [*trusted_folders, *([config.parent] if config else [])])
    if config is not None:
        configs = [files.ConfigFile(config, files.read_config(config), True)]
    else:
        configs = files.find_configs(config_folders, folder_files.contain, notices)
    dotenvs = _read_dotenvs([*dotenv_folders, *(file.path.parent for file in configs)], folder_files)
    config_file = configs[0].path if configs else None
    current_files, current_notices = FolderFiles(current_folder, []), list[str]()
    if current_folder is not None:
        if config is None and (current_config := files.find_current_config(current_folder, current_notices)):
            configs.insert(sum(not file.trusted for file in configs), current_config)
        dotenvs = [*_read_dotenvs([current_folder], current_files), *dotenvs]
    declared = all_settings() if all_providers else _settings_in_use(flags, environ, configs, dotenvs)
    values: dict[str, object] = {key: setting.default for key, setting in declared.items() if not setting.derive}
    origins = dict.fromkeys(declared, "default")

    def apply(assignments: Iterable[_Assignment], untrusted_file: Path | None = None) -> None:
        limits = current_files if untrusted_file and untrusted_file.parent == current_folder else folder_files
        if untrusted_file is not None:
            assignments = limits.filter(assignments, untrusted_file, declared)
        for key, value, origin in assignments:
            if untrusted_file is not None:
                limits.replace(key, untrusted_file, origin, values.get(key), origins[key])
            values[key] = value if isinstance(value, KeyFile) else check_value(declared[key], value, origin)
            origins[key] = origin

    for file in reversed(configs):
        if file.trusted:
            apply(_file_assignments(file.path, file.table, declared))
        else:
            apply(_folder_assignments(file.path, file.table, declared), file.path)
    for dotenv in dotenvs:
        assignments = list(_env_assignments(dotenv.values, f".env {dotenv.path}", dotenv.path.parent, declared))
        if dotenv.path.parent != current_folder:
            notices += dotenv.notices
        elif assignments:  # else it is another program's
            current_notices += dotenv.notices
        apply(assignments, None if dotenv.trusted else dotenv.path)
    apply(_env_assignments(environ, "environment", Path(), declared))
    apply(_flag_assignments(flags, declared))
    _read_key_files(values, origins, notices)
    for limits in (folder_files, current_files, folder_files):  # what one undoes may show a value of the other again
        for key, _, other in broken_pairs(values):
            limits.restore((key, other), values, origins)
    _set_implied_values(values, origins)
    check_pairs(values, origins)
    notices += folder_files.notices()
    current_notices += current_files.notices_about_current_folder(origins)
    return LoadedSettings(_build_settings(values), origins, notices, config_file, current_notices)


def _settings_in_use(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    configs: Sequence[files.ConfigFile],
    dotenvs: Sequence[_Dotenv],
) -> Mapping[str, Setting]:
    """Return the core settings and those of the providers that a source may set."""
    keys = [key.removeprefix("embedding.") for key in flags if key.startswith("embedding.")]
    provider_names = [flags.get(PROVIDER_KEY)]
    for file in configs:
        if isinstance(section := file.table.get("embedding"), dict):
            keys += [_key_text(key) for key in section]
            provider_names += [section.get("provider")] if file.trusted else []
    for environment in (environ, *(dotenv.values for dotenv in dotenvs if dotenv.trusted)):
        provider_names += [environment.get(name, "").strip() for name in CORE_SETTINGS[PROVIDER_KEY].env_names]
    env_names = [name for names in (environ, *(dotenv.values for dotenv in dotenvs)) for name in names]
    return needed_settings(keys, env_names, {name for name in provider_names if isinstance(name, str) and name})


def _read_key_files(values: dict[str, object], origins: dict[str, str], notices: list[str]) -> None:
    """Replace each key file by the secret in it; only the file that takes effect is read."""
    for key, value in values.items():
        if isinstance(value, KeyFile):
            values[key] = value.read_secret(key, origins[key], notices)
            origins[key] = f"file {value.path()}, named by {origins[key]}"


class _Dotenv(NamedTuple):
    path: Path
    values: dict[str, str]
    notices: list[str]
    trusted: bool


def _read_dotenvs(folders: Sequence[Path], folder_files: FolderFiles) -> list[_Dotenv]:
    """Read the `.env` of each folder; the first folder comes last, because what is applied last wins."""
    dotenvs = []
    for folder in reversed(list(dict.fromkeys(folders))):
        notices: list[str] = []
        path, trusted = folder / ".env", not folder_files.contain(folder)
        dotenvs.append(_Dotenv(path, files.read_dotenv(path, notices, trusted=trusted), notices, trusted))
    return dotenvs


def _set_implied_values(values: dict[str, object], origins: dict[str, str]) -> None:
    """Set the settings that have no value of their own but follow from others."""
    # Only the tokens chunker uses sizes in tokens: setting them without a chunker selects it.
    size_origins = [origins[key] for key in ("chunking.size", "chunking.overlap") if origins[key] != "default"]
    if size_origins and origins["chunker.kind"] == "default":
        values["chunker.kind"], origins["chunker.kind"] = "tokens", f"[chunking] of {size_origins[0]}"
    if values["storage.url"] and origins["storage.kind"] == "default":
        values["storage.kind"], origins["storage.kind"] = "postgres", f"storage.url of {origins['storage.url']}"
    # Values set for all tools also apply to web pages, which otherwise have their own defaults.
    for key, general in _WEB_FALLBACKS.items():
        if origins[key] == "default" and origins[general] != "default":
            # No limit for all tools means no limit here; None would mean the default limit of web pages.
            no_limit = key.endswith("min_combined_score") and values[general] is None
            values[key], origins[key] = 0.0 if no_limit else values[general], f"{general} of {origins[general]}"


def _file_assignments(path: Path, table: files.Table, declared: Mapping[str, Setting]) -> Iterator[_Assignment]:
    """Yield the settings in a config file."""
    origin = f"{path.name}: {path}"
    aliases = {f"{setting.section}.{name}": key for key, setting in declared.items() for name in setting.file_names}
    for section, content in table.items():
        if not isinstance(section, str) or section not in SECTIONS:
            raise unknown_setting_error(_key_text(section), origin)
        if content is None:  # YAML: a section in which every line is commented out
            continue
        if not isinstance(content, dict):
            raise SettingsError(
                f"{section} is {describe_type(content)} ({origin}), but it must be a table of settings",
                hint=f"Write a [{section}] section, or remove it.",
            )
        keys_in_file: dict[str, str] = {}  # as written, by setting
        for name, value in content.items():
            file_key = f"{section}.{_key_text(name)}"
            key = aliases.get(file_key, file_key)
            if secret_key := _secret_of_file_key(key, declared):
                key, value = secret_key, _key_file(file_key, value, origin, path.parent)
            if key not in declared:
                raise unknown_setting_error(file_key, origin)
            if key in keys_in_file:
                raise SettingsError(
                    f"{keys_in_file[key]} and {file_key} are the same setting ({origin})", hint="Remove one of them."
                )
            keys_in_file[key] = file_key
            yield key, value, origin


def _folder_assignments(path: Path, table: files.Table, declared: Mapping[str, Setting]) -> Iterator[_Assignment]:
    """Yield the settings in the config file of a documents folder; what is wrong with it is ignored, not an error."""
    for section, content in table.items():
        for name, value in content.items() if isinstance(content, dict) else ():
            single: files.Table = {section: {name: value}}
            try:
                yield from _file_assignments(path, single, declared)
            except SettingsError:
                yield f"{_key_text(section)}.{_key_text(name)}", value, ""
        if content is not None and not isinstance(content, dict):
            yield _key_text(section), content, ""


def folder_settings(config: files.ConfigFile) -> tuple[dict[str, object], list[str]]:
    """Return the settings in a config file that a documents folder may set, and the names of its other settings."""
    declared = all_settings()
    assignments = list(_folder_assignments(config.path, config.table, declared))
    limits = FolderFiles(config.path.parent, [])
    accepted = {key: value for key, value, _ in limits.filter(assignments, config.path, declared)}
    names = [f"{key}{FILE_SUFFIX}" if isinstance(value, KeyFile) else key for key, value, _ in assignments]
    return accepted, list(dict.fromkeys(name for name in names if name not in accepted))


def _secret_of_file_key(key: str, declared: Mapping[str, Setting]) -> str:
    """Return the secret setting that a key with the suffix `_file` belongs to, or an empty string."""
    secret_key = key.removesuffix(FILE_SUFFIX)
    return secret_key if key not in declared and secret_key in declared and declared[secret_key].secret else ""


def _key_file(file_key: str, value: object, origin: str, base: Path) -> KeyFile:
    if not isinstance(value, str) or not value.strip():
        raise SettingsError(
            f"{file_key} is {describe_value(value)} ({origin}), but it must be the path of a file",
            hint="Name the file that contains the secret, or remove the line.",
        )
    return KeyFile(value, base)


def _key_text(key: object) -> str:
    return key if isinstance(key, str) else describe_value(key)  # YAML allows keys of any type


def _env_assignments(
    environ: Mapping[str, str], origin: str, base: Path, declared: Mapping[str, Setting]
) -> Iterator[_Assignment]:
    """Yield the settings in an environment; a secret without a value may name a file with the suffix _FILE."""
    for key, setting in declared.items():
        for name in setting.env_names:
            text = environ.get(name)
            secret_path = environ.get(name + FILE_SUFFIX.upper(), "").strip() if setting.secret else ""
            if secret_path and not (text and text.strip()):
                yield key, KeyFile(secret_path, base), f"{origin} {name}{FILE_SUFFIX.upper()}"
                break
            if text is None:
                continue
            text = text.strip()
            if text or setting.optional:
                yield key, parse_value(setting, text) if text else None, f"{origin} {name}"
                break


def _flag_assignments(flags: Mapping[str, object], declared: Mapping[str, Setting]) -> Iterator[_Assignment]:
    for key, value in flags.items():
        if value is None:
            continue
        if key not in declared:
            raise unknown_setting_error(key, "flag")
        yield key, fspath(value) if isinstance(value, PathLike) else value, "flag"


def _build_settings(values: dict[str, object]) -> Settings:
    sections: dict[str, dict[str, object]] = {name: {} for name in SECTIONS}
    for key, value in values.items():
        section, _, name = key.partition(".")
        sections[section][name] = value
    return Settings(**{name: SECTIONS[name](**section_values) for name, section_values in sections.items()})
