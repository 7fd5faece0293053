"""The `bunko doctor` command: check a library for problems."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict

import click

from bunko.errors import BunkoError
from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.options import SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import is_terminal, print_json, replace_controls
from bunko.library.admin.doctor import Finding
from bunko.library.rights.identity_provider import IdentityProvider
from bunko.messages import translate
from bunko.runtime.package_errors import package_outages
from bunko.runtime.packages import used_packages
from bunko.settings.schema import SignInSection
from bunko.version import __version__

_STATE_LABELS = {"ok": "ok", "warning": "warn", "error": "FAIL"}


@click.command()
@shared_options
def command(shared: SharedOptions) -> None:
    """Check a library for problems.

    Also checks that searches find the indexed texts, and prints the versions of the packages in use. Exits with 1 if
    there is an error.

    \b
    Example:
      bunko doctor --docs-dir ~/notes
    """
    packages = used_packages()
    versions = {"Python": platform.python_version(), "bunko": __version__}
    versions |= {package.name: package.version for package in packages}
    newer = {package.name: package.tested_version for package in packages if package.is_newer}
    if not shared.as_json:  # first, for the case that nothing else works
        click.echo(", ".join(f"{name} {version}" for name, version in versions.items()))
        if newer:
            names = ", ".join(f"{name} ({tested})" for name, tested in newer.items())
            click.echo(translate(f"Newer than the versions that were tested: {names}"))
    findings = [
        Finding("error", "packages", package.problem, package.remedy) for package in packages if package.problem
    ]
    with shared.open(create=False) as library:
        findings += library.maintenance.diagnose()
        findings += _check_sign_in(library.settings.sign_in)
    findings += [Finding("error", "packages", error.message, error.hint) for _, error in package_outages()]
    if shared.as_json:
        print_json({"findings": list(map(asdict, findings)), "versions": versions, "newer_than_tested": newer})
    elif is_terminal():
        terminal.render.show_findings(findings)
    else:
        for finding in findings:
            hint = f" {finding.hint}" if finding.hint and finding.state != "ok" else ""
            text = translate(f"{finding.message}.{hint}")
            # A message may quote what a server said.
            click.echo(
                replace_controls(
                    f"{_STATE_LABELS[finding.state]:<5}{terminal.render.translate_subject(finding)}: {text}"
                )
            )
    if any(finding.state == "error" for finding in findings):
        sys.exit(1)


def _check_sign_in(settings: SignInSection) -> list[Finding]:
    """Ask the identity provider for its keys, if there is one."""
    if not settings.issuer:
        return []
    try:
        keys = IdentityProvider(settings).read()
    except BunkoError as error:
        return [Finding("error", "sign_in", error.message, error.hint)]
    return [Finding("ok", "sign_in", f"{settings.issuer} answers, and publishes its keys: {keys}")]
