"""Rules of topology spread constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.api.meta import Kubernetes
from podium.api.pod import TopologySpreadConstraint
from podium.cluster.view import View
from podium.framework.handle import CycleState
from podium.framework.verdicts import PluginError
from podium.plugins.pod_topology_spread import own_constraints
from tests.builders import (
    HOSTNAME,
    ZONE,
    cluster_of,
    configuration,
    explain,
    node,
    node_term,
    plain_runner,
    pod,
    replica_set,
    service,
    spread_over,
    tolerate,
)

SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"
WEB = {"app": "web"}
ZONES = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("c1", zone="c")]


def webs(*names: str, **more: Any) -> list[Kubernetes]:
    """Pods of the app, one on each node named."""
    return [pod(f"web-{number}", on=name, labels=WEB, **more) for number, name in enumerate(names)]


def refusals(*objects: Kubernetes) -> dict[str, str]:
    found = explain([*ZONES, *objects]).nodes
    return {name: status.message for name, status in found.items() if not status.is_success}


def target(*constraints: TopologySpreadConstraint, **more: Any) -> Kubernetes:
    return pod("p", **{"labels": WEB, "spread": constraints, **more})


# Hard constraints


def test_a_domain_may_lead_the_emptiest_one_by_max_skew_with_the_pod_in_it() -> None:
    there = webs("a1", "a2", "b1")

    assert refusals(*there, target(spread_over(ZONE, "app=web", 1))) == {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED}
    assert refusals(*there, target(spread_over(ZONE, "app=web", 2))) == {"a1": SKEWED, "a2": SKEWED}
    assert refusals(*there, target(spread_over(ZONE, "app=web", 3))) == {}


def test_every_constraint_must_hold() -> None:
    there = webs("a1", "b1", "c1")
    both = target(spread_over(ZONE, "app=web", 1), spread_over(HOSTNAME, "app=web", 1))

    assert refusals(*there, both) == {"a1": SKEWED, "b1": SKEWED, "c1": SKEWED}


def test_a_pod_that_its_own_constraint_does_not_select_adds_nothing() -> None:
    there = webs("a1", "b1")

    assert refusals(*there, target(spread_over(ZONE, "app=web", 1), labels={"app": "db"})) == {}


def test_a_node_without_the_key_is_out_for_good_and_so_are_its_pods() -> None:
    bare = [node("bare"), *webs("bare", "bare", "a1", "b1", "c1")]

    assert refusals(*bare, target(spread_over(ZONE, "app=web", 1))) == {"bare": UNLABELLED}


def test_nodes_that_lack_the_key_of_another_constraint_do_not_count() -> None:
    """Its pods are not seen, and it is no domain that could be the emptiest."""
    half = node("half", labels={ZONE: "d"})
    there = webs("a1", "a2", "b1", "c1", "half")

    both = target(spread_over(ZONE, "app=web", 1), spread_over(HOSTNAME, "app=web", 5))
    assert refusals(half, *there, both) == {"a1": SKEWED, "a2": SKEWED, "half": UNLABELLED}


def test_pods_of_other_namespaces_and_terminating_pods_do_not_count() -> None:
    others = [*webs("a1", namespace="shop"), *webs("a1", terminating=True)]

    assert refusals(*others, target(spread_over(ZONE, "app=web", 1))) == {}


@pytest.mark.parametrize("match", ["", None])
def test_an_empty_selector_and_none_at_all_count_nothing(match: str | None) -> None:
    """With the empty one the pod itself counts, as in kube-scheduler."""
    assert refusals(*webs("a1", "a1", "a1"), target(spread_over(ZONE, match, 1))) == {}


def test_with_fewer_domains_than_wanted_the_emptiest_counts_as_empty() -> None:
    there = webs("a1", "b1", "c1")

    assert refusals(*there, target(spread_over(ZONE, "app=web", 1, min_domains=3))) == {}
    few = dict.fromkeys(("a1", "a2", "b1", "c1"), SKEWED)
    assert refusals(*there, target(spread_over(ZONE, "app=web", 1, min_domains=4))) == few


def test_without_any_domain_that_counts_only_the_pod_itself_does() -> None:
    """Its affinity leaves no node; other plugins say so, and this one has nothing against any."""
    cluster = cluster_of(*ZONES, *webs("a1", "a1"))
    runner, state = plain_runner(cluster, "PodTopologySpread"), CycleState()
    record = cluster.read(pod("p", labels=WEB, spread=[spread_over(ZONE, "app=web")], needs_nodes=[node_term("disk")]))
    runner.pre_filter(state, record)

    assert len(runner.filter(state, record).feasible) == len(ZONES)


def test_nodes_that_the_pod_does_not_select_do_not_count_unless_the_policy_ignores_that() -> None:
    """The empty zone c is none to the pod: it may not go there."""
    there = webs("a1", "b1")
    picky = {"needs_nodes": [node_term(f"{ZONE} in (a,b)")]}

    honoring = target(spread_over(ZONE, "app=web", 1), **picky)
    ignoring = target(spread_over(ZONE, "app=web", 1, honors_affinity=False), **picky)

    assert sorted(refusals(*there, honoring)) == ["c1"]
    assert sorted(refusals(*there, ignoring)) == ["a1", "a2", "b1", "c1"]


def test_the_domains_are_found_again_once_required_labels_change() -> None:
    cluster = cluster_of(*(node(name, zone=name, labels={"disk": "ssd"}) for name in "ab"))
    pod_class = cluster.read(
        pod("p", spread=[spread_over(ZONE, "app=web")], needs_nodes=[node_term("disk in (ssd)")])
    ).pod_class
    constraints = own_constraints(pod_class, "DoNotSchedule")
    before = constraints.domains(cluster, pod_class)

    cluster.put(node("a", zone="a", labels={"disk": "ssd"}, taints=["gone=yes:NoExecute"]))
    assert constraints.domains(cluster, pod_class) is before

    cluster.put(node("a", zone="a", labels={"disk": "hdd"}))
    (after,) = constraints.domains(cluster, pod_class)
    assert [after.column.values[code] for code in after.codes] == ["b"]


def test_tainted_nodes_count_unless_the_policy_honors_taints() -> None:
    there = [node("d1", zone="d", taints=["gpu:NoSchedule"]), *webs("a1", "b1", "c1")]
    honoring = spread_over(ZONE, "app=web", 1, honors_taints=True)

    assert sorted(refusals(*there, target(spread_over(ZONE, "app=web", 1)))) == ["a1", "a2", "b1", "c1", "d1"]
    assert sorted(refusals(*there, target(honoring))) == ["d1"]
    assert sorted(refusals(*there, target(honoring, tolerations=[tolerate("gpu")]))) == ["a1", "a2", "b1", "c1"]


def test_match_label_keys_narrow_the_selector_to_the_pods_own_values() -> None:
    """Pods of the version before, which are on their way out, do not count."""
    old = [pod(f"old-{n}", on="a1", labels={**WEB, "version": "1"}) for n in range(3)]
    by_version = spread_over(ZONE, "app=web", 1, match_label_keys=["version", "none"])

    assert refusals(*old, target(by_version, labels={**WEB, "version": "2"})) == {}
    assert sorted(refusals(*old, target(by_version, labels={**WEB, "version": "1"}))) == ["a1", "a2"]
    assert sorted(refusals(*old, target(by_version))) == ["a1", "a2"]


def test_a_nominated_pod_counts_in_its_domain_which_then_may_be_the_emptiest_no_more() -> None:
    there = webs("a1", "b1", "b1", "c1", "c1")
    waiting = pod("waiting", priority=9, labels=WEB, nominated="a1")

    assert sorted(refusals(*there, target(spread_over(ZONE, "app=web", 1)))) == ["b1", "c1"]
    # Beside the nominated pod a1 is as full as the others, and they are no more than it was before.
    assert sorted(refusals(*there, waiting, target(spread_over(ZONE, "app=web", 1)))) == ["b1", "c1"]
    two = pod("another", priority=9, labels=WEB, nominated="a1")
    assert sorted(refusals(*there, waiting, two, target(spread_over(ZONE, "app=web", 1)))) == ["a1", "b1", "c1"]


def test_a_skew_can_be_lifted_by_preemption_and_a_missing_label_cannot() -> None:
    found = explain([*ZONES, node("bare"), *webs("a1"), target(spread_over(ZONE, "app=web", 1))]).nodes

    assert (found["a1"].code.value, found["bare"].code.value) == ("Unschedulable", "UnschedulableAndUnresolvable")


# Soft constraints and defaults


def scores(*objects: Kubernetes, args: dict[str, Any] | None = None) -> dict[str, int] | None:
    """Return the plugin's normalized scores for `default/p`; None where it says nothing."""
    *around, one = objects
    cluster = cluster_of(*around)
    runner = plain_runner(cluster, "PodTopologySpread", args=args)
    state, view = CycleState(), View(cluster, np.array(sorted(cluster.nodes.row_of.values()), dtype=np.int64))
    record = cluster.read(one)  # type: ignore[arg-type]
    runner.scoring.prepare(state, record, view)
    found = {each.plugin: each.weighted for each in runner.scoring.rated(state, record, view)}.get("PodTopologySpread")
    if found is None:
        return None
    return {cluster.nodes.name(int(row)): int(score) for row, score in zip(view.rows, found, strict=True)}


