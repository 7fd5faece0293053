"""Declares every setting once, with type, default, limits and names; gives `Settings` and `SETTINGS`."""

# No `from __future__ import annotations` here: `SETTINGS` reads kinds and choices from the real types.
# Modes and fusions are spelled out, because importing `bunko.types` would add 7 ms to every start.
from dataclasses import FrozenInstanceError, dataclass, field, fields
from typing import Any, Literal, TypeVar, dataclass_transform, get_args

_T = TypeVar("_T")

# SQLite's largest integer. It also turns away infinity, NaN and numbers too long to print.
MAX_NUMBER = 2**63 - 1


def _setting(
    default: _T,
    meaning: str,
    env: str = "",
    *,
    low: float = 0,
    high: float = MAX_NUMBER,
    file_names: tuple[str, ...] = (),
    secret: bool = False,
) -> _T:
    about = {
        "meaning": meaning,
        "env": env,
        "low": low,
        "high": high,
        "file_names": file_names,
        "secret": secret,
    }
    return field(default=default, repr=not secret, metadata=about)


@dataclass_transform(frozen_default=True, eq_default=False, kw_only_default=True)
class _Section:
    """A frozen dataclass; its methods are shared because generating them 17 times costs every start 7 ms."""

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: Any) -> None:
        known: dict[str, Any] = {leaf.name: leaf.default for leaf in fields(self)}  # type: ignore[arg-type]
        if unknown := values.keys() - known.keys():
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}")
        self.__dict__.update(known | values)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to {name}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete {name}")

    def __repr__(self) -> str:
        shown = [f"{leaf.name}={getattr(self, leaf.name)!r}" for leaf in fields(self) if leaf.repr]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


class LibrarySection(_Section):
    """Where the library is."""

    path: str | None = _setting(None, "Folder of the library; not set: the user's data folder", "BUNKO_LIBRARY")


class DatabaseSection(_Section):
    """Where the library's one file is, if not in the library."""

    path: str | None = _setting(None, "The library as a single file instead of a folder")


class StorageSection(_Section):
    """Where files lie that can be made again."""

    bm25_persist_dir: str | None = _setting(
        None, "Folder of the derived search files; not set: in the library", "BM25_PERSIST_DIR"
    )
    chromadb_persist_dir: str | None = _setting(
        None, "Folder of Chroma's files; not set: in the library", "CHROMADB_PERSIST_DIR"
    )


class EmbeddingSection(_Section):
    """Who makes the vectors, and how."""

    provider: str = _setting(
        "static",
        "Who makes vectors: static, hashing, gemini, openai, lmstudio (or local), ollama, openrouter, transformers;"
        " online: openai; plamo: transformers with that model; none: no vectors",
        "EMBEDDING_PROVIDER",
    )
    model: str = _setting("gemini-embedding-001", "Gemini's model")
    output_dimensionality: int = _setting(768, "Numbers in one Gemini vector", low=1)
    batch_size: int = _setting(100, "Most texts in one request", low=1)
    task_type_document: str = _setting("RETRIEVAL_DOCUMENT", "Gemini's task type for documents")
    task_type_query: str = _setting("RETRIEVAL_QUERY", "Gemini's task type for queries")
    model_local: str = _setting("nomic-embed-text", "Model of lmstudio, or local", "EMBEDDING_MODEL_LOCAL")
    model_online: str = _setting("text-embedding-3-small", "Model of openai, or online", "EMBEDDING_MODEL_ONLINE")
    model_openrouter: str = _setting("mixedbread-ai/mxbai-embed-large-v1", "Model of openrouter")
    model_ollama: str = _setting("nomic-embed-text", "Model of ollama")
    model_transformers: str = _setting(
        "pfnet/plamo-embedding-1b", "Model of transformers: its name on the hub, or its folder"
    )
    trust_remote_code: bool = _setting(False, "Let a model of transformers run program code that it brings")
    device: Literal["auto", "cpu", "cuda", "mps"] = _setting("auto", "Where a model of transformers runs")
    device_batch_size: int | None = _setting(
        None, "Texts that it embeds at once; not set: 64 on cuda, 16 on cpu, 1 on mps", low=1
    )
    dimensions: int | None = _setting(
        None, "Numbers to ask an OpenAI-compatible server for; not set: as many as its model gives", low=1
    )
    prefix_enabled: bool | None = _setting(
        None,
        "Put search_document: and search_query: before texts; not set: if the model wants it",
        "EMBEDDING_PREFIX_ENABLED",
    )
    lmstudio_base_url: str = _setting("http://localhost:1234/v1", "Address of LM Studio", "LMSTUDIO_BASE_URL")
    openai_base_url: str = _setting(
        "https://api.openai.com/v1", "Address of OpenAI, or of a server that speaks as it does", "OPENAI_BASE_URL"
    )
    openrouter_base_url: str = _setting("https://openrouter.ai/api/v1", "Address of OpenRouter", "OPENROUTER_BASE_URL")
    ollama_base_url: str = _setting("http://localhost:11434/v1", "Address of Ollama", "OLLAMA_BASE_URL")
    gemini_base_url: str = _setting("https://generativelanguage.googleapis.com", "Address of Gemini", "GEMINI_BASE_URL")
    openai_api_key: str = _setting("", "Key for OpenAI", "OPENAI_API_KEY", secret=True)
    openrouter_api_key: str = _setting("", "Key for OpenRouter", "OPENROUTER_API_KEY", secret=True)
    gemini_api_key: str = _setting("", "Key for Gemini", "GEMINI_API_KEY GOOGLE_API_KEY", secret=True)
    parallel: int = _setting(4, "Most requests in flight at once", low=1, high=64)
    timeout: float = _setting(60.0, "Longest wait for one answer, in seconds", low=0.1)
    max_tokens: int | None = _setting(
        None, "Longest text of a model, in tokens; not set: as far as that is known", low=1
    )
    too_long: Literal["average", "cut"] = _setting(
        "average", "A longer text: the average of its parts, or its beginning alone"
    )


