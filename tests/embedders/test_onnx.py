"""The embedder for ONNX models: pooling, prompts and limits come from the files of the model."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bunko import embedders
from bunko.embedders.onnx import Onnx, build
from bunko.errors import EmbedderError
from bunko.settings import load_settings
from tests.conftest import Opener
from tests.tiny_models import SIZE, WORDS, write_encoder, write_json

TABLE = np.random.default_rng(7).normal(size=(len(WORDS), SIZE)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "tiny")


def states(text: str) -> np.ndarray:
    """Return what the model computes for each token of a text, with the marks around it."""
    ids = [2, *(WORDS.index(letter) if letter in WORDS else 1 for letter in text), 3]
    return TABLE[ids]


def unit(row: np.ndarray) -> np.ndarray:
    unit_row: np.ndarray = row / np.linalg.norm(row)
    return unit_row


def test_a_text_gets_the_prompt_of_its_role_and_the_mean_of_its_tokens(folder: Path) -> None:
    embedder = build(model=str(folder))
    assert np.allclose(embedder.embed(["東京"])[0], unit(states("文章: 東京").mean(axis=0)), atol=1e-6)
    assert np.allclose(embedder.embed(["東京"], query=True)[0], unit(states("検索: 東京").mean(axis=0)), atol=1e-6)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_the_pooling_is_that_of_the_model_whatever_is_beside_a_text(tmp_path: Path, pooling: str) -> None:
    embedder = build(model=str(write_encoder(tmp_path / pooling, pooling=pooling)))
    tokens = states("文章: 犬")
    expected = {"cls": tokens[0], "mean": tokens.mean(axis=0), "max": tokens.max(axis=0)}[pooling]
    assert np.allclose(embedder.embed(["犬", "図書館は九時に開く"])[0], unit(expected), atol=1e-6)


def test_a_long_text_is_embedded_in_parts_or_cut(folder: Path) -> None:
    text = "。".join(["図書館は九時に開く"] * 30)
    averaged, cut = build(model=str(folder)), build(model=str(folder), too_long="cut")
    assert not np.allclose(averaged.embed([text]), cut.embed([text]), atol=1e-3)
    assert averaged.stats.too_long == cut.stats.too_long == 1
    assert averaged.name != cut.name
    assert "average-64" in averaged.name


def test_what_changes_the_vectors_changes_the_name_and_moving_the_folder_does_not(folder: Path, tmp_path: Path) -> None:
    name = build(model=str(folder)).name
    assert name.startswith(f"onnx:tiny:{SIZE}:")
    (tmp_path / "elsewhere").mkdir()
    folder = folder.rename(tmp_path / "elsewhere/tiny")
    assert build(model=str(folder)).name == name
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "q: ", "document": "d: "}})
    assert build(model=str(folder)).name != name


def test_a_listed_model_without_a_configuration_uses_what_is_known_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--sirasagi62--ruri-v3-30m-ONNX"
    write_encoder(repository / "snapshots/abc", file="onnx/model_int8.onnx")
    for name in ("config_sentence_transformers.json", "modules.json", "1_Pooling/config.json"):
        (repository / "snapshots/abc" / name).unlink()
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("abc")
    row = build(model="ruri-v3-30m").embed(["犬"], query=True)[0]
    assert np.allclose(row, unit(states("検索クエリ: 犬").mean(axis=0)), atol=1e-6)


def test_a_model_that_is_not_here_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    embedder = embedders.build("onnx")
    assert embedder is not None
    assert "bunko models get ruri-v3-30m" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="not on this machine") as caught:
        embedder.embed(["猫"])
    assert "bunko models get" in caught.value.hint


def test_a_file_that_is_no_model_is_an_error(folder: Path) -> None:
    (folder / "onnx/model.onnx").write_bytes(b"no model")
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        build(model=str(folder)).embed(["猫"])


def test_another_process_gets_the_same_embedder(folder: Path) -> None:
    embedder = build(model=str(folder), too_long="cut", max_tokens=20)
    copy = pickle.loads(pickle.dumps(embedder))
    assert isinstance(copy, Onnx)
    assert copy.name == embedder.name


def test_a_model_that_was_unloaded_is_loaded_again(folder: Path) -> None:
    embedder = build(model=str(folder))
    row = embedder.embed(["猫"])
    before = embedder.is_loaded
    embedder.unload()
    assert (before, embedder.is_loaded) == (True, False)
    assert np.array_equal(embedder.embed(["猫"]), row)


def test_a_library_is_imported_and_searched_with_the_model_of_the_settings(
    docs: Path, open_docs: Opener, folder: Path
) -> None:
    (docs / "a.md").write_text("猫と犬" * 8, encoding="utf-8")
    (docs / "b.md").write_text("東京の天気" * 5, encoding="utf-8")
    library = open_docs(EMBEDDING_PROVIDER="onnx", BUNKO_EMBEDDING_MODEL=str(folder))
    answer = library.search("天気の東京" * 5, mode="semantic")
    assert answer.mode == "semantic"
    assert answer.hits[0].uri == "b.md"


def test_a_library_whose_model_is_gone_says_how_to_get_it_and_nothing_else(
    docs: Path, open_docs: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--acme--tiny"
    write_encoder(repository / "snapshots" / "1")
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("1", encoding="ascii")
    (docs / "a.md").write_text("猫と犬" * 8, encoding="utf-8")
    settings = {"EMBEDDING_PROVIDER": "onnx", "BUNKO_EMBEDDING_MODEL": "acme/tiny"}
    assert open_docs(**settings).search("犬").notices == []
    shutil.rmtree(repository)
    library = open_docs(**settings)
    answer = library.search("犬")
    assert [hit.uri for hit in answer.hits] == ["a.md"]
    assert answer.notices == [
        "Only the words of documents are searched: onnx acme/tiny cannot be used."
        " The model acme/tiny is not on this machine. Get it with: bunko models get acme/tiny"
    ]
    findings = [finding for finding in library.maintenance.diagnose() if finding.state != "ok"]
    assert [finding.message for finding in findings] == ["only words are searched: onnx acme/tiny cannot be used"]


def test_a_folder_of_documents_chooses_no_model(tmp_path: Path) -> None:
    (tmp_path / "bunko.toml").write_text('[embedding]\nmodel = "./evil"\nonnx_file = "evil.onnx"\n', encoding="utf-8")
    theirs = load_settings(environ={}, config_folders=[tmp_path], untrusted_folder=tmp_path)
    assert "embedding.model, embedding.onnx_file in" in theirs.notices[0]


@pytest.mark.slow
def test_nothing_heavy_is_loaded_until_a_text_is_embedded(folder: Path) -> None:
    heavy = ("onnxruntime", "tokenizers", "huggingface_hub", "torch", "onnx")
    code = (
        f"import sys; from bunko import embedders; embedder = embedders.build('onnx', model={str(folder)!r});"
        "embedder.unavailable_reason(); embedder.name;"
        f"print([name for name in {heavy} if name in sys.modules]); embedder.embed(['a']);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['onnxruntime', 'tokenizers']"]
