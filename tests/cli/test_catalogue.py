"""The catalogue has everything that people read, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bunko.interfaces.cli.language import read_catalogue, set_language, translate
from tests.cli.source_texts import ROOT, SourceText, collect_column_names, collect_texts

# What people meet who use bunko without programming or measuring it. Left out are:
_LEFT_OUT = (
    # commands that measure search quality, for developers
    "evaluation/*",
    *(f"interfaces/cli/{name}.py" for name in ("evaluate", "evaluation_output", "init_test_db", "judge", "sweep", "tune")),
    # what assistants read, not people
    "interfaces/mcp/[!h]*", "interfaces/mcp/h[!t]*", "interfaces/tools/*.py", "interfaces/tools/toolsets/[!_]*", "interfaces/text.py",
    "interfaces/serialize.py",
    # the texts of settings, in files and docs that are English
    "settings/docs.py", "settings/schema.py", "settings/starter.py", "settings/folder_limits.py",
    # words of documents and of programming languages
    "readers/definitions.py", "readers/html/*", "readers/places.py", "text/stopwords.py", "text/analyzer.py", "text/nouns.py",
    # the help of commands, which has a test of its own
    "interfaces/cli/main.py", "interfaces/cli/help.py",
)  # fmt: skip
