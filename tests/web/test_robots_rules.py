"""How the rules of robots.txt are read and matched, whatever they say."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from bunko.sources.web.robots import RobotsRules, parse_robots

WORDS = [
    *"*:-_/$%#\0\n\r\t\x1c\u2003\ufeff",
    "User",
    "agent",
    "user-agent",
    "useragent",
    "Bunko",
    "Bot",
    "Disallow:",
    "Allow",
]


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.characters())).map("".join), st.text())
def test_whatever_robots_say_is_understood_somehow_and_cached_as_such(content: str, path: str) -> None:
    found = parse_robots(content.encode("utf-8", "surrogatepass"), "BunkoBot", max_bytes=1000)
    assert found.allows(f"/{path}") in (True, False)
    assert RobotsRules.from_json(found.to_json()) == found


@given(st.text("*$ab/", max_size=8), st.text("ab/", max_size=8))
def test_a_rule_matches_as_a_regular_expression_would(rule: str, path: str) -> None:
    literal = "".join(".*" if char == "*" else re.escape(char) for char in rule.removesuffix("$"))
    expression = re.compile(literal + (r"\Z" if rule.endswith("$") else ""))
    found = parse_robots(f"User-agent: *\nDisallow: {rule}\n".encode(), "BunkoBot", max_bytes=1000)
    assert found.allows("/" + path) is not (rule != "" and expression.match("/" + path) is not None)
