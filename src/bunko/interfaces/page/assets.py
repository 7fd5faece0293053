"""Serve the styles and scripts of the page; their address contains a digest, so that browsers keep them."""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
_YEAR_SECONDS = 31_536_000


@cache
def load_assets() -> dict[str, bytes]:
    """Return the content of all assets by their path."""
    return dict(_walk(files("bunko.interfaces.page") / "assets", ""))


@cache
def assets_digest() -> str:
    """Return a digest of all assets: one for all, so that scripts can import each other by relative paths."""
    digest = hashlib.sha256()
    for path, content in sorted(load_assets().items()):
        digest.update(path.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:12]


def asset_url(path: str) -> str:
    """Return the address of an asset."""
    if path not in load_assets():
        raise KeyError(path)
    return f"/assets/{assets_digest()}/{path}"


async def answer_asset(request: Request) -> Response:
    """Return an asset; browsers keep it for a year, because another content has another address."""
    path = request.path_params["path"]
    content = load_assets().get(path)
    if content is None or request.path_params["digest"] != assets_digest():
        return PlainTextResponse("There is no such file.\n", 404)
    suffix = path[path.rfind(".") :]
    media_type = _MEDIA_TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    headers = {"Cache-Control": f"public, max-age={_YEAR_SECONDS}, immutable"}
    return Response(content, media_type=media_type, headers=headers)


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    files = []
    for entry in folder.iterdir():
        if entry.is_dir():
            files += _walk(entry, f"{prefix}{entry.name}/")
        elif not entry.name.startswith("."):
            files.append((f"{prefix}{entry.name}", entry.read_bytes()))
    return files
