"""A library full of documents that were made to break a page, and what a page must not do with them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page

from bunko.evaluation.report_store import ReportStore
from bunko.types import Text
from tests.browser.reports import evaluation_report, sweep_report
from tests.browser.sample import open_sample
from tests.page.hostile_documents import LARGE, PAYLOADS, as_text

LONG_LINE_CHARS = 5_000_000
LARGE_BYTES = 10_000_000
HEADINGS = 20_000

_MARKUP = "<script>window.injected = 1</script><img src=x onerror='window.injected = 1'>"
_CLOSING = "</script></title></textarea></style>--><svg onload='window.injected = 1'>"
_QUOTES = '" onmouseover="window.injected = 1" x=\'` autofocus onfocus=\'window.injected = 1'
_TEMPLATE = "{{ 7 * 191 }} ${7 * 191} {% raw %}"  # 1337, if anything computes it
_LINK = "[click here](javascript:window.injected=1) <a href='javascript:window.injected=1'>or here</a>"
RIGHT_TO_LEFT = "\u202e"
BIDI_CHARS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_BIDI = f"invoice {RIGHT_TO_LEFT}gpj.exe \u2067nested \u2066deeper"

# Whatever is shown of a document, each has a word to be found by.
DOCUMENTS = {
    "<img src=x onerror='window.injected = 1'>.md": ("markupword", _MARKUP),
    "\"><svg onload='window.injected = 1'>.md": ("closingword", _CLOSING),
    "' onmouseover='window.injected = 1.md": ("quotesword", _QUOTES),
    "javascript:window.injected=1.md": ("linkword", _LINK),
    f"report{RIGHT_TO_LEFT}dm.md": ("bidiword", _BIDI),
    "#fragment?query=%2e%2e&amp;.md": ("addressword", "../../%2e%2e/%00 &lt;b&gt; &#x27;"),
    "{{ 7 * 191 }}.md": ("templateword", _TEMPLATE),
}
ADDRESSES = {
    "javascript:window.injected=1//": "schemeword",
    "data:text/html,<script>window.injected=1</script>": "dataword",
    'https://192.0.2.1/"onmouseover="window.injected=1\'><script>': "webword",
}
# Links that lead out of the folder, which the library lists as failures.
UNREADABLE = (f"failed {_MARKUP.replace('/', '')}.md", f"failed {RIGHT_TO_LEFT}dm.md")
TOOL, ADDRESS_TOOL, LARGE_TOOL, READ_TOOL = "hostile", "addresses", "large", "read"


def build_hostile_library(folder: Path) -> Path:
    """Import the documents into a new library, and return its folder."""
    documents, large = folder / "documents", folder / "large"
    for file_name, (word, text) in DOCUMENTS.items():
        _write(documents / file_name, word, text)
    for file_name in UNREADABLE:
        (documents / file_name).symlink_to("/etc/hostname")
    large.mkdir()
    (large / "long-line.md").write_text("longword " + "あいう abc " * (LONG_LINE_CHARS // 8), encoding="utf-8")
    headings = "".join(f"{'#' * (1 + number % 6)} manyword {number}\n\ntext {number}\n\n" for number in range(HEADINGS))
    (large / "headings.md").write_text(headings, encoding="utf-8")
    sections = (f"## largeword {number}\n\n{'word ' * 100}\n\n" for number in range(LARGE_BYTES // 525))
    (large / "ten-megabytes.md").write_text("".join(sections), encoding="utf-8")
    with open_sample(folder / "library") as library:
        library.add(documents, name=TOOL, description=_MARKUP + _QUOTES + _BIDI)
        library.add(large, name=LARGE_TOOL, description="Large documents.")
        library.import_(TOOL, LARGE_TOOL)
        (folder / "addresses").mkdir()
        tool = library.add(folder / "addresses", name=ADDRESS_TOOL, description=_CLOSING)
        library.replace_texts(
            tool,
            {
                address: Text(f"# {word} {_MARKUP}\n\n{word} {_LINK}\n", "text/markdown", "utf-8", title=_MARKUP)
                for address, word in ADDRESSES.items()
            },
        )
        (folder / "read").mkdir()
        tool = library.add(folder / "read", name=READ_TOOL, description="Read as what they are.")
        library.replace_texts(tool, {name: as_text(document) for name, document in (PAYLOADS | LARGE).items()})
        for query in (_MARKUP, _QUOTES, _BIDI):
            library.store.cache.log_search(query, TOOL, "2026-03-01", limit=100)
    _keep_reports(folder / "library")
    return folder / "library"


def document_path(tool: str, name: str) -> str:
    """Return the address of a document's page."""
    return f"/documents/{quote(tool, safe='')}/{quote(name, safe='/')}"


