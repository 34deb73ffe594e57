"""`podium plan upgrade`: a cluster played with its own Kubernetes version and with another one, compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from podium.api.errors import InputError
from podium.api.input.codec import Input
from podium.api.versions.apis import dropped_from, is_removed, is_served
from podium.api.versions.behaviors import Behavior
from podium.api.versions.choice import ReleaseChoice
from podium.api.versions.gates import Gate, stages
from podium.api.versions.release import Release, read_version
from podium.app.console import cells
from podium.app.console.cells import Name, Part, agreeing, counted
from podium.app.console.page import Section
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.question import PlanRun
from podium.app.planning.questions.diff import difference_section, differences
from podium.sim.results.result import Result
from podium.sim.run_options import RunOptions

_MAX_ROWS = 20
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

    def side(release: Release) -> Callable[[RunOptions], tuple[Input, RunOptions]]:
        return lambda options: (run.read, replace(options, release=ReleaseChoice.exactly(release)))

    played = run.compare("upgrade", side(before), side(after), guesses)
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
    answer = played.answer(_headline(before, after, pods, fields), sections=sections)
    return replace(answer, runs=runs)


def _section(name: str, title: str, rows: Sequence[tuple[Part, ...]], data: Any) -> Section:
    return Section(name, title, tuple(rows) or (("none",),), data=data, most=_MAX_ROWS)


def _headline(
    before: Release, after: Release, pods: Sequence[Mapping[str, str]], fields: Sequence[Mapping[str, Any]]
) -> str:
    what = f"{after} in place of {before}"
    parts = []
    for effect, words in _EFFECTS.items():
        number = sum(each["effect"] == effect for each in pods)
        if number:
            parts.append(f"{counted(number, 'pod')} {words}")
    apis = sum("served" in each["effect"] for each in fields)
    if len(fields) > apis:
        number = len(fields) - apis
        parts.append(f"{counted(number, 'field')} in use {agreeing(number, 'changes')} meaning")
    if apis:
        parts.append(f"{counted(apis, 'API')} in use served in one version only")
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
        said = messages[0].get(name, ""), messages[1].get(name, "")
        if waited != waits:
            effect, what = ("runs", f"would run on {then['node']}") if waited else ("waits", f"would wait: {said[1]}")
        elif not waits and was["node"] != then["node"]:
            effect, what = "moves", f"{was['node']} -> {then['node']}"
        elif waits and said[0] != said[1]:
            effect, what = "message", " -> ".join(said)
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
            yield {"name": change.area, "what": change.now if after.has(behavior) else change.before}


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
        ignored, then = (frozenset(dropped_from(raw, item.kind, release)) for release in (before, after))
        for path in sorted(ignored ^ then):
            effect = "begins to count" if path in ignored else "no longer counts"
            found.setdefault((f"{item.kind} {path}", effect), []).append(item.key)
    for kind in read.passed_over:
        if is_removed(kind.api_version, kind.kind, before, after):
            found.setdefault((kind.api_version, "is not served"), []).extend([kind.kind] * kind.count)
    for (what, effect), names in found.items():
        objects = list(dict.fromkeys(names))[:_MAX_ROWS]
        yield {"what": what, "effect": f"{effect}: {counted(len(names), 'object')}", "objects": objects}
