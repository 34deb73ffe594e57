"""The nodes that kube-scheduler examines, against a plain scheduler with one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.node import Node
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide import placement
from podium.decide.placement import limited_candidates, nodes_to_find, place
from podium.decide.preempting.criteria import UPSTREAM
from podium.decide.preempting.reprieve import TrialTable
from podium.framework.handle import CycleState
from podium.framework.plugin import Scope
from podium.framework.runner import Runner
from podium.framework.verdicts import SUCCESS, Code, Outcome, Status, Verdicts, unschedulable
from tests.builders import ZONE, cluster_of, configuration, node, node_term, pending_in, plain_runner, pod, runner_on
from tests.fuzzing import usual

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


class ByLabel:
    """A filter that rejects nodes with the label refuse=yes, and fails on those with refuse=error."""

    name = "ByLabel"
    scope = Scope.CLUSTER

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        nodes = [view.cluster.nodes.nodes[row] for row in view.rows.tolist()]
        labels = ["" if item is None else item.metadata.labels.get("refuse", "") for item in nodes]
        codes = np.array([("", "yes", "error").index(label) for label in labels], dtype=np.int64)
        statuses = (SUCCESS, unschedulable("refused"), Status(Code.ERROR, ("broken",)))
        return Verdicts(codes, statuses.__getitem__, has_errors=bool((codes == 2).any()))


class ByName:
    """A score that prefers nodes by name, so that there are no ties."""

    name = "ByName"
    scope = Scope.NODE

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Any:
        names = [view.cluster.nodes.names[row] for row in view.rows.tolist()]
        return np.array([int(name[1:]) % 100 if name else 0 for name in names], dtype=np.int64)


class PlainScheduler:
    """kube-scheduler's cache and search, as lists and loops."""

    def __init__(self) -> None:
        self.zones: list[str] = []
        self.tree: dict[str, list[str]] = {}
        self.nodes: dict[str, Node] = {}
        self.snapshot: list[str] = []
        self.next_start = 0

    def put(self, item: Node) -> None:
        name, labels = item.metadata.name, item.metadata.labels
        zone = labels[BETA_ZONE] if BETA_ZONE in labels else labels.get(ZONE, "")
        where = [one for one in self.zones if name in self.tree[one]]
        self.nodes[name] = item
        if where == [zone]:
            return
        if where:
            self._leave(where[0], name)
        if zone not in self.zones:
            self.zones.append(zone)
            self.tree[zone] = []
        self.tree[zone].append(name)

    def remove(self, name: str) -> None:
        (zone,) = [one for one in self.zones if name in self.tree[one]]
        self._leave(zone, name)
        del self.nodes[name]

    def _leave(self, zone: str, name: str) -> None:
        self.tree[zone].remove(name)
        if not self.tree[zone]:
            self.zones.remove(zone)

    def update_snapshot(self) -> None:
        if set(self.snapshot) == set(self.nodes):
            return
        self.snapshot, index = [], 0
        while len(self.snapshot) < len(self.nodes):
            self.snapshot += [self.tree[zone][index] for zone in self.zones if index < len(self.tree[zone])]
            index += 1

    def search(self, percentage: int, only: Sequence[str] | None, nominated: str) -> tuple[set[str], bool]:
        """Return the feasible nodes, and whether a filter failed."""
        self.update_snapshot()
        names = [name for name in self.snapshot if only is None or name in only]
        statuses: set[str] = set()
        if nominated in self.nodes:
            verdict = self._verdict(nominated, only)
            if verdict == "":
                return {nominated}, False
            if verdict == "yes":
                statuses.add(nominated)
        wanted = nodes_to_find(percentage, len(names))
        found: set[str] = set()
        failed = False
        for place_ in range(len(names)):
            name = names[(self.next_start + place_) % len(names)]
            verdict = self._verdict(name, only)
            if verdict == "error":
                failed = True
                break
            if verdict:
                statuses.add(name)
            elif len(found) == wanted:
                break
            else:
                found.add(name)
        self.next_start = (self.next_start + len(found) + len(statuses)) % len(self.snapshot)
        return found, failed

    def _verdict(self, name: str, only: Sequence[str] | None) -> str:
        if only is not None and name not in only:
            return "yes"
        return self.nodes[name].metadata.labels.get("refuse", "")


