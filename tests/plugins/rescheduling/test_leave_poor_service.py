"""LeavePoorService: pods leave nodes on which they fail, if they would run well elsewhere."""

from dataclasses import replace as changed
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import AvoidingPolicy, Picture, PodSignals, Signals
from tests.builders import DAY_ONE_NS, node, pod
from tests.plugins.rescheduling.pictures import first, gain, leaving, names, picture_of, policy_of

MINUTE = 60 * 10**9
NOW = DAY_ONE_NS + 100 * MINUTE
LOOPING = PodSignals(restarts=7, is_crash_looping=True)


def of(app: str, name: str, on: str, *, minutes: int = 60, ready: bool = True, **fields: Any) -> Pod:
    """Return a pod that runs since so many minutes."""
    return pod(name, on=on, owner=f"ReplicaSet/{app}", started=(100 - minutes) * 60, ready=ready, **fields)


def faring(*pods: Pod, rejections: dict[tuple[str, str], int] | None = None, **report: PodSignals) -> Picture:
    """Return four nodes; ``report`` are pods by name."""
    rejected = Cluster().read(of("web", "rejected", "a"))
    signals = Signals(
        {f"default/{name}": signal for name, signal in report.items()},
        turned_away={
            place: dict.fromkeys(map(str, range(times)), rejected) for place, times in (rejections or {}).items()
        },
    )
    return picture_of(*(node(name) for name in "abcd"), *pods, signals=signals, now=NOW)


def test_a_pod_that_fails_where_its_siblings_are_well_elsewhere_is_to_leave() -> None:
    picture = faring(of("web", "w1", "a"), of("web", "w2", "b"), of("web", "w3", "c"), w1=LOOPING)
    policy = policy_of("LeavePoorService")
    assert policy.objective(picture) == 1
    proposal = first(policy, picture)
    assert [relocation.pod.name for relocation in proposal.relocations] == ["w1"]
    assert proposal.reason == (
        "default/w1 of ReplicaSet web was started again 7 times on a, while 2 others of its pods are well"
    )
    assert gain(policy, picture, {"w1": "d"}) == 1


def test_moving_does_not_help_an_owner_that_fails_everywhere() -> None:
    picture = faring(of("web", "w1", "a"), of("web", "w2", "b"), w1=LOOPING, w2=LOOPING)
    policy = policy_of("LeavePoorService")
    assert policy.objective(picture) == 0
    assert list(policy.proposals(picture)) == []


def test_an_owner_that_fails_no_more_often_than_elsewhere_is_not_moved() -> None:
    picture = faring(
        of("web", "w1", "a"), of("web", "w2", "b"), of("web", "w3", "c"), w1=LOOPING, w2=LOOPING
    )  # fmt: skip
    assert policy_of("LeavePoorService").objective(picture) == 0


def test_several_that_fail_on_one_node_all_leave_it() -> None:
    picture = faring(of("web", "w1", "a"), of("web", "w2", "a"), of("web", "w3", "c"), w1=LOOPING, w2=LOOPING)
    policy = policy_of("LeavePoorService")
    assert policy.objective(picture) == 2
    assert leaving(policy.proposals(picture)) == [["w1"], ["w2"]]


def avoiding(name: str, *apps: str) -> Node:
    return node(name, avoids=[f"ReplicaSet/{app}" for app in apps])


def test_a_pod_that_fails_again_wherever_it_goes_brings_its_trouble_along() -> None:
    web = [of("web", "w1", "c"), of("web", "w2", "d"), of("web", "w3", "d")]
    signals = Signals({"default/w1": LOOPING})
    once = picture_of(avoiding("a", "web"), node("b"), node("c"), node("d"), *web, signals=signals, now=NOW)
    policy = policy_of("LeavePoorService")
    assert policy.objective(once) == 1
    relocation = first(policy, once).relocations[0]
    assert relocation.targets is not None
    assert names(once, relocation.targets) == {"b", "d"}
    again = picture_of(
        avoiding("a", "web"), avoiding("b", "web", "db"), node("c"), node("d"), *web, signals=signals, now=NOW
    )
    assert policy_of("LeavePoorService").objective(again) == 0


def test_the_node_is_avoided_for_a_day_by_default() -> None:
    picture = faring(of("web", "w1", "a"), of("web", "w2", "b"), w1=LOOPING)
    assert first(policy_of("LeavePoorService"), picture).avoid_for_ns == 24 * 60 * MINUTE
    assert first(policy_of("LeavePoorService", avoidFor="2h"), picture).avoid_for_ns == 120 * MINUTE


def test_a_pod_without_record_on_other_nodes_stays() -> None:
    picture = faring(of("web", "w1", "a"), w1=LOOPING)
    assert policy_of("LeavePoorService").objective(picture) == 0


def test_only_pods_that_have_run_for_long_and_are_ready_are_well() -> None:
    young = faring(of("web", "w1", "a"), of("web", "w2", "b", minutes=5), w1=LOOPING)
    assert policy_of("LeavePoorService").objective(young) == 0
    unready = faring(of("web", "w1", "a"), of("web", "w2", "b", ready=False), w1=LOOPING)
    assert policy_of("LeavePoorService").objective(unready) == 0


def test_a_node_on_which_pods_of_many_owners_fail_is_in_trouble_itself() -> None:
    pods = [of("web", "w1", "a"), of("db", "d1", "a"), of("queue", "q1", "a"), of("cache", "c1", "b")]
    two = faring(*pods, w1=LOOPING, d1=LOOPING, c1=LOOPING)
    assert policy_of("LeavePoorService").objective(two) == 0
    three = faring(*pods, w1=LOOPING, d1=LOOPING, q1=LOOPING, c1=LOOPING)
    policy = policy_of("LeavePoorService")
    assert policy.objective(three) == 3
    assert leaving(policy.proposals(three)) == [["d1"], ["q1"], ["w1"]]
    assert first(policy, three).reason == (
        "default/d1 was started again 7 times on a, as pods of other owners do there that fail nowhere else"
    )


