"""A controller that idles and receives events later acts as one that receives them at once."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

import pytest

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.api.meta import Raw
from podium.apirequests.observations import aspects_of, observation_of
from podium.controllers.actions import ReportStatus
from podium.controllers.controller import is_watched_kind
from podium.controllers.observations import ActionFinished, Problem
from podium.runtime.runtime import Component, ExistingObjects, RequestedAction, Runtime
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.watch_log import WatchEvent
from tests.proof.test_watches import MAKERS
from tests.store.objects import SECOND, node, pod

RESTING = {name: make for name, make in MAKERS.items() if hasattr(make(), "idle_deferral")}
START_NS = 1_800_000_000 * SECOND
REFUSED = Problem(409, "Conflict", "it is not as you think")
NODES = ("n1", "n2", "n3")
PODS = tuple(f"p{index}" for index in range(12))
TAINT = {"key": "bad", "effect": "NoExecute"}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}


class Log:
    """All such controllers before one driver, of which it is noted what they ask for. ``is_eager``: none ever rests."""

    def __init__(self, *, is_eager: bool) -> None:
        self.asked: list[RequestedAction] = []
        self.said: list[str] = []
        self.rested: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.driver = Runtime(self)
        self.is_eager = is_eager
        for name, make in RESTING.items():
            self.driver.add(Component(name, make))
            self.begin(self.driver.components[-1], ())

    def begin(self, component: Component, existing: Iterable[ExistingObjects]) -> None:
        self.driver.begin(component)
        if self.is_eager:
            component.deferral = None
        self.driver.show_existing(component, existing)

    def send(self, requested: RequestedAction, now: int) -> None:
        self.asked.append(requested)
        self.sent[requested.component.name] += 1
        self.said.append(f"{now - START_NS} {requested.component.name} {requested.action}")

    def answer(self, problem: Problem | None) -> None:
        asked = self.asked.pop(0)
        self.driver.answer(asked, ActionFinished(asked.action, problem))

    def settle(self, now: int) -> None:
        """Deliver all observations, and let the controller do all that is due."""
        for _ in range(1_000):
            self.driver.deliver(now)
            due = self.driver.first_due(now)
            if due is None:
                break
            self.driver.wake(due, now)
        self.driver.check()
        self.rested.update(component.name for component in self.driver.components if component.is_idle)
        self.said.append(f"{self.driver.next_time(now)} {self.driver.expects_news()}")


class Play:
    """Random events in a cluster, shown to both controllers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.store = Store(seed=seed)
        self.now = START_NS
        self.both = [Log(is_eager=is_eager) for is_eager in (True, False)]
        self.deeds: list[Callable[[], object]] = [
            *[self.new_pod, self.bind] * 8,
            *[self.report] * 4,
            *[self.change_node] * 2,
            *[self.end_pod, self.new_node, self.answer] * 2,
            *(self.end_node, self.workload, self.deployment, self.budget, self.claim, self.template, self.disrupt),
            self.end_object,
            *(self.pass_time, self.restart),
        ]

    def go(self, steps: int) -> None:
        for _ in range(steps):
            version = self.store.version
            try:
                self.random.choice(self.deeds)()
            except StoreError:
                continue
            for event in self.store.events_since(version):
                aspects = aspects_of(event, self.store)
                for outcome in self.both:
                    outcome.driver.show(event.stored.resource.name, observation_of(event), aspects)
            if self.random.random() < 0.7:
                self.settle()
        self.settle()

    def settle(self) -> None:
        for outcome in self.both:
            outcome.settle(self.now)

    # What happens

    def new_pod(self) -> None:
        draw = self.random.random
        spec: Raw = {"priority": self.random.randrange(3)}
        if draw() < 0.2:
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        elif draw() < 0.1:
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
        if draw() < 0.3:
            spec["tolerations"] = [{"key": "bad", "effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 20}]
        metadata: Raw = {"finalizers": ["test/held"]} if draw() < 0.3 else {}
        if draw() < 0.5:
            metadata["ownerReferences"] = [{**OWNER, "uid": self.uid_of("ReplicaSet", "web")}]
        where = self.random.choice((*NODES, "nowhere")) if draw() < 0.2 else ""
        labels = {"app": self.random.choice("xy")}
        raw = pod(self.random.choice(PODS), node=where, metadata=metadata, labels=labels, spec=spec)
        self.store.create(raw, now=self.now)

    def bind(self) -> None:
        waiting = [stored for stored in self.store.objects("Pod") if not stored.raw["spec"].get("nodeName")]
        if waiting:
            stored = self.random.choice(waiting)
            self.store.bind(stored.key, self.random.choice((*NODES, "nowhere")), now=self.now)

    def report(self) -> None:
        phase, ready = self.random.choice((*[("Running", "True")] * 4, ("Running", "False"), ("Succeeded", "False")))
        self.patch("Pod", {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}, "status")

    def disrupt(self) -> None:
        condition = {"type": "DisruptionTarget", "status": self.random.choice(("True", "False")), "reason": "x"}
        self.patch("Pod", {"conditions": [{**condition, "lastTransitionTime": "2027-01-15T08:00:00Z"}]}, "status")

    def end_pod(self) -> None:
        stored = self.any_of("Pod")
        if stored is None:
            return
        if self.random.random() < 0.5:
            self.store.patch("Pod", stored, {"metadata": {"finalizers": None}}, "merge", "")
        else:
            self.store.delete("Pod", stored, now=self.now, grace_seconds=self.random.choice((0, 0, 30)))

    def new_node(self) -> None:
        self.store.create(self.well(node(self.random.choice(NODES))), now=self.now)

    def well(self, raw: Raw) -> Raw:
        ready = "True" if self.random.random() < 0.7 else "False"
        conditions = [{"type": "Ready", "status": ready}]
        return {**raw, "status": {**raw["status"], "conditions": conditions}}

    def change_node(self) -> None:
        draw = self.random.random()
        if draw < 0.3:
            ready = "True" if draw < 0.2 else "False"
            self.patch("Node", {"conditions": [{"type": "Ready", "status": ready}]}, "status")
        elif draw < 0.8:
            taints = [TAINT] if draw < 0.5 else None
            self.patch("Node", {"taints": taints}, "spec")
        else:
            self.patch("Node", {"annotations": {PREFER_AVOID_PODS: self.avoid() if draw < 0.9 else None}}, "metadata")

    def avoid(self) -> str:
        uids = [stored.uid for stored in self.store.objects("Pod")] or ["gone"]
        awaited = {"name": "p", "namespace": "default", "uid": self.random.choice(uids)}
        entry = {"podSignature": {"podController": OWNER}, "evictionTime": "2027-01-15T08:00:00Z"}
        return json.dumps({"preferAvoidPods": [{**entry, "reason": "x", "untilScheduled": awaited}]})

    def end_node(self) -> None:
        self.end("Node")

    def workload(self) -> None:
        spec = {"replicas": self.random.randrange(5), "selector": {"matchLabels": {"app": "x"}}}
        template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        metadata: Raw = {"name": "web", "namespace": "default"}
        if self.random.random() < 0.7:
            owner = {**OWNER, "kind": "Deployment", "uid": self.uid_of("Deployment", "web")}
            metadata["ownerReferences"] = [owner]
        raw = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": metadata,
            "spec": {**spec, "template": template},
        }
        if self.store.find("ReplicaSet", "default/web") is None:
            self.store.create(raw, now=self.now)
        else:
            self.patch("ReplicaSet", {"replicas": self.random.randrange(5)}, "spec")

    def deployment(self) -> None:
        """Create or change a Deployment whose template is not that of the ReplicaSet."""
        strategy = {"type": self.random.choice(("Recreate", "RollingUpdate")), "rollingUpdate": None}
        if self.store.find("Deployment", "default/web") is not None:
            self.patch("Deployment", {"strategy": strategy, "replicas": self.random.randrange(5)}, "spec")
            return
        template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "new", "image": "i"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template}
        raw = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
        self.store.create({**raw, "spec": {**spec, "strategy": {"type": strategy["type"]}}}, now=self.now)

    def uid_of(self, kind: str, name: str) -> str:
        stored = self.store.find(kind, f"default/{name}")
        return name if stored is None else stored.uid

    def budget(self) -> None:
        name = self.random.choice("xy")
        spec = {"selector": {"matchLabels": {"app": name}}, "maxUnavailable": self.random.choice((1, "50%"))}
        metadata = {"name": name, "namespace": "default"}
        raw = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
        self.store.create(raw, now=self.now)

    def claim(self) -> None:
        pods = [stored.uid for stored in self.store.objects("Pod")]
        metadata = {"name": self.random.choice(("shared", "other")), "namespace": "default"}
        raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": {}}
        self.store.create(raw, now=self.now)
        reserved = [{"resource": "pods", "name": "p", "uid": self.random.choice([*pods, "never"])}]
        key = f"default/{metadata['name']}"
        self.store.patch("ResourceClaim", key, {"status": {"reservedFor": reserved}}, "merge", "status")

    def template(self) -> None:
        metadata = {"name": "gpu", "namespace": "default"}
        raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata}
        self.store.create({**raw, "spec": {"spec": {}}}, now=self.now)

    def end_object(self) -> None:
        kinds = ("Deployment", "ReplicaSet", "PodDisruptionBudget", "ResourceClaim", "ResourceClaimTemplate")
        self.end(self.random.choice(kinds))

    def pass_time(self) -> None:
        self.now += self.random.choice((1, 10, 60, 400)) * SECOND

    def restart(self) -> None:
        """Let a controller begin again, with all objects."""
        place = self.random.randrange(len(RESTING))
        for outcome in self.both:
            component = outcome.driver.components[place]
            outcome.driver.stop(component)
            machine = component.make()
            kinds = [kind.name for kind in self.store.resources.all() if is_watched_kind(kind.name, machine.watches)]
            outcome.begin(component, map(self.existing, kinds))

    def existing(self, kind: str) -> ExistingObjects:
        events = [WatchEvent("ADDED", stored, None) for stored in self.store.objects(kind)]
        aspects = [aspects_of(event, self.store) for event in events]
        return kind, [*map(observation_of, events)], aspects

    def answer(self) -> None:
        problem = self.random.choice((None, None, REFUSED))
        if all(outcome.asked for outcome in self.both):
            for outcome in self.both:
                outcome.answer(problem)

    def patch(self, kind: str, fields: Raw, part: str) -> None:
        key = self.any_of(kind)
        if key is not None:
            self.store.patch(kind, key, {part: fields}, "merge", "status" if part == "status" else "")

    def end(self, kind: str) -> None:
        key = self.any_of(kind)
        if key is not None:
            self.store.delete(kind, key, now=self.now)

    def any_of(self, kind: str) -> str | None:
        keys = sorted(stored.key for stored in self.store.objects(kind))
        return self.random.choice(keys) if keys else None


