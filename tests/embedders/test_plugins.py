"""A package that is installed beside bunko adds an embedder by an entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''\
"""Embeddings of a toy service."""

from bunko.embedders import hashing
from bunko.embedders.provider import Provider, ProviderAlias, ProviderOption


class Toy(hashing.Hashing):
    is_remote = False

    def __init__(self, model, api_key, timeout):
        super().__init__(64)
        self._key = api_key
        self.label = f"toy:{model}"
        self.name = f"{self.label}:64:{timeout}"

    def unavailable_reason(self):
        return "" if self._key == "toy-secret" else "No API key is set. Set TOY_KEY."


def build(*, model="small", api_key="", timeout=60.0):
    return Toy(model, api_key, timeout)


PROVIDER = Provider(
    build,
    shared=("timeout",),
    options=(
        ProviderOption("model_toy", "model", "small", "Model of toy"),
        ProviderOption("toy_api_key", "api_key", "", "API key for toy", env="TOY_KEY", secret=True),
    ),
    aliases={"plaything": ProviderAlias({"model": "wooden"}, "toy with the wooden model")},
)
'''


class Installation:
    """A folder of installed packages, and a folder of documents."""

    def __init__(self, folder: Path) -> None:
        self.packages, self.docs, self._home = folder / "packages", folder / "docs", folder / "home"
        metadata = self.packages / "bunko_toy-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bunko-toy\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[bunko.embedders]\ntoy = bunko_toy\n")
        (self.packages / "bunko_toy.py").write_text(MODULE, encoding="utf-8")
        self.docs.mkdir()
        (self.docs / "dog.md").write_text("# Dogs\n\nDogs bark at night.\n", encoding="utf-8")
        (self.docs / "cat.md").write_text("# Cats\n\nCats sleep all day.\n", encoding="utf-8")
        self.config = folder / "bunko.toml"

    def configure(self, embedding: str) -> None:
        self.config.write_text(f"[embedding]\n{embedding}\n", encoding="utf-8")

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        prefixes = ("BUNKO_", "RAG_", "EMBEDDING_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
        folders = {name: str(self._home) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        paths = {"PYTHONPATH": os.pathsep.join([str(self.packages), *sys.path])}
        command = [sys.executable, "-m", "bunko", *arguments, "--config", str(self.config)]
        environment = inherited | folders | paths | environ
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


@pytest.mark.slow
def test_an_installed_embedder_is_configured_and_imports_and_searches(installation: Installation) -> None:
    installation.configure('provider = "toy"\nmodel_toy = "large"\ntoy_api_key = "toy-secret"\ntimeout = 7.0')
    docs = ("--docs-dir", str(installation.docs))
    imported = installation.run("reindex", *docs, "--json")
    assert imported.returncode == 0, imported.stderr
    searched = installation.run("search", "Dogs bark", *docs, "--mode", "semantic", "--json")
    assert json.loads(searched.stdout)["results"][0]["file_path"] == "dog.md", searched.stderr
    tried = installation.run("embedders", "test", "--json")
    assert json.loads(tried.stdout)["name"] == "toy:large:64:7.0", tried.stderr


@pytest.mark.slow
def test_an_installed_embedder_is_listed_with_its_state_and_settings(installation: Installation) -> None:
    installation.configure('provider = "static"')
    listed = json.loads(installation.run("embedders", "--json", TOY_KEY="toy-secret").stdout)["embedders"]
    (toy,) = [status for status in listed if status["name"] == "toy"]
    assert (toy["ready"], toy["in_use"], toy["model"], toy["key"]) == (True, False, "small", "TOY_KEY")
    assert toy["about"] == "Embeddings of a toy service."
    shown = installation.run("config", "show", TOY_KEY="toy-secret").stdout
    assert "embedding.model_toy = small  (default)" in shown
    assert "embedding.toy_api_key = ********  (environment TOY_KEY)" in shown
    assert "toy-secret" not in shown


@pytest.mark.slow
def test_the_key_of_an_installed_embedder_may_come_from_the_environment_or_a_file(
    installation: Installation, tmp_path: Path
) -> None:
    installation.configure('provider = "toy"')
    assert installation.run("embedders", "test", TOY_KEY="toy-secret").returncode == 0
    assert "Set TOY_KEY" in installation.run("embedders", "test").stderr
    key = tmp_path / "key"
    key.write_text("toy-secret\n")
    key.chmod(0o600)
    installation.configure(f'provider = "plaything"\ntoy_api_key_file = "{key}"')
    tried = installation.run("embedders", "test", "--json")
    assert json.loads(tried.stdout)["name"] == "toy:wooden:64:60.0", tried.stderr


@pytest.mark.slow
def test_a_plugin_that_cannot_be_imported_is_reported_only_when_vectors_are_needed(installation: Installation) -> None:
    (installation.packages / "bunko_toy.py").write_text("raise RuntimeError('no toys today')\n")
    installation.configure('provider = "toy"')
    assert installation.run("config", "show").returncode == 0
    failed = installation.run("embedders", "test")
    assert failed.returncode != 0
    assert "The embedder 'toy' cannot be loaded: RuntimeError: no toys today" in failed.stderr


@pytest.mark.slow
def test_settings_of_a_package_that_is_not_installed_are_unknown(installation: Installation) -> None:
    installation.configure('provider = "static"\nmodel_other = "x"')
    failed = installation.run("config", "show")
    assert "'embedding.model_other' is not a setting" in failed.stderr
