"""The official Python client works against the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from podium.server.kubernetes_documents import KubernetesDocuments
from tests.server.serving import NOW, Client, LocalBackend, with_server
from tests.store.objects import Raw, budget, node, running
from tests.store.objects import pod as any_pod

# Its types ask for its models, and take objects as they are written as well.
kubernetes: Any = import_module("kubernetes.client")
watch: Any = import_module("kubernetes.watch")
API = Any
pod = partial(any_pod, cpu="1")


def with_client(check: Callable[[API, Client], None], *objects: Raw) -> None:
    """Run a check in a thread, against a server with these objects."""
    backend = LocalBackend(*objects)

    async def run(client: Client) -> None:
        def checked() -> None:
            with api_client(client.server.address) as api:
                check(api, client)

        await asyncio.to_thread(checked)

    with_server(run, backend=backend, documents=KubernetesDocuments(backend))


@contextmanager
def api_client(address: str) -> Iterator[API]:
    configuration = kubernetes.Configuration(host=address)
    with kubernetes.ApiClient(configuration) as api:
        yield api
        api.rest_client.pool_manager.clear()


def refusal(ask: Callable[[], object]) -> int:
    with pytest.raises(kubernetes.ApiException) as caught:
        ask()
    return int(caught.value.status)


def test_pods_are_created_read_listed_changed_and_deleted() -> None:
    def check(api: API, _: Client) -> None:
        core = kubernetes.CoreV1Api(api)
        made = core.create_namespaced_pod("default", pod("a", labels={"app": "web"}))
        assert made.metadata.name == "a"
        assert core.read_namespaced_pod("a", "default").spec.containers[0].image == "app:1"
        assert [each.metadata.name for each in core.list_pod_for_all_namespaces(label_selector="app=web").items] == [
            "a"
        ]
        patched = core.patch_namespaced_pod("a", "default", {"metadata": {"annotations": {"k": "v"}}})
        assert patched.metadata.annotations == {"k": "v"}
        made.metadata.labels = {"app": "other"}
        assert refusal(lambda: core.replace_namespaced_pod("a", "default", made)) == 409
        assert refusal(lambda: core.create_namespaced_pod("default", pod("a"))) == 409
        core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
        assert refusal(lambda: core.read_namespaced_pod("a", "default")) == 404

    with_client(check, node("n1"))


def test_lists_come_in_pages() -> None:
    def check(api: API, _: Client) -> None:
        core = kubernetes.CoreV1Api(api)
        names, token = [], None
        while token != "":
            page = core.list_namespaced_pod("default", limit=2, _continue=token)
            names += [each.metadata.name for each in page.items]
            token = page.metadata._continue or ""
        assert names == ["a", "b", "c", "d", "e"]

    with_client(check, *(pod(name) for name in "abcde"))


def test_a_core_api_watch_reports_events() -> None:
    def check(api: API, client: Client) -> None:
        core = kubernetes.CoreV1Api(api)
        seen = []
        stream = watch.Watch()
        for event in stream.stream(core.list_namespaced_pod, "default", timeout_seconds=600):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 1:
                core.create_namespaced_pod("default", pod("b"))
            if len(seen) == 2:
                stream.stop()
        assert seen == [("ADDED", "a"), ("ADDED", "b")]

    with_client(check, pod("a"))


def test_a_pod_is_evicted_if_its_budget_allows_it() -> None:
    def check(api: API, client: Client) -> None:
        core = kubernetes.CoreV1Api(api)
        eviction = {"metadata": {"name": "a", "namespace": "default"}}
        core.create_namespaced_pod_eviction("a", "default", eviction)
        with pytest.raises(kubernetes.ApiException) as caught:
            core.create_namespaced_pod_eviction("b", "default", {"metadata": {"name": "b"}})
        assert caught.value.status == 429
        assert "DisruptionBudget" in caught.value.body

    with_client(check, node("n1"), running("a"), running("b"), budget(allowed=1))


def test_a_pod_is_bound_and_its_status_written() -> None:
    def check(api: API, client: Client) -> None:
        core = kubernetes.CoreV1Api(api)
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
        core.create_namespaced_pod_binding("a", "default", binding, _preload_content=False).release_conn()
        core.patch_namespaced_pod_status("a", "default", {"status": {"phase": "Running"}})
        found = core.read_namespaced_pod("a", "default")
        assert (found.spec.node_name, found.status.phase) == ("n1", "Running")

    with_client(check, node("n1"), pod("a"))


def test_workloads_are_scaled() -> None:
    def check(api: API, client: Client) -> None:
        apps = kubernetes.AppsV1Api(api)
        selector, template = {"matchLabels": {"a": "b"}}, {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        spec = {"replicas": 1, "selector": selector, "template": template}
        apps.create_namespaced_deployment("default", {"metadata": {"name": "web"}, "spec": spec})
        apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
        assert apps.read_namespaced_deployment_scale("web", "default").spec.replicas == 3
        assert apps.read_namespaced_deployment("web", "default").spec.replicas == 3

    with_client(check)


def test_the_server_says_what_it_has() -> None:
    def check(api: API, client: Client) -> None:
        assert kubernetes.VersionApi(api).get_code().minor == "36"
        groups = {group.name for group in kubernetes.ApisApi(api).get_api_versions().groups}
        assert {"apps", "batch", "policy", "scheduling.k8s.io"} <= groups
        found = kubernetes.CoreV1Api(api).get_api_resources().resources
        assert "pods/eviction" in {resource.name for resource in found}

    with_client(check)


def test_time_is_the_servers() -> None:
    def check(api: API, client: Client) -> None:
        made = kubernetes.CoreV1Api(api).create_namespaced_pod("default", pod("a"))
        assert made.metadata.creation_timestamp.timestamp() == NOW / 10**9

    with_client(check)
