"""Render a template to a response, in the language of the browser."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from bunko.interfaces.page.assets import asset_url
from bunko.interfaces.page.language import script_texts, translate
from bunko.interfaces.sender import choose_language

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

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
    values: dict[str, Any],
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
        **values,
    )  # fmt: skip
    return HTMLResponse(text, status, headers={"Vary": "Accept-Language, Cookie", "Cache-Control": "no-store"})


def script_json(value: Any) -> Markup:
    """Return a value as JSON that can stand in a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPED))
