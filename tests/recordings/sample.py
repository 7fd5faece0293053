"""The library that is recorded: the sample documents as tools, a memo log, and pages of a site on loopback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.recordings.shell import Shell
from tests.site import Answer, Reply, Site, html

EXAMPLES = Path(__file__).parents[2] / "examples" / "library"
TOOLS = {
    "handbook": "How we work: on-call duty, setting up a machine, holidays.",
    "project": "The forecast service: its design, its API and its stations.",
    "travel": "旅先で書いた記録と計画。",
    "recipes": "まかないの料理。",
    "decisions": "Decisions and their reasons.",
    "archive": "創業の頃の古い文章。",
}
# Ranks of equal scores follow from the addresses of documents, so these are the same in each run. No system chooses
# this port by itself.
_PORT = 18_765
# What a document without a date gets as its date; the times of a checkout differ.
_MODIFIED = 1_735_700_400  # 2025-01-01 12:00 in Tokyo
_CHANGELOG = """\
2025-07-14  Maya  <maya@example.com>

\t* 灯台の点検 [点検]: 灯台の点検は毎年七月の第二月曜日に行う。梯子は白浜港から借りる。
\t* Tide gauge [gauge]: The cheap gauge at Chidori harbour drifted by four centimetres.

2025-08-02  Aoki  <aoki@example.com>

\t* 買い物メモ [買い物]: 運動靴と雨具を買う。玉葱も忘れない。
\t* 会議 [会議]: 通知の時刻を見直した。夜九時から朝三時までは鳴らさない。
"""


def _page(title: str, date: str, *paragraphs: str, language: str = "en") -> Reply:
    # Without a date, a page has that of its import, and those of the same second have no order.
    head = f"<title>{title}</title><meta property=article:published_time content={date}>"
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return html(f"<html lang={language}>{head}<main><h1>{title}</h1>{body}</main>")


_PAGES: dict[str, Answer] = {
    "/guide": _page(
        "港の手引き", "2025-06-02", "灯台の点検の日は、港の入口が狭くなります。",
        "係留の料金は一晩で千二百円です。港長の事務所で払います。<a href=/fees>料金</a>", language="ja",
    ),
    "/fees": _page(
        "Mooring fees", "2025-06-03", "Mooring costs 1,200 yen a night. Pay at the harbour office before noon.",
        "Boats under six metres pay half.",
    ),
    "/lighthouse": _page(
        "Lighthouse inspection", "2025-06-04", "The lighthouse is inspected every July. Keep clear of the breakwater.",
    ),
}  # fmt: skip


@contextmanager
def serve_pages() -> Iterator[Site]:
    """Serve the pages while the block runs."""
    with Site(_PAGES, port=_PORT) as site:
        yield site


def write_documents(folder: Path) -> None:
    """Copy the sample documents, and write the memo log."""
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns(".*"))
    (folder / "ChangeLog").write_text(_CHANGELOG, encoding="utf-8")
    for path in sorted(folder.rglob("*")):
        os.utime(path, (_MODIFIED, _MODIFIED))


def build(shell: Shell, documents: Path, site: Site) -> None:
    """Add the tools and import them."""
    for name, description in TOOLS.items():
        shell.record("tool", "add", "-n", name, "-d", description, "-s", str(documents / name))
    shell.record("build", "--input", str(documents / "memos"))
    shell.record(
        "tool", "add", "-n", "changelog", "-d", "港の日誌", "-s", str(documents / "ChangeLog"), "--kind", "memos"
    )
    shell.record("import", "--all")
    shell.record("web", "add", site.url("/guide"), site.url("/fees"), site.url("/missing"))
    shell.record("web", "crawl", site.url("/lighthouse"), "--json")


def change_documents(documents: Path) -> None:
    """Change, add and remove documents, as people do between two searches."""
    overview, new = documents / "project" / "overview.md", documents / "project" / "霧笛.md"
    overview.write_text(
        overview.read_text(encoding="utf-8") + "\n## Foghorns\n\nFoghorns are tested on Mondays.\n", encoding="utf-8"
    )
    new.write_text("# 霧笛\n\n霧笛は月曜日の正午に鳴らす。\n", encoding="utf-8")
    (documents / "recipes" / "curry.md").unlink()
    for path in (overview, new):
        os.utime(path, (_MODIFIED + 86_400, _MODIFIED + 86_400))
