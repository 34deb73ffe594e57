"""The server of `podium mcp`: typed, bounded and read-only, over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import podium
from podium.app.mcp.command import server_of
from podium.app.mcp.tools import MOST_ANSWERS, MOST_CHARACTERS, MOST_MANIFEST, Tools

CLUSTER = "examples/plan/cluster.yaml"
COMMAND = (sys.executable, "-m", "podium", "mcp")
TOKEN = "a-token-that-is-long-enough-for-everyone"

Call = Callable[[str, dict[str, Any]], Awaitable[Any]]


def answered(talk: Callable[[Call], Awaitable[None]], cluster: str = CLUSTER) -> None:
    """Talk to a server in this process."""
    from mcp import Client  # noqa: PLC0415 - few tests need it, and it takes a second

    async def run() -> None:
        async with Client(server_of(Tools(lambda: podium.load(cluster), lambda: 0))) as client:
            await talk(client.call_tool)

    asyncio.run(run())


def refusal(result: Any) -> str:
    assert result.is_error
    text: str = result.content[0].text
    return text.partition(": ")[2]


def test_every_tool_is_read_only_and_has_schemas_and_a_description() -> None:
    from mcp import Client  # noqa: PLC0415 - few tests need it, and it takes a second

    async def run() -> None:
        async with Client(server_of(Tools(lambda: podium.load(CLUSTER), lambda: 0))) as client:
            tools = (await client.list_tools()).tools
            assert len(tools) == 17
            for tool in tools:
                assert tool.description
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint
                assert tool.input_schema["type"] == "object"
                assert tool.output_schema is not None
                assert set(tool.output_schema["required"]) >= {"headline", "text", "caveats", "answer"}

    asyncio.run(run())


def test_a_long_answer_is_read_in_parts(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    node = "apiVersion: v1\nkind: Node\nmetadata: {{name: n{0}}}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{0}}}\nspec: {{containers: [{{name: a, image: a}}]}}\n"
    file.write_text("---\n".join([node.format(0), *(pod.format(number) for number in range(600))]))

    async def talk(call: Call) -> None:
        whole = await call("overview", {})
        found = whole.structured_content
        assert len(found["text"]) == MOST_CHARACTERS
        assert found["next_offset"] == MOST_CHARACTERS
        text, offset = found["text"], found["next_offset"]
        while offset is not None:
            part = (await call("read_more", {"answer": found["answer"], "offset": offset})).structured_content
            text, offset = text + part["text"], part["next_offset"]
        assert len(text) == found["total_characters"]
        assert text.endswith("pending: default/p99")

    answered(talk, str(file))


def test_an_answer_is_read_as_json() -> None:
    async def talk(call: Call) -> None:
        answer = (await call("explain", {"target": "deploy/shop/report"})).structured_content["answer"]
        outcome = await call("read_json", {"answer": answer, "path": "explanation.outcome"})
        assert json.loads(outcome.structured_content["text"]) == "schedulable"
        wrong = await call("read_json", {"answer": answer, "path": "explanation.outcom"})
        assert 'path: "explanation.outcom" has nothing at "outcom"; its fields are ' in refusal(wrong)

    answered(talk)


def test_old_answers_are_forgotten_and_the_error_says_what_to_do() -> None:
    async def talk(call: Call) -> None:
        for _ in range(MOST_ANSWERS + 1):
            await call("overview", {})
        problem = refusal(await call("read_more", {"answer": "a1", "offset": 0}))
        assert problem.startswith('answer: "a1" is not kept (kept: a2, ')
        assert problem.endswith("ask its question again")

    answered(talk)


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("explain", {"target": "nothing"}, "pod default/nothing is not in the input; pending there: none"),
        ("plan_drain", {"nodes": ["n9"]}, "n9"),
        ("plan_deploy", {"manifest": '{"kind": '}, "manifest, document 1: line 1"),
        ("plan_deploy", {"manifest": "a" * (MOST_MANIFEST + 1)}, "is longer than 1,048,576"),
        ("plan_deploy", {"manifest": "/etc/passwd"}, "manifest"),
        ("plan_upgrade", {"to": "2.0"}, 'Kubernetes version "2.0" is not understood'),
        ("ledger", {"cause": "boredom"}, 'cause: "boredom" is not one of preemption'),
        ("read_more", {"answer": "a1", "offset": -1}, "offset: -1 is not within 0 and"),
        ("plan_drain", {"nodes": ["n1"], "grace": 5}, "grace\n  Extra inputs are not permitted"),
        ("reload", {"now": True}, "now\n  Extra inputs are not permitted"),
    ],
)
def test_a_wrong_argument_is_named_in_the_error(tool: str, arguments: dict[str, Any], problem: str) -> None:
    async def talk(call: Call) -> None:
        await call("overview", {})
        assert problem in refusal(await call(tool, arguments))

    answered(talk)


def test_reload_reads_the_cluster_again(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
    file.write_text(node)

    async def talk(call: Call) -> None:
        assert (await call("overview", {})).structured_content["headline"] == "1 node, 0 pods, 0 pending"
        file.write_text(f"{node}---\n{node.replace('n1', 'n2')}")
        assert (await call("reload", {})).structured_content["headline"] == "2 nodes, 0 pods, 0 pending"

    answered(talk, str(file))


def test_the_command_serves_a_client_on_standard_input_and_output() -> None:
    from mcp import ClientSession, StdioServerParameters, stdio_client  # noqa: PLC0415 - few tests need it, and it takes a second

    async def run() -> None:
        arguments = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "-f", CLUSTER])
        async with stdio_client(arguments) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            result: Any = await session.call_tool("overview", {})
            assert result.structured_content["headline"] == "3 nodes, 6 pods, 0 pending"

    asyncio.run(run())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Provide the URL of a server over HTTP, which needs the token."""
    token = tmp_path_factory.mktemp("served") / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    command = (*COMMAND, "-f", CLUSTER, "--port", "0", "--token-file", str(token))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if line.startswith("serving MCP at "))
            yield line.removeprefix("serving MCP at ").strip()
        finally:
            process.terminate()


async def status_with(url: str, token: str) -> int:
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    async with aiohttp.ClientSession() as session, session.post(url, json=body, headers=headers) as response:
        return response.status


def test_http_needs_the_token(served: str) -> None:
    statuses = [asyncio.run(status_with(served, given)) for given in ("", "wrong", TOKEN)]

    assert statuses == [401, 401, 200]


def test_a_client_of_the_sdk_asks_over_http_with_the_token(served: str) -> None:
    import httpx2  # noqa: PLC0415 - as mcp
    from mcp import Client  # noqa: PLC0415 - few tests need it, and it takes a second
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - as mcp

    async def run() -> None:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
            Client(streamable_http_client(served, http_client=http)) as client,
        ):
            result: Any = await client.call_tool("overview", {})
            assert result.structured_content["headline"] == "3 nodes, 6 pods, 0 pending"

    asyncio.run(run())


def test_http_without_a_token_is_refused() -> None:
    result = subprocess.run((*COMMAND, "-f", CLUSTER, "--port", "9999"), capture_output=True, text=True, check=False)

    assert result.returncode != 0
    assert "Give both --port and --token-file" in result.stderr