def test_the_emptiest_domain_gets_the_most_and_none_is_refused() -> None:
    there = webs("a1", "a2", "b1")
    soft = target(spread_over(ZONE, "app=web", 1, soft=True))

    found = scores(*ZONES, *there, soft)

    assert found is not None
    assert found["c1"] == 100 > found["b1"] > found["a1"] == found["a2"]
    assert refusals(*there, soft) == {}


def test_a_node_without_all_of_the_keys_gets_nothing() -> None:
    found = scores(*ZONES, node("bare"), target(spread_over(ZONE, "app=web", 1, soft=True)))

    assert found == {"a1": 100, "a2": 100, "b1": 100, "c1": 100, "bare": 0}


def test_hosts_weigh_more_than_zones_where_there_are_more_of_them() -> None:
    """One pod too many on the host counts more than one too many in the zone."""
    nodes = [node(f"{zone}{number}", zone=zone) for zone in "ab" for number in range(4)]
    both = [spread_over(ZONE, "app=web", 1, soft=True), spread_over(HOSTNAME, "app=web", 1, soft=True)]
    found = scores(*nodes, *webs("a0", "b0", "b1"), pod("p", labels=WEB, spread=both))

    assert found is not None
    assert found["a1"] > found["b2"] > found["a0"] > found["b0"] == found["b1"]


