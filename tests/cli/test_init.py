"""A library begins with a settings file that changes nothing until somebody edits it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SettingsError
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.settings import all_settings, load_settings
from bunko.settings.schema import SECTIONS
from bunko.settings.starter import starter_config

SETTINGS = all_settings()

SEED = """\
[database]
path = "vector-db.sqlite"

[chunking]
size = 512
overlap = 32

[display]
default_format = "json"

[search]
k = 2

[model]
auto_unload_minutes = 7
memory_threshold = 0.5
"""


def bunko(tmp_path: Path, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BUNKO_", "RAG_", "EMBEDDING_"))}
    places = {name: str(tmp_path / name) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    command = [sys.executable, "-m", "bunko", *map(str, arguments)]
    environ = kept | places | {"PYTHONUTF8": "1"} | environ
    return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)


def uncommented(text: str) -> str:
    """Return the file with every setting in force: prose begins with a # and a space, a setting with a # alone."""
    return re.sub(r"^#(?! )", "", text, flags=re.M)


def values(path: Path) -> dict[str, tuple[str, str]]:
    return {key: (value, origin) for key, value, origin in load_settings(environ={}, config=path).rows()}


def test_the_file_with_every_line_in_force_is_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "bunko.toml"
    path.write_text(uncommented(starter_config()), encoding="utf-8")
    settings = load_settings(environ={}, config=path).settings
    for key, setting in SETTINGS.items():
        section, _, name = key.partition(".")
        assert getattr(getattr(settings, section), name) == setting.default, key
    origins = {key: origin for key, (_, origin) in values(path).items()}
    assert {key for key, origin in origins.items() if origin == "default"} == {
        key for key, setting in SETTINGS.items() if setting.secret
    }


def test_the_file_as_it_is_sets_nothing_and_names_every_section_and_meaning() -> None:
    text = starter_config()
    table = tomllib.loads(text)
    assert list(table) == list(SECTIONS)
    assert not any(table.values())
    for setting in SETTINGS.values():
        assert setting.meaning in text
    assert max(len(line) for line in text.splitlines()) < 200


def test_a_secret_is_only_named_with_its_environment_variable() -> None:
    text = starter_config()
    secrets = [setting for setting in SETTINGS.values() if setting.secret]
    assert secrets
    for setting in secrets:
        section, _, name = setting.key.partition(".")
        lines = text.partition(f"\n[{section}]\n")[2].partition("\n[")[0].splitlines()
        (line,) = [line for line in lines if re.match(rf"#\s?{name}\b", line)]
        assert setting.env_names[-1] in line
        assert "=" not in line


@pytest.mark.parametrize("key", ["search.similarity_threshold", "search.hybrid_enabled", "embedding.prefix_enabled"])
def test_an_empty_text_says_that_a_number_or_a_choice_is_not_set(tmp_path: Path, key: str) -> None:
    section, _, name = key.partition(".")
    path = tmp_path / "bunko.toml"
    path.write_text(f'[{section}]\n{name} = ""\n')
    assert values(path)[key][0] == "not set"
    path.write_text(f'[{section}]\n{name} = "x"\n')
    with pytest.raises(SettingsError):
        load_settings(environ={}, config=path)


@pytest.mark.slow
def test_init_makes_a_library_and_says_what_to_do_next(tmp_path: Path) -> None:
    library = tmp_path / "my library"
    done = bunko(tmp_path, "init", "--library", library)
    assert done.returncode == 0, done.stderr
    assert (library / "bunko.toml").read_text(encoding="utf-8") == starter_config()
    assert (library / "library.db").exists()
    place = f"--library '{library}'"
    for step in (f"bunko add FOLDER {place}", f'bunko search "…" {place}', f"bunko connect claude-code {place}"):
        assert step in done.stdout
    assert bunko(tmp_path, "status", "--library", library).returncode == 0
    assert sorted(path.name for path in library.iterdir() if ".tmp" in path.name) == []


