"""Run the Slack bot: take events over a WebSocket or HTTP, work on the outbox, and stop cleanly."""

from __future__ import annotations

import hashlib
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bunko.errors import BunkoError, SettingsError
from bunko.interfaces.chat.setup import build_chat_server, open_chat_tools
from bunko.interfaces.http.app import build_server
from bunko.interfaces.slack.commands import RagCommands
from bunko.interfaces.slack.domains import AllowedDomains
from bunko.interfaces.slack.events import Identity, build_app
from bunko.interfaces.slack.manifest import EVENTS_PATH
from bunko.interfaces.slack.messages import Messages
from bunko.interfaces.slack.outbox import Dispatcher, Feedback, Handler
from bunko.interfaces.slack.rights import parse_entry
from bunko.interfaces.slack.threads import ThreadAnswers
from bunko.interfaces.slack.web_api import (
    Replies,
    SlackApi,
    SlackAway,
    SlackRefused,
    SlackTokenRejected,
    build_client,
    redact,
)
from bunko.library.library import Library
from bunko.protocols import LibraryStorage
from bunko.runtime.installation import install_command
from bunko.types.records import OutboxEntry

if TYPE_CHECKING:
    from slack_bolt import App
    from slack_sdk.signature import SignatureVerifier

_log = logging.getLogger("bunko.slack")

LOCK_SECONDS = 1.0  # between two looks at the stop event
_DAY_SECONDS = 86_400.0


def check_settings(library: Library, *, over_http: bool) -> None:
    """Raise SettingsError if a token or a package is missing."""
    slack = library.settings.slack
    if find_spec("slack_bolt") is None:
        raise SettingsError(
            "The package slack-bolt is not installed", hint=f"Install it with: {install_command('slack')}"
        )
    for entry in slack.tools:
        parse_entry(entry)
    needed = {"SLACK_BOT_TOKEN": slack.bot_token}
    needed |= {"SLACK_SIGNING_SECRET": slack.signing_secret} if over_http else {"SLACK_APP_TOKEN": slack.app_token}
    missing = [name for name, value in needed.items() if not value]
    if missing:
        raise SettingsError(
            f"The bot needs {' and '.join(missing)}",
            hint="Create the app with bunko slack manifest, and set its tokens as environment variables or files.",
        )


async def run_bot(
    library: Library, *, listener: socket.socket | None = None, on_ready: Callable[[Identity], None] = lambda _: None
) -> None:
    """Run the bot until cancelled: on a listening socket, or in Socket Mode without one."""
    slack = library.settings.slack
    api = SlackApi(build_client(slack.bot_token, slack.api_url))
    identity = await _identify(api)
    async with open_chat_tools(library) as tools, anyio.create_task_group() as tasks:
        for problem in tools.problems:
            _log.warning("%s", problem)
        model = build_chat_server(library.settings)
        answers = ThreadAnswers(library, model, tools)
        tasks.start_soon(answers.warn_about_tools)
        settings, messages = library.settings, Messages.from_settings(library.settings)
        domains = AllowedDomains(library.domains, settings.slack.allowed_domains, settings.crawl.allowed_hosts)
        handler = Handler(
            library.outbox,
            Replies(api, identity.user),
            RagCommands(settings, messages, tools, domains),
            answers,
            Feedback(library),
            messages,
            bot_user=identity.user,
            workers=settings.slack.workers,
        )
        outbox = library.outbox
        dispatcher = Dispatcher(outbox, identity.name, handler, keep_seconds=slack.keep_days * _DAY_SECONDS)

        def accept(entry: OutboxEntry) -> None:
            if outbox.add(entry):
                dispatcher.wake()

        app = await _build_app(api, identity, slack.signing_secret, accept)
        try:
            tasks.start_soon(_dispatch_alone, library.storage, identity, dispatcher)
            if listener is not None:
                tasks.start_soon(serve_http, app, listener, slack.signing_secret)
                on_ready(identity)
                await anyio.sleep_forever()
            else:
                async with _socket_mode(app, slack.app_token):
                    on_ready(identity)
                    await anyio.sleep_forever()
        finally:
            if model is not None:
                with anyio.CancelScope(shield=True):
                    await model.close()


async def _identify(api: SlackApi) -> Identity:
    try:
        answer = await api.post("auth.test", {})
    except SlackTokenRejected as rejected:
        raise _token_error(rejected) from None
    except SlackAway as problem:
        raise SettingsError(
            f"Slack cannot be reached: {problem}", hint="Check the network and slack.api_url."
        ) from None
    except SlackRefused as refused:
        raise SettingsError(f"Slack refuses the bot: {refused.error}", hint="Check SLACK_BOT_TOKEN.") from None
    return Identity(str(answer.get("team_id", "")), str(answer.get("user_id", "")), str(answer.get("bot_id", "")))


def _token_error(error: BaseException) -> SettingsError:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return SettingsError(
        f"Slack rejects the token of the bot: {error}",
        hint="Install the app again with the manifest of bunko slack manifest, and set SLACK_BOT_TOKEN.",
    )


