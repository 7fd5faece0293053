"""Run the servers of bunko as programs, and ask them what assistants, programs, browsers and Slack ask."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from tests.mcp.stdio_process import Process
from tests.recordings.question_files import read_calls, read_lines, read_queries, read_requests
from tests.recordings.recording import Recording
from tests.slack.slack_service import BOT_TOKEN, SIGNING_SECRET, Sender, slack_service

TOKEN = "the-token-of-the-recordings"
_TOOLSETS = ("folder", "tools", "memos", "web", "all")
_PATIENCE = 120.0
_HEADERS = ("content-type", "location", "etag", "cache-control", "content-security-policy")


class Places:
    """Replaces HOME and SITE in a question by where they are."""

    def __init__(self, home: Path, site: str) -> None:
        self._values = {"HOME": str(home), "SITE": site}

    def fill(self, value: Any) -> Any:
        """Return a value with the places in its texts."""
        if isinstance(value, str):
            for name, place in self._values.items():
                value = value.replace(name, place)
            return value
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        return [self.fill(item) for item in value] if isinstance(value, list) else value


def record_mcp(recording: Recording, folder: Path, library: Path, environ: Mapping[str, str], places: Places) -> None:
    """Ask an MCP server over stdio with each toolset, one that only reads, and one of a folder."""
    servers = {name: ["--library", library, "--toolsets", name] for name in _TOOLSETS}
    servers["read-only"] = [*servers["all"], "--read-only"]
    servers["docs-dir"] = ["--docs-dir", folder / "documents" / "travel"]
    for name, options in servers.items():
        door = f"mcp-{name}"
        calls = read_calls(door if name in _TOOLSETS else "mcp-tools")
        if name == "folder":
            calls += [("search", {"query": query, "top_k": 3}) for query in read_queries()]
        server = Process(folder, *options, environ=environ)
        try:
            recording.add(door, "initialize", server.shake_hands())
            recording.add(door, "tools/list", server.ask("tools/list"))
            recording.add(door, "resources/list", server.answer(server.send("resources/list", {})))
            cursor = ""
            for tool, arguments in calls:
                filled = {
                    key: cursor if value == "PREVIOUS_CURSOR" else places.fill(value)
                    for key, value in arguments.items()
                }
                answer = server.answer(server.send("tools/call", {"name": tool, "arguments": filled}))
                answer.pop("id")
                recording.add(door, [tool, arguments], answer)
                cursor = find_value(answer, "next_cursor") or cursor
        finally:
            server.end()


def find_value(answer: Any, name: str) -> str:
    """Return the first text of this name anywhere in an answer."""
    if isinstance(answer, dict):
        if isinstance(answer.get(name), str):
            return str(answer[name])
        answer = list(answer.values())
    if isinstance(answer, list):
        return next((value for item in answer if (value := find_value(item, name))), "")
    return ""


def encode(address: str) -> str:
    """Return an address whose parts are written as people read them as a browser sends it."""
    path, _, query = address.partition("?")
    return f"{quote(path)}?{urlencode(parse_qsl(query, keep_blank_values=True))}" if query else quote(path)


class Web:
    """A server of the API and the page."""

    def __init__(self, recording: Recording, port: int, places: Places) -> None:
        self._recording, self._port, self._places = recording, port, places
        self._cookie = ""

    def sign_in(self) -> None:
        """Give the page the token, as a form does."""
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{self._port}"}
        reply = self._send("POST", "/login", urlencode({"token": TOKEN}), form)
        self._cookie = reply["headers"]["set-cookie"].partition(";")[0]

    def record_api(self) -> None:
        """Ask for everything that programs ask for."""
        for query in read_queries():
            parameters = urlencode({"q": query, "top_k": 4, "explain": "true"})
            self._recording.add("api", ["search", query], self._call("GET", f"search?{parameters}"))
        cursor = selection = ""
        for method, path, body in read_requests():
            filled = path.replace("PREVIOUS_CURSOR", cursor).replace("PREVIOUS_ID", selection)
            answer = self._call(method, encode(filled), self._places.fill(body))
            cursor = find_value(answer["body"], "next_cursor") or cursor
            if path == "selections" and (found := find_value(answer["body"], "id")):
                selection = found
                self._recording.replacements[selection] = "SELECTION"  # made with a secret of this library
            if "PREVIOUS_ID" in path:
                del answer["etag"]
            self._recording.add("api", [method, path, body], answer)

    def record_pages(self) -> None:
        """Ask for all pages, in both languages."""
        for language in ("en", "ja"):
            for address in read_lines("pages"):
                path = encode(f"{address}{'&' if '?' in address else '?'}lang={language}")
                headers = {"Accept": "text/html", "Cookie": self._cookie}
                answer = self._send("GET", path, None, headers)
                body = re.sub(r"/assets/[0-9a-f]+/", "/assets/DIGEST/", answer["text"])
                shown = {name: value for name, value in answer["headers"].items() if name in _HEADERS}
                self._recording.add("page", [language, address], {"status": answer["status"], **shown, "text": body})

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        answer = self._send(method, f"/api/v1/{path}", None if body is None else json.dumps(body), headers)
        is_json = "json" in answer["headers"].get("content-type", "")
        shown = {name: value for name, value in answer["headers"].items() if name in _HEADERS}
        return {"status": answer["status"], **shown, "body": json.loads(answer["text"]) if is_json else answer["text"]}

    def _send(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE)
        try:
            connection.request(method, path, body.encode() if body else None, dict(headers))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.headers.items()}
            return {"status": response.status, "headers": found, "text": response.read().decode()}
        finally:
            connection.close()


def record_slack(recording: Recording, library: Path, environ: Mapping[str, str], places: Places) -> None:
    """Ask the bot over HTTP, and record what it posts to Slack."""
    with slack_service() as slack:
        bot = {
            "SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_SIGNING_SECRET": SIGNING_SECRET, "BUNKO_SLACK_API_URL": slack.api_url,
            "BUNKO_SLACK_WRITE_USERS": "U1",
        }  # fmt: skip
        with start_server(["slack", "--http", "0", "--library", str(library)], {**environ, **bot}) as port:
            sender = Sender(f"http://127.0.0.1:{port}/slack/events", count(1))
            texts = read_lines("slack")
            for user in ("U1", "U2"):  # the second may not change the library
                for text in texts if user == "U1" else texts[-7:]:
                    posted = len(slack.messages)
                    ts = sender.mention(places.fill(text), user=user)
                    slack.wait_for(posted + 1, _PATIENCE)
                    recording.add("slack", [user, text], [
                        {key: value for key, value in message.items() if key not in ("ts", "thread_ts")}
                        for message in slack.in_thread(ts)
                    ])  # fmt: skip


@contextmanager
def start_server(arguments: list[str], environ: Mapping[str, str]) -> Iterator[int]:
    """Run a server until the end of the block; yield its port, which it says on stderr."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bunko", *arguments], env=dict(environ), stderr=subprocess.PIPE, encoding="utf-8"
    )
    assert process.stderr is not None
    said: list[str] = []
    # A server whose pipe is full would wait.
    reader = threading.Thread(target=said.extend, args=(process.stderr,))
    try:
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"Listening on http://127\.0\.0\.1:(\d+)/", line):
                break
        else:
            raise RuntimeError(f"The server has ended: {''.join(said)}")
        reader.start()
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(_PATIENCE)
        if reader.ident is not None:
            reader.join(_PATIENCE)
        process.stderr.close()
