"""Answer questions."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from bunko.interfaces.answers import answer_to_dict
from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.search import Name

Question = Annotated[str, Field(min_length=1, max_length=10_000)]


class AskBody(Shape):
    """A question."""

    question: Question
    tool: Annotated[list[Name], Field(max_length=100)] = Field([], description="Only these tools")
    strict: bool = Field(False, description="Leave out what the sources do not support")
    use_model: bool = Field(True, description="Let the chat model of the settings answer, if there is one")


class AnswerCitation(TypedDict):
    """A citation of a sentence."""

    label: str
    source: int | None
    state: str
    supports: bool
    added: bool


class SentenceFields(TypedDict):
    """A sentence, compared with the sources that it cites."""

    text: str
    status: str
    missing: list[str]
    best_source: int | None
    citations: list[AnswerCitation]


class AnswerReply(TypedDict):
    """An answer with its sources."""

    question: str
    found: bool
    text: str
    model: str
    sentences: list[SentenceFields]
    sources: list[dict[str, Any]]
    prompt_tokens: int | None
    answer_tokens: int | None
    cost: NotRequired[Any]
    notices: NotRequired[list[str]]


def ask(call: Call, body: AskBody) -> dict[str, Any]:
    """Answer a question from the documents, with sources."""
    tools = body.tool[0] if len(body.tool) == 1 else tuple(body.tool) or None
    return answer_to_dict(call.library.ask(body.question, tool=tools, use_model=body.use_model), strict=body.strict)


ENDPOINTS = [Endpoint("POST", "/ask", ask, AnswerReply, right="read", is_long=True)]
