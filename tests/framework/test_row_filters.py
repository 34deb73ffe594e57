"""Filters for one row against the same filters in arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.pod import Pod
from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.what_if_view import WhatIfView
from podium.framework.cache.row_filters import has_one_row_form
from podium.framework.handle import CycleState
from podium.framework.runner import Runner
from podium.framework.verdicts import Outcome, Status, Verdicts
from podium.plugins.node_resources_fit import NodeResourcesFit
from tests.builders import cluster_of, node, pending_in, plain_runner, pod
from tests.fuzzing import Effort, efforts
from tests.generators import Objects, Traits, clusters

TRAITS = Traits(heavy_target=True, terminating=True, nominated=True, tolerations=True)


def asked(runner: Runner, target: PodRecord) -> CycleState:
    state = CycleState()
    runner.pre_filter(state, target)
    return state


def status(refused: int, outcome: Outcome) -> Status:
    return Outcome.of(np.array([refused]), outcome.decoders).status(0)


def in_arrays(runner: Runner, state: CycleState, target: PodRecord, row: int, gone: list[PodRecord]) -> Status:
    worlds = WhatIfView(runner.cluster, np.array([row]))
    worlds.remove(np.zeros(len(gone), dtype=np.int64), np.array([one.slot for one in gone], dtype=np.int64))
    return runner.filter_what_if(state, target, worlds, target.uid).status(0)


@efforts(30)
def test_one_row_is_refused_for_what_arrays_say_of_it(effort: Effort) -> None:
    @effort
    @given(clusters(TRAITS, most_nodes=3, most_pods=8), st.data())
    def check(objects: Objects, data: st.DataObject) -> None:
        cluster = cluster_of(*objects.surroundings)
        runner, target = plain_runner(cluster), cluster.read(objects.target)
        state = asked(runner, target)
        filters = runner.row_filters(state, target)
        assert filters is not None
        known = Outcome(0)
        filters.explain(target, known.decoders)
        for row in cluster.nodes.row_of.values():
            gone = [one for one in cluster.pods_on(row) if data.draw(st.booleans())]

            refused = filters.refused_at_last(target, row, gone, target.uid)

            assert status(refused, known) == in_arrays(runner, state, target, row, gone)

    check()


MANY: dict[str, Any] = {f"example.com/r{number}": 1 for number in range(40)}


@pytest.mark.parametrize("lacking", [[], [3], [3, 7, 39]])
def test_a_pod_may_want_more_resources_than_a_code_has_bits(lacking: list[int]) -> None:
    named = [f"example.com/r{number}" for number in lacking]
    holders = [pod(f"q{name[-1]}", on="n", **{name: MANY[name]}) for name in named]
    cluster = cluster_of(node("n", **MANY), *holders)
    runner, target = plain_runner(cluster), pending_in(cluster, pod("p", **MANY))
    state = asked(runner, target)
    filters = runner.row_filters(state, target)
    assert filters is not None
    known = Outcome(0)
    filters.explain(target, known.decoders)

    for gone in ([], cluster.pods_on(0)):
        refused = filters.refused(target, 0, gone)

        assert status(refused, known) == in_arrays(runner, state, target, 0, gone)
        assert len(status(refused, known).reasons) == (0 if gone else len(lacking))


def test_pods_that_some_filter_cannot_answer_for_in_that_form_are_asked_about_in_arrays() -> None:
    """NodePorts, here; and InterPodAffinity looks beyond the row."""
    cluster = cluster_of(node("n"), pod("q", on="n", labels={"app": "db"}))
    runner = plain_runner(cluster)

    def is_possible(target: Pod) -> bool:
        record = cluster.read(target)
        return runner.row_filters(asked(runner, record), record) is not None

    assert is_possible(pod("p", cpu=1))
    assert not is_possible(pod("p", cpu=1, ports=[80]))


class Stricter(NodeResourcesFit):
    """Changes what is said in arrays, and not what is said of one row."""

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        codes: Int64s = np.ones(len(view), dtype=np.int64)
        return Verdicts(codes, super().filter_rows(state, pod, view).status)


class StricterEverywhere(Stricter):
    def filter_row(self, pod: PodRecord, row: int, gone: object, joined: object) -> int:
        return 1


@pytest.mark.parametrize(("kind", "has"), [(NodeResourcesFit, True), (Stricter, False), (StricterEverywhere, True)])
def test_a_subclass_that_changes_the_array_form_alone_is_asked_in_that_form(kind: type, has: bool) -> None:
    assert has_one_row_form(object.__new__(kind)) is has
