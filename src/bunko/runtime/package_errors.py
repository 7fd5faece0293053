"""Turn what packages raise into errors that say what helps, and remember which ones are replaced by something else.

A package that cannot be imported, or that raises at its first call, is an outage: whoever calls it raises a
PackageError, or falls back to something else and notes the outage, which searches and `bunko doctor` report.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import starmap
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from bunko.errors import BunkoError, PackageError
from bunko.runtime.installation import install_command

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
    # here: nearly always, there is no error

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


def outages() -> list[tuple[str, PackageError]]:
    """Return what each package that is replaced changes for the user, and its error."""
    return list(_outages.values())


CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*\])?(?P<range>[^;]*)(?P<marker>(?:;.*?)?(?:extra == ['\"](?P<extra>[\w-]+)['\"].*)?$)"
)
_LIMIT = re.compile(r"(>=|<)([\d.]+)")
_DEVELOPMENT_EXTRAS = ("dev", "bench")
_CONDITION = re.compile(r"(\w+) *(==|!=|<|>=) *['\"]([^'\"]*)['\"]")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that bunko uses."""

    name: str
    version: str  # empty if it is not installed
    range: str  # as in <3,>=2.0
    tested_version: str  # with this Python; empty if none is known
    extra: str = ""  # which needs it; empty if bunko itself does

    @property
    def problem(self) -> str:
        """What is wrong, if it is missing or outside the range; else an empty string."""
        if not self.version:
            return f"The package {self.name} is not installed"
        release = _release(self.version)
        for sign, limit in _LIMIT.findall(self.range):
            if release < _release(limit) if sign == ">=" else release >= _release(limit):
                return f"{self.name} {self.version} is installed, but bunko needs {self.name}{self.range}"
        return ""

    @property
    def remedy(self) -> str:
        """The command that installs a version of the range."""
        return f"Install it with: {install_command(package=f'{self.name}{self.range}')}"

    @property
    def repair(self) -> str:
        """The command that replaces one that does not work."""
        if self.problem or not self.tested_version:
            return self.remedy
        tested = f"{self.name}=={self.tested_version}"
        return f"Install it again with: {install_command(package=tested, again=self.version == self.tested_version)}"

    @property
    def is_newer(self) -> bool:
        """Whether it is newer than what was tested."""
        return bool(self.tested_version) and _release(self.version) > _release(self.tested_version)


def used_packages() -> list[Package]:
    """Return the packages that bunko needs, and those of its extras that are installed."""
    tested_versions = _tested_versions()
    packages: dict[str, Package] = {}
    try:
        requirements = requires("bunko") or []
    except PackageNotFoundError:  # run from a folder, and not installed
        return []
    for requirement in map(_REQUIREMENT.match, requirements):
        if requirement is None or requirement["extra"] in _DEVELOPMENT_EXTRAS or not _applies(requirement["marker"]):
            continue
        name = requirement["name"]
        installed = _installed_version(name)
        if requirement["extra"] and not installed:
            continue
        key = _canonical(name)
        limits = requirement["range"].strip()
        packages[key] = Package(name, installed, limits, tested_versions.get(key, ""), requirement["extra"] or "")
    packages.pop("bunko", None)  # an extra that contains another
    return [packages[key] for key in sorted(packages)]


def find_package(name: str) -> Package:
    """Return a package by its name: one that bunko uses, or one that another package needs."""
    key = _canonical(name)
    used = next((package for package in used_packages() if _canonical(package.name) == key), None)
    if used is not None:
        return used
    tested_version = _tested_versions().get(key, "")
    return Package(key, _installed_version(key), f"=={tested_version}", tested_version)


def _installed_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _tested_versions() -> dict[str, str]:
    versions: dict[str, str] = {}
    for line in CONSTRAINTS.read_text("utf-8").splitlines():
        requirement, _, marker = line.partition(";")
        name, separator, version = requirement.strip().partition("==")
        if separator and _applies(marker):
            versions[_canonical(name)] = version
    return versions


def _applies(marker: str) -> bool:
    """Return whether a marker holds here, whatever the extra: uv writes alternatives of conditions."""
    return any(all(starmap(_holds, _CONDITION.findall(alternative))) for alternative in marker.split(" or "))


def _holds(name: str, sign: str, value: str) -> bool:
    if name == "python_full_version":
        return (sys.version_info[:3] < tuple(map(int, value.split(".")))) == (sign == "<")
    values_here = {
        "implementation_name": sys.implementation.name,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "sys_platform": sys.platform,
    }
    return name not in values_here or (values_here[name] == value) == (sign == "==")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without zeros at the end: 2.0 is 2."""
    numbers = [int(number) for number in re.match(r"[\d.]*", version)[0].split(".") if number]  # type: ignore[index]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
