"""Default disruption budgets: controlled-rescheduling.md, Disruption budget (a default by priority level)."""

from typing import Any

import pytest

from podium.controllers.actions import DeleteObject
from podium.controllers.disruption.default_budgets import DefaultBudgets
from podium.controllers.observations import Changed, Deleted, Problem, Tick
from tests.controllers.store_rig import CONFLICT, NO_ANSWER, UNAVAILABLE, WEB, Rig
from tests.sim.objects import budget, owned, workload
from tests.store.objects import SECOND, Raw, priority_class

ENTRIES: list[Raw] = [
    {"minPriority": 1000, "minAvailable": "90%"},
    {"minPriority": 100, "maxUnavailable": 1},
    {"maxUnavailable": "50%"},
]


def policy(*entries: Raw, **spec: Any) -> Raw:
    """Return a cluster's DisruptionPolicy."""
    return {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": "default"},
        "spec": {**spec, "defaultBudgets": list(entries)},
    }


def keeper(kind: str = "Deployment", name: str = "web", labels: Raw = WEB, **more: Any) -> Raw:
    """Return a workload whose pods have these labels; `more` may be its selector, and the spec of its pods."""
    selector = more.get("selector", labels)
    template = {"metadata": {"labels": labels}, "spec": more.get("spec", {})}
    raw = workload(kind, name, 3, template=template, uid=f"{kind}-{name}")
    raw["spec"]["selector"] = selector if kind == "ReplicationController" else {"matchLabels": selector}
    return {**raw, "apiVersion": "v1"} if kind == "ReplicationController" else raw


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(DefaultBudgets, *objects)
    rig.settle()
    return rig


def budgets(rig: Rig) -> Raw:
    """Return the budgets that there are: the numbers of each."""
    found = (one.raw for one in rig.store.objects("PodDisruptionBudget"))
    return {raw["metadata"]["name"]: {**raw["spec"], "selector": None} for raw in found}


def numbers(**spec: Any) -> Raw:
    return {**spec, "selector": None}


ANY = {"maxUnavailable": 1}
FORBIDDEN = Problem(403, "Forbidden", "over quota")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"])
def test_a_workload_without_a_budget_gets_one_of_its_own(kind: str) -> None:
    rig = rig_of(policy(ANY), keeper(kind))

    found = rig.get("PodDisruptionBudget", "web-default")
    assert found["spec"] == {"selector": {"matchLabels": WEB}, "maxUnavailable": 1}
    assert found["metadata"]["labels"] == {"podium.dev/default-budget": "true"}
    assert found["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1" if kind == "ReplicationController" else "apps/v1",
            "kind": kind,
            "name": "web",
            "uid": f"{kind}-web",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert not rig.controller.deadline().keeps_alive


def test_parts_of_workloads_and_what_ends_get_none() -> None:
    parts = owned(keeper("ReplicaSet", "web-1"), keeper())
    ending = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum", "namespace": "default"}, "spec": {}}

    assert budgets(rig_of(policy(ANY), parts, ending)) == {}


def test_workloads_that_do_not_select_their_own_pods_get_none() -> None:
    assert budgets(rig_of(policy(ANY), keeper("ReplicationController", labels={}))) == {}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"priorityClassName": "high"}, {"minAvailable": "90%"}),
        ({"priorityClassName": "middle"}, {"maxUnavailable": 1}),
        ({"priorityClassName": "low"}, {"maxUnavailable": "50%"}),
        ({"priorityClassName": "system-node-critical"}, {"minAvailable": "90%"}),
        ({"priority": 999}, {"maxUnavailable": 1}),
        ({}, {"maxUnavailable": "50%"}),
    ],
)
def test_the_first_entry_for_the_priority_of_the_pods_has_the_numbers(spec: Raw, expected: Raw) -> None:
    classes = priority_class("high", 1000), priority_class("middle", 100), priority_class("low", 99)

    rig = rig_of(policy(*ENTRIES), *classes, keeper(spec=spec))

    assert budgets(rig) == {"web-default": numbers(**expected)}


def test_pods_without_a_class_have_the_priority_of_the_default_one() -> None:
    rig = rig_of(policy(*ENTRIES), keeper())
    assert budgets(rig) == {"web-default": numbers(maxUnavailable="50%")}

    rig.sync(priority_class("middle", 200, globalDefault=True))
    assert budgets(rig) == {"web-default": numbers(maxUnavailable=1)}
    rig.store.delete("PriorityClass", "middle", now=rig.now)
    rig.settle()
    assert budgets(rig) == {"web-default": numbers(maxUnavailable="50%")}


