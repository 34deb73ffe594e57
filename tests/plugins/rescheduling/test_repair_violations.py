"""RepairViolations: pods that violate their requirements move to nodes where they do not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.framework.handle import CycleState
from podium.plugins.rescheduling.demand_policies import refusal
from tests.builders import (
    ZONE,
    cluster_of,
    configuration,
    node,
    node_term,
    plain_runner,
    pod,
    runner_on,
    spread_over,
    term,
    tolerate,
)
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters
from tests.plugins.rescheduling.pictures import carry_out, picture_of, picture_on, places, policy_of, reported


def repair() -> Any:
    return policy_of("RepairViolations")


def web(name: str, on: str, **reported: Any) -> Pod:
    return pod(name, on=on, owner="ReplicaSet/web", labels={"app": "web"}, **reported)


def only(seen: Any) -> Any:
    (proposal,) = repair().proposals(seen)
    return proposal


@pytest.mark.parametrize("needed", [{"node_selector": {"disk": "ssd"}}, {"needs_nodes": [node_term("disk=ssd")]}])
def test_a_pod_leaves_a_node_that_has_lost_the_labels_it_requires(needed: dict[str, Any]) -> None:
    seen = picture_of(node("plain"), node("fast", labels={"disk": "ssd"}), web("w", "plain", **needed))
    assert repair().objective(seen) == 1
    reason = "default/w would be rejected by plain now: it does not match the pod's node affinity or selector"
    assert only(seen).reason == reason
    assert carry_out(repair(), seen) == [("w", "plain", "fast")]
    assert repair().objective(seen) == 0


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_pod_leaves_a_node_that_got_a_taint(effect: str) -> None:
    nodes = node("own", taints=[f"team=db:{effect}"]), node("shared")
    seen = picture_of(*nodes, web("w", "own"), web("calm", "own", tolerations=[tolerate("team")]))
    assert only(seen).reason.endswith("it has a taint that the pod does not tolerate")
    assert carry_out(repair(), seen) == [("w", "own", "shared")]


def test_soft_taints_and_closed_nodes_are_not_violations() -> None:
    soft = picture_of(node("a", taints=["old:PreferNoSchedule"]), node("b"), web("w", "a"))
    assert repair().objective(soft) == 0
    drained = picture_of(node("a", taints=["going:NoSchedule"]), node("b"), web("w", "a"), closed=("a",))
    assert repair().objective(drained) == 0
    assert reported(repair().proposals(drained)) == []


def test_pods_that_must_be_apart_are_parted_by_as_few_moves_as_will_do() -> None:
    apart = [term("app=web")]
    seen = picture_of(*(node(n, zone="z") for n in "abc"), *(web(f"w{i}", "a", apart=apart) for i in range(3)))
    assert repair().objective(seen) == 2
    assert len(carry_out(repair(), seen)) == 2
    assert sorted(places(seen).values()) == ["a", "b", "c"]


def test_either_pod_of_a_violated_anti_affinity_may_move() -> None:
    nodes = node("a", zone="z"), node("b", zone="z")
    seen = picture_of(*nodes, pod("picky", on="a", apart=[term("app=web")]), web("w", "a"))
    proposal = only(seen)
    assert proposal.relocations[0].pod.name == "w"
    assert proposal.reason.endswith("others want to be apart from pods with app=web by kubernetes.io/hostname")
    owned = pod("picky", on="a", apart=[term("app=web")], owner="ReplicaSet/p", priority=5)
    assert reported(repair().proposals(picture_of(*nodes, owned, web("w", "a")))) == ["w", "picky"]


def test_a_pod_that_lost_the_company_it_must_have_follows_it() -> None:
    nodes = node("a", zone="x"), node("b", zone="y")
    seen = picture_of(*nodes, pod("db", on="b", labels={"app": "db"}), web("w", "a", near=[term("app=db", ZONE)]))
    assert only(seen).reason.endswith(f"it lacks the pods that it must be near by {ZONE}")
    assert carry_out(repair(), seen) == [("w", "a", "b")]


def test_the_first_of_a_group_that_selects_itself_is_right_to_be_alone() -> None:
    seen = picture_of(node("a", zone="x"), node("b", zone="y"), web("w", "a", near=[term("app=web", ZONE)]))
    assert repair().objective(seen) == 0


def test_company_on_a_node_without_the_key_is_none_and_the_first_of_a_group_is_right_without_it() -> None:
    near = [term("app=web", ZONE)]
    seen = picture_of(node("bare"), node("a", zone="x"), web("v", "bare"), web("w", "a", near=near))
    assert repair().objective(seen) == 0
    assert not reported(repair().proposals(seen))


def test_a_pod_must_be_near_pods_that_all_of_its_terms_select() -> None:
    nodes = node("a", zone="x"), node("b", zone="y")
    both = [term("app=db", ZONE), term("tier=gold", ZONE)]
    company = pod("db", on="a", labels={"app": "db"}), pod("gold", on="a", labels={"tier": "gold"})
    right = pod("right", on="b", labels={"app": "db", "tier": "gold"})
    seen = picture_of(*nodes, *company, right, web("w", "a", near=both))
    assert repair().objective(seen) == 1
    assert carry_out(repair(), seen) == [("w", "a", "b")]


def test_skew_beyond_what_is_allowed_is_evened_out() -> None:
    spread = [spread_over(ZONE, "app=web")]
    nodes = [node(name, zone=f"zone-{name}") for name in "abc"]
    seen = picture_of(*nodes, *(web(f"w{i}", "a", spread=spread) for i in range(6)))
    assert repair().objective(seen) == 4
    assert len(carry_out(repair(), seen)) == 4
    assert sorted(places(seen).values()) == ["a", "a", "b", "b", "c", "c"]


def test_a_domain_that_has_none_gets_one_though_no_other_has_too_many() -> None:
    spread = [spread_over(ZONE, "app=web")]
    nodes = [node(name, zone=f"zone-{name}") for name in "abc"]
    seen = picture_of(*nodes, *(web(f"w{i}", "aabb"[i], spread=spread) for i in range(4)))
    assert repair().objective(seen) == 1
    assert carry_out(repair(), seen) == [("w0", "a", "c")]
    assert repair().objective(seen) == 0


def test_a_pod_that_lies_as_it_should_misses_nothing_however_unevenly_others_lie() -> None:
    spread = [spread_over(ZONE, "app=web")]
    nodes = [node(name, zone=f"zone-{name}") for name in "abc"]
    seen = picture_of(*nodes, web("v", "a"), web("w", "a"), web("x", "b", spread=spread))
    assert repair().objective(seen) == 0
    among = picture_of(*nodes, web("v", "a"), web("w", "a", spread=spread), web("x", "b", spread=spread))
    assert repair().objective(among) == 1
    assert carry_out(repair(), among) == [("w", "a", "c")]


def test_a_pod_on_a_node_without_the_key_that_it_spreads_over_belongs_elsewhere() -> None:
    seen = picture_of(node("bare"), node("a", zone="x"), web("w", "bare", spread=[spread_over(ZONE, "app=web")]))
    assert only(seen).reason.endswith(f"it lacks the label {ZONE}, over which the pod spreads")
    assert carry_out(repair(), seen) == [("w", "bare", "a")]


@pytest.mark.failure(77)
@pytest.mark.parametrize(
    "domain",
    [
        {"taints": ["team=db:NoSchedule"]},
        {"cpu": "1"},
        {"pods": 0},
    ],
)
def test_an_unfixable_spread_moves_no_pod(domain: dict[str, Any]) -> None:
    spread = [spread_over(ZONE, "app=web")]
    crowd = [web(f"w{i}", "a", cpu="2", spread=spread) for i in range(3)]
    seen = picture_of(node("a", zone="x"), node("b", zone="y", **domain), *crowd)
    assert reported(repair().proposals(seen)) == []


@pytest.mark.failure(78)
def test_pods_that_meet_all_of_their_constraints_together_are_let_be() -> None:
    # Two of three zones have what the pods select: over these they lie evenly, and the third counts for nothing.
    both: dict[str, Any] = {"spread": [spread_over(ZONE, "app=web")], "node_selector": {"disk": "ssd"}}
    ssd = {"disk": "ssd"}
    nodes = node("a", zone="x", labels=ssd), node("b", zone="y", labels=ssd), node("c", zone="z")
    seen = picture_of(*nodes, *(web(f"w{i}", "ab"[i % 2], **both) for i in range(4)))
    assert repair().objective(seen) == 0
    assert reported(repair().proposals(seen)) == []


@pytest.mark.failure(78)
def test_conflicting_spread_constraints_do_not_move_pods_back_and_forth() -> None:
    both = {"spread": [spread_over(ZONE, "app=web"), spread_over("kubernetes.io/hostname", "app=web")]}
    nodes = node("a1", zone="x"), node("a2", zone="x"), node("a3", zone="x"), node("b", zone="y")
    seen = picture_of(*nodes, *(web(f"w{i}", on, **both) for i, on in enumerate(("a1", "a2", "b", "b"))))
    carry_out(repair(), seen)
    assert carry_out(repair(), seen) == []


def test_predicates_that_the_scheduler_does_not_filter_by_are_not_violations() -> None:
    objects = node("own", taints=["team=db:NoSchedule"]), node("shared"), web("w", "own")
    cluster = cluster_of(*objects)
    lenient = runner_on(cluster, configuration(only=["NodeAffinity", "NodeResourcesFit"]))
    seen = replace(picture_on(cluster), runners={"default-scheduler": lenient})
    assert repair().objective(seen) == 0
    assert reported(repair().proposals(seen)) == []


def test_pods_of_unknown_schedulers_are_judged_by_what_kubelets_enforce() -> None:
    apart = [term("app=web")]
    nodes = node("a", zone="z"), node("b", zone="z", labels={"disk": "ssd"})
    foreign = [web(f"w{i}", "a", apart=apart, scheduler="other") for i in range(2)]
    seen = picture_of(*nodes, *foreign, web("ssd", "a", scheduler="other", node_selector={"disk": "ssd"}))
    assert reported(repair().proposals(seen)) == ["ssd"]


def test_the_scheduler_owners_affinity_and_constraints_count_as_well() -> None:
    cluster = cluster_of(node("plain"), node("fast", labels={"disk": "ssd"}), web("w", "plain"))
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
    added = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    runner = runner_on(cluster, configuration({"NodeAffinity": added}))
    assert repair().objective(replace(picture_on(cluster), runners={"default-scheduler": runner})) == 1


def test_the_largest_repair_goes_first_then_the_least_important_pod_then_the_key() -> None:
    nodes = node("own", taints=["team=db:NoSchedule"]), node("shared", labels={"disk": "ssd"})
    worse: dict[str, Any] = {"node_selector": {"disk": "ssd"}, "apart": [term("app=web")]}
    seen = picture_of(
        *(node(n, zone="z", taints=["team=db:NoSchedule"]) for n in "a"),
        *nodes,
        pod("late", on="own", owner="ReplicaSet/late", priority=3),
        web("b", "own"),
        web("a", "own"),
        pod("worst", on="a", owner="ReplicaSet/x", **worse),
        web("other", "a", tolerations=[tolerate("team")]),
    )
    assert reported(repair().proposals(seen))[0] == "worst"
    rest = [name for name in reported(repair().proposals(seen)) if name not in ("worst", "other")]
    assert rest == ["a", "late"]


def test_repair_violations_takes_no_arguments() -> None:
    with pytest.raises(InputError, match=re.escape("taints")):
        policy_of("RepairViolations", taints=True)


@efforts(20)
def test_the_cost_of_violations_covers_only_pods_that_their_filters_reject(effort: Effort) -> None:
    # Of pods that terminate filters take notice, and the objective does not: they are as good as gone.
    @effort
    @given(clusters(replace(EVERYTHING, terminating=False), least_pods=2))
    def check(objects: Objects) -> None:
        seen = picture_on(cluster_of(*objects.surroundings), is_movable=lambda pod: True)
        placed = [pod for pod in seen.cluster.placed.values() if pod.row >= 0 and not pod.terminating]
        broken = {pod.uid for pod in placed if refusal(seen, pod)}
        assert {proposal.relocations[0].pod.uid for proposal in repair().proposals(seen)} <= broken
        if repair().objective(seen):
            assert broken

    check()


@efforts(20)
def test_a_refusal_is_what_the_filters_say_of_a_pod_that_is_taken_off(effort: Effort) -> None:
    # Who is nominated to a node is not there yet.
    @effort
    @given(clusters(replace(EVERYTHING, nominated=False), least_pods=2))
    def check(objects: Objects) -> None:
        cluster = cluster_of(*objects.surroundings)
        seen = picture_on(cluster)
        judges = ("NodeAffinity", "TaintToleration", "InterPodAffinity", "PodTopologySpread")
        runner = plain_runner(cluster, *judges)
        for pod_ in [found for found in cluster.placed.values() if found.row >= 0 and not found.terminating]:
            said, row = refusal(seen, pod_), pod_.row
            record = cluster.remove_pod(pod_.uid)
            assert bool(said) == (not admits(runner, record, row))
            cluster.add_pod(record)

    check()


def admits(runner: Any, record: Any, row: int) -> bool:
    state = CycleState()
    pre_filter = runner.pre_filter(state, record)
    if not pre_filter.status.is_success or (pre_filter.rows is not None and row not in pre_filter.rows):
        return False
    return bool(row in runner.filter(state, record, None).feasible)
