"""Failures of deschedulers: the same pods evicted again and again.

Each story runs three times. With the descheduler's rule alone, which checks neither where a pod would go nor what
happened to the last one, evictions never end. With the same rule and a check of each eviction, and with Podium's own
policy, they end by themselves.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from podium.controllers.actions import Action, Evict, PatchObject
from podium.controllers.observations import ActionFinished
from podium.controllers.rescheduling.moves import Returns
from podium.controllers.rescheduling.planning import Planners
from podium.decide.rescheduling.guards import Guards
from podium.plugins.rescheduling.registry import IN_TREE
from podium.sim.run import simulation_of
from podium.sim.run_options import RunOptions
from tests.controllers.rescheduling.policies import BAD
from tests.controllers.rescheduling.policies import PLACE as LEAVE_BAD
from tests.examples.rescheduled import Rescheduled, watched
from tests.proof.failures.bugs import caught, instead, nothing
from tests.sim.objects import documents
from tests.store.objects import Raw

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
RULES = "tests.proof.failures.descheduler_rules"
ANY = {"total": "Unlimited", "node": "Unlimited", "namespace": "Unlimited", "owner": "Unlimited"}
AS_THE_DESCHEDULER: Raw = {
    "judgement": "Blind",
    "steering": "ScoresAlone",
    "interval": "5m",
    "threshold": 0.001,
    "coolDown": "1ms",
    "scope": {"minimumAge": "0s"},
    "budgets": {"reserve": 0, "reserveShare": 0},
    "limits": {"inFlight": ANY, "hourly": ANY, "withoutBudget": ANY},
}
"""It looks at nothing but what the rule says; that it remembers nothing is put back as a bug beside that."""
EAGER: Raw = {"aggressiveness": "Bold", "interval": "2m", "scope": {"minimumAge": "1m"}}
"""The moves are those of the default interval, ten seconds, after a twelfth of the plans."""
ALL_POLICIES = sorted({*IN_TREE} - {"ReplaceOldPods"})
"""But for the one by which pods are replaced again and again, as was asked for."""
HOURS = 6


def node(name: str, cpu: int = 8, *, taint: str = "", **labels: str) -> Raw:
    known = {key.replace("_", "."): value for key, value in labels.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **known}},
        "spec": {"taints": [{"key": "example.com/taken", "effect": taint}]} if taint else {},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "32Gi", "pods": "110"}},
    }


def in_zone(name: str, zone: str, cpu: int = 8, taint: str = "") -> Raw:
    found = node(name, cpu, taint=taint)
    found["metadata"]["labels"][ZONE] = zone
    return found


def owner(name: str, replicas: int, cpu: int = 1, **spec: Any) -> Raw:
    requests = {"cpu": str(cpu), "memory": "1Gi"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": {"podium.dev/termination": "5s"}},
                "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}], **spec},
            },
        },
    }


def spread_by(key: str, app: str, when: str = "DoNotSchedule") -> Raw:
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}


LATER: Raw = {"at": "30s", "apply": [node("good")]}


def scenario(rescheduler: Raw, hours: int | None = None, steps: list[Raw] | None = None) -> Raw:
    spec: Raw = {"rescheduler": rescheduler, "steps": steps or []}
    if hours is not None:
        spec["until"] = f"{hours}h"
    return {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "s"}, "spec": spec}


def evictions_by_rule(rule: str, *objects: Raw, steps: list[Raw] | None = None) -> int:
    """Return how many pods the descheduler's rule evicts in some hours, one at a time, without a memory of returning
    pods.
    """
    settings = {**AS_THE_DESCHEDULER, "policies": [{"name": f"{RULES}:{rule}"}]}
    simulation = simulation_of(documents(*objects, scenario(settings, HOURS, steps)), RunOptions())
    with instead(Returns, "update", nothing):
        while simulation.step():
            pass
    return sum(event.reason == "Descheduled" for event in simulation.history.events)


def judged(policy: str, *objects: Raw, steps: list[Raw] | None = None, **settings: Any) -> Rescheduled:
    """Return what becomes of it where evictions are judged; without an end, so that it ends when nothing is left to
    happen.
    """
    wanted = {**EAGER, "policies": [{"name": policy}], **settings}
    return watched(simulation_of(documents(*objects, scenario(wanted, None, steps)), RunOptions()))


def circles(evictions: int) -> bool:
    """Return whether there was an eviction at nearly each look: 12 in an hour."""
    return evictions > 10 * HOURS


def settles(rule: str, policy: str, *objects: Raw, steps: list[Raw] | None = None) -> list[list[str]]:
    """Return the evictions by the rule where they are judged, and those by our own policy."""
    played = [judged(f"{RULES}:{rule}", *objects, steps=steps), judged(policy, *objects, steps=steps)]
    for each in played:
        assert all(pod["phase"] == "Running" for pod in each.result.pods if pod["phase"] != "Terminated")
    return [each.evictions() for each in played]


@pytest.mark.failure(76)
def test_duplicates_that_only_one_node_takes_stay_together() -> None:
    """descheduler#626. Symptom: six pods on the one worker, beside a control plane that takes none; one is evicted each
    time. Rule: only nodes that take the pods have a part of them.
    """
    objects = node("control-plane", taint="NoSchedule"), node("worker"), owner("web", 6)

    assert circles(evictions_by_rule("Duplicates", *objects))
    assert settles("Duplicates", "SpreadDuplicates", *objects) == [[], []]


@pytest.mark.failure(76)
def test_a_pod_that_its_like_keep_off_the_empty_node_stays_and_another_goes() -> None:
    """descheduler#424 (its example is #335). Symptom: a pod with anti-affinity to its like is evicted again and again,
    and comes back. Rule: a pod that cannot go to the empty node is not moved; one that can is.
    """
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "apart"}}}
            ]
        }
    }
    objects = (
        node("full", cpu=4),
        node("empty", cpu=16),
        owner("apart", 2, affinity=apart),
        owner("big", 1, cpu=2, nodeSelector={HOSTNAME: "full"}),
    )

    assert circles(evictions_by_rule("LowNodeUtilization", *objects))
    assert settles("LowNodeUtilization", "MoveToUnderusedNodes", *objects) == [[], []]
    # A pod that can move does.
    steps: list[Raw] = [
        {"at": "10s", "cordon": {"name": "empty"}},
        {"at": "20s", "apply": [owner("free", 1)]},
        {"at": "30s", "uncordon": {"name": "empty"}},
    ]
    found = judged("MoveToUnderusedNodes", *objects, steps=steps)
    assert [line.split()[1:3] for line in found.evictions()] == [["free", "full"]]


@pytest.mark.failure(76)
def test_a_pod_whose_scheduler_sends_it_back_to_the_full_node_stays() -> None:
    """descheduler#994. Symptom: what LowNodeUtilization evicts is placed on the same node. Rule: the pod's own
    scheduler is asked, by its filters and its scores.
    """
    liked = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["full"]}]},
                }
            ]
        }
    }
    objects = node("full"), node("empty"), owner("web", 6, affinity=liked)

    assert circles(evictions_by_rule("LowNodeUtilization", *objects))
    # Where the avoid lists are not heeded its scores alone decide.
    for policy in (f"{RULES}:LowNodeUtilization", "MoveToUnderusedNodes"):
        assert judged(policy, *objects, steering="ScoresAlone").evictions() == []


@pytest.mark.failure(76)
def test_a_pod_that_comes_back_is_left_alone_for_growing_periods() -> None:
    """descheduler#424. Symptom: it never gives up. Rule: even blind, an owner whose pod came back to a node has its
    pods left alone there, each time for twice as long.
    """
    objects = node("control-plane", taint="NoSchedule"), node("worker"), owner("web", 2)
    settings = {**AS_THE_DESCHEDULER, "policies": [{"name": f"{RULES}:Duplicates"}], "coolDown": "1h"}
    simulation = simulation_of(documents(*objects, scenario(settings, 24)), RunOptions())
    while simulation.step():
        pass
    times = [event.time for event in simulation.history.events if event.reason == "Descheduled"]

    waits = [later - before for before, later in pairwise(times)]
    assert 3 <= len(waits) <= 6
    assert all(later >= 1.9 * before for before, later in pairwise(waits)), waits


@pytest.mark.failure(77)
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(in_zone("b", "east", taint="NoSchedule"), id="descheduler#566: a tainted node"),
        pytest.param(in_zone("b", "east", cpu=1), id="descheduler#785: a full domain"),
    ],
)
def test_pods_are_not_spread_to_where_they_may_not_be_or_have_no_room(other: Raw) -> None:
    """Symptom: pods are evicted to reduce the skew towards a domain that accepts none of them. Rule: no pod moves if no
    move reduces the skew.
    """
    spread = [spread_by(ZONE, "web", "ScheduleAnyway")]
    fill = [] if "taints" in other["spec"] else [owner("fill", 1, nodeSelector={HOSTNAME: "b"})]
    objects = [*fill, in_zone("a", "west"), other, owner("web", 6, topologySpreadConstraints=spread)]

    assert circles(evictions_by_rule("Spread", *objects))
    assert settles("Spread", "SatisfyPreferences", *objects) == [[], []]
    assert judged("RepairViolations", *objects).evictions() == []


@pytest.mark.failure(78)
@pytest.mark.parametrize("when", ["ScheduleAnyway", "DoNotSchedule"])
def test_pods_that_meet_their_constraints_together_as_well_as_can_be_are_let_be(when: str) -> None:
    """descheduler#1219. Symptom: each constraint is looked at by itself, and what one of them evicts the other brings
    back. Rule: all that a pod asks for is one sum, or the verdict of all filters together.
    """
    both = [spread_by(ZONE, "web", when), spread_by(HOSTNAME, "web", "ScheduleAnyway")]
    objects = (
        in_zone("a1", "west"),
        in_zone("b1", "east"),
        in_zone("b2", "east"),
        in_zone("b3", "east"),
        owner("web", 4, topologySpreadConstraints=both),
    )

    assert circles(evictions_by_rule("Spread", *objects))
    assert settles("Spread", "SatisfyPreferences", *objects) == [[], []]
    assert judged("RepairViolations", *objects).evictions() == []


@pytest.mark.failure(79)
def test_a_pod_that_is_too_large_for_any_node_stays_where_it_is() -> None:
    """descheduler#1695. Symptom: a pod that makes any node over-used is evicted every five minutes. Rule: a load that
    would only be taken elsewhere is no improvement.
    """
    objects = node("a"), node("b"), owner("big", 1, cpu=6)

    assert circles(evictions_by_rule("LowNodeUtilization", *objects))
    assert settles("LowNodeUtilization", "MoveToUnderusedNodes", *objects) == [[], []]


@pytest.mark.failure(79)
def test_a_preference_that_the_scheduler_weighs_less_moves_no_pod() -> None:
    """descheduler#1707. Symptom: a node that the pod prefers has room, and its scheduler places it elsewhere all the
    same. Rule: what else the pod would rather have counts in the same sum, and its scheduler is asked.
    """
    liked = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]},
                }
            ]
        }
    }
    objects = node("plain"), node("liked", taint="PreferNoSchedule", disk="fast"), owner("web", 1, affinity=liked)

    assert circles(evictions_by_rule("Preferred", *objects))
    assert settles("Preferred", "SatisfyPreferences", *objects)[1] == []
    for policy in (f"{RULES}:Preferred", "SatisfyPreferences"):
        assert judged(policy, *objects, steering="ScoresAlone").evictions() == []


@pytest.mark.failure(79)
def test_pods_of_hardly_used_nodes_are_moved_once_and_only_where_that_frees_one() -> None:
    """descheduler#1461. Symptom: pods are evicted to be packed, and go to nodes that are as empty as the one they left.
    Rule: where the scheduler spreads, what does not free a node is no improvement.
    """
    objects = node("a"), node("b"), node("c"), owner("small", 2)

    assert circles(evictions_by_rule("HighNodeUtilization", *objects))
    assert settles("HighNodeUtilization", "Consolidate", *objects) == [[], []]


@pytest.mark.failure(79)
@pytest.mark.parametrize(
    ("others", "guidance"),
    [
        pytest.param(["MoveToUnderusedNodes", "Consolidate"], "Evict", id="two-Evict"),
        pytest.param(ALL_POLICIES, "Evict", id="all-Evict"),
        pytest.param(ALL_POLICIES, "Hint", id="all-Hint"),
        pytest.param(ALL_POLICIES, "Bind", id="all-Bind"),
    ],
)
def test_policies_that_want_opposite_things_do_not_undo_one_another(others: list[str], guidance: str) -> None:
    """descheduler#1026. Symptom: what one strategy evicts another one evicts as soon as it is placed. Rule: a move of
    one policy counts with what it costs all others, so that evictions end, and soon.
    """
    soft = [spread_by(HOSTNAME, "web", "ScheduleAnyway")]
    objects = (
        *(node(name) for name in "ab"),
        owner("web", 7, topologySpreadConstraints=soft),
        owner("batch", 3, cpu=2),
        owner("tiny", 2),
    )
    steps: list[Raw] = [
        {"at": "10m", "apply": [node("c"), node("d")]},
        {"at": "20m", "scale": {"kind": "ReplicaSet", "name": "batch", "replicas": 1}},
    ]
    # With its default a free node is worth more than any single other move, and no pod would move.
    args = {"Consolidate": {"nodeWorth": 1}}
    policies = [{"name": name, "args": args.get(name, {})} for name in others]
    found = judged("", *objects, steps=steps, policies=policies, guidance=guidance)

    # It has ended by itself, with fewer evictions than there are pods.
    assert 0 < len(found.evictions()) < 12


@pytest.mark.failure(80)
def test_an_app_of_one_pod_is_left_alone_where_that_is_asked_for() -> None:
    """descheduler#271. Symptom: apps of a single pod are down each time it is evicted. Rule: with minimumReplicas they
    are left alone, and those with enough pods are moved all the same.
    """

    def story() -> None:
        objects = node(BAD), owner("single", 1), owner("pair", 2)
        scope = {"minimumAge": "1m", "minimumReplicas": 2}
        found = judged(LEAVE_BAD, *objects, steps=[LATER], scope=scope)
        assert found.after == {BAD: {"single": 1}, "good": {"pair": 2}}

    caught(story, instead(Guards, "_why_spared", lambda right, *report: ""))


@pytest.mark.failure(83)
def test_a_pod_that_is_marked_while_others_of_the_plan_are_evicted_stays() -> None:
    """karpenter#1167. Symptom: a pod that said meanwhile that it must not be disrupted was. Rule: before each eviction
    but the first of a plan it is found out whether it is right by now.
    """

    def story() -> None:
        simulation = simulation_of(
            documents(
                node(BAD), owner("web", 3), scenario({**EAGER, "policies": [{"name": LEAVE_BAD}]}, steps=[LATER])
            ),
            RunOptions(),
        )
        carry_out, marked = simulation.server.carry_out, set[str]()

        def with_a_mark(action: Action, now: int, by: str = "") -> ActionFinished:
            finished = carry_out(action, now, by)
            if isinstance(action, Evict) and not marked:
                for stored in simulation.store.objects("Pod"):
                    pod = stored.object
                    if pod.key != action.pod and pod.spec.node_name == BAD:  # type: ignore[attr-defined]
                        marked.add(pod.key)
                        patch = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
                        carry_out(PatchObject("Pod", pod.key, pod.metadata.uid, patch, "somebody"), now)
            return finished

        simulation.server.carry_out = with_a_mark  # type: ignore[method-assign]
        while simulation.step():
            pass
        evicted = [event.pod for event in simulation.history.events if event.reason == "Descheduled"]
        assert marked
        assert len(evicted) == 1
        assert not marked & {*evicted}

    caught(story, instead(Planners, "holds", lambda right, *given: True))
