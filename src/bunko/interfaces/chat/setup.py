"""Set up a conversation as the settings say: its model, its limits, and the servers of its tools."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bunko.interfaces.chat.consent import Approve, is_allowed, refuse
from bunko.interfaces.chat.conversation import ChatLimits
from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.server_config import ServerConfig, ServerConfigs, load_server_configs
from bunko.interfaces.chat.server_connection import connect_servers, has_client
from bunko.interfaces.chat.servers import BuiltinServer, ToolServer
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.opening.paths import LibraryPaths, user_config_folder
from bunko.library.rights.audit import local_caller
from bunko.library.rights.user_secret import token_path
from bunko.library.searching.chat_models import chat_connection
from bunko.llm.turns import ChatServer
from bunko.settings import Settings
from bunko.types.access import ALL_RIGHTS, Rights

DEFAULT_SERVERS_FILE = Path("config") / "mcp_servers.json"
_LIST_VARIABLES = ("BUNKO_MCP_SERVERS_CONFIG", "MCP_SERVERS_CONFIG")
# Of the library in this process: its searches, and the collected web pages.
_BUILTIN_TOOLSETS = ("tools", "web")
_BUILTIN = ServerConfig("bunko", "builtin")


@dataclass(frozen=True, slots=True)
class ChatTools:
    """The tools of a conversation, and what is wrong with the list of servers."""

    manager: MCPManager | None  # None: mcp.enabled is false
    problems: tuple[str, ...] = ()
    library_servers: frozenset[str] = frozenset()  # the names under which this library itself is offered
    library_manager: MCPManager | None = None  # of this library alone

    def limited_to(self, rights: Rights) -> ChatTools:
        """Return the tools for a caller with these rights; other servers know nothing of them."""
        if rights.reads_all or self.manager is None:
            return self
        return ChatTools(self.library_manager, (), frozenset((_BUILTIN.name,)), self.library_manager)


@asynccontextmanager
async def open_chat_tools(
    library: Library,
    *,
    environment: Mapping[str, str] = os.environ,
    approve: Approve = refuse,
    with_library: bool = False,
) -> AsyncIterator[ChatTools]:
    """Connect the servers of the list, or only this library if there is no list; disconnect them at the end.

    `approve` is asked before a list from the current folder is used. With `with_library`, this library is offered even
    if the list does not name bunko.
    """
    if not library.settings.mcp.enabled:
        yield ChatTools(None)
        return
    configs = load_list(library, environment=environment, approve=approve)
    if with_library and not any(map(_is_bunko, configs.servers)):
        names = {config.name for config in configs.servers}
        name = next(name for name in (_BUILTIN.name, "library", "") if name not in names)
        configs = ServerConfigs((replace(_BUILTIN, name=name), *configs.servers), configs.problems)
    async with _connect(library, configs) as tools:
        yield tools


@asynccontextmanager
async def open_library_tools(library: Library, names: Sequence[str] = ()) -> AsyncIterator[ChatTools]:
    """Offer this library alone; with names, only these tools of it, and none that changes something."""
    rights = Rights(read=tuple(names)) if names else ALL_RIGHTS
    async with _connect(library, ServerConfigs((_BUILTIN,)), rights) as tools:
        yield tools


@asynccontextmanager
async def _connect(library: Library, configs: ServerConfigs, rights: Rights = ALL_RIGHTS) -> AsyncIterator[ChatTools]:
    settings = library.settings.mcp
    registry = ToolRegistry(lambda: library, toolsets=_BUILTIN_TOOLSETS)
    caller = replace(local_caller("chat"), rights=rights)
    external = [config for config in configs.servers if config.transport != "builtin"]
    token = token_path(library.paths)
    builtin = frozenset(config.name for config in configs.servers if config.transport == "builtin")
    problems = configs.problems
    if external and not has_client():
        names = ", ".join(config.name for config in external)
        problems = (
            *problems,
            f"These MCP servers are not used, because the package mcp is missing or older than version 2: {names}. "
            'Install it with: pip install "bunko[chat]".',
        )
        external = []
    try:
        async with connect_servers(external, start_timeout=settings.start_timeout) as connections:
            servers: dict[str, ToolServer] = {name: BuiltinServer(registry, name, caller) for name in builtin}
            servers |= {connection.name: connection for connection in connections}
            manager = MCPManager(
                [servers[config.name] for config in configs.servers if config.name in servers],
                call_timeout=settings.call_timeout,
                max_output_chars=settings.max_output_chars,
                # The user's own file, as the token of a library is.
                digests_path=token.with_name(f"{token.name}-mcp-tools.json") if external else None,
                own_servers=builtin,
            )
            library_manager = MCPManager(
                [BuiltinServer(registry, _BUILTIN.name, caller)],
                call_timeout=settings.call_timeout,
                max_output_chars=settings.max_output_chars,
                own_servers=(_BUILTIN.name,),
            )
            yield ChatTools(manager, problems, builtin, library_manager)
    finally:
        registry.jobs.stop_all()  # the library belongs to the caller


def _is_bunko(config: ServerConfig) -> bool:
    """Return whether an entry of the list is bunko itself, so that its tools need not be offered twice."""
    words = [Path(config.command).stem, *config.args]
    return config.transport == "builtin" or ("bunko" in words and "serve" in words)


def list_folders(paths: LibraryPaths) -> list[Path]:
    """Return where the list of servers may be: the current folder, the library and the user's config folder.

    The list names commands to run, so that none is read from a folder of documents, which other people may write.
    """
    folders = [Path.cwd(), paths.folder, user_config_folder()]
    documents = paths.docs_dir and paths.docs_dir.resolve()
    return [folder for folder in folders if documents is None or not folder.resolve().is_relative_to(documents)]


def load_list(
    library: Library, *, environment: Mapping[str, str] = os.environ, approve: Approve = refuse
) -> ServerConfigs:
    """Read the list of servers, or return only this library if there is none; see `list_folders`.

    `approve` is asked before a list from the current folder is used, also if a settings file names it by a relative
    path: such a file is about every folder, and what lies in this one may have come with a download.
    """
    path, folders = library.settings.mcp.servers_config, list_folders(library.paths)
    # The lists in these are the user's own: anything else may have come with a download.
    own_folders = {folder.resolve() for folder in (library.paths.folder, user_config_folder())}
    relative = Path(path).expanduser() if path else DEFAULT_SERVERS_FILE
    is_chosen = path is not None and (relative.is_absolute() or path in map(environment.get, _LIST_VARIABLES))
    candidates = {folder: folder / relative for folder in folders if (folder / relative).exists()}
    if path and not candidates:
        return load_server_configs(folders[0] / relative if folders else relative, environment)  # says it is missing
    problems: list[str] = []
    for folder, candidate in candidates.items():
        configs = load_server_configs(candidate, environment)
        external = [config for config in configs.servers if config.transport != "builtin"]
        if is_chosen or folder.resolve() in own_folders or is_allowed(candidate, external, approve):
            return configs._replace(problems=(*problems, *configs.problems))
        problems.append(
            f"{candidate} is not used, because it starts programs and may be from somebody else. "
            "To use it, run bunko chat there and allow it, or set MCP_SERVERS_CONFIG to it."
        )
    return ServerConfigs((_BUILTIN,), tuple(problems))


def build_chat_server(settings: Settings, model: str | None = None) -> ChatServer | None:
    """Return the chat model of the settings, or another model of the same provider; None if no provider is set."""
    chat, connection = settings.chat, chat_connection(settings, model)
    if connection is None:
        return None
    options = connection.request_options(max_tokens=chat.max_tokens, temperature=chat.temperature)
    return ChatServer(connection, request_options=options, timeout=chat.timeout)


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
