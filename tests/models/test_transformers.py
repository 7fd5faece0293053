"""Models on this machine, through the real transformers and torch, on tiny models made here."""

from __future__ import annotations

import hashlib
import json
import logging
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

from bunko.embedders import torch_model, transformers
from bunko.errors import EmbedderError
from tests.conftest import Opener, Run
from tests.models.conftest import Maker, write

if TYPE_CHECKING:
    from bunko.types import Vectors

pytestmark = pytest.mark.models

TEXTS = ["cat", "a long text about rain in tokyo.", "東京の天気は雨", "dog", "祭の海岸 and more words", "x"]


def built(folder: object, **options: Any) -> transformers.Transformers:
    return transformers.build(**{"model": str(folder), "device": "cpu", "threshold": 1.0, **options})


def states(folder: Path, text: str) -> Vectors:
    """Return what the model says about each token of one text, by itself and without padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    with torch.inference_mode():
        given = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
        given.pop("token_type_ids", None)
        found: Vectors = AutoModel.from_pretrained(folder)(**given).last_hidden_state[0].numpy()
    return found


def unit(row: Vectors) -> Vectors:
    found: Vectors = row / np.linalg.norm(row)
    return found


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "bunko-unload"]


def left_alone(embedder: transformers.Transformers) -> None:
    """Wait until nobody looks after the model any more, because it is gone."""
    for thread in watchers():
        thread.join(timeout=60)
    assert not watchers()
    assert not embedder.is_loaded


@pytest.mark.parametrize(
    ("pooling", "wanted"),
    [
        (None, lambda rows: rows.mean(axis=0)),
        ("mean_tokens", lambda rows: rows.mean(axis=0)),
        ("cls_token", lambda rows: rows[0]),
        ("lasttoken", lambda rows: rows[-1]),
        ("max_tokens", lambda rows: rows.max(axis=0)),
        ({"pooling_mode": "cls"}, lambda rows: rows[0]),
    ],
)
def test_states_become_one_vector_as_the_folder_says(make: Maker, pooling: Any, wanted: Any) -> None:
    folder = make(pooling=pooling)
    found = built(folder).embed(TEXTS)
    for row, text in zip(found, TEXTS, strict=True):
        np.testing.assert_allclose(row, unit(wanted(states(folder, text))), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "lasttoken", "max_tokens"])
@pytest.mark.parametrize("size", [1, 2, 5, None])
def test_a_text_has_the_same_vector_alone_and_in_any_batch(make: Maker, pooling: str, size: int | None) -> None:
    embedder = built(make(pooling=pooling), device_batch=size)
    together = embedder.embed(TEXTS)
    for at, text in enumerate(TEXTS):
        np.testing.assert_allclose(embedder.embed([text])[0], together[at], atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_padding_changes_nothing_for_a_model_that_reads_from_left_to_right_either(make: Maker) -> None:
    from transformers import GPT2Config, GPT2Model

    tiny = GPT2Config(vocab_size=200, n_positions=64, n_embd=16, n_layer=2, n_head=2)
    embedder = built(make(model=GPT2Model(tiny), pooling="lasttoken"))
    together = embedder.embed(TEXTS)
    for at, text in enumerate(TEXTS):
        np.testing.assert_allclose(embedder.embed([text])[0], together[at], atol=2e-6)


def test_of_a_model_that_also_writes_only_the_reader_is_used(make: Maker) -> None:
    from transformers import T5Config, T5Model

    tiny = T5Config(
        vocab_size=200, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, pad_token_id=0, decoder_start_token_id=0
    )
    embedder = built(make(model=T5Model(tiny)))
    assert embedder.embed(TEXTS).shape == (len(TEXTS), 16)
    np.testing.assert_allclose(embedder.embed(["cat"])[0], embedder.embed(TEXTS)[0], atol=2e-6)


def test_layers_after_the_pooling_are_applied_and_make_the_size(make: Maker) -> None:
    folder = make(pooling="mean_tokens", dense=12)
    embedder = built(folder)
    assert embedder.size == 12
    assert not embedder.is_loaded
    from safetensors.numpy import load_file

    layer = load_file(folder / "2_Dense/model.safetensors")
    wanted = np.tanh(layer["linear.weight"] @ states(folder, "cat").mean(axis=0) + layer["linear.bias"])
    np.testing.assert_allclose(embedder.embed(["cat"])[0], unit(wanted), atol=1e-5)


@pytest.mark.parametrize("told", [{"pooling_mode_weightedmean_tokens": True}, {"pooling_mode": "other"}, {"a": 1}])
def test_a_pooling_that_is_not_known_is_refused_and_not_guessed(make: Maker, told: dict[str, object]) -> None:
    with pytest.raises(EmbedderError, match="unsupported pooling"):
        built(make(pooling=told)).embed(["cat"])


def test_two_poolings_at_once_are_refused(make: Maker) -> None:
    with pytest.raises(EmbedderError, match="unsupported pooling"):
        _ = built(make(pooling={"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True})).name


@pytest.mark.parametrize(
    ("prompts", "document", "query"),
    [
        ({"query": "検索: ", "document": "文書: "}, "文書: ", "検索: "),
        ({"query": "q: ", "passage": "p: "}, "p: ", "q: "),
        ({"検索クエリ": "検索クエリ: ", "検索文書": "検索文書: "}, "検索文書: ", "検索クエリ: "),
        ({"other": "x: "}, "", ""),
        (None, "", ""),
    ],
)
def test_what_a_model_wants_before_texts_is_put_there(
    make: Maker, prompts: dict[str, str] | None, document: str, query: str
) -> None:
    folder = make(prompts=prompts)
    embedder = built(folder)
    np.testing.assert_allclose(
        embedder.embed(["cat"])[0], unit(states(folder, f"{document}cat").mean(axis=0)), atol=1e-5
    )
    np.testing.assert_allclose(
        embedder.embed(["cat"], query=True)[0], unit(states(folder, f"{query}cat").mean(axis=0)), atol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "document", "query"),
    [
        ("multilingual-e5-small", "passage: ", "query: "),
        ("ruri-v3-30m", "検索文書: ", "検索クエリ: "),
        ("ruri-base-v2", "文章: ", "クエリ: "),
        ("multilingual-e5-large-instruct", "", ""),
        ("tiny", "", ""),
    ],
)
def test_models_whose_makers_only_write_it_in_the_manual_are_known(
    make: Maker, name: str, document: str, query: str
) -> None:
    folder = make(name)
    embedder = built(folder)
    np.testing.assert_allclose(
        embedder.embed(["cat"])[0], unit(states(folder, f"{document}cat").mean(axis=0)), atol=1e-5
    )
    np.testing.assert_allclose(
        embedder.embed(["cat"], query=True)[0], unit(states(folder, f"{query}cat").mean(axis=0)), atol=1e-5
    )


def test_the_calls_of_a_model_are_used_where_it_has_some(own: Maker, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    folder = own()
    embedder = built(folder, trust=True)
    assert embedder.unavailable_reason() == ""
    assert not (tmp_path / "proof").exists()
    found = embedder.embed(["ab", "abc"]), embedder.embed(["ab"], query=True)
    assert (tmp_path / "proof").read_text() == "ran"
    table = load_file(folder / "model.safetensors")["table.weight"]
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(folder)
    np.testing.assert_allclose(found[0][0], unit(table[words("ab")["input_ids"]].mean(axis=0)), atol=1e-5)
    np.testing.assert_allclose(found[1][0], unit(table[words("検索: ab")["input_ids"]].mean(axis=0)), atol=1e-5)
    assert embedder.size == 24


def test_code_of_a_model_never_runs_unless_the_user_says_so(own: Maker, tmp_path: Path) -> None:
    embedder = built(own())
    assert "embedding.trust_remote_code" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="run its own code") as caught:
        embedder.embed(["cat"])
    assert "embedding.trust_remote_code" in caught.value.hint
    assert not (tmp_path / "proof").exists()
    assert not embedder.is_loaded


def test_a_model_of_a_known_kind_runs_without_the_code_that_it_brings(make: Maker, tmp_path: Path) -> None:
    folder = make()
    plain = built(folder).embed(["cat"])
    config = json.loads((folder / "config.json").read_text())
    write(folder / "config.json", config | {"auto_map": {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}})
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'proof')!r}, 'w').close()")
    embedder = built(folder)
    assert embedder.unavailable_reason() == ""
    np.testing.assert_array_equal(embedder.embed(["cat"]), plain)
    assert not (tmp_path / "proof").exists()


def test_trouble_in_a_models_own_code_is_an_error_to_read(own: Maker) -> None:
    embedder = built(own("loud", trouble="raise RuntimeError('no such kernel')"), trust=True)
    with pytest.raises(EmbedderError, match="no such kernel"):
        embedder.embed(["cat"])
    short = built(own("short", trouble="texts = texts[:1]"), trust=True)
    with pytest.raises(EmbedderError, match=r"\(1, 24\) for 2 texts"):
        short.embed(["cat", "dog"])
    needs = own("needs")
    (needs / "own_needs.py").write_text("import no_such_package_here\n")
    with pytest.raises(EmbedderError, match="no_such_package_here"):
        built(needs, trust=True).embed(["cat"])


def test_a_batch_that_needs_too_much_memory_is_halved(own: Maker, caplog: pytest.LogCaptureFixture) -> None:
    trouble = "if len(texts) > 2: raise RuntimeError('CUDA out of memory. Tried to allocate 9 GiB')"
    embedder = built(own("greedy", trouble=trouble), trust=True, device_batch=8)
    plain = built(own("plain"), trust=True)
    with caplog.at_level(logging.WARNING, logger="bunko.embedders"):
        found = embedder.embed(TEXTS[:5])
    np.testing.assert_allclose(found, plain.embed(TEXTS[:5]), atol=1e-6)
    assert "using 2 from now on" in caplog.text
    assert embedder.stats.calls == 4  # one in vain, then two, two and one
    full = built(own("full", trouble="raise RuntimeError('CUDA out of memory')"), trust=True)
    with pytest.raises(EmbedderError, match="out of memory") as caught:
        full.embed(["cat"])
    assert "embedding.device to cpu" in caught.value.hint


def test_a_text_too_long_is_the_average_of_its_parts(make: Maker, caplog: pytest.LogCaptureFixture) -> None:
    embedder = built(make(longest=32))
    half, other = "rain in tokyo today. ", "cats and dogs sleep. "
    with caplog.at_level(logging.WARNING, logger="bunko.embedders"):
        whole = embedder.embed(["cat", half + other, "dog"])
    assert embedder.stats.too_long == 1
    assert "1 text was too long for transformers:tiny, and embedded in parts" in caplog.text
    rows = embedder.embed([half, other])
    np.testing.assert_allclose(whole[1], unit(rows.mean(axis=0)), atol=1e-5)
    np.testing.assert_allclose(whole[[0, 2]], embedder.embed(["cat", "dog"]), atol=2e-6)


def test_a_text_too_long_can_be_cut_instead(make: Maker) -> None:
    folder = make(longest=32)
    cut, averaged = built(folder, too_long="cut"), built(folder)
    half, other = "rain in tokyo today. ", "cats and dogs sleep. "
    np.testing.assert_allclose(cut.embed([half + other]), cut.embed([half]), atol=2e-6)
    assert cut.stats.too_long == 1
    assert cut.name != averaged.name


@pytest.mark.parametrize("text", ["a" * 5000, "東京" * 900, "\n" * 3000, "word " * 1000, "語" * 200 + "a" * 200])
def test_a_text_of_any_length_gets_a_vector(make: Maker, own: Maker, text: str) -> None:
    for embedder in (built(make(longest=32)), built(own(), trust=True)):
        assert np.isfinite(embedder.embed([text])).all()


def test_no_part_is_longer_than_the_model_takes(own: Maker) -> None:
    limit = "assert max(len(one) for one in tokenizer(texts)['input_ids']) <= 64"
    embedder = built(own(trouble=limit), trust=True)
    embedder.embed(["rain and wind " * 100, "東京の天気は雨 " * 50])
    assert embedder.stats.too_long == 2


def test_the_longest_text_can_be_set_and_is_never_more_than_the_model_takes(make: Maker) -> None:
    folder = make(longest=32)
    assert ":average-16:" in built(folder, max_tokens=16).name
    assert ":average-32:" in built(folder, max_tokens=512).name
    write(folder / "sentence_bert_config.json", {"max_seq_length": 24})
    assert ":average-24:" in built(folder).name


def test_halves_of_characters_and_empty_texts_get_a_vector(make: Maker) -> None:
    found = built(make()).embed(["", "\ud800", "\x00", " "])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_name_and_size_are_known_before_anything_is_loaded(make: Maker) -> None:
    embedder = built(make())
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
    embedder = built(folder, trust=True)
    assert embedder.size == 24
    assert embedder.is_loaded


def test_whatever_changes_the_vectors_changes_the_name(make: Maker) -> None:
    names = {
        built(make("a")).name,
        built(make("a", seed=1)).name,  # other weights, trained on in the same folder
        built(make("a", pooling="cls_token")).name,
        built(make("a", pooling="cls_token", prompts={"query": "q: "})).name,
        built(make("a", longest=20)).name,
        built(make("a"), max_tokens=10).name,
    }
    assert len(names) == 6


def test_a_model_that_is_trained_on_while_it_is_in_use_never_mixes_with_what_it_was(make: Maker) -> None:
    embedder = built(make("a"))
    embedder.embed(["cat"])
    embedder.unload()
    make("a", seed=1)
    with pytest.raises(EmbedderError, match="have changed since they were read"):
        embedder.embed(["dog"])


def test_a_folder_that_is_moved_keeps_its_name(make: Maker, tmp_path: Path) -> None:
    folder = make()
    before = built(folder).name
    moved = shutil.move(folder, tmp_path / "elsewhere" / "tiny")
    assert built(moved).name == before


def test_weights_that_are_missing_are_an_error_and_not_made_up(make: Maker) -> None:
    from safetensors.numpy import load_file, save_file

    folder = make()
    weights = load_file(folder / "model.safetensors")
    weights.pop("encoder.layer.1.output.dense.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EmbedderError, match=r"lacks weights: encoder\.layer\.1\.output\.dense\.weight"):
        built(folder).embed(["cat"])


@pytest.mark.parametrize("damage", ["config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json"])
def test_a_damaged_model_is_an_error_to_read(make: Maker, damage: str) -> None:
    folder = make(pooling="mean_tokens")
    (folder / damage).write_bytes(b"\xff\xfe not this")
    with pytest.raises(EmbedderError) as caught:
        built(folder).embed(["cat"])
    assert str(folder) in caught.value.hint


def test_a_folder_without_a_model_says_what_to_do(tmp_path: Path, make: Maker) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        embedder = built(place)
        assert "embedding.model_transformers" in embedder.unavailable_reason()
        with pytest.raises(EmbedderError, match="not a model"):
            _ = embedder.name
    folder = make()
    (folder / "model.safetensors").unlink()
    embedder = built(folder)
    assert "No weights" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        embedder.embed(["cat"])


def test_a_model_that_is_not_here_and_cannot_be_fetched_says_how_to_get_it() -> None:
    embedder = built("somebody/some-model")
    assert "hf download somebody/some-model" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="cannot be downloaded") as caught:
        embedder.embed(["cat"])
    assert "hf download somebody/some-model" in caught.value.hint
    with pytest.raises(EmbedderError, match="no model called"):
        _ = built("not a name").name


@pytest.fixture
def kept(make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model as the hub's own tool leaves it on a disk."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    own = tmp_path / "hub" / "models--somebody--tiny"
    shutil.move(make(pooling="cls_token"), own / "snapshots" / ("a" * 40))
    (own / "refs").mkdir()
    (own / "refs" / "main").write_text("a" * 40)
    return own


def test_a_model_that_was_fetched_is_used_by_name_without_a_network(kept: Path) -> None:
    embedder = built("somebody/tiny")
    assert embedder.unavailable_reason() == ""
    assert embedder.name.startswith("transformers:somebody/tiny:32:")
    folder = kept / "snapshots" / ("a" * 40)
    np.testing.assert_allclose(embedder.embed(["cat"])[0], unit(states(folder, "cat")[0]), atol=1e-5)
    assert built(f"somebody/tiny@{'a' * 40}").unavailable_reason() == ""
    assert f"hf download somebody/tiny --revision {'b' * 40}" in built(f"somebody/tiny@{'b' * 40}").unavailable_reason()


def test_another_revision_has_another_name(kept: Path) -> None:
    before = built("somebody/tiny").name
    shutil.copytree(kept / "snapshots" / ("a" * 40), kept / "snapshots" / ("c" * 40))
    (kept / "refs" / "main").write_text("c" * 40)
    assert built("somebody/tiny").name != before


def test_a_folder_where_a_command_runs_is_not_taken_for_a_model_of_the_hub(
    make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(make(), tmp_path / "cwd" / "somebody" / "tiny")
    monkeypatch.chdir(tmp_path / "cwd")
    assert "not on this machine" in built("somebody/tiny").unavailable_reason()
    assert built("./somebody/tiny").unavailable_reason() == ""


def test_a_question_never_starts_a_download(kept: Path) -> None:
    (kept / "snapshots" / ("a" * 40) / "model.safetensors").unlink()
    embedder = built("somebody/tiny")
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
    print(json.dumps([one.available(), one.name, one.embed(["cat"]).tolist(), one.available()]))
except EmbedderError as error:
    print(json.dumps([error.message, error.hint]))
"""


