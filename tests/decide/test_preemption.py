"""Rules of preemption: which pods may preempt which victims, and on which node.

Numbers in brackets are those of Kubernetes' own tests: TestPDBInPreemption (10), TestDryRunPreemption (27),
TestSelectBestCandidate (28), TestPodEligibleToPreemptOthers (29), TestPostFilter and TestPreempt (30),
TestFilterVictimsWithPDBViolation (31), TestPreemption (1 to 4), TestNonPreemption (5).
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.decide.preempting.criteria import UPSTREAM_COST
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.settings.configuration import Configuration
from podium.framework.verdicts import Code
from tests.builders import HOSTNAME, ZONE, budget, configuration, explain, node, pod, spread_over, term

BY_QOS = configuration({"DefaultPreemption": {"equalPriorityOrder": "QoS"}})


def plan(*objects: Kubernetes, settings: Configuration | None = None) -> PreemptionPlan:
    """Return what preemption finds for the pod `default/p`, which fits nowhere."""
    found = explain(objects, settings=settings).plan
    assert found is not None, "the pod fits somewhere"
    return found


def victims(*objects: Kubernetes, settings: Configuration | None = None) -> dict[str, list[str]]:
    """Return the names of the victims on each candidate node, most important first."""
    candidates = plan(*objects, settings=settings).candidates
    return {name: [one.name for one in candidate.victims] for name, candidate in candidates.items()}


def full_of(name: str, *pods: Pod, cpu: int = 4) -> list[Node | Pod]:
    return [node(name, cpu=cpu), *pods]


# Who gives way


@pytest.mark.upstream(1, 30)
def test_only_pods_of_lower_priority_give_way() -> None:
    """[1, 30] A tie in priority is no reason."""
    there = [pod("lower", on="n", priority=4, cpu=1), pod("equal", on="n", priority=5, cpu=1)]
    rest = pod("higher", on="n", priority=6, cpu=2)

    assert victims(node("n", cpu=4), *there, rest, pod("p", priority=5, cpu=1)) == {"n": ["lower"]}
    assert victims(node("n", cpu=4), *there, rest, pod("p", priority=4, cpu=1)) == {}


def test_a_more_important_pod_goes_alone_where_the_less_important_ones_free_too_little() -> None:
    """The example of the preemption design: of priorities 0 to 3 with requests 3, 1, 5, 1, only the third goes."""
    requests = {0: 3, 1: 1, 2: 5, 3: 1}
    running = [pod(f"q{priority}", on="n", priority=priority, cpu=cpu) for priority, cpu in requests.items()]

    assert victims(node("n", cpu=10), *running, pod("p", priority=10, cpu=5)) == {"n": ["q2"]}


@pytest.mark.upstream(30)
def test_no_pod_is_preempted_when_all_victims_together_free_too_little() -> None:
    """[30] What is refused for good is not even tried."""
    there = pod("q", on="n", priority=0, cpu=1)
    tried = plan(node("n", cpu=4), there, pod("k", on="n", priority=9, cpu=3), pod("p", priority=5, cpu=2))
    hopeless = plan(node("n", cpu=4), there, pod("p", priority=5, cpu=5))

    assert {name: status.reasons for name, status in tried.rejected.items()} == {"n": ("Insufficient cpu",)}
    assert tried.chosen is None
    assert (dict(hopeless.candidates), dict(hopeless.rejected)) == ({}, {})


@pytest.mark.upstream(3)
def test_no_node_is_tried_whose_refusal_preemption_cannot_lift() -> None:
    """[3] Taints, node selectors and names stay the same, whichever pods are removed."""
    tainted = [node("tainted", cpu=1, taints=["gpu:NoSchedule"]), pod("q", on="tainted", cpu=1)]
    elsewhere = [node("n", cpu=1, labels={"disk": "ssd"}), pod("r", on="n", cpu=1)]
    target = pod("p", priority=5, cpu=1, node_selector={"disk": "ssd"})

    found = plan(*tainted, *elsewhere, target)

    assert list(found.candidates) == ["n"]
    assert list(found.rejected) == []


@pytest.mark.upstream(30)
def test_a_node_without_pods_of_lower_priority_is_rejected() -> None:
    """[30]"""
    found = plan(node("n", cpu=1), pod("q", on="n", priority=5, cpu=1), pod("p", priority=5, cpu=1))

    (status,) = found.rejected.values()
    assert status.reasons == ("No preemption victims found for incoming pod",)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_best_effort_pod_gives_way_for_no_resource() -> None:
    """Its requests are zero: the scheduler knows nothing of what it uses."""
    running = [pod("idle", on="n", priority=0), pod("burstable", on="n", priority=100, cpu=2)]

    assert victims(node("n", cpu=2), *running, pod("p", priority=200, cpu=2)) == {"n": ["burstable"]}


def test_a_best_effort_pod_gives_way_for_its_place_among_the_pods() -> None:
    running = [pod("idle", on="n", priority=0), pod("busy", on="n", priority=1, cpu=1)]

    assert victims(node("n", pods=2), *running, pod("p", priority=5)) == {"n": ["idle"]}


def test_a_best_effort_pod_gives_way_for_a_host_port() -> None:
    running = [pod("idle", on="n", ports=[80]), pod("other", on="n", ports=[81])]

    assert victims(node("n"), *running, pod("p", priority=5, ports=[80])) == {"n": ["idle"]}


@pytest.mark.upstream(4)
@pytest.mark.parametrize("who", ["the preemptor", "the victim"])
def test_a_best_effort_pod_gives_way_for_anti_affinity(who: str) -> None:
    """[4] Either pod may have the anti-affinity."""
    minds_db, minds_web = [term("app=db")], [term("app=web")]
    idle = pod("idle", on="n", labels={"app": "db"}, apart=minds_web if who == "the victim" else ())
    target = pod("p", priority=5, labels={"app": "web"}, apart=minds_db if who == "the preemptor" else ())

    found = victims(node("n", zone="a"), idle, pod("other", on="n"), target)

    assert found == {"n": ["idle"]}


@pytest.mark.upstream(4)
def test_anti_affinity_to_a_higher_priority_pod_prevents_preemption() -> None:
    """[4]"""
    keeper = pod("keeper", on="n", priority=9, labels={"app": "db"})
    idle = pod("idle", on="n", labels={"app": "db"})

    found = plan(node("n", zone="a"), keeper, idle, pod("p", priority=5, apart=[term("app=db")]))

    assert found.chosen is None


def test_no_pod_gives_way_on_another_node() -> None:
    """The anti-affinity holds over the zone; removing pods of one node does not lift it while the other has one."""
    zone = [node("n1", zone="a"), node("n2", zone="a")]
    both = [pod("q1", on="n1", labels={"app": "db"}), pod("q2", on="n2", labels={"app": "db"})]
    target = pod("p", priority=5, apart=[term("app=db", ZONE)])

    assert plan(*zone, *both, target).chosen is None
    # One of them gone from its node, the other node's pod is all that is in the way of that node.
    assert victims(*zone, both[0], target) == {"n1": ["q1"]}


@pytest.mark.upstream(27)
def test_spreading_makes_pods_give_way() -> None:
    """[27]"""
    zones = [node("n1", zone="a"), node("n2", zone="b", cpu=0)]
    running = [pod(f"q{number}", on="n1", labels={"app": "web"}, started=number) for number in (0, 1)]
    target = pod("p", priority=5, cpu=1, labels={"app": "web"}, spread=[spread_over(ZONE, "app=web", 2)])

    assert victims(*zones, *running, target) == {"n1": ["q1"]}


@pytest.mark.upstream(27)
def test_spreading_over_zones_and_nodes_takes_one_pod_of_the_fuller_zone() -> None:
    """[27] No victim is in the zone with fewer pods, among pods as important as the preemptor."""
    nodes = [node("a", zone="full"), node("b", zone="full"), node("x", zone="other")]
    web = {"app": "web"}
    running = [
        pod("a1", on="a", priority=3, labels=web),
        pod("a2", on="a", priority=1, labels=web),
        pod("b1", on="b", priority=1, labels=web),
        *(pod(name, on="x", priority=5, labels=web) for name in ("x1", "x2")),
    ]
    hints = [spread_over(ZONE, "app=web"), spread_over(HOSTNAME, "app=web")]

    assert victims(*nodes, *running, pod("p", priority=5, labels=web, spread=hints)) == {"a": ["a2"], "b": ["b1"]}


def test_the_pods_that_a_pod_wants_to_be_near_do_not_give_way() -> None:
    """The preemption design decides so: without them the node is not feasible, and the search ends there."""
    friend = pod("friend", on="n", priority=0, cpu=1, labels={"app": "db"})
    target = pod("p", priority=5, cpu=2, near=[term("app=db")])

    assert plan(node("n", zone="a", cpu=2), friend, target).chosen is None


# In which order


@pytest.mark.upstream(27)
def test_the_most_recently_started_pod_gives_way_among_equals() -> None:
    """[27] A pod without a start counts as started last."""
    running = [pod("old", on="n", cpu=1, started=0), pod("new", on="n", cpu=1, started=9)]

    assert victims(node("n", cpu=2), *running, pod("p", priority=5, cpu=1)) == {"n": ["new"]}
    assert victims(node("n", cpu=3), *running, pod("q", on="n", cpu=1), pod("p", priority=5, cpu=1)) == {"n": ["q"]}


def test_the_last_uid_gives_way_among_equal_pods() -> None:
    running = [pod(f"web-{number}", on="n", cpu=1) for number in (10, 9, 2)]

    assert victims(node("n", cpu=3), *running, pod("p", priority=5, cpu=1)) == {"n": ["web-10"]}


def test_victims_are_listed_most_important_first() -> None:
    running = [
        pod("c", on="n", priority=1, cpu=1),
        pod("a", on="n", priority=0, cpu=1),
        pod("b", on="n", priority=2, cpu=1),
    ]

    assert victims(node("n", cpu=3), *running, pod("p", priority=5, cpu=3)) == {"n": ["b", "c", "a"]}


EQUALS = [
    pod("guaranteed", on="n", cpu=1, memory="1Gi", limits={"cpu": 1, "memory": "1Gi"}, started=9),
    pod("burstable", on="n", cpu=1, memory="1Gi", started=0),
]


def test_by_qos_the_lower_class_gives_way_before_the_later_start() -> None:
    """The preemption design's order among equals, which kube-scheduler does not have: by configuration only."""
    target = pod("p", priority=5, cpu=1)

    assert victims(node("n", cpu=2), *EQUALS, target) == {"n": ["guaranteed"]}
    assert victims(node("n", cpu=2), *EQUALS, target, settings=BY_QOS) == {"n": ["burstable"]}


