"""Victims on several nodes, one rule at a time; test_wide_preemption_by_twin tries every set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from podium.api.errors import InputError
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.placement import full_outcome, place
from podium.decide.preempting.criteria import CRITERIA, VictimSets
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING_ELSEWHERE
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext
from podium.framework.runner import Runner
from podium.framework.settings.arguments import read_arguments
from podium.framework.verdicts import SUCCESS, Status, unschedulable
from podium.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from tests.builders import (
    DAY_ONE_NS,
    HOSTNAME,
    ZONE,
    budget,
    cluster_of,
    configuration,
    node,
    pending_in,
    plain_runner,
    pod,
    runner_on,
    scheduler_cap,
    spread_over,
    term,
)

WEB = {"app": "web"}
ACROSS = {"acrossNodes": True}
# Two zones of two nodes.
ZONES: list[Kubernetes] = [node(f"{zone}{number}", zone=zone, cpu=4) for zone in "ab" for number in (1, 2)]


def planned(cluster: Cluster, runner: Runner, target: Pod, *, detailed: bool = True) -> PreemptionPlan:
    record = pending_in(cluster, target)
    placement = place(runner, record, nominated_first=False)
    assert placement.row is None, "the pod fits as it is"
    (plugin,) = (one for one in runner.profile.post_filter if isinstance(one, DefaultPreemption))
    return plugin.plan(placement.state, record, runner, full_outcome(cluster, placement), detailed=detailed)


def plan(target: Pod, objects: Sequence[Kubernetes], **args: Any) -> PreemptionPlan:
    cluster = cluster_of(*objects)
    return planned(cluster, runner_on(cluster, configuration({"DefaultPreemption": args})), target)


def chosen(plan: PreemptionPlan) -> tuple[str, list[str]] | None:
    """Return the zone of the chosen node, and the victims."""
    if plan.chosen is None:
        return None
    return plan.chosen.node_name[0], sorted(victim.name for victim in plan.chosen.victims)


def web(name: str, on: str, **more: Any) -> Pod:
    return pod(name, on=on, labels=WEB, **more)


AVOIDS_WEB = pod("p", priority=9, apart=[term("app=web", ZONE)])
IN_THE_WAY = [web("w1", "a1"), web("w2", "a2"), web("w3", "b1", priority=5)]


# Who is in the way elsewhere


def test_pods_that_anti_affinity_keeps_apart_over_a_domain_go_wherever_they_are() -> None:
    assert chosen(plan(AVOIDS_WEB, [*ZONES, *IN_THE_WAY], **ACROSS)) == ("a", ["w1", "w2"])


def test_pods_whose_own_anti_affinity_keeps_the_preemptor_off_go_wherever_they_are() -> None:
    shy = [
        pod(name, on=on, priority=number, apart=[term("app=web", ZONE)])
        for number, (name, on) in enumerate((("s1", "a1"), ("s2", "a2"), ("s3", "b1")))
    ]

    assert chosen(plan(pod("p", priority=9, labels=WEB), [*ZONES, *shy], **ACROSS)) == ("a", ["s1", "s2"])


def test_preemption_evicts_the_fewest_pods_for_topology_spread() -> None:
    target = pod("p", priority=9, labels=WEB, cpu=4, spread=[spread_over(ZONE, "app=web")])
    crowd = [web("w1", "a1"), web("w2", "a1", priority=3), web("h", "b1", priority=10)]
    room = [pod("x", on="b1", priority=10, cpu=4), pod("y", on="b2", priority=10, cpu=4)]

    assert chosen(plan(target, [*ZONES, *crowd, *room], **ACROSS)) == ("a", ["w1"])


def test_without_the_argument_no_pod_on_another_node_is_evicted() -> None:
    found = plan(AVOIDS_WEB, [*ZONES, *IN_THE_WAY])

    # On b1 stands all that keeps the pod off its zone.
    assert chosen(found) == ("b", ["w3"])
    assert found.search is None


def test_preemption_frees_room_on_the_node_and_evicts_conflicting_pods_elsewhere() -> None:
    target = pod("p", priority=9, cpu=3, apart=[term("app=web", ZONE)])
    batch = [
        pod(f"x{name}", on=name, cpu=2, priority=number) for number, name in enumerate(("a1", "a2", "b1", "b2"), 2)
    ]

    assert chosen(plan(target, [*ZONES, *IN_THE_WAY, *batch], **ACROSS)) == ("a", ["w1", "w2", "xa1"])


def test_a_plugin_without_declared_scope_may_depend_on_any_pod() -> None:
    class FewInZone:
        """At most two pods in a zone. It says nothing of what it looks at."""

        name = "FewInZone"

        def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
            counts: dict[str, int] = {}
            for other in cluster.placed.values():
                zone = other.node_name[0]
                counts[zone] = counts.get(zone, 0) + 1
            state[self.name] = Counts(counts)
            return SUCCESS

        def add_pod(self, state: CycleState, pod: PodRecord, added: PodRecord, node: Any) -> None:
            state[self.name].numbers[node.name[0]] += 1

        def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: Any) -> None:
            state[self.name].numbers[node.name[0]] -= 1

        def filter(self, state: CycleState, pod: PodRecord, node: Any) -> Status:
            return unschedulable("zone is full") if state[self.name].numbers.get(node.name[0], 0) > 1 else SUCCESS

    objects = [*ZONES, pod("u", on="a1"), pod("v", on="a1", priority=10, cpu=4)]
    objects += [pod(f"x{name}", on=name, priority=10) for name in ("b1", "b2")]
    cluster = cluster_of(*objects)
    preemption = DefaultPreemption(PluginContext(ACROSS, cluster))
    runner = plain_runner(cluster, "NodeResourcesFit", extra=[FewInZone(), preemption])

    found = planned(cluster, runner, pod("p", priority=9, cpu=1))

    assert found.chosen is not None
    assert found.chosen.node_name == "a2"
    assert chosen(found) == ("a", ["u"])


class Counts:
    """Numbers by zone, copied with the state."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.numbers = numbers

    def clone(self) -> Counts:
        return Counts(dict(self.numbers))


