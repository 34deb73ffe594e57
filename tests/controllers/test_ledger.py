"""The ledger of disruptions: the record of each one, and when it is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import pytest
from msgspec.structs import replace

from podium.api.disruption_policy import SCHEDULER
from podium.api.meta import Kubernetes, ObjectMeta, OwnerReference
from podium.api.pod import Pod, PodCondition
from podium.api.times import format_time
from podium.api.workloads import ReplicaSet, ReplicaSetSpec, ReplicaSetStatus
from podium.app.bench.measurement import operations
from podium.controllers.actions import DESCHEDULED, GANG_RELEASE, DeleteObject, Evict, Rationale, Record, ReportStatus
from podium.controllers.ledger import ledger
from podium.controllers.ledger.disruption import (
    Alternatives,
    Beneficiary,
    Cause,
    Disruption,
    EarlierRecords,
    FollowUp,
    Loss,
    ReplacementPod,
    disruption_of,
)
from podium.controllers.ledger.ledger import DisruptionLedger, DisruptionRequest, DisruptionRequests
from podium.controllers.ledger.outcomes import MOST_OPEN
from podium.controllers.observations import Problem
from tests.builders import pod

_SECOND = 10**9
_GROUNDS = Rationale("the only candidate", "1 victim for room on n", "n", 1)
_TARGET = PodCondition(
    type="DisruptionTarget",
    status="True",
    reason="PreemptionByScheduler",
    message="default-scheduler: preempting to accommodate a higher priority pod",
)


@dataclass
class LedgerRig:
    """A ledger, the existing pods, and its records."""

    hears_requests: bool = True
    pods: dict[str, Pod] = field(default_factory=dict)
    records: dict[int, Disruption] = field(default_factory=dict)
    trails: dict[int, FollowUp] = field(default_factory=dict)
    others: dict[tuple[str, str], Kubernetes] = field(default_factory=dict)
    since: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger = DisruptionLedger(
            self._keep, self._find, hears_requests=self.hears_requests, last_id=len(self.records)
        )

    def again(self, at_s: int, *, shown: bool = True) -> LedgerRig:
        """Another life of it, which begins with what this one has written down, and with the pods that there are."""
        found = LedgerRig(self.hears_requests, self.pods if shown else {}, dict(self.records), {}, self.others)
        came = frozenset(record.replacement.uid for record in self.records.values() if record.replacement)
        followed = tuple((self.records[number], trail) for number, trail in sorted(self.trails.items()))
        found.trails.update(self.trails)
        for known in found.pods.values():
            found.ledger.known(known)
        found.ledger.resume(EarlierRecords(followed, came), found.pods.values(), self._since, at_s * _SECOND)
        return found

    def put(self, found: Pod, at_s: int = 0, *, is_added: bool = False) -> Pod:
        """Create or change a pod."""
        self.pods[found.key] = found
        self.ledger.on_update(found, at_s * _SECOND, is_added=is_added)
        return found

    def go(self, found: Pod, at_s: int) -> None:
        """Remove a pod."""
        self.pods.pop(found.key, None)
        self.ledger.on_delete(found, at_s * _SECOND)

    def end(self, found: Pod, at_s: int, reason: str = "PreemptionByScheduler") -> Pod:
        """Begin to end a pod, with a disruption reason ("" for none)."""
        return self.put(ending(found, at_s, reason), at_s)

    def preempt(self, victim: Pod, preemptor: Pod, at_s: int, rationale: Rationale | None = _GROUNDS) -> Pod:
        """Mark a pod and delete it for another one, as a scheduler."""
        mark = ReportStatus("Pod", victim.key, victim.metadata.uid, preemptor.key, (_TARGET,), rationale=rationale)
        self.ledger.on_action(mark, SCHEDULER)
        self.ledger.on_action(DeleteObject("Pod", victim.key, victim.metadata.uid, preemptor.key), SCHEDULER)
        return self.end(victim, at_s)

    def came(self) -> list[str]:
        """Return the replacements, "" for none."""
        return [record.replacement.pod if record.replacement else "" for record in self.records.values()]

    def _keep(self, record: Disruption, trail: FollowUp | None) -> None:
        self.records[record.id] = record
        if trail is None:
            self.trails.pop(record.id, None)
        else:
            self.trails[record.id] = trail

    def _since(self, found: Pod, condition: str) -> int | None:
        at_s = self.since.get((found.metadata.name, condition))
        return None if at_s is None else at_s * _SECOND

    def _find(self, kind: str, key: str) -> Kubernetes | None:
        return self.pods.get(key) if kind == "Pod" else self.others.get((kind, key))


def running(name: str, *, owner: str = "", cpu: str | None = None) -> Pod:
    """Return a pod that has run on a node since 1970."""
    found = pod(name, on="n", cpu=cpu)
    status = replace(found.status, phase="Running", start_time=format_time(0))
    return owned(replace(found, status=status), owner)


def owned(found: Pod, owner: str) -> Pod:
    """Return the same pod of a ReplicaSet, on its own for ""."""
    if not owner:
        return found
    reference = OwnerReference(kind="ReplicaSet", name=owner, uid=f"uid-{owner}", controller=True)
    return replace(found, metadata=replace(found.metadata, owner_references=(reference,)))


def ending(found: Pod, at_s: int, reason: str) -> Pod:
    """Return the pod within its grace period of ten seconds."""
    meta = replace(
        found.metadata,
        deletion_timestamp=format_time((at_s + 10) * _SECOND),
        deletion_grace_period_seconds=10,
    )
    conditions = (replace(_TARGET, reason=reason, message=""),) if reason else ()
    if reason == "PreemptionByScheduler":
        conditions = (_TARGET,)
    return replace(found, metadata=meta, status=replace(found.status, conditions=conditions))


def ready(found: Pod, node: str) -> Pod:
    """Return the pod, running and ready on a node."""
    condition = PodCondition(type="Ready", status="True")
    return replace(
        found,
        spec=replace(found.spec, node_name=node),
        status=replace(found.status, phase="Running", conditions=(condition,)),
    )


def test_the_ledger_records_the_whole_course_of_a_preemption() -> None:
    report = LedgerRig()
    victim = report.put(running("low", owner="web", cpu="500m"))
    preemptor = report.put(pod("high", priority=100))

    gone = report.preempt(victim, preemptor, 60)
    report.put(owned(pod("low-2"), "web"), 60, is_added=True)
    report.go(gone, 65)
    report.put(ready(preemptor, "n"), 65)
    report.put(ready(owned(pod("low-2"), "web"), "m"), 90)

    assert report.records == {
        1: Disruption(
            id=1,
            time=60,
            pod="default/low",
            uid=victim.metadata.uid,
            node="n",
            cause="preemption",
            owner="ReplicaSet default/web",
            by="default-scheduler",
            rule="the only candidate",
            plan="1 victim for room on n",
            alternatives=Alternatives(candidates=1),
            beneficiary=Beneficiary(
                pod="default/high",
                uid=preemptor.metadata.uid,
                priority=100,
                room="n",
                outcome="placed",
                node="n",
                placed_after=5,
            ),
            loss=Loss(ran=60, lost=60, requests={"cpu": 0.5}, work={"cpu": 30}, grace=10, ended_after=5),
            replacement=ReplacementPod(
                pod="default/low-2", uid=pod("low-2").metadata.uid, node="m", placed_after=30, ready_after=30
            ),
        )
    }
    assert report.records[1].in_vain == ""
    assert disruption_of(report.records[1].to_dict()) == report.records[1]


def test_a_preemptor_that_is_placed_elsewhere_or_deleted_wasted_its_victims() -> None:
    for what, found in (("elsewhere", "default/high was placed on m"), ("gone", "default/high was gone before it ran")):
        report = LedgerRig()
        preemptor = report.put(pod("high", priority=1))
        report.preempt(report.put(running("low")), preemptor, 1)
        if what == "gone":
            report.go(preemptor, 2)
        else:
            report.put(ready(preemptor, "m"), 2)

        assert report.records[1].in_vain == found


def test_victims_of_an_insufficient_earlier_plan_were_wasted() -> None:
    report = LedgerRig()
    preemptor = report.put(pod("high", priority=1))
    first, second = report.put(running("a")), report.put(running("b"))
    report.go(report.preempt(first, preemptor, 1), 2)
    report.preempt(second, preemptor, 3)
    assert [record.in_vain for record in report.records.values()] == ["", ""]

    report.preempt(report.put(running("c")), preemptor, 4, Rationale("the only candidate", room="n"))

    assert [record.in_vain for record in report.records.values()] == ["default/high needed further victims", "", ""]


def test_an_eviction_is_wasted_when_the_replacement_returns() -> None:
    report = LedgerRig()
    victim = report.put(running("a", owner="web"))
    report.ledger.on_action(Evict(victim.key, victim.metadata.uid, "rescheduler", "rescheduler"), "rescheduler")
    report.end(victim, 1, "EvictionByEvictionAPI")
    report.ledger.on_action(
        Record(victim.key, victim.metadata.uid, "Normal", DESCHEDULED, "moved off n"), "rescheduler"
    )
    report.put(owned(pod("a-2"), "web"), 1, is_added=True)
    report.put(ready(owned(pod("a-2"), "web"), "n"), 2)

    record = report.records[1]
    assert (record.cause, record.by, record.rule) == ("rescheduler", "rescheduler", "moved off n")
    assert record.in_vain == "default/a-2 came back to n"


def test_the_cause_depends_on_the_condition_and_the_component() -> None:
    for reason, component, cause in (
        ("EvictionByEvictionAPI", "drain", "drain"),
        ("EvictionByEvictionAPI", "autoscaler", "autoscaler"),
        ("EvictionByEvictionAPI", "", "eviction"),
        ("DeletionByTaintManager", "", "taint"),
        ("DeletionByDeviceTaintManager", "", "taint"),
        ("DeletionByPodGC", "", "node-gone"),
        ("", "drain", "drain"),
    ):
        report = LedgerRig()
        found = report.put(running("a"))
        if component:
            report.ledger.on_action(DeleteObject("Pod", found.key, found.metadata.uid, component), component)
        report.end(found, 1, reason)

        assert [record.cause for record in report.records.values()] == [cause]


def test_a_gang_that_gives_its_nodes_back_preempts_no_pod() -> None:
    report = LedgerRig()
    found = report.put(running("a", owner="web"))
    evicted = Evict(found.key, found.metadata.uid, GANG_RELEASE, SCHEDULER, rationale=Rationale("the rule", "2 pods"))
    report.ledger.on_action(evicted, "default-scheduler")
    report.end(found, 1, "EvictionByEvictionAPI")

    (record,) = report.records.values()
    assert (record.cause, record.by, record.rule, record.plan) == (
        "gang-release",
        "default-scheduler",
        "the rule",
        "2 pods",
    )
    assert record.beneficiary is None


def test_a_pod_that_its_kubelet_ends_has_ended_at_once_and_is_reported_once() -> None:
    report = LedgerRig()
    found = report.put(running("a"))
    target = replace(_TARGET, reason="TerminationByKubelet", message="low on memory")
    failed = replace(found, status=replace(found.status, phase="Failed", conditions=(target,)))
    for at_s in (3, 4):
        report.put(failed, at_s)
    report.go(failed, 9)

    assert [(one.cause, one.rule, one.loss.ended_after) for one in report.records.values()] == [
        ("pressure", "low on memory", 0)
    ]


def test_external_deletions_count_and_those_of_components_do_not() -> None:
    report = LedgerRig()
    by_alice, by_its_owner, after_error = (report.put(running(name)) for name in ("a", "b", "c"))
    report.ledger.on_client_request(by_alice.metadata.uid, "alice")
    owner = "ReplicaSet default/web"
    report.ledger.on_action(DeleteObject("Pod", by_its_owner.key, by_its_owner.metadata.uid, owner), owner)
    for found in (by_alice, by_its_owner, after_error):
        report.end(found, 1, "")

    assert [(found.pod, found.cause, found.by) for found in report.records.values()] == [
        ("default/a", "deletion", "alice")
    ]


def test_a_rejected_disruption_does_not_affect_later_ones() -> None:
    report = LedgerRig()
    found = report.put(running("a"))
    report.ledger.on_client_request(found.metadata.uid, "alice")
    report.ledger.on_refused(found.metadata.uid)
    report.end(found, 1, "")

    assert report.records == {}


@pytest.mark.parametrize("hears_requests", [True, False])
@pytest.mark.parametrize(
    ("replicas", "has", "version", "counts_where_heard", "counts_where_seen"),
    [
        (3, 3, "", True, True),
        # It is being scaled down.
        (2, 3, "", False, False),
        (0, 0, "", False, False),
        # It was written after the pod, as a controller does that has deleted some.
        (3, 3, "9", True, False),
    ],
)
def test_a_deletion_is_a_workloads_own_where_it_has_more_pods_than_it_wants(
    *, replicas: int, has: int, version: str, counts_where_heard: bool, counts_where_seen: bool, hears_requests: bool
) -> None:
    report = LedgerRig(hears_requests)
    owner = ReplicaSet(
        metadata=ObjectMeta(name="web", namespace="default", uid="uid-web", resource_version=version),
        spec=ReplicaSetSpec(replicas=replicas),
        status=ReplicaSetStatus(replicas=has),
    )
    report.others[("ReplicaSet", "default/web")] = owner
    found = report.put(running("a", owner="web"))
    found = replace(found, metadata=replace(found.metadata, resource_version="8"))
    if hears_requests:
        report.ledger.on_client_request(found.metadata.uid, "alice")
    report.end(found, 1, "")

    expected = counts_where_heard if hears_requests else counts_where_seen
    assert [record.cause for record in report.records.values()] == ["deletion"] * expected


def test_only_known_intent_counts_when_the_deleting_user_is_unknown() -> None:
    report = LedgerRig(hears_requests=False)
    of_unknown, gone_at_once, alone = (
        report.put(running("a", owner="web")),
        report.put(running("b")),
        report.put(running("c")),
    )
    report.end(of_unknown, 1, "")
    report.go(gone_at_once, 1)
    report.end(alone, 1, "")

    assert [record.pod for record in report.records.values()] == ["default/c"]


def test_a_forced_end_counts_when_the_deleting_user_is_unknown() -> None:
    report = LedgerRig(hears_requests=False)
    forced, at_once, out_of_sight = (report.put(running(name)) for name in ("a", "b", "c"))
    report.go(report.end(forced, 1, ""), 1)
    report.go(ending(at_once, 2, ""), 2)
    report.go(out_of_sight, 3)

    assert [(record.pod, record.cause, record.loss.ended_after) for record in report.records.values()] == [
        ("default/a", "deletion", 0),
        ("default/b", "deletion", 0),
    ]


def test_a_new_life_follows_what_an_earlier_one_has_left() -> None:
    report = LedgerRig()
    preemptor = report.put(pod("high", priority=1))
    gone = report.preempt(report.put(running("low", owner="web")), preemptor, 60)
    kept = report.put(owned(pod("low-2"), "web"), 60, is_added=True)

    later = report.again(70)
    later.go(gone, 75)
    later.put(ready(preemptor, "n"), 80)
    later.put(ready(kept, "m"), 90)

    (record,) = later.records.values()
    assert record.loss.ended_after == 15
    assert record.beneficiary is not None
    assert (record.beneficiary.outcome, record.beneficiary.placed_after) == ("placed", 20)
    assert record.replacement == ReplacementPod(
        pod="default/low-2", uid=kept.metadata.uid, node="m", placed_after=30, ready_after=30
    )
    assert later.trails == {}


def test_conditions_tell_the_outcome_of_pods_between_two_processes() -> None:
    report = LedgerRig()
    preemptor = report.put(pod("high", priority=1))
    gone = report.preempt(report.put(running("low", owner="web")), preemptor, 60)

    del report.pods[gone.key]
    report.pods[preemptor.key] = ready(preemptor, "n")
    came = ready(owned(pod("low-2"), "web"), "m")
    report.since = {("high", "PodScheduled"): 66, ("low-2", "PodScheduled"): 70, ("low-2", "Ready"): 85}
    report.pods[came.key] = replace(came, metadata=replace(came.metadata, creation_timestamp=format_time(60 * _SECOND)))
    later = report.again(1_000)

    (record,) = later.records.values()
    assert record.loss.ended_after == 940
    assert record.beneficiary is not None
    assert record.beneficiary.placed_after == 6
    assert record.replacement is not None
    assert (record.replacement.pod, record.replacement.placed_after, record.replacement.ready_after) == (
        "default/low-2",
        10,
        25,
    )
    assert later.trails == {}


def test_a_pod_gone_between_two_processes_wasted_its_room_and_is_replaced_by_the_next() -> None:
    report = LedgerRig()
    preemptor = report.put(pod("high", priority=1))
    gone = report.preempt(report.put(running("low", owner="web")), preemptor, 60)
    report.put(owned(pod("low-2"), "web"), 60, is_added=True)
    report.go(gone, 61)

    report.pods.clear()
    later = report.again(100)
    later.put(owned(pod("low-3"), "web"), 101, is_added=True)

    assert [record.in_vain for record in later.records.values()] == ["default/high was gone before it ran"]
    assert later.came() == ["default/low-3"]


def test_a_pod_that_ends_in_two_lives_is_reported_once() -> None:
    report = LedgerRig()
    found = report.end(report.put(running("a")), 1, "EvictionByEvictionAPI")
    later = report.again(2)
    later.put(found, 3)
    later.go(found, 4)

    assert [record.loss.ended_after for record in later.records.values()] == [3]


def test_expectations_of_an_earlier_process_are_dropped_after_a_day() -> None:
    report = LedgerRig()
    report.go(report.end(report.put(running("a", owner="web")), 1), 2)
    later = report.again(90_000)

    assert (later.trails, later.came()) == ({}, [""])


def test_no_pod_comes_in_place_of_two() -> None:
    report = LedgerRig()
    for name in ("a", "b"):
        report.go(report.end(report.put(running(name, owner="web")), 1), 1)
    came = owned(pod("c"), "web")
    came = replace(came, metadata=replace(came.metadata, creation_timestamp=format_time(2 * _SECOND)))
    for at_s, found in ((2, came), (3, ready(came, "m")), (4, ready(came, "m"))):
        report.pods[found.key] = found
        report.ledger.on_update(found, at_s * _SECOND)

    assert report.came() == ["default/c", ""]
    assert report.again(5).came() == ["default/c", ""]


def test_pods_that_end_by_themselves_or_never_had_a_node_are_not_disrupted() -> None:
    report = LedgerRig(hears_requests=False)
    done = report.put(running("a"))
    done = report.put(replace(done, status=replace(done.status, phase="Succeeded")), 1)
    report.end(done, 2, "")
    report.end(report.put(pod("b")), 2, "")

    assert report.records == {}


def test_a_pod_that_disappears_without_a_word_is_disrupted_if_it_was_marked() -> None:
    report = LedgerRig()
    found = report.put(running("a"))
    marked = report.put(replace(found, status=replace(found.status, conditions=(_TARGET,))), 1)
    report.go(marked, 2)

    assert [(one.cause, one.loss.ended_after) for one in report.records.values()] == [("preemption", 0)]


def test_an_eviction_that_was_refused_says_nothing_of_what_comes_later() -> None:
    report = LedgerRig()
    found = report.put(running("a"))
    evict = Evict(found.key, found.metadata.uid, "drain", "drain")
    report.ledger.on_action(evict, "drain")
    report.ledger.on_result(evict, Problem(429, "TooManyRequests", "no"))
    report.end(found, 1, "EvictionByEvictionAPI")

    assert [record.cause for record in report.records.values()] == ["eviction"]


def test_work_since_a_checkpoint_is_what_is_lost() -> None:
    report = LedgerRig()
    found = report.put(running("a", cpu="2"))
    saved = {"podium.dev/checkpoint-time": format_time(40 * _SECOND)}
    found = report.put(replace(found, metadata=replace(found.metadata, annotations=saved)))
    report.end(found, 100)

    loss = report.records[1].loss
    assert (loss.ran, loss.lost, loss.work) == (100, 60, {"cpu": 120})


def test_a_replacement_that_goes_without_a_node_makes_room_for_the_next() -> None:
    report = LedgerRig()
    report.end(report.put(running("a", owner="web")), 1)
    first = report.put(owned(pod("b"), "web"), 2, is_added=True)
    report.go(first, 3)
    assert report.came() == [""]
    report.put(owned(pod("c"), "web"), 4, is_added=True)

    assert report.came() == ["default/c"]


def test_each_victim_has_one_replacement_and_a_scale_up_is_none() -> None:
    report = LedgerRig()
    report.end(report.put(running("a", owner="web")), 1)
    for name in ("b", "c"):
        report.put(owned(pod(name), "web"), 2, is_added=True)

    assert report.came() == ["default/b"]


def test_missing_replacements_are_expected_for_a_day() -> None:
    report = LedgerRig()
    report.go(report.end(report.put(running("a", owner="web")), 1), 2)
    report.go(report.end(report.put(running("b", owner="web")), 90_000), 90_001)
    report.put(owned(pod("c"), "web"), 90_002, is_added=True)

    assert report.came() == ["", "default/c"]


def test_nothing_is_kept_of_what_is_over_and_no_more_than_so_much_of_what_is_not() -> None:
    report = LedgerRig()
    preemptor = report.put(pod("high", priority=1))
    report.go(report.preempt(report.put(running("low")), preemptor, 1), 2)
    report.put(ready(preemptor, "n"), 3)
    fates = report.ledger._open_disruptions
    kept = (fates._open, report.ledger._ending, fates._victims_for, fates._replaces, report.trails)
    assert [len(one) for one in kept] == [0, 0, 0, 0, 0]
    assert not fates._awaited
    assert not report.ledger._announced._found

    for number in range(MOST_OPEN + 5):
        report.go(report.end(report.put(running(f"p{number}", owner="web")), 1), 2)

    assert len(fates._open) == len(report.trails) == MOST_OPEN
    assert len(report.records) == MOST_OPEN + 6


def test_an_irrelevant_pod_costs_the_same_at_any_ledger_size() -> None:
    found = []
    for number in (1, 500):
        report = LedgerRig()
        preemptors = [report.put(pod(f"high{index}", priority=1)) for index in range(number)]
        for index, preemptor in enumerate(preemptors):
            report.go(report.preempt(report.put(running(f"p{index}", owner=f"web{index}")), preemptor, 1), 2)
        other = owned(pod("other", on="n"), "other")
        found.append(sum(operations(partial(report.ledger.on_update, other, 3, is_added=True)).values()))

    assert found[0] == found[1]


@pytest.mark.parametrize(("cause", "is_vain"), [("eviction", True), ("deletion", False), ("preemption", False)])
def test_an_eviction_is_wasted_when_the_pod_returns_unless_intended(cause: Cause, *, is_vain: bool) -> None:
    came = ReplacementPod(pod="default/b", uid="b", node="n")
    record = Disruption(id=1, time=0, pod="default/a", uid="a", node="n", cause=cause, replacement=came)

    assert bool(record.in_vain) is is_vain


def test_the_beneficiary_of_a_disruption_may_become_known_later() -> None:
    report = LedgerRig()
    preemptor = report.put(pod("high", priority=1))
    victim = report.put(running("low"))
    report.end(victim, 1)
    for _ in range(2):
        report.ledger.benefits(victim.metadata.uid, preemptor.key, "")
    report.put(ready(preemptor, "n"), 5)

    beneficiary = report.records[1].beneficiary
    assert beneficiary is not None
    assert (beneficiary.pod, beneficiary.room, beneficiary.outcome, beneficiary.placed_after) == (
        "default/high",
        "n",
        "placed",
        4,
    )


def test_of_requests_that_are_never_carried_out_the_oldest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_MOST", 2)
    requests = DisruptionRequests()
    for uid in ("a", "b", "a", "c"):
        requests.put(uid, DisruptionRequest("drain"))

    assert [uid for uid in ("a", "b", "c") if requests.take(uid)] == ["a", "c"]
