"""A setting is changed in a config file, and everything else in the file stays as it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

from bunko.errors import SettingsError
from bunko.settings.edit import edit_config
from bunko.settings.starter import starter_config

TOML, YAML = Path("bunko.toml"), Path("config.yaml")
TO_SERVER = {"storage.kind": "postgres", "storage.url": "postgresql://bunko@db/team?a=b#c", "storage.schema": "bunko"}
BACK: dict[str, str | None] = {"storage.kind": "sqlite", "storage.url": None, "storage.schema": None}


def test_an_empty_file_gets_the_section() -> None:
    assert edit_config(TOML, "", {"index.kind": "chroma"}) == '[index]\nkind = "chroma"\n'
    assert edit_config(YAML, "", {"index.kind": "chroma"}) == 'index:\n  kind: "chroma"\n'


def test_comments_order_and_other_settings_stay() -> None:
    text = (
        '# mine\n[search]  # how\ntop_k = 7\n\n[storage]\n# where\nkind = "sqlite"  # for now\npool_size = 4\n\n[log]\n'
    )
    new_text = edit_config(TOML, text, TO_SERVER)
    assert new_text == (
        '# mine\n[search]  # how\ntop_k = 7\n\n[storage]\n# where\nkind = "postgres"  # for now\npool_size = 4\n'
        'url = "postgresql://bunko@db/team?a=b#c"\nschema = "bunko"\n\n[log]\n'
    )
    assert edit_config(TOML, new_text, BACK) == text


def test_a_starter_file_gets_the_setting_below_its_commented_default() -> None:
    text = starter_config()
    new_text = edit_config(TOML, text, TO_SERVER)
    assert [line for line in new_text.splitlines() if line not in text.splitlines()] == [
        'kind = "postgres"', 'url = "postgresql://bunko@db/team?a=b#c"', 'schema = "bunko"',
    ]  # fmt: skip
    lines = new_text.splitlines()
    assert lines[lines.index('kind = "postgres"') - 1].startswith("#kind =")
    assert tomllib.loads(new_text)["storage"] == {
        key.removeprefix("storage."): value for key, value in TO_SERVER.items()
    }


def test_yaml_is_changed_too() -> None:
    text = "# mine\nsearch:\n    top_k: 7\n\nstorage:\n    kind: sqlite  # for now\n\nlog:\n    debug: true\n"
    new_text = edit_config(YAML, text, TO_SERVER)
    assert new_text.startswith('# mine\nsearch:\n    top_k: 7\n\nstorage:\n    kind: "postgres"  # for now\n    url:')
    assert new_text.endswith("\n\nlog:\n    debug: true\n")
    assert yaml.safe_load(new_text)["storage"]["url"] == TO_SERVER["storage.url"]


@pytest.mark.parametrize(
    "text",
    [
        'storage.kind = "sqlite"\n',
        'storage = { kind = "sqlite" }\n',
        '[storage]\nkind = """\nsqlite"""\n',
        "storage = 3\n",
    ],
)
def test_a_form_that_cannot_be_changed_line_by_line_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(SettingsError, match=r"bunko\.toml is written in a way") as raised:
        edit_config(TOML, text, TO_SERVER)
    assert 'storage.kind = "postgres"' in raised.value.hint


def test_a_section_of_the_same_name_in_a_text_or_comment_is_no_section() -> None:
    text = '[display]\nlanguage = "ja"  # [storage]\n# [storage]\n'
    assert edit_config(TOML, text, {"storage.kind": "sqlite"}) == f'{text}\n[storage]\nkind = "sqlite"\n'


def test_removing_what_is_not_set_changes_nothing() -> None:
    assert (
        edit_config(TOML, "[search]\ntop_k = 7\n", {"storage.url": None, "search.mode": None})
        == "[search]\ntop_k = 7\n"
    )
