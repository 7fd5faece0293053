"""Describe the Slack app: what it may do, and which events it gets."""

from __future__ import annotations

EVENTS_PATH = "/slack/events"
_SCOPES = (
    "app_mentions:read",
    "chat:write",
    # To see after a crash which replies were already posted, and to get direct messages.
    "channels:history",
    "groups:history",
    "im:history",
    "mpim:history",
)


def build_manifest(request_url: str = "") -> dict[str, object]:
    """Return the manifest of the app: for Socket Mode, or for requests to a URL."""
    address = {"request_url": request_url} if request_url else {}
    return {
        "display_information": {
            "name": "bunko",
            "description": "Answers questions from a library, with sources",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "bunko", "always_online": True},
        },
        "oauth_config": {"scopes": {"bot": list(_SCOPES)}},
        "settings": {
            "event_subscriptions": {**address, "bot_events": ["app_mention", "message.im"]},
            "interactivity": {"is_enabled": True, **address},
            "org_deploy_enabled": False,
            "socket_mode_enabled": not request_url,
            "token_rotation_enabled": False,
        },
    }
