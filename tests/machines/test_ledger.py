"""The account of disruptions: what is recorded of each, and when it is let go."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from podium.api.disruption_policy import SCHEDULER
from podium.api.meta import OwnerReference
from podium.api.pod import Pod, PodCondition
from podium.api.times import format_time
from podium.machines.actions import DeleteObject, Evict, Record, ReportStatus
from podium.machines.grounds import Grounds
from podium.machines.ledger.disruption import Alternatives, Beneficiary, Disruption, Loss, Replacement, disruption_of
from podium.machines.ledger.ledger import MOST_OPEN, DisruptionLedger
from podium.machines.observations import Problem
from podium.machines.rescheduling.names import DESCHEDULED
from tests.builders import pod

_SECOND = 10**9
_GROUNDS = Grounds("the only candidate", "1 victim for room on n", "n", 1)
_TARGET = PodCondition(
    type="DisruptionTarget",
    status="True",
    reason="PreemptionByScheduler",
    message="default-scheduler: preempting to accommodate a higher priority pod",
)


@dataclass
class Told:
    """A ledger, the pods that there are, and what it has told of."""

    counts_deletions: bool = False
    pods: dict[str, Pod] = field(default_factory=dict)
    records: dict[int, Disruption] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger = DisruptionLedger(self._keep, self.pods.get, counts_deletions=self.counts_deletions)

    def put(self, found: Pod, at_s: int = 0, *, is_added: bool = False) -> Pod:
        """A pod is made, or changes."""
        self.pods[found.key] = found
        self.ledger.changed(found, at_s * _SECOND, is_added=is_added)
        return found

    def go(self, found: Pod, at_s: int) -> None:
        """A pod is gone."""
        self.pods.pop(found.key, None)
        self.ledger.gone(found, at_s * _SECOND)

    def end(self, found: Pod, at_s: int, reason: str = "PreemptionByScheduler") -> Pod:
        """A pod begins to end, marked for a reason ("" for none)."""
        return self.put(ending(found, at_s, reason), at_s)

    def preempt(self, victim: Pod, preemptor: Pod, at_s: int, grounds: Grounds | None = _GROUNDS) -> Pod:
        """A scheduler marks a pod and deletes it for another."""
        mark = ReportStatus("Pod", victim.key, victim.metadata.uid, preemptor.key, (_TARGET,), grounds=grounds)
        self.ledger.asked(mark, SCHEDULER)
        self.ledger.asked(DeleteObject("Pod", victim.key, victim.metadata.uid, preemptor.key), SCHEDULER)
        return self.end(victim, at_s)

    def came(self) -> list[str]:
        """The replacements, "" for none."""
        return [record.replacement.pod if record.replacement else "" for record in self.records.values()]

    def _keep(self, record: Disruption) -> None:
        self.records[record.id] = record


def running(name: str, *, owner: str = "", cpu: str | None = None) -> Pod:
    """A pod that has run on a node since 1970."""
    found = pod(name, on="n", cpu=cpu)
    status = replace(found.status, phase="Running", start_time=format_time(0))
    return owned(replace(found, status=status), owner)


def owned(found: Pod, owner: str) -> Pod:
    """The same pod of a ReplicaSet, on its own for ""."""
    if not owner:
        return found
    reference = OwnerReference(kind="ReplicaSet", name=owner, uid=f"uid-{owner}", controller=True)
    return replace(found, metadata=replace(found.metadata, owner_references=(reference,)))


def ending(found: Pod, at_s: int, reason: str) -> Pod:
    """The pod within its grace period of ten seconds."""
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
    """The pod, running and ready on a node."""
    condition = PodCondition(type="Ready", status="True")
    return replace(
        found,
        spec=replace(found.spec, node_name=node),
        status=replace(found.status, phase="Running", conditions=(condition,)),
    )


def test_a_preemption_is_told_with_all_that_became_of_it() -> None:
    told = Told()
    victim = told.put(running("low", owner="web", cpu="500m"))
    preemptor = told.put(pod("high", priority=100))

    gone = told.preempt(victim, preemptor, 60)
    told.put(owned(pod("low-2"), "web"), 60, is_added=True)
    told.go(gone, 65)
    told.put(ready(preemptor, "n"), 65)
    told.put(ready(owned(pod("low-2"), "web"), "m"), 90)

    assert told.records == {
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
            replacement=Replacement(
                pod="default/low-2", uid=pod("low-2").metadata.uid, node="m", placed_after=30, ready_after=30
            ),
        )
    }
    assert told.records[1].in_vain == ""
    assert disruption_of(told.records[1].to_dict()) == told.records[1]


def test_a_preemptor_that_goes_elsewhere_or_is_deleted_took_room_in_vain() -> None:
    for what, found in (("elsewhere", "default/high was placed on m"), ("gone", "default/high was gone before it ran")):
        told = Told()
        preemptor = told.put(pod("high", priority=1))
        told.preempt(told.put(running("low")), preemptor, 1)
        if what == "gone":
            told.go(preemptor, 2)
        else:
            told.put(ready(preemptor, "m"), 2)

        assert told.records[1].in_vain == found


def test_victims_of_an_earlier_plan_went_in_vain_where_more_are_needed_and_those_of_one_plan_do_not() -> None:
    told = Told()
    preemptor = told.put(pod("high", priority=1))
    first, second = told.put(running("a")), told.put(running("b"))
    told.go(told.preempt(first, preemptor, 1), 2)
    told.preempt(second, preemptor, 3)
    assert [record.in_vain for record in told.records.values()] == ["", ""]

    told.preempt(told.put(running("c")), preemptor, 4, Grounds("the only candidate", room="n"))

    assert [record.in_vain for record in told.records.values()] == ["default/high needed further victims", "", ""]


def test_an_eviction_whose_replacement_comes_back_was_in_vain() -> None:
    told = Told()
    victim = told.put(running("a", owner="web"))
    told.ledger.asked(Evict(victim.key, victim.metadata.uid, "rescheduler", "rescheduler"), "rescheduler")
    told.end(victim, 1, "EvictionByEvictionAPI")
    told.ledger.asked(Record(victim.key, victim.metadata.uid, "Normal", DESCHEDULED, "moved off n"), "rescheduler")
    told.put(owned(pod("a-2"), "web"), 1, is_added=True)
    told.put(ready(owned(pod("a-2"), "web"), "n"), 2)

    record = told.records[1]
    assert (record.cause, record.by, record.rule) == ("rescheduler", "rescheduler", "moved off n")
    assert record.in_vain == "default/a-2 came back to n"


def test_the_cause_follows_from_the_condition_and_from_who_asked() -> None:
    for reason, component, cause in (
        ("EvictionByEvictionAPI", "drain", "drain"),
        ("EvictionByEvictionAPI", "autoscaler", "autoscaler"),
        ("EvictionByEvictionAPI", "", "eviction"),
        ("DeletionByTaintManager", "", "taint"),
        ("DeletionByPodGC", "", "node-gone"),
        ("", "drain", "drain"),
    ):
        told = Told()
        found = told.put(running("a"))
        if component:
            told.ledger.asked(DeleteObject("Pod", found.key, found.metadata.uid, component), component)
        told.end(found, 1, reason)

        assert [record.cause for record in told.records.values()] == [cause]


def test_a_pod_that_its_kubelet_ends_has_ended_at_once_and_is_told_once() -> None:
    told = Told()
    found = told.put(running("a"))
    target = replace(_TARGET, reason="TerminationByKubelet", message="low on memory")
    failed = replace(found, status=replace(found.status, phase="Failed", conditions=(target,)))
    for at_s in (3, 4):
        told.put(failed, at_s)
    told.go(failed, 9)

    assert [(one.cause, one.rule, one.loss.ended_after) for one in told.records.values()] == [
        ("pressure", "low on memory", 0)
    ]


def test_a_deletion_counts_only_where_asked_and_never_that_of_a_workload() -> None:
    for counts, by, number in ((False, "alice", 0), (True, "alice", 1), (True, "ReplicaSet default/web", 0)):
        told = Told(counts_deletions=counts)
        found = told.put(running("a"))
        told.ledger.asked(DeleteObject("Pod", found.key, found.metadata.uid, by), by)
        told.end(found, 1, "")

        assert len(told.records) == number


def test_a_pod_that_ends_by_itself_or_never_had_a_node_is_not_disrupted() -> None:
    told = Told(counts_deletions=True)
    done = told.put(running("a"))
    done = told.put(replace(done, status=replace(done.status, phase="Succeeded")), 1)
    told.end(done, 2, "")
    told.end(told.put(pod("b")), 2, "")

    assert told.records == {}


def test_a_pod_that_disappears_without_a_word_is_disrupted_if_it_was_marked() -> None:
    told = Told()
    found = told.put(running("a"))
    marked = told.put(replace(found, status=replace(found.status, conditions=(_TARGET,))), 1)
    told.go(marked, 2)

    assert [(one.cause, one.loss.ended_after) for one in told.records.values()] == [("preemption", 0)]


def test_an_eviction_that_was_refused_says_nothing_of_what_comes_later() -> None:
    told = Told()
    found = told.put(running("a"))
    evict = Evict(found.key, found.metadata.uid, "drain", "drain")
    told.ledger.asked(evict, "drain")
    told.ledger.answered(evict, Problem(429, "TooManyRequests", "no"))
    told.end(found, 1, "EvictionByEvictionAPI")

    assert [record.cause for record in told.records.values()] == ["eviction"]


def test_work_since_a_checkpoint_is_what_is_lost() -> None:
    told = Told()
    found = told.put(running("a", cpu="2"))
    saved = {"podium.dev/checkpoint-time": format_time(40 * _SECOND)}
    found = told.put(replace(found, metadata=replace(found.metadata, annotations=saved)))
    told.end(found, 100)

    loss = told.records[1].loss
    assert (loss.ran, loss.lost, loss.work) == (100, 60, {"cpu": 120})


def test_a_replacement_that_goes_without_a_node_makes_room_for_the_next() -> None:
    told = Told()
    told.end(told.put(running("a", owner="web")), 1)
    first = told.put(owned(pod("b"), "web"), 2, is_added=True)
    told.go(first, 3)
    assert told.came() == [""]
    told.put(owned(pod("c"), "web"), 4, is_added=True)

    assert told.came() == ["default/c"]


def test_each_victim_has_one_replacement_and_a_scale_up_is_none() -> None:
    told = Told()
    told.end(told.put(running("a", owner="web")), 1)
    for name in ("b", "c"):
        told.put(owned(pod(name), "web"), 2, is_added=True)

    assert told.came() == ["default/b"]


def test_what_never_comes_is_awaited_for_a_day() -> None:
    told = Told()
    told.go(told.end(told.put(running("a", owner="web")), 1), 2)
    told.go(told.end(told.put(running("b", owner="web")), 90_000), 90_001)
    told.put(owned(pod("c"), "web"), 90_002, is_added=True)

    assert told.came() == ["", "default/c"]


def test_nothing_is_kept_of_what_is_over_and_no_more_than_so_much_of_what_is_not() -> None:
    told = Told()
    preemptor = told.put(pod("high", priority=1))
    told.go(told.preempt(told.put(running("low")), preemptor, 1), 2)
    told.put(ready(preemptor, "n"), 3)
    kept = (told.ledger._open, told.ledger._ending, told.ledger._victims_for, told.ledger._replaces)
    assert [len(one) for one in kept] == [0, 0, 0, 0]
    assert not told.ledger._awaited
    assert not told.ledger._announced._found

    for number in range(MOST_OPEN + 5):
        told.go(told.end(told.put(running(f"p{number}", owner="web")), 1), 2)

    assert len(told.ledger._open) == MOST_OPEN
    assert len(told.records) == MOST_OPEN + 6
