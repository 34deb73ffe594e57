"""When entries are removed from the avoid lists of nodes."""

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.avoid_list import (
    PREFER_AVOID_PODS,
    AvoidEntry,
    AvoidList,
    AwaitedPod,
    EvictedPod,
    EvictionHints,
    PodSignature,
    Replacement,
    avoid_entry,
    avoid_list,
    replacement,
)
from podium.api.disruption_policy import AvoidLists as Limits
from podium.api.disruption_policy import DisruptionPolicy, DisruptionPolicySpec
from podium.api.meta import Kubernetes, ObjectMeta, OwnerReference
from podium.api.node import Node
from podium.api.pod import Pod, PodSpec, PodStatus
from podium.api.times import format_time
from podium.api.workloads import Job, ReplicaSet
from podium.controllers.actions import Action, PatchObject, Record
from podium.controllers.disruption.avoid_lists import AvoidListController
from podium.controllers.observations import ActionFinished, Changed, Deleted, Problem, Tick

SECOND = 10**9
HOUR = 3600
CONFLICT = Problem(409, "Conflict", "it is not as you think")
REFUSED = Problem(403, "Forbidden", "not you")
NO_ANSWER = Problem(0, "Timeout", "no answer came")


def owner(name: str, kind: str = "ReplicaSet", group: str = "apps/v1") -> OwnerReference:
    return OwnerReference(api_version=group, kind=kind, name=name, uid=f"uid-{name}", controller=True)


def evicted(name: str, seconds: int, **reference: str) -> AvoidEntry:
    """Return the entry of a controller of which a pod was evicted at a time."""
    return avoid_entry(owner(name, **reference), "drain", "", seconds * SECOND)


def node(*entries: AvoidEntry, version: int = 1, name: str = "n1", uid: str = "") -> Node:
    annotations = {"other": "kept", **({PREFER_AVOID_PODS: AvoidList(tuple(entries)).written()} if entries else {})}
    meta = ObjectMeta(name=name, uid=uid or name, resource_version=str(version), annotations=annotations)
    return Node(metadata=meta)


def replica_set(name: str, uid: str = "") -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name=name, namespace="shop", uid=uid or f"uid-{name}"))


def policy(expire_after: str) -> DisruptionPolicy:
    spec = DisruptionPolicySpec(avoid_lists=Limits(expire_after=expire_after))
    return DisruptionPolicy(metadata=ObjectMeta(name="default"), spec=spec)


class Rig:
    """The machine and its clock."""

    def __init__(self, *objects: Kubernetes) -> None:
        self.controller = AvoidListController()
        self.now = 0
        self.see(*objects)

    def see(self, *objects: Kubernetes) -> None:
        for one in objects:
            assert self.controller.handle(Changed(one), self.now) == []

    def miss(self, *objects: Kubernetes) -> None:
        for one in objects:
            assert self.controller.handle(Deleted(one), self.now) == []

    def at(self, seconds: float) -> list[Action]:
        self.now = round(seconds * SECOND)
        return self.controller.handle(Tick(), self.now)

    def answer(self, action: Action, problem: Problem | None = None) -> None:
        self.controller.handle(ActionFinished(action, problem), self.now)

    @property
    def deadline_seconds(self) -> float | None:
        deadline = self.controller.deadline().time_ns
        return None if deadline is None else deadline / SECOND


def patch(actions: list[Action]) -> dict[str, Any]:
    """Return the metadata of the only patch."""
    (action,) = actions
    assert isinstance(action, PatchObject)
    assert (action.kind, action.cause) == ("Node", "avoid-list-controller")
    found: dict[str, Any] = action.patch["metadata"]
    return found


def left(actions: list[Action]) -> list[str]:
    """Return the controllers that the only patch keeps on the list."""
    text = patch(actions)["annotations"][PREFER_AVOID_PODS]
    return [one.controller.name for one in avoid_list(text or "").entries]


WEB, DB = replica_set("web"), replica_set("db")


def full_list(count: int) -> list[AvoidEntry]:
    return [evicted(f"w{number}", number) for number in range(count)]


