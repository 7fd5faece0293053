"""Requests made from the OpenAPI description, right and wrong ones, are answered as it says, and never fail."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bunko.interfaces.api.openapi import describe_api
from bunko.types.access import ALL_TOOLS
from tests.http.server import EXAMPLES, Site, serve_site

pytestmark = pytest.mark.slow

_NO_HTTP = "Invalid HTTP request received."
_EXAMPLES_OF_EACH = 25
_CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# A stream has no end.
_OPERATIONS = [
    (path, method)
    for path, methods in describe_api()["paths"].items()
    for method in methods
    if path != "/api/v1/events"
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("described")
    documents = shutil.copytree(EXAMPLES, folder / "documents")
    with serve_site(folder, documents=Path(documents)) as served:
        yield served


@pytest.fixture(scope="module")
def headers(site: Site) -> dict[str, str]:
    """A token that may do everything but name folders of this machine: a made-up one could be a large one."""
    rights = site.library.tokens.rights((), (ALL_TOOLS,))
    return {"Authorization": f"Bearer {site.library.tokens.add('schemathesis', rights)}"}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
@pytest.mark.parametrize(("path", "method"), _OPERATIONS)
def test_an_operation_answers_as_described(
    site: Site, headers: dict[str, str], path: str, method: str, mode: GenerationMode
) -> None:
    if path == "/api/v1/folders":  # only for whoever started the server
        headers = {"Cookie": site.session}
    statuses: set[int] = set()
    schema = schemathesis.openapi.from_dict(describe_api())
    operation = schema[path][method.upper()]

    @hypothesis.settings(
        max_examples=_EXAMPLES_OF_EACH, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        response = case.call(base_url=site.address, headers=headers)
        if response.text == _NO_HTTP:  # headers that the HTTP library refuses before the API is asked
            return
        case.validate_response(response, checks=_CHECKS)
        statuses.add(response.status_code)

    run()
    if path == "/api/v1/search":  # with so many parameters, each example may have one that names nothing
        statuses.add(operation.Case(query={"q": "note"}).call(base_url=site.address, headers=headers).status_code)
    if mode is GenerationMode.POSITIVE and path in ("/api/v1/search", "/api/v1/status", "/api/v1/folders"):
        assert 200 in statuses
