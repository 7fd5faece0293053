"""Say which package of the extra onnx is missing, and how to install it."""

from __future__ import annotations

from importlib.util import find_spec

from bunko.errors import ModelError

RUN_PACKAGES = ("onnxruntime", "tokenizers")
_INSTALL_COMMAND = 'pip install "bunko[onnx]"'


def missing_package(*packages: str) -> str:
    """Return a message if one of these packages is not installed, else an empty string; imports none."""
    for package in packages:
        try:
            is_installed = find_spec(package) is not None
        except (ModuleNotFoundError, ValueError):
            is_installed = False
        if not is_installed:
            return f"The package {package} is not installed; install it with: {_INSTALL_COMMAND}."
    return ""


def missing_package_error(package: str) -> ModelError:
    """Return the error for a missing package."""
    return ModelError(f"The package {package} is not installed", hint=f"Install it with: {_INSTALL_COMMAND}")