@pytest.mark.parametrize("seed", range(30))
def test_an_idle_component_takes_the_same_actions_as_one_that_observes_everything(seed: int) -> None:
    play = Play(seed)

    play.go(150)

    eager, resting = play.both
    assert resting.said == eager.said
    assert not eager.rested


def test_each_resting_controller_becomes_idle_and_acts() -> None:
    rested: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    for seed in range(12):
        play = Play(seed)
        play.go(150)
        rested += play.both[1].rested
        sent += play.both[1].sent

    assert min(rested[name] for name in RESTING) > 10
    assert min(sent[name] for name in RESTING) > 2


def test_eviction_order_follows_unobserved_placement_times() -> None:
    play = Play(0)
    play.deeds = [lambda: play.store.create(node("n1"), now=START_NS)]
    play.go(1)
    for name in "xyz":
        play.deeds = [partial(play.store.create, pod(name), now=START_NS)]
        play.go(1)
    for name in "zxy":
        play.deeds = [partial(play.store.bind, f"default/{name}", "n1", now=START_NS)]
        play.go(1)

    assert all(component.is_idle for component in play.both[1].driver.components)
    play.deeds = [partial(play.store.patch, "Node", "n1", {"spec": {"taints": [TAINT]}}, "merge", "")]
    play.go(1)

    marked = [
        [asked.action.key for asked in outcome.asked if isinstance(asked.action, ReportStatus)] for outcome in play.both
    ]
    assert marked == [["default/z", "default/x", "default/y"]] * 2


def test_the_resting_components_are_the_controllers_that_need_few_pods() -> None:
    assert set(RESTING) == {
        *("node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector"),
        *("resource-claim-controller", "disruption-controller", "avoid-list-controller"),
        "deployment-controller",
    }
