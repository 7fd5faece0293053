"""Measure how much text of known web pages each reader extracts, and its CPU time.

Precision and recall count character 5-grams of letters and digits, as multisets: spaces, punctuation and Markdown
syntax are ignored, so that readers with different layouts are comparable, in any language.
"""

from __future__ import annotations

import html as escapes
import importlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench import clock, corpus
from bench.table import Result, Table, check, number
from bunko.readers import html

PAGES = 60
ROUNDS = 5
GRAM = 5
Reader = Callable[[bytes], str]

_SKIPPED = re.compile(r"[\W_]+")
_FENCE = re.compile(r"(?m)^\s*(?:```|~~~).*$")
_TARGET = re.compile(r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)")
# Notes in the sources of cpprefjp for its site generator: links and colours in listings, page types.
_NOTE = re.compile(r"(?m)^\* .*\[(?:meta|link|color|italic|mathjax)\b[^\]\n]*\]\s*$|\[mark [^\]\n]*\]")
_TAG = re.compile(r"</?(?:a|br|code|del|div|em|img|ins|kbd|li|ol|p|span|strong|su[bp]|table|t[dhr]|ul)\b[^<>\n]*>")
_HEADING = re.compile(r"(?m)^#{1,6}\s+(.+)$")
_CODE = re.compile(r"(?ms)^\s*(```|~~~).*?^\s*\1\s*$")
_RULER = re.compile(r"[-:| \t]+")


class Page(NamedTuple):
    """A page as served, and the Markdown it was generated from."""

    data: bytes
    gold: str


def run(_: object, folders: Sequence[tuple[str, Path]] = ()) -> Result:
    """Read generated pages, and folders with html/NAME.html and gold_md/NAME.md."""
    sets = {"generated pages": [_build_page(text) for _, text in corpus.pages(PAGES)]}
    for label, folder in folders:
        if stored_pages := _load_pages(folder):
            sets[label] = stored_pages
    columns = ("extraction", "precision", "recall", "F1", "headings kept", "table rows kept", "CPU ms a page")
    table, slowest = Table(columns), 0.0
    for label, pages in sets.items():
        readers = _readers()
        steps = {name: _step(read, pages) for name, read in readers.items()}
        times = clock.race(steps, ROUNDS)
        for name, read in readers.items():
            quality = _quality([(read(page.data), page.gold) for page in pages])
            milliseconds = times[name] * 1e3 / len(pages)
            table.rows.append((f"{name}, {label}", *(f"{share:.3f}" for share in quality), number(milliseconds)))
        slowest = max(slowest, times["bunko"] * 1e3 / len(pages))
    return Result({"extraction": table}, [check("reading a web page", slowest, 10, "ms CPU")])


def _readers() -> dict[str, Reader]:
    """Return the reader of bunko and the installed peers."""
    readers: dict[str, Reader] = {"bunko": lambda data: html.read(data).text.text}
    with suppress(ImportError):
        lexbor = importlib.import_module("selectolax.lexbor")
        readers["selectolax, text of body"] = lambda data: _body_text(lexbor.LexborHTMLParser(data))
    with suppress(ImportError):
        plain = importlib.import_module("resiliparse.extract.html2text").extract_plain_text
        decode = importlib.import_module("resiliparse.parse.encoding").bytes_to_str
        readers["resiliparse, main content"] = lambda data: plain(decode(data, "utf-8"), main_content=True)
        readers["resiliparse, whole page"] = lambda data: plain(decode(data, "utf-8"))
    with suppress(ImportError):
        extract = importlib.import_module("trafilatura").extract
        readers["trafilatura, markdown"] = lambda data: extract(data, output_format="markdown") or ""
        readers["trafilatura, favouring recall"] = lambda data: (
            extract(data, output_format="markdown", favor_recall=True) or ""
        )
    return readers


def _body_text(tree: object) -> str:
    tree.strip_tags(["script", "style", "noscript", "template"])  # type: ignore[attr-defined]
    return tree.body.text(separator="\n")  # type: ignore[attr-defined, no-any-return]


def _step(read: Reader, pages: Iterable[Page]) -> Callable[[], None]:
    def step() -> None:
        for page in pages:
            read(page.data)

    return step


