"""Generate a starter `bunko.toml` that lists every setting at its default, commented out."""

from __future__ import annotations

import json

from bunko.settings.providers import all_settings
from bunko.settings.schema import SECTIONS
from bunko.settings.setting import Setting

_HEAD = """\
# Settings of bunko. Every setting is listed with its default: remove the # before a setting to change it.
# Flags override the environment, the environment overrides .env, and .env overrides this file.
# `bunko config show` prints each value and its origin.
"""


def starter_config() -> str:
    """Return the file content; a line with `# ` is a comment, a line with `#` and no space is a disabled setting."""
    parts, settings = [_HEAD], all_settings()
    for name, section in SECTIONS.items():
        lines = [f"# {section.__doc__}", f"[{name}]"]
        for setting in settings.values():
            if setting.section == name:
                lines += _setting_lines(setting)
        parts.append("\n".join([*lines, ""]))
    return "\n".join(parts)


def _setting_lines(setting: Setting) -> list[str]:
    name = setting.name
    if setting.secret:
        # A key in the config file would end up in backups and commits.
        names = " or ".join(reversed(setting.env_names))
        return [
            f"# {name}: {setting.meaning}. Do not write it here: set {names},",
            f"# or name a file that contains it: {name}_file.",
        ]
    comment = f"# {setting.meaning} ({setting.allowed_values()})."
    return [comment, f"#{name} = {_toml_value(setting.default)}"]


def _toml_value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    # TOML has no null; an empty string means that a setting is not set.
    return json.dumps("" if value is None else value, ensure_ascii=False)
