"""The data of a run's picture: nodes, pods and events in columns that refer to words and amounts by index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from podium.api.errors import escape
from podium.api.node import INSTANCE_TYPE_LABEL, ZONE_LABEL
from podium.api.quantity import PODS
from podium.api.times import format_time, seconds
from podium.app.console.cells import by_key, whole_reason
from podium.sim.history import SimEvent
from podium.sim.results.measures import Measures
from podium.sim.results.result import Result
from podium.sim.results.usage import Amounts

# Reasons with messages that repeat the event's columns.
_REDUNDANT = frozenset(("Scheduled", "Preempted"))
_REFUSED = "FailedScheduling"
# A pod without a controller is its own workload, which its bar shows completely.
_ALONE = "Pod "
# These resources come first, in this order; the others follow by name.
_FIRST = ("cpu", "memory")


Columns = dict[str, list[Any]]
"""Columns of equal length by name; a missing value is None, a missing index -1."""


class RunTimeline(msgspec.Struct, frozen=True, rename="camel"):
    """One run; `end` is its length in seconds, and a moment is the index of an event, -1 for before the run.

    The columns, with words, amounts, pods and nodes as indices:

    - nodes, in name order: `added` and `gone` are moments, `offers` is an amount
    - pods, by key and creation: from `created` to `ended` are moments; `age` is how long a pod existed before the run,
      in seconds
    - events, in their order: `by` names the acting component; `byPod` is the pod that benefits
    - holds: refused evictions of pods, from `since` until `until` in seconds (None: to the end), and the reason
    - placements: how many of `nodes` were feasible (`fitting`; -1 if capacity was reserved for the pod), and why the
      others were rejected; `total` is the node's weighted score, and `next` the best other node with `nextTotal`, -1 if
      nothing was compared; `scores` are by plugin: its name, its raw score, the score normalized to 0..100, its weight
    """

    name: str
    start: str
    end: int | float
    words: list[str]
    resources: list[str]
    amounts: list[list[int]]
    nodes: Columns
    pods: Columns
    events: Columns
    holds: Columns
    placements: Columns
    workloads: list[dict[str, Any]]
    summary: dict[str, Any]


def timeline_of(result: Result, name: str) -> RunTimeline:
    """Return the picture data of a run; `name` is the title among several."""
    measures, words = result.measures, DistinctTexts()
    resources = _resources(measures)
    # The distinct amounts of the resources, with their indices.
    amounts: dict[tuple[int, ...], int] = {}

    def amount_of(requests: Amounts) -> int:
        return amounts.setdefault(tuple(requests.get(name, 0) for name in resources), len(amounts))

    moments, pod_of, by_pod = moments_of(result.pods, result.events)
    places = {life.name: place for place, life in enumerate(measures.nodes)}
    return RunTimeline(
        name,
        format_time(measures.start_ns),
        result.summary["end"],
        words.list,
        resources,
        nodes=_nodes(result, words, amount_of),
        pods=_pods(result, moments, places, words, amount_of),
        events={
            "time": [event.time for event in result.events],
            "reason": [words.of(event.reason) for event in result.events],
            "pod": pod_of,
            "node": [-1 if event.node is None else places.get(event.node, -1) for event in result.events],
            "by": [words.of(event.by) for event in result.events],
            "byPod": by_pod,
            "message": [words.of(_message(event)) for event in result.events],
            "count": [event.count for event in result.events],
            "lastTime": [event.last_time for event in result.events],
        },
        holds=_holds(result, words),
        placements=_placements(result, places, words),
        amounts=list(map(list, amounts)),
        workloads=[
            workload.to_dict(measures.start_ns)
            for workload in measures.workloads
            if not workload.workload.startswith(_ALONE)
        ],
        summary=result.summary,
    )


def _resources(measures: Measures) -> list[str]:
    """Return the resources that some node offers and some pod requests, and always cpu."""
    offered = {name for amounts in measures.sizes.offers.values() for name, amount in amounts.items() if amount}
    requested = {
        name for amounts in {id(each): each for each in measures.sizes.requests.values()}.values() for name in amounts
    }
    found = (offered & requested) - {PODS}
    return [*(name for name in _FIRST if name in found or name == _FIRST[0]), *sorted(found - set(_FIRST))]


def _nodes(result: Result, words: DistinctTexts, amount_of: Callable[[Amounts], int]) -> Columns:
    sizes, lives = result.measures.sizes, result.measures.nodes
    # A node that was added several times is drawn from its first addition to its last removal.
    added: dict[str | None, int] = {}
    removed: dict[str | None, int] = {}
    for moment, event in enumerate(result.events):
        if event.reason == "NodeAdded":
            added.setdefault(event.node, moment)
        elif event.reason == "NodeRemoved":
            removed[event.node] = moment
    marks = {node.node: ", ".join(node.marks) for node in result.nodes}
    return {
        "name": [words.of(life.name) for life in lives],
        "zone": [words.of(sizes.labels.get(life.name, {}).get(ZONE_LABEL)) for life in lives],
        "shape": [words.of(sizes.labels.get(life.name, {}).get(INSTANCE_TYPE_LABEL)) for life in lives],
        "offers": [amount_of(sizes.offers.get(life.name, {})) for life in lives],
        "added": [BEFORE if life.was_there else added.get(life.name, BEFORE) for life in lives],
        "gone": [None if life.gone_ns is None else removed.get(life.name) for life in lives],
        "marks": [words.of(marks.get(life.name)) for life in lives],
    }


def _pods(
    result: Result,
    moments: Sequence[dict[str, int | None]],
    places: dict[str, int],
    words: DistinctTexts,
    amount_of: Callable[[Amounts], int],
) -> Columns:
    pods, requests = result.pods, result.measures.sizes.requests
    return dict(
        name=[words.of(pod["pod"]) for pod in pods],
        workload=[words.of(pod["workload"]) for pod in pods],
        priority=[pod["priority"] for pod in pods],
        node=[places.get(pod["node"], -1) for pod in pods],
        asks=[amount_of(requests.get(pod["uid"], {})) for pod in pods],
        **{name: [when[name] for when in moments] for name in _MOMENTS},
        age=[max(-pod["createdAt"], 0) for pod in pods],
        state=[words.of(pod["state"]) for pod in pods],
        disruption=[words.of(pod["disruption"]) for pod in pods],
        nominated=[places.get(pod["nominatedNode"], -1) for pod in pods],
    )


def _holds(result: Result, words: DistinctTexts) -> Columns:
    """Return the refused evictions of pods, with the budgets or the message that refused them."""
    measures = result.measures
    places = {pod["uid"]: place for place, pod in enumerate(result.pods)}
    holds = [held for held in measures.holds if held.uid in places]
    return {
        "pod": [places[held.uid] for held in holds],
        "since": [seconds(held.from_ns - measures.start_ns) for held in holds],
        "until": [None if held.until_ns is None else seconds(held.until_ns - measures.start_ns) for held in holds],
        "why": [words.of(f"budget {', '.join(held.budgets)}" if held.budgets else held.message) for held in holds],
    }


def _placements(result: Result, places: dict[str, int], words: DistinctTexts) -> Columns:
    """Return the reasons for placements of pods that are on the node that the recorded attempt chose."""
    found = [
        (place, result.placements[pod["uid"]])
        for place, pod in enumerate(result.pods)
        if pod["uid"] in result.placements and result.placements[pod["uid"]].node == pod["node"]
    ]
    return {
        "pod": [place for place, _ in found],
        "nodes": [grounds.nodes for _, grounds in found],
        "fitting": [-1 if grounds.fitting is None else grounds.fitting for _, grounds in found],
        "refused": [words.of(grounds.reasons) for _, grounds in found],
        "total": [-1 if grounds.total is None else grounds.total for _, grounds in found],
        "next": [places.get(grounds.next_node, -1) for _, grounds in found],
        "nextTotal": [grounds.next_total for _, grounds in found],
        "scores": [
            [(words.of(score.plugin), score.raw, score.normalized, score.weight) for score in grounds.scores]
            for _, grounds in found
        ],
    }


def _message(event: SimEvent) -> str:
    """Return the message of an event without the content of its columns, worded as in `explain`; "" for none."""
    if event.reason in _REDUNDANT:
        return ""
    return whole_reason(event.message) if event.reason == _REFUSED else event.message


_LONGEST = 4_000


class DistinctTexts:
    """A table of distinct texts, with control characters and direction marks escaped."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._places: dict[str, int] = {}

    def of(self, text: str | None) -> int:
        """Return the index of a text, -1 for None and empty text."""
        if not text:
            return -1
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.list)
            self.list.append(escape(text, _LONGEST))
        return place


