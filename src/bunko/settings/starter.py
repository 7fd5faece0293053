"""Takes the declared settings; gives a `bunko.toml` to begin with: every setting at its default, commented out."""

from __future__ import annotations

import json

from bunko.settings.schema import SECTIONS, SETTINGS, Setting

_HEAD = """\
# Settings of bunko. Every setting stands here at its default: take the # before one away to change it.
# A flag wins over the environment, the environment over .env, .env over this file.
# `bunko config show` prints each value and where it came from.
"""


def starter_config() -> str:
    """Return the file; what begins with a # and a space is prose, what begins with a # alone is a setting."""
    parts = [_HEAD]
    for name, section in SECTIONS.items():
        lines = [f"# {section.__doc__}", f"[{name}]"]
        for setting in SETTINGS.values():
            if setting.key.startswith(f"{name}."):
                lines += _setting_lines(setting)
        parts.append("\n".join([*lines, ""]))
    return "\n".join(parts)


def _setting_lines(setting: Setting) -> list[str]:
    name = setting.key.partition(".")[2]
    if setting.secret:
        # A key in a file is a key in a backup and in a commit.
        names = " or ".join(reversed(setting.env_names))
        return [f"# {name}: {setting.meaning}. Not here: set {names}.", f"# Or name a file that holds it: {name}_file."]
    about = f"# {setting.meaning} ({setting.allowed_values()})."
    return [about, f"#{name} = {_toml_value(setting.default)}"]


def _toml_value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    # TOML has no null; an empty text says that a setting is not set.
    return json.dumps("" if value is None else value, ensure_ascii=False)
