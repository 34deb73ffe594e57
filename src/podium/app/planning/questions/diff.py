"""`podium plan diff` and `podium plan upgrade`: two settings, or two versions of Kubernetes, over one cluster.

Both are played with the same seed; the answer has the workloads that differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from podium.api.errors import InputError
from podium.api.input.codec import Document, Input
from podium.api.input.documents import API_VERSION, overridden, passed_over
from podium.api.meta import Raw
from podium.api.objects import read_object
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import PriorityClass
from podium.api.times import SECOND, format_duration
from podium.api.versions.apis import dropped_from, is_removed, is_served
from podium.api.versions.choice import ReleaseChoice
from podium.api.versions.gates import Gate, stages
from podium.api.versions.release import Behavior, Release, read_version
from podium.app.console import cells
from podium.app.console.cells import Name, Part, agreeing, by_key, counted
from podium.app.console.page import Section
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.question import PlanRun, PlayedPlan, Side
from podium.app.planning.scenarios import (
    SCENARIO,
    changed_at_start,
    is_scenario,
    kept_priorities,
    scenario_of_spec,
    with_scenario,
)
from podium.framework.rescheduling.configuration import KIND as RESCHEDULER
from podium.framework.rescheduling.configuration import read_rescheduler
from podium.framework.rescheduling.descheduler import KIND as DESCHEDULER
from podium.framework.settings.configuration import KIND as SCHEDULER
from podium.framework.settings.configuration import Configuration, read_configuration
from podium.sim.results.readiness import WorkloadReadiness
from podium.sim.results.result import Result

UNCHANGED = "the cluster as it is"
"""The name of the setting without changes."""

GAINS, LOSES, MOVES = "gains", "loses", "moves"
_ORDER = (LOSES, GAINS, MOVES)
_MAX_ROWS = 20
_ON_NODE = ("ready", "running", "starting")
_IDENTITY = ("apiVersion", "kind", "metadata")
# What to write instead of a kind that is no setting.
_ADVICE = {
    DESCHEDULER: "; write it as a ReschedulerConfiguration",
    RESCHEDULER: f" unless its apiVersion is {API_VERSION}",
    SCENARIO: f" unless its apiVersion is {API_VERSION}",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One of two settings: `objects` replace those of the cluster, `spec` the fields of its scenario.

    `configuration` is that of the schedulers, None for the cluster's.
    """

    name: str
    objects: tuple[Document, ...] = ()
    spec: Raw = field(default_factory=dict)
    configuration: Configuration | None = None

    def input(self, read: Input, *, renews_priorities: bool = False) -> Input:
        """Return the cluster with this setting. Raises InputError for objects that cannot be read then.

        Pods of a cluster keep the priority that they have; with ``renews_priorities`` they get that of their class.
        """
        later, steps = list(self.objects), list[Raw]()
        if not renews_priorities:
            later, steps = changed_at_start(read, later)
        documents = overridden(read.documents, later)
        if renews_priorities:
            classes = _classes(documents)
            documents = [_with_priority(document, classes) for document in documents]
        found = Input(documents, read.left_out)
        if not self.spec and not steps:
            return found
        spec = dict(self.spec)
        own = spec.pop("steps", [])
        scenario = scenario_of_spec(found, "diff", spec, own)
        # The classes change before the scenario's own steps at the start.
        scenario["spec"]["steps"] = [*steps, *scenario["spec"]["steps"]]
        return with_scenario(found, scenario)


def read_setting(name: str, documents: Sequence[Document]) -> Setting:
    """Return the setting in some documents. Raises InputError for other kinds and duplicates."""
    objects: list[Document] = []
    configuration: Configuration | None = None
    spec: Raw = {}
    for document in documents:
        raw, kind = document.raw, str(document.raw.get("kind", ""))
        if kind == SCHEDULER:
            _check_once(document, is_second=configuration is not None)
            configuration = read_configuration(raw, document.source)
        elif kind == RESCHEDULER and raw.get("apiVersion") == API_VERSION:
            _check_once(document, is_second="rescheduler" in spec)
            read_rescheduler(raw, document.source)
            spec["rescheduler"] = {key: value for key, value in raw.items() if key not in _IDENTITY}
        elif is_scenario(document):
            own = raw.get("spec", {})
            if not isinstance(own, dict):
                raise document.located(InputError("is not an object", path=".spec"))
            for key in own:
                _check_once(document, is_second=key in spec, path=f".spec.{key}")
            spec |= own
        elif document.object is None:
            problem = f"a {kind} cannot be a setting{_ADVICE.get(kind, '')}"
            raise document.located(InputError(problem, path=".kind"))
        else:
            objects.append(document)
    return Setting(name, tuple(objects), spec, configuration)