def test_an_entry_that_a_full_list_loses_to_another_is_named_in_an_event() -> None:
    sets = [replica_set(f"w{number}") for number in range(17)]
    rig = Rig(*sets, node(*full_list(16)))

    (event,) = rig.controller.handle(Changed(node(*full_list(17)[1:], version=2)), rig.now)

    assert isinstance(event, Record)
    assert (event.workload, event.uid, event.type, event.reason) == ("Node n1", "n1", "Warning", "AvoidListFull")
    assert event.message == (
        "the avoid list is full with 16 entries: ReplicaSet w0 is no longer avoided here, listed since "
        "1970-01-01T00:00:00Z"
    )


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        # Taken off without another in its place; by a later eviction of the same controller; after its time; at once.
        (full_list(16), full_list(16)[1:], 0),
        (full_list(16), [*full_list(16)[1:], evicted("w0", 60)], 0),
        (full_list(16), full_list(17)[1:], HOUR),
        (full_list(2), full_list(3)[1:], 0),
    ],
)
def test_entries_that_end_otherwise_cause_no_event(
    before: list[AvoidEntry], after: list[AvoidEntry], seconds: int
) -> None:
    rig = Rig(*(replica_set(f"w{number}") for number in range(17)), node(*before))
    rig.now = seconds * SECOND

    rig.see(node(*after, version=2))


def test_an_entry_goes_when_its_time_is_over_and_others_stay() -> None:
    rig = Rig(WEB, DB, node(evicted("web", 0), evicted("db", 60)))
    assert rig.at(0) == []
    assert rig.deadline_seconds == HOUR

    actions = rig.at(HOUR)

    assert left(actions) == ["db"]
    assert patch(actions)["resourceVersion"] == "1"
    rig.see(node(evicted("db", 60), version=2))
    assert rig.at(HOUR) == []
    assert rig.deadline_seconds == HOUR + 60


def test_the_last_entry_takes_the_annotation_with_it() -> None:
    rig = Rig(WEB, node(evicted("web", 0)))

    actions = rig.at(HOUR)

    assert patch(actions)["annotations"] == {PREFER_AVOID_PODS: None}
    rig.see(node(version=2))
    assert rig.at(2 * HOUR) == []
    assert rig.deadline_seconds is None


def test_the_policy_says_how_long_entries_stay() -> None:
    rig = Rig(WEB, node(evicted("web", 0)), policy("10m"))
    assert rig.at(1) == []
    assert rig.deadline_seconds == 600

    rig.see(policy("2m"))
    assert rig.at(2) == []
    assert rig.deadline_seconds == 120
    rig.miss(policy("2m"))
    assert rig.at(3) == []
    assert rig.deadline_seconds == HOUR
    rig.see(policy("1s"))
    assert left(rig.at(4)) == []


def test_an_entry_goes_with_its_controller() -> None:
    rig = Rig(WEB, DB, node(evicted("web", 0), evicted("db", 0)), node(evicted("web", 0), name="n2"))
    assert rig.at(1) == []

    rig.miss(WEB)

    actions = rig.at(2)
    assert [one.key for one in actions if isinstance(one, PatchObject)] == ["n1", "n2"]
    assert left(actions[:1]) == ["db"]


def test_a_controller_that_a_namesake_has_replaced_is_gone() -> None:
    rig = Rig(WEB, node(evicted("web", 0)))
    rig.at(1)

    rig.see(replica_set("web", uid="another"))

    assert left(rig.at(2)) == []


def test_a_controller_that_was_never_seen_is_gone_a_minute_after_the_eviction() -> None:
    """It may just be on its way, since kinds may overtake one another."""
    rig = Rig(node(evicted("web", 10), evicted("db", 10)))
    assert rig.at(11) == []
    assert rig.deadline_seconds == 70

    rig.see(DB)

    assert left(rig.at(70)) == ["db"]


@pytest.mark.parametrize(
    "entry",
    [
        evicted("web", 0, kind="Rollout", group="example.com/v1"),
        evicted("web", 0, group="example.com/v1"),
        AvoidEntry(pod_signature=PodSignature(pod_controller=owner("web"))),
    ],
)
def test_unverifiable_controllers_are_not_treated_as_deleted(entry: AvoidEntry) -> None:
    rig = Rig(node(entry))

    assert rig.at(HOUR / 2) == []


def test_an_entry_without_a_time_never_expires_but_goes_with_its_controller() -> None:
    by_hand = AvoidEntry(pod_signature=PodSignature(pod_controller=owner("web")))
    rig = Rig(WEB, node(by_hand))
    assert rig.at(100 * HOUR) == []
    assert rig.deadline_seconds is None

    rig.miss(WEB)

    assert left(rig.at(100 * HOUR)) == []


