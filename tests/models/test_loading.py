"""Loading and unloading models, devices, memory and settings."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bunko.embedders import torch_model, transformers
from bunko.errors import EmbedderError
from tests.conftest import Opener, Run
from tests.models.conftest import Maker

if TYPE_CHECKING:
    pass
from tests.models.reference import TEXTS, build_model, unload_threads, wait_until_unloaded

pytestmark = pytest.mark.models


def test_a_device_that_is_not_there_is_an_error_and_auto_picks_one_that_is(make: Maker) -> None:
    import torch

    folder = make()
    wanted = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    embedder = build_model(folder, device="auto")
    embedder.embed(["cat"])
    assert embedder._loaded_model is not None
    assert embedder._loaded_model.device == wanted
    assert embedder._loaded_model.batch_size == torch_model.BATCH_SIZES[wanted]
    for name in {"cuda", "mps"} - {wanted}:
        with pytest.raises(EmbedderError, match=f"no {name} device"):
            build_model(folder, device=name).embed(["cat"])


def test_texts_go_in_batches_of_the_size_that_is_set(make: Maker) -> None:
    embedder = build_model(make(), device_batch=4)
    embedder.embed([f"text {number}" for number in range(10)])
    assert (embedder.stats.texts, embedder.stats.calls) == (10, 3)


def test_a_question_asked_twice_is_embedded_once(make: Maker) -> None:
    embedder = build_model(make())
    first = embedder.embed(["cat"], query=True)
    first[:] = 0
    assert np.linalg.norm(embedder.embed(["cat"], query=True)) == pytest.approx(1)
    assert embedder.stats.calls == 1


def test_a_program_that_ends_while_a_model_is_freed_ends_well(make: Maker) -> None:
    # The thread that looks for idle models holds the last reference, and many tensors take a while to free.
    code = f"""
import threading, torch
from bunko.embedders import transformers
is_ending = threading.Event()
transformers._memory_in_use = lambda: float(not is_ending.wait())
embedder = transformers.build(model={str(make())!r}, device="cpu")
embedder.embed(["cat"])
embedder._loaded_model.more = [torch.zeros(1) for _ in range(200_000)]
del embedder
is_ending.set()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_model_that_nobody_uses_is_unloaded_and_loaded_again(make: Maker) -> None:
    embedder = build_model(make(), idle=0.01)
    before = embedder.embed(["cat"])
    wait_until_unloaded(embedder)
    np.testing.assert_array_equal(embedder.embed(["cat"]), before)
    wait_until_unloaded(embedder)


def test_a_model_is_unloaded_soon_where_memory_is_scarce(make: Maker) -> None:
    embedder = build_model(make(), threshold=0.0, pause=0.01)
    embedder.embed(["cat"])
    wait_until_unloaded(embedder)
    roomy = build_model(make(), threshold=1.0, pause=0.01)
    roomy.embed(["cat"])
    assert roomy._unload_if_idle(roomy._load_count) == transformers.MEMORY_CHECK_SECONDS
    assert roomy.is_loaded
    roomy.unload()
    wait_until_unloaded(roomy)


def test_an_embedder_that_is_thrown_away_leaves_no_thread_behind(make: Maker) -> None:
    embedder = build_model(make(), threshold=1.0)
    embedder.embed(["cat"])
    watch = embedder._idle_watch
    assert watch is not None
    del embedder
    watch.wake.set()
    for thread in unload_threads():
        thread.join(timeout=60)
    assert not unload_threads()


def test_threads_that_embed_while_the_model_is_unloaded_again_and_again_all_get_their_vectors(make: Maker) -> None:
    embedder = build_model(make(), idle=0.0)
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
    wait_until_unloaded(embedder)


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
        # Half floats, as most models are cached_model: they become whole ones in memory of our own.
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
    build_model(folder).embed(["cat"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("package", ["torch", "transformers", "psutil"])
def test_a_missing_package_is_named_with_the_way_to_install_it(
    make: Maker, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    folder = make()
    monkeypatch.setitem(sys.modules, package, None)
    embedder = build_model(folder)
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
    assert (other.code, "cats.md" in other.out) == (0, True), "words answer for a model that is not in the settings"
    assert "Only the words of documents are searched: its embedder" in other.err
