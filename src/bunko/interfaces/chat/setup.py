"""Set up a conversation as the settings say: its model, its limits, and the servers of its tools."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bunko.interfaces.chat.builtin_server import BuiltinServer
from bunko.interfaces.chat.conversation import ChatLimits
from bunko.interfaces.chat.mcp_manager import MCPManager, connect_servers
from bunko.interfaces.chat.server_config import ServerConfig, ServerConfigs, load_server_configs
from bunko.interfaces.chat.servers import ToolServer
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.paths import LibraryPaths, user_config_folder
from bunko.library.user_secret import token_path
from bunko.llm.client import PRESETS
from bunko.llm.turns import ChatServer
from bunko.settings import Settings

DEFAULT_SERVERS_FILE = Path("config") / "mcp_servers.json"
# Of the library in this process: its searches, and the collected web pages.
_BUILTIN_TOOLSETS = ("tools", "web")
_BUILTIN = ServerConfig("bunko", "builtin")


@dataclass(frozen=True, slots=True)
class ChatTools:
    """The tools of a conversation, and what is wrong with the list of servers."""

    manager: MCPManager | None  # None: mcp.enabled is false
    problems: tuple[str, ...] = ()
    is_local: bool = True  # all of them are tools of this library


@asynccontextmanager
async def open_chat_tools(
    library: Library, *, folders: Sequence[Path] | None = None, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[ChatTools]:
    """Connect the servers of the list, or only this library if there is no list; disconnect them at the end.

    A relative path of the list is looked for in the folders; see `list_folders`.
    """
    settings = library.settings.mcp
    if not settings.enabled:
        yield ChatTools(None)
        return
    folders = list_folders(library.paths) if folders is None else folders
    configs = _load_list(settings.servers_config, folders, environment)
    registry = ToolRegistry(lambda: library, toolsets=_BUILTIN_TOOLSETS)
    external = [config for config in configs.servers if config.transport != "builtin"]
    try:
        async with connect_servers(external, start_timeout=settings.start_timeout) as connections:
            connected: dict[str, ToolServer] = {connection.name: connection for connection in connections}
            yield ChatTools(
                MCPManager(
                    [connected.get(config.name) or BuiltinServer(registry, config.name) for config in configs.servers],
                    call_timeout=settings.call_timeout,
                    max_output_chars=settings.max_output_chars,
                    digests_path=_digests_path(library.paths),
                ),
                configs.problems,
                not external,
            )
    finally:
        registry.jobs.stop_all()  # the library belongs to the caller


def list_folders(paths: LibraryPaths) -> list[Path]:
    """Return where the list of servers may be: the current folder, the library and the user's config folder.

    The list names commands to run, so that none is read from a folder of documents, which somebody else may write.
    """
    folders = [Path.cwd(), paths.folder, user_config_folder()]
    documents = paths.docs_dir
    return [folder for folder in folders if documents is None or not _is_inside(folder, documents)]


def _is_inside(folder: Path, documents: Path) -> bool:
    return folder.resolve().is_relative_to(documents.resolve())


def _load_list(path: str | None, folders: Sequence[Path], environment: Mapping[str, str]) -> ServerConfigs:
    relative = Path(path).expanduser() if path else DEFAULT_SERVERS_FILE
    candidates = [folder / relative for folder in folders]
    for candidate in candidates:
        if candidate.exists():
            return load_server_configs(candidate, environment)
    if path:
        return load_server_configs(candidates[0] if candidates else relative, environment)  # says that it is missing
    return ServerConfigs((_BUILTIN,))


def _digests_path(paths: LibraryPaths) -> Path:
    """Return the file that remembers the tools of the servers; it is the user's own, as the token of a library is."""
    token = token_path(paths)
    return token.with_name(f"{token.name}-mcp-tools.json")


def build_chat_server(settings: Settings) -> ChatServer | None:
    """Return the chat model of the settings, or None if there is none."""
    chat, embedding = settings.chat, settings.embedding
    if chat.provider is None:
        return None
    preset = PRESETS[chat.provider]
    secret = chat.api_key
    if not secret and not chat.base_url:  # a provider's key is sent to that provider only
        secret = getattr(embedding, f"{chat.provider}_api_key", "")
    model = chat.model or preset.model
    # OpenAI's newer models accept only the newer name, and most other servers only the older one.
    length_name = "max_completion_tokens" if chat.provider == "openai" else "max_tokens"
    options: dict[str, Any] = {"model": model, length_name: chat.max_tokens}
    if chat.temperature is not None:
        options["temperature"] = chat.temperature
    if chat.provider == "openrouter" and (preferences := _provider_preferences(settings)):
        options["extra_body"] = {"provider": preferences}
    return ChatServer(
        f"{chat.provider}:{model}",
        address=(chat.base_url or getattr(embedding, f"{chat.provider}_base_url")).rstrip("/"),
        secret=secret,
        fix=f"Set {preset.key_variable or 'chat.api_key'} to a valid key.",
        request_options=options,
        timeout=chat.timeout,
    )


def _provider_preferences(settings: Settings) -> dict[str, Any]:
    chat = settings.chat
    preferences = {
        "order": list(chat.provider_order), "sort": chat.provider_sort,
        "allow_fallbacks": chat.allow_fallbacks, "data_collection": chat.data_collection,
    }  # fmt: skip
    return {name: value for name, value in preferences.items() if value not in (None, [])}


def chat_limits(settings: Settings) -> ChatLimits:
    """Return what an answer may cost."""
    chat = settings.chat
    return ChatLimits(
        rounds=chat.max_rounds,
        tokens=chat.max_total_tokens,
        seconds=chat.max_seconds,
        cost=chat.max_cost,
        history_tokens=chat.history_tokens,
        input_price=chat.input_price,
        output_price=chat.output_price,
    )


def crawl_timeout(settings: Settings) -> float:
    """Return how long a call of rag_crawl may take, in seconds: as long as all of its pages may."""
    crawl = settings.crawl
    return max(settings.mcp.call_timeout, crawl.max_pages * (crawl.delay_sec + crawl.timeout_seconds))
