"""Declare every setting, by section; those of index engines and of web pages are in files of their own."""

# No `from __future__ import annotations` here: `SETTINGS` reads types and choices from the real annotations.
# Modes and fusions are spelled out, because importing `bunko.types` would add 7 ms to every start.
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from bunko.settings.ask import AskSection
from bunko.settings.chat import ChatSection
from bunko.settings.index_engines import ChromadbSection, IndexSection, MilvusSection
from bunko.settings.mcp import McpSection
from bunko.settings.setting import Section, Setting, setting
from bunko.settings.slack import SlackSection
from bunko.settings.web_pages import CrawlSection, SafetySection, WebSection


class LibrarySection(Section):
    """Where the library is."""

    path: str | None = setting(
        None, "Folder of the library. Not set: a folder in the user's data folder", "BUNKO_LIBRARY"
    )


class DatabaseSection(Section):
    """Use a single file as the library."""

    path: str | None = setting(None, "Path of the library file, instead of a library folder")


class StorageSection(Section):
    """What stores the library, and where derived files are stored."""

    kind: str = setting(
        "sqlite",
        "Store: sqlite for a file, postgres for a server that many machines share, or memory for a library that ends"
        " with its process, for tests and scripts. If only url is set: postgres",
    )
    url: str | None = setting(
        None, "PostgreSQL: postgresql://USER@HOST/DATABASE, without a password; ?sslmode=verify-full checks the host"
    )
    password: str = setting(
        "", "PostgreSQL: password. Not set: from ~/.pgpass, if the server asks for one", "PGPASSWORD", secret=True
    )
    schema: str = setting("bunko", "PostgreSQL: schema of the tables, so that several libraries can share a database")
    pool_size: int = setting(8, "PostgreSQL: maximum number of connections of a process", low=1, high=1000)
    bm25_persist_dir: str | None = setting(None, "Folder for index files. Not set: in the library", "BM25_PERSIST_DIR")
    chromadb_persist_dir: str | None = setting(
        None, "Folder for Chroma's files. Not set: in the library", "CHROMADB_PERSIST_DIR"
    )


class EmbeddingSection(Section):
    """Which embedder computes the vectors, and how."""

    provider: str = setting("static", "Embedder, or none for no vectors", "EMBEDDING_PROVIDER")
    batch_size: int = setting(100, "Maximum number of texts per request", low=1)
    parallel: int = setting(4, "Maximum number of concurrent requests", low=1, high=64)
    timeout: float = setting(60.0, "Timeout of a request, in seconds", low=0.1)
    query_timeout: float = setting(
        3.0, "Maximum time a search waits for the vector of its query, in seconds; then it searches by words", low=0.1
    )
    max_tokens: int | None = setting(
        None, "Maximum length of a text, in tokens. Not set: the limit of the model, if known", low=1
    )
    too_long: Literal["average", "cut"] = setting(
        "average", "How to embed a longer text: average the vectors of its parts, or cut it"
    )

    # The other settings of this section are declared by the providers of embeddings. They are attributes too: those
    # that are loaded are in `__dict__`, and the others have their default.
    def __init__(self, **values: Any) -> None:
        core_names = {attribute.name for attribute in fields(self)}
        super().__init__(**{name: value for name, value in values.items() if name in core_names})
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        from bunko.settings.providers import builtin_settings

        setting = None if name.startswith("_") else builtin_settings().get(f"embedding.{name}")
        if setting is None:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return setting.default

    def values(self) -> dict[str, Any]:
        """Return all settings of the section by name, with those of the built-in providers."""
        from bunko.settings.providers import builtin_settings

        provider_defaults = {setting.name: setting.default for setting in builtin_settings().values()}
        return {**provider_defaults, **vars(self)}


class IngestSection(Section):
    """Where imports run."""

    on: str = setting(
        "local", "Where bunko import and bunko reindex prepare documents: local, ray, ray:auto or ray://HOST:10001"
    )


