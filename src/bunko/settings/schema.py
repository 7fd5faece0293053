"""Declare every setting, by section."""

# No `from __future__ import annotations` here: `SETTINGS` reads types and choices from the real annotations.
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from bunko.readers import default_suffixes
from bunko.settings.setting import Section, Setting, setting
from bunko.types.ranking import OPTIONS, RankingOption


class RankingSection(Section):
    """A section that has options of ranking beside its own settings."""

    def __init_subclass__(cls, declared: Mapping[str, tuple[Any, Any]]) -> None:
        cls.__annotations__ = cls.__annotations__ | {name: annotation for name, (annotation, _) in declared.items()}
        for name, (_, declaration) in declared.items():
            setattr(cls, name, declaration)
        super().__init_subclass__()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no {name}")


def ranking_settings(section: str) -> dict[str, tuple[Any, Any]]:
    """Return the type and the declaration of each option of ranking that a section of the settings has."""
    if section == "search":
        return {
            name: (option.annotation, _ranking_setting(option, option.default, option.meaning, option.env))
            for name, option in OPTIONS.items()
        }
    if section == "memos":
        return {
            name: (option.annotation, _ranking_setting(option, option.memos, f"As search.{option.name}, for memos"))
            for name, option in OPTIONS.items()
            if option.memos is not None
        }
    return {
        name: (
            option.annotation | None,
            _ranking_setting(
                option,
                None,
                f"As search.{name}, for web pages. Not set: search.{name} if that is set, else {option.web} if"
                " embedding.provider is local or online",
            ),
        )
        for name, option in OPTIONS.items()
        if option.web is not None
    }


def _ranking_setting(option: RankingOption, default: Any, meaning: str, env: str = "") -> Any:
    return setting(default, meaning, env, low=option.low, high=option.high)


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


class SearchSection(RankingSection, declared=ranking_settings("search")):
    """How a search ranks and filters results."""

    mode: Literal["bm25", "semantic", "hybrid"] = setting(
        "hybrid", "Search by words (bm25), by vectors (semantic), or by both (hybrid)"
    )
    top_k: int = setting(5, "Number of results", low=1, high=1000, file_names=("default_top_k", "k"))
    hybrid_enabled: bool | None = setting(
        None, "true: mode hybrid, false: mode semantic. Not set: use mode", "RAG_HYBRID_SEARCH_ENABLED"
    )
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


class MemosSection(RankingSection, declared=ranking_settings("memos")):
    """How memos are searched."""

    top_k: int = setting(10, "Number of results of a memo search", low=1, high=1000)
    max_file_bytes: int = setting(
        1_000_000_000,
        "Report and skip larger memo files, in bytes. A single entry is limited by scanner.max_file_bytes",
        low=1,
    )


class RewriteSection(Section):
    """How a chat model rewrites a query before the search."""

    enabled: bool = setting(
        False,
        "Rewrite queries of bunko search and query_memos, and questions, by default",
    )
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


class ScannerSection(Section):
    """Which files of a folder are imported."""

    file_extensions: tuple[str, ...] = setting((), "File extensions to import", derive=default_suffixes)
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
        None,
        "Language of help, messages and errors. Not set: for commands that of the system (LC_ALL, LC_MESSAGES, LANG),"
        " for the rag_ tools Japanese",
    )


class SlackSection(Section):
    """How the Slack bot connects, and who may change the library through it."""

    bot_token: str = setting("", "Token of the bot, xoxb-…", "SLACK_BOT_TOKEN", secret=True)
    app_token: str = setting(
        "", "Token of the app for Socket Mode, xapp-…; not needed with --http", "SLACK_APP_TOKEN", secret=True
    )
    signing_secret: str = setting(
        "", "Signing secret of the app; only needed with --http", "SLACK_SIGNING_SECRET", secret=True
    )
    tools: tuple[str, ...] = setting(
        (),
        "What everyone in a channel may ask about: CHANNEL=TOOL. *: every channel and direct message, or every tool."
        " Empty: *=*",
    )
    write_users: tuple[str, ...] = setting(
        (), "Ids of the users who may change the library: U012AB3CD. *: everyone. Empty: nobody, except write_channels"
    )
    write_channels: tuple[str, ...] = setting(
        (), "Ids of the channels in which everyone may change the library: C012AB3CD. Empty: none"
    )
    allowed_domains: tuple[str, ...] = setting(
        (), "Domains, with their subdomains, whose pages may be added from Slack. Empty: all public ones"
    )
    allowed_tools: tuple[str, ...] = setting(
        (),
        "Tools that the model may call in Slack although they do not say that they only read: get_weather, calendar_*. "
        "Everyone who asks can cause such a call. Empty: none",
    )
    workers: int = setting(4, "Maximum number of questions and commands that are worked on at the same time", low=1)
    keep_days: float = setting(30.0, "How long questions and answers are kept in the library, in days", low=1)
    api_url: str = setting("https://slack.com/api/", "Address of Slack's Web API; GovSlack has another one")