class ChunkerSection(_Section):
    """How documents are cut by characters."""

    kind: Literal["auto", "headings", "paragraphs", "prose", "tables", "tokens"] = _setting(
        "auto", "How to cut; auto looks at the content; tokens, also where only [chunking] is set, cuts by it"
    )
    max_chunk_chars: int = _setting(3000, "Most characters in a chunk cut by headings", low=1)
    min_chunk_chars: int = _setting(50, "A smaller piece is joined to its neighbour; at most max_chunk_chars")
    heading_levels: tuple[int, ...] = _setting((1, 2, 3), "Heading levels that begin a chunk", low=1, high=6)
    chunk_size: int = _setting(200, "Most characters in a chunk of prose", "RAG_CHUNK_SIZE", low=1)
    chunk_overlap: int = _setting(
        30, "Characters that neighbouring chunks of prose share; less than chunk_size", "RAG_CHUNK_OVERLAP"
    )
    row_context_size: int = _setting(1, "Neighbouring rows on each side of a table row")


class ChunkingSection(_Section):
    """How documents are cut by tokens."""

    size: int = _setting(1024, "Tokens in a chunk", low=512, high=4096)
    overlap: int = _setting(64, "Tokens that neighbouring chunks share; less than size")


class SearchSection(_Section):
    """How a search ranks and what it leaves out."""

    mode: Literal["bm25", "semantic", "hybrid"] = _setting("hybrid", "By words, by vectors, or by both")
    fusion: Literal["cc", "rrf"] = _setting("cc", "How hybrid joins the two: convex combination or reciprocal ranks")
    top_k: int = _setting(5, "Results of a search", low=1, high=1000, file_names=("default_top_k", "k"))
    vector_weight: float | None = _setting(
        None,
        "Weight of the vectors in cc, the words get the rest; not set: for each query, from how well words cover it",
        "RAG_VECTOR_WEIGHT",
        high=1,
    )
    k1: float = _setting(1.2, "BM25: how soon a repeated word stops counting", "RAG_BM25_K1")
    b: float = _setting(0.75, "BM25: how much a long chunk is held back", "RAG_BM25_B", high=1)
    rrf_k: int = _setting(60, "Reciprocal ranks: what is added to a rank", low=1)
    similarity_threshold: float | None = _setting(
        None, "Largest cosine distance of a vector hit", "RAG_SIMILARITY_THRESHOLD", high=2
    )
    min_combined_score: float | None = _setting(
        None, "Smallest combined score of a cc hit", "RAG_MIN_COMBINED_SCORE", high=1
    )
    hybrid_enabled: bool | None = _setting(
        None, "false: mode semantic, true: mode hybrid; not set: as mode says", "RAG_HYBRID_SEARCH_ENABLED"
    )
    loanwords: bool = _setting(True, "サーバー also finds server, and the other way round")
    bridge: bool = _setting(True, "検証 also finds validation, and the other way round")
    timezone: str | None = _setting(
        None,
        "Time zone of since and until, and of dates that name none, such as Asia/Tokyo; not set: the system's",
    )
    freshness_seconds: float = _setting(2.0, "A look at the source is fresh this long, in seconds")
    freshness_wait_seconds: float = _setting(5.0, "Longest that a search waits for an import, in seconds")