@pytest.mark.slow
def test_init_overwrites_only_by_force_and_keeps_the_old_file(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "bunko.toml").write_text("[search]\ntop_k = 9\n")
    refused = bunko(tmp_path, "init", "--library", library)
    assert refused.returncode == 2
    assert "bunko.toml already" in refused.stderr
    assert "--force" in refused.stderr
    assert (library / "bunko.toml").read_text() == "[search]\ntop_k = 9\n"
    assert not (library / "library.db").exists()
    told = json.loads(bunko(tmp_path, "init", "--library", library, "--force", "--json").stdout)
    assert Path(told["backup"]).read_text() == "[search]\ntop_k = 9\n"
    assert Path(told["settings"]).read_text(encoding="utf-8") == starter_config()
    assert Path(told["library"]) == library / "library.db"


@pytest.mark.slow
def test_init_does_not_silently_take_the_place_of_another_config_file(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "config.toml").write_text("[search]\nk = 9\n")
    assert "config.toml already" in bunko(tmp_path, "init", "--library", library).stderr
    forced = bunko(tmp_path, "init", "--library", library, "--force")
    assert forced.returncode == 0
    assert "config.toml is now ignored" in forced.stderr
    assert (library / "config.toml").exists()


def shown(tmp_path: Path, *place: str | Path) -> dict[str, Any]:
    done = bunko(tmp_path, "config", "show", *place, "--json")
    assert done.returncode == 0, done.stderr
    return {key: one["value"] for key, one in json.loads(done.stdout).items()}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["in the library", "in the user's own library", "by --config"])
def test_a_config_toml_says_where_the_database_is_and_how_to_search(tmp_path: Path, way: str) -> None:
    folder = {"in the user's own library": tmp_path / "XDG_DATA_HOME" / "bunko"}.get(way, tmp_path / "library")
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(SEED)
    places: dict[str, tuple[str | Path, ...]] = {
        "in the library": ("--library", folder),
        "in the user's own library": (),
        "by --config": ("--config", folder / "config.toml"),
    }
    place = places[way]
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b", "c"):
        (docs / f"{name}.md").write_text(
            f"# 京都 {name}\n\n京都の寺を三日かけて巡った、{name} の日の記録です。", encoding="utf-8"
        )
    added = bunko(tmp_path, "tool", "add", "-n", "travel", "-d", "旅の記録", "-s", docs, *place)
    assert added.returncode == 0, added.stderr
    assert bunko(tmp_path, "import", "-n", "travel", *place).returncode == 0
    assert sorted(path.name for path in folder.iterdir() if path.suffix in (".sqlite", ".db")) == ["vector-db.sqlite"]
    assert not (tmp_path / "XDG_DATA_HOME" / "bunko" / "library.db").exists()
    found = bunko(tmp_path, "search", "京都の寺", *place)
    assert found.stdout.count("score=") == 2
    assert json.loads(bunko(tmp_path, "tool", "ls", "--all", *place).stdout)[0]["name"] == "travel"
    settings = shown(tmp_path, *place)
    wanted = {
        "chunker.kind": "tokens",
        "chunking.size": "512",
        "chunking.overlap": "32",
        "display.default_format": "json",
        "search.top_k": "2",
        "model.auto_unload_minutes": "7",
        "model.memory_threshold": "0.5",
    }
    assert {key: settings[key] for key in wanted} == wanted


def test_a_flag_and_the_documents_of_others_do_not_move_a_database(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(SEED)
    named = tmp_path / "named.db"
    with open_library(locate_library(database=named, environ={}), environ={}) as library:
        assert library.paths.database == named
    with open_library(
        locate_library(library=tmp_path / "other", environ={}), environ={}, config=tmp_path / "config.toml"
    ) as library:
        assert library.paths.database == tmp_path / "other" / "library.db"
    docs = tmp_path / "docs"
    (docs / ".rag-index").mkdir(parents=True)
    for folder in (docs, docs / ".rag-index"):
        (folder / "config.toml").write_text(SEED)
    with open_library(locate_library(docs_dir=docs, environ={}), environ={}) as library:
        assert library.paths.database == docs / ".rag-index" / "library.db"
    environ = {"BUNKO_DATABASE_PATH": str(tmp_path / "from-environment.db")}
    (tmp_path / "plain").mkdir()
    with open_library(locate_library(library=tmp_path / "plain", environ=environ), environ=environ) as library:
        assert library.paths.database == tmp_path / "plain" / "library.db"


@pytest.mark.slow
def test_init_in_a_documents_folder_says_where_the_users_own_settings_belong(tmp_path: Path) -> None:
    done = bunko(tmp_path, "init", "--docs-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "bunko/bunko.toml" in done.stderr
