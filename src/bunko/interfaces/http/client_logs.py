"""Limit what clients can write into the log of a server: few lines, short ones, and nothing that a terminal obeys."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.requests import ClientDisconnect

from bunko.text.labels import clean_label

CLIENT_LOG = "bunko.http.clients"
# Their warnings are about requests, and some quote them: anybody can cause them, also without a token.
LOGGERS = (CLIENT_LOG, "uvicorn.error")
_SECONDS = 1.0  # between two warnings of a logger
_MAX_CHARS = 200


class ClientLogFilter(logging.Filter):
    """Cleans warnings about requests, and lets one through now and then.

    Those about clients that have gone, and about requests that ended with the server, are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged_at, self._omitted = -_SECONDS, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ClientDisconnect | asyncio.CancelledError):
            return False
        if record.levelno != logging.WARNING:
            return True
        if time.monotonic() - self._logged_at < _SECONDS:
            self._omitted += 1
            return False
        message = clean_label(record.getMessage(), _MAX_CHARS)
        record.msg, record.args = f"{message} ({self._omitted} before it)" if self._omitted else message, ()
        self._logged_at, self._omitted = time.monotonic(), 0
        return True


def limit_client_logs() -> None:
    """Limit the logs about requests."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        for old in [old for old in logger.filters if isinstance(old, ClientLogFilter)]:
            logger.removeFilter(old)
        logger.addFilter(ClientLogFilter())