def test_a_priority_for_which_there_is_no_entry_gets_none() -> None:
    rig = rig_of(policy({"minPriority": 0, "maxUnavailable": 1}), keeper(spec={"priority": -1}))
    assert budgets(rig) == {}

    rig.sync(keeper(spec={"priority": 0}))
    assert budgets(rig) == {"web-default": numbers(maxUnavailable=1)}
    rig.sync(keeper(spec={"priority": -1}))
    assert budgets(rig) == {}
    rig.sync(priority_class("high", 1))
    rig.sync(keeper(spec={"priority": -1, "priorityClassName": "high"}))
    assert budgets(rig) == {"web-default": numbers(maxUnavailable=1)}


def test_a_budget_follows_its_policy() -> None:
    rig = rig_of(keeper())
    assert budgets(rig) == {}

    rig.sync(policy(ANY))
    assert budgets(rig) == {"web-default": numbers(maxUnavailable=1)}
    stored = rig.store.get("PodDisruptionBudget", "default/web-default")
    rig.store.update_status({**stored.raw, "status": {"disruptionsAllowed": 1}})
    rig.sync(policy({"minAvailable": "80%"}))
    assert budgets(rig) == {"web-default": numbers(minAvailable="80%")}
    assert not [problem for _, problem in rig.log if problem]
    rig.sync(policy())
    assert budgets(rig) == {}
    rig.sync(policy(ANY))
    rig.store.delete("DisruptionPolicy", "default", now=rig.now)
    rig.settle()
    assert budgets(rig) == {}


def test_unrelated_policy_changes_cause_no_work() -> None:
    rig = rig_of(policy(ANY), keeper())

    rig.put(policy(ANY, caps=[{"component": "drain", "max": "5/1h"}]))
    rig.see()

    assert rig.controller.deadline().time_ns is None


def test_a_budget_follows_its_workload() -> None:
    rig = rig_of(policy(ANY), keeper("ReplicationController", labels={"app": "web", "tier": "front"}, selector=WEB))

    rig.sync(keeper("ReplicationController", labels={"app": "web", "tier": "front"}, selector={"tier": "front"}))

    assert rig.get("PodDisruptionBudget", "web-default")["spec"]["selector"] == {"matchLabels": {"tier": "front"}}
    assert len(rig.store.objects("PodDisruptionBudget")) == 1


