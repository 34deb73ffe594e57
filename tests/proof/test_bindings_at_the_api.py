"""The API server's answers to a scheduler's bindings; both agree on the pod afterwards.

TestDefaultBinder and TestEtcdCreateBinding (rows 43 and 44); the answers themselves are stated in `tests/store`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podium.api.pod import Pod
from podium.apirequests.observations import observation_of
from podium.controllers.actions import Bind
from podium.controllers.observations import Problem
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.builders import node
from tests.controllers.driving import Driver, the
from tests.store.objects import Raw, pod

KEY = "default/web"
Change = Callable[[Store], object]


class Cluster:
    """An API server, and a scheduler that observes it when the test says so."""

    def __init__(self) -> None:
        self.store = Store()
        self.driver = Driver(node("n1"), node("n2", unschedulable=True))
        self.seen = 0

    def watch(self) -> None:
        """Tell the scheduler of all that it has not heard of."""
        for event in self.store.events_since(self.seen):
            self.seen = event.version
            self.driver.deliver(observation_of(event))

    def bind(self, bind: Bind) -> Problem | None:
        """Carry a binding out; the answer reaches the scheduler."""
        problem = None
        try:
            self.store.bind(bind.pod, bind.node_name, now=0, uid=bind.uid)
        except StoreError as error:
            problem = Problem(error.code, error.reason, error.message)
        self.driver.answer(bind, problem)
        return problem

    @property
    def pod(self) -> Pod | None:
        """The pod as the API has it."""
        stored = self.store.find("Pod", KEY)
        return stored.object if stored is not None and isinstance(stored.object, Pod) else None


def kept(raw: Raw) -> Raw:
    """Return the pod with a finalizer, so that it outlives its deletion."""
    return {**raw, "metadata": {**raw["metadata"], "finalizers": ["example.com/keep"]}}


def delete(store: Store) -> object:
    return store.delete("Pod", KEY, now=0)


def replace(store: Store) -> object:
    delete(store)
    return store.create(pod("web"), now=0)


def replace_by_a_gated_one(store: Store) -> object:
    delete(store)
    return store.create(pod("web", spec={"schedulingGates": [{"name": "example.com/wait"}]}), now=0)


@pytest.mark.upstream(43, 44)
@pytest.mark.parametrize(
    ("raw", "meanwhile", "code", "node_name", "place"),
    [
        (pod("web"), lambda store: None, None, "n1", None),
        (pod("web"), lambda store: store.bind(KEY, "n2", now=0), 409, "n2", None),
        (pod("web"), delete, 404, None, None),
        (kept(pod("web")), delete, 409, "", None),
        (pod("web"), replace, 409, "", QueuePlace.ACTIVE),
        (pod("web"), replace_by_a_gated_one, 409, "", QueuePlace.GATED),
    ],
)
@pytest.mark.parametrize("watch_first", [True, False])
def test_a_binding_is_for_the_very_pod_and_its_refusal_leaves_all_as_it_is(
    raw: Raw, meanwhile: Change, code: int | None, node_name: str | None, place: QueuePlace | None, watch_first: bool
) -> None:
    cluster = Cluster()
    cluster.store.create(raw, now=0)
    cluster.watch()
    bind = the(Bind, cluster.driver.tick())
    meanwhile(cluster.store)
    before = cluster.pod

    if watch_first:
        cluster.watch()
    problem = cluster.bind(bind)
    cluster.watch()

    found, scheduler = cluster.pod, cluster.driver.scheduler
    assert (None if problem is None else problem.code) == code
    assert found is before or problem is None
    assert (None if found is None else found.spec.node_name) == node_name
    uid = "" if found is None else found.metadata.uid
    assert scheduler.queue.where(uid) == place
    assert {key: record.node_name for key, record in scheduler.cluster.placed.items()} == (
        {uid: node_name} if node_name else {}
    )
    assert len(scheduler.bindings) == 0
    assert not scheduler.bindings.unseen