def _quality(texts: Sequence[tuple[str, str]]) -> tuple[float, ...]:
    """Return precision, recall and F1, averaged over pages, and the shares of headings and table rows that are kept."""
    precisions, recalls, headings, rows = [], [], [], []
    for extracted, gold in texts:
        extracted_grams, gold_grams = _count_grams(extracted), _count_grams(_strip_markup(gold))
        common_grams = (extracted_grams & gold_grams).total()
        precisions.append(common_grams / max(extracted_grams.total(), 1))
        recalls.append(common_grams / max(gold_grams.total(), 1))
        headings += _kept_flags(_headings(gold), _headings(extracted))
        rows += _kept_flags(_rows(gold), [_letters(line) for line in extracted.split("\n")])
    precision, recall = _mean(precisions), _mean(recalls)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return precision, recall, f1, _mean(headings), _mean(rows)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)


def _count_grams(text: str) -> Counter[str]:
    letters = _letters(text)
    return Counter(letters[start : start + GRAM] for start in range(len(letters) - GRAM + 1))


def _letters(text: str) -> str:
    return _SKIPPED.sub("", unicodedata.normalize("NFKC", text))


def _strip_markup(markdown: str) -> str:
    """Return the visible text of a Markdown source."""
    return escapes.unescape(_TAG.sub("", _TARGET.sub("]", _FENCE.sub("", _NOTE.sub("", markdown)))))


def _headings(markdown: str) -> list[str]:
    return [_letters(_strip_markup(heading)) for heading in _HEADING.findall(_CODE.sub("", markdown))]


def _rows(markdown: str) -> list[str]:
    lines = [line for line in _CODE.sub("", markdown).split("\n") if line.startswith("|")]
    return [_letters(_strip_markup(line)) for line in lines if not _RULER.fullmatch(line)]


def _kept_flags(expected: Sequence[str], actual: Sequence[str]) -> list[bool]:
    lines = Counter(actual)
    return [any(line.endswith(text) for line in lines) if text not in lines else True for text in expected if text]


def _load_pages(folder: Path) -> list[Page]:
    pairs = [(page, folder / "gold_md" / f"{page.stem}.md") for page in sorted((folder / "html").glob("*.html"))]
    return [Page(page.read_bytes(), gold.read_text(encoding="utf-8")) for page, gold in pairs if gold.exists()]


def _build_page(markdown: str) -> Page:
    """Return a page as a site would render Markdown, with a menu, a side column, a banner and a footer."""
    menu = "".join(f'<li><a href="/{word}.html">{word} {index}</a></li>' for index, word in enumerate(_MENU))
    body, table_lines, in_code = [], [], False
    for line in [*markdown.split("\n"), ""]:
        if line.startswith("```"):
            in_code = not in_code
            body.append("<pre><code>" if in_code else "</code></pre>")
        elif in_code:
            body.append(escapes.escape(line))
        elif line.startswith("|"):
            table_lines.append(line)
        else:
            if table_lines:
                body.append(_table(table_lines))
                table_lines = []
            body.append(_block(line))
    return Page(_SITE.format(menu=menu, body="\n".join(body)).encode(), markdown)


_SITE = """<!doctype html>
<html lang="ja"><head><meta charset="utf-8"><title>ページ | サイト</title><style>.x</style>
<script>var menu = "<p>読まない</p>";</script></head><body>
<header><h1>サイト</h1></header><nav><ul>{menu}</ul></nav>
<div class="cookie-banner">クッキーを使います。<button>同意する</button></div>
<main><ol class="breadcrumb">{menu}</ol><article>{body}</article></main>
<aside><h2>新着記事</h2><ul>{menu}</ul></aside>
<footer><p>© サイト運営者 お問い合わせ</p><ul>{menu}</ul></footer></body></html>"""
_MENU = "製品 料金 事例 ブログ 採用 会社概要 お問い合わせ ログイン docs support download pricing".split()


def _table(lines: Sequence[str]) -> str:
    rows = [line.strip("|").split("|") for line in lines if not _RULER.fullmatch(line)]
    table_rows: list[str] = []
    for cells in rows:
        tag = "td" if table_rows else "th"
        table_rows.append(
            "<tr>" + "".join(f"<{tag}>{escapes.escape(cell.strip())}</{tag}>" for cell in cells) + "</tr>"
        )
    return f"<table>{''.join(table_rows)}</table>"


def _block(line: str) -> str:
    text = escapes.escape(line)
    if heading := re.match(r"(#{1,6}) (.*)", text):
        return f"<h{len(heading[1])}>{heading[2]}</h{len(heading[1])}>"
    if item := re.match(r"[-*] (.*)", text):
        return f"<ul><li>{item[1]}</li></ul>"
    return f"<p>{text}</p>" if text.strip() else ""
