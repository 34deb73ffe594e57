"""The parts of an explanation that the conformance cases do not compare."""

from __future__ import annotations

from typing import Any

import podium
from podium.api.meta import Kubernetes
from podium.app.explaining.explainer import Explainer
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.framework.handle import CycleState
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from tests.builders import explain, node, node_term, pod


def test_a_gated_pod_is_asked_nothing_else() -> None:
    found = explain([node("n"), pod("p", gates=["a", "b"])])

    assert (found.outcome, found.node, found.plan) == ("gated", "", None)
    assert found.decision() == {
        "pod": "default/p",
        "outcome": "gated",
        "node": "",
        "preEnqueue": {
            "status": "UnschedulableAndUnresolvable",
            "plugin": "SchedulingGates",
            "reasons": ["waiting for scheduling gates: [a b]"],
        },
        "nodes": {},
    }


def test_nodes_that_a_pre_filter_left_out_give_no_reason_of_their_own_in_the_answer() -> None:
    found = explain([node("n"), node("m"), pod("p", needs_nodes=[node_term(name="n")])])

    assert found.to_dict()["nodes"] == {
        "m": {"status": "UnschedulableAndUnresolvable", "plugin": "PreFilter"},
        "n": {"status": "Success"},
    }
    assert found.nodes["m"].message == "node(s) didn't satisfy plugin(s) [NodeAffinity]"


def nominated_counts(**how: Any) -> bool:
    """Return whether a pod that is nominated to the only node keeps the other off it."""
    return (
        explain([node("n", cpu=4), pod("first", cpu=4, nominated="n", **how), pod("p", cpu=4)]).outcome != "schedulable"
    )


def test_nominations_count_of_the_pods_that_this_scheduler_has_in_its_queue() -> None:
    assert nominated_counts()
    assert nominated_counts(terminating=True)
    assert not nominated_counts(scheduler="other")
    assert not nominated_counts(gates=["wait"])


def scored_without_preparing(plugin: str, *objects: Kubernetes) -> Any:
    """Return the explanation of `default/p` where one plugin is enabled at score and not at preScore."""
    plugins = {"preScore": {"disabled": [{"name": plugin}]}}
    raw = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": plugins}]}
    return Explainer(objects, read_configuration(raw, "")).explain("default/p")


def test_a_plugin_that_is_to_score_what_it_was_not_to_prepare_fails_the_pod() -> None:
    for plugin in ("TaintToleration", "InterPodAffinity", "PodTopologySpread"):
        found = scored_without_preparing(plugin, node("n"), node("m"), pod("p"))

        assert (found.outcome, found.nodes) == ("error", {})
        assert found.to_dict()["error"].startswith(f"plugin {plugin} failed at Score for pod default/p")


def test_plugins_that_make_up_for_it_do_not_and_the_only_node_that_fits_needs_no_score() -> None:
    for plugin in ("NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"):
        assert scored_without_preparing(plugin, node("n"), node("m"), pod("p")).outcome == "schedulable"
    assert scored_without_preparing("TaintToleration", node("n"), pod("p")).node == "n"


class Failing:
    """A Score plugin that fails on every node."""

    name = "Failing"

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        raise ValueError("broken")


def test_a_failure_to_score_the_only_node_that_fits_does_not_matter_either() -> None:
    found = podium.load([node("n"), pod("p")], plugins=[Failing]).explain("p")

    assert (found.outcome, found.node, {**found.totals}) == ("schedulable", "n", {})
    assert found.on_node("n").scores == ()