async def _build_app(
    api: SlackApi, identity: Identity, signing_secret: str, accept: Callable[[OutboxEntry], object]
) -> App:
    from slack_bolt.error import BoltError

    try:
        return await anyio.to_thread.run_sync(build_app, api.client, identity, signing_secret, accept)
    except BoltError as error:  # it checks the token once more
        raise SettingsError(f"Slack refuses the bot: {redact(str(error))}", hint="Check SLACK_BOT_TOKEN.") from None


async def _dispatch_alone(storage: LibraryStorage, identity: Identity, dispatcher: Dispatcher) -> None:
    """Work on the outbox while no other process of the same bot does; another one takes over if this one ends."""
    async with _hold_lock(storage, identity):
        try:
            await dispatcher.run()
        except BaseExceptionGroup as group:
            if rejected := group.subgroup(SlackTokenRejected):
                raise _token_error(rejected) from None
            raise


@asynccontextmanager
async def _hold_lock(storage: LibraryStorage, identity: Identity) -> AsyncIterator[None]:
    """Hold the lock of a bot; a thread does, because some locks belong to the thread that took them."""
    acquired, stop = threading.Event(), threading.Event()
    errors: list[BunkoError] = []
    name = hashlib.sha256(identity.name.encode()).hexdigest()[:12]

    def hold() -> None:
        lock = storage.lock(f"slack-{name}")
        try:
            while not stop.is_set() and not lock.acquire(LOCK_SECONDS):
                pass
            if not stop.is_set():
                acquired.set()
                stop.wait()
            lock.release()
        except BunkoError as error:
            errors.append(error)
            acquired.set()

    thread = threading.Thread(target=hold, name="bunko-slack-lock", daemon=True)
    thread.start()
    try:
        await anyio.to_thread.run_sync(acquired.wait, abandon_on_cancel=True)
        if errors:
            raise errors[0]
        yield
    finally:
        stop.set()
        acquired.set()  # ends the wait if the lock was never taken
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join, LOCK_SECONDS * 2)


@asynccontextmanager
async def _socket_mode(app: App, app_token: str) -> AsyncIterator[None]:
    """Receive events over Slack's WebSocket, which reconnects by itself."""
    from slack_bolt.adapter.socket_mode import SocketModeHandler
    from slack_sdk.errors import SlackClientError

    handler = SocketModeHandler(app, app_token, logger=_log)
    try:
        await anyio.to_thread.run_sync(handler.connect, abandon_on_cancel=True)
    except SlackClientError:
        raise SettingsError(
            "Slack refuses Socket Mode", hint="Check SLACK_APP_TOKEN, and that Socket Mode is on in the app's settings."
        ) from None
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(handler.close)


_MAX_BODY_BYTES = 1_000_000
_MAX_DIGITS = 12  # of a time in seconds
_CONCURRENT_REQUESTS = 16
BODY_SECONDS = 10.0  # Slack waits for three


def build_http_app(app: App, signing_secret: str) -> Starlette:
    """Return the ASGI app of a bolt app."""
    from slack_bolt import BoltRequest
    from slack_sdk.signature import SignatureVerifier

    limiter = anyio.CapacityLimiter(_CONCURRENT_REQUESTS)
    verifier = SignatureVerifier(signing_secret)

    async def handle(request: Request) -> Response:
        body = b""
        with anyio.move_on_after(BODY_SECONDS) as limit:
            async for part in request.stream():
                body += part
                if len(body) > _MAX_BODY_BYTES:
                    return PlainTextResponse("The request is too large\n", 413)
        if limit.cancelled_caught:
            return PlainTextResponse("The request took too long\n", 408)
        # Bolt checks this too, but only after it has parsed the request.
        if not _is_signed(verifier, request, body):
            return PlainTextResponse("The request is not signed by Slack\n", 401)
        try:
            bolt_request = BoltRequest(body=body.decode(), headers=dict(request.headers.items()))
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError):  # bolt reads the body unchecked
            return PlainTextResponse("The request is not valid\n", 400)
        response = await anyio.to_thread.run_sync(app.dispatch, bolt_request, limiter=limiter)
        headers = {name: values[0] for name, values in response.headers.items()}
        return Response(response.body, response.status, headers)

    return Starlette(routes=[Route(EVENTS_PATH, handle, methods=["POST"])])


def _is_signed(verifier: SignatureVerifier, request: Request, body: bytes) -> bool:
    timestamp, signature = (request.headers.get(f"x-slack-{name}", "") for name in ("request-timestamp", "signature"))
    # The SDK fails on others instead of refusing them.
    is_well_formed = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _MAX_DIGITS
    try:
        return is_well_formed and signature.isascii() and verifier.is_valid(body, timestamp, signature)
    except UnicodeDecodeError:
        return False


class _Server(uvicorn.Server):
    """A server that leaves signals to the bot."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve_http(app: App, listener: socket.socket, signing_secret: str) -> None:
    """Serve a bolt app on a listening socket until cancelled."""
    server = _Server(build_server(build_http_app(app, signing_secret)).config)

    async def serve() -> None:
        with anyio.CancelScope(shield=True):  # requests that it has begun to handle are answered
            await server.serve(sockets=[listener])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await anyio.sleep_forever()
        finally:
            server.should_exit = True