def fetched(tmp_path: Path, address: str, model: str = "somebody/tiny") -> list[Any]:
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
        before, name, vectors, after = fetched(tmp_path, hub.address)
        assert "hf download somebody/tiny" in before
        assert after == ""
        assert name.startswith("transformers:somebody/tiny:32:average-64:")
        np.testing.assert_allclose(vectors[0], unit(states(folder, "cat")[0]), atol=1e-5)
        assert any(one.startswith("GET") and one.endswith("/model.safetensors") for one in hub.asked)
        hub.asked.clear()
        assert fetched(tmp_path, hub.address) == ["", name, vectors, ""]
        assert hub.asked == []
        assert "There is no model called somebody/other" in fetched(tmp_path, hub.address, "somebody/other")[0]
    finally:
        hub.close()
    assert fetched(tmp_path, hub.address)[1] == name
    message, hint = fetched(tmp_path, hub.address, "somebody/new")
    assert "cannot be downloaded" in message
    assert "hf download somebody/new" in hint


def test_a_device_that_is_not_there_is_an_error_and_auto_picks_one_that_is(make: Maker) -> None:
    import torch

    folder = make()
    wanted = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    embedder = built(folder, device="auto")
    embedder.embed(["cat"])
    assert embedder._loaded_model is not None
    assert embedder._loaded_model.device == wanted
    assert embedder._loaded_model.batch_size == torch_model.BATCH_SIZES[wanted]
    for name in {"cuda", "mps"} - {wanted}:
        with pytest.raises(EmbedderError, match=f"no {name} device"):
            built(folder, device=name).embed(["cat"])


