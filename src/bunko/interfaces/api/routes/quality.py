"""Show reports about search quality, and judge search results."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bunko.errors import AccessDenied
from bunko.evaluation.judge import JudgeAccess
from bunko.evaluation.report_store import ReportStore
from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.search import Name
from bunko.interfaces.fields import Fields, of
from bunko.library.access import ASK_HINT, LibraryAccess
from bunko.search.passages import split_author

Query = Annotated[str, Field(min_length=1, max_length=2000)]
_MAX_WAITING = 100


class ReportFields(Fields):
    """A report in a list."""

    id: str
    kind: Literal["evaluation", "sweep"]
    created_at: str
    name: str  # of the judged questions
    queries: int
    measure: str
    score: float | None


class ReportsReply(Fields):
    """The reports in the folder of the library, the newest first."""

    evaluations: list[ReportFields]


class ReportReply(ReportFields):
    """A report with its content."""

    report: dict[str, object]  # as bunko evaluate and bunko sweep write it


class JudgeQuery(Shape):
    """What to judge."""

    tool: Name
    q: Annotated[str, Field(max_length=2000)] = Field("", description="A query; without it, what waits to be judged")
    top_k: int = Field(5, ge=1, le=100, description="Results of each search mode")


class JudgedDocumentFields(Fields):
    """A document that was found, and its grade."""

    path: str = of("hit.uri")
    title: str = of("hit.title")
    heading_path: list[str] = of(lambda document: list(split_author(document.hit)[1]))
    citation: str = of("hit.citation")
    content: str = of("hit.chunk.text")
    grade: float | None  # 0: does not answer; null: not judged


class JudgedCounts(Fields):
    """How much is judged."""

    tool: str
    queries: int
    judgements: int


class JudgementsReply(JudgedCounts):
    """What is judged and what is not."""

    waiting: list[str] = of(optional=True)  # recorded searches
    documents: list[JudgedDocumentFields] = of(optional=True)


class Judgement(Shape):
    """A judgement."""

    tool: Name
    query: Query
    path: Annotated[str, Field(min_length=1, max_length=4000)]
    grade: Literal[0, 1, 2, 3] | None = Field(description="0: does not answer, 3: best; null removes it")


def report_store(library: LibraryAccess) -> ReportStore:
    """Return the reports, to callers who may read everything: they contain questions about all tools."""
    if not library.caller.rights.reads_all:
        raise AccessDenied("This token may not see the reports", hint=ASK_HINT)
    return ReportStore(library.paths.folder)


def list_evaluations(call: Call) -> dict[str, object]:
    """List the reports of evaluations and sweeps in the folder of the library; needs the right to read everything."""
    return {"evaluations": [ReportFields.fill(report) for report in report_store(call.library).all()]}


def show_evaluation(call: Call, id: str) -> dict[str, object]:
    """Show a report as it was written; needs the right to read everything."""
    report, content = report_store(call.library).load(id)
    return ReportFields.fill(report) | {"report": content}


def list_judgements(call: Call, query: JudgeQuery) -> dict[str, object]:
    """Show the documents that a query finds with their grades, or which recorded searches wait to be judged."""
    judge = JudgeAccess(call.library)
    queries, judgements = judge.counts(query.tool)
    reply: dict[str, object] = {"tool": query.tool, "queries": queries, "judgements": judgements}
    if not query.q.strip():
        return reply | {"waiting": judge.waiting_queries(query.tool)[:_MAX_WAITING]}
    documents = judge.documents(query.tool, query.q, depth=query.top_k)
    return reply | {"documents": [JudgedDocumentFields.fill(document) for document in documents]}


def add_judgement(call: Call, body: Judgement) -> dict[str, object]:
    """Store whether a document answers a query, in the file that `bunko judge` writes."""
    queries, judgements = JudgeAccess(call.library).judge(body.tool, body.query, body.path, body.grade)
    return {"tool": body.tool, "queries": queries, "judgements": judgements}


ENDPOINTS = [
    Endpoint("GET", "/evaluations", list_evaluations, ReportsReply, right="read"),
    Endpoint("GET", "/evaluations/{id}", show_evaluation, ReportReply, right="read"),
    Endpoint("GET", "/judgements", list_judgements, JudgementsReply, right="read", is_long=True),
    Endpoint("POST", "/judgements", add_judgement, JudgedCounts, right="write"),
]