def test_hosts_without_all_of_the_keys_do_not_add_to_the_weight_of_a_host() -> None:
    """One pod on the host and in the zone weighs as much as two in the zone, however many hosts have no zone."""
    nodes = [node("a", zone="a"), node("b", zone="b"), node("c", zone="b")]
    zoneless = [node(f"n{n}", labels={HOSTNAME: f"n{n}"}) for n in range(6)]
    both = [spread_over(ZONE, "app=web", 1, soft=True), spread_over(HOSTNAME, "app=web", 1, soft=True)]

    found = scores(*nodes, *zoneless, *webs("a", "c", "c"), pod("p", labels=WEB, spread=both))

    assert found == {"a": 100, "b": 100, "c": 50} | {f"n{n}": 0 for n in range(6)}


def test_pods_without_constraints_of_their_own_are_spread_by_service_or_owner() -> None:
    """Over hosts and zones; a pod that belongs to nothing is not rated."""
    there = [*ZONES, *webs("a1", "a1")]
    of_service, of_owner = pod("p", labels=WEB), pod("p", labels=WEB, owner="ReplicaSet/web")

    for found in (
        scores(*there, service("web", app="web"), of_service),
        scores(*there, replica_set("web", "app=web"), of_owner),
    ):
        assert found is not None
        assert found["a1"] < found["a2"] < found["b1"] == found["c1"] == 100
    assert scores(*there, of_service) is None
    assert scores(*there, service("web", namespace="shop", app="web"), of_service) is None
    assert scores(*there, service("everything"), of_service) is None
    assert scores(*there, replica_set("web", "app=web"), of_service) is None