def test_changes_by_hand_are_undone_and_others_stay() -> None:
    rig = rig_of(policy(ANY), keeper())
    changed = {"metadata": {"annotations": {"podium.dev/max-disruptions": "1/1h"}}}
    spec = {"maxUnavailable": None, "minAvailable": 3, "unhealthyPodEvictionPolicy": "AlwaysAllow"}

    rig.store.patch("PodDisruptionBudget", "default/web-default", {**changed, "spec": spec}, "merge")
    rig.settle()

    assert budgets(rig) == {"web-default": numbers(maxUnavailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")}
    assert (
        rig.get("PodDisruptionBudget", "web-default")["metadata"]["annotations"] == changed["metadata"]["annotations"]
    )


def test_a_budget_that_is_deleted_comes_back() -> None:
    rig = rig_of(policy(ANY), keeper())

    rig.delete("PodDisruptionBudget", "web-default")
    rig.settle()

    assert budgets(rig) == {"web-default": numbers(maxUnavailable=1)}


# Other budgets


def test_a_user_budget_replaces_the_default_budget() -> None:
    rig = rig_of(policy(ANY), keeper(), keeper(name="db", labels={"app": "db"}))
    assert sorted(budgets(rig)) == ["db-default", "web-default"]

    rig.sync(budget("mine", minAvailable=1))
    assert sorted(budgets(rig)) == ["db-default", "mine"]
    deletion = rig.log[-1][0]
    assert isinstance(deletion, DeleteObject)
    assert deletion.message == "PodDisruptionBudget default/mine covers pods that Deployment default/web selects"
    rig.sync(budget("mine", selector={"matchLabels": {"app": "db"}}, minAvailable=1))
    assert sorted(budgets(rig)) == ["mine", "web-default"]
    rig.delete("PodDisruptionBudget", "mine")
    rig.settle()
    assert sorted(budgets(rig)) == ["db-default", "web-default"]


def test_budgets_of_other_namespaces_do_not_count() -> None:
    other = budget("mine", minAvailable=1)
    other["metadata"]["namespace"] = "other"

    assert "web-default" in budgets(rig_of(policy(ANY), other, keeper()))


@pytest.mark.parametrize("mark", ["labels", "ownerReferences"])
def test_a_default_budget_taken_over_by_a_user_is_kept(mark: str) -> None:
    rig = rig_of(policy(ANY), keeper())
    for taken in ({"metadata": {mark: None}}, {"spec": {"maxUnavailable": 2}}):
        rig.store.patch("PodDisruptionBudget", "default/web-default", taken, "merge")
        rig.settle()

    rig.sync(policy({"maxUnavailable": 3}))

    assert budgets(rig) == {"web-default": numbers(maxUnavailable=2)}


def test_a_name_that_is_taken_is_not_used() -> None:
    taken = budget("web-default", selector={"matchLabels": {"app": "other"}}, minAvailable=1)
    stateful = keeper("StatefulSet", "web", {"app": "stateful"})

    rig = rig_of(policy(ANY), taken, keeper(), stateful)
    rig.wait(10)

    owners = {
        one.raw["metadata"]["name"]: one.raw["metadata"].get("ownerReferences", [{"kind": ""}])[0]["kind"]
        for one in rig.store.objects("PodDisruptionBudget")
    }
    assert owners == {"web-default": "", "web-default-2": "Deployment", "web-default-3": "StatefulSet"}


def test_long_names_are_cut() -> None:
    name = "a" * 229 + "." + "b" * 20

    assert list(budgets(rig_of(policy(ANY), keeper(name=name)))) == ["a" * 229 + "-default"]


def test_no_workload_gets_two() -> None:
    rig = rig_of(policy(ANY), keeper())
    one = rig.get("PodDisruptionBudget", "web-default")
    rig.put(
        {
            **one,
            "metadata": {
                "namespace": "default",
                **{f: one["metadata"][f] for f in ("labels", "ownerReferences")},
                "name": "z",
            },
        }
    )

    rig.settle()

    assert list(budgets(rig)) == ["web-default"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"labels": WEB}, {"labels": WEB}),
        ({"labels": {**WEB, "x": "1"}}, {"labels": {**WEB, "y": "1"}, "selector": WEB}),
        ({"labels": {**WEB, "x": "1"}, "selector": WEB}, {"labels": {**WEB, "y": "1"}}),
    ],
)
def test_the_first_of_overlapping_workloads_by_name_gets_a_budget(first: Raw, second: Raw) -> None:
    rig = rig_of(policy(ANY), keeper(name="b", **second), keeper(name="a", **first))
    assert list(budgets(rig)) == ["a-default"]

    rig.delete("PodDisruptionBudget", "a-default")
    rig.delete("Deployment", "a")
    rig.settle()
    assert list(budgets(rig)) == ["b-default"]
    rig.sync({**keeper(name="a", **first), "metadata": {**keeper(name="a")["metadata"], "uid": "another"}})
    assert list(budgets(rig)) == ["a-default"]


def test_the_first_overlapping_workload_keeps_its_precedence_without_its_budget() -> None:
    wide, narrow = {**WEB, "x": "1"}, {"x": "1"}
    rig = rig_of(policy(ANY), keeper("ReplicationController", "b", wide, selector=narrow))
    assert list(budgets(rig)) == ["b-default"]

    rig.problems = [FORBIDDEN, None, FORBIDDEN]
    rig.sync(keeper("ReplicationController", "a", wide, selector=narrow))
    assert list(budgets(rig)) == []
    rig.sync(keeper("ReplicationController", "a", {**WEB, "y": "1"}, selector={"y": "1"}))
    assert sorted(budgets(rig)) == ["a-default", "b-default"]


def test_a_workload_that_selects_pods_with_a_budget_gets_none() -> None:
    narrow = {**WEB, "tier": "front"}
    rig = rig_of(policy(ANY), keeper(name="b"), keeper(name="c", labels=narrow, selector={"tier": "front"}))
    assert list(budgets(rig)) == ["b-default"]

    rig.sync(budget("mine", selector={"matchLabels": {"tier": "front"}}, minAvailable=1))
    assert list(budgets(rig)) == ["mine"]
    rig.delete("PodDisruptionBudget", "mine")
    rig.settle()
    assert list(budgets(rig)) == ["b-default"]