def sampling_runner(cluster: Cluster, percentage: int) -> Runner:
    runner = plain_runner(cluster, "NodeAffinity", extra=[ByLabel(), ByName()])
    return Runner(replace(runner.profile, percentage_of_nodes_to_score=percentage), cluster)


NAMES = [f"n{number}" for number in range(14)]
ZONES = ["", "a", "b", "c"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), st.sampled_from(ZONES), st.sampled_from(["", "", "", "yes"])),
        st.tuples(st.just("fail"), st.sampled_from(NAMES)),
        st.tuples(st.just("remove"), st.sampled_from(NAMES)),
        st.tuples(st.just("attempt"), st.booleans(), st.sampled_from(["", *NAMES[:4]])),
    ),
    max_size=40,
)


@settings(max_examples=usual(150))
@given(percentage=st.sampled_from([0, 30, 60, 99]), first=st.integers(1, 14), steps=STEPS)
def test_the_same_nodes_are_scored_as_by_a_plain_scheduler(
    percentage: int, first: int, steps: list[tuple[Any, ...]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "MINIMUM_NODES", 3)
        _play(percentage, [("put", name, "a", "") for name in NAMES[:first]] + steps)


def _play(percentage: int, steps: list[tuple[Any, ...]]) -> None:
    cluster, plain, cursor = Cluster(), PlainScheduler(), 0
    runner = sampling_runner(cluster, percentage)
    for number, (kind, *values) in enumerate(steps):
        if kind in ("put", "fail"):
            name, zone, refuse = values if kind == "put" else (values[0], "a", "error")
            labels = {ZONE: zone} if number % 2 else {BETA_ZONE: zone, ZONE: "ignored"}
            item = node(name, labels=labels | ({"refuse": refuse} if refuse else {}))
            cluster.put_node(item)
            plain.put(item)
        elif kind == "remove" and values[0] in plain.nodes:
            cluster.remove_node(values[0])
            plain.remove(values[0])
        elif kind == "attempt" and plain.nodes:
            is_picky, nominated = values
            some = NAMES[2:7]
            terms = [node_term(name=name) for name in some] if is_picky else None
            record = pending_in(cluster, pod(f"p{number}", needs_nodes=terms))
            record.nominated_node_name = nominated
            found = place(runner, record, cursor=cursor)
            existing = [name for name in some if name in plain.nodes]
            names, failed = plain.search(percentage, existing if is_picky else None, nominated)
            assert (bool(found.error), found.cursor) == (failed, plain.next_start)
            cursor = found.cursor
            if not failed:
                assert {cluster.nodes.name(row) for row in found.feasible.tolist()} == names


@settings(max_examples=usual(200))
@given(
    violations=st.lists(st.sampled_from([None, 0, 0, 1, 2]), min_size=1, max_size=25),
    minimum=st.sampled_from([(10, 1), (10, 3), (50, 0), (0, 4), (100, 0), (1, 0)]),
    lot=st.integers(0, 2**64 - 1),
    is_pre_filter=st.booleans(),
)
def test_the_same_candidates_are_left_as_by_a_plain_search(
    violations: list[int | None], minimum: tuple[int, int], lot: int, is_pre_filter: bool
) -> None:
    names = [f"n{number}" for number in range(len(violations))]
    cluster = cluster_of(*(node(name, labels={ZONE: f"z{number % 3}"}) for number, name in enumerate(names)))
    rows = np.array([cluster.nodes.row_of[name] for name in names], dtype=np.int64)
    criteria = np.zeros((len(UPSTREAM), len(rows)), dtype=np.int64)
    criteria[0] = [each or 0 for each in violations]
    refused = np.array([each is None for each in violations], dtype=np.int64)
    table = TrialTable(rows, refused, criteria, {}, {})
    outcome = Outcome.of(np.full(len(rows), 1 if is_pre_filter else (1 << Outcome.SHIFT) + 1), {})

    left = limited_candidates(cluster.nodes, table, outcome, minimum, lot, None)

    kept = {names[position] for position in left.candidates.tolist()}
    of_name = dict(zip(names, violations, strict=True))
    if is_pre_filter:
        order = [cluster.nodes.name(row) for row in cluster.nodes.tree_order().tolist()]
        start = lot % len(order)
        assert kept == _plain_candidates(order[start:] + order[:start], of_name, minimum)
    else:
        # Any order may be upstream's.
        enough = min(max(len(names) * minimum[0] // 100, minimum[1]), len(names))
        candidates = [name for name in names if of_name[name] is not None]
        clean = {name for name in candidates if of_name[name] == 0}
        assert kept <= set(candidates)
        assert len(kept) >= min(enough, len(candidates))
        assert len(kept - clean) <= enough
        assert bool(kept & clean) == bool(clean and enough)


def _plain_candidates(order: list[str], violations: dict[str, int | None], minimum: tuple[int, int]) -> set[str]:
    enough = min(max(len(order) * minimum[0] // 100, minimum[1]), len(order))
    clean: list[str] = []
    violating: list[str] = []
    for name in order:
        if violations[name] is None:
            continue
        some = violating if violations[name] else clean
        some += [name] if len(some) < enough else []
        if clean and len(clean) + len(violating) >= enough:
            break
    return {*clean, *violating}


def test_any_order_of_candidates_may_be_drawn() -> None:
    cluster = cluster_of(*(node(f"n{number}") for number in range(20)))
    rows = np.arange(20, dtype=np.int64)
    nothing = np.zeros((len(UPSTREAM), 20), dtype=np.int64)
    table = TrialTable(rows, np.zeros(20, dtype=np.int64), nothing, {}, {})
    outcome = Outcome.of(np.full(20, (1 << Outcome.SHIFT) + 1), {})

    drawn = {
        tuple(limited_candidates(cluster.nodes, table, outcome, (10, 2), lot, None).candidates.tolist())
        for lot in range(0, 2**64, 2**55)
    }

    # Of 190 pairs, 512 draws find most.
    assert len(drawn) > 150


@pytest.mark.parametrize("refused", [1, (1 << Outcome.SHIFT) + 1])
def test_a_recorded_candidate_is_among_those_that_are_left(refused: int) -> None:
    cluster = cluster_of(*(node(f"n{number}") for number in range(20)))
    nothing = np.zeros((len(UPSTREAM), 20), dtype=np.int64)
    table = TrialTable(np.arange(20, dtype=np.int64), np.zeros(20, dtype=np.int64), nothing, {}, {})
    outcome = Outcome.of(np.full(20, refused), {})

    for lot, first in ((3, 0), (5, 11), (8, 19)):
        left = limited_candidates(cluster.nodes, table, outcome, (10, 2), lot, first).candidates.tolist()
        assert (first in left, len(left)) == (True, 2)


def test_a_single_feasible_node_is_enough_where_nothing_scores() -> None:
    cluster = cluster_of(*(node(f"n{number:03}") for number in range(120)))
    runner = plain_runner(cluster, "NodeName")
    runner = Runner(replace(runner.profile, percentage_of_nodes_to_score=50), cluster)

    found = place(runner, pending_in(cluster, pod("p")), cursor=7)

    assert (found.row, found.cursor) == (cluster.nodes.row_of["n007"], 8)


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [
        (99, 10, 99),
        (100, 10, 100),
        (300, 0, 144),
        (3000, 0, 780),
        (5000, 0, 500),
        (20_000, 0, 1000),
        (3000, None, 3000),
    ],
)
def test_the_search_ends_after_so_many_feasible_nodes(nodes: int, percentage: int | None, expected: int) -> None:
    assert nodes_to_find(percentage, nodes) == expected


def test_preemption_has_upstreams_limits_where_nodes_are_sampled() -> None:
    cluster = cluster_of(*(node(f"n{number}") for number in range(3)))

    def minimum(**profile: Any) -> Any:
        (plugin,) = runner_on(cluster, configuration(**profile)).profile.post_filter[1:]
        return plugin._minimum  # type: ignore[attr-defined]

    assert (minimum(), minimum(percentageOfNodesToScore=0)) == (None, (10, 100))
