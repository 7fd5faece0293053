"""The `bunko watch` command: import files as they change, until Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli.options import SharedOptions, complete_tool_names, shared_options
from bunko.interfaces.cli.terminal.printing import is_terminal, json_text, print_stderr, replace_controls
from bunko.interfaces.serialize import report_to_dict
from bunko.interfaces.text import format_count
from bunko.library.watch import watch_library
from bunko.messages import translate, translate_reason

if TYPE_CHECKING:
    from bunko.library.watch import WatchEvent


@click.command()
@click.option(
    "--name",
    "-n",
    metavar="NAME",
    help="Watch only this tool, active or not. [all active tools]",
    shell_complete=complete_tool_names,
)
@click.option(
    "--poll",
    type=click.FloatRange(0.1, 86_400),
    metavar="SECONDS",
    help="Check this often instead of waiting for file events; for folders that other machines change.",
)
@shared_options
def command(name: str | None, poll: float | None, shared: SharedOptions) -> None:
    """Import files as they change, until Ctrl-C.

    Changes are imported shortly after the last one, and at least every few seconds while they continue.

    \b
    Example:
      bunko watch
      bunko watch -n api-docs
      bunko watch --docs-dir ~/notes --json
    """
    with _stop_on_signals() as stop:
        watch_library(
            lambda: shared.open(create=shared.docs_dir is not None),
            lambda event: _print_event(event, shared),
            stop,
            name=name,
            poll=poll,
        )


class _StopFlag:
    """Set by a signal handler; an Event could deadlock there: the interrupted thread may hold its lock."""

    def __init__(self) -> None:
        self._stopped = False

    def is_set(self) -> bool:
        """Return whether the watch should stop."""
        return self._stopped

    def set(self) -> None:
        """Request the watch to stop."""
        self._stopped = True


@contextmanager
def _stop_on_signals() -> Iterator[_StopFlag]:
    """Stop the watch cleanly on Ctrl-C or SIGTERM; a second signal stops it at once."""
    stop, process_id = _StopFlag(), os.getpid()
    previous_handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore_handlers() -> None:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)

    def request_stop(_number: int, _frame: object) -> None:
        if os.getpid() != process_id:
            os._exit(1)  # an import worker, forked with our handlers
        stop.set()
        restore_handlers()

    for number in previous_handlers:
        signal.signal(number, request_stop)
    try:
        yield stop
    finally:
        restore_handlers()


def _print_event(event: WatchEvent, shared: SharedOptions) -> None:
    now = datetime.now().astimezone()
    if shared.as_json:
        texts = {"tool": event.tool, "message": event.message, "hint": event.hint}
        fields: dict[str, object] = {key: value for key, value in texts.items() if value}
        if event.kind == "watching":
            fields["tools"] = [
                {"name": watched.tool, "path": watched.path}
                | ({"polled": watched.poll_reason} if watched.poll_reason else {})
                for watched in event.watched_tools
            ]
        if event.report is not None:
            fields |= report_to_dict(event.report)
        values = {"event": event.kind, "at": now.isoformat(timespec="seconds"), **fields}
        click.echo(json_text(values))
        return
    lines = list(_event_lines(event))
    if event.kind in ("problem", "waiting"):
        for line in lines:
            print_stderr(f"{now:%H:%M:%S} {line}")
        return
    for line in lines:
        clock = f"{now:%H:%M:%S}"
        click.echo(f"{click.style(clock, dim=True) if is_terminal() else clock} {replace_controls(line)}")


def _event_lines(event: WatchEvent) -> Iterator[str]:
    """Yield the lines that describe an event, in the user's language."""
    if event.kind == "watching":
        names = ", ".join(watched.tool for watched in event.watched_tools) or "none yet; waiting for bunko tool add"
        tools = format_count(len(event.watched_tools), "tool")
        yield translate(f"Watching {tools}: {names}. Press Ctrl-C to stop.")
        for watched in event.watched_tools:
            polling = f" ({translate(f'polling: {watched.poll_reason}')})" if watched.poll_reason else ""
            yield f"  {watched.tool}: {watched.path}{polling}"
    elif event.kind == "stopped":
        yield translate("Stopped. Imported changes are kept.")
    else:
        tool = f"{event.tool}: " if event.tool else ""
        text = event.message
        if event.report:
            counts = {name: getattr(event.report, name) for name in ("added", "updated", "deleted", "moved")}
            text = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        # On one line; a problem of a document comes after its path.
        path, colon, reason = text.partition(": ")
        is_problem = colon and " " not in path and translate(reason) != reason
        yield tool + (f"{path}: {translate_reason(reason)}" if is_problem else translate_reason(text))
        if event.hint:
            yield f"  {translate(event.hint)}"