class MemosSection(_Section):
    """How memos are searched."""

    top_k: int = _setting(10, "Results of a search over memos", low=1, high=1000)
    fusion: Literal["cc", "rrf"] = _setting("cc", "How hybrid joins words and vectors where only memos are searched")
    k1: float = _setting(1.5, "BM25 over memos: how soon a repeated word stops counting")
    b: float = _setting(0.75, "BM25 over memos: how much a long one is held back", high=1)
    max_file_bytes: int = _setting(
        1_000_000_000,
        "A larger file of entries is reported and passed over; of one entry, scanner.max_file_bytes is the limit",
        low=1,
    )


class ChatSection(_Section):
    """Which chat model is asked, where a search wants one."""

    provider: Literal["openrouter", "openai", "lmstudio", "ollama"] | None = _setting(
        None, "Who is asked to rewrite queries and to write summaries; not set: nobody, and nothing is sent"
    )
    model: str | None = _setting(None, "Its model; not set: gpt-4o-mini at openrouter and openai")
    base_url: str | None = _setting(
        None, "Address of a server that speaks as OpenAI does; not set: the provider's, as in [embedding]"
    )
    api_key: str = _setting(
        "", "Key for it; not set: the provider's, as in [embedding], but never with a base_url", secret=True
    )
    provider_order: tuple[str, ...] = _setting((), "OpenRouter: the providers to try, in this order")
    provider_sort: Literal["price", "throughput", "latency"] | None = _setting(
        None, "OpenRouter: which providers to prefer"
    )
    allow_fallbacks: bool | None = _setting(None, "OpenRouter: other providers too, where those do not answer")
    data_collection: Literal["allow", "deny"] | None = _setting(
        None, "OpenRouter: deny: no provider that keeps what it is sent"
    )


class RewriteSection(_Section):
    """How a chat model puts a query in better words before it is searched."""

    enabled: bool = _setting(False, "Rewrite the queries of bunko search and query_memos, unless one says otherwise")
    model: str | None = _setting(None, "Model for this; not set: as chat.model")
    max_tokens: int = _setting(200, "Longest answer, in tokens", low=1)
    temperature: float | None = _setting(0.0, "How freely it answers; not set: as its server says", high=2)
    timeout: float = _setting(5.0, "Longest that a search waits for it, in seconds", low=0.1)
    cache_seconds: float = _setting(604_800.0, "An answer is kept in the library this long, in seconds; 0: not at all")


class SummarizeSection(_Section):
    """How results are summed up, where that is asked for."""

    provider: Literal["rule", "llm"] = _setting("rule", "By rules on this machine, or by the chat model")
    model: str | None = _setting(None, "Model for this; not set: as chat.model")
    max_tokens: int = _setting(500, "Longest summary, in tokens", low=1)
    temperature: float | None = _setting(0.0, "How freely it is written; not set: as its server says", high=2)
    timeout: float = _setting(30.0, "Longest wait for a summary, in seconds", low=0.1)
    max_input_chars: int = _setting(12_000, "Most characters of the results that are sent", low=100)


class WebSection(_Section):
    """How web pages are searched."""

    top_k: int = _setting(3, "Results of a search over web pages", "RAG_RETRIEVAL_COUNT", low=1, high=1000)
    chunk_size: int | None = _setting(
        None,
        "Most characters in a chunk of a web page; not set: as chunker.chunk_size if that is set, else 800, or 200"
        " where embedding.provider is local or online",
        low=1,
    )
    chunk_overlap: int | None = _setting(
        None,
        "Characters that chunks of a long text share; not set: as chunker.chunk_overlap if that is set, else 0, or 30"
        " with local or online",
    )
    vector_weight: float | None = _setting(
        None,
        "As in [search], for web pages; not set: as there if it is set there, else 0.9 where embedding.provider is"
        " local or online; so too the next three",
        high=1,
    )
    k1: float | None = _setting(None, "BM25 over web pages; 2.5 with local or online")
    b: float | None = _setting(None, "BM25 over web pages; 0.5 with local or online", high=1)
    min_combined_score: float | None = _setting(
        None, "Smallest combined score of a web page; 0.75 with local or online", high=1
    )


