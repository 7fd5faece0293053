"""Tiny ONNX models with weights made on the spot: an encoder, a cross-encoder, and their tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:-検索文書章クエリ東京天気雨海岸猫犬祭のはがをに図書館九時開く"
WORDS = (*SPECIAL, *dict.fromkeys(LETTERS))
SIZE = 16


def write_encoder(folder: Path, *, pooling: str = "mean", max_tokens: int = 64, file: str = "onnx/model.onnx") -> Path:
    """Write a model of embeddings whose token vectors are rows of a random table."""
    from onnx import TensorProto, helper

    table = np.random.default_rng(7).normal(size=(len(WORDS), SIZE)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", SIZE])
    _write_graph(folder / file, nodes, {"table": table}, ("input_ids", "attention_mask"), output)
    _write_tokenizer(folder)
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    modes = {f"pooling_mode_{mode}": mode.startswith(pooling) for mode in ("cls_token", "mean_tokens", "max_tokens")}
    write_json(folder / "config.json", {"hidden_size": SIZE, "pad_token_id": 0, "model_type": "tiny"})
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": SIZE, **modes})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens})
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "検索: ", "document": "文章: "}})
    return folder


def write_cross_encoder(folder: Path, *, file: str = "onnx/model.onnx") -> Path:
    """Write a reranker that counts the letters which a query and a text have in common."""
    from onnx import TensorProto, helper

    table = np.eye(len(WORDS), dtype=np.float32)
    table[: len(SPECIAL)] = 0
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["letters"]),
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "second"], ["first"]),
        *(
            node
            for side in ("first", "second")
            for node in (
                helper.make_node("Mul", [side, "mask"], [f"{side}_mask"]),
                helper.make_node("Unsqueeze", [f"{side}_mask", "last"], [f"{side}_column"]),
                helper.make_node("Mul", ["letters", f"{side}_column"], [f"{side}_letters"]),
                helper.make_node("ReduceMax", [f"{side}_letters", "axis"], [f"{side}_bag"], keepdims=0),
            )
        ),
        helper.make_node("Mul", ["first_bag", "second_bag"], ["common"]),
        helper.make_node("ReduceSum", ["common", "axis"], ["count"], keepdims=1),
        helper.make_node("Sub", ["count", "three"], ["logits"]),
    ]
    weights = {
        "table": table,
        "one": np.array([1], np.float32),
        "three": np.array([3], np.float32),
        "last": np.array([2]),
        "axis": np.array([1]),
    }
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    _write_graph(folder / file, nodes, weights, ("input_ids", "attention_mask", "token_type_ids"), output)
    _write_tokenizer(folder)
    write_json(folder / "config.json", {"pad_token_id": 0, "model_type": "tiny"})
    return folder


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _write_graph(path: Path, nodes: list[Any], weights: dict[str, Any], inputs: tuple[str, ...], output: Any) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    values = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs]
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "tiny", values, [output], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))


def _write_tokenizer(folder: Path) -> None:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    # Every letter is a token, so that a text has as many as it has letters, and two more.
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\S|\s+"), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