class ChunkerSection(Section):
    """How documents are split into chunks by characters."""

    kind: Literal["auto", "headings", "paragraphs", "prose", "tables", "tokens"] = setting(
        "auto", "Chunker. auto chooses by content; tokens uses [chunking] and is the default if only [chunking] is set"
    )
    max_chunk_chars: int = setting(3000, "Maximum number of characters in a chunk split by headings", low=1)
    min_chunk_chars: int = setting(50, "Merge smaller chunks with a neighbour. At most max_chunk_chars")
    heading_levels: tuple[int, ...] = setting((1, 2, 3), "Heading levels that start a new chunk", low=1, high=6)
    chunk_size: int = setting(200, "Maximum number of characters in a chunk of prose", low=1)
    chunk_overlap: int = setting(30, "Overlap of neighbouring chunks of prose, in characters. Less than chunk_size")
    row_context_size: int = setting(1, "Rows of context on each side of a table row")


class ChunkingSection(Section):
    """How documents are split into chunks by tokens."""

    size: int = setting(1024, "Size of a chunk, in tokens", low=512, high=4096)
    overlap: int = setting(64, "Overlap of neighbouring chunks, in tokens. Less than size")


class SearchSection(Section):
    """How a search ranks and filters results."""

    mode: Literal["bm25", "semantic", "hybrid"] = setting(
        "hybrid", "Search by words (bm25), by vectors (semantic), or by both (hybrid)"
    )
    fusion: Literal["cc", "rrf"] = setting(
        "cc", "How hybrid fuses the rankings: convex combination or reciprocal rank fusion"
    )
    top_k: int = setting(5, "Number of results", low=1, high=1000, file_names=("default_top_k", "k"))
    vector_weight: float | None = setting(
        None,
        "Weight of the vector score in cc; words get the rest. Not set: chosen per query by how well words cover it",
        "RAG_VECTOR_WEIGHT",
        high=1,
    )
    k1: float = setting(1.2, "BM25 term frequency saturation", "RAG_BM25_K1")
    b: float = setting(0.75, "BM25 length normalization", "RAG_BM25_B", high=1)
    rrf_k: int = setting(60, "Rank constant of reciprocal rank fusion", low=1)
    similarity_threshold: float | None = setting(
        None, "Maximum cosine distance of a vector hit", "RAG_SIMILARITY_THRESHOLD", high=2
    )
    min_combined_score: float | None = setting(
        None,
        "Minimum combined score of a cc hit; one that contains every word of the query is kept, see keep_full_matches",
        "RAG_MIN_COMBINED_SCORE",
        high=1,
    )
    keep_full_matches: bool = setting(
        True, "Keep hits that contain every word of the query, even below min_combined_score. false: drop them too"
    )
    hybrid_enabled: bool | None = setting(
        None, "true: mode hybrid, false: mode semantic. Not set: use mode", "RAG_HYBRID_SEARCH_ENABLED"
    )
    loanwords: bool = setting(True, "Match loanwords across scripts: サーバー also finds server, and vice versa")
    bridge: bool = setting(True, "Match translations: 検証 also finds validation, and vice versa")
    reranker: str | None = setting(
        None,
        "Model that reads the first results again and puts them in order: one of bunko models, a folder, or"
        " PROVIDER:MODEL. Not set: none",
    )
    rerank_count: int = setting(30, "Number of first results that the reranker reads", low=1, high=1000)
    rerank_seconds: float = setting(
        3.0, "Maximum time a search waits for the reranker, in seconds; then the results keep their order", low=0.01
    )
    timezone: str | None = setting(
        None,
        "Time zone of since and until, and of dates without one, such as Asia/Tokyo. Not set: the system time zone",
    )
    freshness_seconds: float = setting(2.0, "Check the source for changes at most this often, in seconds")
    freshness_wait_seconds: float = setting(5.0, "Maximum time a search waits for an import, in seconds")