class McpSection(Section):
    """Which MCP servers a conversation uses."""

    enabled: bool = setting(
        True, "Use tools in conversations: those of the servers, or of this library. false: none", "MCP_ENABLED"
    )
    servers_config: str | None = setting(
        None,
        "File with the servers. Not set: config/mcp_servers.json, or only this library if there is no such file",
        "MCP_SERVERS_CONFIG",
    )
    start_timeout: float = setting(30.0, "Maximum time a server takes to start, in seconds", low=0.1)
    call_timeout: float = setting(
        60.0, "Maximum time a call takes, in seconds. A crawl may take as long as its pages may", low=0.1
    )
    max_output_chars: int = setting(100_000, "Maximum length of what a call returns, in characters", low=1000)


class AskSection(Section):
    """Answers from one search: quotes if no chat model is set, and Library.ask with the model in [chat]."""

    top_k: int = setting(8, "Number of passages that an answer may cite", low=1, high=50)
    max_input_chars: int = setting(
        16_000, "Library.ask: maximum number of characters of the passages that are sent to the model", low=100
    )


class ChatSection(Section):
    """Which chat model answers questions, rewrites queries and writes summaries, and what an answer may cost."""

    provider: Literal["openrouter", "openai", "lmstudio", "ollama"] | None = setting(
        None,
        "Service that answers questions, rewrites queries and writes summaries. Not set: none, and nothing is sent",
    )
    model: str | None = setting(None, "Chat model. Not set: gpt-4o-mini on openrouter and openai")
    base_url: str | None = setting(
        None, "URL of an OpenAI-compatible server. Not set: the URL of the provider in [embedding]"
    )
    api_key: str = setting(
        "", "API key. Not set: the key of the provider in [embedding], unless base_url is set", secret=True
    )
    provider_order: tuple[str, ...] = setting((), "OpenRouter: providers to try, in this order")
    provider_sort: Literal["price", "throughput", "latency"] | None = setting(
        None, "OpenRouter: prefer providers by this criterion"
    )
    allow_fallbacks: bool | None = setting(None, "OpenRouter: fall back to other providers")
    data_collection: Literal["allow", "deny"] | None = setting(
        None, "OpenRouter: deny excludes providers that store requests"
    )
    max_tokens: int = setting(2000, "Maximum length of an answer, in tokens", low=1)
    temperature: float | None = setting(
        None, "Sampling temperature of answers. Not set: the default of the server", high=2
    )
    timeout: float = setting(60.0, "Maximum time without a word from the model, in seconds", low=0.1)
    max_rounds: int = setting(6, "How often the model may call tools for an answer", high=100)
    max_total_tokens: int = setting(
        100_000, "Tokens that the model may read and write for an answer before it has to answer", low=1
    )
    max_seconds: float = setting(120.0, "Maximum time of an answer, in seconds", low=1)
    max_cost: float | None = setting(
        None, "What an answer may cost, by input_price and output_price, before the model has to answer"
    )
    input_price: float = setting(0.0, "Price of a million tokens that the model reads")
    output_price: float = setting(0.0, "Price of a million tokens that the model writes")
    history_tokens: int = setting(8000, "How much of a conversation the model is reminded of, in tokens")
    allowed_tools: tuple[str, ...] = setting(
        (), "Tools that change something and that the model may call by itself: add_memo, calendar_*. Empty: none"
    )
    confirmed_tools: tuple[str, ...] = setting(
        (), "Tools that change something and that bunko chat may call after you have agreed to the call. Empty: none"
    )
    keep_history: bool = setting(
        True, "Keep what was asked and answered in bunko chat in your data folder, to resume it later"
    )


class WebSection(RankingSection, declared=ranking_settings("web")):
    """How web pages are chunked and searched, and whether a site without a readable robots.txt is fetched."""

    top_k: int = setting(3, "Number of results of a web page search", "RAG_RETRIEVAL_COUNT", low=1, high=1000)
    chunk_size: int | None = setting(
        None,
        "Maximum number of characters in a chunk. Not set: chunker.chunk_size if that is set, else 800,"
        " or 200 if embedding.provider is local or online",
        "RAG_CHUNK_SIZE",
        low=1,
    )
    chunk_overlap: int | None = setting(
        None,
        "Overlap of chunks of a long text, in characters. Not set: chunker.chunk_overlap if that is set, else 0, or 30"
        " with local or online",
        "RAG_CHUNK_OVERLAP",
    )
    robots_unreachable: Literal["allow", "refuse"] = setting(
        "allow", "If robots.txt answers 5xx or not at all: fetch with a warning, or nothing for now as in RFC 9309"
    )


