"""Train a Unigram subword tokenizer for Japanese and English.

usage: python training/tokenizer.py OUT.model pairs_docs.jsonl.zst pairs_text.jsonl.zst pairs_lex.jsonl.zst
needs: bunko, sentencepiece, zstandard. Ten minutes on two cores.

Tokens do not cross borders between Japanese words: 方法を is 方法 and を, so that a model learns 方法 once.
The words come from MeCab during training; the trained tokenizer does not need it.
"""

from __future__ import annotations

import io
import re
import sys
from functools import lru_cache
from pathlib import Path

import sentencepiece
from pairs import texts

from bunko.text.analyzer import load_tagger
from bunko.text.subwords import space_words

VOCABULARY = 48_000
MAX_TEXTS_PER_SOURCE = 40_000
MAX_TEXT_CHARS = 400
# Training collapses runs of spaces, the trained tokenizer does not. Serialised protocol buffers merge when they are
# joined: this one is `normalizer_spec { remove_extra_whitespaces: false }`.
KEEP_SPACES = b"\x1a\x02\x20\x00"
_BORDER = "\u241f"
_JAPANESE = re.compile(r"[\u3005\u3040-\u30ff\u3400-\u9fff]+")


def main(out: Path, paths: list[Path], vocabulary: int = VOCABULARY) -> None:
    """Train and save the tokenizer."""
    sentences = [
        mark_borders(space_words(" ".join(text[:MAX_TEXT_CHARS].split())))
        for text in texts(paths, MAX_TEXTS_PER_SOURCE)
    ]
    print(len(sentences), "texts,", sum(map(len, sentences)), "characters", flush=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type="unigram",
        vocab_size=vocabulary,
        character_coverage=0.9998,
        normalization_rule_name="nmt_nfkc_cf",
        add_dummy_prefix=False,
        split_digits=True,
        pretokenization_delimiter=_BORDER,
        bos_id=-1,
        eos_id=-1,
        num_threads=2,
        minloglevel=1,
    )
    out.write_bytes(model.getvalue() + KEEP_SPACES)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(out))
    for text in ("環境構築の方法を教えてください。", "How do I validate a form?", "GitHubActionsとDEC-0054について"):
        print(tokenizer.encode(space_words(text), out_type=str))


def mark_borders(text: str) -> str:
    """Return a text with a border mark between its Japanese words."""
    return _JAPANESE.sub(lambda run: _words(run.group()), text)


@lru_cache(1_000_000)
def _words(run: str) -> str:
    return _BORDER.join(load_tagger("wakati").parse(run).split())


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
