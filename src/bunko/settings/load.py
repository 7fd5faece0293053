"""Takes flags, environment, `.env` and config files; gives the settings in force and where each came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from bunko.errors import SettingsError
from bunko.settings import files
from bunko.settings.keyfile import FILE_SUFFIX, KeyFile
from bunko.settings.schema import SECTIONS, SETTINGS, Settings
from bunko.settings.validate import (
    check_pairs,
    check_value,
    describe_type,
    describe_value,
    parse_value,
    unknown_setting_error,
)

_Assignment = tuple[str, object, str]  # key, value, origin
# What a folder of documents cannot decide: where texts and keys go and what that costs, what is run, who is let in.
_USER_ONLY_KEYS = (
    "chat.", "crawl.", "embedding.", "log.keep_searches", "rewrite.", "safety.", "serve.", "summarize.",
)  # fmt: skip


_URL_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*(?=@)")  # and the name before it, in an address

_WEB_FALLBACKS = {"web.chunk_size": "chunker.chunk_size", "web.chunk_overlap": "chunker.chunk_overlap"} | {
    f"web.{name}": f"search.{name}" for name in ("vector_weight", "k1", "b", "min_combined_score")
}


@dataclass(frozen=True, eq=False)
class LoadedSettings:
    """The settings in force, where each came from, and what the user should know about it."""

    settings: Settings
    origins: dict[str, str]
    notices: list[str]
    config_file: Path | None

    def rows(self) -> list[tuple[str, str, str]]:
        """Return key, value and origin of every setting, secrets masked."""
        rows = []
        for key, setting in SETTINGS.items():
            section, _, name = key.partition(".")
            value = getattr(getattr(self.settings, section), name)
            rows.append((key, _URL_CREDENTIALS.sub("********", setting.display_value(value)), self.origins[key]))
        return rows


def load_settings(
    *,
    flags: Mapping[str, object] = {},
    environ: Mapping[str, str],
    config: Path | None = None,
    config_folders: Sequence[Path] = (),
    dotenv_folders: Sequence[Path] = (),
    untrusted_folder: Path | None = None,
) -> LoadedSettings:
    """Merge all sources: a flag wins over the environment, then `.env`, the config file, the default.

    Without `config`, the first config file in `folders` is used. `.env` is read in `dotenv_folders`, then
    beside the config file; the first folder that sets something wins. What is found in `guarded`, a folder of
    documents that may be somebody else's, has no say in how assistants are served: tokens and hosts are not its own.
    Nor may it have the user's searches kept, or say what is fetched from the web and how.
    """
    notices: list[str] = []
    file = (config, files.read_config(config)) if config is not None else files.find_config(config_folders, notices)
    values: dict[str, object] = {key: setting.default for key, setting in SETTINGS.items()}
    origins = dict.fromkeys(SETTINGS, "default")

    def take(layer: Iterator[_Assignment], folder: Path | None = None) -> None:
        for key, value, origin in layer:
            is_file = isinstance(value, KeyFile)
            if folder is not None and folder == untrusted_folder and (key.startswith(_USER_ONLY_KEYS) or is_file):
                notices.append(f"{key} is ignored ({origin}): set it in the library or in your own configuration.")
                continue
            values[key] = value if is_file else check_value(SETTINGS[key], value, origin)
            origins[key] = origin

    if file:
        take(_file_assignments(*file), file[0].parent if config is None else None)
    beside = [file[0].parent] if file else []
    for folder in reversed(list(dict.fromkeys([*dotenv_folders, *beside]))):
        path = folder / ".env"
        take(
            _env_assignments(files.read_dotenv(path, notices), f".env {path}", folder),
            folder if config is None else None,
        )
    take(_env_assignments(environ, "environment", Path()))
    take(_flag_assignments(flags))
    for key, value in values.items():
        if isinstance(value, KeyFile):  # only the one that holds is looked at
            values[key] = value.read_secret(key, origins[key], notices)
            origins[key] = f"file {value.path()}, named by {origins[key]}"
    _set_implied_values(values, origins)
    check_pairs(values, origins)
    return LoadedSettings(_build_settings(values), origins, notices, file[0] if file else None)


def _set_implied_values(values: dict[str, object], origins: dict[str, str]) -> None:
    """Set what was left alone and follows from what was set."""
    # Sizes in tokens are of use to one chunker only: who sets them and names none means that one.
    sized = [origins[key] for key in ("chunking.size", "chunking.overlap") if origins[key] != "default"]
    if sized and origins["chunker.kind"] == "default":
        values["chunker.kind"], origins["chunker.kind"] = "tokens", f"[chunking] of {sized[0]}"
    # What was set for all tools counts for web pages too, which have defaults of their own.
    for key, general in _WEB_FALLBACKS.items():
        if origins[key] == "default" and origins[general] != "default":
            # No limit for all is no limit here; not set would mean the one that pages have by default.
            own = 0.0 if key.endswith("min_combined_score") and values[general] is None else values[general]
            values[key], origins[key] = own, f"{general} of {origins[general]}"


def _file_assignments(path: Path, table: dict[object, object]) -> Iterator[_Assignment]:
    origin = f"{path.name}: {path}"
    aliases = {
        f"{key.partition('.')[0]}.{name}": key for key, setting in SETTINGS.items() for name in setting.file_names
    }
    for section, content in table.items():
        if not isinstance(section, str) or section not in SECTIONS:
            raise unknown_setting_error(_key_text(section), origin)
        if content is None:  # YAML: a section whose every line is commented out
            continue
        if not isinstance(content, dict):
            raise SettingsError(
                f"{section} is {describe_type(content)} ({origin}), but it must be a table of settings.",
                hint=f"Write a [{section}] section, or leave it out.",
            )
        seen: dict[str, str] = {}
        for name, value in content.items():
            written = f"{section}.{_key_text(name)}"
            key = aliases.get(written, written)
            own = key.removesuffix(FILE_SUFFIX)
            if key not in SETTINGS and own in SETTINGS and SETTINGS[own].secret:
                if not isinstance(value, str) or not value.strip():
                    raise SettingsError(
                        f"{written} is {describe_value(value)} ({origin}), but it must be the path of a file.",
                        hint="Name the file that holds the secret, or leave the line out.",
                    )
                key, value = own, KeyFile(value, path.parent)
            if key not in SETTINGS:
                raise unknown_setting_error(written, origin)
            if key in seen:
                raise SettingsError(
                    f"{seen[key]} and {written} are the same setting ({origin}).", hint="Keep one of them."
                )
            seen[key] = written
            yield key, value, origin


def _key_text(key: object) -> str:
    return key if isinstance(key, str) else describe_value(key)  # YAML has keys of every type


def _env_assignments(names: Mapping[str, str], origin: str, base: Path) -> Iterator[_Assignment]:
    """Return what names say; where a secret's own name says nothing, one that ends with _FILE may."""
    for key, setting in SETTINGS.items():
        for name in setting.env_names:
            text = names.get(name)
            place = names.get(name + FILE_SUFFIX.upper(), "").strip() if setting.secret else ""
            if place and not (text and text.strip()):
                yield key, KeyFile(place, base), f"{origin} {name}{FILE_SUFFIX.upper()}"
                break
            if text is None:
                continue
            text = text.strip()
            if text or setting.optional:
                yield key, parse_value(setting, text) if text else None, f"{origin} {name}"
                break


def _flag_assignments(flags: Mapping[str, object]) -> Iterator[_Assignment]:
    for key, value in flags.items():
        if value is None:
            continue
        if key not in SETTINGS:
            raise unknown_setting_error(key, "flag")
        yield key, fspath(value) if isinstance(value, PathLike) else value, "flag"


def _build_settings(values: dict[str, object]) -> Settings:
    sections: dict[str, dict[str, object]] = {name: {} for name in SECTIONS}
    for key, value in values.items():
        section, _, name = key.partition(".")
        sections[section][name] = value
    return Settings(**{name: SECTIONS[name](**leaves) for name, leaves in sections.items()})
