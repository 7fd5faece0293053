"""Try whether Chroma can read a collection: `python -m bunko.indexes.chroma.trial FOLDER NAME` ends with 0 if so."""

from __future__ import annotations

import sys

_QUERIES, _RESULTS = 50, 100


def main(folder: str, name: str) -> None:
    """Search a collection for some of its own vectors."""
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
    collection = client.get_collection(name, embedding_function=None)
    count = collection.count()
    if not count:
        return
    step = max(1, count // _QUERIES)
    for offset in range(0, count, step):
        vectors = collection.get(limit=1, offset=offset, include=["embeddings"])["embeddings"]
        collection.query(query_embeddings=vectors, n_results=min(count, _RESULTS))


if __name__ == "__main__":
    main(*sys.argv[1:3])
