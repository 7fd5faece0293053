"""The page that answers questions from the documents, and shows what they say and what they do not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bunko.errors import BunkoError
from bunko.interfaces.answers import is_answered, readable_sentences, remarks, visible_sources
from bunko.interfaces.api.problems import error_status
from bunko.interfaces.page.query import document_address
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.view import PageView, error_values, say
from bunko.interfaces.text import single_line
from bunko.search.citations import parse_citation
from bunko.search.passages import display_label
from bunko.text.labels import remove_hidden_chars
from bunko.text.readable import excerpt_text, readable_title

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.access import LibraryAccess
    from bunko.types.answers import AnswerSource, CheckedAnswer, CheckedSentence

_MAX_SOURCE_CHARS = 1200


class AskPage(PageView):
    """Answers questions."""

    async def answer(self, request: Request) -> Response:
        """Return the page with the answer to a question, or only its form."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        parameters = request.query_params
        question, tool = parameters.get("q", "").strip(), parameters.get("tool", "")
        is_strict = parameters.get("strict") == "true"
        values: dict[str, object] = {"question": question, "tool": tool, "is_strict": is_strict, "answer": None}
        values |= {"error": None, "tools": [(tool.name, single_line(tool.name)) for tool in library.tools()]}
        status = 200
        if question:
            try:
                answer = library.ask(question, tool=tool or None)
                cited = visible_sources(answer, strict=is_strict)
                uncited = [source for source in answer.sources if source not in cited]
                values["answer"] = {
                    "is_found": is_answered(answer, strict=is_strict),
                    "model": answer.model,
                    "sentences": [
                        {
                            "text": _sentence_text(answer, sentence),
                            # What a document says is not a claim to check; a remark says if it no longer does.
                            "status": sentence.status if answer.model else "quoted",
                            "begins_line": "\n" in sentence.before,
                            "begins_paragraph": "\n\n" in sentence.before,
                            "numbers": list(dict.fromkeys(cited.number for cited in sentence.citations if cited.holds)),
                            "remarks": [say(request, remark) for remark in remarks(sentence)],
                        }
                        for sentence in readable_sentences(answer, strict=is_strict)
                    ],
                    "sources": [_source_values(source, answer) for source in cited],
                    "others": [_source_values(source, answer) for source in uncited],
                    "notices": [say(request, notice) for notice in answer.notices],
                }
            except BunkoError as error:
                values["error"], status = error_values(request, error, library), error_status(error)
        return render(request, "ask.html", values, status=status)


def _sentence_text(answer: CheckedAnswer, sentence: CheckedSentence) -> str:
    """Return a sentence as people read it; what a model wrote stays as it is."""
    text = remove_hidden_chars(sentence.text)
    uri = next((source.uri for source in answer.sources if source.number == sentence.best_source), "")
    return text if answer.model else excerpt_text(text, uri)


def _hit_lines(source: AnswerSource, answer: CheckedAnswer) -> str:
    """Return the lines of the sentence that is quoted from a source, else of the whole passage."""
    citation = parse_citation(source.citation)
    if citation is None or not citation.first:
        return ""
    for sentence in answer.sentences:
        if source.number in (cited.number for cited in sentence.citations):
            quoted = re.search(r"\s+".join(map(re.escape, sentence.text.split())), source.text)
            if quoted:
                first = citation.first + source.text.count("\n", 0, quoted.start())
                return f"L{first}-L{first + quoted[0].count(chr(10))}"
    return f"L{citation.first}-L{citation.last}"


def _source_values(source: AnswerSource, answer: CheckedAnswer) -> dict[str, object]:
    text = excerpt_text(remove_hidden_chars(source.text), source.uri)
    return {
        "number": source.number,
        "name": display_label(
            readable_title((source.headings[-1] if source.headings else "") or source.title, source.uri) or source.uri
        ),
        "location": single_line(source.location),
        "tool": single_line(source.tool),
        "date": source.stated_date,
        "text": text[:_MAX_SOURCE_CHARS] + ("…" if len(text) > _MAX_SOURCE_CHARS else ""),
        "address": document_address(source.tool, source.uri, hit=_hit_lines(source, answer), q=answer.question),
        "trust": source.trust,
    }
