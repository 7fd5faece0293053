"""The endpoints of the API: one module for each subject, which declares them as `ENDPOINTS`."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from bunko.interfaces.api.endpoint import Endpoint


@cache
def all_endpoints() -> tuple[Endpoint, ...]:
    """Return all endpoints; an address without names in it comes before one with names at the same place."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    endpoints = [endpoint for module in modules for endpoint in module.ENDPOINTS]
    return tuple(sorted(endpoints, key=lambda endpoint: [segment.startswith("{") for segment in endpoint.segments]))
