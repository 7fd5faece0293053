"""Say which package is missing, and which command adds it to this installation: that of the program that made it."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# What uv and pipx write into the environment of a program that they install.
_UV_RECEIPT, _PIPX_RECEIPT = "uv-receipt.toml", "pipx_metadata.json"


def install_command(extra: str = "", *, package: str = "", again: bool = False) -> str:
    """Return the command that installs an extra of bunko, or a package beside it; `again` also if it is there."""
    environment = Path(sys.prefix)
    name, *limits = re.split("(?=[<>=])", package, maxsplit=1)
    requirement = f'"bunko[{extra}]"' if extra else f'"{package}"' if limits else package
    by_pip = f"install {'--force-reinstall ' if again else ''}{requirement}"
    by_uv = f"install {f'--reinstall-package {name} ' if again else ''}"
    if (environment / _UV_RECEIPT).is_file():
        return f"uv tool {by_uv}{_uv_tool(environment / _UV_RECEIPT, extra, package)}"
    if (environment / _PIPX_RECEIPT).is_file():
        return f"pipx runpip {shlex.quote(environment.name)} {by_pip}"
    return f"uv pip {by_uv}{requirement}" if _installer() == "uv" else f"pip {by_pip}"


def missing_package_message(module: str, package: str, extra: str) -> str:
    """Return a message if a package of an extra is not installed, else an empty string; does not import it."""
    try:
        is_installed = find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # its parent package is missing too, or it is not a whole one
        is_installed = False
    return "" if is_installed else f"The package {package} is not installed; install it with: {install_command(extra)}."


def _installer() -> str:
    """Return the program that installed bunko, as it says itself; an empty string if bunko is not installed."""
    # Imported late: every search knows this module, and few need a hint.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return (distribution("bunko").read_text("INSTALLER") or "").strip()
    except PackageNotFoundError:
        return ""


def _uv_tool(receipt: Path, extra: str, package: str) -> str:
    """Return all that the tool was installed with, and what is new: uv installs it anew."""
    import tomllib

    try:
        requirements = tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]
    except (OSError, ValueError, KeyError):
        requirements = []
    by_name: dict[str, dict[str, Any]] = {
        item["name"]: item for item in requirements if isinstance(item, dict) and isinstance(item.get("name"), str)
    }
    own = by_name.pop("bunko", {})
    extras = {*own.get("extras", ()), *([extra] if extra else [])}
    others = dict.fromkeys([*by_name, *([package] if package else [])])
    name = f"bunko[{','.join(sorted(extras))}]" if extras else "bunko"
    tool = f'"{name}{_origin(own)}"' if extras or _origin(own) else name
    return tool + "".join(f" --with {shlex.quote(other)}" for other in others)


def _origin(requirement: dict[str, Any]) -> str:
    """Return where uv got a package from, as in a requirement; empty if it was an index."""
    for key in ("directory", "editable", "path"):
        if isinstance(folder := requirement.get(key), str):
            return f" @ {Path(folder).absolute().as_uri()}"
    if isinstance(url := requirement.get("url"), str):
        return f" @ {url}"
    return f" @ git+{git}" if isinstance(git := requirement.get("git"), str) else ""