def test_by_qos_best_effort_gives_way_first_and_priority_still_comes_before_qos() -> None:
    for_ports = [
        pod("guaranteed", on="n", cpu=1, memory="1Gi", limits={"cpu": 1, "memory": "1Gi"}, started=9),
        pod("burstable", on="n", cpu=1, started=5),
        pod("idle", on="n", started=0),
    ]
    lowest = pod("lowest", on="n", priority=-1, cpu=1, memory="1Gi", limits={"cpu": 1, "memory": "1Gi"}, started=0)
    full, target = node("n", pods=3), pod("p", priority=5)

    assert victims(full, *for_ports, target, settings=BY_QOS) == {"n": ["idle"]}
    assert victims(node("n", pods=4), *for_ports, lowest, target, settings=BY_QOS) == {"n": ["lowest"]}


# Disruption budgets


@pytest.mark.upstream(27, 31)
def test_pods_whose_budget_is_used_up_are_given_back_first() -> None:
    """[27, 31] Without the budget, the one that started last would have gone."""
    running = [pod("free", on="n", cpu=1, started=0), pod("guarded", on="n", cpu=1, labels={"app": "db"}, started=9)]
    target = pod("p", priority=5, cpu=1)

    assert victims(node("n", cpu=2), *running, target) == {"n": ["guarded"]}
    assert victims(node("n", cpu=2), *running, budget("b", "app=db", 0), target) == {"n": ["free"]}


