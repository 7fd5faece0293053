"""Show, add, crawl and delete web pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.jobs import StartedReply, start_job
from bunko.interfaces.fields import Fields
from bunko.interfaces.serialize_state import WebTool
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.library.web.collector import CollectResult
from bunko.sources.web.ssrf_guard import display_url

_MAX_URLS, _MAX_PROBLEMS = 1000, 100
Url = Annotated[str, Field(min_length=1, max_length=4000)]


class WebReply(Fields):
    """All tools of web pages."""

    tools: list[WebTool]


class Pages(Shape):
    """Pages to fetch."""

    urls: list[Url] = Field(min_length=1, max_length=_MAX_URLS)


class Crawl(Shape):
    """A site to fetch."""

    url: Url
    pattern: Annotated[str, Field(max_length=1000)] = Field(
        "", description="Only addresses that match this regular expression"
    )


class WebPageQuery(Shape):
    """A page."""

    url: Url


class DeletedPageReply(Fields):
    """What was deleted."""

    url: str
    chunks: int


def list_web_tools(call: Call) -> dict[str, object]:
    """Show the tools of web pages: their sites, problems and unfinished crawls."""
    return {"tools": [WebTool.fill(status) for status in call.library.web.status()]}


def add_web_pages(call: Call, body: Pages) -> dict[str, object]:
    """Fetch pages into the library in the background, or fetch them again."""
    call.library.web.check_add()
    return start_job(call, "pages", pages_job(body.urls), display_url(body.urls[0]))


def pages_job(urls: Sequence[str]) -> Callable[[ToolCall], ToolReply]:
    """Return what fetches pages in the background."""
    return lambda call: _reply(call.library.web.add_pages(urls, observer=_observer(call)))


def crawl_site(call: Call, body: Crawl) -> dict[str, object]:
    """Fetch a page and the pages that it links to on its site in the background."""
    call.library.web.check_add()
    return start_job(call, "crawl", crawl_job(body.url, body.pattern), display_url(body.url))


def crawl_job(url: str, pattern: str) -> Callable[[ToolCall], ToolReply]:
    """Return what fetches a site in the background."""
    return lambda call: _reply(call.library.web.crawl_site(url, pattern, observer=_observer(call)))


def delete_web_page(call: Call, query: WebPageQuery) -> dict[str, object]:
    """Delete a page."""
    url, chunks = call.library.web.delete_page(query.url)
    return {"url": url, "chunks": chunks}


def _observer(call: ToolCall) -> Any:
    def report(done: Any) -> None:
        call.report_progress(done.pages, done.total, f"{done.problems} problems" if done.problems else "")

    return replace(call.observer(), on_crawl=report)


def _reply(result: CollectResult) -> ToolReply:
    outcome = result.outcome
    problems = outcome.problems[:_MAX_PROBLEMS]
    return ToolReply(
        "",
        {
            "tool": result.tool,
            "pages": len(outcome.stored_urls),
            "chunks": sum(result.chunk_counts.values()),
            "errors": result.errors,
            "skipped": len(outcome.skipped),
            "left_out": outcome.omitted_links,
            "interrupted": outcome.interrupted,
            "problems": [{"url": problem.uri, "reason": problem.reason} for problem in problems],
        },
    )


ENDPOINTS = [
    Endpoint("GET", "/web", list_web_tools, WebReply, right="read"),
    Endpoint("POST", "/web/pages", add_web_pages, StartedReply, right="write", status=202),
    Endpoint("DELETE", "/web/pages", delete_web_page, DeletedPageReply, right="write"),
    Endpoint("POST", "/web/crawls", crawl_site, StartedReply, right="write", status=202),
]