class MemosSection(Section):
    """How memos are searched."""

    top_k: int = setting(10, "Number of results of a memo search", low=1, high=1000)
    fusion: Literal["cc", "rrf"] = setting("cc", "How hybrid fuses the rankings if only memos are searched")
    k1: float = setting(1.5, "BM25 term frequency saturation for memos")
    b: float = setting(0.75, "BM25 length normalization for memos", high=1)
    max_file_bytes: int = setting(
        1_000_000_000,
        "Report and skip larger memo files, in bytes. A single entry is limited by scanner.max_file_bytes",
        low=1,
    )


class RewriteSection(Section):
    """How a chat model rewrites a query before the search."""

    enabled: bool = setting(False, "Rewrite the queries of bunko search and query_memos by default")
    model: str | None = setting(None, "Model to use. Not set: chat.model")
    max_tokens: int = setting(200, "Maximum length of the answer, in tokens", low=1)
    temperature: float | None = setting(0.0, "Sampling temperature. Not set: the default of the server", high=2)
    timeout: float = setting(5.0, "Maximum time a search waits for the model, in seconds", low=0.1)
    cache_seconds: float = setting(604_800.0, "Cache answers in the library this long, in seconds. 0: no cache")


class SummarizeSection(Section):
    """How results are summarized on request."""

    provider: Literal["rule", "llm"] = setting("rule", "Summarize with local rules (rule) or with the chat model (llm)")
    model: str | None = setting(None, "Model to use. Not set: chat.model")
    max_tokens: int = setting(500, "Maximum length of the summary, in tokens", low=1)
    temperature: float | None = setting(0.0, "Sampling temperature. Not set: the default of the server", high=2)
    timeout: float = setting(30.0, "Maximum time to wait for a summary, in seconds", low=0.1)
    max_input_chars: int = setting(12_000, "Maximum number of characters of the results to send", low=100)


class RetrySection(Section):
    """How failed requests to remote services are retried."""

    max_retries: int = setting(3, "Maximum number of retries of a failed request")
    base_delay: float = setting(1.0, "Delay before the first retry, in seconds")
    backoff_factor: float = setting(2.0, "Each further delay is this many times the last", low=1)


def _default_extensions() -> tuple[str, ...]:
    from bunko.readers import default_suffixes

    return default_suffixes()


class ScannerSection(Section):
    """Which files of a folder are imported."""

    file_extensions: tuple[str, ...] = setting((), "File extensions to import", derive=_default_extensions)
    source_code: bool = setting(False, "Import source code too; bunko[code] splits it at its definitions")
    exclude_dirs: tuple[str, ...] = setting(
        (".rag-index", "data", ".git", "__pycache__", "node_modules"), "Names of folders to skip"
    )
    respect_gitignore: bool = setting(True, "Skip files that .gitignore excludes")
    max_file_bytes: int = setting(20_000_000, "Report and skip larger files, in bytes", low=1)


class DisplaySection(Section):
    """How output is displayed."""

    default_format: Literal["table", "json"] = setting("table", "Output format of lists")
    language: Literal["ja", "en"] | None = setting(
        None, "Language of help, messages and errors. Not set: Japanese for the rag_ tools, English elsewhere"
    )


class ModelSection(Section):
    """When a loaded model is unloaded."""

    auto_unload_minutes: int = setting(10, "Unload a model that was not used this long, in minutes. 0: never")
    memory_threshold: float = setting(0.8, "Unload models if more than this share of memory is in use", high=1)


