"""Turn what packages raise into errors that say what helps, and remember which ones are replaced by something else.

A package that cannot be imported, or that raises at its first call, is an outage: whoever calls it raises a
PackageError, or falls back to something else and notes the outage, which searches and `bunko doctor` report.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TypeVar

from bunko.errors import BunkoError, PackageError

# Packages whose modules have another name.
_PACKAGES_BY_MODULE = {"re2": "google-re2", "Stemmer": "PyStemmer", "yaml": "PyYAML"}
# What a call raises whose function is not there any more, takes other arguments, or was compiled for something else. Of
# other kinds are those for wrong values, which are bugs of ours.
_VERSION_ERRORS = (AttributeError, ImportError, RuntimeError, SystemError, TypeError)
_MAX_REASON_CHARS = 200

_Error = TypeVar("_Error", bound=BunkoError)


@contextmanager
def package_errors(package: str, error_type: type[BunkoError] = PackageError) -> Iterator[None]:
    """Turn whatever a package raises, when it is imported or called, into an error that says what helps."""
    try:
        yield
    except (BunkoError, MemoryError):
        raise
    except Exception as error:  # one that is missing, damaged, too old or too new may raise anything
        raise _package_error(package, error, error_type) from error


def find_package_error(error: BaseException) -> PackageError | None:
    """Return the error to show for an exception that came from a package that we use; None for a bug of ours."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    module, is_import = _raising_module(error)
    if isinstance(error, ImportError) and error.name:  # perhaps a package that another one needs
        module, is_import = error.name.partition(".")[0], True
    if isinstance(error, AttributeError) and not module:  # which a newer or older version may not have
        name = "__name__" if isinstance(error.obj, ModuleType) else "__module__"
        module = str(getattr(error.obj, name, "")).partition(".")[0]
    is_bug = isinstance(error, MemoryError) or not (is_import or isinstance(error, _VERSION_ERRORS))
    if not module or is_bug or isinstance(error, BunkoError):
        return None
    from bunko.runtime.packages import find_package

    package = _PACKAGES_BY_MODULE.get(module, module)
    return _package_error(package, error, PackageError) if find_package(package).tested_version else None


def _raising_module(error: BaseException) -> tuple[str, bool]:
    """Return the module outside of our code that an exception comes from, and whether a module was being imported."""
    module, is_import = "", False
    traceback = error.__traceback__
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if name == "bunko":
            module, is_import = "", False
        elif name not in sys.stdlib_module_names:
            module = name
            is_import = is_import or traceback.tb_frame.f_code.co_name == "<module>"
        traceback = traceback.tb_next
    return module, is_import


def _package_error(package: str, error: BaseException, error_type: type[_Error]) -> _Error:
    from bunko.runtime.packages import find_package  # here: nearly always, there is no error

    used = find_package(package)
    if not used.version:
        return error_type(used.problem, hint=used.remedy)
    reason = re.split(r"\.\s|\n", f"{type(error).__name__}: {error}")[0][:_MAX_REASON_CHARS].rstrip(".: ")
    return error_type(f"{used.name} {used.version} cannot be used ({reason})", hint=used.repair)


_outages: dict[str, tuple[str, PackageError]] = {}


def note_outage(package: str, consequence: str, error: PackageError) -> None:
    """Remember, until this process ends, that a package is replaced by something that does less."""
    _outages[package] = consequence, error


def check_outage(package: str) -> None:
    """Raise the error of a package that is replaced: what is stored must not depend on it."""
    if package in _outages:
        error = _outages[package][1]
        raise PackageError(error.message, hint=error.hint)


def package_outages() -> list[tuple[str, PackageError]]:
    """Return what each package that is replaced changes for the user, and its error."""
    return list(_outages.values())