# Who is spared


@pytest.mark.parametrize("protected", [{"priority": 9}, {"priority": 10}, {"policy": "NonPreemptible"}])
def test_a_protected_pod_in_the_way_prevents_the_preemption(protected: dict[str, Any]) -> None:
    objects = [*ZONES, web("w1", "a1"), web("w2", "a2", **protected), web("w3", "b1", priority=9)]

    found = plan(AVOIDS_WEB, objects, **ACROSS)

    assert chosen(found) is None
    assert found.search is not None
    assert found.search.is_complete


def test_budgets_weigh_first_as_on_one_node() -> None:
    assert chosen(plan(AVOIDS_WEB, [*ZONES, *IN_THE_WAY, budget("web", "app=web", 1)], **ACROSS)) == ("b", ["w3"])
    assert chosen(plan(AVOIDS_WEB, [*ZONES, *IN_THE_WAY, budget("web", "app=web", 2)], **ACROSS)) == ("a", ["w1", "w2"])


def test_a_cap_that_leaves_too_few_disruptions_puts_the_preemption_off() -> None:
    placed = [web("w1", "a1", ready=True), web("w2", "a2", ready=True), web("w3", "b1", priority=9)]
    objects = [*ZONES, *placed, budget("web", "app=web", 5), scheduler_cap("2/1h", used=1)]

    found = plan(AVOIDS_WEB, objects, **ACROSS)

    assert found.chosen is None
    assert found.put_off is not None
    assert found.put_off.victims == 2


def test_a_pod_that_never_preempts_does_not_do_so_elsewhere_either() -> None:
    never = pod("p", priority=9, apart=[term("app=web", ZONE)], policy="Never")

    assert not plan(never, [*ZONES, *IN_THE_WAY], **ACROSS).eligible


# By a stated cost


def test_victims_on_several_nodes_are_compared_by_the_stated_cost() -> None:
    found = plan(AVOIDS_WEB, [*ZONES, *IN_THE_WAY], **ACROSS, victimCost=["Victims"])

    assert chosen(found) == ("b", ["w3"])
    assert found.criterion == "fewest victims"
    assert found.search is not None
    assert found.search.is_complete


