"""Run a Hugging Face Hub on loopback: HEAD with digests, redirects to a CDN, ranges, and everything that goes wrong."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "c0ffee" + "0" * 34
_LARGE_SUFFIXES = (".onnx", ".safetensors", "tokenizer.json")
_ORIGIN = re.compile(r"^http://[^/]+")
_PATH = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>[^?]+)")


class LoopbackHub:
    """A hub whose repositories are folders; large files come from its CDN, as on the real one."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.requests: list[tuple[str, str, str]] = []  # method, path, range
        self.cut_after: int | None = None  # bytes after which the next download from the CDN stops
        self.changes_content = False  # what the CDN sends is not what the hub names
        self.etags: dict[str, str] = {}  # by name of a file, instead of its digest
        self.etags_after_first: dict[str, str] = {}  # from the second request for a file on
        self.commit = COMMIT
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                hub._answer(self)

            def do_GET(self) -> None:
                hub._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._cdn = f"http://localhost:{self._server.server_address[1]}/cdn"  # another host, as on the real one
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def add(self, repo: str, folder: Path) -> None:
        """Serve the files of a folder as a repository."""
        paths = (path for path in folder.rglob("*") if path.is_file())
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        self.repos[repo] = self.repos.get(repo, {}) | files

    def downloads(self) -> list[tuple[str, str]]:
        """Return path and range of what was downloaded from the CDN."""
        return [(path, span) for method, path, span in self.requests if method == "GET" and path.startswith("/cdn/")]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        request.path = _ORIGIN.sub("", request.path)  # it answers as a proxy too
        self.requests.append((request.command, request.path, request.headers.get("range") or ""))
        if request.path.startswith("/cdn/"):
            self._send_content(request, request.path.removeprefix("/cdn/"))
            return
        match = _PATH.fullmatch(request.path)
        if match is None or match["repo"] not in self.repos:
            _send(request, 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif match["repo"] in self.gated:
            _send(request, 401, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif match["file"] not in self.repos[match["repo"]]:
            _send(request, 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        else:
            self._send_file(request, match["file"], self.repos[match["repo"]][match["file"]])
            if match["file"] in self.etags_after_first:
                self.etags[match["file"]] = self.etags_after_first[match["file"]]

    def _send_file(self, request: BaseHTTPRequestHandler, name: str, content: bytes) -> None:
        headers = {"X-Repo-Commit": self.commit, "Accept-Ranges": "bytes"}
        if name in self.etags:
            _send(request, 200, {**headers, "ETag": f'"{self.etags[name]}"'}, content, self.cut_after)
            return
        if not name.endswith(_LARGE_SUFFIXES):
            digest = sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
            _send(request, 200, {**headers, "ETag": f'"{digest}"'}, content)
            return
        digest = sha256(content).hexdigest()
        headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content)), "ETag": '"of the pointer"'}
        _send(request, 302, {**headers, "Location": f"{self._cdn}/{digest}"})

    def _send_content(self, request: BaseHTTPRequestHandler, digest: str) -> None:
        contents = (content for files in self.repos.values() for content in files.values())
        content = next(content for content in contents if sha256(content).hexdigest() == digest)
        if self.changes_content:
            content = content[:-1] + bytes([content[-1] ^ 1])
        match = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range") or "")
        start = int(match[1]) if match else 0
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if match else {}
        cut_after, self.cut_after = self.cut_after, None
        _send(request, 206 if match else 200, headers, content[start:], cut_after)


def _send(
    request: BaseHTTPRequestHandler,
    status: int,
    headers: dict[str, str],
    content: bytes = b"",
    cut_after: int | None = None,
) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(content)))
    request.send_header("Connection", "close")
    request.close_connection = True
    request.end_headers()
    if request.command != "HEAD":
        with suppress(OSError):
            request.wfile.write(content[:cut_after])
