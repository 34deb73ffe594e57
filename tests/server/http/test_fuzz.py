"""Whatever bytes arrive, the server answers in HTTP, never with an internal error, and keeps working."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.apirequests.http_mapping import path_of
from podium.server.http.security import ServerLimits, ServerSettings
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.store.api_resources import APIResources
from tests.fuzzing import usual
from tests.server.serving import PODS, Client, LocalBackend, served
from tests.store.objects import node, pod, running
from tests.waiting import GUARD_SECONDS


def words(*texts: str) -> st.SearchStrategy[str]:
    """One of the words of some texts, or nothing."""
    return st.sampled_from(["", *" ".join(texts).split()])


PARTS = words(
    "api apis v1 apps namespaces default pods a b status scale binding eviction watch nodes n1 deployments",
    ".. . %2e %00 %ff %zz \u00ff * version metrics livez openapi v3",
)
PATHS = st.lists(PARTS, max_size=9).map(lambda parts: "/" + "/".join(parts)) | st.sampled_from(
    (PODS, f"{PODS}/a", f"{PODS}/b/status", f"{PODS}/b/eviction", f"{PODS}/b/binding", "/api/v1/nodes/n1")
)
NAMES = words(
    "labelSelector fieldSelector limit continue resourceVersion resourceVersionMatch dryRun sendInitialEvents force",
    "fieldManager fieldValidation gracePeriodSeconds propagationPolicy orphanDependents pretty includeObject timeout",
    "allowWatchBookmarks",
)
VALUES = words(
    "1 0 -1 true false All Exact NotOlderThan Strict Orphan a=b a+in+(b) !a %ff%fe %00 metadata.name=a 10s eyJ2IjoxfQ",
    "999999999999999999999 Object %22%0d%0a \u00ff",
)
QUERIES = st.lists(st.tuples(NAMES, VALUES), max_size=4).map(
    lambda pairs: "?" + "&".join(f"{name}={value}" for name, value in pairs) if pairs else ""
)
METHODS = st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PROPFIND"))
TYPES = words(
    "application/json application/yaml application/vnd.kubernetes.protobuf text/plain \u00ff;;",
    "application/json-patch+json application/merge-patch+json application/strategic-merge-patch+json",
)
ACCEPTS = words(
    "*/* application/json application/yaml application/json;as=Table;v=v1;g=meta.k8s.io ;;=,, x/y",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
FIELDS = words(
    "apiVersion kind metadata spec status name namespace labels annotations containers finalizers ownerReferences uid",
    "deleteOptions preconditions target resourceVersion replicas generateName conditions template selector op path",
    "value from $patch managedFields",
)
WORDS = words("v1 Pod Node a default Eviction DeleteOptions add test /spec delete")
VALUES_OF_OBJECTS = st.recursive(
    LEAVES | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=12,
)
ABOUT = st.dictionaries(FIELDS, VALUES_OF_OBJECTS, max_size=5)
BODIES = (
    st.binary(max_size=40)
    | VALUES_OF_OBJECTS.map(lambda value: json.dumps(value).encode())
    | ABOUT.map(lambda fields: json.dumps({**pod("a"), **fields}).encode())
    | ABOUT.map(lambda fields: json.dumps({**pod("a"), "metadata": {"name": "a", **fields}}).encode())
    | ABOUT.map(lambda fields: json.dumps({**pod("a"), "spec": {**pod("a")["spec"], **fields}}).encode())
    | st.lists(st.fixed_dictionaries({"op": WORDS, "path": WORDS, "value": LEAVES}), max_size=3).map(
        lambda operations: json.dumps(operations).encode()
    )
)


class Served:
    """A server that is asked from outside of its loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        backend = LocalBackend(node("n1"), running("b"))
        settings = ServerSettings(limits=ServerLimits(watch_seconds=0.01), audit=lambda line: None)
        whole = served(backend=backend, documents=KubernetesDocuments(backend), settings=settings)
        self.client: Client = self._runner.run(self._stack.enter_async_context(whole))

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def exchange(self, data: bytes, *, ends: bool = False) -> bytes:
        """Return what comes back for some bytes; `ends` says that the client then says no more."""
        return self._runner.run(self._exchange(data, ends))

    def kinds_are_listed(self) -> bool:
        """Return whether every kind can still be listed."""
        return self._runner.run(self._list_all())

    async def _exchange(self, data: bytes, ends: bool) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.client.server.port)
        try:
            writer.write(data)
            if ends:
                writer.write_eof()
            return await asyncio.wait_for(reader.read(), GUARD_SECONDS)
        finally:
            writer.close()

    async def _list_all(self) -> bool:
        for resource in APIResources().all():
            for api_version in resource.served_versions if "list" in resource.verbs else ():
                path = path_of(resource.served_as(api_version))
                code, body = await self.client.ask("GET", path)
                if code != 200 or "items" not in body:
                    return False
        return True


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """One server for all examples."""
    found = Served()
    try:
        yield found
        assert found.kinds_are_listed()
    finally:
        found.close()


def code_of(answer: bytes) -> int:
    line, _, rest = answer.partition(b"\r\n")
    assert line.startswith(b"HTTP/1."), answer[:200]
    assert b"Traceback" not in rest
    return int(line.split()[1])


@given(METHODS, PATHS, QUERIES, TYPES, ACCEPTS, BODIES)
@settings(max_examples=usual(200), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_request_is_too_much(
    server: Served, method: str, path: str, query: str, content_type: str, accept: str, body: bytes
) -> None:
    head = f"{method} {path}{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: {accept}\r\n"
    head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    # A binding to what is no node is refused with 500 by kube-apiserver too, without a reason.
    answer = server.exchange(head.encode("latin-1") + body)
    assert code_of(answer) < 500 or b'"reason":"InternalError"' not in answer


@given(st.binary(min_size=1, max_size=200))
@settings(max_examples=usual(100), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_bytes_are_too_much(server: Served, data: bytes) -> None:
    answer = server.exchange(data + b"\r\n\r\n", ends=True)
    assert not answer or code_of(answer) < 500