def test_reprieve_on_all_nodes_follows_the_stated_cost() -> None:
    target = pod("p", priority=9, labels=WEB, cpu=4, spread=[spread_over(ZONE, "app=web")])
    slow, quick = (
        web(name, "a1", priority=number, spec={"termination_grace_period_seconds": grace})
        for number, (name, grace) in enumerate((("slow", 600), ("quick", 5)))
    )
    room = [pod("x", on="b1", priority=10, cpu=4), pod("y", on="b2", priority=10, cpu=4)]
    objects = [*ZONES, slow, quick, web("h", "b1", priority=10), *room]

    assert chosen(plan(target, objects, **ACROSS)) == ("a", ["slow"])
    for steps in (1, 100_000):
        found = plan(target, objects, **ACROSS, victimCost=["GracePeriod"], maxSearchSteps=steps)
        assert chosen(found) == ("a", ["quick"])


def test_a_required_partner_is_kept_at_any_cost() -> None:
    target = pod("p", priority=9, cpu=4, labels=WEB, near=[term("app=web", ZONE)])
    objects = [
        *ZONES[:2],
        web("partner", "a1", cpu=4, priority=1),
        pod("dear", on="a2", cpu=4, priority=5),
    ]

    kept = plan(target, objects, keepAffinityPartners=True, victimCost=["HighestPriority"])

    assert chosen(kept) == ("a", ["dear"])
    assert [column.heading for column in kept.criteria] == ["partner", "priority"]
    assert {name: each.cost for name, each in kept.candidates.items()} == {"a1": (1, 1), "a2": (0, 5)}


def test_no_more_victims_go_than_their_budgets_allow_wherever_they_are() -> None:
    for allowed, expected in ((2, ("a", ["w1", "w2"])), (1, ("b", ["w3"])), (0, None)):
        objects = [*ZONES, *IN_THE_WAY, budget("web", "app=web", allowed)]
        assert chosen(plan(AVOIDS_WEB, objects, **ACROSS, budgets="Require")) == expected


def test_any_blocking_pod_of_a_budget_may_be_the_victim() -> None:
    """The least important ones would be let go first, and make too little room."""
    large, small = pod("large", on="n", cpu=3, labels=WEB, priority=2), web("small", "n", cpu=1)
    objects = [node("n", cpu=4), large, small, budget("web", "app=web", 1)]

    assert chosen(plan(pod("p", priority=9, cpu=3), objects, budgets="Require")) == ("n", ["large"])


def test_pods_that_have_run_for_too_short_a_time_are_no_victims_elsewhere() -> None:
    young = [web("w1", "a1", started=50), web("w2", "a2", started=0), web("w3", "b1", priority=5, started=0)]
    cluster = cluster_of(*ZONES, *young)
    cluster.pass_time(DAY_ONE_NS + 60 * 10**9)
    settings = configuration({"DefaultPreemption": {**ACROSS, "minimumRunningTime": "30s"}})

    assert chosen(planned(cluster, runner_on(cluster, settings), AVOIDS_WEB)) == ("b", ["w3"])


def test_criteria_that_favour_more_victims_cause_no_needless_victims() -> None:
    """By the latest start of the most important ones it would be cheaper to take the late one along."""
    target = pod("p", priority=9, cpu=2, apart=[term("app=web", ZONE)])
    objects = [
        *ZONES[:1],
        web("w", "a1", started=0),
        pod("early", on="a1", cpu=1, priority=1, started=0),
        pod("late", on="a1", cpu=1, priority=5, started=50),
    ]

    assert chosen(plan(target, objects, **ACROSS, victimCost=["LatestStart"])) == ("a", ["w"])


