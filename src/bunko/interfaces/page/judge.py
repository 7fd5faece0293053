"""The page that lets people judge search results with single keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bunko.errors import AccessDenied
from bunko.evaluation.judge_access import JudgeAccess, JudgedHit
from bunko.interfaces.page.answering import PageView
from bunko.interfaces.page.query import document_address
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.results import as_paragraph, mark_terms
from bunko.interfaces.text import single_line
from bunko.library.rights.access import ASK_HINT
from bunko.search.passages import display_label, snippet_terms, split_author
from bunko.text.labels import remove_hidden_chars
from bunko.text.snippets import SnippetTerms

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.rights.access import LibraryAccess

_DEPTH = 5  # results of each search mode, as many as bunko judge takes
_MAX_CHARS = 900
_MAX_WAITING = 50


class JudgePage(PageView):
    """Shows what a query finds, each with its grade."""

    async def answer(self, request: Request) -> Response:
        """Return the page with the documents to judge, or the searches that wait for it."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        judge = JudgeAccess(library)
        tools = judge.tools()
        if self.registry.is_read_only:
            raise AccessDenied("This server only reads", hint="Start it without --read-only.")
        if not tools:
            raise AccessDenied("This token may not change the library", hint=ASK_HINT)
        query = request.query_params.get("q", "").strip()
        tool = request.query_params.get("tool", "") or tools[0].name
        terms = snippet_terms(query)
        documents = judge.documents(tool, query, depth=_DEPTH) if query else []
        query_count, judgement_count = judge.counts(tool)
        values: dict[str, Any] = {
            "tools": [(candidate.name, single_line(candidate.name)) for candidate in tools],
            "tool": tool,
            "query": query,
            "documents": [_document_values(document, query, terms) for document in documents],
            "waiting": judge.waiting_queries(tool)[:_MAX_WAITING],
            "query_count": query_count,
            "judgement_count": judgement_count,
        }
        return render(request, "judge.html", values, script_sections=["judge"])


def _document_values(document: JudgedHit, query: str, terms: SnippetTerms) -> dict[str, Any]:
    hit = document.hit
    text = as_paragraph(remove_hidden_chars(hit.chunk.text))
    labels = [display_label(label) for label in split_author(hit)[1]]
    name = display_label(hit.title) or single_line(hit.uri)
    return {
        "path": hit.uri,
        "name": name,
        "trail": [label for label in labels if label and label != name],
        "location": single_line(hit.citation),
        "date": hit.date[:10],
        "text": mark_terms(text[:_MAX_CHARS] + ("…" if len(text) > _MAX_CHARS else ""), terms),
        "grade": "" if document.grade is None else f"{document.grade:g}",
        "address": document_address(hit.tool, hit.uri, q=query),
    }
