"""Evictions in any order, against a plain model."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from podium.store.errors import StoreError
from podium.store.store import Store
from tests.fuzzing import usual
from tests.plain_bucket import PlainBucket
from tests.pod_statuses import set_pod_status
from tests.store.objects import SECOND, Raw, budget, disruption_policy, pod
from tests.store.refusals import everything

NAMES = st.sampled_from(["p0", "p1", "p2", "p3"])
# Each budget with the labels that it selects by, and the bucket of its rate.
SELECTED = {"all": {}, "front": {"tier": "front"}, "web": {"app": "web"}}
RATES = {"web": ("3/60s", 3, 20 * SECOND), "front": ("", 0, 0), "all": ("2/20s", 2, 10 * SECOND)}
BUDGETS = st.sampled_from(sorted(SELECTED))
LABELS = st.sampled_from([{"app": "web"}, {"app": "web", "tier": "front"}, {"tier": "front"}, {}])
READY = st.sampled_from(["True", "True", "True", "False"])
PHASES = st.sampled_from(["Pending", "Running", "Running", "Running", "Succeeded"])
PODS = st.builds(
    lambda labels, phase, ready: pod(
        "new", node="n1", labels=labels, status={"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    ),
    LABELS,
    PHASES,
    READY,
)
COMPONENTS = st.sampled_from(["drain", "autoscaler", ""])
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}

Verdict = tuple[int, str, int]
GRANTED: Verdict = (200, "", 0)


def seconds(time: int, now: int) -> int:
    return -(-(time - now) // SECOND)


class Evictors(RuleBasedStateMachine):
    """A cluster in which pods come, go and are evicted, and the controller of budgets writes what it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.now = 0
        self.budgets: list[str] = []
        self.requires_all = True
        self.buckets = {name: PlainBucket(count, interval) for name, (_, count, interval) in RATES.items() if count}
        self.caps = {"drain": PlainBucket(1, 20 * SECOND), "scheduler": PlainBucket(1, 60 * SECOND)}
        # What the controller has allowed in its last write, less what was debited since.
        self.left: dict[str, int] = {}

    @initialize(names=st.sets(BUDGETS, min_size=1, max_size=2), pods=st.lists(PODS, min_size=4, max_size=4))
    def begin(self, names: set[str], pods: list[Raw]) -> None:
        for number, one in enumerate(pods):
            self.replace(f"p{number}", one)
        self.budgets = sorted(names)
        for name in self.budgets:
            spec = {"selector": {"matchLabels": SELECTED[name]}}
            self.store.create(budget(name, allowed=0, rate=RATES[name][0], spec=spec), now=0)
            self.sync(name, allowed=3, healthy=2, desired=2, lag=False)
        self.store.create(self.policy(), now=0)

    def policy(self) -> Raw:
        caps = [{"component": "drain", "max": "1/20s"}, {"component": "scheduler", "max": "1/1m"}]
        return disruption_policy(caps=caps, severalBudgets="RequireAll" if self.requires_all else "Refuse")

    def replace(self, name: str, new: Raw) -> None:
        """Let a pod that is going be gone, and another come in its place."""
        key = f"default/{name}"
        found = self.store.find("Pod", key)
        if found is not None and found.object.metadata.deletion_timestamp is not None:
            found = self.store.delete("Pod", key, now=self.now, grace_seconds=0)
        if found is None:
            metadata = {**new["metadata"], "name": name}
            self.store.create({**new, "metadata": metadata}, now=self.now)

    @rule(
        name=BUDGETS,
        allowed=st.integers(-1, 4),
        healthy=st.integers(0, 2),
        desired=st.integers(0, 2),
        lag=st.sampled_from([False, False, False, True]),
    )
    def sync(self, name: str, allowed: int, healthy: int, desired: int, lag: bool) -> None:
        if name in self.budgets:
            stored = self.store.get("PodDisruptionBudget", f"default/{name}")
            observed = stored.object.metadata.generation - lag
            counted = {"currentHealthy": healthy, "desiredHealthy": desired, "observedGeneration": observed}
            status = {**stored.raw["status"], **counted, "disruptionsAllowed": allowed}
            self.store.update_status({**stored.raw, "status": status})
            self.left[name] = allowed

    @rule(
        name=BUDGETS,
        policy=st.sampled_from(["AlwaysAllow", "IfHealthyBudget"]),
        requires_all=st.sampled_from([True, True, False]),
    )
    def configure(self, name: str, policy: str, requires_all: bool) -> None:
        self.requires_all = requires_all
        self.store.update(self.policy())
        if name in self.budgets:
            patch = {"spec": {"unhealthyPodEvictionPolicy": policy}}
            self.store.patch("PodDisruptionBudget", f"default/{name}", patch, "merge")

    @rule(wait=st.integers(0, 40 * SECOND))
    def wait(self, wait: int) -> None:
        self.now += wait

    @rule(name=NAMES, preempted=st.booleans(), new=PODS)
    def delete(self, name: str, preempted: bool, new: Raw) -> None:
        key = f"default/{name}"
        if preempted:
            set_pod_status(self.store, key, {}, [PREEMPTED], now=self.now)
        raw = self.store.get("Pod", key).raw
        covering = self.covering(raw) if is_protected(raw) and condition(raw, "Ready") == "True" else []
        self.store.delete("Pod", key, now=self.now)
        for one in covering:
            if one in self.buckets and self.buckets[one].tokens(self.now):
                self.buckets[one].take(self.now)
        if covering and condition(raw, "DisruptionTarget") and self.caps["scheduler"].tokens(self.now):
            self.caps["scheduler"].take(self.now)
        self.check_buckets()
        self.replace(name, new)

    @rule(
        names=st.lists(NAMES, min_size=1, max_size=4), new=PODS, component=COMPONENTS, grace=st.sampled_from([None, 0])
    )
    def evict_several(self, names: list[str], new: Raw, component: str, grace: int | None) -> None:
        for name in names:
            self.evict(name, component, grace, dry_run=True)
            self.evict(name, component, grace, dry_run=False)
        for name in names:
            self.replace(name, new)

    def evict(self, name: str, component: str, grace: int | None, dry_run: bool) -> None:
        key = f"default/{name}"
        found = self.store.find("Pod", key)
        if found is None:
            assert self.ask(key) == (404, "", 0)
            return
        verdict, debited = self.verdict(found.raw, component)
        before = everything(self.store)

        answer = self.ask(key, component=component, grace_seconds=grace, dry_run=dry_run)

        assert answer == verdict
        if answer != GRANTED or dry_run:
            assert everything(self.store) == before
            return
        self.check_debits(name, before, debited)
        for one in debited:
            self.left[one] -= 1
            assert self.left[one] >= 0
            if one in self.buckets:
                self.buckets[one].take(self.now)
        if debited and component in self.caps:
            self.caps[component].take(self.now)
        self.check_buckets()

    def ask(self, key: str, **options: Any) -> Verdict:
        try:
            self.store.evict(key, now=self.now, **options)
        except StoreError as error:
            causes = error.details.get("causes", [{"reason": ""}])
            return error.code, causes[0]["reason"], error.details.get("retryAfterSeconds", 0)
        return GRANTED

    def covering(self, raw: Raw) -> list[str]:
        labels = raw["metadata"].get("labels", {}).items()
        return [name for name in self.budgets if SELECTED[name].items() <= labels]

    def verdict(self, raw: Raw, component: str) -> tuple[Verdict, list[str]]:
        """Return what the answer must be, and the budgets that are to be debited."""
        covering = self.covering(raw)
        if not is_protected(raw) or not covering:
            return GRANTED, []
        if len(covering) > 1 and not self.requires_all:
            return (500, "", 0), []
        debited = [name for name in covering if condition(raw, "Ready") == "True" or not self.spares(name)]
        for name in debited:
            problem = self.problem(name)
            if problem != GRANTED:
                return problem, []
        if debited and component in self.caps and not self.caps[component].tokens(self.now):
            return (429, "DisruptionCap", seconds(self.caps[component].next_ns(self.now), self.now)), []
        return GRANTED, debited

    def spares(self, name: str) -> bool:
        raw = self.store.get("PodDisruptionBudget", f"default/{name}").raw
        status = raw["status"]
        is_enough = status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0
        is_current = status["observedGeneration"] == raw["metadata"]["generation"]
        return bool(raw["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or (is_enough and is_current))

    def problem(self, name: str) -> Verdict:
        raw = self.store.get("PodDisruptionBudget", f"default/{name}").raw
        if raw["status"]["observedGeneration"] != raw["metadata"]["generation"]:
            return 429, "DisruptionBudget", 10
        if raw["status"]["disruptionsAllowed"] <= 0:
            return (429, "DisruptionBudget", 0) if self.left[name] == 0 else (403, "", 0)
        if name in self.buckets and not self.buckets[name].tokens(self.now):
            return 429, "DisruptionRate", seconds(self.buckets[name].next_ns(self.now), self.now)
        return GRANTED

    def check_debits(self, name: str, before: Any, debited: list[str]) -> None:
        """Each budget that pays is debited by exactly one, and no other is touched."""
        for stored in before[0]["PodDisruptionBudget"]:
            after = self.store.get("PodDisruptionBudget", stored.key)
            if stored.object.metadata.name not in debited:
                assert after is stored
                continue
            assert after.version > stored.version
            assert after.raw["status"]["disruptionsAllowed"] == stored.raw["status"]["disruptionsAllowed"] - 1
            entries = {**stored.raw["status"].get("disruptedPods", {})}
            added = after.raw["status"]["disruptedPods"].items() - entries.items()
            assert {one for one, _ in added} <= {name} <= set(after.raw["status"]["disruptedPods"])

    def check_buckets(self) -> None:
        for name, bucket in self.buckets.items():
            if name in self.budgets:
                status = self.store.get("PodDisruptionBudget", f"default/{name}").raw["status"]
                available = status.get("disruptionRate", {}).get("available", bucket.count)
                assert available <= bucket.tokens(self.now)


def is_protected(raw: Raw) -> bool:
    return bool(raw["status"]["phase"] == "Running" and "deletionTimestamp" not in raw["metadata"])


def condition(raw: Raw, type_: str) -> str:
    return next((str(one["status"]) for one in raw["status"].get("conditions", ()) if one["type"] == type_), "")


TestEvictors = Evictors.TestCase
TestEvictors.settings = settings(max_examples=usual(100), stateful_step_count=30)
