"""Choose the options of the index engines from the settings."""

from __future__ import annotations

import shlex
from pathlib import Path

from bunko.indexes.options import ChromaOptions, EngineOptions, MilvusOptions
from bunko.library.opening.paths import LibraryPaths, user_data_folder
from bunko.settings import Settings

_CHROMA_FOLDER, _MILVUS_FILE = "chroma", "milvus.db"


def index_folder(paths: LibraryPaths, settings: Settings) -> Path:
    """Return the folder of the index files of a library."""
    chosen_folder = settings.storage.bm25_persist_dir
    return Path(chosen_folder).expanduser() if chosen_folder else paths.index_folder


def engine_options(paths: LibraryPaths, settings: Settings, folder: Path | None) -> EngineOptions:
    """Return the options of all engines; `folder` is where the index may keep files, None for nowhere."""
    chroma, milvus = settings.chromadb, settings.milvus
    if folder is not None and paths.is_among_documents:
        # These engines read their files without checking them, and a folder of documents may come from somebody else.
        folder = user_data_folder() / "indexes" / paths.digest()[:16]
    chosen_folder = settings.storage.chromadb_persist_dir
    chroma_folder = Path(chosen_folder).expanduser().absolute() if chosen_folder else folder and folder / _CHROMA_FOLDER
    milvus_uri = milvus.uri or (str(folder / _MILVUS_FILE) if folder else "")
    if milvus_uri and "://" not in milvus_uri:
        milvus_uri = str(Path(milvus_uri).expanduser().absolute())
    return EngineOptions(
        ChromaOptions(
            folder=chroma_folder,
            url=chroma.url or "",
            token=chroma.token,
            tenant=chroma.tenant,
            database=chroma.database,
            timeout=chroma.timeout,
            write_timeout=chroma.write_timeout,
            collection_name=chroma.collection_name,
            space=chroma.hnsw_space,
            construction_ef=chroma.hnsw_construction_ef,
            search_ef=chroma.hnsw_search_ef,
            links=chroma.hnsw_M,
            library_flags=f" {shlex.join(paths.cli_arguments())}",
        ),
        MilvusOptions(
            uri=milvus_uri,
            token=milvus.token,
            database=milvus.database,
            collection_name=milvus.collection_name,
            consistency_level=milvus.consistency_level,
            candidates=milvus.candidates,
            timeout=milvus.timeout,
            write_timeout=milvus.write_timeout,
            retries=milvus.retries,
        ),
    )
