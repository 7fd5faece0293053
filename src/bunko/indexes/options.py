"""Hold the options of the engines that an index can use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ChromaOptions:
    """Where Chroma keeps vectors, and how it arranges them; without a URL, in files in `folder`."""

    folder: Path | None = None
    url: str = ""
    token: str = field(default="", repr=False)
    tenant: str = "default_tenant"
    database: str = "default_database"
    timeout: float = 5.0  # of a search, in seconds
    write_timeout: float = 60.0
    collection_name: str = "documents"
    space: str = "cosine"
    construction_ef: int = 200
    search_ef: int = 100
    links: int = 16  # of each vector in the graph
    library_flags: str = ""  # after a space, for the commands that messages name


@dataclass(frozen=True, slots=True)
class MilvusOptions:
    """Where Milvus runs, and how it is asked; `uri` is a URL or the path of a Milvus Lite file."""

    uri: str = ""
    token: str = field(default="", repr=False)
    database: str = ""
    collection_name: str = "bunko"
    consistency_level: str = "Bounded"
    candidates: int = 400  # of each arm
    timeout: float = 5.0  # of a search, in seconds
    write_timeout: float = 60.0
    retries: int = 2


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options of every engine, of which an index uses its own."""

    chroma: ChromaOptions = ChromaOptions()
    milvus: MilvusOptions = MilvusOptions()