def test_texts_go_in_batches_of_the_size_that_is_set(make: Maker) -> None:
    embedder = built(make(), device_batch=4)
    embedder.embed([f"text {number}" for number in range(10)])
    assert (embedder.stats.texts, embedder.stats.calls) == (10, 3)


def test_a_question_asked_twice_is_embedded_once(make: Maker) -> None:
    embedder = built(make())
    first = embedder.embed(["cat"], query=True)
    first[:] = 0
    assert np.linalg.norm(embedder.embed(["cat"], query=True)) == pytest.approx(1)
    assert embedder.stats.calls == 1


def test_a_model_that_nobody_uses_is_unloaded_and_loaded_again(make: Maker) -> None:
    embedder = built(make(), idle=0.01)
    before = embedder.embed(["cat"])
    left_alone(embedder)
    np.testing.assert_array_equal(embedder.embed(["cat"]), before)
    left_alone(embedder)


def test_a_model_is_unloaded_soon_where_memory_is_scarce(make: Maker) -> None:
    embedder = built(make(), threshold=0.0, pause=0.01)
    embedder.embed(["cat"])
    left_alone(embedder)
    roomy = built(make(), threshold=1.0, pause=0.01)
    roomy.embed(["cat"])
    assert roomy._unload_if_idle(roomy._load_count) == transformers._MEMORY_CHECK_SECONDS
    assert roomy.is_loaded
    roomy.unload()
    left_alone(roomy)