@pytest.mark.upstream(10)
def test_a_budget_never_stops_preemption() -> None:
    """[10] Where nothing else helps, it is violated, and the plan says how often."""
    running = [pod(f"q{number}", on="n", cpu=1, labels={"app": "db"}) for number in (0, 1)]

    found = plan(node("n", cpu=2), *running, budget("b", "app=db", 1), pod("p", priority=5, cpu=2))

    assert found.candidates["n"].budget_violations == 1
    assert found.chosen == found.candidates["n"]


@pytest.mark.upstream(10)
def test_a_pod_of_higher_priority_goes_rather_than_one_that_a_budget_protects() -> None:
    """[10]"""
    running = [
        pod("higher", on="n", priority=3, cpu=1),
        pod("guarded", on="n", priority=1, cpu=1, labels={"app": "db"}),
    ]

    assert victims(node("n", cpu=2), *running, budget("b", "app=db", 0), pod("p", priority=5, cpu=1)) == {
        "n": ["higher"]
    }


@pytest.mark.upstream(31)
def test_each_pod_in_order_takes_one_from_each_of_its_budgets() -> None:
    """[31] The most important pods are those for which the budget is enough; every budget must be."""
    labels = {"app": "db", "tier": "x"}
    running = [pod(f"q{n}", on="n", priority=-n, cpu=1, labels=labels) for n in range(3)]
    target = pod("p", priority=5, cpu=3)

    def violations(*budgets: Kubernetes) -> int:
        return plan(node("n", cpu=3), *running, *budgets, target).candidates["n"].budget_violations

    assert violations(budget("b", "app=db", 2)) == 1
    assert violations(budget("b", "app=db", 2), budget("c", "tier=x", 1)) == 2
    assert violations(budget("b", "app=db", 3)) == 0