def test_jobs_are_controllers_too() -> None:
    nightly = Job(metadata=ObjectMeta(name="nightly", namespace="shop", uid="uid-nightly"))
    rig = Rig(nightly, node(evicted("nightly", 0, kind="Job", group="batch/v1")))
    assert rig.at(HOUR / 2) == []

    rig.miss(nightly)

    assert left(rig.at(HOUR / 2)) == []


def test_one_patch_is_enough_until_the_api_shows_something_new() -> None:
    rig = Rig(WEB, node(evicted("web", 0)))
    (action,) = rig.at(HOUR)
    rig.see(node(evicted("web", 0)))
    assert rig.at(HOUR) == []
    rig.answer(action)
    assert rig.at(HOUR + 1) == []

    rig.see(node(evicted("web", 0), version=2))

    assert patch(rig.at(HOUR + 2))["resourceVersion"] == "2"


@pytest.mark.parametrize("problem", [CONFLICT, REFUSED, NO_ANSWER])
def test_a_patch_that_fails_is_sent_again_later_each_time(problem: Problem) -> None:
    rig = Rig(WEB, node(evicted("web", 0)))
    delays = []
    for _ in range(3):
        (action,) = rig.at(max(rig.deadline_seconds or 0, HOUR))
        rig.answer(action, problem)
        delays.append((rig.deadline_seconds or 0) - rig.now / SECOND)

    assert delays == [1, 2, 4]
    assert not rig.controller.deadline().keeps_alive


def test_the_failure_of_an_old_patch_says_nothing_about_a_newer_list() -> None:
    rig = Rig(WEB, DB, node(evicted("web", 0)))
    (action,) = rig.at(HOUR)
    rig.see(node(evicted("db", HOUR), version=2))
    assert rig.at(HOUR) == []

    rig.answer(action, CONFLICT)

    assert rig.deadline_seconds == 2 * HOUR


def test_nothing_is_done_about_nodes_that_are_gone_or_were_replaced() -> None:
    rig = Rig(WEB, node(evicted("web", 0)), node(evicted("web", 0), name="n2"))
    rig.at(1)

    rig.miss(node(evicted("web", 0)))
    rig.see(node(version=9, name="n2", uid="new"))

    assert rig.at(HOUR) == []
    assert rig.deadline_seconds is None
    rig.miss(WEB, DB, node(name="n3"))


def test_lists_that_cannot_be_read_are_left_alone() -> None:
    broken = node()
    metadata = replace(broken.metadata, annotations={PREFER_AVOID_PODS: "{"})

    rig = Rig(replace(broken, metadata=metadata))

    assert rig.at(HOUR) == []


def test_future_expiry_of_entries_keeps_nothing_alive() -> None:
    rig = Rig(WEB, node(evicted("web", 0)))
    assert rig.controller.deadline().keeps_alive

    rig.at(1)

    assert not rig.controller.deadline().keeps_alive


BIG = Pod(metadata=ObjectMeta(name="big", namespace="shop", uid="uid-big"))
ON_A_NODE = replace(BIG, spec=replace(BIG.spec, node_name="n1"))


def until_big(name: str, seconds: int = 0) -> AvoidEntry:
    """Return an entry that stays until the pod is scheduled."""
    return replace(evicted(name, seconds), until_scheduled=AwaitedPod(namespace="shop", name="big", uid="uid-big"))


def test_an_entry_with_a_lifetime_of_its_own_goes_when_that_is_over() -> None:
    long, short = replace(evicted("web", 0), expire_after="2h"), replace(evicted("db", 0), expire_after="1m")
    rig = Rig(WEB, DB, node(long, short))
    assert rig.at(0) == []
    assert rig.deadline_seconds == 60

    assert left(rig.at(60)) == ["web"]
    rig.see(node(long, version=2))
    assert rig.at(HOUR) == []
    assert rig.deadline_seconds == 2 * HOUR


@pytest.mark.parametrize("end", ["scheduled", "succeeded", "gone"])
def test_an_entry_that_waits_for_a_pod_goes_when_that_is_scheduled_or_will_never_be(end: str) -> None:
    rig = Rig(WEB, DB, BIG, node(until_big("web"), evicted("db", 0)))
    assert rig.at(300) == []

    if end == "gone":
        rig.miss(BIG)
    else:
        rig.see(ON_A_NODE if end == "scheduled" else replace(BIG, status=replace(BIG.status, phase="Succeeded")))

    assert rig.deadline_seconds == 0
    assert left(rig.at(300)) == ["db"]