def test_a_workload_that_others_with_a_budget_select_may_have_one() -> None:
    narrow = {**WEB, "tier": "front"}
    mine = budget("mine", selector={"matchLabels": {"tier": "back"}}, minAvailable=1)
    others = keeper(name="a", labels={**WEB, "tier": "back"}, selector=WEB)

    rig = rig_of(policy(ANY), mine, others, keeper(name="b", labels=narrow, selector=narrow))

    assert sorted(budgets(rig)) == ["b-default", "mine"]


def test_pods_that_get_other_labels_may_have_another_budget() -> None:
    rig = rig_of(policy(ANY), budget("mine", selector={"matchLabels": {"tier": "front"}}, minAvailable=1), keeper())
    assert sorted(budgets(rig)) == ["mine", "web-default"]

    rig.sync(keeper(labels={**WEB, "tier": "front"}, selector=WEB))

    assert sorted(budgets(rig)) == ["mine"]


def test_a_workload_without_default_budget_blocks_no_other() -> None:
    high = [{"minPriority": 1, "maxUnavailable": 1}]
    rig = rig_of(policy(*high), keeper(name="a"), keeper(name="b", spec={"priority": 1}))

    assert list(budgets(rig)) == ["b-default"]


# Workloads that come and go


def test_a_workload_that_is_deleted_gets_none_and_its_budget_is_left_to_the_collector() -> None:
    rig = rig_of(policy(ANY), keeper())

    rig.delete("Deployment", "web")
    rig.sync(policy({"maxUnavailable": 2}))
    assert budgets(rig) == {"web-default": numbers(maxUnavailable=1)}
    rig.delete("PodDisruptionBudget", "web-default")
    rig.settle()

    assert budgets(rig) == {}


@pytest.mark.parametrize("sees_the_end", [True, False])
def test_a_namesake_gets_its_own_once_the_old_budget_is_collected(sees_the_end: bool) -> None:
    rig = rig_of(policy(ANY), keeper())
    old = rig.store.get("Deployment", "default/web").object
    rig.delete("Deployment", "web")
    rig.put({**keeper(), "metadata": {**keeper()["metadata"], "uid": "another"}})
    new = rig.store.get("Deployment", "default/web")
    rig.held = set() if sees_the_end else {"Deployment"}
    rig.controller.handle(Changed(new.object, new.raw), rig.now)

    rig.settle()
    rig.controller.handle(Deleted(old), rig.now)
    rig.delete("PodDisruptionBudget", "web-default")
    rig.settle()

    assert rig.get("PodDisruptionBudget", "web-default")["metadata"]["ownerReferences"][0]["uid"] == "another"


def test_a_workload_that_waits_for_its_end_gets_none() -> None:
    rig = rig_of(policy(), {**keeper(), "metadata": {**keeper()["metadata"], "finalizers": ["example.com/wait"]}})
    rig.delete("Deployment", "web")

    rig.sync(policy(ANY))

    assert rig.get("Deployment", "web")["metadata"]["deletionTimestamp"]
    assert budgets(rig) == {}


def test_a_replaced_budget_is_not_confused_with_its_namesake() -> None:
    rig = rig_of(policy(ANY), keeper(), budget("mine", minAvailable=1))
    old = rig.store.get("PodDisruptionBudget", "default/mine").object
    rig.delete("PodDisruptionBudget", "mine")
    rig.sync(budget("mine", minAvailable=1))

    rig.controller.handle(Deleted(old), rig.now)
    rig.settle()

    assert list(budgets(rig)) == ["mine"]


def test_a_replica_set_that_a_deployment_adopts_loses_its_budget() -> None:
    rig = rig_of(policy(ANY), keeper("ReplicaSet", "web-1"))
    assert list(budgets(rig)) == ["web-1-default"]

    rig.sync(owned(keeper("ReplicaSet", "web-1"), keeper()))
    assert list(budgets(rig)) == []
    rig.sync(keeper())
    assert list(budgets(rig)) == ["web-default"]