@pytest.mark.upstream(31)
def test_the_remaining_budget_is_available_on_each_node_separately() -> None:
    """[31] Only one of the nodes will lose its pods."""
    running = [pod(f"q{n}", on=f"n{n}", cpu=1, labels={"app": "db"}) for n in range(3)]
    nodes = [node(f"n{n}", cpu=1) for n in range(3)]

    found = plan(*nodes, *running, budget("b", "app=db", 1), pod("p", priority=5, cpu=1))

    assert [one.budget_violations for one in found.candidates.values()] == [0, 0, 0]


@pytest.mark.upstream(31)
def test_a_pod_that_a_budget_counts_as_disrupted_takes_nothing_from_it() -> None:
    """[31]"""
    running = [pod(f"q{n}", on="n", priority=-n, cpu=1, labels={"app": "db"}) for n in range(2)]
    objects = [node("n", cpu=2), *running, pod("p", priority=5, cpu=2)]

    assert plan(*objects, budget("b", "app=db", 1)).candidates["n"].budget_violations == 1
    assert plan(*objects, budget("b", "app=db", 1, disrupted=["q0"])).candidates["n"].budget_violations == 0


# Rates of budgets

DB = {"app": "db"}


def test_pods_whose_budgets_rate_is_used_up_are_given_back_first() -> None:
    """Controlled rescheduling: budgets limit disruptions from all causes, preemption among them."""
    running = [pod("free", on="n", cpu=1, started=0), pod("rated", on="n", cpu=1, labels=DB, started=9, ready=True)]
    objects = [node("n", cpu=2), *running, pod("p", priority=5, cpu=1)]

    assert victims(*objects, budget("b", "app=db", 9, rate="2/1h", used=1)) == {"n": ["rated"]}
    assert victims(*objects, budget("b", "app=db", 9, rate="2/1h", used=2)) == {"n": ["free"]}


