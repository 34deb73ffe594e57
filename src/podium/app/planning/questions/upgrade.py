"""`podium plan upgrade`: the cluster played by its own Kubernetes version and by another one, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from podium.api.errors import InputError
from podium.api.input.codec import Input
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.versions.behaviors import Behavior
from podium.api.versions.choice import ReleaseChoice
from podium.api.versions.gates import Gate, stages
from podium.api.versions.release import Release, read_version
from podium.app.console import cells
from podium.app.console.cells import Name, Part, counted
from podium.app.planning.answer import PlanAnswer, Section
from podium.app.planning.question import (
    PlanProgress,
    PlanQuestion,
    PlanRun,
    PlayedPlan,
    assumptions,
    play_both,
    play_samples,
)
from podium.app.planning.questions.diff import Setting, difference_section, differences
from podium.app.planning.scenarios import scenario_of_spec
from podium.sim.results.result import Result
from podium.sim.run_options import RunOptions

_MAX_ROWS = 20
_WAITING = ("pending", "nominated")
_REMOVED = {("resource.k8s.io", "v1alpha2"): 31, ("flowcontrol.apiserver.k8s.io", "v1beta3"): 32}
"""The minor versions that no longer serve a version of an API group."""


def upgrade(run: PlanRun, to: str) -> PlanAnswer:
    """Answer what differs if the control plane has another version, played for as long, with the same seed.

    Gates that the new version does not know are left out there. Raises InputError and LimitError.
    """
    before, guesses = run.options.release.for_documents(run.read.documents)
    after = read_version(to)
    known = stages(after.minor, after.patch)
    lost = tuple(name for name, _ in before.gates if name not in known and not name.startswith("All"))
    after = after.with_gates({name: value for name, value in before.gates if name not in lost})
    if (after.minor, after.patch) == (before.minor, before.patch):
        raise InputError(f"the cluster has version {before} already; name another one with --to")

    def play(options: RunOptions, progress: PlanProgress | None) -> PlayedPlan:
        sides = [
            (run.read, replace(own, release=ReleaseChoice.exactly(release)))
            for release, own in ((before, replace(options, on_attempt=None)), (after, options))
        ]
        baseline, result = play_both(sides, progress)
        read, deciding = sides[1]
        scenario = scenario_of_spec(read, "upgrade", {})
        caveats = (*guesses, *assumptions(options))
        return PlayedPlan(read, deciding, PlanQuestion("upgrade"), result, baseline, scenario, caveats)

    played = play_samples(play, run.options, run.progress, run.samples)
    names = Setting(str(before)), Setting(str(after))
    found = differences(played.baseline, played.result)
    pods = list(_pods(played.baseline, played.result))
    changes = [*_gates(before, after), *_behaviors(before, after)]
    fields = list(_fields(run.read, before, after))
    sections = [
        difference_section(found, *names),
        _section("pods", "Pods", [(Name(each["pod"], cells.PODS), each["what"]) for each in pods], pods),
        _section("fields", "Fields", [(each["what"], each["effect"]) for each in fields], fields),
        _section("behaviors", "Changes", [(each["name"], each["what"]) for each in changes], changes),
    ]
    if lost:
        rows: list[tuple[Part, ...]] = [
            (name, f"{after.short} does not know it: remove it from flags") for name in lost
        ]
        sections.append(_section("gates", "Gates that go away", rows, list(lost)))
    answer = played.answer(_headline(before, after, pods, fields), sections=sections)
    return replace(answer, runs=(str(before), str(after)))


def _section(name: str, title: str, rows: list[tuple[Part, ...]], data: Any) -> Section:
    shown = rows[:_MAX_ROWS] or [("none",)]
    if len(rows) > _MAX_ROWS:
        shown.append((f"and {len(rows) - _MAX_ROWS:,} more", ""))
    return Section(name, title, tuple(shown), data=data)


def _headline(
    before: Release, after: Release, pods: Sequence[Mapping[str, str]], fields: Sequence[Mapping[str, Any]]
) -> str:
    what = f"{after} in place of {before}"
    parts = []
    for effect, words in (("runs", "would run"), ("waits", "would wait"), ("moves", "on another node")):
        number = sum(each["effect"] == effect for each in pods)
        if number:
            parts.append(f"{counted(number, 'pod')} {words}")
    other = sum(each["effect"] == "message" for each in pods)
    if other:
        parts.append(f"{counted(other, 'pod')} with another message")
    if fields:
        parts.append(f"{counted(len(fields), 'field')} in use {'changes' if len(fields) == 1 else 'change'} meaning")
    return f"{what}: {', '.join(parts) if parts else 'no pod fares otherwise'}"


def _pods(before: Result, after: Result) -> Iterator[dict[str, str]]:
    """Yield the pods whose node, waiting or message differs, by name."""
    sides = [{pod["pod"]: pod for pod in run.pods} for run in (before, after)]
    told = [
        {event.pod: event.message for event in run.events if event.reason == "FailedScheduling"}
        for run in (before, after)
    ]
    for name in sorted(sides[0].keys() & sides[1].keys()):
        was, then = (side[name] for side in sides)
        waited, waits = was["state"] in _WAITING, then["state"] in _WAITING
        messages = told[0].get(name, ""), told[1].get(name, "")
        if waited != waits:
            effect, what = (
                ("runs", f"would run on {then['node']}") if waited else ("waits", f"would wait: {messages[1]}")
            )
        elif not waits and was["node"] != then["node"]:
            effect, what = "moves", f"{was['node']} -> {then['node']}"
        elif waits and messages[0] != messages[1]:
            effect, what = "message", f"{messages[0]} -> {messages[1]}"
        else:
            continue
        yield {"pod": name, "effect": effect, "what": what}


def _gates(before: Release, after: Release) -> Iterator[dict[str, str]]:
    """Yield the gates that Podium asks and that differ."""
    for gate in sorted(Gate):
        was, then = before.enabled(gate), after.enabled(gate)
        if was != then:
            yield {"name": gate.value, "what": f"{'on' if was else 'off'} -> {'on' if then else 'off'}"}


def _behaviors(before: Release, after: Release) -> Iterator[dict[str, str]]:
    """Yield the behaviors that differ, in the words of the new version."""
    for behavior in Behavior:
        if before.has(behavior) != after.has(behavior):
            change = behavior.change
            yield {"name": change.area, "what": change.now if after.has(behavior) else change.before}


def _fields(read: Input, before: Release, after: Release) -> Iterator[dict[str, Any]]:
    """Yield the fields and API versions of the objects that one of the versions ignores or does not serve."""
    objects = [document.object for document in read.documents if document.object is not None]
    pods = [item for item in objects if isinstance(item, Pod)]
    nodes = [item for item in objects if isinstance(item, Node)]
    used = (
        ("pods' spec.resources", Gate.POD_LEVEL_RESOURCES, [p.key for p in pods if p.spec.resources is not None]),
        ("resources in the status of containers", Gate.IN_PLACE_RESIZE, [p.key for p in pods if _is_resized(p)]),
        ("spec.resourceClaims", Gate.DRA, [p.key for p in pods if p.spec.resource_claims]),
        (
            "nodes' declaredFeatures",
            Gate.NODE_DECLARED_FEATURES,
            [item.metadata.name for item in nodes if item.status.declared_features],
        ),
    )
    for what, gate, names in used:
        if names and before.enabled(gate) != after.enabled(gate):
            effect = "begins to count" if after.enabled(gate) else "no longer counts"
            yield {
                "what": what,
                "effect": f"{effect} for {counted(len(names), 'object')}",
                "objects": names[:_MAX_ROWS],
            }
    for (group, version), since in sorted(_REMOVED.items()):
        api = f"{group}/{version}"
        served = [str(document.raw.get("kind")) for document in read.documents if document.raw.get("apiVersion") == api]
        if served and after.minor >= since:
            yield {
                "what": api,
                "effect": f"is not served: {counted(len(served), 'object')}",
                "objects": served[:_MAX_ROWS],
            }


def _is_resized(pod: Pod) -> bool:
    return any(status.resources is not None for status in pod.status.container_statuses)
