"""Takes flags, environment, `.env` and config files; gives the settings in force and where each came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from bunko.errors import SettingsError
from bunko.settings import files
from bunko.settings.keyfile import ENDING, KeyFile
from bunko.settings.schema import SECTIONS, SETTINGS, Settings
from bunko.settings.validate import check_pairs, checked, found, kind_of, parsed, unknown

_Found = tuple[str, object, str]  # key, value, origin
# What a folder of documents cannot decide: where texts and keys go and what that costs, what is run, who is let in.
_NOT_THEIRS = (
    "chat.", "crawl.", "embedding.", "log.keep_searches", "rewrite.", "safety.", "serve.", "summarize.",
)  # fmt: skip


_PASSWORD = re.compile(r"(?<=://)[^/?#\s]*(?=@)")  # and the name before it, in an address

_FOR_PAGES = {"web.chunk_size": "chunker.chunk_size", "web.chunk_overlap": "chunker.chunk_overlap"} | {
    f"web.{name}": f"search.{name}" for name in ("vector_weight", "k1", "b", "min_combined_score")
}


@dataclass(frozen=True, eq=False)
class Loaded:
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
            rows.append((key, _PASSWORD.sub("********", setting.shown(value)), self.origins[key]))
        return rows


def load(
    *,
    flags: Mapping[str, object] = {},
    environ: Mapping[str, str],
    config: Path | None = None,
    folders: Sequence[Path] = (),
    dotenv_folders: Sequence[Path] = (),
    guarded: Path | None = None,
) -> Loaded:
    """Merge all sources: a flag wins over the environment, then `.env`, the config file, the default.

    Without `config`, the first config file in `folders` is used. `.env` is read in `dotenv_folders`, then
    beside the config file; the first folder that sets something wins. What is found in `guarded`, a folder of
    documents that may be somebody else's, has no say in how assistants are served: tokens and hosts are not its own.
    Nor may it have the user's searches kept, or say what is fetched from the web and how.
    """
    notices: list[str] = []
    file = (config, files.given(config)) if config is not None else files.found(folders, notices)
    values: dict[str, object] = {key: setting.default for key, setting in SETTINGS.items()}
    origins = dict.fromkeys(SETTINGS, "default")

    def take(layer: Iterator[_Found], folder: Path | None = None) -> None:
        for key, value, origin in layer:
            is_file = isinstance(value, KeyFile)
            if folder is not None and folder == guarded and (key.startswith(_NOT_THEIRS) or is_file):
                notices.append(f"{key} is ignored ({origin}): set it in the library or in your own configuration.")
                continue
            values[key] = value if is_file else checked(SETTINGS[key], value, origin)
            origins[key] = origin

    if file:
        take(_from_file(*file), file[0].parent if config is None else None)
    beside = [file[0].parent] if file else []
    for folder in reversed(list(dict.fromkeys([*dotenv_folders, *beside]))):
        path = folder / ".env"
        take(_from_names(files.dotenv(path, notices), f".env {path}", folder), folder if config is None else None)
    take(_from_names(environ, "environment", Path()))
    take(_from_flags(flags))
    for key, value in values.items():
        if isinstance(value, KeyFile):  # only the one that holds is looked at
            values[key] = value.read(key, origins[key], notices)
            origins[key] = f"file {value.path()}, named by {origins[key]}"
    _imply(values, origins)
    check_pairs(values, origins)
    return Loaded(_tree(values), origins, notices, file[0] if file else None)


def _imply(values: dict[str, object], origins: dict[str, str]) -> None:
    """Set what was left alone and follows from what was set."""
    # Sizes in tokens are of use to one chunker only: who sets them and names none means that one.
    sized = [origins[key] for key in ("chunking.size", "chunking.overlap") if origins[key] != "default"]
    if sized and origins["chunker.kind"] == "default":
        values["chunker.kind"], origins["chunker.kind"] = "tokens", f"[chunking] of {sized[0]}"
    # What was set for all tools counts for web pages too, which have defaults of their own.
    for key, general in _FOR_PAGES.items():
        if origins[key] == "default" and origins[general] != "default":
            # No limit for all is no limit here; not set would mean the one that pages have by default.
            own = 0.0 if key.endswith("min_combined_score") and values[general] is None else values[general]
            values[key], origins[key] = own, f"{general} of {origins[general]}"


def _from_file(path: Path, table: dict[object, object]) -> Iterator[_Found]:
    origin = f"{path.name}: {path}"
    aliases = {
        f"{key.partition('.')[0]}.{name}": key for key, setting in SETTINGS.items() for name in setting.file_names
    }
    for section, content in table.items():
        if not isinstance(section, str) or section not in SECTIONS:
            raise unknown(_written(section), origin)
        if content is None:  # YAML: a section whose every line is commented out
            continue
        if not isinstance(content, dict):
            raise SettingsError(
                f"{section} is {kind_of(content)} ({origin}), but it must be a table of settings.",
                hint=f"Write a [{section}] section, or leave it out.",
            )
        seen: dict[str, str] = {}
        for name, value in content.items():
            written = f"{section}.{_written(name)}"
            key = aliases.get(written, written)
            own = key.removesuffix(ENDING)
            if key not in SETTINGS and own in SETTINGS and SETTINGS[own].secret:
                if not isinstance(value, str) or not value.strip():
                    raise SettingsError(
                        f"{written} is {found(value)} ({origin}), but it must be the path of a file.",
                        hint="Name the file that holds the secret, or leave the line out.",
                    )
                key, value = own, KeyFile(value, path.parent)
            if key not in SETTINGS:
                raise unknown(written, origin)
            if key in seen:
                raise SettingsError(
                    f"{seen[key]} and {written} are the same setting ({origin}).", hint="Keep one of them."
                )
            seen[key] = written
            yield key, value, origin


def _written(key: object) -> str:
    return key if isinstance(key, str) else found(key)  # YAML has keys of every type


def _from_names(names: Mapping[str, str], origin: str, base: Path) -> Iterator[_Found]:
    """Return what names say; where a secret's own name says nothing, one that ends with _FILE may."""
    for key, setting in SETTINGS.items():
        for name in setting.env:
            text = names.get(name)
            place = names.get(name + ENDING.upper(), "").strip() if setting.secret else ""
            if place and not (text and text.strip()):
                yield key, KeyFile(place, base), f"{origin} {name}{ENDING.upper()}"
                break
            if text is None:
                continue
            text = text.strip()
            if text or setting.optional:
                yield key, parsed(setting, text) if text else None, f"{origin} {name}"
                break


def _from_flags(flags: Mapping[str, object]) -> Iterator[_Found]:
    for key, value in flags.items():
        if value is None:
            continue
        if key not in SETTINGS:
            raise unknown(key, "flag")
        yield key, fspath(value) if isinstance(value, PathLike) else value, "flag"


def _tree(values: dict[str, object]) -> Settings:
    sections: dict[str, dict[str, object]] = {name: {} for name in SECTIONS}
    for key, value in values.items():
        section, _, name = key.partition(".")
        sections[section][name] = value
    return Settings(**{name: SECTIONS[name](**leaves) for name, leaves in sections.items()})
