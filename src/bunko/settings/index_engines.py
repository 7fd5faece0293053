"""Declare the settings of the index and of the engines that it can use."""

# No `from __future__ import annotations` here: `Setting` reads types and choices from the real annotations.
from typing import Literal

from bunko.settings.setting import Section, setting


class IndexSection(Section):
    """Which index answers searches."""

    kind: Literal["embedded", "chroma", "milvus"] = setting(
        "embedded",
        "Index. embedded runs in the same process; chroma finds the nearest vectors in Chroma, see [chromadb]; milvus"
        " searches a Milvus server or file, see [milvus]",
    )


class ChromadbSection(Section):
    """How Chroma keeps vectors, if index.kind is chroma."""

    url: str | None = setting(
        None,
        "URL of a Chroma server. Not set: files in storage.chromadb_persist_dir, which bunko[chroma] reads and writes",
        "CHROMADB_URL",
    )
    token: str = setting("", "Token that is sent to the server", "CHROMADB_TOKEN", secret=True)
    tenant: str = setting("default_tenant", "Tenant on the server", "CHROMADB_TENANT")
    database: str = setting("default_database", "Database on the server", "CHROMADB_DATABASE")
    timeout: float = setting(5.0, "Maximum time a search waits for the server, in seconds", low=0.1)
    write_timeout: float = setting(
        60.0, "Maximum time an import waits for the server to store a batch, in seconds", low=0.1
    )
    collection_name: str = setting(
        "documents",
        "Name of the collection of the tool documents. Other tools and servers add the ids of the tool and the library",
    )
    hnsw_space: Literal["cosine", "l2", "ip"] = setting("cosine", "Distance function")
    hnsw_construction_ef: int = setting(200, "HNSW construction width: higher is more exact and slower", low=1)
    hnsw_search_ef: int = setting(100, "HNSW search width: higher is more exact and slower", low=1)
    hnsw_M: int = setting(16, "HNSW links per vector: higher is more exact and larger", low=1)  # noqa: N815 - the files' spelling


class MilvusSection(Section):
    """How Milvus is reached and searched, if index.kind is milvus."""

    uri: str | None = setting(
        None, "URL of a Milvus server or cluster, or path of a Milvus Lite file. Not set: a file in the library"
    )
    token: str = setting("", "Token, or user:password, that is sent to the server", secret=True)
    database: str = setting("", "Database on the server. Empty: its default")
    collection_name: str = setting("bunko", "Start of the names of collections; the id of the library follows")
    consistency_level: Literal["Strong", "Bounded", "Session", "Eventually"] = setting(
        "Bounded", "How current the answers of a cluster are; Strong waits for all writes"
    )
    candidates: int = setting(400, "Chunks that each arm takes from Milvus, to be ranked by bunko", low=50, high=10_000)
    timeout: float = setting(5.0, "Maximum time a search waits for the server, in seconds", low=0.1)
    write_timeout: float = setting(
        60.0, "Maximum time an import waits for the server to store a batch, in seconds", low=0.1
    )
    retries: int = setting(2, "Further attempts of a write while the server is busy or restarting", high=20)