def test_victim_cost_is_computed_once_for_all_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once of each pod, to spare the dearest, and once of what is left on each node."""
    asked: list[int] = []

    def counted(sets: VictimSets) -> Int64s:
        asked.append(len(sets))
        return np.diff(sets.starts)

    costly = replace(CRITERIA["Victims"], values=counted)
    monkeypatch.setattr("podium.decide.preempting.criteria.CRITERIA", {**CRITERIA, "Victims": costly})
    objects = [*ZONES[:2], *(pod(f"x{number}", on=f"a{number % 2 + 1}", cpu=2) for number in range(4))]

    found = plan(pod("p", priority=9, cpu=4), objects, victimCost=["Victims"])

    assert {name: each.cost for name, each in found.candidates.items()} == {"a1": (2,), "a2": (2,)}
    assert asked == [4, 2]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    "far", [{"apart": [term("app=web", ZONE)]}, {"labels": WEB, "spread": [spread_over(ZONE, "app=web")]}]
)
def test_sets_are_not_tried_on_full_nodes_where_nothing_better_is_to_be_found(far: dict[str, Any], number: int) -> None:
    nodes = [node(f"{zone}{place}", zone=zone, cpu=4) for zone in "abc" for place in range(10)]
    names = [each.metadata.name for each in nodes]
    fillers = [pod(f"{name}-{k}", on=name, cpu=4 // number) for name in names for k in range(number)]

    found = plan(pod("p", priority=9, cpu=4, **far), [*nodes, *fillers], **ACROSS)

    assert found.search is not None
    assert found.search.is_complete
    assert [len(each.victims) for each in found.candidates.values()] == [number] * len(nodes)
    # All, and all but one; no victim is forced.
    assert found.search.steps == 2 * len(nodes)


def test_indistinguishable_pods_are_counted_without_trying_their_subsets() -> None:
    """On each node four alike, of which two have to go beside one in the zone: more sets than there are steps."""
    nodes = [node(f"{zone}{place}", zone=zone, cpu=4) for zone in "abc" for place in range(10)]
    alike = [pod(f"{each.metadata.name}-{k}", on=each.metadata.name, cpu=1) for each in nodes for k in range(4)]
    web = [pod(f"web-{zone}", on=f"{zone}0", labels=WEB) for zone in "abc"]
    target = pod("p", priority=9, cpu=2, apart=[term("app=web", ZONE)])

    found = plan(target, [*nodes, *alike, *web], **ACROSS, maxSearchSteps=300)

    assert found.search is not None
    assert found.search.is_complete
    assert [len(each.victims) for each in found.candidates.values()] == [3] * len(nodes)
    # The forced victims; all; and with two and one of the four reprieved.
    assert found.search.steps == (2 + 2) * len(nodes)


def test_an_older_pod_among_alike_pods_requires_trying_their_subsets() -> None:
    """Giving back the oldest first takes both small ones, where the oldest alone is enough."""
    nodes = [node("a0", zone="a", cpu=4), node("a1", zone="a", cpu=0)]
    small = [pod(f"small-{k}", on="a0", cpu=1, started=5) for k in range(2)]
    objects = [*nodes, *small, pod("large", on="a0", cpu=2, started=1), pod("web", on="a1", labels=WEB)]

    found = plan(pod("p", priority=9, cpu=2, apart=[term("app=web", ZONE)]), objects, **ACROSS)

    assert found.search is not None
    assert found.search.is_complete
    assert found.chosen is not None
    assert [victim.name for victim in found.chosen.victims] == ["large", "web"]


# Bounds


def test_nodes_beyond_the_step_limit_are_skipped_and_reported() -> None:
    found = plan(AVOIDS_WEB, [*ZONES, *IN_THE_WAY], **ACROSS, maxSearchSteps=1)

    assert found.search is not None
    assert (found.search.left_out, found.search.is_complete) == (3, False)
    # Those come first where the least important pods go.
    assert chosen(found) == ("a", ["w1", "w2"])
    assert [status.message for status in found.rejected.values()] == [
        "not tried: more would have been left of maxSearchSteps, or nothing gained"
    ] * 3


def test_a_step_limit_does_not_make_spared_pods_victims() -> None:
    target = pod("p", priority=9, cpu=3, apart=[term("app=web", ZONE)])
    small = [pod(f"x{number}", on="a1", cpu=1, priority=number) for number in range(4)]
    blocked = [pod(f"full{name}", on=name, cpu=4, priority=9) for name in ("a2", "b2")]
    objects = [*ZONES, *IN_THE_WAY, *small, *blocked, web("w4", "b2", priority=10)]

    for steps in (1, 5, 10, 20, 100):
        found = chosen(plan(target, objects, **ACROSS, maxSearchSteps=steps))
        assert found == ("a", ["w1", "w2", "x0", "x1", "x2"])


@pytest.mark.parametrize("steps", [0, -1, 100_000_001])
def test_the_number_of_steps_is_within_bounds(steps: int) -> None:
    with pytest.raises(InputError, match="maxSearchSteps"):
        read_arguments({"maxSearchSteps": steps}, DefaultPreemptionArgs, "DefaultPreemption")


# Victims that a preemptor waits for


@pytest.mark.parametrize("victim", ["w1", "w2"])
def test_a_preemptor_waits_for_its_victims_on_other_nodes_as_for_those_on_its_own(victim: str) -> None:
    nominated = pod("p", priority=9, apart=[term("app=web", ZONE)], nominated="a1")
    leaving = {"terminating": True, "preempted": True}
    placed = [web(name, on, **(leaving if name == victim else {})) for name, on in (("w1", "a1"), ("w2", "a2"))]

    found = plan(nominated, [*ZONES, *placed, web("w3", "b1", priority=9), nominated], **ACROSS)

    assert not found.eligible
    assert (found.reason == NOT_ELIGIBLE_TERMINATING_ELSEWHERE) is (victim == "w2")


def test_with_evictions_the_preemptor_waits_for_pods_ending_in_its_way() -> None:
    nominated = pod("p", priority=9, apart=[term("app=web", ZONE)], nominated="a1")
    placed = [web("w1", "a1"), web("w2", "a2", terminating=True), web("w3", "b1", priority=9)]

    for args, eligible in (({}, True), ({"budgets": "Require"}, False)):
        assert plan(nominated, [*ZONES, *placed, nominated], **ACROSS, **args).eligible is eligible


def test_the_preemptor_does_not_wait_for_pods_ending_in_another_domain() -> None:
    nominated = pod("p", priority=9, apart=[term("app=web", ZONE)], nominated="a1")
    placed = [web("w1", "a1"), web("w2", "b2", terminating=True, preempted=True)]

    assert plan(nominated, [*ZONES, *placed, nominated], **ACROSS).eligible


def test_a_nominated_pod_keeps_its_victims_replacements_out_of_its_whole_domain() -> None:
    nominated = pod("p", priority=9, apart=[term("app=web", ZONE)], nominated="a1")
    for args, rows in ((ACROSS, {"b1", "b2"}), ({}, {"a1", "a2", "b1", "b2"})):
        cluster = cluster_of(*ZONES, nominated)
        runner = runner_on(cluster, configuration({"DefaultPreemption": args}))

        placement = place(runner, cluster.read(pod("w", labels=WEB)), detailed=True)

        assert {cluster.nodes.name(row) for row in placement.feasible.tolist()} == rows


# Affinity partners

DATABASE = {"app": "database"}
KEEPS = {"keepAffinityPartners": True}
NEAR_DATABASE = pod("p", priority=9, cpu=2, near=[term("app=database", ZONE)])
FULL = [pod("database", on="a1", cpu=2, labels=DATABASE), pod("batch", on="a1", cpu=2, priority=5)]
OTHERS = [pod(f"full{name}", on=name, cpu=4, priority=9) for name in ("a2", "b1", "b2")]


def test_room_is_made_beside_the_pod_that_the_preemptor_requires_to_be_near() -> None:
    assert chosen(plan(NEAR_DATABASE, [*ZONES, *FULL, *OTHERS])) is None
    assert chosen(plan(NEAR_DATABASE, [*ZONES, *FULL, *OTHERS], **KEEPS)) == ("a", ["batch"])


def test_one_of_several_required_partners_is_kept() -> None:
    both = [pod(f"database{number}", on="a1", cpu=2, labels=DATABASE, priority=number) for number in (1, 2)]

    assert chosen(plan(NEAR_DATABASE, [*ZONES, *both, *OTHERS], **KEEPS)) == ("a", ["database1"])


def test_the_first_of_a_group_does_not_take_the_place_of_the_group_while_there_is_another_choice() -> None:
    group = pod("p", priority=9, cpu=4, labels=WEB, near=[term("app=web", HOSTNAME)])
    objects = [node("n1", zone="a", cpu=4), web("w", "n1", cpu=1), pod("batch", on="n1", cpu=1, priority=5)]

    # No other choice: beside w there is not enough for it.
    assert chosen(plan(group, objects, **KEEPS)) == ("n", ["batch", "w"])
    smaller = pod("p", priority=9, cpu=3, labels=WEB, near=[term("app=web", HOSTNAME)])
    assert chosen(plan(smaller, objects, **KEEPS)) == ("n", ["batch"])


def test_a_pod_without_required_affinity_is_decided_like_in_plain_preemption() -> None:
    assert plan(pod("p", priority=9, cpu=4), [*ZONES, *FULL, *OTHERS], **KEEPS).search is None


# Dependents

WITH = {"includeDependents": True}
SERVER = pod("server", on="a2", cpu=1, priority=2, near=[term("app=database", ZONE)])
DEPENDED_ON = [pod("database", on="a1", cpu=4, labels=DATABASE), pod("batch", on="b1", cpu=4, priority=5)]
WANTS_A_NODE = pod("p", priority=9, cpu=4)
NO_ROOM = [pod(f"full{name}", on=name, cpu=3, priority=9) for name in ("a2", "b2")]


def test_a_pod_that_requires_a_victim_nearby_is_a_victim_but_not_the_reverse() -> None:
    found = plan(WANTS_A_NODE, [*ZONES, *DEPENDED_ON, SERVER, *NO_ROOM], **WITH)
    small = pod("p", priority=9, cpu=1, node_selector={HOSTNAME: "a2"})

    assert chosen(found) == ("a", ["database", "server"])
    assert found.chosen is not None
    assert found.chosen.reasons == {"default/server": "requires to be near default/database"}
    assert chosen(plan(small, [*ZONES, *DEPENDED_ON, SERVER, *NO_ROOM], **WITH)) == ("a", ["server"])


def test_dependents_count_when_candidates_are_compared() -> None:
    important = pod("server", on="a2", cpu=1, priority=6, near=[term("app=database", ZONE)])

    assert chosen(plan(WANTS_A_NODE, [*ZONES, *DEPENDED_ON, important, *NO_ROOM])) == ("a", ["database"])
    assert chosen(plan(WANTS_A_NODE, [*ZONES, *DEPENDED_ON, important, *NO_ROOM], **WITH)) == ("b", ["batch"])


@pytest.mark.parametrize("protected", [{"priority": 9}, {"policy": "NonPreemptible", "priority": 0}])
def test_pods_required_by_a_protected_dependent_are_protected(protected: dict[str, Any]) -> None:
    server = pod("server", on="a2", cpu=1, near=[term("app=database", ZONE)], **protected)

    found = plan(WANTS_A_NODE, [*ZONES, *DEPENDED_ON, server, *NO_ROOM], **WITH)

    assert chosen(found) == ("b", ["batch"])
    assert found.rejected["a1"].message == "a pod that may not be preempted depends on the victims"


def test_a_required_partner_stays_when_another_pod_satisfies_the_term() -> None:
    second = pod("database2", on="a2", labels=DATABASE, priority=9)

    assert chosen(plan(WANTS_A_NODE, [*ZONES, *DEPENDED_ON, SERVER, second, *NO_ROOM], **WITH)) == ("a", ["database"])


def test_pods_with_already_broken_or_self_satisfied_affinity_stay() -> None:
    elsewhere = pod("server", on="b2", cpu=1, near=[term("app=database", HOSTNAME)])
    own = pod("peer", on="a2", cpu=1, labels=DATABASE, near=[term("app=database", ZONE)])

    for other in (elsewhere, own):
        assert chosen(plan(WANTS_A_NODE, [*ZONES, *DEPENDED_ON, other, *NO_ROOM], **WITH)) == ("a", ["database"])


def test_dependents_of_dependents_are_victims_too() -> None:
    client = pod("client", on="a2", near=[term("app=server", ZONE)])
    server = pod("server", on="a2", labels={"app": "server"}, near=[term("app=database", ZONE)])

    found = plan(WANTS_A_NODE, [*ZONES, *DEPENDED_ON, server, client, *NO_ROOM], **WITH)

    assert chosen(found) == ("a", ["client", "database", "server"])


def test_mutually_required_pods_are_victims_together() -> None:
    pair = [
        pod("left", on="a1", cpu=4, labels={"app": "left"}, near=[term("app=right", ZONE)]),
        pod("right", on="a2", cpu=1, labels={"app": "right"}, near=[term("app=left", ZONE)]),
    ]

    assert chosen(plan(WANTS_A_NODE, [*ZONES, *pair, DEPENDED_ON[1], *NO_ROOM], **WITH)) == ("a", ["left", "right"])


def test_preemption_without_affinity_terms_searches_no_other_nodes() -> None:
    assert plan(WANTS_A_NODE, [*ZONES, *DEPENDED_ON, *NO_ROOM], **WITH).search is None
