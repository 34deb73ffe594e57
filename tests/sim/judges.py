"""Judges of a run: plain loops over writes and evictions, without the project's own arithmetic.

They read raw objects alone, so that a mistake in readings, caches or controllers cannot excuse itself. A judge raises
for what it does not understand, too: a story with such an object would not be judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from podium.controllers.actions import Action, Evict
from podium.controllers.observations import ActionFinished
from podium.sim.simulation import Simulation
from podium.store.watch_log import WatchEvent
from tests.store.objects import Raw

UNITS: dict[str, int | Fraction] = {
    "": 1,
    "m": Fraction(1, 1000),
    "k": 1000,
    "Ki": 1024,
    "Mi": 1024**2,
    "Gi": 1024**3,
    "Ti": 1024**4,
}
SECONDS: dict[str, int | Fraction] = {"ms": Fraction(1, 1000), "s": 1, "m": 60, "h": 3600}
NON_PREEMPTIBLE = {"NonPreemptible", "NonPreemptiblePreemptNever"}
PREEMPTED = {"PreemptionByScheduler"}


def amount(quantity: object) -> Fraction:
    """Return the number that a quantity stands for."""
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(quantity))
    assert found is not None, quantity
    return Fraction(found[1]) * UNITS[found[2]]


def requests(raw: Raw) -> dict[str, Fraction]:
    """Return what a pod of plain containers requests."""
    spec = raw["spec"]
    assert not {"initContainers", "overhead", "resources"} & spec.keys(), raw["metadata"]["name"]
    total: dict[str, Fraction] = {"pods": Fraction(1)}
    for container in spec["containers"]:
        resources = container.get("resources", {})
        for name, quantity in {**resources.get("limits", {}), **resources.get("requests", {})}.items():
            total[name] = total.get(name, Fraction()) + amount(quantity)
    return total


def policy_of(raw: Raw) -> str:
    """Return a pod's preemption policy: that of its annotation, or of its specification."""
    return str(
        raw["metadata"].get("annotations", {}).get("podium.dev/preemption-policy")
        or raw["spec"].get("preemptionPolicy", "PreemptLowerPriority")
    )


def condition(raw: Raw, type_: str) -> Raw:
    """Return a condition that is true; {} for none."""
    found = raw.get("status", {}).get("conditions", [])
    return next((one for one in found if one["type"] == type_ and one["status"] == "True"), {})


def is_up(raw: Raw) -> bool:
    """Return whether a pod is ready, and does not end."""
    phase = raw.get("status", {}).get("phase")
    return phase == "Running" and "deletionTimestamp" not in raw["metadata"] and bool(condition(raw, "Ready"))


