"""Takes the declared settings; gives the page `docs/settings.md`."""

from __future__ import annotations

from bunko.settings.schema import SECTIONS, SETTINGS

_HEAD = """\
# Settings

A flag wins over the environment, the environment over `.env`, `.env` over the config file, the config file
over the default. `bunko config show` prints each value and where it came from.

- **Config file**: `--config FILE`, or the first of `bunko.toml`, `config.yaml`, `config.toml` in the docs
  folder, the library, the user's config folder. Write what differs from the default and leave out the rest.
  An unknown key is an error. A `config.yaml` or `config.toml` that was not named and has none of these
  sections is skipped. `bunko init` writes a `bunko.toml` in which every setting stands commented out.
- **`.env`**: in the library and beside the config file, never in the working directory. Lines are
  `NAME=value`, with `#` comments, `export` and quotes if you like. Unknown names are ignored.
- **Environment**: the first name in the table wins. Lists are separated by commas. An empty value takes back
  a setting that may be nothing, and is ignored for the others. True is `true`, `yes`, `on` or `1`, false is
  `false`, `no`, `off` or `0`.
- **Secrets**: a key or token may lie in a file of its own. Name it with `_file` after the key in a config file
  (`openai_api_key_file = "~/.secrets/openai"`) or `_FILE` after the name in the environment or `.env`
  (`OPENAI_API_KEY_FILE`). The file holds the secret and nothing else; a path begins at the config file's folder.
  A docs folder cannot name one.
"""


def settings_reference() -> str:
    """Return every setting with its type, default, names and meaning, as Markdown."""
    parts = [_HEAD]
    for name, section in SECTIONS.items():
        rows = ["| key | type | default | environment | meaning |", "|---|---|---|---|---|"]
        for setting in SETTINGS.values():
            known_as, _, key = setting.key.partition(".")
            if known_as != name:
                continue
            keys = ", ".join(f"`{word}`" for word in (key, *setting.file_names))
            names = ", ".join(f"`{word}`" for word in setting.env_names)
            default = setting.display_value(setting.default)
            if default != "not set":
                default = f"`{default}`"
            rows.append(f"| {keys} | {setting.allowed_values()} | {default} | {names} | {setting.meaning} |")
        parts.append("\n".join([f"## [{name}]", section.__doc__, "", *rows, ""]))
    return "\n".join(parts)
