"""Web pages whose text is known come in; how much of it each reader finds, and at what CPU time, goes out.

Precision and recall count character 5-grams of letters and digits, as multisets: blanks, punctuation and the marks of
Markdown are not looked at, so readers that lay a text out differently are measured alike, in any language.
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
# What cpprefjp's sources say to its site generator: which words of a listing are links or coloured, what a page is.
_NOTE = re.compile(r"(?m)^\* .*\[(?:meta|link|color|italic|mathjax)\b[^\]\n]*\]\s*$|\[mark [^\]\n]*\]")
_TAG = re.compile(r"</?(?:a|br|code|del|div|em|img|ins|kbd|li|ol|p|span|strong|su[bp]|table|t[dhr]|ul)\b[^<>\n]*>")
_HEADING = re.compile(r"(?m)^#{1,6}\s+(.+)$")
_CODE = re.compile(r"(?ms)^\s*(```|~~~).*?^\s*\1\s*$")
_RULER = re.compile(r"[-:| \t]+")


class Page(NamedTuple):
    """A page as it is served, and the Markdown that it was made from."""

    data: bytes
    gold: str


def run(_: object, folders: Sequence[tuple[str, Path]] = ()) -> Result:
    """Read generated pages, and folders that hold html/NAME.html with gold_md/NAME.md."""
    sets = {"generated pages": [_generated(text) for _, text in corpus.pages(PAGES)]}
    for label, folder in folders:
        if found := _stored(folder):
            sets[label] = found
    head = ("extraction", "precision", "recall", "F1", "headings kept", "table rows kept", "CPU ms a page")
    table, limit = Table(head), 0.0
    for label, pages in sets.items():
        readers = _readers()
        steps = {name: _step(read, pages) for name, read in readers.items()}
        times = clock.race(steps, ROUNDS)
        for name, read in readers.items():
            shares = _shares([(read(page.data), page.gold) for page in pages])
            spent = times[name] * 1e3 / len(pages)
            table.rows.append((f"{name}, {label}", *(f"{share:.3f}" for share in shares), number(spent)))
        limit = max(limit, times["bunko"] * 1e3 / len(pages))
    return Result({"extraction": table}, [check("reading a web page", limit, 10, "ms CPU")])


def _readers() -> dict[str, Reader]:
    """Return bunko's reader and those of its peers that are installed."""
    readers: dict[str, Reader] = {"bunko": lambda data: html.read(data).text.text}
    with suppress(ImportError):
        lexbor = importlib.import_module("selectolax.lexbor")
        readers["selectolax, text of body"] = lambda data: _bare(lexbor.LexborHTMLParser(data))
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


def _bare(tree: object) -> str:
    tree.strip_tags(["script", "style", "noscript", "template"])  # type: ignore[attr-defined]
    return tree.body.text(separator="\n")  # type: ignore[attr-defined, no-any-return]


def _step(read: Reader, pages: Iterable[Page]) -> Callable[[], None]:
    def step() -> None:
        for page in pages:
            read(page.data)

    return step


def _shares(texts: Sequence[tuple[str, str]]) -> tuple[float, ...]:
    """Return precision, recall and F1, means over pages, and the shares of headings and of table rows that are kept."""
    precisions, recalls, headings, rows = [], [], [], []
    for found, gold in texts:
        own, wanted = _grams(found), _grams(_unmarked(gold))
        common = (own & wanted).total()
        precisions.append(common / max(own.total(), 1))
        recalls.append(common / max(wanted.total(), 1))
        headings += _kept(_headings(gold), _headings(found))
        rows += _kept(_rows(gold), [_letters(line) for line in found.split("\n")])
    precision, recall = _mean(precisions), _mean(recalls)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return precision, recall, f1, _mean(headings), _mean(rows)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)


def _grams(text: str) -> Counter[str]:
    letters = _letters(text)
    return Counter(letters[at : at + GRAM] for at in range(len(letters) - GRAM + 1))


def _letters(text: str) -> str:
    return _SKIPPED.sub("", unicodedata.normalize("NFKC", text))


def _unmarked(markdown: str) -> str:
    """Return what a Markdown text says once it is a page."""
    return escapes.unescape(_TAG.sub("", _TARGET.sub("]", _FENCE.sub("", _NOTE.sub("", markdown)))))


def _headings(markdown: str) -> list[str]:
    return [_letters(_unmarked(one)) for one in _HEADING.findall(_CODE.sub("", markdown))]


def _rows(markdown: str) -> list[str]:
    lines = [line for line in _CODE.sub("", markdown).split("\n") if line.startswith("|")]
    return [_letters(_unmarked(line)) for line in lines if not _RULER.fullmatch(line)]


def _kept(wanted: Sequence[str], found: Sequence[str]) -> list[bool]:
    there = Counter(found)
    return [any(one.endswith(want) for one in there) if want not in there else True for want in wanted if want]


def _stored(folder: Path) -> list[Page]:
    pairs = [(page, folder / "gold_md" / f"{page.stem}.md") for page in sorted((folder / "html").glob("*.html"))]
    return [Page(page.read_bytes(), gold.read_text(encoding="utf-8")) for page, gold in pairs if gold.exists()]


def _generated(markdown: str) -> Page:
    """Return a page as a site would make it of Markdown, with a menu, a side column, a banner and a foot around."""
    menu = "".join(f'<li><a href="/{word}.html">{word} {number}</a></li>' for number, word in enumerate(_MENU))
    body, listing, fenced = [], [], False
    for line in [*markdown.split("\n"), ""]:
        if line.startswith("```"):
            fenced = not fenced
            body.append("<pre><code>" if fenced else "</code></pre>")
        elif fenced:
            body.append(escapes.escape(line))
        elif line.startswith("|"):
            listing.append(line)
        else:
            if listing:
                body.append(_table(listing))
                listing = []
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
    made = []
    for cells in rows:
        tag = "td" if made else "th"
        made.append("<tr>" + "".join(f"<{tag}>{escapes.escape(cell.strip())}</{tag}>" for cell in cells) + "</tr>")
    return f"<table>{''.join(made)}</table>"


def _block(line: str) -> str:
    text = escapes.escape(line)
    if heading := re.match(r"(#{1,6}) (.*)", text):
        return f"<h{len(heading[1])}>{heading[2]}</h{len(heading[1])}>"
    if item := re.match(r"[-*] (.*)", text):
        return f"<ul><li>{item[1]}</li></ul>"
    return f"<p>{text}</p>" if text.strip() else ""
