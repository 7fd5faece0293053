"""Generate `docs/settings.md` from the declared settings."""

from __future__ import annotations

from bunko.settings.providers import documented_settings
from bunko.settings.schema import SECTIONS

_HEAD = """\
# Settings

Flags override the environment, the environment overrides `.env`, `.env` overrides the config file, and the config
file overrides the defaults. `bunko config show` prints each value and its origin.

- **Config file**: `--config FILE`, or the first of `bunko.toml`, `config.yaml`, `config.toml` in the docs
  folder, the library and the user's config folder. Only write settings that differ from the default.
  An unknown key is an error. Without `--config`, a `config.yaml` or `config.toml` that has none of these
  sections is skipped. `bunko init` writes a `bunko.toml` that lists every setting, commented out.
- **`.env`**: read in the library and in the folder of the config file, never in the working directory. Lines are
  `NAME=value`, optionally with `#` comments, `export` and quotes. Unknown names are ignored.
- **Environment**: if several names in the table are set, the first one is used. Lists are separated by commas. An
  empty value resets a setting that may be nothing, and is ignored for other settings. True is `true`, `yes`, `on` or
  `1`, false is `false`, `no`, `off` or `0`.
- **Secrets**: a key or token can be read from a file. Append `_file` to the key in a config file
  (`openai_api_key_file = "~/.secrets/openai"`) or `_FILE` to the name in the environment or `.env`
  (`OPENAI_API_KEY_FILE`). The file must contain only the secret; relative paths start at the config file's folder.
  Files in a docs folder cannot name a secret file.
"""


def settings_reference() -> str:
    """Return all settings with type, default, environment names and help text, as Markdown."""
    parts, settings = [_HEAD], documented_settings()
    for name, section in SECTIONS.items():
        rows = ["| key | type | default | environment | meaning |", "|---|---|---|---|---|"]
        for setting in settings.values():
            if setting.section != name:
                continue
            keys = ", ".join(f"`{file_name}`" for file_name in (setting.name, *setting.file_names))
            names = ", ".join(f"`{env_name}`" for env_name in setting.env_names)
            default = setting.display_value(setting.default)
            if default != "not set":
                default = f"`{default}`"
            rows.append(f"| {keys} | {setting.allowed_values()} | {default} | {names} | {setting.meaning} |")
        parts.append("\n".join([f"## [{name}]", section.__doc__, "", *rows, ""]))
    return "\n".join(parts)
