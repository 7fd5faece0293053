"""The embedder for models on this machine, where its packages are not installed; tests/models has the models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bunko import embedders
from bunko.errors import EmbedderError
from bunko.settings import load_settings
from tests.conftest import Opener, Run


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("torch", "transformers", "psutil", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, package, None)


def test_plamo_is_a_name_for_its_model(open_docs: Opener) -> None:
    embedder = open_docs(EMBEDDING_PROVIDER="plamo", BUNKO_EMBEDDING_MODEL_TRANSFORMERS="./other").embedder()
    assert embedder is not None
    assert embedder.label == "transformers:pfnet/plamo-embedding-1b"
    other = open_docs(EMBEDDING_PROVIDER="transformers", BUNKO_EMBEDDING_MODEL_TRANSFORMERS="./other").embedder()
    assert other is not None
    assert other.label == "transformers:other"


def test_packages_that_are_not_installed_are_named_with_the_way_to_install_them() -> None:
    embedder = embedders.build("plamo")
    assert embedder is not None
    assert "torch" in embedder.unavailable_reason()
    assert "bunko[transformers]" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="not installed") as caught:
        embedder.embed(["猫"])
    assert "bunko[transformers]" in caught.value.hint


def test_an_import_without_the_packages_stores_nothing_and_says_why(
    docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "a.md").write_text("猫", encoding="utf-8")
    monkeypatch.setenv("EMBEDDING_PROVIDER", "plamo")
    done = run("reindex", "--docs-dir", docs)
    assert done.code != 0
    assert "bunko[transformers]" in done.err


@pytest.mark.slow
def test_nothing_heavy_is_loaded_to_make_the_embedder() -> None:
    code = (
        "import sys; from bunko import embedders; embedders.build('plamo');"
        "print([name for name in ('torch', 'transformers', 'huggingface_hub', 'psutil') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_folder_of_documents_chooses_neither_the_model_nor_whether_its_code_runs(tmp_path: Path) -> None:
    told = '[embedding]\nmodel_transformers = "./evil"\ntrust_remote_code = true\n'
    (tmp_path / "bunko.toml").write_text(told, encoding="utf-8")
    theirs = load_settings(environ={}, config_folders=[tmp_path], untrusted_folder=tmp_path)
    assert theirs.settings.embedding.model_transformers == "pfnet/plamo-embedding-1b"
    assert theirs.settings.embedding.trust_remote_code is False
    assert "embedding.model_transformers, embedding.trust_remote_code in" in theirs.notices[0]
    ours = load_settings(environ={}, config_folders=[tmp_path])
    assert ours.settings.embedding.trust_remote_code is True
