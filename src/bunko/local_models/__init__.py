"""Models on this machine: which are known, where their files are, and how they run on onnxruntime."""

from __future__ import annotations

from bunko.errors import ModelError
from bunko.runtime.installation import install_command, missing_package_message

RUN_PACKAGES = ("onnxruntime", "tokenizers")


def missing_package(*packages: str) -> str:
    """Return a message if one of these packages of the extra onnx is not installed, else an empty string."""
    messages = (missing_package_message(package, package, "onnx") for package in packages)
    return next(filter(None, messages), "")


def missing_package_error(package: str) -> ModelError:
    """Return the error for a missing package."""
    return ModelError(f"The package {package} is not installed", hint=f"Install it with: {install_command('onnx')}")