BEFORE = -1
CREATED = "Created"
_MOMENTS = ("created", "scheduled", "started", "killing", "ended")
_MOMENT_OF = {
    **{reason: reason.lower() for reason in (CREATED, "Scheduled", "Started", "Killing")},
    **dict.fromkeys(("Finished", "Failed", "Terminated", "Deleted"), "ended"),
}
_ENDED = frozenset(("Succeeded", "Failed"))


def moments_of(
    pods: Sequence[dict[str, Any]], events: Sequence[SimEvent]
) -> tuple[list[dict[str, int | None]], list[int], list[int]]:
    """Return the moments of the pods, and for each event the index of its pod and of the pod that caused it.

    The indices are -1 if there is no such pod. Several pods may have the same key, one after another.
    """
    found: list[dict[str, int | None]] = [dict.fromkeys(_MOMENTS) for _ in pods]
    places = by_key((pod["pod"], place) for place, pod in enumerate(pods))
    made = Counter(event.pod for event in events if event.reason == CREATED)
    # By key, the current pod, or the first one if none exists yet, and those that are created later.
    current = {key: some[0] for key, some in places.items()}
    later = {key: iter(some if len(some) == made[key] else some[1:]) for key, some in places.items()}
    pod_of: list[int] = []
    by_pod: list[int] = []
    for moment, event in enumerate(events):
        pod, name = event.pod or "", _MOMENT_OF.get(event.reason)
        if event.reason == CREATED and pod in current:
            current[pod] = next(later[pod], current[pod])
        pod_of.append(current.get(pod, -1))
        by_pod.append(current.get(event.by or "", -1))
        # A container that restarts starts again, and what ends may end twice; the first time counts.
        if name and pod in current and (name in _MOMENTS[:2] or found[current[pod]][name] is None):
            found[current[pod]][name] = moment
    for shown, moments in zip(pods, found, strict=True):
        if moments["created"] is None:
            moments["created"] = BEFORE
        if shown["node"] and moments["scheduled"] is None:
            moments["scheduled"] = moments["created"]
        if shown["startedAt"] is not None and moments["started"] is None:
            moments["started"] = moments["scheduled"]
        if shown["phase"] in _ENDED and moments["ended"] is None:
            moments["ended"] = BEFORE
    return found, pod_of, by_pod
