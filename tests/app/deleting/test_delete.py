"""`kubectl podium delete` over HTTP: it evicts pods within their budgets, or explains what blocks them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from podium.app.console.command import podium
from podium.app.deleting import deletion
from podium.server.backend import Backend as ServerBackend
from podium.server.http.server import Server
from podium.store.api_resources import APIResources
from podium.store.store import Store
from tests.app.snapshots.fake_api_server import kubeconfig
from tests.store.objects import SECOND, Raw, budget, node, pod, running
from tests.waiting import GUARD_SECONDS

NOW = 100 * SECOND


class Backend(ServerBackend):
    """A store behind a router, which notes what it was asked; `before` may act before each request is answered."""

    def __init__(self, *objects: Raw) -> None:
        self.store = Store()
        for raw in objects:
            self.store.create(raw, now=0, was_there=True)
        self._router = Router(self.store)
        self.asked: list[Request] = []
        self.before: Callable[[Request], None] = lambda _: None

    @property
    def resources(self) -> APIResources:
        return self.store.resources

    def answer(self, request: Request) -> Response:
        self.asked.append(request)
        self.before(request)
        return self._router.answer(request, NOW)

    def now(self) -> int:
        return NOW

    def writes(self) -> list[tuple[str, str]]:
        return [(request.verb, request.subresource) for request in self.asked if request.verb not in ("get", "list")]

    def is_going(self, name: str) -> bool:
        stored = self.store.find("Pod", f"default/{name}")
        return stored is None or "deletionTimestamp" in stored.raw["metadata"]


@contextmanager
def serving(backend: Backend, folder: Path) -> Iterator[str]:
    """Provide a kubeconfig for a server that stands on the backend, in a thread of its own."""
    loop = asyncio.new_event_loop()
    started: Future[str] = Future()
    stop = asyncio.Event()

    async def serve() -> None:
        server = Server(backend)
        await server.start()
        started.set_result(server.address)
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        yield str(kubeconfig(folder, started.result(timeout=GUARD_SECONDS)))
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=GUARD_SECONDS)
        loop.close()


@pytest.fixture
def delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command at a backend, with waits of a moment."""
    monkeypatch.setattr(deletion, "_RETRY_S", 0.01)
    monkeypatch.setattr(deletion, "_LOOK_S", 0.01)

    def run(backend: Backend, *arguments: str) -> Result:
        with serving(backend, tmp_path) as file:
            return CliRunner().invoke(podium, ["delete", *arguments, "--kubeconfig", file], prog_name="kubectl podium")

    return run


Delete = Callable[..., Result]


def test_a_pod_is_evicted_and_its_end_waited_for(delete: Delete) -> None:
    backend = Backend(node("n1"), pod("a"))

    result = delete(backend, "pod", "a")

    assert (result.exit_code, result.output) == (0, 'pod "a" evicted\n')
    assert backend.writes() == [("create", "eviction")]
    assert backend.is_going("a")


