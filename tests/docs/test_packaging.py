"""What registries and desktop assistants read about bunko: well formed, and the same everywhere."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

import bunko
from bunko.interfaces.cli.main import bunko as program
from bunko.settings import load_settings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TOOLS = runpy.run_path(str(ROOT / "docs" / "tools.py"))


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / name).read_text(encoding="utf-8"))
    return found


def test_the_version_is_the_same_everywhere() -> None:
    server = read("server.json")
    versions = {
        "pyproject.toml": PROJECT["version"],
        "server.json": server["version"],
        "server.json, package": server["packages"][0]["version"],
        "mcpb/manifest.json": read("mcpb/manifest.json")["version"],
    }
    assert versions == dict.fromkeys(versions, bunko.__version__)


def test_server_json_follows_the_official_schema() -> None:
    # A linter for such files ships the schemas as they were released; the registry itself is not asked.
    released = files("skillsaw.schemas.mcp_registry.v2025_12_11") / "server.schema.json"
    schema = json.loads(released.read_text(encoding="utf-8"))
    server = read("server.json")
    assert server["$schema"] == schema["$id"]
    jsonschema.Draft202012Validator(schema).validate(server)
    # The schema allows unknown fields; a misspelt one would be lost without a word.
    package = schema["definitions"]["Package"]["properties"]
    assert server.keys() <= schema["definitions"]["ServerDetail"]["properties"].keys()
    assert all(one.keys() <= package.keys() for one in server["packages"])


def test_the_links_on_the_package_index_lead_to_the_repository_that_the_registry_names() -> None:
    owner, name = read("server.json")["name"].removeprefix("io.github.").split("/")
    links = PROJECT["urls"]
    assert links.keys() == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(link.startswith(f"https://github.com/{owner}/{name}") for link in links.values())
    paths = [re.sub(".*/main/", "", link) for link in links.values() if "/main/" in link]
    assert paths
    assert all((ROOT / path).exists() for path in paths)


def test_the_classifiers_name_the_same_systems_and_pythons_as_the_rest() -> None:
    named = {"Linux": "linux", "MacOS": "darwin", "Windows": "win32"}
    systems = [line.split(" :: ")[-1] for line in PROJECT["classifiers"] if line.startswith("Operating System")]
    compatible = read("mcpb/manifest.json")["compatibility"]
    assert sorted(named[system] for system in systems) == sorted(compatible["platforms"])
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    end = f"3.{int(pythons[-1].removeprefix('3.')) + 1}"
    assert f">={pythons[0]},<{end}" == PROJECT["requires-python"] == compatible["runtimes"]["python"]
    for readme in ("README.md", "README.ja.md"):
        text = (ROOT / readme).read_text(encoding="utf-8")
        assert all(re.search(rf"\b{version}\b", text, re.ASCII) for version in map(re.escape, pythons))


def test_the_readme_on_the_package_index_proves_whose_server_it_is() -> None:
    assert f"<!-- mcp-name: {read('server.json')['name']} -->" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("source", ["server.json", "mcpb/manifest.json"])
def test_the_command_that_others_start_exists(source: str) -> None:
    if source == "server.json":
        arguments = read(source)["packages"][0]["packageArguments"]
        line = [part for one in arguments for part in (one.get("name"), one.get("value", ".")) if part]
    else:
        config = read(source)["server"]["mcp_config"]
        line = [part.replace("${user_config.docs_dir}", ".") for part in config["args"]]
        line = line[line.index("bunko") + 1 :]
    assert line[0] == "serve"
    context = program.make_context("bunko", line)
    _, command, rest = program.resolve_command(context, line)
    assert command is not None
    assert command.make_context("serve", rest, parent=context).params["docs_dir"] == Path()


def test_the_bundle_names_the_tools_that_it_brings() -> None:
    manifest = read("mcpb/manifest.json")
    assert [tool["name"] for tool in manifest["tools"]] == [tool.name for tool in TOOLS["fixed_tools"](("folder",))]
    text = (ROOT / "mcpb/manifest.json").read_text(encoding="utf-8")
    assert TOOLS["replace_manifest_tools"](text) == text, "Run .venv/bin/python docs/tools.py."
    assert (ROOT / manifest["server"]["entry_point"]).exists()
    config = manifest["user_config"]
    assert config.keys() == {"docs_dir", "toolsets", "read_only"}
    # What users leave empty must still be a value that the settings accept.
    environ = {
        name: str(config[value.removeprefix("${user_config.").removesuffix("}")]["default"]).lower()
        for name, value in manifest["server"]["mcp_config"]["env"].items()
    }
    serve = load_settings(environ=environ).settings.serve
    assert (serve.toolsets, serve.read_only) == (("folder",), False)
    assert load_settings(environ={"BUNKO_SERVE_TOOLSETS": ""}).settings.serve.toolsets == ()
