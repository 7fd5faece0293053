"""Documents that were made to do something in whoever reads them: what they contain, and what must be left of it."""

from __future__ import annotations

from typing import NamedTuple

from bunko.types import Text

_RUN = "window.injected = 1"
_CALL = "window.injected=1"


class HostileDocument(NamedTuple):
    """A document, and a text that is read in it; what it hides is not."""

    text: str
    read: str = "harmless"
    media_type: str = "text/markdown"


RST, ORG, HTML, MAIL = "text/x-rst", "text/org", "text/html", "message/rfc822"

PAYLOADS = {
    "script": HostileDocument(f"harmless\n\n<script>{_RUN}</script>\n\n<SCRIPT SRC=//192.0.2.1/x.js></SCRIPT>\n"),
    "script-inline": HostileDocument(f"harmless <script>{_RUN}</script> <scr<script>ipt>{_RUN}</script>\n"),
    "style": HostileDocument("harmless\n\n<style>body { background: url(//192.0.2.1/x) }</style>\n"),
    "style-attribute": HostileDocument(
        '<p style="position:fixed;inset:0;background:url(//192.0.2.1/x)">harmless</p>\n'
    ),
    "handlers": HostileDocument(
        f'<p onclick="{_RUN}" onmouseover="{_RUN}">harmless</p>\n<b/onfocus={_CALL} autofocus>x</b>\n'
    ),
    "image": HostileDocument(f'<img src=x onerror="{_RUN}" alt="harmless">\n\n![x](//192.0.2.1/x.png)\n'),
    "image-in-a-line": HostileDocument(f'a <img src="//192.0.2.1/x" onerror="{_RUN}" alt="harmless"> b\n'),
    "image-address": HostileDocument("![harmless](data:image/svg+xml,<svg/onload=alert(1)>)\n"),
    "javascript": HostileDocument(
        f"[harmless](javascript:{_CALL}) <javascript:{_CALL}> [a]\n\n[a]: javascript:{_CALL}\n"
    ),
    "javascript-written-otherwise": HostileDocument(
        f"[harmless](JaVaScRiPt:{_CALL}) [b](&#106;avascript:{_CALL}) [c](java&#10;script:{_CALL})"
        f" [d](\\javascript:{_CALL}) [e](<java\tscript:{_CALL}>) <a href='&#1;javascript:{_CALL}'>f</a>\n"
    ),
    "javascript-in-html": HostileDocument(
        f'<a href="javascript:{_CALL}">harmless</a> <a href=" javascript:{_CALL}">b</a>\n'
    ),
    "data": HostileDocument(f"[harmless](data:text/html,<script>{_CALL}</script>) <a href='data:text/html,x'>b</a>\n"),
    "vbscript": HostileDocument("[harmless](vbscript:msgbox) [f](file:///etc/passwd) [g](blob:x) [h](view-source:x)\n"),
    "other-hosts": HostileDocument(
        "[harmless](//192.0.2.1/x) [b](\\\\192.0.2.1\\x) [c](http:javascript) [d](http:///x)\n"
    ),
    "title": HostileDocument(f"[harmless](https://example.com '\" onmouseover={_CALL} x=\"')\n"),
    "svg": HostileDocument(
        f"harmless\n\n<svg onload='{_RUN}'><script>{_RUN}</script><a xlink:href='javascript:{_CALL}'>x</a></svg>\n"
    ),
    "svg-animation": HostileDocument(f"harmless <svg><animate onbegin='{_RUN}' attributeName=x dur=1s></svg>\n"),
    "mathml": HostileDocument(
        f"harmless\n\n<math><mtext><table><mglyph><style><img src=x onerror='{_RUN}'></style></mglyph>"
        "</table></mtext></math>\n"
    ),
    "mathml-annotation": HostileDocument(
        f"harmless <math><annotation-xml encoding='text/html'><svg onload='{_RUN}'></svg></annotation-xml></math>\n"
    ),
    "iframe": HostileDocument(
        f"harmless\n\n<iframe src='javascript:{_CALL}' srcdoc='<script>{_RUN}</script>'></iframe>\n\n"
        f"<frameset onload='{_RUN}'>\n"
    ),
    "object": HostileDocument(
        "harmless\n\n<object data='//192.0.2.1/x'></object><embed src='//192.0.2.1/x'><applet code=x></applet>\n"
    ),
    "media": HostileDocument(
        f"harmless\n\n<video src=//192.0.2.1/x onerror='{_RUN}' autoplay></video><audio src=//192.0.2.1/x></audio>\n"
        "<picture><source srcset=//192.0.2.1/x></picture><input type=image src=//192.0.2.1/x>\n"
    ),
    "form": HostileDocument(
        "<form action='//192.0.2.1/x'><input name=password autofocus><button formaction='//192.0.2.1/x'>"
        "harmless</button></form>\n"
    ),
    "refresh": HostileDocument("harmless\n\n<meta http-equiv=refresh content='0;url=//192.0.2.1/'>\n"),
    "base": HostileDocument(
        "harmless\n\n<base href='//192.0.2.1/'><link rel=stylesheet href=//192.0.2.1/x.css>\n\n[x](y.md)\n"
    ),
    "clobbering": HostileDocument(
        "<p id=document class=whole-link>harmless</p>\n<a id=panel name=body href=#L1>x</a><form id=search "
        "name=location></form>\n"
    ),
    "our-names": HostileDocument(
        "<p id=L99 class='hit' data-line=7 role=dialog tabindex=9 aria-label=x>harmless</p>\n"
    ),
    "closing-tags": HostileDocument("</div></article></main></body></html>\n\nharmless\n\n</p></div></template>\n"),
    "unclosed-tag": HostileDocument("harmless\n\n<div title='\n\n<b onclick=x\n\n<table><tr><td\n"),
    "unclosed-comment": HostileDocument("harmless\n\n<!-- <p>\n\n--><img src=x onerror=alert(1)>\n\n<!--\n\nhidden\n"),
    "comment-tricks": HostileDocument(
        f"harmless\n\n<!--><img src=x onerror='{_RUN}'>-->\n\n<![CDATA[><script>{_RUN}</script>]]>\n"
    ),
    "raw-text": HostileDocument(
        f"harmless\n\n<noscript><p title='</noscript><img src=x onerror={_CALL}>'></noscript>\n"
        f"<textarea><img src=x onerror={_CALL}></textarea><xmp><script>{_RUN}</script></xmp><plaintext>\n"
    ),
    "template": HostileDocument(f"harmless\n\n<template><script>{_RUN}</script></template><slot name=x></slot>\n"),
    "custom-elements": HostileDocument(
        f"<x-harm onclick='{_RUN}'>harmless</x-harm> <marquee onstart='{_RUN}'>x</marquee>\n"
    ),
    "entities": HostileDocument(
        f"harmless &lt;script&gt;{_RUN}&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62; &amp;lt;b\n"
    ),
    "direction": HostileDocument("harmless \u202etxt.exe &#x202e;txt.exe <bdo dir=rtl>abc</bdo> &#8294;\n"),
    "code": HostileDocument(
        f'```html"><script>\n<script>{_RUN}</script> harmless\n```\n\n`<img src=x onerror={_CALL}>`\n'
    ),
    "table": HostileDocument(
        f"| harmless |\n|---|\n| <script>{_RUN}</script> |\n| <td onclick=x colspan=99999 rowspan=99999> |\n"
    ),
    "wiki-link": HostileDocument(
        f'[[javascript:{_CALL}|harmless]] [["><script>{_RUN}</script>]] ![[//192.0.2.1/x.png]]\n'
    ),
    "callout": HostileDocument(
        f":::tip <script>{_RUN}</script>\nharmless\n:::\n\n:::\n:::\n> [!NOTE] <img src=x onerror={_CALL}>\n"
    ),
    "template-code": HostileDocument("harmless {{ 7 * 191 }} ${7 * 191} {% raw %} #{7 * 191}\n"),
    "heading": HostileDocument(
        f"# harmless <script>{_RUN}</script>\n\n## <a id=search></a><img src=x onerror={_CALL}> two\n"
    ),
    "reference-bomb": HostileDocument("harmless\n\n" + "[a]" * 5000 + "\n\n" + "[a]: b\n" * 3000),
    "page": HostileDocument(f"harmless <script>{_RUN}</script> [b](javascript:{_CALL}) <img src=x>\n", media_type=HTML),
    "mail": HostileDocument(
        f"Subject: <script>{_RUN}</script>\nFrom: <a@example.com> [x](javascript:{_CALL})\n\nharmless <img "
        f"src=x onerror={_CALL}>\n",
        media_type=MAIL,
    ),
    "rst-raw": HostileDocument(f"harmless\n\n.. raw:: html\n\n   <script>{_RUN}</script>\n", media_type=RST),
    "rst-raw-role": HostileDocument(
        f".. role:: x(raw)\n   :format: html\n\n:x:`<script>{_RUN}</script>` harmless\n", media_type=RST
    ),
    "rst-include": HostileDocument(
        "harmless\n\n.. include:: /etc/passwd\n\n.. include :: /etc/passwd\n\n.. literalinclude:: /etc/passwd\n",
        media_type=RST,
    ),
    "rst-table-file": HostileDocument(
        "harmless\n\n.. csv-table:: t\n   :file: /etc/passwd\n\n.. csv-table:: t\n   :url: http://192.0.2.1/\n\n"
        ".. raw:: html\n   :file: /etc/passwd\n",
        media_type=RST,
    ),
    "rst-links": HostileDocument(
        f"`harmless <javascript:{_CALL}>`_ and b_ and `c <data:text/html,x>`__\n\n.. _b: javascript:{_CALL}\n\n"
        f".. image:: //192.0.2.1/x.png\n   :target: javascript:{_CALL}\n   :alt: an image\n",
        media_type=RST,
    ),
    "rst-class": HostileDocument(
        ".. class:: hit\n\n.. container:: hit whole\n   :name: document\n\n   harmless\n", media_type=RST
    ),
    "rst-substitution": HostileDocument(
        ".. |a| replace:: " + "x" * 5000 + "\n\nharmless " + "|a| " * 5000 + "\n", media_type=RST
    ),
    "rst-roles": HostileDocument(
        f".. default-role:: raw\n.. role:: emphasis(raw)\n   :format: html\n\n`<script>{_RUN}</script>` "
        ":emphasis:`harmless`\n",
        media_type=RST,
    ),
    "rst-nesting": HostileDocument("".join(" " * depth + "harmless\n\n" for depth in range(200)), media_type=RST),
    "org-include": HostileDocument('harmless\n\n#+INCLUDE: "/etc/passwd"\n#+SETUPFILE: /etc/passwd\n', media_type=ORG),
    "org-export": HostileDocument(
        f"harmless\n\n#+BEGIN_EXPORT html\n<script>{_RUN}</script>\n#+END_EXPORT\n\n#+HTML: <script>"
        f"{_RUN}</script>\n@@html:<b>@@\n",
        media_type=ORG,
    ),
    "org-links": HostileDocument(
        f'[[javascript:{_CALL}][harmless]] [[elisp:(shell-command "x")][b]] [[data:text/html,x]] '
        "[[//192.0.2.1/x.png]]\n",
        media_type=ORG,
    ),
    "org-source": HostileDocument(
        "harmless\n\n#+BEGIN_SRC emacs-lisp :results raw\n" + "~" * 30 + f"\n<script>{_RUN}</script>\n#+END_SRC\n",
        media_type=ORG,
    ),
}