def test_an_embedder_that_is_thrown_away_leaves_no_thread_behind(make: Maker) -> None:
    embedder = built(make(), threshold=1.0)
    embedder.embed(["cat"])
    wake = embedder._wake
    del embedder
    wake.set()
    for thread in watchers():
        thread.join(timeout=60)
    assert not watchers()


def test_threads_that_embed_while_the_model_is_unloaded_again_and_again_all_get_their_vectors(make: Maker) -> None:
    embedder = built(make(), idle=0.0)
    wanted = {text: embedder.embed([text]) for text in TEXTS}
    failures: list[BaseException] = []
    done = threading.Event()

    def use(text: str) -> None:
        try:
            for _ in range(8):
                np.testing.assert_allclose(embedder.embed([text]), wanted[text], atol=2e-6)
        except BaseException as error:
            failures.append(error)

    def unload() -> None:
        while not done.is_set():
            embedder.unload()

    users = [threading.Thread(target=use, args=(text,)) for text in TEXTS[:4]]
    thief = threading.Thread(target=unload)
    for thread in (*users, thief):
        thread.start()
    for thread in users:
        thread.join()
    done.set()
    thief.join()
    assert not failures
    left_alone(embedder)


MEASURE = """
import gc, json, sys
import psutil
from bunko.embedders import transformers

def resident():
    gc.collect()
    return psutil.Process().memory_info().rss

small, large = (transformers.build(model=one, device="cpu", threshold=1.0) for one in sys.argv[1:])
small.embed(["cat"])  # what torch takes for itself, whatever it loads
small.unload()
seen = [resident()]
for _ in range(3):
    large.embed(["cat", "dog"])
    seen.append(resident())
    large.unload()
    seen.append(resident())
print(json.dumps(seen))
"""


