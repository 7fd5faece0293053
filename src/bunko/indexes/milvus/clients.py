"""Open and close clients of pymilvus: one for each user of a server, and a shared one for each Milvus Lite file."""

from __future__ import annotations

import logging
import secrets
import threading
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from bunko.errors import IndexFailure
from bunko.indexes.options import MilvusOptions
from bunko.runtime.installation import install_command

# A process can open a file once, and pymilvus closes it for all clients.
_clients: dict[str, Any] = {}
_users: Counter[str] = Counter()
_lock = threading.Lock()


def open_client(options: MilvusOptions, *, is_file: bool) -> Any:
    """Return a client that is connected."""
    try:
        from pymilvus import MilvusClient
    except ImportError as error:
        raise IndexFailure(
            "The index milvus needs the package pymilvus",
            hint=f"Install it: {install_command('milvus')}; or set index.kind to embedded.",
        ) from error
    _silence_logs()
    if not is_file:
        return MilvusClient(
            options.uri,
            token=options.token,
            db_name=options.database,
            timeout=options.timeout,
            alias=f"bunko-{secrets.token_hex(8)}",  # else pymilvus shares a connection, and closes it for all
        )
    Path(options.uri).parent.mkdir(parents=True, exist_ok=True)
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that Milvus Lite imports
        if options.uri not in _clients:
            _clients[options.uri] = MilvusClient(options.uri, timeout=options.timeout)
        _users[options.uri] += 1
        return _clients[options.uri]


def close_client(client: Any, options: MilvusOptions, *, is_file: bool) -> None:
    """Close a client, that of a file after its last use."""
    if not is_file:
        with suppress(Exception):  # nothing is lost: each request was complete
            client.close()
        return
    with _lock:
        _users[options.uri] -= 1
        if _users[options.uri] > 0:
            return
        del _clients[options.uri], _users[options.uri]
        with suppress(Exception):
            client.close()
        with suppress(ImportError, AttributeError):  # another version of milvus-lite
            from milvus_lite.server_manager import server_manager_instance

            # It would keep the file until the process ends.
            server_manager_instance.release_server(options.uri)


def _silence_logs() -> None:
    # pymilvus logs each failed request with its traceback; what went wrong is in our errors.
    for name in ("pymilvus", *(key for key in logging.root.manager.loggerDict if key.startswith("pymilvus."))):
        logging.getLogger(name).setLevel(logging.CRITICAL)
