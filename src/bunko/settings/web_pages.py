"""Declare the settings of web pages: how they are searched, fetched and checked."""

# No `from __future__ import annotations` here: `Setting` reads types and choices from the real annotations.
from bunko.settings.setting import Section, setting


class WebSection(Section):
    """How web pages are searched."""

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
    vector_weight: float | None = setting(
        None,
        "As in [search], for web pages. This and the next three, if not set: the value in [search] if set there,"
        " else 0.9 if embedding.provider is local or online",
        high=1,
    )
    k1: float | None = setting(None, "BM25 term frequency saturation for web pages; 2.5 with local or online")
    b: float | None = setting(None, "BM25 length normalization for web pages; 0.5 with local or online", high=1)
    min_combined_score: float | None = setting(
        None, "Minimum combined score of a web page; 0.75 with local or online", high=1
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
