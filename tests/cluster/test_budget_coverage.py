"""The pods that a disruption budget covers. Row 31 of Kubernetes' tests: TestFilterVictimsWithPDBViolation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podium.api.selectors import LabelSelector, LabelSelectorRequirement
from podium.cluster.budgets import Budgets
from tests.builders import budget, cluster_of, pod

WEB = {"app": "web"}


@pytest.mark.upstream(31)
@pytest.mark.parametrize(
    ("match", "namespace", "labels", "covered"),
    [
        ("app=web", "default", WEB, True),
        ("app=web", "shop", WEB, False),
        ("app=web", "default", {"app": "db"}, False),
        ("app=web", "default", {}, False),
        ("!app", "default", {}, False),  # pods without labels are covered by none
        ("!app", "default", {"tier": "x"}, True),
        ("", "default", WEB, False),  # an empty selector covers no pods here, but all pods for evictions
        (None, "default", WEB, False),
    ],
)
def test_a_budget_covers_labelled_pods_of_its_namespace(
    match: str | None, namespace: str, labels: dict[str, str], covered: bool
) -> None:
    cluster = cluster_of(budget("b", match, 1, namespace=namespace))
    pod_class = cluster.read(pod("p", labels=labels)).pod_class

    (one,) = cluster.budgets.all()
    assert one.covers(pod_class) is covered
    assert cluster.budgets.covering([pod_class]) == ([one] if covered else [])


def test_an_invalid_selector_covers_no_pod() -> None:
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="In", values=()),))
    one = budget("b", "", 1)
    cluster = cluster_of(replace(one, spec=replace(one.spec, selector=bad)))

    assert cluster.budgets.covering([cluster.read(pod("p", labels=WEB)).pod_class]) == []


def test_budgets_and_classes_that_come_later_know_one_another() -> None:
    cluster = cluster_of(budget("a", "app=web", 1))
    early = cluster.read(pod("p", labels=WEB)).pod_class
    assert [one.name for one in cluster.budgets.over(early)] == ["a"]

    cluster.put(budget("b", "app", 1))
    cluster.put(budget("a", "app=db", 1))
    late = cluster.read(pod("p", labels={"app": "db"})).pod_class

    assert [[one.name for one in cluster.budgets.over(each)] for each in (early, late)] == [["b"], ["a", "b"]]
    cluster.budgets.remove("default/b")
    assert [[one.name for one in cluster.budgets.over(each)] for each in (early, late)] == [[], ["a"]]


def test_budgets_are_by_key_and_every_change_is_counted() -> None:
    budgets = Budgets()
    for name in ("b", "a"):
        budgets.put(budget(name, "app=web", 1))
    assert [one.key for one in budgets.all()] == ["default/a", "default/b"]
    assert (len(budgets), budgets.changes.position) == (2, 2)

    budgets.put(budget("a", "app=web", 5))
    budgets.remove("default/b")
    budgets.remove("default/b")

    assert [(one.key, one.disruptions_allowed) for one in budgets.all()] == [("default/a", 5)]
    assert budgets.changes.position == 4