def test_owners_that_fail_everywhere_do_not_mark_a_node_as_troubled() -> None:
    everywhere = [of(app, f"{app}{on}", on) for app in ("x", "y", "z") for on in "ab"]
    picture = faring(
        *everywhere, of("web", "w1", "a"),
        w1=LOOPING, xa=LOOPING, xb=LOOPING, ya=LOOPING, yb=LOOPING, za=LOOPING, zb=LOOPING,
    )  # fmt: skip
    assert policy_of("LeavePoorService").objective(picture) == 0


def test_owners_rejected_by_the_kubelet_count_for_its_trouble() -> None:
    rejections = {("ReplicaSet/x", "a"): 3, ("ReplicaSet/y", "a"): 4, ("ReplicaSet/z", "a"): 2}
    picture = faring(of("web", "w1", "a"), rejections=rejections, w1=LOOPING)
    assert policy_of("LeavePoorService").objective(picture) == 1


def test_a_failing_pod_avoids_nodes_that_fail_or_reject_its_siblings() -> None:
    rejections = {("ReplicaSet/web", "d"): 3}
    web = [of("web", "w1", "a"), of("web", "w2", "b"), *(of("web", f"c{i}", "c") for i in range(3))]
    picture = faring(*web, rejections=_by_uid(rejections), w1=LOOPING, w2=LOOPING)
    relocation = first(policy_of("LeavePoorService"), picture).relocations[0]
    assert relocation.targets is not None
    assert names(picture, relocation.targets) == {"c"}


def test_few_restarts_and_failures_of_long_ago_are_forgiven() -> None:
    web = [of("web", "w1", "a"), of("web", "w2", "b")]
    few = faring(*web, w1=PodSignals(restarts=2, is_crash_looping=True))
    assert policy_of("LeavePoorService").objective(few) == 0
    old = faring(*web, w1=PodSignals(restarts=9, failure_ns=NOW - 11 * MINUTE))
    assert policy_of("LeavePoorService").objective(old) == 0
    recent = faring(*web, w1=PodSignals(restarts=9, failure_ns=NOW - 9 * MINUTE))
    assert policy_of("LeavePoorService").objective(recent) == 1


def test_out_of_memory_kills_are_reported() -> None:
    killed = PodSignals(restarts=4, out_of_memory_kills=4, failure_ns=NOW)
    picture = faring(of("web", "w1", "a"), of("web", "w2", "b"), w1=killed)
    assert "4 times for want of memory on a" in first(policy_of("LeavePoorService"), picture).reason


def test_the_arguments_say_what_is_much() -> None:
    picture = faring(of("web", "w1", "a"), of("db", "d1", "a"), w1=LOOPING, d1=LOOPING)
    assert policy_of("LeavePoorService", minOwners=2).objective(picture) == 2
    assert policy_of("LeavePoorService", minOwners=2, minRestarts=8).objective(picture) == 0


@pytest.mark.parametrize(
    "args", [{"minRestarts": 0}, {"avoidFor": "ever"}, {"within": "0s"}, {"minOwners": "many"}, {"minRejections": 1.5}]
)
def test_arguments_that_make_no_sense_are_refused_by_name(args: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        policy_of("LeavePoorService", **args)
    assert next(iter(args)) in str(refused.value)


def _by_uid(rejections: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    owner = of("web", "x", "a").metadata.controller
    assert owner is not None
    return {(owner.uid or f"default/{name}", on): times for (name, on), times in rejections.items()}


def turned_away(*report: tuple[str, str, int]) -> Picture:
    """Pods of owners that the kubelet of a node turned away so many minutes ago."""
    picture = faring()
    found: dict[tuple[str, str], dict[str, PodRecord]] = {}
    for number, (app, on, minutes) in enumerate(report):
        made = pod(f"{app}-{number}", on=on, owner=f"ReplicaSet/{app}", created=(100 - minutes) * 60, uid=f"u{number}")
        record = picture.cluster.read(made)
        found.setdefault((record.owner_uid, on), {})[record.uid] = record
    signals = Signals(turned_away=found)
    return changed(picture, signals=signals)


def avoided(picture: Picture, **args: Any) -> list[tuple[str, str]]:
    policy = policy_of("LeavePoorService", **args)
    assert isinstance(policy, AvoidingPolicy)
    return [(avoidance.pod.name, avoidance.pod.node_name) for avoidance in policy.avoidances(picture)]


def test_repeatedly_and_recently_rejected_owners_avoid_the_node() -> None:
    often = [("web", "a", minutes) for minutes in (9, 60, 5)]

    assert avoided(turned_away(*often)) == [("web-1", "a")]
    assert avoided(turned_away(*often[:2])) == []
    assert avoided(turned_away(*often[:2]), minRejections=2) == [("web-1", "a")]
    assert avoided(turned_away(*((app, on, minutes + 20) for app, on, minutes in often))) == []
    assert avoided(turned_away(*often, *(("db", "b", 1) for _ in range(4)))) == [("db-3", "b"), ("web-1", "a")]


def test_the_reason_names_the_node_and_the_owners() -> None:
    policy = policy_of("LeavePoorService", avoidFor="2h")
    assert isinstance(policy, AvoidingPolicy)

    (found,) = policy.avoidances(turned_away(*(("web", "a", 1) for _ in range(3))))

    assert found.reason == "the kubelet of a turned away 3 pods of ReplicaSet web, the last one of late"
    assert found.avoid_for_ns == 120 * MINUTE
