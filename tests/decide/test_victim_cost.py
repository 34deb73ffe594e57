"""The cost of victims by configured criteria, and the protected pods."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.replacements import WORKLOAD_DISRUPTED_AT
from podium.decide.evictions import CHECKPOINT_TIME
from podium.decide.preempting.criteria import CRITERIA, CriterionName
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.settings.configuration import Configuration
from tests.builders import DAY_ONE_NS, ZONE, at, budget, configuration, explain, node, node_term, pod, term
from tests.fuzzing import FUZZ_RUNS

HOUR = 3_600
NOW = 10 * HOUR


def preempting(**arguments: Any) -> Configuration:
    return configuration({"DefaultPreemption": arguments})


def plan(*objects: Kubernetes, now: int = NOW, **arguments: Any) -> PreemptionPlan:
    """Return what preemption finds for the pod `default/p`, so many seconds after the first day."""
    found = explain(objects, settings=preempting(**arguments), now_ns=DAY_ONE_NS + now * 10**9).plan
    assert found is not None, "the pod fits somewhere"
    return found


def chosen(*objects: Kubernetes, by: CriterionName, **arguments: Any) -> tuple[list[str], str]:
    """Return the victims that are chosen by one criterion, and what is said of it."""
    found = plan(*objects, victimCost=[by], **arguments)
    assert found.chosen is not None
    return [victim.name for victim in found.chosen.victims], found.criterion


def two(first: Pod, second: Pod, *others: Kubernetes, cpu: int = 4) -> list[Kubernetes]:
    """Two full nodes, n1 and n2, with a pod each, and a pod that wants all of a node."""
    return [node("n1", cpu=cpu), node("n2", cpu=cpu), first, second, *others, pod("p", priority=100, cpu=cpu)]


def with_annotation(item: Pod, name: str, text: str) -> Pod:
    from msgspec.structs import replace  # noqa: PLC0415 - one test writes annotations

    return replace(item, metadata=replace(item.metadata, annotations={name: text}))


LONG = pod("long", on="n1", cpu=4, started=0)
SHORT = pod("short", on="n2", cpu=4, started=9 * HOUR)


def test_the_victim_goes_with_which_the_least_work_is_lost() -> None:
    assert chosen(*two(LONG, SHORT), by="WorkLost") == (["short"], "least work lost")


def test_work_that_is_saved_is_not_lost() -> None:
    saved = with_annotation(LONG, CHECKPOINT_TIME, at(NOW - 60))

    assert chosen(*two(saved, SHORT), by="WorkLost")[0] == ["long"]


def test_a_checkpoint_that_cannot_be_read_saves_nothing() -> None:
    assert chosen(*two(with_annotation(LONG, CHECKPOINT_TIME, "yesterday"), SHORT), by="WorkLost")[0] == ["short"]


def test_work_counts_by_the_share_of_its_node_that_a_pod_requests() -> None:
    """Ten hours of a tenth of a node are one node-hour, and less than two hours of all of it."""
    small = pod("small", on="n1", cpu=1, started=0)
    large = pod("large", on="n2", cpu=10, started=8 * HOUR)

    found = plan(*two(small, large, cpu=10), victimCost=["WorkLost"])

    assert found.chosen is not None
    assert [victim.name for victim in found.chosen.victims] == ["small"]
    costs = {name: found.criteria[0].shown(each.cost[0]) for name, each in found.candidates.items()}
    assert costs == {"n1": HOUR, "n2": 2 * HOUR}


def test_a_budget_with_most_left_of_its_rate_gives_way() -> None:
    budgets = budget("a", "app=a", 9, rate="9/1h"), budget("b", "app=b", 9, rate="3/1h")
    pods = (
        pod("a", on="n1", cpu=4, labels={"app": "a"}, ready=True),
        pod("b", on="n2", cpu=4, labels={"app": "b"}, ready=True),
    )

    assert chosen(*two(*pods, *budgets), by="RatesLeft")[0] == ["a"]


def test_a_victim_without_a_rate_leaves_most() -> None:
    pods = pod("a", on="n1", cpu=4, labels={"app": "a"}, ready=True), pod("b", on="n2", cpu=4)

    assert chosen(*two(*pods, budget("a", "app=a", 9, rate="9/1h")), by="RatesLeft")[0] == ["b"]


def test_the_lowest_priority_and_the_smallest_sum_are_different_things() -> None:
    several = [pod(f"s{index}", on="n1", cpu=1, priority=4) for index in range(4)]
    single = pod("single", on="n2", cpu=4, priority=5)
    objects = [node("n1", cpu=4), node("n2", cpu=4), *several, single, pod("p", priority=100, cpu=4)]

    assert chosen(*objects, by="HighestPriority")[0] == ["s0", "s1", "s2", "s3"]
    assert chosen(*objects, by="SumOfPriorities")[0] == ["single"]
    assert chosen(*objects, by="Victims")[0] == ["single"]


def test_a_guaranteed_pod_weighs_more_than_any_number_of_others() -> None:
    sure = pod("sure", on="n1", cpu=4, memory=1, limits={"cpu": 4, "memory": 1})
    others = [pod(f"o{index}", on="n2", cpu=1) for index in range(4)]
    objects = [node("n1", cpu=4), node("n2", cpu=4), sure, *others, pod("p", priority=9, cpu=4)]

    assert len(chosen(*objects, by="QualityOfService")[0]) == 4


def test_a_victim_goes_whose_replacement_has_a_place_to_go() -> None:
    """Only one of them selects the node that has room."""
    room = node("room", cpu=2, labels={"disk": "hdd"})
    bound = pod("bound", on="n1", cpu=2, owner="ReplicaSet/a", node_selector={"disk": "ssd"}, priority=1)
    free = pod("free", on="n2", cpu=2, owner="ReplicaSet/b", priority=2)
    ssd = [node(name, cpu=2, labels={"disk": "ssd"}) for name in ("n1", "n2")]
    objects = [room, *ssd, bound, free, pod("p", priority=100, cpu=2, node_selector={"disk": "ssd"})]

    assert chosen(*objects, by="ReplacementsWithoutPlace")[0] == ["free"]
    assert chosen(*objects, by="HighestPriority")[0] == ["bound"]


def test_the_shortest_grace_period_is_waited_for() -> None:
    slow, quick = (
        pod(name, on=on, cpu=4, spec={"termination_grace_period_seconds": grace})
        for name, on, grace in (("slow", "n1", 600), ("quick", "n2", 5))
    )

    assert chosen(*two(slow, quick), by="GracePeriod") == (["quick"], "shortest grace period")


def test_an_owner_of_many_loses_the_smaller_part() -> None:
    few, many = (
        pod("few", on="n1", cpu=4, owner="ReplicaSet/few"),
        pod("many-0", on="n2", cpu=4, owner="ReplicaSet/many"),
    )
    more = [pod(f"many-{index}", on="n3", cpu=1, priority=200, owner="ReplicaSet/many") for index in (1, 2)]

    assert chosen(*two(few, many, node("n3", cpu=2), *more), by="OwnerShare")[0] == ["many-0"]


def test_the_namespace_that_has_most_gives_way() -> None:
    rich, poor = pod("a", on="n1", cpu=4, namespace="rich"), pod("b", on="n2", cpu=4, namespace="poor")
    more = pod("more", on="n3", cpu=4, namespace="rich", priority=200)

    assert chosen(*two(rich, poor, node("n3", cpu=4), more), by="NamespaceShare")[0] == ["a"]


def test_a_later_criterion_counts_where_the_earlier_ones_leave_equals() -> None:
    objects = two(LONG, SHORT)

    assert plan(*objects, victimCost=["Victims", "WorkLost"]).criterion == "least work lost"
    assert plan(*objects, victimCost=["WorkLost", "Victims"]).criterion == "least work lost"
    assert plan(*objects, victimCost=["Victims"]).criterion == ""


def test_the_dearest_pods_of_a_node_are_spared_first() -> None:
    """By priority alone kube-scheduler would keep `young`; by the work lost it goes."""
    old = pod("old", on="n1", cpu=2, priority=1, started=0)
    young = pod("young", on="n1", cpu=2, priority=2, started=9 * HOUR)
    objects = [node("n1", cpu=4), old, young, pod("p", priority=100, cpu=2)]

    assert chosen(*objects, by="WorkLost")[0] == ["young"]
    assert [victim.name for victim in plan(*objects).chosen.victims] == ["old"]  # type: ignore[union-attr]


# What a pod costs by the others hangs on the pods that the test takes away.
@pytest.mark.parametrize("name", sorted({*get_args(CriterionName)} - {"OwnerShare", "NamespaceShare", "RatesLeft"}))
@pytest.mark.parametrize(
    "seeds", [pytest.param(4, id="quick"), pytest.param(FUZZ_RUNS, marks=pytest.mark.fuzz, id="fuzz")]
)
def test_the_cheapest_of_equally_sized_pods_is_evicted_on_any_node(name: CriterionName, seeds: int) -> None:
    for seed in range(seeds):
        objects = equal_pods(random.Random(seed))
        found = plan(*objects, victimCost=[name])
        alone = [plan(*only(objects, each), victimCost=[name]) for each in placed(objects)]

        assert found.chosen is not None
        assert found.chosen.cost[0] == min(each.chosen.cost[0] for each in alone if each.chosen is not None)


def equal_pods(draw: random.Random) -> list[Kubernetes]:
    pods = [
        pod(
            f"q{index}",
            on=f"n{index % 3}",
            cpu=1,
            priority=draw.randint(0, 3),
            started=draw.randint(0, NOW),
            owner=f"ReplicaSet/{draw.choice('ab')}",
            namespace=draw.choice(["x", "y"]),
            spec={"termination_grace_period_seconds": draw.randint(1, 60)},
        )
        for index in range(6)
    ]
    return [*(node(f"n{index}", cpu=2) for index in range(3)), *pods, pod("p", priority=100, cpu=1)]


def placed(objects: Iterable[Kubernetes]) -> list[Kubernetes]:
    return [each for each in objects if isinstance(each, Pod) and each.spec.node_name]


def only(objects: Iterable[Kubernetes], victim: Kubernetes) -> list[Kubernetes]:
    """Return the objects with pods that cannot be preempted in the place of all but one."""
    return [
        pod(each.metadata.name, on=each.spec.node_name, cpu=1, priority=10**6)
        if isinstance(each, Pod) and each.spec.node_name and each is not victim
        else each
        for each in objects
    ]


# Workloads that were disrupted lately


def of_workload(name: str, number: int, on: str, *, at_seconds: int | None = None, ending: int | None = None) -> Pod:
    """Return a pod of a ReplicaSet, with an annotation about its last disruption or a start so many seconds into the
    day.
    """
    from msgspec.structs import replace  # noqa: PLC0415 - only these tests write metadata

    made = pod(f"{name}-{number}", on=on, cpu=1, owner=f"ReplicaSet/{name}", started=0, preempted=ending is not None)
    meta = made.metadata
    if at_seconds is not None:
        meta = replace(meta, annotations={WORKLOAD_DISRUPTED_AT: at(at_seconds)})
    if ending is not None:
        meta = replace(meta, deletion_timestamp=at(ending + 30), deletion_grace_period_seconds=30)
    return replace(made, metadata=meta)


@given(
    report=st.lists(st.none() | st.integers(NOW - 2 * HOUR, NOW), min_size=4, max_size=4),
    ending=st.lists(st.none() | st.integers(NOW - 2 * HOUR, NOW), min_size=4, max_size=4),
)
def test_the_workload_goes_that_was_not_disrupted_for_the_longest_time(
    report: list[int | None], ending: list[int | None]
) -> None:
    """Four nodes with a pod of a workload each; other pods, on a node of their own, tell of disruptions."""
    pods = [of_workload(f"w{n}", 0, f"n{n}") for n in range(4)]
    others = [of_workload(f"w{n}", 1, "far", at_seconds=seconds) for n, seconds in enumerate(report)]
    others += [
        of_workload(f"w{n}", 2, "far", ending=seconds) for n, seconds in enumerate(ending) if seconds is not None
    ]
    nodes = [*(node(f"n{n}", cpu=1) for n in range(4)), node("far", cpu=100, labels={"far": "yes"})]
    target = pod("p", priority=100, cpu=1, needs_nodes=[node_term("!far")])

    found = plan(*nodes, *pods, *others, target, victimCost=["DisruptedLately"])

    def ago(n: int) -> int:
        known = [NOW - seconds for seconds in (report[n], ending[n]) if seconds is not None and NOW - seconds < HOUR]
        return min(known, default=10**9)

    longest = max(map(ago, range(4)))
    assert set(found.selected) == {f"n{n}" for n in range(4) if ago(n) == longest}


def test_the_pods_of_all_replica_sets_of_a_deployment_are_disrupted_together() -> None:
    from msgspec.structs import replace  # noqa: PLC0415 - only these tests write metadata

    def of(template_hash: str, on: str, text: str = "") -> Pod:
        labels = {"pod-template-hash": template_hash}
        made = pod(f"web-{template_hash}", on=on, cpu=4, owner=f"ReplicaSet/web-{template_hash}", labels=labels)
        return replace(made, metadata=replace(made.metadata, annotations={WORKLOAD_DISRUPTED_AT: text} if text else {}))

    other = pod("other", on="n2", cpu=4, owner="ReplicaSet/other")
    far = [node("far", cpu=4), of("old", "far", at(NOW - 600))]

    names, words = chosen(*two(of("new", "n1"), other, *far), by="DisruptedLately")

    assert (names, words) == (["other"], "longest time since their workloads were disrupted")


def test_an_unreadable_annotation_records_no_disruption() -> None:
    report = with_annotation(pod("a", on="n1", cpu=4, owner="ReplicaSet/a"), WORKLOAD_DISRUPTED_AT, "lately")

    assert plan(*two(report, pod("b", on="n2", cpu=4)), victimCost=["DisruptedLately"]).criterion == ""


# Protected pods


def test_pods_are_no_victims_before_they_have_run_for_long_enough() -> None:
    objects = [node("n1", cpu=4), pod("young", on="n1", cpu=4, started=NOW - 60), pod("p", priority=9, cpu=4)]

    assert plan(*objects, minimumRunningTime="10m").chosen is None
    assert plan(*objects, minimumRunningTime="10m", now=NOW + 540).chosen is not None


def test_a_pod_that_has_not_started_has_run_for_no_time() -> None:
    objects = [node("n1", cpu=4), pod("new", on="n1", cpu=4), pod("p", priority=9, cpu=4)]

    assert plan(*objects, minimumRunningTime="1s").chosen is None


def test_required_budgets_limit_the_number_of_victims() -> None:
    pods = [pod(f"q{index}", on="n1", cpu=1, labels={"app": "db"}, ready=True) for index in range(4)]
    objects: list[Node | Pod] = [node("n1", cpu=4), *pods, pod("p", priority=9, cpu=2)]

    assert plan(*objects, budget("db", "app=db", 1), budgets="Require").chosen is None
    both = plan(*objects, budget("db", "app=db", 2), budgets="Require").chosen
    assert both is not None
    assert ([victim.name for victim in both.victims], both.budget_violations) == (["q2", "q3"], 0)


def test_another_node_is_chosen_when_a_budget_blocks_the_first() -> None:
    protected, free = pod("a", on="n1", cpu=4, labels={"app": "a"}, ready=True), pod("b", on="n2", cpu=4, priority=5)
    objects = two(protected, free, budget("a", "app=a", 0))

    assert [victim.name for victim in plan(*objects, budgets="Require").chosen.victims] == ["b"]  # type: ignore[union-attr]


def test_budgets_are_counted_where_partners_are_kept_as_well() -> None:
    """Keeping required affinity partners is another criterion, which ranks before those of the budgets."""
    racked = {"topology.kubernetes.io/zone": "z"}
    nodes = [node(name, cpu=4, labels=racked) for name in ("n1", "n2", "n3")]
    partner = pod("partner", on="n3", cpu=4, priority=1000, labels={"app": "db"})
    protected = pod("a", on="n1", cpu=4, labels={"app": "a"}, ready=True)
    wanting = pod("p", priority=100, cpu=4, near=[term("app=db", ZONE)])
    objects = [*nodes, partner, protected, pod("b", on="n2", cpu=4), budget("a", "app=a", 0), wanting]

    found = plan(*objects, victimCost=["BudgetViolations"], keepAffinityPartners=True)

    assert (found.selected, found.criterion) == (("n2",), "fewest budget violations")


# What can be written


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"victimCost": []}, "at least one criterion"),
        ({"victimCost": ["Victims", "Victims"]}, "none of them twice"),
        ({"victimCost": ["Beauty"]}, "Beauty"),
        ({"victimCost": "Cheapest"}, "victimCost"),
        ({"budgets": "Ignore"}, "budgets"),
        ({"minimumRunningTime": "-1s"}, "0s or more"),
        ({"minimumRunningTime": "soon"}, "soon"),
    ],
)
def test_invalid_victim_cost_arguments_are_reported(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        explain([node("n1", cpu=1), pod("p", cpu=1)], settings=preempting(**arguments))


def test_every_criterion_has_words_and_a_heading_of_its_own() -> None:
    assert len({criterion.words for criterion in CRITERIA.values()}) == len(CRITERIA)
    assert len({criterion.heading for criterion in CRITERIA.values()}) == len(CRITERIA)
