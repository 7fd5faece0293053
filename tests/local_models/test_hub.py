"""Models are fetched from a hub once, checked, and continued where a download stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from bunko.errors import ModelError
from bunko.local_models.files import LocalModel, repository_folder
from bunko.local_models.hub import Hub, remove_model
from tests.loopback_hub import COMMIT, LoopbackHub
from tests.tiny_models import write_encoder

NAME, MAKERS, CONVERSION = "ruri-v3-30m", "cl-nagoya/ruri-v3-30m", "sirasagi62/ruri-v3-30m-ONNX"


@pytest.fixture
def server() -> Iterator[LoopbackHub]:
    hub = LoopbackHub()
    yield hub
    hub.close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def hub(server: LoopbackHub, cache: Path, tmp_path: Path) -> Hub:
    """A hub with a model whose configuration and whose ONNX file are in two repositories."""
    made = write_encoder(tmp_path / "made", file="onnx/model_int8.onnx")
    server.add(MAKERS, made)
    del server.repos[MAKERS]["onnx/model_int8.onnx"], server.repos[MAKERS]["tokenizer.json"]
    conversion = {name: (made / name).read_bytes() for name in ("onnx/model_int8.onnx", "tokenizer.json")}
    server.repos[CONVERSION] = conversion
    return Hub(endpoint=server.address, cache=cache)


def test_a_model_is_fetched_once_and_lies_where_other_programs_look_for_it(
    hub: Hub, server: LoopbackHub, cache: Path
) -> None:
    model = LocalModel(NAME)
    assert "bunko models get ruri-v3-30m" in model.missing_reason()
    reports: list[tuple[str, int, int]] = []
    files = hub.fetch(model, lambda *report: reports.append(report))
    assert {(file.repo, file.name) for file in files} == {
        (CONVERSION, "onnx/model_int8.onnx"), (CONVERSION, "tokenizer.json"), (MAKERS, "config.json"),
        (MAKERS, "modules.json"), (MAKERS, "sentence_bert_config.json"), (MAKERS, "1_Pooling/config.json"),
        (MAKERS, "config_sentence_transformers.json"),
    }  # fmt: skip
    assert model.missing_reason() == ""
    found = model.find()
    assert found is not None
    assert found.onnx == cache / "models--sirasagi62--ruri-v3-30m-ONNX/snapshots" / COMMIT / "onnx/model_int8.onnx"
    assert found.configuration == cache / "models--cl-nagoya--ruri-v3-30m/snapshots" / COMMIT
    size = found.onnx.stat().st_size
    assert ("onnx/model_int8.onnx", size, size) in reports

    from huggingface_hub import try_to_load_from_cache

    assert try_to_load_from_cache(CONVERSION, "onnx/model_int8.onnx", cache_dir=cache) == str(found.onnx)
    before = len(server.downloads())
    assert [file.digest for file in hub.fetch(model)] == [file.digest for file in files]
    assert len(server.downloads()) == before


def test_an_interrupted_download_continues_where_it_stopped(hub: Hub, server: LoopbackHub, cache: Path) -> None:
    content = server.repos[CONVERSION]["onnx/model_int8.onnx"]
    digest = sha256(content).hexdigest()
    part = repository_folder(CONVERSION, cache) / "blobs" / f"{digest}.bunko-part"
    part.parent.mkdir(parents=True)
    part.write_bytes(content[:1000])
    hub.fetch(LocalModel(NAME))
    assert (f"/cdn/{digest}", "bytes=1000-") in server.downloads()
    assert (part.parent / digest).read_bytes() == content
    assert not part.exists()


def test_a_rest_that_is_longer_than_the_file_is_thrown_away(hub: Hub, server: LoopbackHub, cache: Path) -> None:
    content = server.repos[CONVERSION]["onnx/model_int8.onnx"]
    part = repository_folder(CONVERSION, cache) / "blobs" / f"{sha256(content).hexdigest()}.bunko-part"
    part.parent.mkdir(parents=True)
    part.write_bytes(content + b"more")
    hub.fetch(LocalModel(NAME))
    assert part.with_suffix("").read_bytes() == content


def test_a_connection_that_is_cut_is_taken_up_again(hub: Hub, server: LoopbackHub, cache: Path) -> None:
    server.cut_after = 700
    hub.fetch(LocalModel(NAME))
    first, second, *_ = server.downloads()
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("", "bytes=700-")
    found = LocalModel(NAME).find()
    assert found is not None
    assert found.onnx.read_bytes() == server.repos[CONVERSION]["onnx/model_int8.onnx"]


def test_a_file_with_another_checksum_is_refused_and_deleted(hub: Hub, server: LoopbackHub, cache: Path) -> None:
    server.changes_content = True
    with pytest.raises(ModelError, match="checksum") as caught:
        hub.fetch(LocalModel(NAME))
    assert "Run the command again" in caught.value.hint
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    server.changes_content = False
    hub.fetch(LocalModel(NAME))
    assert LocalModel(NAME).missing_reason() == ""


def test_a_file_that_was_damaged_later_is_found_by_its_checksum(hub: Hub, server: LoopbackHub) -> None:
    hub.fetch(LocalModel(NAME))
    found = LocalModel(NAME).find()
    assert found is not None
    blob = Path(os.path.realpath(found.onnx))
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[::-1])
    with pytest.raises(ModelError, match="checksum"):
        hub.fetch(LocalModel(NAME))
    hub.fetch(LocalModel(NAME))
    assert found.onnx.read_bytes() == server.repos[CONVERSION]["onnx/model_int8.onnx"]


@pytest.mark.parametrize(
    "etag", ["../../../outside/mine.txt", "OUTSIDE/mine.txt", "..", "0" * 39, "Z" * 64, "0" * 40 + "/x"]
)
@pytest.mark.parametrize("cut_after", [None, 5])
def test_a_hub_names_no_file_outside_its_cache(
    hub: Hub, server: LoopbackHub, cache: Path, tmp_path: Path, etag: str, cut_after: int | None
) -> None:
    mine = tmp_path / "outside" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine", encoding="utf-8")
    server.etags["config.json"] = etag.replace("OUTSIDE", str(mine.parent))
    server.cut_after = cut_after
    with pytest.raises(ModelError, match="is not a checksum"):
        hub.fetch(LocalModel(NAME))
    assert mine.read_text(encoding="utf-8") == "mine"
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("commit", ["../../../../outside", "main", "0" * 41])
def test_a_hub_names_no_folder_outside_its_cache(hub: Hub, server: LoopbackHub, tmp_path: Path, commit: str) -> None:
    server.commit = commit
    with pytest.raises(ModelError, match="is not a commit"):
        hub.fetch(LocalModel(NAME))
    assert not (tmp_path / "outside").exists()


def test_a_hub_that_changes_its_answer_names_no_file_outside_its_cache(
    hub: Hub, server: LoopbackHub, tmp_path: Path
) -> None:
    server.etags_after_first["config.json"] = "../../../planted.txt"
    hub.fetch(LocalModel(NAME))
    assert LocalModel(NAME).missing_reason() == ""
    assert not list(tmp_path.rglob("planted*"))


@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
@pytest.mark.parametrize("folder", ["blobs", "snapshots", "refs"])
def test_nothing_is_written_through_a_link_that_leaves_the_cache(
    hub: Hub, cache: Path, tmp_path: Path, folder: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    repository_folder(CONVERSION, cache).mkdir(parents=True)
    (repository_folder(CONVERSION, cache) / folder).symlink_to(outside)
    with pytest.raises(ModelError, match="outside the cache"):
        hub.fetch(LocalModel(NAME))
    assert not list(outside.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
def test_a_damaged_file_of_a_store_that_the_cache_links_to_stays_and_is_fetched_again(
    hub: Hub, server: LoopbackHub, cache: Path, tmp_path: Path
) -> None:
    digest = sha256(server.repos[CONVERSION]["onnx/model_int8.onnx"]).hexdigest()
    blob, shared = repository_folder(CONVERSION, cache) / "blobs" / digest, tmp_path / "shared"
    shared.write_bytes(b"damaged")
    blob.parent.mkdir(parents=True)
    blob.symlink_to(shared)
    with pytest.raises(ModelError, match="checksum"):
        hub.fetch(LocalModel(NAME))
    hub.fetch(LocalModel(NAME))
    assert not blob.is_symlink()
    assert shared.read_bytes() == b"damaged"


@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
def test_a_model_that_links_to_a_file_outside_the_cache_never_changes_or_deletes_it(
    hub: Hub, server: LoopbackHub, cache: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.onnx"
    mine.write_bytes(b"mine")
    content = server.repos[CONVERSION]["onnx/model_int8.onnx"]
    part = repository_folder(CONVERSION, cache) / "blobs" / f"{sha256(content).hexdigest()}.bunko-part"
    part.parent.mkdir(parents=True)
    part.symlink_to(mine)
    with pytest.raises(ModelError, match="outside the cache"):
        hub.fetch(LocalModel(NAME))
    part.unlink()
    hub.fetch(LocalModel(NAME))
    found = LocalModel(NAME).find()
    assert found is not None
    found.onnx.unlink()
    found.onnx.symlink_to(mine)
    with pytest.raises(ModelError, match="checksum"):
        hub.fetch(LocalModel(NAME))
    assert not found.onnx.is_symlink()
    found.onnx.symlink_to(mine)
    (found.onnx.parent / "model.safetensors").write_bytes(b"of another program")  # so that the rest stays
    remove_model(LocalModel(NAME), cache)
    assert not found.onnx.is_symlink()
    assert mine.read_bytes() == b"mine"


def test_a_gated_model_says_how_to_get_access(hub: Hub, server: LoopbackHub) -> None:
    server.gated.add(CONVERSION)
    with pytest.raises(ModelError, match="gated") as caught:
        hub.fetch(LocalModel(NAME))
    assert "hf auth login" in caught.value.hint


@pytest.mark.parametrize("name", ["nobody/nothing", "not a name"])
def test_a_model_that_the_hub_does_not_have_is_an_error(hub: Hub, name: str) -> None:
    with pytest.raises(ModelError, match="no model called"):
        hub.fetch(LocalModel(name))


def test_a_repository_without_an_onnx_file_is_an_error(hub: Hub, server: LoopbackHub) -> None:
    with pytest.raises(ModelError, match="contains none of"):
        hub.fetch(LocalModel(f"{MAKERS}@{COMMIT}"))


def test_a_model_without_onnx_says_what_runs_it(hub: Hub) -> None:
    with pytest.raises(ModelError, match="no ONNX file") as caught:
        hub.fetch(LocalModel("plamo-embedding-1b"))
    assert "plamo" in caught.value.hint


def test_a_hub_that_is_away_is_an_error_that_says_what_to_do(cache: Path) -> None:
    server = LoopbackHub()
    server.close()
    with pytest.raises(ModelError, match="cannot be downloaded") as caught:
        Hub(endpoint=server.address, cache=cache).fetch(LocalModel(NAME))
    assert "continues where it stopped" in caught.value.hint


def test_a_removed_model_is_gone_and_its_bytes_are_counted(hub: Hub, cache: Path) -> None:
    size = sum(file.bytes for file in hub.fetch(LocalModel(NAME)))
    assert remove_model(LocalModel(NAME)) >= size
    assert LocalModel(NAME).find() is None
    assert not [path for path in cache.glob("models--*") if path.exists()]
    assert remove_model(LocalModel(NAME)) == 0


def test_removing_a_model_leaves_what_other_programs_downloaded(hub: Hub, cache: Path) -> None:
    hub.fetch(LocalModel(NAME))
    weights = repository_folder(MAKERS, cache) / "snapshots" / COMMIT / "model.safetensors"
    weights.write_bytes(b"of another program")
    remove_model(LocalModel(NAME))
    assert weights.is_file()
    assert (weights.parent / "config.json").is_file()
    assert LocalModel(NAME).find() is None


def test_a_folder_is_neither_fetched_nor_removed(hub: Hub, tmp_path: Path) -> None:
    for action in (hub.fetch, remove_model):
        with pytest.raises(ModelError, match="folder"):
            action(LocalModel(str(tmp_path / "made")))
    assert (tmp_path / "made/config.json").is_file()