@pytest.mark.parametrize(
    ("dtype", "config"),
    [
        # Mapped from the file, and read by every text.
        ("float32", {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4}),
        # Half floats, as most models are kept: they become whole ones in memory of our own.
        ("bfloat16", {"vocab_size": 200_000, "hidden_size": 256}),
    ],
)
def test_an_unloaded_model_gives_its_memory_back(make: Maker, dtype: str, config: dict[str, int]) -> None:
    small, large = make("small"), make("large", dtype=dtype, **config)
    weights = (large / "model.safetensors").stat().st_size * (2 if dtype == "bfloat16" else 1)
    assert weights > 200_000_000
    command = [sys.executable, "-c", MEASURE, str(small), str(large)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, *seen = json.loads(done.stdout)
    print(f"MB before {before / 1e6:.0f}, then {', '.join(f'{one / 1e6:.0f}' for one in seen)}")
    for loaded, unloaded in zip(seen[::2], seen[1::2], strict=True):
        assert loaded - before > 0.9 * weights
        assert unloaded - before < 0.1 * weights


def test_nothing_is_printed_while_a_model_is_loaded(make: Maker, capfd: pytest.CaptureFixture[str]) -> None:
    folder = make()
    capfd.readouterr()
    built(folder).embed(["cat"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("package", ["torch", "transformers", "psutil"])
def test_a_missing_package_is_named_with_the_way_to_install_it(
    make: Maker, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    folder = make()
    monkeypatch.setitem(sys.modules, package, None)
    embedder = built(folder)
    assert embedder.size == 32
    assert package in embedder.unavailable_reason()
    assert "bunko[transformers]" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match=f"package {package} is not installed") as caught:
        embedder.embed(["cat"])
    assert "bunko[transformers]" in caught.value.hint


def test_the_settings_choose_the_model_and_how_it_runs(docs: Path, open_docs: Opener, make: Maker) -> None:
    folder = make()
    library = open_docs(
        EMBEDDING_PROVIDER="transformers", BUNKO_EMBEDDING_MODEL_TRANSFORMERS=str(folder),
        BUNKO_EMBEDDING_DEVICE="cpu", BUNKO_EMBEDDING_DEVICE_BATCH_SIZE="3", BUNKO_EMBEDDING_TOO_LONG="cut",
        BUNKO_EMBEDDING_MAX_TOKENS="20", BUNKO_MODEL_AUTO_UNLOAD_MINUTES="0", BUNKO_MODEL_MEMORY_THRESHOLD="0.5",
    )  # fmt: skip
    embedder = library.embedder()
    assert isinstance(embedder, transformers.Transformers)
    assert ":cut-20:" in embedder.name
    assert (embedder._device, embedder._device_batch, embedder._trust_remote_code) == ("cpu", 3, False)
    assert (embedder._idle_seconds, embedder._memory_threshold) == (float("inf"), 0.5)


def test_a_folder_is_imported_and_found_by_meaning(
    docs: Path, make: Maker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"rain": "東京の天気は雨", "cats": "cats and dogs", "coast": "海岸の祭"}.items():
        (docs / f"{name}.md").write_text(text, encoding="utf-8")
    monkeypatch.setenv("EMBEDDING_PROVIDER", "transformers")
    monkeypatch.setenv("BUNKO_EMBEDDING_DEVICE", "cpu")
    monkeypatch.setenv("BUNKO_EMBEDDING_MODEL_TRANSFORMERS", str(make()))
    done = run("reindex", "--docs-dir", docs)
    assert done.code == 0, done.err
    for query, wanted in {"海岸の祭": "coast.md", "cats and dogs": "cats.md", "東京の天気は雨": "rain.md"}.items():
        found = run("search", query, "--docs-dir", docs, "--mode", "semantic", "--json").json()
        hits: Any = found["results"]
        assert hits[0]["file_path"] == wanted
    monkeypatch.setenv("BUNKO_EMBEDDING_MODEL_TRANSFORMERS", str(make("other", seed=7)))
    other = run("search", "cats", "--docs-dir", docs, "--mode", "semantic")
    assert other.code != 0
    assert "embedder" in other.err