def test_an_entry_goes_that_waits_for_a_pod_which_was_scheduled_before_the_entry_was_seen() -> None:
    """A minute is enough for news to arrive."""
    for seen in ([], [BIG, ON_A_NODE]):
        rig = Rig(WEB, *seen, node(until_big("web", 10)))

        assert rig.at(10) == []
        assert rig.deadline_seconds == 70
        assert left(rig.at(70)) == []


def test_an_entry_that_waits_for_a_pod_goes_with_its_time_too() -> None:
    rig = Rig(WEB, BIG, node(until_big("web")))
    assert rig.at(0) == []

    assert left(rig.at(HOUR)) == []


def test_pods_that_no_entry_waits_for_are_forgotten() -> None:
    rig = Rig(WEB, BIG, node(until_big("web")))
    rig.at(0)
    rig.see(ON_A_NODE)
    rig.answer(rig.at(1)[0])
    rig.see(node(version=2))

    assert nothing_awaited(rig)


def nothing_awaited(rig: Rig) -> bool:
    awaited = rig.controller._awaited
    replaced, scheduled, left = awaited._replaced, awaited._scheduled, awaited.replacements
    waiting = (each for kind in (replaced, scheduled) for each in (kind, kind.over))
    return not any((*waiting, awaited._pending, left.awaited, left._place_of))


# What evictions left for replacements


def owed(name: str, seconds: int = 0, owned_by: str = "web", grace: int = 30) -> Replacement:
    """Return what the eviction of a pod left at a time."""
    evicted_pod = EvictedPod(name=name, uid=f"uid-{name}")
    return replacement(owner(owned_by), evicted_pod, EvictionHints(first=True), grace, seconds * SECOND)


def owing(*found: Replacement, version: int = 1, entries: tuple[AvoidEntry, ...] = ()) -> Node:
    annotations = {PREFER_AVOID_PODS: AvoidList(entries, found).written()} if found or entries else {}
    return Node(metadata=ObjectMeta(name="n1", uid="n1", resource_version=str(version), annotations=annotations))


def made(name: str, seconds: int = 0, *, on: str = "", phase: str = "Pending") -> Pod:
    """Return a pod of the ReplicaSet web, created at a time."""
    meta = ObjectMeta(
        name=name,
        namespace="shop",
        uid=f"uid-{name}",
        creation_timestamp=format_time(seconds * SECOND),
        owner_references=(owner("web"),),
    )
    return Pod(metadata=meta, spec=PodSpec(node_name=on), status=PodStatus(phase=phase))


def left_for(actions: list[Action]) -> list[str]:
    """Return the evicted pods whose replacements the only patch leaves something."""
    text = patch(actions)["annotations"][PREFER_AVOID_PODS]
    return [one.evicted_pod.name for one in avoid_list(text or "").replacements]


def test_a_replacement_hint_ends_with_its_binding_and_the_entry_stays() -> None:
    rig = Rig(WEB, owing(owed("a"), owed("b", 1), entries=(evicted("web", 0),)), made("new", 1))
    assert rig.at(1) == []

    rig.see(made("new", 1, on="n2"))

    actions = rig.at(1)
    assert left_for(actions) == ["b"]
    assert left(actions) == ["web"]
    assert isinstance(actions[0], PatchObject)
    assert actions[0].message == "taken off the avoid list: what was left for the replacement of pod a"


def test_a_hint_is_removed_even_after_its_pod_is_gone() -> None:
    rig = Rig(WEB, owing(owed("a")), made("new"))

    rig.see(made("new", on="n2"))
    rig.miss(made("new", on="n2"))

    assert left_for(rig.at(0)) == []


def test_a_pod_that_goes_without_a_node_uses_nothing_up() -> None:
    rig = Rig(WEB, owing(owed("a")), made("new"))

    rig.miss(made("new"))
    rig.see(made("other"), made("other", phase="Failed"))
    assert rig.at(0) == []

    rig.see(made("next"), made("next", on="n2"))
    assert left_for(rig.at(0)) == []


def test_a_replacement_that_was_seen_before_the_list_counts_while_it_waits() -> None:
    rig = Rig(WEB, made("new"), owing(owed("a")))

    rig.see(made("new", on="n2"))

    assert left_for(rig.at(0)) == []


