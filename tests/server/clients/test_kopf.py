"""An operator made with kopf works against the server."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from podium.server.kubernetes_documents import KubernetesDocuments
from tests.server.serving import Client, LocalBackend, with_server
from tests.store.objects import Raw

if TYPE_CHECKING:
    import kopf

CONFIG: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
NAMESPACE: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


def test_an_operator_hears_of_objects_and_writes_to_them() -> None:
    import kopf  # noqa: PLC0415 - no other test needs it, and it takes a second

    backend = LocalBackend(NAMESPACE, CONFIG)

    async def check(client: Client) -> None:
        loop, heard = asyncio.get_running_loop(), asyncio.Queue[str]()
        registry, stop = kopf.OperatorRegistry(), threading.Event()

        def hear(text: str) -> None:
            loop.call_soon_threadsafe(heard.put_nowait, text)

        @kopf.on.login(registry=registry)
        def login(**_: Any) -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(server=client.server.address)

        @kopf.on.create("v1", "configmaps", registry=registry)
        async def created(name: str, patch: kopf.Patch, **_: Any) -> None:
            patch.metadata.labels["seen"] = "yes"
            hear(f"created {name}")

        @kopf.on.update("v1", "configmaps", field="data", registry=registry)
        async def updated(name: str, **_: Any) -> None:
            hear(f"updated {name}")

        # On a loop of its own: it ends all that is left on its loop.
        operated = asyncio.to_thread(
            lambda: asyncio.run(
                kopf.operator(registry=registry, standalone=True, namespaces=["default"], stop_flag=stop)
            )
        )
        operator = asyncio.create_task(operated)
        try:
            assert await heard.get() == "created c"
            async with client.watch("/api/v1/namespaces/default/configmaps?watch=1") as watcher:
                while (await watcher.next())["object"]["metadata"].get("labels") != {"seen": "yes"}:
                    pass
            headers = {"Content-Type": "application/merge-patch+json"}
            path = "/api/v1/namespaces/default/configmaps/c"
            await client.ask("PATCH", path, {"data": {"k": "v"}}, headers=headers)
            assert await heard.get() == "updated c"
        finally:
            stop.set()
            await operator

    with_server(check, backend=backend, documents=KubernetesDocuments(backend))
