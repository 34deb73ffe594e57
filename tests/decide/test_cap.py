"""Preemption under a cap on how often schedulers disrupt pods with a budget."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podium.api.disruption_policy import Cap, CapStatus, DisruptionPolicy, DisruptionPolicySpec, DisruptionPolicyStatus
from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.pod import Pod
from podium.decide.preempting.preemption_plan import PreemptionPlan
from tests.builders import budget, configuration, explain, node, pod, scheduler_cap

DB = {"app": "db"}
GUARD = budget("b", "app=db", 9)
HOUR = 3600 * 10**9


def plan(*objects: Kubernetes, cpu: int = 2, fair: bool = False) -> PreemptionPlan:
    """Return what preemption finds for a pod of so many cpu, which fits nowhere."""
    settings = configuration({"DefaultPreemption": {"equalPriorityPreemption": True}}) if fair else None
    found = explain([*objects, pod("p", priority=5, cpu=cpu, owner="ReplicaSet/p")], settings=settings).plan
    assert found is not None, "the pod fits somewhere"
    return found


def chosen(*objects: Kubernetes, cpu: int = 2) -> tuple[str, list[str]] | None:
    found = plan(*objects, cpu=cpu).chosen
    return None if found is None else (found.node_name, [one.name for one in found.victims])


def db(number: int, on: str = "a", cpu: int = 1, priority: int = 0) -> Pod:
    return pod(f"db-{number}", on=on, cpu=cpu, priority=priority, labels=DB, ready=True, started=number)


def free(number: int, on: str = "b", cpu: int = 1, priority: int = 3) -> Pod:
    return pod(f"free-{number}", on=on, cpu=cpu, priority=priority, ready=True, started=number)


TWO = [node("a", cpu=2), node("b", cpu=2), db(0), db(1), free(0), free(1), GUARD]


def test_with_the_cap_used_up_a_node_whose_victims_have_no_budget_is_taken() -> None:
    assert chosen(*TWO) == ("a", ["db-0", "db-1"])
    assert chosen(*TWO, scheduler_cap("2/1h", used=2)) == ("b", ["free-0", "free-1"])


@pytest.mark.parametrize(("used", "node_name"), [(0, "a"), (1, "a"), (2, "b"), (3, "b")])
def test_a_node_is_held_back_whose_victims_take_more_than_is_left(used: int, node_name: str) -> None:
    found = plan(*TWO, scheduler_cap("3/1h", used=used))

    assert found.chosen is not None
    assert found.chosen.node_name == node_name
    assert list(found.candidates) == (["a", "b"] if node_name == "a" else ["b"])
    left = 3 - used
    assert [status.reasons for status in found.rejected.values()] == (
        []
        if node_name == "a"
        else [
            (
                "2 of the victims have a budget, and the cap of 3/1h on component scheduler (DisruptionPolicy default) "
                f"leaves {left}",
            )
        ]
    )


def test_victims_without_a_budget_are_found_on_a_node_where_others_would_have_gone() -> None:
    """By importance the one with the budget would go; the cap lets the other one go instead."""
    objects = [node("a", cpu=2), db(0, cpu=1), free(0, on="a", cpu=1), GUARD]

    assert chosen(*objects, cpu=1) == ("a", ["db-0"])
    assert chosen(*objects, scheduler_cap("1/1h", used=1), cpu=1) == ("a", ["free-0"])


def test_preemption_is_delayed_when_every_victim_has_a_budget() -> None:
    found = plan(
        node("a", cpu=2), node("c", cpu=3), db(0), db(1), db(2, on="c", cpu=3), GUARD, scheduler_cap("2/1h", used=2)
    )

    assert (found.chosen, dict(found.candidates)) == (None, {})
    assert found.put_off is not None
    assert (found.put_off.victims, found.put_off.left, found.put_off.next_ns) == (1, 0, HOUR // 2)
    assert found.message == (
        "preemption: it would disrupt a pod with a budget, and the cap of 2/1h on component scheduler "
        "(DisruptionPolicy default) leaves 0; the next try is at 1970-01-01T00:30:00Z"
    )
    assert sorted(found.rejected) == ["a", "c"]


def equal(number: int, labels: dict[str, str] | None = None) -> Pod:
    return pod(f"q{number}", on="b", cpu=2, priority=5, owner="ReplicaSet/q", labels=labels, ready=True)


def test_equals_are_left_alone_while_ordinary_preemption_waits_for_the_cap() -> None:
    equals = [node("b", cpu=4), equal(0), equal(1)]
    assert plan(*equals, fair=True).is_exchange

    found = plan(*equals, node("a", cpu=2), db(0), db(1), GUARD, scheduler_cap("2/1h", used=2), fair=True)

    assert (found.chosen, found.is_exchange) == (None, False)


def test_an_exchange_is_put_off_by_the_cap_too() -> None:
    objects = [node("b", cpu=4), equal(0, DB), equal(1, DB), GUARD]
    assert plan(*objects, fair=True).is_exchange

    found = plan(*objects, scheduler_cap("2/1h", used=2), fair=True)

    assert found.chosen is None
    assert found.put_off is not None


def in_namespace(found: Pod, name: str) -> Pod:
    return replace(found, metadata=replace(found.metadata, namespace=name, uid=f"{name}-{found.metadata.uid}"))


def each_namespace(rate: str, *used: str) -> DisruptionPolicy:
    """Return a cap on each namespace, used up in some of them for two hours."""
    return DisruptionPolicy(
        metadata=ObjectMeta(name="default"),
        spec=DisruptionPolicySpec(caps=(Cap(max=rate, per="Namespace"),)),
        status=DisruptionPolicyStatus(
            caps=tuple(CapStatus(namespace=name, full_time="1970-01-01T02:00:00Z") for name in used)
        ),
    )


HERE = [node("a", cpu=1), node("b", cpu=1), db(0), GUARD]
ELSEWHERE = [in_namespace(db(1, on="b", priority=3), "other"), budget("b", "app=db", 9, namespace="other")]


def test_a_used_up_namespace_cap_blocks_nodes_with_victims_in_that_namespace() -> None:
    assert chosen(*HERE, *ELSEWHERE, each_namespace("1/2h"), cpu=1) == ("a", ["db-0"])

    found = plan(*HERE, *ELSEWHERE, each_namespace("1/2h", "default"), cpu=1)

    assert found.chosen is not None
    assert found.chosen.node_name == "b"
    assert [status.reasons for status in found.rejected.values()] == [
        (
            "1 of the victims have a budget, and the cap of 1/2h on namespace default (DisruptionPolicy default) "
            "leaves 0",
        )
    ]


def test_a_cap_used_up_in_all_namespaces_delays_preemption_and_names_the_namespace() -> None:
    found = plan(*HERE, *ELSEWHERE, each_namespace("2/4h", "default", "other"), cpu=1)
    assert found.chosen is not None  # One of two is left in each.

    found = plan(*HERE, *ELSEWHERE, each_namespace("1/2h", "default", "other"), cpu=1)

    assert found.chosen is None
    assert found.put_off is not None
    assert found.put_off.to_dict() == {
        "victims": 1,
        "cap": "1/2h",
        "left": 0,
        "next": "1970-01-01T02:00:00Z",
        "namespace": "default",
    }


def test_victims_with_a_budget_in_another_namespace_are_found_where_those_of_one_may_not_go() -> None:
    """By importance the pod of the namespace whose cap is used up would go; the other goes instead."""
    both = [node("a", cpu=2), db(0), GUARD, in_namespace(db(1, on="a", priority=3), "other"), ELSEWHERE[1]]
    assert chosen(*both, each_namespace("1/2h"), cpu=1) == ("a", ["db-0"])

    assert chosen(*both, each_namespace("1/2h", "default"), cpu=1) == ("a", ["db-1"])
