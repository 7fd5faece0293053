"""`bunko models`: what is known, what is here, and how it comes and goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.local_models.catalogue import KNOWN_MODELS
from tests.cli.pictures import Terminal
from tests.conftest import Run
from tests.loopback_hub import LoopbackHub
from tests.tiny_models import write_cross_encoder, write_encoder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LoopbackHub]:
    hub = LoopbackHub()
    hub.add("cl-nagoya/ruri-v3-30m", write_encoder(tmp_path / "encoder", file="onnx/model_int8.onnx"))
    hub.add("sirasagi62/ruri-v3-30m-ONNX", tmp_path / "encoder")
    files = write_cross_encoder(tmp_path / "reranker", file="onnx/model.onnx")
    hub.add("hotchpotch/japanese-reranker-xsmall-v2", files)
    yield hub
    hub.close()


@pytest.fixture
def environ(server: LoopbackHub, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody whose hub is on loopback."""
    folders = {name: str(tmp_path / name) for name in ("HF_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME")}
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONDONTWRITEBYTECODE", "LANG")}
    return {**kept, **folders, "HF_ENDPOINT": server.address}


def bunko(environ: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bunko", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environ, check=False)


def test_every_model_is_listed_with_its_licence_and_whether_it_is_here(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("EMBEDDING_PROVIDER", "onnx")
    models = run("models", "--json").json()["models"]
    assert isinstance(models, list)
    assert [model["name"] for model in models] == [model.name for model in KNOWN_MODELS]
    assert all(model["licence"] and model["languages"] and model["about"] for model in models)
    assert [model["name"] for model in models if model["in_use"]] == ["ruri-v3-30m"]
    assert not any(model["here"] for model in models)
    lines = run("models").out.splitlines()
    assert len(lines) == len(KNOWN_MODELS) + 1
    assert "in use, but not here" in lines[1]


def test_a_folder_of_yours_is_not_taken_for_the_listed_model_of_its_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDING_PROVIDER", "onnx")
    monkeypatch.setenv("BUNKO_EMBEDDING_MODEL", str(write_encoder(tmp_path / "ruri-v3-30m")))
    monkeypatch.setenv("BUNKO_SEARCH_RERANKER", str(write_cross_encoder(tmp_path / "bge-reranker-v2-m3")))
    models = run("models", "--json").json()["models"]
    assert isinstance(models, list)
    assert not any(model["in_use"] for model in models)


def test_the_list_has_a_name_too_and_ends_with_what_to_type_next(
    run: Run, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    assert run("models", "list", "--json").json() == run("models", "--json").json()
    assert run("models", "list").out == run("models").out
    assert terminal("models", width=100).rows[-1] == "Get one with: bunko models get NAME"


@pytest.mark.slow
def test_listing_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from bunko.interfaces.cli.main import main\n"
        "try: main(['models'])\nexcept SystemExit: pass\n"
        "print([name for name in ('onnxruntime', 'tokenizers', 'huggingface_hub', 'torch') if name in sys.modules])"
    )
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_name_that_is_not_listed_is_an_error_without_asking_the_hub(run: Run) -> None:
    for verb in ("get", "remove"):
        refused = run("models", verb, "ruri-v3-31m")
        assert refused.code == 6
        assert "ruri-v3-30m" in refused.err


@pytest.mark.slow
def test_an_error_of_the_hub_has_its_own_exit_code(environ: dict[str, str], server: LoopbackHub) -> None:
    server.gated.add("sirasagi62/ruri-v3-30m-ONNX")
    refused = bunko(environ, "models", "get", "ruri-v3-30m")
    assert refused.returncode == 21
    assert "hf auth login" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.slow
def test_a_proxy_and_being_offline_are_respected(environ: dict[str, str], server: LoopbackHub) -> None:
    offline = bunko({**environ, "HF_HUB_OFFLINE": "1"}, "models", "get", "ruri-v3-30m")
    assert offline.returncode == 21
    assert "HF_HUB_OFFLINE is set" in offline.stderr
    assert server.requests == []
    proxied = {**environ, "HF_ENDPOINT": "http://hub.example", "HTTP_PROXY": server.address}
    got = bunko(proxied, "models", "get", "ruri-v3-30m")
    assert got.returncode == 0, got.stderr
    assert server.downloads()


@pytest.mark.slow
def test_models_are_fetched_used_and_removed(environ: dict[str, str], server: LoopbackHub, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# fur\n\ncat cat cat\n", encoding="utf-8")
    (docs / "b.md").write_text("# sky\n\ncat is good " + "umbrella in winter " * 8, encoding="utf-8")
    for name in ("ruri-v3-30m", "japanese-reranker-xsmall-v2"):
        got = bunko(environ, "models", "get", name, "--json")
        assert got.returncode == 0, got.stderr
        files = json.loads(got.stdout)["files"]
        assert all(Path(file["path"]).is_relative_to(tmp_path / "HF_HOME") for file in files)
    again = bunko(environ, "models", "get", "japanese-reranker-xsmall-v2").stdout
    assert again.endswith(
        '[search] of bunko.toml, which bunko init creates:\n  reranker = "japanese-reranker-xsmall-v2"\n'
    )
    downloads = len(server.downloads())
    environ |= {
        "EMBEDDING_PROVIDER": "onnx", "BUNKO_EMBEDDING_MODEL": "ruri-v3-30m", "HF_HUB_OFFLINE": "1",
        "BUNKO_SEARCH_RERANKER": "japanese-reranker-xsmall-v2", "BUNKO_SEARCH_RERANK_SECONDS": "60",
    }  # fmt: skip
    found = bunko(environ, "search", "cat dog", "--docs-dir", docs, "--json", "--explain")
    results = json.loads(found.stdout)["results"]
    assert [result["file_path"] for result in results] == ["b.md", "a.md"]
    assert results[0]["explain"]["reranker"]["rank"] == 1
    assert results[0]["explain"]["vector"]
    assert "in use" in bunko(environ, "models").stdout
    assert json.loads(bunko(environ, "models", "get", "ruri-v3-30m", "--json").stdout)["bytes"] > 0, "offline too"
    removed = bunko(environ, "models", "remove", "ruri-v3-30m", "--json")
    assert json.loads(removed.stdout)["removed"] is True
    assert "embedding.model still names ruri-v3-30m" in removed.stderr
    assert "is not on this machine" in bunko(environ, "models", "remove", "ruri-v3-30m").stderr
    assert "Get it with: bunko models get ruri-v3-30m" in bunko(environ, "search", "cat", "--docs-dir", docs).stderr
    assert len(server.downloads()) == downloads


@pytest.mark.slow
def test_a_search_imports_no_reranker_no_reader_and_no_map(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("cat", encoding="utf-8")
    code = (
        "import sys; from bunko.interfaces.cli.main import main\n"
        f"try: main(['search', 'cat', '--docs-dir', {str(tmp_path)!r}, *sys.argv[1:]])\nexcept SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if 'rerank' in name or name.startswith(('bunko.local_models','onnx',"
        " 'tokenizers', 'huggingface_hub', 'numpy.ma.', 'bunko.readers.markdown', 'bunko.library.overview.document_map'"
        "))))"
    )
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True, check=True, env=environ)
        for more in ([], ["--no-refresh"])
    )
    assert "bunko.readers.markdown" in first.stdout.splitlines()[-1]  # it imports the folder
    assert second.stdout.splitlines()[-1] == "[]"