def test_a_used_up_rate_decides_first_between_nodes_and_never_stops_preemption() -> None:
    objects = candidates([pod("rated", on="n1", cpu=4, labels=DB, ready=True)], [pod("q", on="n2", priority=9, cpu=4)])
    used_up = budget("b", "app=db", 9, rate="1/1h", used=1)

    assert chosen(*objects, budget("b", "app=db", 9, rate="1/1h")) == (("n1",), UPSTREAM_COST.words[1])
    assert chosen(*objects, used_up) == (("n2",), UPSTREAM_COST.words[0])
    assert chosen(*objects[:2], used_up) == (("n1",), "")


def test_a_rate_comes_back_with_time() -> None:
    there = pod("rated", on="n", cpu=1, labels=DB, ready=True)
    objects = [node("n", cpu=1), there, budget("b", "app=db", 9, rate="1/1h", used=1), pod("p", priority=5, cpu=1)]
    hour = 3600 * 10**9

    found = [explain(objects, now_ns=now).plan for now in (hour - 1, hour)]

    assert [one and one.candidates["n"].budget_violations for one in found] == [1, 0]


@pytest.mark.parametrize(
    ("victim", "violations"),
    [
        (pod("q", on="n", cpu=1, labels=DB, ready=True), 1),
        (pod("q", on="n", cpu=1, labels=DB), 0),
        (pod("q", on="n", cpu=1, labels=DB, ready=True, terminating=True), 0),
        (pod("q", on="n", cpu=1, labels={"app": "web"}, ready=True), 0),
    ],
)
def test_a_rate_counts_what_the_api_server_counts_healthy_pods_whose_end_begins(victim: Pod, violations: int) -> None:
    used_up = budget("b", "app=db", 9, rate="1/1h", used=1)

    found = plan(node("n", cpu=1), victim, used_up, pod("p", priority=5, cpu=1))

    assert found.candidates["n"].budget_violations == violations


# Which node


def candidates(*running: list[Pod]) -> list[Kubernetes]:
    """Return as many nodes of one cpu each, n1, n2 and so on, with the pods given for each."""
    objects: list[Kubernetes] = []
    for number, pods in enumerate(running, 1):
        objects += [node(f"n{number}", cpu=4), *pods]
    return objects


def chosen(*objects: Kubernetes) -> tuple[tuple[str, ...], str]:
    found = plan(*objects, pod("p", priority=500, cpu=4))
    return found.selected, found.criterion


@pytest.mark.upstream(10, 28)
def test_first_the_fewest_budget_violations_decide() -> None:
    """[10, 28]"""
    nodes = candidates(
        [pod("a", on="n1", priority=1, cpu=4, labels={"app": "db"})], [pod("b", on="n2", priority=400, cpu=4)]
    )

    assert chosen(*nodes, budget("b", "app=db", 0)) == (("n2",), "fewest budget violations")


@pytest.mark.upstream(28)
def test_then_the_lowest_priority_of_the_most_important_victim_decides() -> None:
    """[28]"""
    nodes = candidates(
        [pod("a", on="n1", priority=9, cpu=4)],
        [pod("b", on="n2", priority=8, cpu=2), pod("c", on="n2", priority=8, cpu=2)],
    )

    assert chosen(*nodes) == (("n2",), "lowest priority of the most important victim")


@pytest.mark.upstream(28)
def test_then_the_smallest_sum_of_priorities_decides() -> None:
    """[28]"""
    nodes = candidates(
        [pod("a", on="n1", priority=9, cpu=2), pod("b", on="n1", priority=8, cpu=2)],
        [pod("c", on="n2", priority=9, cpu=2), pod("d", on="n2", priority=7, cpu=2)],
    )

    assert chosen(*nodes) == (("n2",), "smallest sum of victims' priorities")


@pytest.mark.upstream(28)
def test_fewer_victims_weigh_less_even_where_priorities_are_negative() -> None:
    """[28] Each counts for 2^31 more than its priority."""
    nodes = candidates(
        [pod("a", on="n1", priority=-5, cpu=2), pod("b", on="n1", priority=-9, cpu=2)],
        [pod("c", on="n2", priority=-5, cpu=4)],
    )

    assert chosen(*nodes) == (("n2",), "fewest victims")