def _check_once(document: Document, *, is_second: bool, path: str = "") -> None:
    if is_second:
        raise document.located(InputError("is given twice in one setting; give it once", path=path))


def _classes(documents: Iterable[Document]) -> dict[str, PriorityClass]:
    items = (document.object for document in documents)
    return {item.metadata.name: item for item in items if isinstance(item, PriorityClass)}


def _with_priority(document: Document, classes: dict[str, PriorityClass]) -> Document:
    """Return a pod or group with the priority of its class; a PodGroup has no policy."""
    item = document.object
    if not isinstance(item, Pod | PodGroup) or item.spec.priority is None:
        return document
    named = classes.get(item.spec.priority_class_name)
    if named is None:
        return document
    policy = item.spec.preemption_policy if isinstance(item, Pod) else None
    if named.value == item.spec.priority and policy in (None, named.preemption_policy):
        return document
    raw = document.raw
    spec = {**raw["spec"], "priority": named.value}
    if isinstance(item, Pod):
        spec["preemptionPolicy"] = named.preemption_policy
    read = read_object({**raw, "spec": spec}, document.validation)
    return structs.replace(document, written=read.raw, object=read.object)


@dataclass(frozen=True, slots=True)
class WorkloadDifference:
    """The effect of the second setting on one workload.

    Pairs are for the first and the second setting: `ready` pods at the end, `short_ns` with fewer ready pods than
    wanted, and `disrupted` pods. `moved` pods are on other nodes at the end.
    """

    workload: str
    what: str
    ready: tuple[int, int]
    short_ns: tuple[int, int]
    disrupted: tuple[int, int]
    moved: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with each pair as `before` and `after`."""
        seconds = tuple(short_ns / SECOND for short_ns in self.short_ns)
        pairs = {"ready": self.ready, "shortSeconds": seconds, "disrupted": self.disrupted}
        shown = {name: {"before": pair[0], "after": pair[1]} for name, pair in pairs.items()}
        return {"workload": self.workload, "what": self.what, **shown, "moved": self.moved}


def diff(run: PlanRun, before: Setting, after: Setting, *, renews_priorities: bool = False) -> PlanAnswer:
    """Answer which workloads differ if the cluster is played with both settings, with equal time and seed.

    Raises InputError and LimitError.
    """

    def side(setting: Setting) -> Side:
        own = {} if setting.configuration is None else {"configuration": setting.configuration}
        return setting.input(run.read, renews_priorities=renews_priorities), own

    kept = () if renews_priorities else kept_priorities(run.read, (*before.objects, *after.objects))
    played = run.compare("diff", side(before), side(after))
    found = differences(played.baseline, played.result)
    runs = (before.name, after.name)
    sections = [difference_section(found, *runs)]
    return played.answer(_headline(played, found, *runs), sections=sections, caveats=kept, runs=runs)


def differences(before: Result, after: Result) -> tuple[WorkloadDifference, ...]:
    """Return the workloads that differ between the runs: those that lose, gain, move, then by name."""
    runs = (before, after)
    workloads = [{workload.workload: workload for workload in run.measures.workloads} for run in runs]
    # By workload, how many of its pods are on which node at the end.
    placed = [[pod for pod in run.pods if pod["state"] in _ON_NODE and pod["node"]] for run in runs]
    places = [by_key((pod["workload"], pod["node"]) for pod in pods) for pods in placed]
    disrupted = [Counter(pod["workload"] for pod in run.pods if pod["disruption"] or pod["evictedBy"]) for run in runs]
    found = []
    for label in sorted(workloads[0].keys() | workloads[1].keys()):
        first, second = (known.get(label, WorkloadReadiness(label)) for known in workloads)
        here, there = (Counter(each.get(label, ())) for each in places)
        moved = min((here - there).total(), (there - here).total())
        numbers = disrupted[0][label], disrupted[1][label]
        # More ready pods are a gain; with equal numbers a shorter shortage, or fewer disruptions.
        more = (second.ready - first.ready, first.short_ns - second.short_ns, numbers[0] - numbers[1])
        decisive = next(filter(None, more), 0)
        what = (GAINS if decisive > 0 else LOSES) if decisive else MOVES if moved else ""
        if what:
            ready, short = (first.ready, second.ready), (first.short_ns, second.short_ns)
            found.append(WorkloadDifference(label, what, ready, short, numbers, moved))

    def order(each: WorkloadDifference) -> tuple[int, int, int, str]:
        return _ORDER.index(each.what), -abs(each.ready[1] - each.ready[0]), -each.moved, each.workload

    return tuple(sorted(found, key=order))


def _headline(played: PlayedPlan, found: Sequence[WorkloadDifference], before: str, after: str) -> str:
    parts = _workload_parts(found)
    runs = (played.baseline.summary["preempted"], played.result.summary["preempted"])
    if runs[0] != runs[1]:
        parts.append(f"{counted(runs[1], 'pod', 'is')} preempted, {runs[0]:,} before")
    return f"{after} in place of {before}: {'; '.join(parts) or 'no workload differs'}"


def _workload_parts(found: Sequence[WorkloadDifference]) -> list[str]:
    """Return for each effect how many workloads it has, in words."""
    by_effect = [(effect, [each for each in found if each.what == effect]) for effect in (GAINS, LOSES, MOVES)]
    return [f"{counted(len(some), 'workload', effect)}{_amount(effect, some)}" for effect, some in by_effect if some]


def _amount(effect: str, some: Sequence[WorkloadDifference]) -> str:
    if effect == MOVES:
        return f" ({counted(sum(difference.moved for difference in some), 'pod')})"
    ready = sum(abs(difference.ready[1] - difference.ready[0]) for difference in some)
    if ready:
        return f" ({counted(ready, 'ready pod')})"
    disrupted = sum(difference.disrupted[1] - difference.disrupted[0] for difference in some)
    return f" ({abs(disrupted):,} {'more' if disrupted > 0 else 'fewer'} disrupted)" if disrupted else ""


def difference_section(found: Sequence[WorkloadDifference], before: str, after: str) -> Section:
    """Return the section about the workloads that differ."""

    def pair(values: tuple[int, int], text: Callable[[int], str] = "{:,}".format) -> str:
        return " -> ".join(map(text, values))

    rows = [
        (
            Name(each.workload, cells.WORKLOADS),
            each.what,
            pair(each.ready) if each.ready[0] != each.ready[1] else "",
            pair(each.short_ns, lambda ns: format_duration(ns) if ns else "0s") if len({*each.short_ns}) > 1 else "",
            pair(each.disrupted) if any(each.disrupted) else "",
            counted(each.moved, "pod") if each.moved else "",
        )
        for each in found
    ]
    headings = ("workload", "", "ready at the end", "short for", "disrupted", "on other nodes")
    data = [difference.to_dict() for difference in found]
    return Section("differences", "Differences", tuple(rows), headings, f"{before} -> {after}", data, most=_MAX_ROWS)


_WAITING = ("pending", "nominated")
_EFFECTS = {"runs": "would run", "waits": "would wait", "moves": "on another node", "message": "with another message"}


def upgrade(run: PlanRun, to: str) -> PlanAnswer:
    """Answer what differs if the control plane has another version, with equal time and seed.

    Gates that the new version does not know are omitted there. Raises InputError and LimitError.
    """
    before, guesses = run.options.release.for_documents(run.read.documents)
    after = read_version(to)
    known = stages(after.minor, after.patch)
    lost = tuple(name for name, _ in before.gates if name not in known and not name.startswith("All"))
    after = after.with_gates({name: value for name, value in before.gates if name not in lost})
    if (after.minor, after.patch) == (before.minor, before.patch):
        raise InputError(f"the cluster has version {before} already; name another one with --to")

    sides = [(run.read, {"release": ReleaseChoice.exactly(release)}) for release in (before, after)]
    played = run.compare("upgrade", *sides)
    runs = str(before), str(after)
    found = differences(played.baseline, played.result)
    pods = list(_pods(played.baseline, played.result))
    changes = list(_changes(before, after))
    fields = list(_fields(run.read, before, after))
    sections = [
        difference_section(found, *runs),
        _section("pods", "Pods", [(Name(each["pod"], cells.PODS), each["what"]) for each in pods], pods),
        _section("fields", "Fields", [(each["what"], each["effect"]) for each in fields], fields),
        _section("behaviors", "Changes", [(each["name"], each["what"]) for each in changes], changes),
    ]
    if lost:
        why = f"{after.short} does not know it: remove it from flags"
        sections.append(_section("gates", "Gates that go away", [(name, why) for name in lost], list(lost)))
    # Pods whose names differ between the runs are seen by their workloads alone.
    parts = [] if pods else _workload_parts(found)
    headline = _upgrade_headline(f"{after} in place of {before}", parts, pods, fields)
    return played.answer(headline, sections=sections, caveats=guesses, runs=runs)


def _section(name: str, title: str, rows: Sequence[tuple[Part, ...]], data: Any) -> Section:
    return Section(name, title, tuple(rows) or (("none",),), data=data, most=_MAX_ROWS)


def _upgrade_headline(
    what: str, parts: list[str], pods: Sequence[Mapping[str, str]], fields: Sequence[Mapping[str, Any]]
) -> str:
    for effect, words in _EFFECTS.items():
        number = sum(each["effect"] == effect for each in pods)
        if number:
            parts.append(f"{counted(number, 'pod')} {words}")
    apis = sum("served" in each["effect"] for each in fields)
    if len(fields) > apis:
        number = len(fields) - apis
        parts.append(f"{counted(number, 'field')} in use {agreeing(number, 'changes')} meaning")
    if apis:
        parts.append(f"{counted(apis, 'API')} in use {agreeing(apis, 'is')} served in one version only")
    return f"{what}: {', '.join(parts) if parts else 'no pod differs'}"


def _pods(before: Result, after: Result) -> Iterator[dict[str, str]]:
    """Yield the pods whose node, waiting or message differs, by name."""
    runs = (before, after)
    sides = [{pod["pod"]: pod for pod in run.pods} for run in runs]
    failures = [[event for event in run.events if event.reason == "FailedScheduling"] for run in runs]
    messages = [{event.pod: event.message for event in events} for events in failures]
    for name in sorted(sides[0].keys() & sides[1].keys()):
        was, then = (side[name] for side in sides)
        waited, waits = was["state"] in _WAITING, then["state"] in _WAITING
        texts = messages[0].get(name, ""), messages[1].get(name, "")
        if waited != waits:
            effect, what = ("runs", f"would run on {then['node']}") if waited else ("waits", f"would wait: {texts[1]}")
        elif not waits and was["node"] != then["node"]:
            effect, what = "moves", f"{was['node']} -> {then['node']}"
        elif waits and texts[0] != texts[1]:
            effect, what = "message", " -> ".join(texts)
        else:
            continue
        yield {"pod": name, "effect": effect, "what": what}


def _changes(before: Release, after: Release) -> Iterator[dict[str, str]]:
    """Yield the gates that one of the versions enables, and its different behaviors."""
    for gate in sorted(Gate):
        was, then = before.enabled(gate), after.enabled(gate)
        if was != then:
            yield {"name": gate.value, "what": f"{'on' if was else 'off'} -> {'on' if then else 'off'}"}
    for behavior in Behavior:
        if before.has(behavior) != after.has(behavior):
            change = behavior.value
            what = change.now if after.has(behavior) else f"{change.now} -> {change.before}"
            yield {"name": change.area, "what": what}


def _fields(read: Input, before: Release, after: Release) -> Iterator[dict[str, Any]]:
    """Yield the fields, kinds and API versions in use that one of the versions ignores or does not serve."""
    found: dict[tuple[str, str], list[str]] = {}
    for document in read.documents:
        raw, item = document.read_raw(), document.object
        if item is None:
            continue
        written = document.other_version or str(raw.get("apiVersion"))
        if is_removed(written, item.kind, before, after):
            found.setdefault((written, "is not served"), []).append(item.key)
        if is_served(item.kind, before) != is_served(item.kind, after):
            effect = "is served" if is_served(item.kind, after) else "is not served"
            found.setdefault((item.kind, effect), []).append(item.key)
        # Components write a status as their version has it; only that of nodes decides where pods go.
        used = raw if item.kind == "Node" else raw | {"status": {}}
        ignored, then = (frozenset(dropped_from(used, item.kind, release)) for release in (before, after))
        for path in sorted(ignored ^ then):
            effect = "begins to count" if path in ignored else "no longer counts"
            found.setdefault((f"{item.kind} {path}", effect), []).append(item.key)
    for kind in passed_over(read.documents):
        if is_removed(kind.api_version, kind.kind, before, after):
            found.setdefault((kind.api_version, "is not served"), []).extend([kind.kind] * kind.count)
    for (what, effect), names in found.items():
        objects = list(dict.fromkeys(names))[:_MAX_ROWS]
        yield {"what": what, "effect": f"{effect}: {counted(len(names), 'object')}", "objects": objects}
