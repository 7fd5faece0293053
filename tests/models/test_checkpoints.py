"""Names, damaged files and downloads of models, against a small hub on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bunko.errors import EmbedderError
from tests.models.conftest import Maker, write

if TYPE_CHECKING:
    pass
from tests.models.reference import build_model, token_states, unit

pytestmark = pytest.mark.models


def test_name_and_size_are_known_before_anything_is_loaded(make: Maker) -> None:
    embedder = build_model(make())
    assert embedder.size == 32
    assert embedder.name.startswith("transformers:tiny:32:average-64:")
    assert embedder.unavailable_reason() == ""
    assert not embedder.is_loaded
    assert embedder.embed([]).shape == (0, 32)
    assert not embedder.is_loaded


def test_a_model_whose_files_do_not_say_its_size_is_asked(own: Maker) -> None:
    folder = own()
    config = json.loads((folder / "config.json").read_text())
    del config["hidden_size"]
    write(folder / "config.json", config)
    embedder = build_model(folder, trust=True)
    assert embedder.size == 24
    assert embedder.is_loaded


def test_whatever_changes_the_vectors_changes_the_name(make: Maker) -> None:
    names = {
        build_model(make("a")).name,
        build_model(make("a", seed=1)).name,  # other weights, trained on in the same folder
        build_model(make("a", pooling="cls_token")).name,
        build_model(make("a", pooling="cls_token", prompts={"query": "q: "})).name,
        build_model(make("a", longest=20)).name,
        build_model(make("a"), max_tokens=10).name,
    }
    assert len(names) == 6


def test_a_model_that_is_trained_on_while_it_is_in_use_never_mixes_with_what_it_was(make: Maker) -> None:
    embedder = build_model(make("a"))
    embedder.embed(["cat"])
    embedder.unload()
    make("a", seed=1)
    with pytest.raises(EmbedderError, match="have changed since they were read"):
        embedder.embed(["dog"])


def test_a_folder_that_is_moved_keeps_its_name(make: Maker, tmp_path: Path) -> None:
    folder = make()
    before = build_model(folder).name
    moved = shutil.move(folder, tmp_path / "elsewhere" / "tiny")
    assert build_model(moved).name == before


def test_weights_that_are_missing_are_an_error_and_not_made_up(make: Maker) -> None:
    from safetensors.numpy import load_file, save_file

    folder = make()
    weights = load_file(folder / "model.safetensors")
    weights.pop("encoder.layer.1.output.dense.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EmbedderError, match=r"lacks weights: encoder\.layer\.1\.output\.dense\.weight"):
        build_model(folder).embed(["cat"])


@pytest.mark.parametrize("damage", ["config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json"])
def test_a_damaged_model_is_an_error_to_read(make: Maker, damage: str) -> None:
    folder = make(pooling="mean_tokens")
    (folder / damage).write_bytes(b"\xff\xfe not this")
    with pytest.raises(EmbedderError) as caught:
        build_model(folder).embed(["cat"])
    assert str(folder) in caught.value.hint


def test_a_folder_without_a_model_says_what_to_do(tmp_path: Path, make: Maker) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        embedder = build_model(place)
        assert "embedding.model_transformers" in embedder.unavailable_reason()
        with pytest.raises(EmbedderError, match="not a model"):
            _ = embedder.name
    folder = make()
    (folder / "model.safetensors").unlink()
    embedder = build_model(folder)
    assert "No weights" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        embedder.embed(["cat"])


def test_a_model_that_is_not_here_and_cannot_be_fetched_says_how_to_get_it() -> None:
    embedder = build_model("somebody/some-model")
    assert "hf download somebody/some-model" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="cannot be downloaded") as caught:
        embedder.embed(["cat"])
    assert "hf download somebody/some-model" in caught.value.hint
    with pytest.raises(EmbedderError, match="no model called"):
        _ = build_model("not a name").name


@pytest.fixture
def cached_model(make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model as the hub's own tool leaves it on a disk."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    own = tmp_path / "hub" / "models--somebody--tiny"
    shutil.move(make(pooling="cls_token"), own / "snapshots" / ("a" * 40))
    (own / "refs").mkdir()
    (own / "refs" / "main").write_text("a" * 40)
    return own


def test_a_model_that_was_fetched_is_used_by_name_without_a_network(cached_model: Path) -> None:
    embedder = build_model("somebody/tiny")
    assert embedder.unavailable_reason() == ""
    assert embedder.name.startswith("transformers:somebody/tiny:32:")
    folder = cached_model / "snapshots" / ("a" * 40)
    np.testing.assert_allclose(embedder.embed(["cat"])[0], unit(token_states(folder, "cat")[0]), atol=1e-5)
    assert build_model(f"somebody/tiny@{'a' * 40}").unavailable_reason() == ""
    assert (
        f"hf download somebody/tiny --revision {'b' * 40}"
        in build_model(f"somebody/tiny@{'b' * 40}").unavailable_reason()
    )


def test_another_revision_has_another_name(cached_model: Path) -> None:
    before = build_model("somebody/tiny").name
    shutil.copytree(cached_model / "snapshots" / ("a" * 40), cached_model / "snapshots" / ("c" * 40))
    (cached_model / "refs" / "main").write_text("c" * 40)
    assert build_model("somebody/tiny").name != before


def test_a_folder_where_a_command_runs_is_not_taken_for_a_model_of_the_hub(
    make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(make(), tmp_path / "cwd" / "somebody" / "tiny")
    monkeypatch.chdir(tmp_path / "cwd")
    assert "not on this machine" in build_model("somebody/tiny").unavailable_reason()
    assert build_model("./somebody/tiny").unavailable_reason() == ""


def test_a_question_never_starts_a_download(cached_model: Path) -> None:
    (cached_model / "snapshots" / ("a" * 40) / "model.safetensors").unlink()
    embedder = build_model("somebody/tiny")
    with pytest.raises(EmbedderError, match="cannot embed queries yet") as caught:
        embedder.embed(["cat"], query=True)
    assert "hf download somebody/tiny" in caught.value.hint
    with pytest.raises(EmbedderError, match="cannot be downloaded"):
        embedder.embed(["cat"])


class Hub:
    """Gives the files of one model to whoever asks as the hub's own package does."""

    commit = "d" * 40

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                hub.asked.append(f"{self.command} {path}")
                status, headers, content = hub.answer(folder, path)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content)), "Connection": "close"}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def answer(self, folder: Path, path: str) -> tuple[int, dict[str, str], bytes]:
        _, _, file = path.partition("/somebody/tiny/resolve/")
        paths = [one for one in sorted(folder.rglob("*")) if one.is_file()]
        names = [one.relative_to(folder).as_posix() for one in paths]
        if path.startswith("/api/models/somebody/tiny/revision/"):
            told = {"id": "somebody/tiny", "sha": self.commit, "siblings": [{"rfilename": name} for name in names]}
            return 200, {"Content-Type": "application/json"}, json.dumps(told).encode()
        if path.startswith("/api/models/somebody/tiny/tree/"):
            files = [
                {"type": "file", "path": name, "size": one.stat().st_size, "oid": blob(one)}
                for name, one in zip(names, paths, strict=True)
            ]
            return 200, {"Content-Type": "application/json"}, json.dumps(files).encode()
        name = file.partition("/")[2]
        if name in names:
            content = (folder / name).read_bytes()
            return 200, {"ETag": f'"{blob(folder / name)}"', "X-Repo-Commit": self.commit}, content
        code = "EntryNotFound" if file else "RepoNotFound"
        return 404, {"X-Error-Code": code, "X-Repo-Commit": self.commit}, b""

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def blob(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


FETCH = """
import json, sys
from bunko.embedders import transformers
from bunko.errors import EmbedderError

one = transformers.build(model=sys.argv[1], device="cpu", threshold=1.0)
try:
    print(json.dumps([one.unavailable_reason(), one.name, one.embed(["cat"]).tolist(), one.unavailable_reason()]))
except EmbedderError as error:
    print(json.dumps([error.message, error.hint]))
"""


def fetch_model(tmp_path: Path, address: str, model: str = "somebody/tiny") -> list[Any]:
    """Use a model in a process of its own, whose hub is at an address."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environ |= {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", FETCH, model], capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_a_model_is_fetched_once_and_then_used_without_asking_anybody(make: Maker, tmp_path: Path) -> None:
    folder = make(pooling="cls_token")
    hub = Hub(folder)
    try:
        before, name, vectors, after = fetch_model(tmp_path, hub.address)
        assert "hf download somebody/tiny" in before
        assert after == ""
        assert name.startswith("transformers:somebody/tiny:32:average-64:")
        np.testing.assert_allclose(vectors[0], unit(token_states(folder, "cat")[0]), atol=1e-5)
        assert any(one.startswith("GET") and one.endswith("/model.safetensors") for one in hub.asked)
        hub.asked.clear()
        assert fetch_model(tmp_path, hub.address) == ["", name, vectors, ""]
        assert hub.asked == []
        assert "There is no model called somebody/other" in fetch_model(tmp_path, hub.address, "somebody/other")[0]
    finally:
        hub.close()
    assert fetch_model(tmp_path, hub.address)[1] == name
    message, hint = fetch_model(tmp_path, hub.address, "somebody/new")
    assert "cannot be downloaded" in message
    assert "hf download somebody/new" in hint