@pytest.mark.upstream(28)
def test_then_the_fewest_victims_decide() -> None:
    """[28] Only where the shifted sums agree: the lowest priority of all adds nothing to them."""
    low = -(2**31)
    nodes = candidates(
        [
            pod("a", on="n1", priority=100, cpu=2),
            pod("b", on="n1", priority=low, cpu=1),
            pod("c", on="n1", priority=low, cpu=1),
        ],
        [pod("d", on="n2", priority=100, cpu=2), pod("e", on="n2", priority=low, cpu=2)],
    )

    assert chosen(*nodes) == (("n2",), "fewest victims")


@pytest.mark.upstream(28)
def test_then_the_latest_start_of_the_most_important_victims_decides() -> None:
    """[28] Of each node the earliest start among the victims of the highest priority counts."""
    nodes = candidates(
        [pod("a", on="n1", priority=9, cpu=2, started=1), pod("b", on="n1", priority=9, cpu=2, started=8)],
        [pod("c", on="n2", priority=9, cpu=2, started=2), pod("d", on="n2", priority=9, cpu=2, started=3)],
    )

    assert chosen(*nodes) == (("n2",), "latest start of the most important victims")


@pytest.mark.upstream(28)
def test_the_start_of_less_important_victims_does_not_count() -> None:
    """[28]"""
    nodes = candidates(
        [pod("a", on="n1", priority=9, cpu=2, started=5), pod("b", on="n1", priority=0, cpu=2, started=1)],
        [pod("c", on="n2", priority=9, cpu=2, started=3), pod("d", on="n2", priority=0, cpu=2, started=9)],
    )

    assert chosen(*nodes) == (("n1",), "latest start of the most important victims")


def test_ties_are_broken_by_a_hash_that_differs_between_pods() -> None:
    nodes = [one for n in range(6) for one in full_of(f"n{n}", pod(f"q{n}", on=f"n{n}", cpu=4, started=0))]
    taken = set()
    for number in range(40):
        found = plan(*nodes, pod("p", uid=f"uid-{number}", priority=5, cpu=4))
        assert found.selected == tuple(f"n{n}" for n in range(6))
        assert found.chosen is not None
        taken.add(found.chosen.node_name)

    assert taken == {f"n{n}" for n in range(6)}


def test_preemption_prefers_the_nominated_node_among_tied_candidates() -> None:
    """So that a preemption whose scheduler ended halfway goes on where it began."""
    nodes = [one for n in range(6) for one in full_of(f"n{n}", pod(f"q{n}", on=f"n{n}", cpu=4, started=0))]
    for number in range(6):
        found = plan(*nodes, pod("p", priority=5, cpu=4, nominated=f"n{number}"))
        assert found.chosen is not None
        assert found.chosen.node_name == f"n{number}"


# How many candidates are looked at


def many(count: int, *, guarded: Iterable[int] = ()) -> list[Kubernetes]:
    """Nodes with one victim each, whose priorities rise; a used-up budget guards some of them."""
    objects: list[Kubernetes] = [budget("b", "app=db", 0)]
    for number in range(count):
        labels = {"app": "db"} if number in guarded else {"app": "web"}
        victim = pod(f"q{number}", on=f"n{number}", priority=number, cpu=4, labels=labels)
        objects += full_of(f"n{number}", victim)
    return objects


def test_every_node_is_examined_unless_fewer_are_configured() -> None:
    assert plan(*many(30), pod("p", priority=500, cpu=4)).selected == ("n0",)