def test_expired_hints_are_removed_and_the_last_one_removes_the_annotation() -> None:
    rig = Rig(WEB, owing(owed("a"), owed("b", grace=3600)))
    assert rig.at(0) == []
    assert rig.deadline_seconds == 630

    actions = rig.at(630)
    assert left_for(actions) == ["b"]
    rig.see(owing(owed("b", grace=3600), version=2))
    assert rig.at(630) == []

    assert patch(rig.at(4200))["annotations"] == {PREFER_AVOID_PODS: None}


def test_hints_are_removed_with_their_controller() -> None:
    rig = Rig(WEB, owing(owed("a")))
    assert rig.at(0) == []

    rig.miss(WEB)

    assert left_for(rig.at(1)) == []


def test_hints_for_an_unseen_controller_expire_after_a_minute() -> None:
    rig = Rig(owing(owed("a", owned_by="nobody")))
    assert rig.at(0) == []
    assert rig.deadline_seconds == 60

    assert left_for(rig.at(60)) == []


def test_nothing_is_remembered_of_replacements_when_nothing_is_left() -> None:
    rig = Rig(WEB, owing(owed("a")), made("new"))
    rig.see(made("new", on="n2"))
    rig.answer(rig.at(0)[0])
    rig.see(owing(version=2))

    assert rig.at(0) == []
    assert nothing_awaited(rig)


# Entries that wait for a replacement


def until_replaced(name: str, seconds: int = 0, pod: str = "a") -> AvoidEntry:
    """Return an entry that stays until the replacement of a pod is scheduled."""
    awaited = AwaitedPod(namespace="shop", name=pod, uid=f"uid-{pod}")
    return replace(evicted(name, seconds), until_replaced=awaited)


def elsewhere(*found: Replacement, version: int = 1) -> Node:
    return replace(
        owing(*found, version=version),
        metadata=replace(owing(*found, version=version).metadata, name="n2", uid="n2"),
    )


def keys(actions: list[Action]) -> list[str]:
    """Return the nodes that are patched."""
    return sorted(action.key for action in actions if isinstance(action, PatchObject))


@pytest.mark.parametrize("on", ["n1", "n3"])
def test_an_entry_that_waits_for_a_replacement_goes_when_that_has_a_node_wherever(on: str) -> None:
    rig = Rig(WEB, DB, node(until_replaced("db")), elsewhere(owed("a")), made("new"))
    assert rig.at(120) == []

    rig.see(made("new", on=on))

    of_node = {action.key: action for action in rig.at(121) if isinstance(action, PatchObject)}
    assert left([of_node["n1"]]) == []
    assert left_for([of_node["n2"]]) == []


def test_an_avoid_list_entry_ends_when_no_replacement_is_expected() -> None:
    gone, listed = elsewhere(version=2), (node(until_replaced("db")), elsewhere(owed("a")))
    for news in ([gone], [], ["n2"]):
        rig = Rig(WEB, DB, *listed)
        assert rig.at(120) == []
        if news == ["n2"]:
            rig.miss(listed[1])
        else:
            rig.see(*news)
        asked = rig.at(120 if news else 630)
        assert keys(asked) == (["n1"] if news else ["n2"])
        if not news:
            rig.answer(asked[0])
            rig.see(gone)
            asked = rig.at(631)
        assert left(asked) == []


def test_an_entry_that_waits_for_the_replacement_of_a_pod_that_is_not_evicted_goes_after_a_minute() -> None:
    rig = Rig(WEB, DB, node(until_replaced("db", 10)))

    assert rig.at(10) == []
    assert rig.deadline_seconds == 70
    assert left(rig.at(70)) == []


def test_the_next_pod_is_waited_for_where_a_replacement_goes_without_a_node() -> None:
    rig = Rig(WEB, DB, node(until_replaced("db")), elsewhere(owed("a")), made("new"))

    rig.miss(made("new"))
    assert rig.at(120) == []

    rig.see(made("next", 120), made("next", 120, on="n1"))
    assert keys(rig.at(120)) == ["n1", "n2"]


def test_nothing_is_remembered_of_replacements_that_no_entry_waits_for() -> None:
    rig = Rig(WEB, DB, node(until_replaced("db")), elsewhere(owed("a")), made("new"))
    rig.see(made("new", on="n1"))
    for action in rig.at(1):
        rig.answer(action)
    rig.see(node(version=2), elsewhere(version=2))

    assert rig.at(2) == []
    assert nothing_awaited(rig)
