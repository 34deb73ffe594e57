"""Disruptions counted by Podium if the API server does not count them."""

import json
from typing import Any

from msgspec.structs import replace

from podium.api.budget_limits import full_ns, rate_of
from podium.api.disruption_policy import DISRUPTION_RATE, Cap
from podium.api.pod import Pod, PodCondition
from podium.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from podium.api.times import format_exact_time
from podium.controllers.actions import Action, PatchObject
from podium.controllers.disruption.disruption_counts import DisruptionCounter
from podium.controllers.observations import ActionFinished, Changed, Deleted, Problem, Tick
from tests.builders import PREEMPTED, budget, pod, scheduler_cap
from tests.controllers.driving import SECOND

HOUR = 3_600 * SECOND
NOW = 1_000 * HOUR


def healthy(name: str = "web", **more: Any) -> Pod:
    made = pod(name, labels={"app": "web"}, on="n1", **more)
    ready = PodCondition(type="Ready", status="True")
    return replace(made, status=replace(made.status, phase="Running", conditions=(ready,)))


def ending(one: Pod, *, preempted: bool = False, reason: str = "") -> Pod:
    conditions = one.status.conditions
    if preempted:
        conditions = (*conditions, PREEMPTED)
    if reason:
        conditions = (*conditions, replace(PREEMPTED, reason=reason))
    metadata = replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return replace(one, metadata=metadata, status=replace(one.status, conditions=conditions))


def rated(rate: str = "2/1h") -> PodDisruptionBudget:
    made = budget("web", "app=web", 1, rate=rate)
    return replace(made, status=replace(made.status, disruption_rate=None))


def annotated(one: PodDisruptionBudget, text: str) -> PodDisruptionBudget:
    annotations = {**one.metadata.annotations, DISRUPTION_RATE: text}
    return replace(one, metadata=replace(one.metadata, annotations=annotations))


def machine(*objects: Any) -> DisruptionCounter:
    counts = DisruptionCounter()
    for each in objects:
        counts.handle(Changed(each), NOW)
    return counts


def disrupt(counts: DisruptionCounter, name: str, **how: Any) -> None:
    counts.handle(Changed(healthy(name)), NOW)
    counts.handle(Changed(ending(healthy(name), **how)), NOW)


def written(counts: DisruptionCounter, now: int = NOW) -> list[PatchObject]:
    actions: list[Action] = counts.handle(Tick(), now) if counts.deadline().time_ns is not None else []
    return [action for action in actions if isinstance(action, PatchObject)]


def annotation(action: PatchObject) -> str:
    return str(action.patch["metadata"]["annotations"][DISRUPTION_RATE])


def test_a_healthy_pod_that_begins_to_end_takes_a_token_of_its_budgets_rate() -> None:
    counts = machine(rated())

    disrupt(counts, "web")
    [write] = written(counts)

    assert (write.kind, write.key, write.subresource) == ("PodDisruptionBudget", "default/web", "")
    status = json.loads(annotation(write))
    assert (status["max"], status["available"]) == ("2/1h", 1)


def test_written_counts_are_read_by_every_process() -> None:
    counts = machine(rated())
    disrupt(counts, "web")
    [write] = written(counts)

    shown = annotated(rated(), annotation(write))

    rate = rate_of(shown)
    assert rate is not None
    assert full_ns(shown, rate) == NOW + HOUR // 2
    successor = machine(shown)
    disrupt(successor, "other")
    assert json.loads(annotation(written(successor)[0]))["available"] == 0


def test_several_are_counted_before_the_first_is_seen_and_an_old_reading_takes_none_back() -> None:
    counts = machine(rated())
    disrupt(counts, "a")
    [first] = written(counts)
    disrupt(counts, "b")
    counts.handle(Changed(annotated(rated(), annotation(first))), NOW)

    assert json.loads(annotation(written(counts)[0]))["available"] == 0


def test_pods_that_were_not_healthy_or_were_ending_before_or_have_no_budget_do_not_count() -> None:
    counts = machine(rated())
    unready = replace(healthy("unready"), status=replace(healthy().status, conditions=()))
    counts.handle(Changed(unready), NOW)
    counts.handle(Changed(ending(unready)), NOW)
    counts.handle(Changed(ending(healthy("old"))), NOW)
    other = pod("other", on="n1")
    counts.handle(Changed(replace(other, status=healthy().status)), NOW)
    counts.handle(Changed(ending(replace(other, status=healthy().status))), NOW)

    assert written(counts) == []


def test_a_budget_without_a_rate_is_left_alone() -> None:
    counts = machine(budget("web", "app=web", 1))

    disrupt(counts, "web")

    assert written(counts) == []


def test_a_preemption_takes_a_token_of_the_schedulers_cap() -> None:
    counts = machine(budget("web", "app=web", 1), scheduler_cap("1/1h"))

    disrupt(counts, "a", preempted=True)
    disrupt(counts, "b")
    [write] = written(counts)

    assert (write.kind, write.subresource) == ("DisruptionPolicy", "status")
    [cap] = write.patch["status"]["caps"]
    assert cap["component"] == "scheduler"


def test_a_cap_on_all_components_in_a_namespace_counts_evictions_too_and_deletions_not() -> None:
    each = scheduler_cap("3/1h")
    each = replace(each, spec=replace(each.spec, caps=(Cap(max="3/1h", per="Namespace"),)))
    counts = machine(budget("web", "app=web", 1), each)

    disrupt(counts, "a", preempted=True)
    disrupt(counts, "b", reason="EvictionByEvictionAPI")
    disrupt(counts, "c")
    [write] = written(counts)

    assert write.patch["status"]["caps"] == [
        {"namespace": "default", "fullTime": format_exact_time(NOW + 2 * HOUR // 3)}
    ]


def test_failed_writes_of_counts_are_retried() -> None:
    counts = machine(rated())
    disrupt(counts, "web")
    [write] = written(counts)

    counts.handle(ActionFinished(write, Problem(500, "InternalError", "oops")), NOW)
    assert written(counts) == []
    [again] = written(counts, NOW + 2 * SECOND)

    assert json.loads(annotation(again)) == json.loads(annotation(write))
    counts.handle(ActionFinished(again), NOW)
    assert counts.deadline().time_ns is None


def test_deleted_objects_leave_no_counts() -> None:
    counts = machine(rated(), healthy(), scheduler_cap("1/1h"))
    for each in (healthy(), rated(), scheduler_cap("1/1h")):
        counts.handle(Deleted(each), NOW)

    assert not counts._healthy
    assert not counts._budgets
    assert not counts._full
    assert counts.deadline().time_ns is None


def test_invalid_rate_annotations_are_ignored() -> None:
    for text in ("", "{", "[]", '{"max": "x"}', '{"max": "1/1h", "fullTime": "soon"}'):
        shown = annotated(rated(), text)
        rate = rate_of(shown)
        assert rate is not None
        assert full_ns(shown, rate) == 0
    assert PodDisruptionBudgetStatus().disruption_rate is None