@pytest.mark.upstream(27)
def test_as_many_candidates_are_kept_as_configured() -> None:
    """[27] At least the percentage of the nodes, and at least the absolute number; from a place that varies."""
    some = configuration({"DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 2}})
    kept = [plan(*many(40), pod("p", uid=f"u{n}", priority=500, cpu=4), settings=some).candidates for n in range(8)]

    assert {len(one) for one in kept} == {4}
    assert len({tuple(one) for one in kept}) > 1
    few = configuration({"DefaultPreemption": {"minCandidateNodesAbsolute": 7}})
    assert len(plan(*many(40), pod("p", priority=500, cpu=4), settings=few).candidates) == 7


@pytest.mark.upstream(27)
def test_candidates_are_looked_for_until_one_violates_no_budget() -> None:
    """[27] Beyond the number configured, if need be until the nodes end; no more than that number violate budgets."""
    one = configuration({"DefaultPreemption": {"minCandidateNodesAbsolute": 1}})
    for number in range(8):
        target = pod("p", uid=f"uid-{number}", priority=500, cpu=4)
        found = plan(*many(12, guarded=set(range(12)) - {5}), target, settings=one)

        assert found.selected == ("n5",)
    nothing_better = plan(*many(12, guarded=range(12)), pod("p", priority=500, cpu=4), settings=one)
    assert len(nothing_better.candidates) == 1


# Who may preempt


@pytest.mark.upstream(5, 29)
@pytest.mark.parametrize("policy", ["Never", "PreemptNever", "NonPreemptiblePreemptNever"])
def test_a_pod_whose_policy_says_never_waits(policy: str) -> None:
    """[5, 29]"""
    full = full_of("n", pod("q", on="n", cpu=4))

    found = explain([*full, pod("p", priority=5, cpu=1, policy=policy)])

    assert (found.outcome, found.node) == ("not-eligible", "")
    assert found.plan is not None
    assert found.plan.reason == f"not eligible due to preemptionPolicy={policy}."


@pytest.mark.upstream(5, 29)
@pytest.mark.parametrize("policy", ["PreemptLowerPriority", "NonPreemptible", None])
def test_other_policies_let_a_pod_preempt(policy: str | None) -> None:
    """[5, 29]"""
    full = full_of("n", pod("q", on="n", cpu=4))

    assert explain([*full, pod("p", priority=5, cpu=1, policy=policy)]).outcome == "preempts"


@pytest.mark.parametrize("policy", ["NonPreemptible", "NonPreemptiblePreemptNever"])
def test_a_non_preemptible_pod_is_never_a_victim(policy: str) -> None:
    """The design of preemption policies for priority classes."""
    running = [pod("kept", on="n", cpu=2, policy=policy, started=9), pod("q", on="n", priority=1, cpu=2)]

    assert victims(*full_of("n", *running), pod("p", priority=5, cpu=1)) == {"n": ["q"]}
    assert victims(*full_of("n", *running), pod("p", priority=5, cpu=3)) == {}


def nominated(victim: Pod) -> PreemptionPlan:
    return plan(*full_of("n", victim), pod("p", priority=5, cpu=4, nominated="n"))


@pytest.mark.upstream(29)
def test_a_pod_waits_while_its_victims_terminate_on_its_nominated_node() -> None:
    """[29]"""
    found = nominated(pod("q", on="n", cpu=4, terminating=True, preempted=True))

    assert found.reason == "not eligible due to a terminating pod on the nominated node."


@pytest.mark.upstream(29)
def test_a_pod_that_terminates_for_another_reason_does_not_make_it_wait() -> None:
    """[29]"""
    assert nominated(pod("q", on="n", cpu=4, terminating=True)).eligible
    assert nominated(pod("q", on="n", cpu=4, preempted=True)).eligible


@pytest.mark.upstream(29)
def test_a_terminating_victim_of_no_lower_priority_does_not_make_it_wait() -> None:
    """[29]"""
    assert nominated(pod("q", on="n", priority=5, cpu=4, terminating=True, preempted=True)).eligible


@pytest.mark.upstream(29)
def test_a_pod_does_not_wait_for_a_nominated_node_that_cannot_take_it_any_more() -> None:
    """[29]"""
    victim = pod("q", on="n", cpu=4, terminating=True, preempted=True)
    target = pod("p", priority=5, cpu=4, nominated="n")
    tainted = node("n", cpu=4, taints=["gpu:NoSchedule"])

    assert plan(tainted, victim, target).eligible
    assert plan(*full_of("other", pod("r", on="other", cpu=4)), target).eligible


# Beside nominated pods


@pytest.mark.upstream(13)
@pytest.mark.parametrize(("priority", "counts"), [(4, False), (5, True), (6, True)])
def test_room_is_kept_for_nominated_pods_of_equal_or_higher_priority(priority: int, counts: bool) -> None:
    """Row 13 of Kubernetes' tests: TestPreemptionAndNominatedNodeNameScenarios."""
    waiting = pod("waiting", priority=priority, cpu=3, nominated="n")

    found = explain([node("n", cpu=4), waiting, pod("p", priority=5, cpu=2)])

    assert found.outcome == ("unschedulable" if counts else "schedulable")


def test_victims_must_make_room_beside_the_nominated_pods() -> None:
    running = [pod("q1", on="n", cpu=2, started=0), pod("q2", on="n", cpu=2, started=1)]
    waiting = pod("waiting", priority=5, cpu=2, nominated="n")

    assert victims(*full_of("n", *running), pod("p", priority=5, cpu=2)) == {"n": ["q2"]}
    assert victims(*full_of("n", *running), waiting, pod("p", priority=5, cpu=2)) == {"n": ["q1", "q2"]}


def test_a_pod_must_fit_without_the_nominated_pods_too() -> None:
    """They do not run yet: being near to one of them is not enough."""
    friend = pod("friend", priority=9, labels={"app": "db"}, nominated="n")

    found = explain([node("n", zone="a"), friend, pod("p", priority=5, near=[term("app=db")])])

    assert found.outcome == "unschedulable"
    assert found.nodes["n"].reasons == ("node(s) didn't match pod affinity rules",)


def test_the_own_nomination_does_not_block_a_pod() -> None:
    assert explain([node("n", cpu=2), pod("p", priority=5, cpu=2, nominated="n")]).node == "n"


# What is said when nothing helps


@pytest.mark.upstream(30)
def test_the_message_counts_each_reason_once_for_every_node_that_has_it() -> None:
    """[30] Nodes that were not tried are named as such."""
    keepers = [pod(f"k{n}", on=f"n{n}", priority=9, cpu=1, memory="3Gi" if n else None) for n in (0, 1)]
    lower = [pod(f"q{n}", on=f"n{n}", priority=0, cpu=1) for n in (0, 1)]
    nodes = [node(f"n{n}", cpu=2, memory="4Gi") for n in (0, 1)]
    cordoned = node("n2", unschedulable=True)
    nobody = [node("n3", cpu=2), pod("k3", on="n3", priority=9, cpu=2)]

    found = plan(*nodes, cordoned, *nobody, *keepers, *lower, pod("p", priority=5, cpu=2, memory="2Gi"))

    assert found.message == (
        "preemption: 0/4 nodes are available: 1 Insufficient memory, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling, 2 Insufficient cpu."
    )


def test_fewer_victims_win_over_a_smaller_sum_of_priorities() -> None:
    """The sum is shifted so that fewer victims always weigh less: 8 against 8 + 1."""
    nodes = candidates(
        [pod("a", on="n1", priority=8, cpu=2), pod("b", on="n1", priority=1, cpu=2)],
        [pod("c", on="n2", priority=8, cpu=4)],
    )

    assert chosen(*nodes) == (("n2",), "fewest victims")


def test_the_sum_of_priorities_decides_among_equal_victim_counts() -> None:
    nodes = candidates(
        [pod("a", on="n1", priority=8, cpu=1), pod("b", on="n1", priority=1, cpu=1), pod("c", on="n1", cpu=2)],
        [pod("d", on="n2", priority=8, cpu=2), pod("e", on="n2", priority=2, cpu=2)],
        [pod("f", on="n3", priority=8, cpu=2), pod("g", on="n3", priority=1, cpu=2)],
    )

    assert chosen(*nodes) == (("n3",), "smallest sum of victims' priorities")
