"""Render a page of search results for a terminal with Rich."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from bunko.interfaces.cli.terminal.columns import format_age
from bunko.interfaces.cli.terminal.printing import escape_controls, replace_controls
from bunko.interfaces.cli.terminal.tables import (
    best_window,
    cell_width,
    join_paragraphs,
    new_console,
    plain_text,
    print_message,
    shorten_path,
    shorten_text,
    wrap_rows,
)
from bunko.interfaces.result_fields import (
    Tools,
    body_text,
    explanation_rows,
    heading_labels,
    is_memo,
    link,
    location,
)
from bunko.messages import translate
from bunko.search.nearest_sentence import nearest_sentence
from bunko.search.passages import PARTIAL_EXTRACTS, snippet_terms
from bunko.text.readable import readable
from bunko.text.snippets import TermMatch, find_matches, find_sentence

if TYPE_CHECKING:
    from bunko.library.searching.page import Page
    from bunko.search.paging import PageItem
    from bunko.text.snippets import SnippetTerms
    from bunko.types import Hit

# Enough of a hit to recognise it, and three hits on a small terminal; --json prints all of it.
DEFAULT_LINES = 6
EXPLANATION_LINES = 8  # more with --explain
_INDENT = 4
_TAB = "    "
_MAX_TOOL_CELLS = 20
_MIN_LOCATION_CELLS = 12
_GAP = 2
# Analysing a longer text would take longer than the search.
_MAX_EXCERPT_CHARS, _MAX_HIGHLIGHTED_CHARS = 20_000, 100_000
_MATCH_STYLE = "bold red"


def show_page(
    page: Page, *, tools: Tools | None = None, show_tool_names: bool = False, max_rows: int | None = DEFAULT_LINES
) -> None:
    """Show a page of results, best first, each on at most `max_rows` rows; None shows them whole.

    `tools` are those of the library, which links need. The names of tools are shown if there are several.
    """
    console = new_console()
    if not page.results:
        print_message(f"No results among {page.total_chunks} chunks.", "yellow", console=console)
        return
    ascii_only = console.options.ascii_only
    view = _View(
        console.width, page, tools or {}, snippet_terms(page.searched_query), show_tool_names,
        "..." if ascii_only else "…", ">" if ascii_only else "›",
    )  # fmt: skip
    for rank, item in enumerate(page.results, 1):
        for row in view.result_rows(rank, item, max_rows):
            console.print(row, no_wrap=True, overflow="ellipsis")
        console.print()
    print_message(f"{len(page.results)} of {page.total_chunks} chunks, {page.mode}", "dim", console=console)


@dataclass(frozen=True, slots=True)
class _View:
    """How the results of one page are shown."""

    width: int
    page: Page
    tools: Tools
    terms: SnippetTerms
    show_tool_names: bool
    ellipsis: str
    arrow: str

    def result_rows(self, rank: int, item: PageItem, max_rows: int | None) -> list[Text]:
        """Return the rows of a result: what it is, the headings above it, and the part of its text that matches."""
        first, *labels = self._head_rows(rank, item)
        explanation = self._explanation_rows(item)
        more = (
            [self._indented(translate(f"{count} more in this document"), "dim")]
            if (count := item.more_in_document)
            else []
        )
        if max_rows is None:
            return [first, *labels, *explanation, *self._excerpt_rows(item, None), *more]
        # Of little room, the text gets the most: its headings give way first, then what else is in the document.
        room = max_rows - 1 - len(explanation)
        more = more if room > len(more) else []
        labels = labels if room > len(labels) + len(more) else []
        excerpt = self._excerpt_rows(item, room - len(labels) - len(more))
        rows = [first, *labels, *explanation, *excerpt, *more]
        if len(rows) > max_rows or (not excerpt and self._own_text(item).strip()):
            rows = rows[:max_rows]
            rows[-1] = self._cut(rows[-1])
        return rows

    def _head_rows(self, rank: int, item: PageItem) -> Iterator[Text]:
        hit, titles = item.passage.hit, heading_labels(item.passage)
        facts = [(f"{hit.score:.3f}", "green")]
        if hit.reranker_score is not None:  # otherwise the scores would look out of order
            facts.append((translate(f"reranker {hit.reranker_score:.3f}"), "green"))
        if self.show_tool_names:
            facts.append((shorten_text(replace_controls(hit.tool), _MAX_TOOL_CELLS, self.ellipsis), "magenta"))
        if hit.trust:
            facts.append((translate(f"{hit.trust}, fetched {format_age(hit.fetched_at)}"), "yellow"))
        number = f"{rank:>2}".ljust(_INDENT)
        if is_memo(hit, self.tools):
            tags, author = " ".join(f"#{tag}" for tag in hit.tags), item.passage.label.author
            memo_facts = [(hit.date[:10], "green"), (tags, "magenta"), (author, "dim")]
            if hit.title:
                yield self._linked_row(hit.title, number, memo_facts, item)
                number = " " * _INDENT
            else:
                facts += memo_facts
        elif not titles and hit.title and hit.title not in hit.uri:
            titles = [hit.title]
        yield self._linked_row(location(item.passage), number, facts, item)
        if titles:
            label = replace_controls(f" {self.arrow} ".join(titles))
            yield self._indented(shorten_text(label, self.width - _INDENT, self.ellipsis), "magenta")

    def _linked_row(self, name: str, number: str, facts: list[tuple[str, str]], item: PageItem) -> Text:
        """Return a row with a name that opens the result, and facts about it."""
        facts = [(f"   {escape_controls(text)}", style) for text, style in facts if text]
        room = self.width - len(number) - sum(cell_width(text) for text, _ in facts)
        name = shorten_path(escape_controls(name), max(room, _MIN_LOCATION_CELLS), self.ellipsis)
        style = Style(bold=True, color="cyan", link=link(item.passage.hit, self.tools) or None)
        return Text.assemble((number, "bold"), (name, style), *facts)

    def _explanation_rows(self, item: PageItem) -> list[Text]:
        hit = item.passage.hit
        if hit.explanation is None:
            return []
        table = explanation_rows(hit.explanation, hit.score, is_table=True)
        start = max(cell_width(name) for name, _ in table) + _GAP
        width = max(_MIN_LOCATION_CELLS, self.width - _INDENT - start)
        rows = []
        for name, value in table:
            value = replace_controls(value)
            first, *others = [value[row.start :] for row in wrap_rows(value, width)] or [""]
            first = first.removesuffix(others[0]).rstrip() if others else first
            for label, line in (
                (name, first),
                *(("", shorten_text(rest, width, self.ellipsis)) for rest in others[:1]),
            ):
                padded = self._indented(f"{label}{' ' * (start - cell_width(label))}", "dim")
                rows.append(Text.assemble(padded, (line, "yellow")))
        return rows

    def _excerpt_rows(self, item: PageItem, count: int | None) -> list[Text]:
        """Return `count` rows of a result's text that show the matches, or all rows."""
        passage, extract, text = item.passage, self.page.extract, self._own_text(item)
        is_cut_before = extract == "snippet" and passage.chars_before > 0
        is_cut_after = extract in PARTIAL_EXTRACTS and passage.chars_after > 0
        if count is not None and len(text) > _MAX_EXCERPT_CHARS:
            offset = max(0, passage.hit.chunk.start - passage.start)  # the section or document around the hit
            offset = min(offset, len(text) - 1)
            is_cut_before, is_cut_after = is_cut_before or offset > 0, True
            text = text[offset : offset + _MAX_EXCERPT_CHARS]
        text = _as_read(text, passage.hit)
        rows = wrap_rows(text, max(2, self.width - _INDENT))
        matches = find_matches(text, self.terms) if len(text) <= _MAX_HIGHLIGHTED_CHARS else []
        if count is not None and len(rows) > count:
            if count < 1:
                return []
            sentence = find_sentence(text, _as_read(nearest_sentence(passage.hit), passage.hit))
            shown = matches or ([TermMatch(*sentence, "")] if sentence else [])
            start = best_window(rows, shown, self.terms.weights, count)
            is_cut_before = is_cut_before or start > 0
            is_cut_after = is_cut_after or start + count < len(rows)
            rows = rows[start : start + count]
        texts = []
        for row in rows:
            line = Text(text[row.start : row.end])
            for match in matches:
                if match.start < row.end and match.end > row.start:
                    line.stylize(_MATCH_STYLE, max(0, match.start - row.start), match.end - row.start)
            texts.append(Text.assemble(" " * _INDENT, line))
        if texts and is_cut_before:
            texts[0] = Text.assemble((f"{self.ellipsis:>{_INDENT - 1}} ", "dim"), texts[0][_INDENT:])
        if texts and is_cut_after:
            texts[-1] = self._cut(texts[-1])
        return texts

    def _own_text(self, item: PageItem) -> str:
        """Return the text of a result without what the rows above it show."""
        hit = item.passage.hit
        titles = (hit.title,) if is_memo(hit, self.tools) or not item.passage.headings else ()
        return body_text(item, titles=titles)

    def _cut(self, row: Text) -> Text:
        """Return a row that ends with an ellipsis."""
        row = row.copy()
        while cell_width(row.plain) + cell_width(self.ellipsis) > self.width:
            row.right_crop(1)
        row.append(self.ellipsis, "dim")
        return row

    def _indented(self, text: str, style: str) -> Text:
        return plain_text(" " * _INDENT + text, style)


def _as_read(text: str, hit: Hit) -> str:
    """Return a part of a document as people read it."""
    return join_paragraphs(replace_controls(readable(text, hit.uri)).replace("\t", _TAB))
