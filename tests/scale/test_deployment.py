"""The services of deploy/ without containers: started, searched, upgraded, lost and restored as the page tells it."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.http.server import ask
from tests.mcp.test_endpoints import read_metrics
from tests.scale.containers import Deployment
from tests.slow import corpus

pytestmark = pytest.mark.scale

PAGE = Path(__file__).resolve().parents[2] / "docs" / "serving.md"
DOCS = {f"{number}.md": corpus.document(f"{number}") for number in range(60)}
LATER = {f"later/{number}.md": corpus.document(f"later {number}") for number in range(20)}
COMPOSE = "docker compose -f deploy/compose.yaml"
CLIENTS = 6


def commands(title: str) -> str:
    """Return the commands under a title of the page."""
    [section] = re.findall(
        rf"^### {title}\n(.*?)(?=^##|\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return str(re.findall(r"```text\n(.*?)```", section, re.DOTALL)[0])


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path)
    corpus.write(deployment.documents, DOCS)
    try:
        yield deployment
    finally:
        deployment.remove()


@pytest.fixture
def token(deployment: Deployment) -> str:
    """Start everything as the page says; return the token that it creates for a client."""
    return deployment.do(commands("Start").replace("deploy/create-secrets.sh\n", "")).strip()


def talk(address: str, token: str, do: Callable[[Callable[..., Awaitable[Any]]], Awaitable[None]]) -> None:
    """Let clients of MCP call tools, each time a new one."""

    async def call(name: str, **arguments: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=corpus.PATIENCE) as web,
            Client(streamable_http_client(f"{address}/mcp", http_client=web)) as client,
        ):
            answer = await client.call_tool(name, arguments)
            assert not answer.is_error, answer.content
            return answer.structured_content

    async def main() -> None:
        await do(call)

    anyio.run(main)


def answers(deployment: Deployment, token: str, name: str = "proxy") -> list[Any]:
    """Return the hits of searches in both languages, through the proxy or from one server."""
    found: list[Any] = []

    async def ask_all(call: Callable[..., Awaitable[Any]]) -> None:
        for query in corpus.QUERIES:
            answer = await call("search", query=query, top_k=10)
            found.append([(result["citation"], result["content"]) for result in answer["results"]])

    talk(f"http://127.0.0.1:{deployment.ports[name]}", token, ask_all)
    return found


def test_a_team_searches_by_the_proxy_alone(deployment: Deployment, token: str) -> None:
    assert any(answers(deployment, token))
    ports, bearer = deployment.ports, {"Authorization": f"Bearer {token}"}
    assert ask(ports["proxy"], "/mcp", method="POST", body="{}").status == 401
    assert ask(ports["proxy"], "/metrics", **bearer).status == 404
    [config] = re.findall(r"```yaml\n(scrape_configs:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    [job] = yaml.safe_load(config)["scrape_configs"]
    [targets] = [group["targets"] for group in job["static_configs"]]
    assert targets == ["bunko1:8765", "bunko2:8765"]
    for target in targets:
        samples = read_metrics(ports[target.partition(":")[0]], Host=target, **bearer)
        assert samples["bunko_ready"] == 1
    for name in deployment.services:
        assert deployment.is_healthy(name), name
    assert len(deployment.backups()) == 1


def test_servers_know_the_client_behind_the_proxy(deployment: Deployment, token: str) -> None:
    context = ssl.create_default_context(
        cafile=str(deployment.volume("certificates") / "caddy/pki/authorities/local/root.crt")
    )
    connection = http.client.HTTPSConnection("localhost", deployment.tls_port, context=context)
    with closing(connection) as browser:
        origin = f"https://localhost:{deployment.tls_port}"
        headers = {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded"}
        browser.request("POST", "/login", f"token={token}", headers)
        reply = browser.getresponse()
        cookie = reply.headers["Set-Cookie"]
        assert (reply.status, "; Secure" in cookie) == (303, True)
        reply.read()
        browser.request("GET", "/api/v1/search?q=%E4%BA%AC%E9%83%BD", headers={"Cookie": cookie.partition(";")[0]})
        reply = browser.getresponse()
        assert (reply.status, "results" in json.loads(reply.read())) == (200, True)
    # From an address that no server trusts by itself, as in a container.
    direct = http.client.HTTPConnection("127.0.0.1", deployment.ports["bunko1"], source_address=("127.0.0.2", 0))
    with closing(direct) as proxy:
        headers = {"Authorization": "Bearer no", "X-Forwarded-For": "192.0.2.7"}
        proxy.request("GET", "/api/v1/search?q=a", headers=headers)
        assert proxy.getresponse().status == 401
    corpus.wait_until(
        lambda: "invalid token from 192.0.2.7" in deployment.log_path("bunko1").read_text(), "it is logged"
    )


def test_no_search_fails_while_the_servers_are_replaced(deployment: Deployment, token: str) -> None:
    done: list[str] = []
    is_over = False

    async def search(call: Callable[..., Awaitable[Any]], number: int) -> None:
        while not is_over:
            query = corpus.QUERIES[number % len(corpus.QUERIES)]
            await call("search", query=query)
            done.append(query)

    async def replace_meanwhile(call: Callable[..., Awaitable[Any]]) -> None:
        nonlocal is_over
        async with anyio.create_task_group() as tasks:
            for number in range(CLIENTS):
                tasks.start_soon(search, call, number)
            await anyio.to_thread.run_sync(deployment.do, commands("Upgrade"))
            is_over = True

    talk(f"http://127.0.0.1:{deployment.ports['proxy']}", token, replace_meanwhile)
    assert len(done) >= CLIENTS


def test_a_lost_database_is_restored_by_the_commands_of_the_page(deployment: Deployment, token: str) -> None:
    update = f"{COMPOSE} exec bunko1 bunko import -n documents --mode update"
    deployment.do(f"{COMPOSE} exec backup bunko backup /backups")
    before = answers(deployment, token)
    # What came after the backup is lost, and no index remembers it.
    corpus.write(deployment.documents, DOCS | LATER)
    deployment.do(update)
    after = answers(deployment, token)
    assert after != before
    deployment.lose_database()
    corpus.write(deployment.documents, DOCS)
    file = re.findall(r"bunko-\w+\.zip", commands("Restore"))[0]
    output = deployment.do(commands("Restore").replace(file, deployment.backups()[-1].name))
    assert "documents" in output
    assert [answers(deployment, token, name) for name in ("bunko1", "bunko2")] == [before] * 2
    corpus.write(deployment.documents, DOCS | LATER)
    deployment.do(update)
    assert [answers(deployment, token, name) for name in ("bunko1", "bunko2")] == [after] * 2
