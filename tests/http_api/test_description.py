"""The OpenAPI description says what the API does."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
import pytest

from bunko.errors import BunkoError
from bunko.interfaces.api.openapi import describe_api
from bunko.interfaces.api.problems import STATUSES, problem_of
from bunko.interfaces.api.routes import all_endpoints
from bunko.interfaces.api.routes.search import SearchQuery
from bunko.types.ranking import OPTIONS
from tests.http_api.client import ApiClient


def check_reply(path: str, content: object, *, method: str = "get", status: str = "200") -> None:
    """Check a reply against the description of its endpoint."""
    description = describe_api()
    schema = description["paths"][f"/api/v1{path}"][method]["responses"][status]["content"]["application/json"][
        "schema"
    ]
    jsonschema.validate(content, {**schema, "components": description["components"]})


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("/search", "/search?q=蜜柑"),
        ("/documents", "/documents"),
        ("/documents/{tool}/{path}", "/documents/documents/plain.md"),
        ("/outlines/{tool}/{path}", "/outlines/documents/plain.md"),
        ("/status", "/status"),
    ],
)
def test_replies_have_the_shape_that_the_description_gives(client: ApiClient, template: str, path: str) -> None:
    address, _, query = path.partition("?")
    reply = client.get(address, **dict(pair.split("=") for pair in query.split("&") if pair))
    assert reply.status == 200
    check_reply(template, reply.json)


def test_the_description_is_served(client: ApiClient) -> None:
    served = client.get("/openapi.json").json
    assert served["openapi"] == "3.1.0"
    assert len(served["paths"]) == len({endpoint.path for endpoint in all_endpoints()})


def test_every_operation_has_a_name_of_its_own_and_a_summary() -> None:
    operations = [operation for path in describe_api()["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["summary"] for operation in operations)


def test_a_search_takes_all_ranking_options() -> None:
    assert set(OPTIONS) <= set(SearchQuery.model_fields)


def test_every_error_has_a_status() -> None:
    def codes(kind: type[BunkoError]) -> set[str]:
        return {kind.code}.union(*(codes(subclass) for subclass in kind.__subclasses__()))

    known = {code for code in codes(BunkoError) if code != "request"}
    assert known <= set(STATUSES)
    assert problem_of(BunkoError("It failed", hint="Try again."))["detail"] == "It failed"
