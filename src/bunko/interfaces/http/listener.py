"""Open the socket that a server listens on: on loopback, unless other machines are let in on purpose."""

from __future__ import annotations

import socket

from bunko.errors import SettingsError
from bunko.interfaces.sender import LOOPBACK_HOSTS


def open_listening_socket(host: str, port: int, *, allow_remote: bool) -> socket.socket:
    """Return a listening socket; port 0 selects a free port."""
    if host not in LOOPBACK_HOSTS and not allow_remote:
        raise SettingsError(
            f"Listening on {host} would accept connections from other machines",
            hint="Add --allow-remote if you want this, and put a TLS proxy in front of it.",
        )
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise SettingsError(
            f"Cannot listen on {host}, port {port}: {error.strerror}", hint="Choose another --host or --port."
        ) from error
