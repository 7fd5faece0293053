"""Read what the doors are asked about the sample library: one question in each line of the files in `questions/`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).with_name("questions")
# What is not one line, or a very long one.
_FURTHER_QUERIES = ("\u200b", "two\nlines\tand a tab", "潮位の観測 " * 500, "word" * 3000)


def read_lines(name: str) -> list[str]:
    """Return the lines of a file."""
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def read_queries() -> list[str]:
    """Return the queries that every door searches for."""
    return [*read_lines("queries"), *_FURTHER_QUERIES]


def read_commands() -> list[tuple[dict[str, str], list[str]]]:
    """Return command lines, each with the variables that are set for it."""
    commands = []
    for line in read_lines("commands"):
        words = shlex.split(line)
        count = next(index for index, word in enumerate(words) if "=" not in word)
        commands.append((dict(word.split("=", 1) for word in words[:count]), words[count:]))
    return commands


def read_calls(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return calls of MCP tools: the name of the tool and its arguments."""
    return [(tool, json.loads(arguments)) for line in read_lines(name) for tool, _, arguments in [line.partition(" ")]]


def read_requests() -> list[tuple[str, str, Any]]:
    """Return requests to the API: method, path with parameters, and body."""
    requests = []
    for line in read_lines("api"):
        method, _, rest = line.partition(" ")
        path, _, body = rest.partition(" {")
        requests.append((method, path, json.loads("{" + body) if body else None))
    return requests
