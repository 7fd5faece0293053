"""The `bunko doctor` command: check a library for problems."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

import click

from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import is_terminal, pop_shared_options, print_json, replace_controls, shared_options

_STATE_LABELS = {"ok": "ok", "warning": "warn", "error": "FAIL"}


@click.command()
@shared_options
def command(**options: Any) -> None:
    """Check a library for problems.

    Also checks that searches find the indexed texts. Exits with 1 if there is an error.

    \b
    Example:
      bunko doctor --docs-dir ~/notes
    """
    shared = pop_shared_options(options)
    with shared.open(create=False) as library:
        findings = library.maintenance.diagnose()
    if shared.as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    elif is_terminal():
        from bunko.interfaces.cli.render import show_findings

        show_findings(findings)
    else:
        for finding in findings:
            hint = f" {finding.hint}" if finding.hint and finding.state != "ok" else ""
            text = translate(f"{finding.message}.{hint}")
            # A message may quote what a server said.
            click.echo(replace_controls(f"{_STATE_LABELS[finding.state]:<5}{finding.subject}: {text}"))
    if any(finding.state == "error" for finding in findings):
        sys.exit(1)