def test_changes_that_affect_no_budget_cause_no_work() -> None:
    rig = rig_of(policy(ANY), keeper())
    rig.put({**keeper(), "spec": {**keeper()["spec"], "replicas": 9}})
    stored = rig.store.get("PodDisruptionBudget", "default/web-default")
    rig.store.update_status({**stored.raw, "status": {"disruptionsAllowed": 1}})

    rig.see()

    assert rig.controller.deadline().time_ns is None


# Writes that fail, and crashes


@pytest.mark.parametrize("problem", [NO_ANSWER, UNAVAILABLE, FORBIDDEN])
def test_a_creation_that_fails_is_tried_again_and_made_once(problem: Problem) -> None:
    rig = Rig(DefaultBudgets, policy(ANY), keeper())
    rig.problems = [problem, problem]

    rig.settle()
    # What was carried out without an answer is seen.
    assert rig.controller.deadline().keeps_alive is not (problem is NO_ANSWER)
    assert rig.controller.deadline().time_ns == (None if problem is NO_ANSWER else rig.now + SECOND)
    rig.wait(1)
    assert rig.controller.deadline().keeps_alive is not (problem is not UNAVAILABLE)
    rig.wait(600)

    assert list(budgets(rig)) == ["web-default"]
    assert rig.controller.deadline().time_ns is None
    assert not rig.controller.deadline().keeps_alive


@pytest.mark.parametrize("problem", [NO_ANSWER, UNAVAILABLE, CONFLICT])
def test_changes_and_deletions_that_fail_are_tried_again(problem: Problem) -> None:
    rig = rig_of(policy(ANY), keeper())

    rig.problems = [problem]
    rig.sync(policy({"maxUnavailable": 2}))
    rig.wait(2)
    assert budgets(rig) == {"web-default": numbers(maxUnavailable=2)}
    rig.problems = [problem]
    rig.sync(policy())
    rig.wait(2)
    assert budgets(rig) == {}


def test_a_change_of_a_budget_that_changed_meanwhile_is_made_again() -> None:
    rig = rig_of(policy(ANY), keeper())
    taken = {"metadata": {"labels": None}}

    rig.before_write = lambda: rig.store.patch("PodDisruptionBudget", "default/web-default", taken, "merge")
    rig.sync(policy({"maxUnavailable": 2}))
    rig.wait(60)

    assert budgets(rig) == {"web-default": numbers(maxUnavailable=1)}


def test_a_creation_whose_effect_is_seen_late_is_not_made_twice() -> None:
    rig = Rig(DefaultBudgets, policy(ANY), keeper())
    rig.held = {"PodDisruptionBudget"}

    rig.wait(1)
    rig.sync(policy({"maxUnavailable": 2}))
    rig.wait(5)
    rig.held = set()
    rig.wait(600)

    assert budgets(rig) == {"web-default": numbers(maxUnavailable=2)}


@pytest.mark.parametrize("crash_after", [0, 1, 2])
def test_a_new_controller_goes_on_where_the_old_one_stopped(crash_after: int) -> None:
    objects = [keeper(name=name, labels={"app": name}) for name in ("a", "b")]
    rig = Rig(DefaultBudgets, policy(ANY), *objects)
    rig.carry_out(rig.controller.handle(Tick(), rig.now)[:crash_after])

    rig.restart()
    rig.settle()
    assert sorted(budgets(rig)) == ["a-default", "b-default"]
    report = len(rig.log)
    rig.restart()
    rig.settle()

    assert len(rig.log) == report == 2


def test_repeated_observations_change_no_budget() -> None:
    rig = rig_of(policy(ANY), keeper())

    for kind, key in (("Deployment", "default/web"), ("PodDisruptionBudget", "default/web-default")):
        one = rig.store.get(kind, key)
        rig.controller.handle(Changed(one.object, one.raw), rig.now)

    assert rig.controller.deadline().time_ns is None


def test_the_numbers_follow_the_priority_that_rules_give_to_the_pods() -> None:
    team = {"namespaceSelector": {"matchLabels": {"team": "core"}}, "whenStated": "Replace"}
    rules = [{"name": "core", "priorityClassName": "high", **team}]
    rig = rig_of(priority_class("high", 1000), policy(*ENTRIES, priorityRules=rules), keeper())
    assert budgets(rig) == {"web-default": numbers(maxUnavailable="50%")}

    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "core"}}}
    rig.store.create(place, now=rig.now)
    rig.settle()

    assert budgets(rig) == {"web-default": numbers(minAvailable="90%")}