def covers(budget: Raw, pod: Raw) -> bool:
    """Return whether a budget's selector, which has labels alone, selects a pod."""
    selector = budget["spec"].get("selector")
    if selector is None or budget["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    wanted = selector.get("matchLabels", {})
    assert not selector.get("matchExpressions"), budget
    labels = pod["metadata"].get("labels", {})
    return all(labels.get(name) == value for name, value in wanted.items())


def rate_of(text: str) -> tuple[int, Fraction]:
    """So many in so many seconds, of a rate such as 2/1m."""
    found = re.fullmatch(r"([0-9]+)/([0-9]+)([a-z]+)", text)
    assert found is not None, text
    return int(found[1]), int(found[2]) * Fraction(SECONDS[found[3]])


def check_rate(times_s: list[Fraction], rate: str, what: str) -> None:
    """In every window, no more than what a full bucket holds and what came back meanwhile."""
    count, period_s = rate_of(rate)
    for first, since in enumerate(times_s):
        for last in range(first, len(times_s)):
            most = count + (times_s[last] - since) * count / period_s
            assert last - first + 1 <= most, f"{what}: {last - first + 1} disruptions within {times_s[last] - since} s"


@dataclass(slots=True)
class Judges:
    """The objects at each instant, as they were written, and the memory of each judge.

    With ``counts_bound`` pods count for their node from their binding on; otherwise once a kubelet has started them,
    since several schedulers, or one that has crashed, may bind more than there is room for. Without ``counts_devices``
    devices may be given twice, for the same reason.
    """

    counts_bound: bool = True
    counts_devices: bool = True
    objects: dict[str, dict[str, Raw]] = field(default_factory=dict)
    granted: dict[tuple[str, str], list[Fraction]] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, Raw]:
        return self.objects.setdefault(kind, {})

    def note(self, what: str) -> None:
        """Count that there was something to judge."""
        self.found[what] = self.found.get(what, 0) + 1

    # Writes

    def written(self, raw: Raw, *, is_gone: bool) -> None:
        """Record that an object was created, changed or removed."""
        kind, metadata = raw["kind"], raw["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        before = self.of(kind).pop(key, None)
        if not is_gone:
            self.of(kind)[key] = raw
        if kind == "Pod" and before is not None:
            self._check_preempted(before, raw)
        if kind in ("Pod", "Node"):
            names = {one["spec"].get("nodeName", "") for one in (before, raw) if one is not None and kind == "Pod"}
            self.check_room(names - {""} or {metadata["name"]})
        if kind == "ResourceClaim":
            self.check_devices()
        if kind == "PodDisruptionBudget" and before is not None and _limits(before) != _limits(raw):
            # Another rate begins with a bucket of its own.
            self.granted.pop(("budget", metadata.get("uid", "")), None)

    def check_room(self, nodes: Iterable[str]) -> None:
        """No node has more than it offers."""
        for name in sorted(nodes):
            node = self.of("Node").get(f"/{name}")
            if node is None:
                continue
            held: dict[str, Fraction] = {}
            for pod in self.of("Pod").values():
                if pod["spec"].get("nodeName") == name and self._counts(pod):
                    for resource, number in requests(pod).items():
                        held[resource] = held.get(resource, Fraction()) + number
            offered = {one: amount(number) for one, number in node["status"]["allocatable"].items()}
            for resource, number in held.items():
                assert number <= offered.get(resource, 0), f"node {name} holds {number} {resource}"
            if len(held) > 1 and held.get("cpu", 0) * 2 > offered["cpu"]:
                self.note("a node more than half full")

    def check_devices(self) -> None:
        """No device is given to two claims."""
        holders: dict[tuple[str, str, str], str] = {}
        for key, claim in sorted(self.of("ResourceClaim").items()):
            allocation = claim.get("status", {}).get("allocation") or {}
            for result in allocation.get("devices", {}).get("results", []):
                if result.get("shareID") or result.get("adminAccess"):
                    continue
                device = (result["driver"], result["pool"], result["device"])
                self.note("a device that is given")
                if self.counts_devices:
                    assert device not in holders, f"{device} is given to {holders[device]} and to {key}"
                holders[device] = key

    def _check_preempted(self, before: Raw, after: Raw) -> None:
        mark = condition(after, "DisruptionTarget")
        if mark and not condition(before, "DisruptionTarget") and mark["reason"] in PREEMPTED:
            self.note("a preemption")
            name = after["metadata"]["name"]
            assert policy_of(after) not in NON_PREEMPTIBLE, f"{name} is {policy_of(after)}, and is preempted"
        if policy_of(after) in NON_PREEMPTIBLE and after["spec"].get("nodeName"):
            self.note("a pod that is not preemptible")

    def _counts(self, pod: Raw) -> bool:
        phase = pod.get("status", {}).get("phase")
        return phase not in ("Succeeded", "Failed") and (self.counts_bound or phase == "Running")

    # Evictions

    def before_eviction(self, key: str) -> Raw | None:
        """Return the pod as it is before it is asked for; None where it is not there."""
        return self.of("Pod").get(key)

    def evicted(self, pod: Raw, component: str, now_s: Fraction) -> None:
        """Judge a granted eviction by the pod and its budgets before it."""
        if not is_up(pod):
            return
        budgets = [(key, one) for key, one in sorted(self.of("PodDisruptionBudget").items()) if covers(one, pod)]
        several = self._policy().get("severalBudgets", "Refuse")
        assert len(budgets) <= 1 or several == "RequireAll", f"{pod['metadata']['name']} has several budgets"
        for key, budget in budgets:
            self.note("an eviction within a budget")
            allowed = budget.get("status", {}).get("disruptionsAllowed", 0)
            assert allowed >= 1, f"budget {key} allows no disruption"
            rate = budget["metadata"].get("annotations", {}).get("podium.dev/max-disruptions")
            if rate:
                self.note("an eviction within a rate")
                self._granted(("budget", budget["metadata"]["uid"]), rate, now_s, f"budget {key}")
        for cap in self._policy().get("caps", []) if budgets else []:
            if cap.get("component", component) == component:
                namespace = pod["metadata"]["namespace"] if cap.get("per") == "Namespace" else ""
                self.note("an eviction within a cap")
                name = f"cap {cap.get('component', '')} {namespace}"
                self._granted((name, ""), cap["max"], now_s, name)

    def _granted(self, key: tuple[str, str], rate: str, now_s: Fraction, what: str) -> None:
        times = self.granted.setdefault(key, [])
        times.append(now_s)
        check_rate(times, rate, what)

    def _policy(self) -> Raw:
        found: Raw = self.of("DisruptionPolicy").get("/default", {}).get("spec", {})
        return found


def _limits(budget: Raw) -> object:
    return budget["metadata"].get("annotations", {}).get("podium.dev/max-disruptions"), budget["metadata"].get("uid")


class Court:
    """Shows judges each write and each granted eviction of a simulation, as they happen."""

    def __init__(self, simulation: Simulation, judges: Judges) -> None:
        self.simulation = simulation
        self.judges = judges
        self.version = 0
        self.carry_out: Callable[..., ActionFinished] = simulation.server.carry_out
        simulation.server.carry_out = self._carry_out  # type: ignore[method-assign]

    def after_step(self) -> None:
        """Show what was written since the last time."""
        self.shown(self.simulation.store.events_since(self.version))

    def shown(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            if event.version > self.version:
                self.version = event.version
                self.judges.written(event.stored.raw, is_gone=event.type == "DELETED")

    def _carry_out(self, action: Action, now: int, by: str = "") -> ActionFinished:
        if not isinstance(action, Evict):
            return self.carry_out(action, now, by)
        self.after_step()
        pod = self.judges.before_eviction(action.pod)
        finished = self.carry_out(action, now, by)
        if finished.problem is None and pod is not None and pod["metadata"]["uid"] == action.uid:
            # What the eviction wrote is not shown yet: budgets are as they were before it.
            self.judges.evicted(pod, action.component, Fraction(now - self.simulation.settings.start_ns, 10**9))
        return finished


def kinds_of(stories: Iterator[Mapping[str, int]]) -> dict[str, int]:
    """Return what several runs had to judge, added up."""
    total: dict[str, int] = {}
    for one in stories:
        for name, number in one.items():
            total[name] = total.get(name, 0) + number
    return total
