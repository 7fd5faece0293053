"""Declares every setting once, with type, default, limits and names; gives `Settings` and `SETTINGS`."""

# No `from __future__ import annotations` here: `SETTINGS` reads kinds and choices from the real types.
# Modes and fusions are spelled out, because importing `bunko.types` would add 7 ms to every start.
from dataclasses import FrozenInstanceError, dataclass, field, fields
from typing import Any, Literal, TypeVar, dataclass_transform, get_args

_T = TypeVar("_T")

# SQLite's largest integer. It also turns away infinity, NaN and numbers too long to print.
MOST = 2**63 - 1


def _is(
    default: _T,
    meaning: str,
    env: str = "",
    *,
    low: float = 0,
    high: float = MOST,
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


class Library(_Section):
    """Where the library is."""

    path: str | None = _is(None, "Folder of the library; not set: the user's data folder", "BUNKO_LIBRARY")


class Database(_Section):
    """Where the library's one file is, if not in the library."""

    path: str | None = _is(None, "The library as a single file instead of a folder")


class Storage(_Section):
    """Where files lie that can be made again."""

    bm25_persist_dir: str | None = _is(
        None, "Folder of the derived search files; not set: in the library", "BM25_PERSIST_DIR"
    )
    chromadb_persist_dir: str | None = _is(
        None, "Folder of Chroma's files; not set: in the library", "CHROMADB_PERSIST_DIR"
    )


class Embedding(_Section):
    """Who makes the vectors, and how."""

    provider: str = _is(
        "static",
        "Who makes vectors: static, hashing, gemini, openai, lmstudio (or local), ollama, openrouter, transformers;"
        " online: openai; plamo: transformers with that model; none: no vectors",
        "EMBEDDING_PROVIDER",
    )
    model: str = _is("gemini-embedding-001", "Gemini's model")
    output_dimensionality: int = _is(768, "Numbers in one Gemini vector", low=1)
    batch_size: int = _is(100, "Most texts in one request", low=1)
    task_type_document: str = _is("RETRIEVAL_DOCUMENT", "Gemini's task type for documents")
    task_type_query: str = _is("RETRIEVAL_QUERY", "Gemini's task type for queries")
    model_local: str = _is("nomic-embed-text", "Model of lmstudio, or local", "EMBEDDING_MODEL_LOCAL")
    model_online: str = _is("text-embedding-3-small", "Model of openai, or online", "EMBEDDING_MODEL_ONLINE")
    model_openrouter: str = _is("mixedbread-ai/mxbai-embed-large-v1", "Model of openrouter")
    model_ollama: str = _is("nomic-embed-text", "Model of ollama")
    model_transformers: str = _is(
        "pfnet/plamo-embedding-1b", "Model of transformers: its name on the hub, or its folder"
    )
    trust_remote_code: bool = _is(False, "Let a model of transformers run program code that it brings")
    device: Literal["auto", "cpu", "cuda", "mps"] = _is("auto", "Where a model of transformers runs")
    device_batch_size: int | None = _is(
        None, "Texts that it embeds at once; not set: 64 on cuda, 16 on cpu, 1 on mps", low=1
    )
    dimensions: int | None = _is(
        None, "Numbers to ask an OpenAI-compatible server for; not set: as many as its model gives", low=1
    )
    prefix_enabled: bool | None = _is(
        None,
        "Put search_document: and search_query: before texts; not set: if the model wants it",
        "EMBEDDING_PREFIX_ENABLED",
    )
    lmstudio_base_url: str = _is("http://localhost:1234/v1", "Address of LM Studio", "LMSTUDIO_BASE_URL")
    openai_base_url: str = _is(
        "https://api.openai.com/v1", "Address of OpenAI, or of a server that speaks as it does", "OPENAI_BASE_URL"
    )
    openrouter_base_url: str = _is("https://openrouter.ai/api/v1", "Address of OpenRouter", "OPENROUTER_BASE_URL")
    ollama_base_url: str = _is("http://localhost:11434/v1", "Address of Ollama", "OLLAMA_BASE_URL")
    gemini_base_url: str = _is("https://generativelanguage.googleapis.com", "Address of Gemini", "GEMINI_BASE_URL")
    openai_api_key: str = _is("", "Key for OpenAI", "OPENAI_API_KEY", secret=True)
    openrouter_api_key: str = _is("", "Key for OpenRouter", "OPENROUTER_API_KEY", secret=True)
    gemini_api_key: str = _is("", "Key for Gemini", "GEMINI_API_KEY GOOGLE_API_KEY", secret=True)
    parallel: int = _is(4, "Most requests in flight at once", low=1, high=64)
    timeout: float = _is(60.0, "Longest wait for one answer, in seconds", low=0.1)
    max_tokens: int | None = _is(None, "Longest text of a model, in tokens; not set: as far as that is known", low=1)
    too_long: Literal["average", "cut"] = _is(
        "average", "A longer text: the average of its parts, or its beginning alone"
    )


class Chunker(_Section):
    """How documents are cut by characters."""

    kind: Literal["auto", "headings", "paragraphs", "prose", "tables", "tokens"] = _is(
        "auto", "How to cut; auto looks at the content; tokens, also where only [chunking] is set, cuts by it"
    )
    max_chunk_chars: int = _is(3000, "Most characters in a chunk cut by headings", low=1)
    min_chunk_chars: int = _is(50, "A smaller piece is joined to its neighbour; at most max_chunk_chars")
    heading_levels: tuple[int, ...] = _is((1, 2, 3), "Heading levels that begin a chunk", low=1, high=6)
    chunk_size: int = _is(200, "Most characters in a chunk of prose", "RAG_CHUNK_SIZE", low=1)
    chunk_overlap: int = _is(
        30, "Characters that neighbouring chunks of prose share; less than chunk_size", "RAG_CHUNK_OVERLAP"
    )
    row_context_size: int = _is(1, "Neighbouring rows on each side of a table row")


class Chunking(_Section):
    """How documents are cut by tokens."""

    size: int = _is(1024, "Tokens in a chunk", low=512, high=4096)
    overlap: int = _is(64, "Tokens that neighbouring chunks share; less than size")


class Search(_Section):
    """How a search ranks and what it leaves out."""

    mode: Literal["bm25", "semantic", "hybrid"] = _is("hybrid", "By words, by vectors, or by both")
    fusion: Literal["cc", "rrf"] = _is("cc", "How hybrid joins the two: convex combination or reciprocal ranks")
    top_k: int = _is(5, "Results of a search", low=1, high=1000, file_names=("default_top_k", "k"))
    vector_weight: float | None = _is(
        None,
        "Weight of the vectors in cc, the words get the rest; not set: for each query, from how well words cover it",
        "RAG_VECTOR_WEIGHT",
        high=1,
    )
    k1: float = _is(1.2, "BM25: how soon a repeated word stops counting", "RAG_BM25_K1")
    b: float = _is(0.75, "BM25: how much a long chunk is held back", "RAG_BM25_B", high=1)
    rrf_k: int = _is(60, "Reciprocal ranks: what is added to a rank", low=1)
    similarity_threshold: float | None = _is(
        None, "Largest cosine distance of a vector hit", "RAG_SIMILARITY_THRESHOLD", high=2
    )
    min_combined_score: float | None = _is(
        None, "Smallest combined score of a cc hit", "RAG_MIN_COMBINED_SCORE", high=1
    )
    hybrid_enabled: bool | None = _is(
        None, "false: mode semantic, true: mode hybrid; not set: as mode says", "RAG_HYBRID_SEARCH_ENABLED"
    )
    loanwords: bool = _is(True, "サーバー also finds server, and the other way round")
    bridge: bool = _is(True, "検証 also finds validation, and the other way round")
    timezone: str | None = _is(
        None,
        "Time zone of since and until, and of dates that name none, such as Asia/Tokyo; not set: the system's",
    )
    freshness_seconds: float = _is(2.0, "A look at the source is fresh this long, in seconds")
    freshness_wait_seconds: float = _is(5.0, "Longest that a search waits for an import, in seconds")


class Memos(_Section):
    """How memos are searched."""

    top_k: int = _is(10, "Results of a search over memos", low=1, high=1000)
    fusion: Literal["cc", "rrf"] = _is("cc", "How hybrid joins words and vectors where only memos are searched")
    k1: float = _is(1.5, "BM25 over memos: how soon a repeated word stops counting")
    b: float = _is(0.75, "BM25 over memos: how much a long one is held back", high=1)
    max_file_bytes: int = _is(
        1_000_000_000,
        "A larger file of entries is reported and passed over; of one entry, scanner.max_file_bytes is the limit",
        low=1,
    )


class Chat(_Section):
    """Which chat model is asked, where a search wants one."""

    provider: Literal["openrouter", "openai", "lmstudio", "ollama"] | None = _is(
        None, "Who is asked to rewrite queries and to write summaries; not set: nobody, and nothing is sent"
    )
    model: str | None = _is(None, "Its model; not set: gpt-4o-mini at openrouter and openai")
    base_url: str | None = _is(
        None, "Address of a server that speaks as OpenAI does; not set: the provider's, as in [embedding]"
    )
    api_key: str = _is(
        "", "Key for it; not set: the provider's, as in [embedding], but never with a base_url", secret=True
    )
    provider_order: tuple[str, ...] = _is((), "OpenRouter: the providers to try, in this order")
    provider_sort: Literal["price", "throughput", "latency"] | None = _is(None, "OpenRouter: which providers to prefer")
    allow_fallbacks: bool | None = _is(None, "OpenRouter: other providers too, where those do not answer")
    data_collection: Literal["allow", "deny"] | None = _is(
        None, "OpenRouter: deny: no provider that keeps what it is sent"
    )


class Rewrite(_Section):
    """How a chat model puts a query in better words before it is searched."""

    enabled: bool = _is(False, "Rewrite the queries of bunko search and query_memos, unless one says otherwise")
    model: str | None = _is(None, "Model for this; not set: as chat.model")
    max_tokens: int = _is(200, "Longest answer, in tokens", low=1)
    temperature: float | None = _is(0.0, "How freely it answers; not set: as its server says", high=2)
    timeout: float = _is(5.0, "Longest that a search waits for it, in seconds", low=0.1)
    cache_seconds: float = _is(604_800.0, "An answer is kept in the library this long, in seconds; 0: not at all")


class Summarize(_Section):
    """How results are summed up, where that is asked for."""

    provider: Literal["rule", "llm"] = _is("rule", "By rules on this machine, or by the chat model")
    model: str | None = _is(None, "Model for this; not set: as chat.model")
    max_tokens: int = _is(500, "Longest summary, in tokens", low=1)
    temperature: float | None = _is(0.0, "How freely it is written; not set: as its server says", high=2)
    timeout: float = _is(30.0, "Longest wait for a summary, in seconds", low=0.1)
    max_input_chars: int = _is(12_000, "Most characters of the results that are sent", low=100)


class Web(_Section):
    """How web pages are searched."""

    top_k: int = _is(3, "Results of a search over web pages", "RAG_RETRIEVAL_COUNT", low=1, high=1000)
    chunk_size: int | None = _is(
        None,
        "Most characters in a chunk of a web page; not set: as chunker.chunk_size if that is set, else 800, or 200"
        " where embedding.provider is local or online",
        low=1,
    )
    chunk_overlap: int | None = _is(
        None,
        "Characters that chunks of a long text share; not set: as chunker.chunk_overlap if that is set, else 0, or 30"
        " with local or online",
    )
    vector_weight: float | None = _is(
        None,
        "As in [search], for web pages; not set: as there if it is set there, else 0.9 where embedding.provider is"
        " local or online; so too the next three",
        high=1,
    )
    k1: float | None = _is(None, "BM25 over web pages; 2.5 with local or online")
    b: float | None = _is(None, "BM25 over web pages; 0.5 with local or online", high=1)
    min_combined_score: float | None = _is(
        None, "Smallest combined score of a web page; 0.75 with local or online", high=1
    )


class Retry(_Section):
    """How often a remote service is asked again."""

    max_retries: int = _is(3, "Times a failed request is tried again")
    base_delay: float = _is(1.0, "Wait before the first retry, in seconds")
    backoff_factor: float = _is(2.0, "Each further wait is this many times the last", low=1)


class Scanner(_Section):
    """Which files of a folder are read."""

    file_extensions: tuple[str, ...] = _is((".md", ".txt"), "Endings of the files to read")
    exclude_dirs: tuple[str, ...] = _is(
        (".rag-index", "data", ".git", "__pycache__", "node_modules"), "Names of folders to pass over"
    )
    respect_gitignore: bool = _is(True, "Pass over what .gitignore names")
    max_file_bytes: int = _is(20_000_000, "A larger file is reported and passed over", low=1)


class Chromadb(_Section):
    """How Chroma keeps vectors, where it is the store."""

    collection_name: str = _is("documents", "Name of the collection")
    hnsw_space: Literal["cosine", "l2", "ip"] = _is("cosine", "Distance between vectors")
    hnsw_construction_ef: int = _is(200, "Width of the search while building: exact against quick", low=1)
    hnsw_search_ef: int = _is(100, "Width of the search while searching: exact against quick", low=1)
    hnsw_M: int = _is(16, "Links of a vector: exact against small", low=1)  # noqa: N815 - the files' spelling


class Display(_Section):
    """How results look on a terminal."""

    default_format: Literal["table", "json"] = _is("table", "How lists are printed")
    language: Literal["ja", "en"] | None = _is(
        None, "Language of messages; not set: Japanese for the rag_ tools, English elsewhere"
    )


class Model(_Section):
    """When a loaded model is let go."""

    auto_unload_minutes: int = _is(10, "Unload a model that was not used this long, in minutes; 0: never")
    memory_threshold: float = _is(0.8, "Unload when more than this share of memory is in use", high=1)


class Crawl(_Section):
    """How web pages are fetched."""

    max_pages: int = _is(50, "Most pages of one crawl", "RAG_MAX_CRAWL_PAGES", low=1)
    delay_sec: float = _is(1.0, "Wait between two pages, in seconds", "RAG_CRAWL_DELAY_SEC")
    respect_robots_txt: bool = _is(True, "Obey robots.txt", "RAG_RESPECT_ROBOTS_TXT")
    robots_txt_cache_ttl: int = _is(3600, "robots.txt is remembered this long, in seconds", "RAG_ROBOTS_TXT_CACHE_TTL")
    concurrency: int = _is(4, "Most pages asked for at once", low=1, high=32)
    timeout_seconds: float = _is(30.0, "Longest wait for one page, in seconds", low=0.1)
    max_bytes: int = _is(10_485_760, "A larger page is reported and passed over", low=1)
    follow_redirects: int = _is(0, "Redirects of one page that are followed, each checked as the page itself", high=10)
    user_agent: str = _is("BunkoBot", "What sites are told who asks, and what robots.txt may name")
    allowed_hosts: tuple[str, ...] = _is(
        (), "Hosts of your own network that may be read: intra.example, 10.0.0.5:8080, *.intra.example"
    )


class Safety(_Section):
    """How web addresses are checked before they are fetched."""

    url_check: bool = _is(False, "Ask Google Safe Browsing about addresses", "RAG_URL_SAFETY_CHECK")
    google_safe_browsing_api_key: str = _is(
        "", "Key for Google Safe Browsing", "GOOGLE_SAFE_BROWSING_API_KEY", secret=True
    )
    base_url: str = _is("https://safebrowsing.googleapis.com", "Address of Google Safe Browsing")
    cache_ttl: int = _is(300, "An answer is remembered this long, in seconds", "RAG_URL_SAFETY_CACHE_TTL")
    fail_open: bool = _is(True, "Fetch when the check itself fails", "RAG_URL_SAFETY_FAIL_OPEN")
    timeout: float = _is(5.0, "Longest wait for an answer, in seconds", "RAG_URL_SAFETY_TIMEOUT", low=0.1)


class Serve(_Section):
    """How assistants are served."""

    max_result_tokens: int = _is(8000, "Longest answer to an assistant, in tokens", low=500, high=100_000)
    max_schema_tokens: int = _is(6000, "With more tokens of schemas, a library's tools fold into one", low=500)
    host: str = _is("127.0.0.1", "Where --http listens")
    port: int = _is(8765, "Where --http listens", high=65535)
    token: str = _is("", "What HTTP clients must show; empty: kept in a file", "BUNKO_TOKEN", secret=True)
    allowed_hosts: tuple[str, ...] = _is((), "Names under which --http may be reached beside this machine's own")


class Log(_Section):
    """What is logged."""

    debug: bool = _is(False, "Log every step with its time", "RAG_DEBUG_LOG_ENABLED")
    keep_searches: bool = _is(False, "Remember queries in the library, for bunko judge")


@dataclass(frozen=True, eq=False)
class Settings:
    """All settings, by section."""

    library: Library = field(default_factory=Library)
    database: Database = field(default_factory=Database)
    storage: Storage = field(default_factory=Storage)
    embedding: Embedding = field(default_factory=Embedding)
    chunker: Chunker = field(default_factory=Chunker)
    chunking: Chunking = field(default_factory=Chunking)
    search: Search = field(default_factory=Search)
    memos: Memos = field(default_factory=Memos)
    chat: Chat = field(default_factory=Chat)
    rewrite: Rewrite = field(default_factory=Rewrite)
    summarize: Summarize = field(default_factory=Summarize)
    web: Web = field(default_factory=Web)
    retry: Retry = field(default_factory=Retry)
    scanner: Scanner = field(default_factory=Scanner)
    chromadb: Chromadb = field(default_factory=Chromadb)
    display: Display = field(default_factory=Display)
    model: Model = field(default_factory=Model)
    crawl: Crawl = field(default_factory=Crawl)
    safety: Safety = field(default_factory=Safety)
    serve: Serve = field(default_factory=Serve)
    log: Log = field(default_factory=Log)


class Setting:
    """One setting: what it may be, what it is called, what it means."""

    def __init__(self, section: str, name: str, annotation: Any, default: object, about: Any) -> None:
        self.key = f"{section}.{name}"
        self.default = default
        self.meaning: str = about["meaning"]
        self.low: float = about["low"]
        self.high: float = about["high"]
        self.secret: bool = about["secret"]
        self.file_names: tuple[str, ...] = about["file_names"]
        own_name = f"BUNKO_{section}_{name}".upper()
        self.env: tuple[str, ...] = (own_name, *about["env"].split())
        inner = get_args(annotation)
        self.optional = type(None) in inner
        if self.optional:
            annotation = inner[0]
            inner = get_args(annotation)
        self.many = Ellipsis in inner
        self.choices: tuple[str, ...] = () if self.many else inner
        self.kind: type = inner[0] if self.many else str if inner else annotation

    def allowed(self) -> str:
        """Say what the value may be."""
        if self.choices:
            words = f"one of {', '.join(self.choices)}"
        elif self.kind in (int, float):
            noun = "whole number" if self.kind is int else "number"
            words = f"a list of {noun}s" if self.many else f"a {noun}"
            words += f" of at least {self.low}" if self.high == MOST else f" from {self.low} to {self.high}"
        elif self.kind is bool:
            words = "true or false"
        else:
            words = "a list of texts" if self.many else "text"
        return f"{words}, or nothing" if self.optional else words

    def shown(self, value: object) -> str:
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