def test_a_pod_protected_by_a_budget_stays_with_a_reason(delete: Delete) -> None:
    status = {"currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}
    kept = budget(allowed=0, status=status, spec={"minAvailable": 2})
    backend = Backend(
        node("n1"), running("a"), running("b"), kept, budget("other", spec={"selector": {"matchLabels": {"app": "x"}}})
    )

    result = delete(backend, "pod/a", "--timeout", "0")

    assert result.exit_code == 1
    assert 'podium: error: pod "a" is not evicted: its disruption budgets do not allow it\n' in result.output
    assert "Cannot evict pod as it would violate the pod's disruption budget." in result.output
    assert "budget default/web (minAvailable 2) allows 0 disruptions: 2 of 2 pods are healthy" in result.output
    assert "budget default/other" not in result.output
    assert not backend.is_going("a")


def test_delete_retries_until_the_budget_allows_the_eviction(delete: Delete) -> None:
    backend = Backend(node("n1"), running("a"), budget(allowed=0))
    refused: list[Request] = []

    def allow(request: Request) -> None:
        if request.subresource == "eviction":
            refused.append(request)
            if len(refused) == 3:
                (stored,) = backend.store.objects("PodDisruptionBudget")
                backend.store.update_status(
                    {**stored.raw, "status": {"observedGeneration": 1, "disruptionsAllowed": 1}}
                )

    backend.before = allow
    result = delete(backend, "pod", "a", "--no-wait")

    assert (result.exit_code, result.output) == (0, 'pod "a" evicted\n')
    assert len(refused) == 3
    assert backend.is_going("a")


def test_direct_deletion_ignores_budgets_and_uses_the_given_grace_period(delete: Delete) -> None:
    backend = Backend(node("n1"), running("a"), budget(allowed=0))

    result = delete(backend, "pod", "a", "--direct", "--grace-period", "7", "--no-wait")

    assert (result.exit_code, result.output) == (0, 'pod "a" deleted\n')
    assert backend.writes() == [("delete", "")]
    stored = backend.store.find("Pod", "default/a")
    assert stored is not None
    assert stored.raw["metadata"]["deletionGracePeriodSeconds"] == 7


@pytest.mark.parametrize(("option", "said"), [([], "would be evicted"), (["--direct"], "would be deleted")])
def test_a_dry_run_changes_nothing(option: list[str], said: str, delete: Delete) -> None:
    backend = Backend(node("n1"), running("a"))

    result = delete(backend, "pod", "a", "--dry-run", *option)

    assert (result.exit_code, result.output) == (0, f'pod "a" {said}\n')
    assert not backend.is_going("a")


def test_several_pods_are_deleted_in_turn_and_each_failure_is_reported(delete: Delete) -> None:
    backend = Backend(node("n1"), running("a"), running("b"), budget(allowed=1))

    result = delete(backend, "pods", "a", "b", "none", "--no-wait", "--timeout", "0")

    assert result.exit_code == 1
    assert result.stdout == 'pod "a" evicted\n'
    assert 'pod "b" is not evicted: its disruption budgets do not allow it' in result.stderr
    assert 'pod "none" cannot be deleted' in result.stderr


def test_a_pod_that_does_not_end_in_time_is_reported(delete: Delete) -> None:
    backend = Backend(node("n1"), running("a"))

    result = delete(backend, "pod", "a", "--timeout", "50ms")

    assert result.exit_code == 1
    assert 'pod "a" has not ended' in result.stderr


def test_a_namesake_that_came_since_is_another_pod(delete: Delete) -> None:
    backend = Backend(node("n1"), pod("a"))

    def exchange(request: Request) -> None:
        if request.subresource == "eviction":
            backend.store.delete("Pod", "default/a", now=NOW)
            backend.store.create(pod("a"), now=NOW)

    backend.before = exchange
    result = delete(backend, "pod", "a")

    assert (result.exit_code, result.output) == (0, 'pod "a" is gone already\n')
    assert not backend.is_going("a")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["node", "n"], '"node" is not evicted, only pods are; use kubectl delete'),
        (["pod/a", "b"], "either all arguments are KIND/NAME, or the first is the kind"),
        (["pod"], "names no pod; write `pod NAME` or `pod/NAME`"),
        ([], "Missing argument"),
        (["pod/a", "node/n"], '"node, pod" is not evicted'),
    ],
)
def test_an_invalid_pod_name_is_a_usage_error(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(podium, ["delete", *arguments], prog_name="kubectl podium")

    assert result.exit_code == 1
    assert said in result.output


def test_names_with_control_characters_are_shown_escaped(delete: Delete) -> None:
    result = delete(Backend(node("n1")), "pod", "a\x1b[31m")

    assert result.exit_code == 1
    assert "\x1b" not in result.output


def test_the_namespace_of_the_options_is_that_of_the_pods(delete: Delete) -> None:
    namespace: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    backend = Backend(namespace, node("n1"), pod("a", namespace="shop"))

    assert delete(backend, "pod", "a").exit_code == 1
    assert delete(backend, "pod", "a", "-n", "shop").exit_code == 0