class CrawlSection(Section):
    """How web pages are fetched."""

    max_pages: int = setting(50, "Maximum number of pages per crawl", "RAG_MAX_CRAWL_PAGES", low=1)
    delay_sec: float = setting(1.0, "Delay between two requests, in seconds", "RAG_CRAWL_DELAY_SEC")
    respect_robots_txt: bool = setting(True, "Obey robots.txt", "RAG_RESPECT_ROBOTS_TXT")
    robots_txt_cache_ttl: int = setting(3600, "Cache robots.txt this long, in seconds", "RAG_ROBOTS_TXT_CACHE_TTL")
    max_crawl_delay: float = setting(
        60.0, "Skip sites whose robots.txt asks for a longer delay between two requests, in seconds", high=86_400
    )
    concurrency: int = setting(4, "Maximum number of concurrent requests", low=1, high=32)
    timeout_seconds: float = setting(30.0, "Timeout of a page, in seconds", low=0.1)
    max_bytes: int = setting(10_485_760, "Report and skip larger pages, in bytes", low=1)
    follow_redirects: int = setting(
        0, "Maximum number of redirects per page; each target is checked like the page itself", high=10
    )
    user_agent: str = setting("BunkoBot", "User agent sent to sites and matched against robots.txt")
    allowed_hosts: tuple[str, ...] = setting(
        (), "Private hosts that may be fetched: intra.example, 10.0.0.5:8080, *.intra.example"
    )


class SafetySection(Section):
    """How web addresses are checked before they are fetched."""

    url_check: bool = setting(False, "Check URLs with Google Safe Browsing", "RAG_URL_SAFETY_CHECK")
    google_safe_browsing_api_key: str = setting(
        "", "API key for Google Safe Browsing", "GOOGLE_SAFE_BROWSING_API_KEY", secret=True
    )
    base_url: str = setting("https://safebrowsing.googleapis.com", "URL of Google Safe Browsing")
    cache_ttl: int = setting(300, "Cache answers this long, in seconds", "RAG_URL_SAFETY_CACHE_TTL")
    fail_open: bool = setting(True, "Fetch the page if the check itself fails", "RAG_URL_SAFETY_FAIL_OPEN")
    timeout: float = setting(5.0, "Timeout of a check, in seconds", "RAG_URL_SAFETY_TIMEOUT", low=0.1)


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
    candidates: int = setting(
        400, "Most chunks that each arm takes from Milvus, unless too few of them match", low=50, high=10_000
    )
    timeout: float = setting(5.0, "Maximum time a search waits for the server, in seconds", low=0.1)
    write_timeout: float = setting(
        60.0, "Maximum time an import waits for the server to store a batch, in seconds", low=0.1
    )
    retries: int = setting(2, "Further attempts of a write while the server is busy or restarting", high=20)


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
        100_000,
        "How many changes of each caller the audit log keeps: who changed what, when and with what result",
        low=1,
    )


class SignInSection(Section):
    """How people and their assistants sign in to bunko serve --http by the team's own identity provider."""

    issuer: str | None = setting(
        None,
        "Issuer of the tokens, as the provider writes it: https://login.example.com/realms/team. Not set: only tokens"
        " of bunko are accepted",
    )
    url: str | None = setting(
        None, "URL at which browsers and assistants reach this server, without a path: https://bunko.example.com"
    )
    audience: tuple[str, ...] = setting(
        (), "What access tokens for this server name as their audience, one of these. Empty: url, followed by /mcp"
    )
    scopes: tuple[str, ...] = setting(
        (), "Scopes that an access token needs, and that assistants are told to ask for. Empty: none"
    )
    rights_claim: str = setting(
        "groups", "Claim with the values that read and write name. realm_access.roles: roles in the table realm_access"
    )
    read: tuple[str, ...] = setting(
        (),
        "Who may read which tools: VALUE=TOOL, by the values of rights_claim. *: everyone who can sign in, or every"
        " tool. Empty: nobody, except write",
    )
    write: tuple[str, ...] = setting((), "Who may change which tools, and read them: VALUE=TOOL. Empty: nobody")
    name_claim: str = setting(
        "sub",
        "Claim that names somebody in the audit log: one that is unique, and that people cannot change themselves. Who"
        " lacks it, or has characters in it that nobody sees, is named by sub",
    )
    client_id: str | None = setting(
        None, "Client id of the page at the provider. Not set: the page asks for a token of bunko"
    )
    client_secret: str = setting("", "Client secret of the page at the provider", secret=True)
    page_scopes: tuple[str, ...] = setting(
        ("openid", "profile", "email"),
        "Scopes that the page asks for: openid, and what rights_claim and name_claim need",
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
    sign_in: SignInSection = field(default_factory=SignInSection)
    slack: SlackSection = field(default_factory=SlackSection)
    log: LogSection = field(default_factory=LogSection)


SECTIONS: dict[str, Any] = {section.name: section.type for section in fields(Settings)}
# Without the settings that providers declare, see `bunko.settings.providers`.
CORE_SETTINGS: dict[str, Setting] = {
    f"{name}.{attribute.name}": Setting(name, attribute.name, attribute.type, attribute.default, attribute.metadata)
    for name, section in SECTIONS.items()
    for attribute in fields(section)
}
