"""Answer questions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bunko.interfaces.answers import AnswerReply, answer_to_dict
from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.search import Name

Question = Annotated[str, Field(min_length=1, max_length=10_000)]


class AskBody(Shape):
    """A question."""

    question: Question
    tool: Annotated[list[Name], Field(max_length=100)] = Field([], description="Only these tools")
    strict: bool = Field(False, description="Leave out what the sources do not support")
    use_model: bool = Field(True, description="Let the chat model of the settings answer, if there is one")


def ask(call: Call, body: AskBody) -> dict[str, object]:
    """Answer a question from the documents, with sources."""
    tools = body.tool[0] if len(body.tool) == 1 else tuple(body.tool) or None
    return answer_to_dict(call.library.ask(body.question, tool=tools, use_model=body.use_model), strict=body.strict)


ENDPOINTS = [Endpoint("POST", "/ask", ask, AnswerReply, right="read", is_long=True)]
