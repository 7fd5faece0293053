"""Change settings in the user's own config file, for all libraries that have none of their own."""

from __future__ import annotations

from pathlib import Path

from bunko.errors import SettingsError
from bunko.library.opening.paths import user_config_folder
from bunko.runtime.temporary_files import rewrite_text
from bunko.settings import CONFIG_NAMES, LoadedSettings
from bunko.settings.edit import edit_config
from bunko.settings.files import find_configs, read_config
from bunko.settings.keyfile import FILE_SUFFIX, KeyFile
from bunko.settings.providers import all_settings
from bunko.settings.setting import Setting
from bunko.settings.validate import check_pairs, check_value, parse_value, unknown_setting_error

_ORIGIN = "new value"


def user_config_file() -> Path:
    """Return the config file of the user; the one that a change would create if there is none."""
    configs = find_configs([user_config_folder()], lambda _: False, [])
    return configs[0].path if configs else user_config_folder() / CONFIG_NAMES[0]


def set_setting(key: str, text: str, path: Path, loaded: LoadedSettings | None) -> None:
    """Write a setting to a config file; raise an error if the value is not allowed, alone or with those of `loaded`.

    A text is read as in the environment: lists have commas. An empty one removes an optional setting. `loaded` is None
    if the settings cannot be loaded as they are: the change may be what mends them.
    """
    if secret := _secret_of(key):
        file = Path(text).expanduser().absolute()
        KeyFile(str(file), Path()).read_secret(
            secret.key, _ORIGIN, []
        )  # one that cannot be read would stop every command
        _write(path, key, secret, str(file))
        return
    setting = _find_setting(key)
    if setting.secret:
        names = " or ".join(reversed(setting.env_names))
        raise SettingsError(
            f"{key} is a secret, which does not belong into a config file",
            hint=f"Set {names} in the environment, or name a file that contains it:"
            f" bunko config set {key}{FILE_SUFFIX} PATH",
        )
    text = text.strip()
    value = check_value(setting, parse_value(setting, text) if text else text, _ORIGIN)
    if loaded is not None:
        values = {
            f"{section}.{name}": other
            for section, content in vars(loaded.settings).items()
            for name, other in vars(content).items()
        }
        check_pairs(values | {key: value}, {**dict.fromkeys(values, "default"), **loaded.origins, key: _ORIGIN})
    _write(path, key, setting, value)


def unset_setting(key: str, path: Path) -> bool:
    """Remove a setting from a config file; return whether it was there."""
    section, _, name = key.partition(".")
    table = read_config(path) if path.exists() else {}
    content = table.get(section)
    names = [name]
    if (setting := all_settings().get(key)) is not None:
        names += [*setting.file_names, *([f"{setting.name}{FILE_SUFFIX}"] if setting.secret else [])]
    written = [name for name in names if isinstance(content, dict) and name in content]
    if not written:
        _secret_of(key) or _find_setting(key)
        return False
    rewrite_text(path, edit_config(path, _read(path), {f"{section}.{name}": None for name in written}))
    return True


def describe_override(key: str, path: Path, loaded: LoadedSettings) -> str:
    """Return a sentence that says what comes before a config file that was changed; empty if nothing does."""
    values = {name: (value, origin) for name, value, origin in loaded.rows()}
    value, origin = values.get(key) or values.get(key.removesuffix(FILE_SUFFIX), ("", "default"))
    if str(path) in origin:
        return ""
    if origin != "default":
        return f"It is {value} here: {origin} comes before that file."
    if loaded.config_file not in (None, path):
        return f"It is {value} here: {loaded.config_file} is read instead of that file."
    return ""


def _write(path: Path, key: str, setting: Setting, value: object) -> None:
    changes: dict[str, object] = {f"{setting.section}.{name}": None for name in setting.file_names}
    changes[key] = list(value) if isinstance(value, tuple) else value
    rewrite_text(path, edit_config(path, _read(path), changes))


def _read(path: Path) -> str:
    if not path.exists():
        return ""
    read_config(path)  # it says what is wrong with a file that cannot be read
    return path.read_text(encoding="utf-8-sig")


def _secret_of(key: str) -> Setting | None:
    """Return the secret that a key with the suffix `_file` belongs to."""
    settings = all_settings()
    secret = None if key in settings else settings.get(key.removesuffix(FILE_SUFFIX))
    return secret if secret is not None and secret.secret else None


def _find_setting(key: str) -> Setting:
    setting = all_settings().get(key)
    if setting is None:
        raise unknown_setting_error(key, _ORIGIN)
    return setting
