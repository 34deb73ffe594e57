"""Default budgets against a plain model, in random orders."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from podium.controllers.disruption.default_budgets import DefaultBudgets
from podium.controllers.observations import Problem
from tests.controllers.store_rig import CONFLICT, NO_ANSWER, UNAVAILABLE, Rig
from tests.controllers.test_default_budgets import keeper, policy
from tests.fuzzing import usual
from tests.sim.objects import budget
from tests.store.objects import Raw, priority_class

NAMES = st.sampled_from(["a", "b", "c"])
WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet")
KINDS = st.sampled_from(WORKLOADS)
LABELS = st.sampled_from([{"app": "web"}, {"app": "web", "tier": "front"}, {"app": "db"}, {"tier": "front"}])
POD_SPECS = st.sampled_from([{}, {"priority": 5}, {"priorityClassName": "high"}])
ENTRIES = st.sampled_from(
    [[], [{"maxUnavailable": 1}], [{"minPriority": 5, "maxUnavailable": 1}], [{"minPriority": 9, "minAvailable": 2}]]
)


class Defaults(RuleBasedStateMachine):
    """Workloads, budgets, classes and the policy come, change and go, and are seen late; writes fail."""

    @initialize()
    def begin(self) -> None:
        self.rig = Rig(DefaultBudgets)

    @rule(entries=ENTRIES)
    def put_policy(self, entries: list[Raw]) -> None:
        self.rig.put(policy(*entries))

    @rule()
    def delete_policy(self) -> None:
        if self.rig.store.find("DisruptionPolicy", "default"):
            self.rig.store.delete("DisruptionPolicy", "default", now=self.rig.now)

    @rule(is_there=st.booleans())
    def put_class(self, is_there: bool) -> None:
        if is_there:
            self.rig.put(priority_class("high", 9))
        elif self.rig.store.find("PriorityClass", "high"):
            self.rig.store.delete("PriorityClass", "high", now=self.rig.now)

    @rule(kind=KINDS, name=NAMES, selected=LABELS, others=LABELS, spec=POD_SPECS)
    def put_workload(self, kind: str, name: str, selected: Raw, others: Raw, spec: Raw) -> None:
        """Create a workload, or change its pods but not its selector."""
        found = self.rig.store.find(kind, f"default/{name}")
        kept = selector(found.raw) if found else selected
        raw = keeper(kind, name, {**others, **kept}, selector=kept, spec=spec)
        del raw["metadata"]["uid"]
        self.rig.put(raw)

    @rule(kind=KINDS, name=NAMES)
    def delete_workload(self, kind: str, name: str) -> None:
        found = self.rig.store.find(kind, f"default/{name}")
        if found:
            self.rig.delete(kind, name)
            self.collect()

    @rule(name=st.sampled_from(["a-default", "mine"]), selected=LABELS)
    def put_budget(self, name: str, selected: Raw) -> None:
        if name == "mine" or not self.rig.store.find("PodDisruptionBudget", f"default/{name}"):
            self.rig.put(budget(name, selector={"matchLabels": selected}, minAvailable=1))

    @rule(number=st.integers(0, 5))
    def delete_budget(self, number: int) -> None:
        names = self.rig.names("PodDisruptionBudget")
        if names:
            self.rig.delete("PodDisruptionBudget", names[number % len(names)])

    @rule(kinds=st.sets(st.sampled_from(["PodDisruptionBudget", "Deployment", "DisruptionPolicy", "PriorityClass"])))
    def hold(self, kinds: set[str]) -> None:
        self.rig.held = kinds

    @rule(problem=st.sampled_from([CONFLICT, NO_ANSWER, UNAVAILABLE]))
    def fail(self, problem: Problem) -> None:
        self.rig.problems.append(problem)

    @rule(seconds=st.integers(0, 5))
    def wait(self, seconds: int) -> None:
        self.rig.wait(seconds)

    @rule()
    def restart(self) -> None:
        self.rig.restart()

    @rule()
    def compare(self) -> None:
        """Once everything is seen, each workload has the budget that it should have."""
        self.rig.held, self.rig.problems = set(), []
        self.rig.wait(1_000)
        self.collect()
        self.rig.wait(1_000)
        found = [one.raw for one in self.rig.store.objects("PodDisruptionBudget")]
        defaults = [raw for raw in found if raw["metadata"].get("labels")]
        owners = [raw["metadata"]["ownerReferences"][0] for raw in defaults]
        numbers = {
            (owner["name"], owner["kind"]): {**raw["spec"], "selector": selector(raw)}
            for owner, raw in zip(owners, defaults, strict=True)
        }
        assert len(numbers) == len(defaults)
        assert numbers == self.wanted([raw for raw in found if raw not in defaults])
        report = len(self.rig.log)
        self.rig.restart()
        self.rig.settle()
        assert len(self.rig.log) == report

    def wanted(self, made: list[Raw]) -> dict[tuple[str, str], Raw]:
        """Return the spec of the default budget of each workload that should have one."""
        raws = [one.raw for kind in WORKLOADS for one in self.rig.store.objects(kind)]
        raws.sort(key=lambda raw: (raw["metadata"]["name"], raw["kind"]))
        protected = [any(selector(one).items() <= labels(raw).items() for one in made) for raw in raws]
        chosen: dict[tuple[str, str], Raw] = {}
        entitled: list[Raw] = []
        for raw, is_protected in zip(raws, protected, strict=True):
            entry = self.entry(raw)
            if entry is None or is_protected:
                continue
            clashes = any(has and selects(raw, other) for other, has in zip(raws, protected, strict=True))
            if not clashes and not any(selects(raw, other) or selects(other, raw) for other in entitled):
                numbers = {name: value for name, value in entry.items() if name != "minPriority"}
                chosen[raw["metadata"]["name"], raw["kind"]] = {**numbers, "selector": selector(raw)}
            entitled.append(raw)
        return chosen

    def entry(self, raw: Raw) -> Raw | None:
        stored = self.rig.store.find("DisruptionPolicy", "default")
        priority = self.priority(raw["spec"]["template"]["spec"])
        entries: list[Raw] = stored.raw["spec"]["defaultBudgets"] if stored else []
        return next((one for one in entries if one.get("minPriority", priority) <= priority), None)

    def priority(self, spec: Raw) -> int:
        if spec.get("priorityClassName") and self.rig.store.find("PriorityClass", "high"):
            return 9
        given: int = spec.get("priority", 0)
        return given

    def collect(self) -> None:
        """Delete the objects of deleted owners, as the garbage collector."""
        alive = {one.uid for kind in WORKLOADS for one in self.rig.store.objects(kind)}
        for one in self.rig.store.objects("PodDisruptionBudget"):
            owners = one.raw["metadata"].get("ownerReferences", [])
            if owners and owners[0]["uid"] not in alive:
                self.rig.delete("PodDisruptionBudget", one.raw["metadata"]["name"])


def selector(raw: Raw) -> Raw:
    found: Raw = raw["spec"]["selector"]["matchLabels"]
    return found


def labels(raw: Raw) -> Raw:
    found: Raw = raw["spec"]["template"]["metadata"]["labels"]
    return found


def selects(one: Raw, other: Raw) -> bool:
    return selector(one).items() <= labels(other).items()


TestDefaults = Defaults.TestCase
TestDefaults.settings = settings(max_examples=usual(60), stateful_step_count=40)
