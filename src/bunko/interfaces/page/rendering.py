"""Render a template to a response, in the language of the browser; serve the styles and scripts that it needs."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import tomllib
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from bunko.interfaces.page.preferences import THEMES, chosen_theme
from bunko.interfaces.sender import LANGUAGES, choose_language, chosen_language, find_identity
from bunko.messages import Language
from bunko.types.ranking import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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


@cache
def load_texts(language: Language) -> dict[str, str]:
    """Return the texts of the page in a language, by section and name: `search.placeholder`."""
    content = (files("bunko.interfaces.page") / "strings" / f"{language}.toml").read_text("utf-8")
    sections = tomllib.loads(content)
    texts = {f"{section}.{name}": text for section, texts in sections.items() for name, text in texts.items()}
    return texts | {f"ranking.{name}": option.labels[LANGUAGES.index(language)] for name, option in OPTIONS.items()}


def translate(language: Language, name: str, /, **values: object) -> str:
    """Return a text with its values."""
    text = load_texts(language)[name]
    return text.format(**values) if values else text


def script_texts(language: Language, *sections: str) -> dict[str, str]:
    """Return the texts that scripts need: those of some sections."""
    return {name: text for name, text in load_texts(language).items() if name.partition(".")[0] in sections}


# No text may end the script element that it stands in.
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "&<>\u2028\u2029"}


@cache
def environment() -> Environment:
    """Return what renders templates."""
    templates = Environment(
        loader=PackageLoader("bunko.interfaces.page"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    templates.globals["asset"] = asset_url
    templates.filters["script_json"] = script_json
    return templates


def render(
    request: Request,
    template: str,
    values: Mapping[str, object],
    *,
    status: int = 200,
    script_sections: Sequence[str] = (),
) -> HTMLResponse:
    """Return a page; `script_sections` are the sections of texts that its scripts need."""
    language = choose_language(request)
    text = environment().get_template(template).render(
        language=language,
        t=partial(translate, language),
        texts=script_texts(language, "common", *script_sections),
        path=request.url.path,
        theme=chosen_theme(request),
        preferences=partial(_preferences, request),
        **values,
    )  # fmt: skip
    return HTMLResponse(text, status, headers={"Vary": "Accept-Language, Cookie", "Cache-Control": "no-store"})


def _preferences(request: Request) -> dict[str, object]:
    """Return what the foot of a page needs: the choices, and whether there is a session to end."""
    identity = find_identity(request.scope)
    return {
        "themes": ("", *THEMES),
        "languages": ("", *LANGUAGES),
        "language": chosen_language(request) or "",
        # The link of `bunko ui` signs in again by itself; there is nothing to end but that command.
        "can_sign_out": identity is not None and not identity.is_local_user,
    }


def script_json(value: Any) -> Markup:
    """Return a value as JSON that can stand in a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPED))
