"""Vectors of models on this machine, through the real transformers and torch: pooling, prompts and long texts."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bunko.errors import EmbedderError
from tests.models.conftest import Maker, write

if TYPE_CHECKING:
    pass
from tests.models.reference import TEXTS, build_model, token_states, unit

pytestmark = pytest.mark.models


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
    found = build_model(folder).embed(TEXTS)
    for row, text in zip(found, TEXTS, strict=True):
        np.testing.assert_allclose(row, unit(wanted(token_states(folder, text))), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "lasttoken", "max_tokens"])
@pytest.mark.parametrize("size", [1, 2, 5, None])
def test_a_text_has_the_same_vector_alone_and_in_any_batch(make: Maker, pooling: str, size: int | None) -> None:
    embedder = build_model(make(pooling=pooling), device_batch=size)
    together = embedder.embed(TEXTS)
    for at, text in enumerate(TEXTS):
        np.testing.assert_allclose(embedder.embed([text])[0], together[at], atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_padding_changes_nothing_for_a_model_that_reads_from_left_to_right_either(make: Maker) -> None:
    from transformers import GPT2Config, GPT2Model

    tiny = GPT2Config(vocab_size=200, n_positions=64, n_embd=16, n_layer=2, n_head=2)
    embedder = build_model(make(model=GPT2Model(tiny), pooling="lasttoken"))
    together = embedder.embed(TEXTS)
    for at, text in enumerate(TEXTS):
        np.testing.assert_allclose(embedder.embed([text])[0], together[at], atol=2e-6)


def test_of_a_model_that_also_writes_only_the_reader_is_used(make: Maker) -> None:
    from transformers import T5Config, T5Model

    tiny = T5Config(
        vocab_size=200, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, pad_token_id=0, decoder_start_token_id=0
    )
    embedder = build_model(make(model=T5Model(tiny)))
    assert embedder.embed(TEXTS).shape == (len(TEXTS), 16)
    np.testing.assert_allclose(embedder.embed(["cat"])[0], embedder.embed(TEXTS)[0], atol=2e-6)


def test_layers_after_the_pooling_are_applied_and_make_the_size(make: Maker) -> None:
    folder = make(pooling="mean_tokens", dense=12)
    embedder = build_model(folder)
    assert embedder.size == 12
    assert not embedder.is_loaded
    from safetensors.numpy import load_file

    layer = load_file(folder / "2_Dense/model.safetensors")
    wanted = np.tanh(layer["linear.weight"] @ token_states(folder, "cat").mean(axis=0) + layer["linear.bias"])
    np.testing.assert_allclose(embedder.embed(["cat"])[0], unit(wanted), atol=1e-5)


@pytest.mark.parametrize("told", [{"pooling_mode_weightedmean_tokens": True}, {"pooling_mode": "other"}, {"a": 1}])
def test_a_pooling_that_is_not_known_is_refused_and_not_guessed(make: Maker, told: dict[str, object]) -> None:
    with pytest.raises(EmbedderError, match="unsupported pooling"):
        build_model(make(pooling=told)).embed(["cat"])


def test_two_poolings_at_once_are_refused(make: Maker) -> None:
    with pytest.raises(EmbedderError, match="unsupported pooling"):
        _ = build_model(make(pooling={"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True})).name


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
    embedder = build_model(folder)
    np.testing.assert_allclose(
        embedder.embed(["cat"])[0], unit(token_states(folder, f"{document}cat").mean(axis=0)), atol=1e-5
    )
    np.testing.assert_allclose(
        embedder.embed(["cat"], query=True)[0], unit(token_states(folder, f"{query}cat").mean(axis=0)), atol=1e-5
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
    embedder = build_model(folder)
    np.testing.assert_allclose(
        embedder.embed(["cat"])[0], unit(token_states(folder, f"{document}cat").mean(axis=0)), atol=1e-5
    )
    np.testing.assert_allclose(
        embedder.embed(["cat"], query=True)[0], unit(token_states(folder, f"{query}cat").mean(axis=0)), atol=1e-5
    )


def test_the_calls_of_a_model_are_used_where_it_has_some(own: Maker, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    folder = own()
    embedder = build_model(folder, trust=True)
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
    embedder = build_model(own())
    assert "embedding.trust_remote_code" in embedder.unavailable_reason()
    with pytest.raises(EmbedderError, match="run its own code") as caught:
        embedder.embed(["cat"])
    assert "embedding.trust_remote_code" in caught.value.hint
    assert not (tmp_path / "proof").exists()
    assert not embedder.is_loaded


def test_a_model_of_a_known_kind_runs_without_the_code_that_it_brings(make: Maker, tmp_path: Path) -> None:
    folder = make()
    plain = build_model(folder).embed(["cat"])
    config = json.loads((folder / "config.json").read_text())
    write(folder / "config.json", config | {"auto_map": {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}})
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'proof')!r}, 'w').close()")
    embedder = build_model(folder)
    assert embedder.unavailable_reason() == ""
    np.testing.assert_array_equal(embedder.embed(["cat"]), plain)
    assert not (tmp_path / "proof").exists()


def test_trouble_in_a_models_own_code_is_an_error_to_read(own: Maker) -> None:
    embedder = build_model(own("loud", trouble="raise RuntimeError('no such kernel')"), trust=True)
    with pytest.raises(EmbedderError, match="no such kernel"):
        embedder.embed(["cat"])
    short = build_model(own("short", trouble="texts = texts[:1]"), trust=True)
    with pytest.raises(EmbedderError, match=r"\(1, 24\) for 2 texts"):
        short.embed(["cat", "dog"])
    needs = own("needs")
    (needs / "own_needs.py").write_text("import no_such_package_here\n")
    with pytest.raises(EmbedderError, match="no_such_package_here"):
        build_model(needs, trust=True).embed(["cat"])


def test_a_batch_that_needs_too_much_memory_is_halved(own: Maker, caplog: pytest.LogCaptureFixture) -> None:
    trouble = "if len(texts) > 2: raise RuntimeError('CUDA out of memory. Tried to allocate 9 GiB')"
    embedder = build_model(own("greedy", trouble=trouble), trust=True, device_batch=8)
    plain = build_model(own("plain"), trust=True)
    with caplog.at_level(logging.WARNING, logger="bunko.embedders"):
        found = embedder.embed(TEXTS[:5])
    np.testing.assert_allclose(found, plain.embed(TEXTS[:5]), atol=1e-6)
    assert "using 2 from now on" in caplog.text
    assert embedder.stats.calls == 4  # one in vain, then two, two and one
    full = build_model(own("full", trouble="raise RuntimeError('CUDA out of memory')"), trust=True)
    with pytest.raises(EmbedderError, match="out of memory") as caught:
        full.embed(["cat"])
    assert "embedding.device to cpu" in caught.value.hint


def test_a_text_too_long_is_the_average_of_its_parts(make: Maker, caplog: pytest.LogCaptureFixture) -> None:
    embedder = build_model(make(longest=32))
    half, other = "rain in tokyo today. ", "cats and dogs sleep. "
    with caplog.at_level(logging.WARNING, logger="bunko.embedders"):
        whole = embedder.embed(["cat", half + other, "dog"])
    assert embedder.stats.too_long == 1
    assert "1 text was too long for transformers tiny, and embedded in parts" in caplog.text
    rows = embedder.embed([half, other])
    np.testing.assert_allclose(whole[1], unit(rows.mean(axis=0)), atol=1e-5)
    np.testing.assert_allclose(whole[[0, 2]], embedder.embed(["cat", "dog"]), atol=2e-6)


def test_a_text_too_long_can_be_cut_instead(make: Maker) -> None:
    folder = make(longest=32)
    cut, averaged = build_model(folder, too_long="cut"), build_model(folder)
    half, other = "rain in tokyo today. ", "cats and dogs sleep. "
    np.testing.assert_allclose(cut.embed([half + other]), cut.embed([half]), atol=2e-6)
    assert cut.stats.too_long == 1
    assert cut.name != averaged.name


@pytest.mark.parametrize("text", ["a" * 5000, "東京" * 900, "\n" * 3000, "word " * 1000, "語" * 200 + "a" * 200])
def test_a_text_of_any_length_gets_a_vector(make: Maker, own: Maker, text: str) -> None:
    for embedder in (build_model(make(longest=32)), build_model(own(), trust=True)):
        assert np.isfinite(embedder.embed([text])).all()


def test_no_part_is_longer_than_the_model_takes(own: Maker) -> None:
    limit = "assert max(len(one) for one in tokenizer(texts)['input_ids']) <= 64"
    embedder = build_model(own(trouble=limit), trust=True)
    embedder.embed(["rain and wind " * 100, "東京の天気は雨 " * 50])
    assert embedder.stats.too_long == 2


def test_the_longest_text_can_be_set_and_is_never_more_than_the_model_takes(make: Maker) -> None:
    folder = make(longest=32)
    assert ":average-16:" in build_model(folder, max_tokens=16).name
    assert ":average-32:" in build_model(folder, max_tokens=512).name
    write(folder / "sentence_bert_config.json", {"max_seq_length": 24})
    assert ":average-24:" in build_model(folder).name


def test_halves_of_characters_and_empty_texts_get_a_vector(make: Maker) -> None:
    found = build_model(make()).embed(["", "\ud800", "\x00", " "])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
