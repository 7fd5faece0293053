"""Fill an index in a process of its own, which may be killed: `python -m tests.scale.filling KIND FOLDER LOG`."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunko import indexes, stores
from bunko.indexes.chroma.local import ChromaFiles
from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.options import ChromaOptions, EngineOptions, MilvusOptions
from bunko.protocols import Index, Store
from bunko.types.records import PreparedDocument
from tests.contracts.documents import prepared

TOPICS = ("京都の寺と庭", "サーバーの移行", "the sorry dog", "tomatoes in the garden", "予算の会議", "鹿せんべい")


def vector_of(text: str, size: int = 32) -> Any:
    """Return a vector of a text that is near to no other: a graph finds all of these."""
    vector = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(size).astype(np.float32)
    return vector / np.linalg.norm(vector)


def put(store: Store, tool_id: int, uris: Sequence[str], version: str = "") -> None:
    """Write documents of one or two chunks with vectors, in place of those with the same URIs."""
    documents: list[PreparedDocument] = []
    vectors: dict[bytes, Any] = {}
    for uri in uris:
        number = int(uri.partition(".")[0])
        texts = [f"{TOPICS[number % len(TOPICS)]}、その{number}番目の話 {version}", f"{number}番目のもう一つの段落"][
            : 1 + number % 2
        ]
        keys = [text.encode() for text in texts]
        vectors |= {key: vector_of(text) for key, text in zip(keys, texts, strict=True)}
        documents.append(replace(prepared(uri, *texts), vector_keys=keys))
    store.documents.write(tool_id, upsert=documents, vectors=vectors)


def open_index(kind: str, store: Store, folder: Path) -> Index:
    """Return an index that keeps everything in a folder."""
    milvus, chroma = MilvusOptions(uri=str(folder / "milvus.db")), ChromaOptions(folder=folder / "chroma")
    return indexes.build(kind, store, folder / "segments", EngineOptions(chroma=chroma, milvus=milvus))


@contextmanager
def counting_rows(log: Path) -> Iterator[None]:
    """Write into a file how many chunks each request to an engine writes, when it is done."""
    with pytest.MonkeyPatch.context() as patch:
        for engine in (MilvusServer, ChromaFiles):
            upsert = engine.upsert

            def counted(self, collection, rows, upsert=upsert):  # type: ignore[no-untyped-def]
                upsert(self, collection, rows)
                chunks = [row for row in rows if not isinstance(row, dict) or row["id"] > 0]  # not those about copies
                with open(log, "a", encoding="utf-8") as file:
                    file.write(f"{len(chunks)}\n")

            patch.setattr(engine, "upsert", counted)
        yield


def counted_rows(log: Path) -> int:
    """Return how many chunks were written."""
    return sum(map(int, log.read_text(encoding="utf-8").split()))


def main(kind: str, folder: Path, log: Path) -> None:
    """Fill the index of the only tool of a library."""
    store = stores.build("sqlite", folder / "library.db")
    [tool] = store.tools.all()
    index = open_index(kind, store, folder)
    with counting_rows(log):
        index.sync(tool.id)
    index.close()
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