def assert_harmless(page: Page) -> None:
    """Fail if text of a document became markup, ran, leads into a script, or turns the text around it."""
    assert page.evaluate("window.injected") is None
    assert "1337" not in page.locator("body").inner_text()
    assert page.evaluate(_FIND_HANDLERS) == []
    assert page.evaluate(_FIND_LINKS) == []
    assert page.evaluate(_FIND_TURNED_TEXT) == []


_FIND_HANDLERS = """() => [...document.querySelectorAll("*")].filter(element =>
    element.localName === "iframe" || element.localName === "object" || element.localName === "base"
    || (element.localName === "script" && element.type !== "application/json" && !element.src)
    || (element.localName === "img" && element.closest("main"))
    || element.getAttributeNames().some(name => name.startsWith("on")
        || name === "style" && element.closest("main") && element.id !== "tip")
).map(element => element.outerHTML.slice(0, 300))"""

_FIND_LINKS = """() => [...document.querySelectorAll("[href], [src], [action], [formaction]")].filter(element =>
    ["href", "src", "action", "formaction"].some(name => element.hasAttribute(name)
        && !["http:", "https:"].includes(new URL(element.getAttribute(name), document.baseURI).protocol))
).map(element => element.outerHTML.slice(0, 300))"""

# A character that turns the direction of writing must not reach beyond the text that it belongs to.
_FIND_TURNED_TEXT = """() => {
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (!/[\\u202a-\\u202e\\u2066-\\u2069]/.test(node.data) || node.parentElement.closest("script")) continue;
        const kept = [node.parentElement, node.parentElement.parentElement].some(element =>
            ["isolate", "isolate-override", "plaintext"].includes(getComputedStyle(element).unicodeBidi));
        if (!kept) found.push(node.parentElement.outerHTML.slice(0, 300));
    }
    return found;
}"""


def _keep_reports(library_folder: Path) -> None:
    """Keep reports whose names are markup and whose numbers are text, as a folder from elsewhere may hold them."""
    reports = ReportStore(library_folder)
    for report in (evaluation_report(), sweep_report()):
        text = json.dumps(report)
        for plain, hostile in (
            ('"handbook"', json.dumps(_MARKUP + _BIDI)),
            ('"hybrid"', json.dumps(_CLOSING)),
            ('"bm25"', json.dumps(_QUOTES)),
            ('"vector_weight"', json.dumps(_CLOSING + _QUOTES)),
            (json.dumps("holidays in May"), json.dumps(_MARKUP + _TEMPLATE)),
            ('"not proven"', json.dumps(_MARKUP)),
        ):
            text = text.replace(plain, hostile)
        reports.keep(json.loads(text))
    text = json.dumps(evaluation_report()).replace("0.74", json.dumps(_MARKUP)).replace("-03-02T", "-03-04T")
    reports.keep(json.loads(text))


def _write(path: Path, word: str, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tags = [_MARKUP[:60], _QUOTES[:60], f"{RIGHT_TO_LEFT}tag"]
    listed = ", ".join("'" + tag.replace("'", "''") + "'" for tag in tags)
    title = (word + " " + text).replace("'", "''")
    content = f"---\ntitle: '{title}'\ntags: [{listed}]\ndate: 2024-05-01\n---\n# {word} {text}\n\n{word} {text}\n"
    path.write_text(content, encoding="utf-8")