def test_the_systems_defaults_make_do_with_either_label() -> None:
    """With a list of one's own, a node needs all of the keys."""
    nodes = [node("host", labels={HOSTNAME: "host"}), node("both", zone="a")]
    there = [*nodes, service("web", app="web"), *webs("host"), pod("p", labels=WEB)]
    listed = {
        "defaultingType": "List",
        "defaultConstraints": [
            {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
            for skew, key in ((3, HOSTNAME), (5, ZONE))
        ],
    }

    by_system, by_list = scores(*there), scores(*there, args=listed)

    assert by_system is not None
    assert by_list == {"host": 0, "both": 100}
    assert min(by_system.values()) > 0


def test_default_constraints_are_for_pods_without_any_of_their_own() -> None:
    hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    settings = configuration({"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": [hard]}})
    there = [*ZONES, service("web", app="web"), *webs("a1")]

    def refused(one: Kubernetes) -> list[str]:
        found = explain([*there, one], settings=settings).nodes
        return [name for name, status in found.items() if not status.is_success]

    assert refused(pod("p", labels=WEB)) == ["a1", "a2"]
    assert refused(target(spread_over(HOSTNAME, "app=web", 1, soft=True))) == []


def test_default_constraints_follow_the_services() -> None:
    cluster = cluster_of(*ZONES, *webs("a1"))
    runner, record = plain_runner(cluster), cluster.read(pod("p", labels=WEB))

    def rated() -> bool:
        state = CycleState()
        runner.scoring.prepare(state, record, View(cluster))
        return "PodTopologySpread" not in state.skip_score

    assert not rated()
    cluster.put(service("web", app="web"))
    assert rated()
    cluster.remove(service("web", app="web"))
    assert not rated()


LISTED = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"defaultConstraints": [LISTED]}, "defaultConstraints need defaultingType List"),
        (
            {"defaultingType": "List", "defaultConstraints": [{**LISTED, "labelSelector": {}}]},
            "defaultConstraints must not have a labelSelector",
        ),
    ],
)
def test_arguments_that_contradict_themselves_are_refused(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(PluginError, match=problem):
        plain_runner(cluster_of(), "PodTopologySpread", args=args)


# While preemption is tried


def candidates(*objects: Kubernetes) -> list[str]:
    """Return the nodes on which `default/p` could preempt."""
    plan = explain(objects).plan
    assert plan is not None
    return sorted(plan.candidates)


def test_a_terminating_victim_is_taken_off_a_count_that_it_was_never_part_of() -> None:
    """kube-scheduler does the same: the two remaining pods of zone a then count as one."""
    full = [node("a", zone="a", cpu=4), node("b", zone="b", cpu=4), pod("rest", on="b", cpu=4, priority=9)]
    live = [pod(f"live-{number}", on="a", labels=WEB, priority=9) for number in range(2)]
    there = [*full, *live, pod("web", on="b", labels=WEB, priority=9)]
    wanted = pod("p", cpu=4, labels=WEB, priority=5, spread=[spread_over(ZONE, "app=web", 1)])

    assert candidates(*there, wanted, pod("victim", on="a", cpu=4, labels=WEB)) == []
    assert candidates(*there, wanted, pod("victim", on="a", cpu=4, labels=WEB, terminating=True)) == ["a"]
    assert candidates(*there, wanted, pod("victim", on="a", cpu=4, terminating=True)) == []


def test_an_empty_spread_selector_counts_only_removed_victims() -> None:
    """kube-scheduler does the same: the victims' domain is then below all others."""
    full = [node("a", zone="a", cpu=4), node("b", zone="b", cpu=4), pod("rest", on="b", cpu=4, priority=9)]
    wanted = pod("p", cpu=4, priority=5, spread=[spread_over(ZONE, "", 1), spread_over(ZONE, "app=web", 1)])
    victims = [pod("web", on="a", cpu=4, labels=WEB)]

    assert candidates(*full, *victims, wanted) == ["a"]
