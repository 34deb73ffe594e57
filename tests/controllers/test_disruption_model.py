"""The disruption controller against a recount, and evictions against the promises of budgets, in random orders."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.api.times import format_time, parse_time
from podium.controllers.disruption.disruption_controller import DisruptionController
from podium.controllers.observations import Problem
from tests.controllers.store_rig import CONFLICT, NO_ANSWER, UNAVAILABLE, Rig, pod, replica_set
from tests.fuzzing import usual
from tests.sim.objects import budget, job, owned, workload
from tests.store.objects import SECOND, Raw

NUMBERS = st.sampled_from(
    [
        {"minAvailable": 1},
        {"minAvailable": 2},
        {"minAvailable": "50%"},
        {"maxUnavailable": 1},
        {"maxUnavailable": "34%"},
        {},
    ]
)
SELECTORS = st.sampled_from(
    [
        {},
        {"matchLabels": {"app": "web"}},
        {"matchLabels": {"app": "web", "tier": "front"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
        {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
    ]
)
LABELS = st.sampled_from([{}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "front"}])
PODS = st.sampled_from(["a", "b", "c", "d", "e"])
BUDGETS = st.sampled_from(["one", "two", "three"])
DEPLOYMENT = workload("Deployment", "deployment", 3, uid="deployment")
OWNERS: list[Raw | None] = [
    None,
    replica_set("set", 2),
    owned(replica_set("deployed", 1), DEPLOYMENT),
    workload("StatefulSet", "stateful", 2, uid="stateful"),
    {**job("job"), "metadata": {"name": "job", "namespace": "default", "uid": "job"}},
]
WORKLOADS = [one for one in (*OWNERS, DEPLOYMENT) if one is not None]


def recount(rig: Rig, budget_: PodDisruptionBudget) -> tuple[int, int, int, int] | None:
    """Return (allowed, healthy, desired, expected) by F1, or None if a scale is unknown."""
    covered = [one for one in pods_of(rig) if covers(budget_, one)]
    noted = budget_.status.disrupted_pods
    healthy = sum(is_up(one) and not still_counts(one, noted.get(one.metadata.name), rig.now) for one in covered)
    least, most = budget_.spec.min_available, budget_.spec.max_unavailable
    if most is None and not isinstance(least, str):
        expected, desired = (0, 0) if least is None else (len(covered), least)
    else:
        scales = {scale for one in covered if one.metadata.controller for scale in scales_of(rig, one)}
        if None in scales:
            return None
        expected = sum(scale[1] for scale in scales if scale)
        share = most if most is not None else least
        number = share if isinstance(share, int) else -(-int(str(share)[:-1]) * expected // 100)
        desired = number if most is None else max(0, expected - number)
    return max(0, healthy - desired) if expected else 0, healthy, desired, expected


def scales_of(rig: Rig, one: Pod) -> list[tuple[str, int] | None]:
    owner = one.metadata.controller
    assert owner is not None
    found = find(rig, owner.kind, owner.uid)
    if found is None or owner.kind == "Job":
        return [None]
    parent = found.metadata.controller
    top: Any = find(rig, parent.kind, parent.uid) if parent else found
    return [(top.metadata.uid, top.spec.replicas) if top else None]


def find(rig: Rig, kind: str, uid: str) -> Kubernetes | None:
    return next((one.object for one in rig.store.objects(kind) if one.uid == uid), None)


def is_up(one: Pod) -> bool:
    ready = one.status.condition("Ready")
    return ready is not None and ready.status == "True" and not one.is_terminating


def still_counts(one: Pod, accepted: str | None, now: int) -> bool:
    if accepted is None:
        return False
    return parse_time(one.metadata.creation_timestamp or "") <= parse_time(accepted) > now - 120 * SECOND


class Recount(RuleBasedStateMachine):
    """Anything may happen to budgets, pods and workloads, a second after what was before; it may be seen late.

    Writes may fail.
    """

    @initialize()
    def begin(self) -> None:
        self.rig = Rig(DisruptionController)
        self.used: set[str] = set()
        self.is_failing = False

    @rule(name=PODS, labels=LABELS, owner=st.sampled_from(OWNERS), ready=st.booleans())
    def put_pod(self, name: str, labels: Raw, owner: Raw | None, ready: bool) -> None:
        self.pass_a_second()
        self.rig.put(pod(name, labels=labels, owner=owner, ready=ready))

    @rule(name=PODS, grace=st.sampled_from([0, 0, 30]))
    def delete_pod(self, name: str, grace: int) -> None:
        self.pass_a_second()
        if self.rig.store.find("Pod", f"default/{name}"):
            self.rig.delete("Pod", name, grace_seconds=grace)

    @rule(name=BUDGETS, selector=SELECTORS, numbers=NUMBERS)
    def put_budget(self, name: str, selector: Raw, numbers: Raw) -> None:
        self.rig.put(budget(name, selector=selector, **numbers))

    @rule(name=BUDGETS)
    def delete_budget(self, name: str) -> None:
        if self.rig.store.find("PodDisruptionBudget", f"default/{name}"):
            self.rig.delete("PodDisruptionBudget", name)

    @rule(raw=st.sampled_from(WORKLOADS), replicas=st.integers(0, 4))
    def put_workload(self, raw: Raw, replicas: int) -> None:
        uid = raw["metadata"]["uid"]
        if uid in self.used and find(self.rig, raw["kind"], uid) is None:
            return
        self.used.add(uid)
        self.rig.put(raw if raw["kind"] == "Job" else {**raw, "spec": {**raw["spec"], "replicas": replicas}})

    @rule(raw=st.sampled_from(WORKLOADS))
    def delete_workload(self, raw: Raw) -> None:
        if find(self.rig, raw["kind"], raw["metadata"]["uid"]):
            self.rig.delete(raw["kind"], raw["metadata"]["name"])

    @rule(name=PODS)
    def evict(self, name: str) -> None:
        self.pass_a_second()
        stored = self.rig.store.find("Pod", f"default/{name}")
        if stored and sum(covers(one, stored.object) for one in budgets(self.rig)) < 2:
            self.rig.evict(name)

    @rule(name=BUDGETS, pod_name=PODS, ago=st.integers(0, 130))
    def note(self, name: str, pod_name: str, ago: int) -> None:
        """Accept an eviction without deleting its pod."""
        self.pass_a_second()
        stored = self.rig.store.find("PodDisruptionBudget", f"default/{name}")
        if stored:
            status = stored.raw.get("status", {})
            noted = {**status.get("disruptedPods", {}), pod_name: format_time(self.rig.now - ago * SECOND)}
            self.rig.store.update_status({**stored.raw, "status": {**status, "disruptedPods": noted}})

    @rule(kinds=st.sets(st.sampled_from(["Pod", "PodDisruptionBudget", "ReplicaSet", "Deployment"])))
    def hold(self, kinds: set[str]) -> None:
        self.rig.held = kinds

    @rule(problem=st.sampled_from([CONFLICT, NO_ANSWER, UNAVAILABLE]))
    def fail(self, problem: Problem) -> None:
        self.is_failing = True
        self.rig.problems.append(problem)

    @rule(seconds=st.integers(0, 100))
    def wait(self, seconds: int) -> None:
        self.rig.wait(seconds)

    @rule()
    def restart(self) -> None:
        self.rig.restart()

    @rule(seconds=st.sampled_from([0, 2_000]))
    def compare(self, seconds: int) -> None:
        """Once everything is seen, every status is right, and a new controller finds nothing to write."""
        self.rig.held, self.rig.problems = set(), []
        self.rig.wait(2_000 if self.is_failing else seconds)
        self.is_failing = False
        for one in budgets(self.rig):
            self.check(one)
        written = len(self.rig.log)
        self.rig.restart()
        self.rig.settle()
        assert len(self.rig.log) == written

    def check(self, one: PodDisruptionBudget) -> None:
        status, expected = one.status, recount(self.rig, one)
        condition = status.condition("DisruptionAllowed")
        assert condition is not None
        if expected is None:
            assert (status.disruptions_allowed, condition.reason) == (0, "SyncFailed")
            return
        found = status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods
        assert found == expected
        assert condition.reason == ("SufficientPods" if expected[0] else "InsufficientPods")
        assert status.observed_generation == one.metadata.generation
        assert all(parse_time(text) > self.rig.now - 120 * SECOND for text in status.disrupted_pods.values())

    def pass_a_second(self) -> None:
        self.rig.now += SECOND


class Promise(RuleBasedStateMachine):
    """Pods are evicted, end, and are replaced, some by namesakes; all of that is seen late, in any order of kinds.

    Nothing else makes pods unhealthy. So each eviction that is granted leaves as many healthy pods as the budget wants.
    """

    @initialize(numbers=st.sampled_from([{"minAvailable": 2}, {"maxUnavailable": 1}, {"maxUnavailable": 2}]))
    def begin(self, numbers: Raw) -> None:
        owner = workload("StatefulSet", "web", 4, uid="web")
        self.owner, self.replaced = owner, 0
        pods = (pod(f"web-{number}", owner=owner) for number in range(4))
        self.rig = Rig(DisruptionController, owner, budget("pdb", **numbers), *pods)
        self.lagging_since = self.rig.now
        self.rig.settle()

    @rule(number=st.integers(0, 20))
    def evict(self, number: int) -> None:
        self.rig.now += SECOND
        names = [one.metadata.name for one in pods_of(self.rig) if is_up(one)]
        if not names or not self.rig.evict(names[number % len(names)]):
            return
        (one,) = budgets(self.rig)
        assert sum(map(is_up, pods_of(self.rig))) >= one.status.desired_healthy

    @rule(number=st.integers(0, 20), ready=st.booleans(), is_namesake=st.booleans())
    def replace(self, number: int, ready: bool, is_namesake: bool) -> None:
        """Remove a terminating pod, and create another one."""
        self.rig.now += SECOND
        names = [one.metadata.name for one in pods_of(self.rig) if one.is_terminating]
        if names:
            name = names[number % len(names)]
            self.rig.delete("Pod", name)
            self.replaced += 1
            self.rig.put(pod(name if is_namesake else f"new-{self.replaced}", owner=self.owner, ready=ready))

    @rule(number=st.integers(0, 20))
    def become_ready(self, number: int) -> None:
        names = [one.metadata.name for one in pods_of(self.rig) if not is_up(one) and not one.is_terminating]
        if names:
            self.rig.put(pod(names[number % len(names)], owner=self.owner))

    @rule(kind=st.sampled_from(["Pod", "PodDisruptionBudget", ""]))
    def hold(self, kind: str) -> None:
        """One kind is seen late, though not by as much as two minutes."""
        self.rig.held = set()
        self.rig.see()
        self.rig.held = {kind}
        self.lagging_since = self.rig.now

    @rule(count=st.integers(1, 3))
    def see_some(self, count: int) -> None:
        """Deliver the oldest held observation."""
        self.rig.see_held(count)

    @rule()
    def settle(self) -> None:
        self.rig.settle()

    @rule(problem=st.sampled_from([CONFLICT, NO_ANSWER]))
    def fail(self, problem: Problem) -> None:
        self.rig.problems.append(problem)

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        if self.rig.now - self.lagging_since > 50 * SECOND:
            self.hold("")
        self.rig.wait(seconds)

    @rule()
    def restart(self) -> None:
        self.rig.restart()
        self.lagging_since = self.rig.now


def budgets(rig: Rig) -> list[PodDisruptionBudget]:
    found = (one.object for one in rig.store.objects("PodDisruptionBudget"))
    return [one for one in found if isinstance(one, PodDisruptionBudget)]


def pods_of(rig: Rig) -> list[Pod]:
    return [one.object for one in rig.store.objects("Pod") if isinstance(one.object, Pod)]


def covers(one: PodDisruptionBudget, object_: Kubernetes) -> bool:
    return compile_label_selector(one.spec.selector).matches(object_.metadata.labels)


TestRecount = Recount.TestCase
TestRecount.settings = settings(max_examples=usual(60), stateful_step_count=40)
TestPromise = Promise.TestCase
TestPromise.settings = settings(max_examples=usual(60), stateful_step_count=40)
