"""Generate `docs/settings.md` from the declared settings."""

from __future__ import annotations

from bunko.settings.folder_files import FOLDER_LIMITS
from bunko.settings.providers import documented_settings
from bunko.settings.schema import SECTIONS

_HEAD = """\
# Settings

Flags override the environment, the environment overrides `.env`, `.env` overrides the config file, and the config
file overrides the defaults. `bunko config show` prints each value and its origin, and
`bunko config set KEY VALUE` changes your own config file.

- **Config file**: `--config FILE`, or the first of `bunko.toml`, `config.yaml`, `config.toml` in the documents
  folder, the library and the user's config folder. Only write settings that differ from the default.
  An unknown key is an error. Without `--config`, a `config.yaml` or `config.toml` that has none of these
  sections is skipped. `bunko init` writes a `bunko.toml` that lists every setting, commented out.
- **`.env`**: read in the library and in the folder of the config file, in the current folder only as below. Lines are
  `NAME=value`, optionally with `#` comments, `export` and quotes. Unknown names are ignored.
- **Environment**: if several names in the table are set, the first one is used. Lists are separated by commas. An
  empty value resets a setting that may be nothing, and is ignored for other settings. True is `true`, `yes`, `on` or
  `1`, false is `false`, `no`, `off` or `0`.
- **Documents folders**: a folder given with `--docs-dir` may come from somebody else. Its config file, its `.env` and
  those of a library inside it may set only what the column "documents folder" allows, over your own config file.
  Everything else in them is ignored with one line that names it, and a file that cannot be read is skipped. Put
  such settings into your config folder, the environment, a file for `--config`, or a library outside of the folder
  (`--data-dir`).
- **Current folder**: of a `bunko.toml`, `config.yaml`, `config.toml` or `.env` there, commands read what a documents
  folder may set, under the files of the documents folder and over your own config file. One line on stderr names
  what was read, and one what was not. To use all of a config file, name it with `--config`.
- **Secrets**: a key or token can be read from a file. Append `_file` to the key in a config file
  (`openai_api_key_file = "~/.secrets/openai"`) or `_FILE` to the name in the environment or `.env`
  (`OPENAI_API_KEY_FILE`). The file must contain only the secret; relative paths start at the config file's folder.
  Files in a documents folder cannot name a secret file.
"""


def settings_reference() -> str:
    """Return all settings with type, default, environment names and help text, as Markdown."""
    parts, settings = [_HEAD], documented_settings()
    for name, section in SECTIONS.items():
        has_limits = any(key.startswith(f"{name}.") for key in FOLDER_LIMITS)
        header = "| key | type | default | environment | meaning |" + (" documents folder |" if has_limits else "")
        rows = [header, "|---" * (header.count("|") - 1) + "|"]
        for setting in settings.values():
            if setting.section != name:
                continue
            keys = ", ".join(f"`{file_name}`" for file_name in (setting.name, *setting.file_names))
            names = ", ".join(f"`{env_name}`" for env_name in setting.env_names)
            default = setting.display_value(setting.default)
            if default != "not set":
                default = f"`{default}`"
            row = f"| {keys} | {setting.allowed_values()} | {default} | {names} | {setting.meaning} |"
            if has_limits:
                limit = FOLDER_LIMITS.get(setting.key)
                row += f" {'no' if limit is None else limit.text or 'yes'} |"
            rows.append(row)
        parts.append("\n".join([f"## [{name}]", section.__doc__, "", *rows, ""]))
    return "\n".join(parts)
