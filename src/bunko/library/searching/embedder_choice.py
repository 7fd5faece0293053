"""Choose the embedder of a search over several tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bunko.library.importing.outages import Outages
from bunko.library.searching.embedder_arguments import is_earlier_model, missing_reason
from bunko.library.tools.build_config import ToolConfig
from bunko.protocols import Embedder
from bunko.types import Tool


class EmbedderChoice(NamedTuple):
    """The embedder of a search, and the tools whose words alone are searched."""

    embedder: Embedder | None = None
    lexical_ids: Sequence[int] = ()
    notices: Sequence[str] = ()


NO_EMBEDDER = EmbedderChoice()


def choose_embedder(tool_config: ToolConfig, outages: Outages, tools: Sequence[Tool]) -> EmbedderChoice:
    """Choose the embedder of most tools; the words of the others are searched, and a notice says why."""
    by_name: dict[str, tuple[Embedder, list[Tool]]] = {}
    notices, lexical_ids = [], []
    for tool in tools:
        if embedder := tool_config.embedder_of(tool):
            by_name.setdefault(tool.built.embedder or embedder.label, (embedder, []))[1].append(tool)
        elif problem := tool_config.embedder_problem(tool):
            notices.append(
                f"Only the words of {tool.name} are searched: {problem}. {embedder_remedy(tool_config, tool)}"
            )
            lexical_ids.append(tool.id)
    if not by_name:
        return EmbedderChoice(None, lexical_ids, notices)
    embedder, chosen = max(by_name.values(), key=lambda item: len(item[1]))
    for other, other_tools in by_name.values():
        if other is not embedder:
            names = ", ".join(tool.name for tool in other_tools)
            notices.append(
                f"Only the words of {names} are searched: its vectors and those of {chosen[0].name} come from"
                " different embedders."
            )
            lexical_ids += [tool.id for tool in other_tools]
    if reason := outages.reason(embedder):
        return EmbedderChoice(None, lexical_ids, [*notices, words_only_notice(reason)])
    return EmbedderChoice(embedder, lexical_ids, notices)


def embedder_remedy(tool_config: ToolConfig, tool: Tool) -> str:
    """Return what to do about a tool whose embedder cannot be used."""
    reason = missing_reason(tool.built.embedder or "", tool_config.embedder())
    if not reason and is_earlier_model(tool.built.embedder or "", tool_config.embedder()):
        return f"Compute them again: {tool_config.rebuild_command(tool)}"
    return reason or f"Set it again, or use the current one: {tool_config.rebuild_command(tool)}"


def words_only_notice(reason: str) -> str:
    """Return a notice for a search whose embedder failed."""
    return f"Only words were searched, because the embedder failed: {reason.rstrip('.')}."
