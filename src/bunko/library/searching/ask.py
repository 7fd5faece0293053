"""Answer questions from the library, and verify answers against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bunko.answers.best_sentences import Similarity, choose_sentences
from bunko.answers.verify import verify_sentences
from bunko.embedders.embed import embed_and_check
from bunko.errors import QueryError, UnknownName
from bunko.library.searching.chat_models import ChatModels
from bunko.library.searching.search import Searcher
from bunko.library.tools.build_config import ToolConfig
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.remote import RemoteFailure
from bunko.search.passages import Passage, display_label
from bunko.search.request import MAX_QUERY_CHARS, SearchRequest
from bunko.settings import Settings
from bunko.types.answers import (
    AnswerSource,
    CheckedAnswer,
    CheckedCitation,
    CheckedSentence,
    CitationState,
    SentenceStatus,
)

if TYPE_CHECKING:
    from bunko.answers.ask import Writer
    from bunko.llm.rewrite import Rewriting

# More passages of one document leave no room for others that say it differently.
_PER_DOCUMENT = 3


class Asker:
    """Answers questions with sentences of the documents, or with a chat model whose citations it verifies."""

    def __init__(
        self, settings: Settings, tool_config: ToolConfig, searcher: Searcher, chat_models: ChatModels
    ) -> None:
        self._settings, self._tool_config = settings, tool_config
        self._searcher, self._chat_models = searcher, chat_models

    def ask(
        self,
        request: SearchRequest,
        *,
        writer: Writer | None = None,
        use_model: bool = True,
        observer: Observer = NO_OBSERVER,
    ) -> CheckedAnswer:
        """Answer the question of a request with the writer, else the chat model of the settings, else by quoting.

        Without `use_model`, the chat model of the settings is not asked.
        """
        if not request.query.strip():
            raise QueryError("The question is empty", hint="Ask a question in words.")
        # The settings say whether a chat model gives other wordings first.
        sources, notices = self.find_sources(replace(request, rewrite=None if use_model else False), observer=observer)
        self._searcher.log.add(request.query, request.tool)
        if writer is None and use_model:
            writer = self._chat_models.ask_model()
        answer = CheckedAnswer(request.query, [], sources, notices=notices)
        if writer is not None and sources:
            written = self._write(answer, writer)
            if written is not None:
                return written
        answer.sentences = self._quote(request.query, sources)
        return answer

    def find_sources(
        self, request: SearchRequest, *, observer: Observer = NO_OBSERVER
    ) -> tuple[list[AnswerSource], list[str]]:
        """Search for a question and return the numbered passages that an answer may cite, and notices."""
        if request.top_k is None:
            request = replace(request, top_k=self._settings.ask.top_k)
        if request.per_document is None:
            request = replace(request, per_document=_PER_DOCUMENT, fill_up=True)
        answer = self._searcher.answer(replace(request, operators=False), observer=observer)
        passages = self._searcher.passages(answer.hits, "chunk", join_chunks=False)
        return [_to_source(number, passage) for number, passage in enumerate(passages, 1)], answer.notices

    def rewrite_question(self, question: str) -> tuple[Rewriting | None, str]:
        """Return a question as a chat model rewrites it, None unless the settings let it, and a notice."""
        return self._chat_models.rewrite_query(question[:MAX_QUERY_CHARS], None)

    def verify(
        self,
        text: str,
        sources: Sequence[AnswerSource],
        *,
        question: str = "",
        check_source: Callable[[AnswerSource], CitationState] | None = None,
    ) -> list[CheckedSentence]:
        """Return the sentences of an answer, each compared with the sources that it cites.

        `check_source` is for sources that are not in this library.
        """
        return verify_sentences(text, sources, check_source or self.check_source, question=question)

    def check_source(self, source: AnswerSource) -> CitationState:
        """Return whether a passage is still in the library as it was shown."""
        if not source.hash:
            return "changed"
        try:
            return self._searcher.verify_citation(source.citation, source.hash, tool=source.tool or None).status
        except (UnknownName, QueryError):  # the tool was deleted since, or the source is not from this library
            return "deleted"

    def _write(self, answer: CheckedAnswer, writer: Writer) -> CheckedAnswer | None:
        """Return the answer of a model, verified; None, with a notice, if it has none."""
        from bunko.answers.ask import write_answer

        try:
            written = write_answer(
                answer.question, answer.sources, writer, max_chars=self._settings.ask.max_input_chars
            )
        except RemoteFailure as failure:
            answer.notices.append(f"The answer is quoted from the documents. {_describe(writer, failure)}")
            return None
        if not any(char.isalnum() for char in written.text):
            answer.notices.append(f"The answer is quoted from the documents. {writer.label} returned no readable text.")
            return None
        sentences = self.verify(written.text, written.sources, question=answer.question)
        return replace(
            answer, sentences=sentences, sources=written.sources, model=writer.label,
            prompt_tokens=written.prompt_tokens, answer_tokens=written.answer_tokens,
        )  # fmt: skip

    def _quote(self, question: str, sources: Sequence[AnswerSource]) -> list[CheckedSentence]:
        by_number = {source.number: source for source in sources}
        sentences: list[CheckedSentence] = []
        for quote in choose_sentences(question, sources, similarity=self._similarity()):
            citations = tuple(
                CheckedCitation(f"[{number}]", number, state, supports=state in ("same", "moved"))
                for number in quote.sources
                for state in [self.check_source(by_number[number])]
            )
            status: SentenceStatus = "supported" if any(citation.holds for citation in citations) else "unsupported"
            before = "\n" if sentences else ""
            sentences.append(
                CheckedSentence(quote.text, status, citations, best_source=quote.sources[0], before=before)
            )
        return sentences

    def _similarity(self) -> Similarity | None:
        """Return how to compare a question with sentences by the embedder, if that sends nothing anywhere."""
        embedder = self._tool_config.embedder() if self._tool_config.uses_vectors() else None
        if embedder is None or embedder.is_remote:
            return None

        def compare(question: str, texts: Sequence[str]) -> list[float]:
            if not texts:
                return []
            vectors = embed_and_check(embedder, list(texts))
            query = embed_and_check(embedder, [question], query=True)[0]
            return [float(value) for value in vectors @ query]

        return compare


def _describe(writer: Writer, failure: RemoteFailure) -> str:
    """Return why a writer did not answer, as a sentence for a notice."""
    from bunko.llm.client import ChatModel, describe_failure

    return describe_failure(writer, failure) if isinstance(writer, ChatModel) else f"{writer.label}: {failure.message}."


def _to_source(number: int, passage: Passage) -> AnswerSource:
    hit = passage.hit
    return AnswerSource(
        number, hit.tool, hit.uri, passage.citation, passage.text, passage.hash, passage.place, hit.title,
        tuple(passage.headings), hit.date, hit.trust, author=display_label(passage.label.author),
    )  # fmt: skip