class ServeSection(Section):
    """How bunko serves assistants."""

    toolsets: tuple[str, ...] = setting(
        (), "Groups of tools to offer: folder, memos, tools, web, or all. Empty: folder with --docs-dir, else tools"
    )
    read_only: bool = setting(False, "Offer no tool that changes the library, and do not refresh it")
    max_result_tokens: int = setting(
        8000, "Maximum length of an answer to an assistant, in tokens", low=500, high=100_000
    )
    response_format: Literal["concise", "detailed"] = setting(
        "concise", "Fields of each result for assistants, unless they ask for others; detailed has paths and scores"
    )
    max_schema_tokens: int = setting(
        6000, "Combine the tools of a library into one if their schemas exceed this many tokens", low=500
    )
    mcp: bool = setting(True, "Serve MCP with --http")
    api: bool = setting(True, "Serve the HTTP API with --http")
    page: bool = setting(True, "Serve the page for browsers with --http")
    host: str = setting("127.0.0.1", "Host that --http listens on")
    port: int = setting(8765, "Port that --http listens on", high=65535)
    workers: int | None = setting(
        None, "Number of processes of --http, which keep no sessions. Not set: one that keeps them", low=1, high=64
    )
    token: str = setting(
        "",
        "Token that HTTP clients must send. Empty: generated and stored in a file",
        "BUNKO_TOKEN",
        secret=True,
    )
    allowed_hosts: tuple[str, ...] = setting((), "Further host names that --http accepts, besides the local ones")
    requests_per_second: float = setting(
        100.0, "Requests to the API and the page that each caller may send, ten times as many at once. 0: no limit"
    )
    audit_lines: int = setting(
        100_000, "How many changes the audit log keeps: who changed what, when and with what result", low=1
    )


class LogSection(Section):
    """What is logged."""

    debug: bool = setting(False, "Log every step with its time", "RAG_DEBUG_LOG_ENABLED")
    keep_searches: bool = setting(False, "Log queries in the library, for bunko judge")


@dataclass(frozen=True, eq=False)
class Settings:
    """All settings, by section."""

    library: LibrarySection = field(default_factory=LibrarySection)
    database: DatabaseSection = field(default_factory=DatabaseSection)
    storage: StorageSection = field(default_factory=StorageSection)
    index: IndexSection = field(default_factory=IndexSection)
    embedding: EmbeddingSection = field(default_factory=EmbeddingSection)
    ingest: IngestSection = field(default_factory=IngestSection)
    chunker: ChunkerSection = field(default_factory=ChunkerSection)
    chunking: ChunkingSection = field(default_factory=ChunkingSection)
    search: SearchSection = field(default_factory=SearchSection)
    memos: MemosSection = field(default_factory=MemosSection)
    chat: ChatSection = field(default_factory=ChatSection)
    mcp: McpSection = field(default_factory=McpSection)
    rewrite: RewriteSection = field(default_factory=RewriteSection)
    summarize: SummarizeSection = field(default_factory=SummarizeSection)
    ask: AskSection = field(default_factory=AskSection)
    web: WebSection = field(default_factory=WebSection)
    retry: RetrySection = field(default_factory=RetrySection)
    scanner: ScannerSection = field(default_factory=ScannerSection)
    chromadb: ChromadbSection = field(default_factory=ChromadbSection)
    milvus: MilvusSection = field(default_factory=MilvusSection)
    display: DisplaySection = field(default_factory=DisplaySection)
    model: ModelSection = field(default_factory=ModelSection)
    crawl: CrawlSection = field(default_factory=CrawlSection)
    safety: SafetySection = field(default_factory=SafetySection)
    serve: ServeSection = field(default_factory=ServeSection)
    slack: SlackSection = field(default_factory=SlackSection)
    log: LogSection = field(default_factory=LogSection)


SECTIONS: dict[str, Any] = {section.name: section.type for section in fields(Settings)}
# Without the settings that providers declare, see `bunko.settings.providers`.
CORE_SETTINGS: dict[str, Setting] = {
    f"{name}.{attribute.name}": Setting(name, attribute.name, attribute.type, attribute.default, attribute.metadata)
    for name, section in SECTIONS.items()
    for attribute in fields(section)
}
