"""Test that the docs list every metric that a server publishes, and no other."""

from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families

from bunko.interfaces.http.monitoring import LibraryState, ServerMetrics
from tests.docs.test_docs import text_of

_ROW = re.compile(r"^\| `(bunko_\w+)` \|", re.M)


def test_the_docs_list_every_metric_of_a_server() -> None:
    state = LibraryState(is_ready=True, generation=1, index_lag=0, pending_documents=0)
    content, _ = ServerMetrics().render(state)
    families = text_string_to_metric_families(content.decode())
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    # The client library adds the time at which each counter began.
    published = sorted(name for name in names if not name.endswith("_created"))
    assert sorted(_ROW.findall(text_of("docs/serving.md"))) == published