# What is too much of something that is harmless by itself; what counts is the time, and the size of what comes.
LARGE = {
    "list-items": HostileDocument("harmless\n\n" + "- item\n" * 100_000),
    "table-rows": HostileDocument("harmless\n\n| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 100_000),
    "table-columns": HostileDocument("harmless\n\n" + "|a" * 20_000 + "|\n" + "|-" * 20_000 + "|\n" + "|\n" * 5000),
    "quotes": HostileDocument("harmless\n\n" + "> " * 10_000 + "x\n" + ">" * 10_000),
    "lists": HostileDocument("harmless\n\n" + "- " * 10_000 + "x\n" + "1. " * 10_000),
    "brackets": HostileDocument("harmless\n\n" + "[" * 50_000 + "](" * 5000),
    "images": HostileDocument("harmless\n\n" + "![[" * 20_000),
    "emphasis": HostileDocument("harmless\n\n" + "**a *b " * 10_000),
    "backticks": HostileDocument("harmless\n\n" + "".join("`" * length + " " for length in range(400))),
    "divisions": HostileDocument("harmless\n\n" + "<div>" * 12_000),
    "formatting": HostileDocument(
        "harmless\n\n<p>" + "".join(f"<b title={number}>" for number in range(2000)) + "<p>x" * 5000 + "\n"
    ),
    "links": HostileDocument("harmless\n\n" + "<a href=x><div>" * 4000),
    "html-tables": HostileDocument("harmless\n\n" + "<table><tr><td>" * 4000),
    "rst-table": HostileDocument(
        "harmless\n\n+" + "-+" * 3000 + "\n|" + " |" * 3000 + "\n+" + "-+" * 3000 + "\n", media_type=RST
    ),
    "rst-lists": HostileDocument("harmless\n\n" + "* " * 3000 + "x\n", media_type=RST),
    "rst-quotes": HostileDocument("harmless\n\n" + "`" * 20_000 + "*a " * 6000 + "\n", media_type=RST),
    "org-headlines": HostileDocument("harmless\n\n" + "*" * 5000 + " x\n" + "* [[a][b]]\n" * 50_000, media_type=ORG),
    "org-marks": HostileDocument("harmless\n\n" + "*a /b =c " * 6000 + "\n", media_type=ORG),
    "own-anchors": HostileDocument(
        "harmless\n\n"
        + "".join(f"[a](#a{n}) [b](#b{n}) [c](#c{n}) [d](#d{n})\n" for n in range(290))
        + "\n"
        + "## One heading of many\n" * 40_000
    ),
}


def as_text(document: HostileDocument) -> Text:
    """Return a document as a reader returns it."""
    return Text(document.text, document.media_type, "utf-8", title="hostile")