class RetrySection(_Section):
    """How often a remote service is asked again."""

    max_retries: int = _setting(3, "Times a failed request is tried again")
    base_delay: float = _setting(1.0, "Wait before the first retry, in seconds")
    backoff_factor: float = _setting(2.0, "Each further wait is this many times the last", low=1)


class ScannerSection(_Section):
    """Which files of a folder are read."""

    file_extensions: tuple[str, ...] = _setting((".md", ".txt"), "Endings of the files to read")
    exclude_dirs: tuple[str, ...] = _setting(
        (".rag-index", "data", ".git", "__pycache__", "node_modules"), "Names of folders to pass over"
    )
    respect_gitignore: bool = _setting(True, "Pass over what .gitignore names")
    max_file_bytes: int = _setting(20_000_000, "A larger file is reported and passed over", low=1)


class ChromadbSection(_Section):
    """How Chroma keeps vectors, where it is the store."""

    collection_name: str = _setting("documents", "Name of the collection")
    hnsw_space: Literal["cosine", "l2", "ip"] = _setting("cosine", "Distance between vectors")
    hnsw_construction_ef: int = _setting(200, "Width of the search while building: exact against quick", low=1)
    hnsw_search_ef: int = _setting(100, "Width of the search while searching: exact against quick", low=1)
    hnsw_M: int = _setting(16, "Links of a vector: exact against small", low=1)  # noqa: N815 - the files' spelling


class DisplaySection(_Section):
    """How results look on a terminal."""

    default_format: Literal["table", "json"] = _setting("table", "How lists are printed")
    language: Literal["ja", "en"] | None = _setting(
        None, "Language of messages; not set: Japanese for the rag_ tools, English elsewhere"
    )


class ModelSection(_Section):
    """When a loaded model is let go."""

    auto_unload_minutes: int = _setting(10, "Unload a model that was not used this long, in minutes; 0: never")
    memory_threshold: float = _setting(0.8, "Unload when more than this share of memory is in use", high=1)


class CrawlSection(_Section):
    """How web pages are fetched."""

    max_pages: int = _setting(50, "Most pages of one crawl", "RAG_MAX_CRAWL_PAGES", low=1)
    delay_sec: float = _setting(1.0, "Wait between two pages, in seconds", "RAG_CRAWL_DELAY_SEC")
    respect_robots_txt: bool = _setting(True, "Obey robots.txt", "RAG_RESPECT_ROBOTS_TXT")
    robots_txt_cache_ttl: int = _setting(
        3600, "robots.txt is remembered this long, in seconds", "RAG_ROBOTS_TXT_CACHE_TTL"
    )
    concurrency: int = _setting(4, "Most pages asked for at once", low=1, high=32)
    timeout_seconds: float = _setting(30.0, "Longest wait for one page, in seconds", low=0.1)
    max_bytes: int = _setting(10_485_760, "A larger page is reported and passed over", low=1)
    follow_redirects: int = _setting(
        0, "Redirects of one page that are followed, each checked as the page itself", high=10
    )
    user_agent: str = _setting("BunkoBot", "What sites are told who asks, and what robots.txt may name")
    allowed_hosts: tuple[str, ...] = _setting(
        (), "Hosts of your own network that may be read: intra.example, 10.0.0.5:8080, *.intra.example"
    )


class SafetySection(_Section):
    """How web addresses are checked before they are fetched."""

    url_check: bool = _setting(False, "Ask Google Safe Browsing about addresses", "RAG_URL_SAFETY_CHECK")
    google_safe_browsing_api_key: str = _setting(
        "", "Key for Google Safe Browsing", "GOOGLE_SAFE_BROWSING_API_KEY", secret=True
    )
    base_url: str = _setting("https://safebrowsing.googleapis.com", "Address of Google Safe Browsing")
    cache_ttl: int = _setting(300, "An answer is remembered this long, in seconds", "RAG_URL_SAFETY_CACHE_TTL")
    fail_open: bool = _setting(True, "Fetch when the check itself fails", "RAG_URL_SAFETY_FAIL_OPEN")
    timeout: float = _setting(5.0, "Longest wait for an answer, in seconds", "RAG_URL_SAFETY_TIMEOUT", low=0.1)


