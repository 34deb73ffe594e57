"""The asynchronous Python client works against the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podium.server.kubernetes_documents import KubernetesDocuments
from tests.server.serving import Client, LocalBackend, with_server
from tests.store.objects import Raw, node, pod


def with_api(check: Callable[[Any], Awaitable[None]], *objects: Raw) -> None:
    """Run a check against a server with these objects."""
    from kubernetes_asyncio import client as kubernetes  # noqa: PLC0415 - it takes half a second

    backend = LocalBackend(*objects)

    async def run(client: Client) -> None:
        async with kubernetes.ApiClient(kubernetes.Configuration(host=client.server.address)) as api:
            await check(kubernetes.CoreV1Api(api))

    with_server(run, backend=backend, documents=KubernetesDocuments(backend))


def test_pods_are_created_read_changed_and_deleted() -> None:
    from kubernetes_asyncio import client as kubernetes  # noqa: PLC0415 - it takes half a second

    async def check(core: Any) -> None:
        made = await core.create_namespaced_pod("default", pod("a"))
        assert made.metadata.name == "a"
        patched = await core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"k": "v"}}})
        assert patched.metadata.labels == {"k": "v"}
        listed = await core.list_namespaced_pod("default", label_selector="k=v")
        assert [each.metadata.name for each in listed.items] == ["a"]
        await core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
        with pytest.raises(kubernetes.ApiException, match="404"):
            await core.read_namespaced_pod("a", "default")

    with_api(check, node("n1"))


def test_a_core_api_watch_reports_events() -> None:
    from kubernetes_asyncio import watch  # noqa: PLC0415 - it takes half a second

    async def check(core: Any) -> None:
        seen = []
        async with watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=600) as stream:
            async for event in stream:
                seen.append((event["type"], event["object"].metadata.name))
                if len(seen) == 1:
                    await core.create_namespaced_pod("default", pod("b"))
                if len(seen) == 2:
                    break
        assert seen == [("ADDED", "a"), ("ADDED", "b")]

    with_api(check, pod("a"))
