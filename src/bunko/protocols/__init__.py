"""The protocols that providers implement: any class with these methods fits."""

from bunko.protocols.access import AuditStore, TokenStore
from bunko.protocols.changes import ChangeStore, IndexStatisticsStore
from bunko.protocols.index import ApproximateView, Index, IndexView
from bunko.protocols.outbox import DomainStore, OutboxStore
from bunko.protocols.parts import (
    Chunker,
    Embedder,
    EmbedderStats,
    Look,
    PortableSource,
    RemoteEmbedder,
    Reranker,
    Scan,
    SelfReadingSource,
    SentenceEmbedder,
    Source,
    VisibleSource,
    WatchableSource,
)
from bunko.protocols.rows import Digest, MovingRows, RowPage
from bunko.protocols.store import (
    CacheStore,
    DocumentStore,
    ScanStore,
    StatsStore,
    Store,
    StoreFiles,
    ToolStore,
    VectorStore,
    WebPageStore,
    WriterLock,
)

__all__ = [
    "ApproximateView",
    "AuditStore",
    "CacheStore",
    "ChangeStore",
    "Chunker",
    "Digest",
    "DocumentStore",
    "DomainStore",
    "Embedder",
    "EmbedderStats",
    "Index",
    "IndexStatisticsStore",
    "IndexView",
    "Look",
    "MovingRows",
    "OutboxStore",
    "PortableSource",
    "RemoteEmbedder",
    "Reranker",
    "RowPage",
    "Scan",
    "ScanStore",
    "SelfReadingSource",
    "SentenceEmbedder",
    "Source",
    "StatsStore",
    "Store",
    "StoreFiles",
    "TokenStore",
    "ToolStore",
    "VectorStore",
    "VisibleSource",
    "WatchableSource",
    "WebPageStore",
    "WriterLock",
]
