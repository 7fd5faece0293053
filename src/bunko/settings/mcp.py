"""Declare the settings of the tools that conversations use."""

# No `from __future__ import annotations` here: `Setting` reads types from the real annotations.
from bunko.settings.setting import Section, setting


class McpSection(Section):
    """Which MCP servers a conversation uses."""

    enabled: bool = setting(
        True, "Use tools in conversations: those of the servers, or of this library. false: none", "MCP_ENABLED"
    )
    servers_config: str | None = setting(
        None,
        "File with the servers. Not set: config/mcp_servers.json, or only this library if there is no such file",
        "MCP_SERVERS_CONFIG",
    )
    start_timeout: float = setting(30.0, "Maximum time a server takes to start, in seconds", low=0.1)
    call_timeout: float = setting(
        60.0, "Maximum time a call takes, in seconds. A crawl may take as long as its pages may", low=0.1
    )
    max_output_chars: int = setting(100_000, "Maximum length of what a call returns, in characters", low=1000)
