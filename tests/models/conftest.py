"""Tiny models of real architectures, made on the spot: no download, no network."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Torch is large, and only these tests need it: they have an environment of their own, made by `make test-models`.
if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    # Both packages read these when they are imported. Nothing is fetched, and nobody's own models are touched.
    _HOME = tempfile.TemporaryDirectory(prefix="bunko-models-")
    os.environ |= {"HF_HOME": _HOME.name, "HF_HUB_OFFLINE": "1"}

Maker = Callable[..., Path]

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:-検索文書章クエリ東京天気雨海岸猫犬祭のはがをに"
CODE = '''
"""A model with calls of its own, as PLaMo has them."""

from pathlib import Path

import torch
from transformers import PretrainedConfig, PreTrainedModel

Path({proof!r}).write_text("ran")


class OwnConfig(PretrainedConfig):
    model_type = "bunko-own"

    def __init__(self, vocab_size=200, hidden_size=24, **more):
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        super().__init__(**more)


class OwnModel(PreTrainedModel):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.table = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, **_):
        weights = attention_mask.unsqueeze(-1).float()
        return (self.table(input_ids) * weights).sum(dim=1) / weights.sum(dim=1)

    def encode_document(self, texts, tokenizer):
        {trouble}
        return self.forward(**dict(tokenizer(texts, padding=True, return_tensors="pt").to(self.device)))

    def encode_query(self, texts, tokenizer):
        return self.encode_document(["検索: " + text for text in texts], tokenizer) * 3
'''


def _tokenizer(folder: Path, longest: int) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    # Every letter is a token, so that a text has as many as it has letters, and two more.
    words = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    one = Tokenizer(models.WordPiece({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    one.normalizer = normalizers.BertNormalizer(lowercase=True, handle_chinese_chars=False)
    one.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    one.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=one, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=longest,
    ).save_pretrained(folder)  # fmt: skip


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """Make the folder of a tiny BERT, with what sentence-transformers would put beside it."""

    def maker(
        name: str = "tiny",
        *,
        pooling: str | dict[str, object] | None = None,
        prompts: dict[str, str] | None = None,
        dense: int | None = None,
        longest: int = 64,
        seed: int = 0,
        dtype: str = "float32",
        model: Any = None,
        **config: Any,
    ) -> Path:
        import torch
        from transformers import BertConfig, BertModel

        folder = tmp_path / "models" / name
        torch.manual_seed(seed)
        if model is None:
            usual = {
                "vocab_size": len(SPECIAL) + 2 * len(LETTERS), "hidden_size": 32, "num_hidden_layers": 2,
                "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64,
                "initializer_range": 0.5,  # far apart, so that another token is another vector
            }  # fmt: skip
            model = BertModel(BertConfig(**(usual | config)), add_pooling_layer=False)
        model.to(getattr(torch, dtype)).save_pretrained(folder)
        _tokenizer(folder, longest)
        modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
        size = model.config.hidden_size
        if pooling is not None:
            told = pooling if isinstance(pooling, dict) else {f"pooling_mode_{pooling}": True}
            write(folder / "1_Pooling/config.json", {"word_embedding_dimension": size, **told})
            modules.append({"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})
        if dense is not None:
            from safetensors.torch import save_file

            layer = torch.nn.Linear(size, dense)
            told = {"in_features": size, "out_features": dense, "activation_function": "torch.nn.Tanh"}
            write(folder / "2_Dense/config.json", told)
            save_file(
                {"linear.weight": layer.weight.data, "linear.bias": layer.bias.data},
                folder / "2_Dense/model.safetensors",
            )
            modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
        if len(modules) > 1:
            write(folder / "modules.json", modules)
        if prompts is not None:
            write(folder / "config_sentence_transformers.json", {"prompts": prompts})
        return folder

    return maker


@pytest.fixture
def own(tmp_path: Path) -> Maker:
    """Make the folder of a model that brings code, which leaves a proof that it ran."""

    def maker(name: str = "own", *, trouble: str = "pass", **config: Any) -> Path:
        import torch
        from safetensors.torch import save_file

        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        _tokenizer(folder, 64)
        code = CODE.format(proof=str(tmp_path / "proof"), trouble=trouble)
        (folder / f"own_{name}.py").write_text(code, encoding="utf-8")
        auto = {"AutoConfig": f"own_{name}.OwnConfig", "AutoModel": f"own_{name}.OwnModel"}
        told = {"model_type": "bunko-own", "hidden_size": 24, "vocab_size": 200, "architectures": ["OwnModel"]}
        write(folder / "config.json", {**told, "auto_map": auto, "max_position_embeddings": 64, **config})
        torch.manual_seed(1)
        save_file({"table.weight": torch.randn(200, 24)}, folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    return maker
