"""Compare the installed packages with the ranges that bunko names and the versions that it was tested with."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import starmap
from pathlib import Path

from bunko.runtime.installation import install_command

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
