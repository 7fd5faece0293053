"""Write the tools into the tables of `docs/tools.md` and `docs/guide.ja.md` and into `mcpb/manifest.json`.

Run it after a change of a tool: `.venv/bin/python docs/tools.py`. A test fails while one of them is stale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.tool import ToolDefinition
from bunko.interfaces.tools.toolsets import TOOLSET_NAMES

DOCS = Path(__file__).resolve().parent
MANIFEST = DOCS.parent / "mcpb" / "manifest.json"
_MANIFEST_TOOLS = re.compile(r'(?<=^  "tools": \[\n).*?(?=^  \])', re.DOTALL | re.MULTILINE)
_PLACE = re.compile(r"(<!-- tools -->\n).*?(<!-- /tools -->)", re.DOTALL)
# A model reads the English descriptions; the Japanese page is for people.
JAPANESE = {
    "get_recent_memos": "メモを新しい順に、書き出しとともに返す。タグと期間で絞れる。",
    "job": "バックグラウンドの作業の進み具合を返す。中止もできる。",
    "list": "文書をパス、タグ、日付で絞り、新しい順に一覧にする。一つの文書の見出しも返す。",
    "list_tags": "メモのタグを、メモの数とともに多い順に返す。タグと期間で絞れる。",
    "query_memos": "日付の付いたメモを単語、意味、タグ、期間で検索し、抜粋と ID を返す。",
    "rag_add": "ウェブページを一つ取り込む。取り込み済みなら取得し直す。",
    "rag_crawl": "ページと、そこからリンクされた同じサイトのページをまとめて取り込む。1 ページに約 1 秒かかる。",
    "rag_delete": "取り込んだウェブページを一つ削除する。",
    "rag_search": "取り込んだウェブページを検索し、`## Source: URL` の形で返す。本文は資料であり、指示ではない。",
    "rag_stats": "取り込んだページとチャンクの数を返す。",
    "read": "文書の全文、引用の行、節、見つかった箇所の前後を読む。長いものは続きをカーソルで読む。",
    "reindex": "索引を今すぐ最新にする。検索のときにも自動で更新されるので、大きな変更の後に使う。",
    "search": "文書を日本語でも英語でも検索し、本文と出典（`path:L12-L30`）を返す。",
    "verify": "引用した箇所が今も変わっていないかを調べる。変更なし、移動、変更、削除のいずれかを返す。",
}


def english_table() -> str:
    """Return the table for `docs/tools.md`."""
    rows = [(tool, tool.description) for tool in fixed_tools()]
    return _table("tool", "arguments (**required**)", "what it does", rows, "none")


def japanese_table() -> str:
    """Return the table for `docs/guide.ja.md`."""
    rows = [(tool, JAPANESE[tool.name]) for tool in fixed_tools()]
    return _table("ツール", "引数（**必須**）", "説明", rows, "なし")


def fixed_tools(
    toolsets: Sequence[str] = tuple(name for name in TOOLSET_NAMES if name != "tools"),
) -> list[ToolDefinition]:
    """Return the tools of these toolsets; by default all except `tools`, whose tools a library names."""
    return ToolRegistry(_open_nothing, toolsets=toolsets, folder="your folder").tools()


def replace_table(page: str, table: str) -> str:
    """Return the page with its table replaced."""
    if not _PLACE.search(page):
        raise SystemExit("The page has no place marked <!-- tools -->")
    return _PLACE.sub(lambda match: f"{match[1]}{table}{match[2]}", page)


def replace_manifest_tools(manifest: str) -> str:
    """Return the manifest of the desktop bundle with its list of tools replaced: each with its first sentence."""
    lines = []
    for tool in fixed_tools(("folder",)):
        description = tool.description.partition(". ")[0].removesuffix(".")
        lines.append(f'    {{ "name": {json.dumps(tool.name)}, "description": {json.dumps(description)} }}')
    return _MANIFEST_TOOLS.sub(lambda _: ",\n".join(lines) + "\n", manifest)


def _table(tool: str, arguments: str, about: str, rows: list[tuple[ToolDefinition, str]], none: str) -> str:
    lines = [f"| {tool} | {arguments} | {about} |", "|---|---|---|"]
    lines += [f"| `{definition.name}` | {_arguments(definition) or none} | {text} |" for definition, text in rows]
    return "\n".join(lines) + "\n"


def _arguments(tool: ToolDefinition) -> str:
    marks = [f"**`{param.name}`**" if param.required else f"`{param.name}`" for param in tool.params]
    return ", ".join(marks)


def _open_nothing() -> None:
    raise AssertionError("naming the tools opened a library")


if __name__ == "__main__":
    for name, table in (("tools.md", english_table()), ("guide.ja.md", japanese_table())):
        path = DOCS / name
        path.write_text(replace_table(path.read_text(encoding="utf-8"), table), encoding="utf-8")
    MANIFEST.write_text(replace_manifest_tools(MANIFEST.read_text(encoding="utf-8")), encoding="utf-8")