class ServeSection(_Section):
    """How assistants are served."""

    max_result_tokens: int = _setting(8000, "Longest answer to an assistant, in tokens", low=500, high=100_000)
    max_schema_tokens: int = _setting(6000, "With more tokens of schemas, a library's tools fold into one", low=500)
    host: str = _setting("127.0.0.1", "Where --http listens")
    port: int = _setting(8765, "Where --http listens", high=65535)
    token: str = _setting("", "What HTTP clients must show; empty: kept in a file", "BUNKO_TOKEN", secret=True)
    allowed_hosts: tuple[str, ...] = _setting((), "Names under which --http may be reached beside this machine's own")


class LogSection(_Section):
    """What is logged."""

    debug: bool = _setting(False, "Log every step with its time", "RAG_DEBUG_LOG_ENABLED")
    keep_searches: bool = _setting(False, "Remember queries in the library, for bunko judge")


@dataclass(frozen=True, eq=False)
class Settings:
    """All settings, by section."""

    library: LibrarySection = field(default_factory=LibrarySection)
    database: DatabaseSection = field(default_factory=DatabaseSection)
    storage: StorageSection = field(default_factory=StorageSection)
    embedding: EmbeddingSection = field(default_factory=EmbeddingSection)
    chunker: ChunkerSection = field(default_factory=ChunkerSection)
    chunking: ChunkingSection = field(default_factory=ChunkingSection)
    search: SearchSection = field(default_factory=SearchSection)
    memos: MemosSection = field(default_factory=MemosSection)
    chat: ChatSection = field(default_factory=ChatSection)
    rewrite: RewriteSection = field(default_factory=RewriteSection)
    summarize: SummarizeSection = field(default_factory=SummarizeSection)
    web: WebSection = field(default_factory=WebSection)
    retry: RetrySection = field(default_factory=RetrySection)
    scanner: ScannerSection = field(default_factory=ScannerSection)
    chromadb: ChromadbSection = field(default_factory=ChromadbSection)
    display: DisplaySection = field(default_factory=DisplaySection)
    model: ModelSection = field(default_factory=ModelSection)
    crawl: CrawlSection = field(default_factory=CrawlSection)
    safety: SafetySection = field(default_factory=SafetySection)
    serve: ServeSection = field(default_factory=ServeSection)
    log: LogSection = field(default_factory=LogSection)


class Setting:
    """One setting: what it may be, what it is called, what it means."""

    def __init__(self, section: str, name: str, annotation: Any, default: object, metadata: Any) -> None:
        self.key = f"{section}.{name}"
        self.default = default
        self.meaning: str = metadata["meaning"]
        self.low: float = metadata["low"]
        self.high: float = metadata["high"]
        self.secret: bool = metadata["secret"]
        self.file_names: tuple[str, ...] = metadata["file_names"]
        own_name = f"BUNKO_{section}_{name}".upper()
        self.env_names: tuple[str, ...] = (own_name, *metadata["env"].split())
        inner = get_args(annotation)
        self.optional = type(None) in inner
        if self.optional:
            annotation = inner[0]
            inner = get_args(annotation)
        self.is_list = Ellipsis in inner
        self.choices: tuple[str, ...] = () if self.is_list else inner
        self.kind: type = inner[0] if self.is_list else str if inner else annotation

    def allowed_values(self) -> str:
        """Say what the value may be."""
        if self.choices:
            words = f"one of {', '.join(self.choices)}"
        elif self.kind in (int, float):
            noun = "whole number" if self.kind is int else "number"
            words = f"a list of {noun}s" if self.is_list else f"a {noun}"
            words += f" of at least {self.low}" if self.high == MAX_NUMBER else f" from {self.low} to {self.high}"
        elif self.kind is bool:
            words = "true or false"
        else:
            words = "a list of texts" if self.is_list else "text"
        return f"{words}, or nothing" if self.optional else words

    def display_value(self, value: object) -> str:
        """Write a value for people; a secret is only said to be set or not."""
        if value is None or value == "":
            return "not set"
        if self.secret:
            return "********"
        if isinstance(value, bool):
            return str(value).lower()
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


SECTIONS: dict[str, Any] = {section.name: section.type for section in fields(Settings)}
SETTINGS: dict[str, Setting] = {
    setting.key: setting
    for name, section in SECTIONS.items()
    for leaf in fields(section)
    for setting in [Setting(name, leaf.name, leaf.type, leaf.default, leaf.metadata)]
}
