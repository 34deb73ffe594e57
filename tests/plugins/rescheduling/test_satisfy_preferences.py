"""SatisfyPreferences: pods move to nodes that satisfy more of their preferences."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.cluster.pod_classes import AffinityTerm
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Picture
from podium.plugins.node_filters import compile_node_term
from tests.builders import ZONE, cluster_of, node, node_term, pod, spread_over, term, tolerate
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters
from tests.plugins.rescheduling.pictures import (
    carry_out,
    move,
    picture_of,
    picture_on,
    places,
    policy_of,
    reported,
    shake,
)

SSD = node_term("disk=ssd")


def preferences(**args: Any) -> Any:
    return policy_of("SatisfyPreferences", **args)


def web(name: str, on: str, **reported: Any) -> Pod:
    return pod(name, on=on, owner="ReplicaSet/web", labels={"app": "web"}, **reported)


def test_a_pod_goes_to_the_nodes_that_it_prefers() -> None:
    seen = picture_of(node("plain"), node("fast", labels={"disk": "ssd"}), web("w", "plain", likes_nodes=[(5, SSD)]))
    (proposal,) = preferences().proposals(seen)
    assert proposal.reason == (
        "default/w would have more of what is preferred elsewhere than on plain: "
        "it has fewer of the labels that the pod prefers than others have"
    )
    assert carry_out(preferences(), seen) == [("w", "plain", "fast")]
    assert preferences().objective(seen) == 0


def test_the_missed_preference_is_its_share_of_the_weights() -> None:
    wanted = [(60, SSD), (40, node_term("arch=arm"))]
    nodes = node("a"), node("b", labels={"arch": "arm"}), node("c", labels={"arch": "arm", "disk": "ssd"})
    seen = picture_of(*nodes, web("w", "a", likes_nodes=wanted))
    asked = preferences()
    found = [asked.objective(seen)]
    for name in "bc":
        move(seen, "default/w", name)
        found.append(asked.objective(seen))
    assert found == pytest.approx([1.0, 0.6, 0.0])


@pytest.mark.parametrize(
    ("nodes", "closed", "why"),
    [
        ((node("plain"), node("other")), (), "no node has it"),
        ((node("plain"), node("fast", labels={"disk": "ssd"})), ("fast",), "the node takes in nobody"),
        ((node("plain"), node("fast", labels={"disk": "ssd"}, taints=["own:NoSchedule"])), (), "it is kept off"),
    ],
)
def test_preferences_that_no_node_can_satisfy_are_not_missed(
    nodes: tuple[Any, ...], closed: tuple[str, ...], why: str
) -> None:
    seen = picture_of(*nodes, web("w", "plain", likes_nodes=[(5, SSD)]), closed=closed)
    assert preferences().objective(seen) == 0, why
    assert reported(preferences().proposals(seen)) == [], why


def test_preferred_nodes_without_room_are_no_place_to_go() -> None:
    seen = picture_of(
        node("plain"),
        node("fast", cpu="1", labels={"disk": "ssd"}),
        pod("there", on="fast", cpu="1"),
        web("w", "plain", cpu="1", likes_nodes=[(5, SSD)]),
    )
    assert reported(preferences().proposals(seen)) == []


def test_pods_leave_nodes_with_prefer_no_schedule_taints() -> None:
    objects = node("old", taints=["old:PreferNoSchedule"]), node("young"), web("w", "old")
    seen = picture_of(*objects)
    assert preferences().objective(seen) == 1
    assert carry_out(preferences(), seen) == [("w", "old", "young")]
    calm = web("w", "old", tolerations=[tolerate("old")])
    assert preferences().objective(picture_of(*objects[:2], calm)) == 0


def test_the_mark_of_a_node_that_pods_are_being_moved_off_is_no_reason_for_the_others_to_leave() -> None:
    marked = node("old", taints=["podium.dev/moving-pods-away=1767225600:PreferNoSchedule"])
    seen = picture_of(marked, node("young"), web("w", "old"))
    assert preferences().objective(seen) == 0
    assert carry_out(preferences(), seen) == []


def test_pods_that_would_be_apart_are_parted() -> None:
    apart = [(100, term("app=web"))]
    nodes = [node(name, zone="z") for name in "abc"]
    seen = picture_of(*nodes, *(web(f"w{i}", "a", dislikes=apart) for i in range(3)))
    assert preferences().objective(seen) == 2
    (first, *_) = preferences().proposals(seen)
    assert first.reason.endswith("it wants to be apart from pods with app=web by kubernetes.io/hostname")
    assert len(carry_out(preferences(), seen)) == 2
    assert sorted(places(seen).values()) == ["a", "b", "c"]
    assert preferences().objective(seen) == 0


def test_more_pods_than_domains_are_no_reason_to_move() -> None:
    apart = [(100, term("app=web"))]
    seen = picture_of(
        *(node(n, zone="z") for n in "ab"), *(web(f"w{i}", "ab"[i % 2], dislikes=apart) for i in range(4))
    )
    assert preferences().objective(seen) == 0
    assert carry_out(preferences(), seen) == []


def test_a_pod_that_blocks_another_may_be_moved() -> None:
    nodes = node("a", zone="z"), node("b", zone="z")
    picky = pod("picky", on="a", dislikes=[(10, term("app=web"))])
    seen = picture_of(*nodes, picky, web("w", "a"))
    (proposal,) = preferences().proposals(seen)
    assert proposal.relocations[0].pod.name == "w"
    assert "others want to be apart from pods with app=web" in proposal.reason
    assert carry_out(preferences(), seen) == [("w", "a", "b")]


def test_pods_that_would_be_near_come_together() -> None:
    nodes = node("a", zone="x"), node("b", zone="y")
    seen = picture_of(*nodes, pod("db", on="b", labels={"app": "db"}), web("w", "a", likes=[(9, term("app=db", ZONE))]))
    assert carry_out(preferences(), seen) == [("w", "a", "b")]
    assert preferences().objective(seen) == 0


def test_a_preference_for_absent_pods_counts_as_satisfied() -> None:
    seen = picture_of(node("a", zone="x"), node("b", zone="y"), web("w", "a", likes=[(9, term("app=web", ZONE))]))
    assert preferences().objective(seen) == 0
    assert reported(preferences().proposals(seen)) == []


def test_a_pod_that_keeps_others_company_stays() -> None:
    nodes = node("a", zone="x", labels={"disk": "hdd"}), node("b", zone="y", labels={"disk": "ssd"})
    near = [(9, term("app=db", ZONE))]
    db = pod("db", on="a", labels={"app": "db"}, likes_nodes=[(1, SSD)], owner="ReplicaSet/db")
    seen = picture_of(*nodes, db, web("w1", "a", likes=near, node_selector={"disk": "hdd"}), is_movable=lambda p: True)
    assert preferences().objective(seen) == 1
    assert carry_out(preferences(), seen) == []


def test_schedule_anyway_spread_is_evened_out() -> None:
    spread = [spread_over(ZONE, "app=web", soft=True)]
    nodes = [node(name, zone=f"zone-{name}") for name in "abc"]
    seen = picture_of(*nodes, *(web(f"w{i}", "a", spread=spread) for i in range(6)))
    assert preferences().objective(seen) == 4
    (first, *_) = preferences().proposals(seen)
    assert first.reason.endswith(f"its like lie unevenly over {ZONE}")
    assert len(carry_out(preferences(), seen)) == 4
    assert sorted(places(seen).values()) == ["a", "a", "b", "b", "c", "c"]


@pytest.mark.failure(77)
def test_spreading_to_a_full_or_closed_domain_moves_no_pod() -> None:
    spread = [spread_over(ZONE, "app=web", soft=True)]
    full, tainted = node("b", cpu="1", zone="y"), node("c", zone="w", taints=["own:NoSchedule"])
    crowd = [web(f"w{i}", "a", cpu="1", spread=spread) for i in range(4)]
    seen = picture_of(node("a", zone="x"), full, tainted, pod("big", on="b", cpu="1"), *crowd)
    assert reported(preferences().proposals(seen)) == []


@pytest.mark.failure(79)
def test_preferred_affinity_does_not_send_a_pod_round_in_circles() -> None:
    loves = [(50, SSD), (50, node_term("arch=arm"))]
    seen = picture_of(
        node("a", labels={"disk": "ssd"}), node("b", labels={"arch": "arm"}), web("w", "a", likes_nodes=loves)
    )
    assert preferences().objective(seen) == 0
    assert carry_out(preferences(), seen) == []


def test_the_worst_comes_first_then_the_least_important_then_by_key() -> None:
    nodes = node("plain", taints=["old:PreferNoSchedule"]), node("fast", labels={"disk": "ssd"})
    seen = picture_of(
        *nodes,
        web("c", "plain", priority=1),
        web("b", "plain"),
        web("a", "plain"),
        web("both", "plain", priority=9, likes_nodes=[(1, SSD)]),
    )
    with_turns = []
    for proposal in preferences().proposals(seen):
        pod_ = proposal.relocations[0].pod
        with_turns.append(pod_.name)
        move(seen, pod_.key, "fast")
    assert with_turns == ["both", "a", "b", "c"]


def test_kinds_of_preferences_can_be_weighed_and_left_out() -> None:
    seen = picture_of(
        node("plain", taints=["old:PreferNoSchedule"]),
        node("fast", labels={"disk": "ssd"}),
        web("w", "plain", likes_nodes=[(1, SSD)]),
    )
    assert preferences(taints=0).objective(seen) == 1
    assert preferences(nodeAffinity=0.5).objective(seen) == 1.5
    assert preferences(nodeAffinity=0, taints=0, podAffinity=0, topologySpread=0).objective(seen) == 0


@pytest.mark.parametrize(
    ("args", "refusal"),
    [
        ({"taints": -1}, "taints must be from 0 to 100"),
        ({"podAffinity": float("nan")}, "podAffinity must be from 0 to 100"),
        ({"topologySpread": float("inf")}, "topologySpread must be from 0 to 100"),
        ({"nodeAffinity": "high"}, "nodeAffinity"),
        ({"affinity": 1}, "affinity"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_words(args: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InputError, match=re.escape(refusal)):
        preferences(**args)


@efforts(20)
def test_missed_terms_and_nodes_sum_over_pods(effort: Effort) -> None:
    @effort
    @given(clusters(EVERYTHING, least_pods=2), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        seen = picture_on(cluster_of(*objects.surroundings))
        shake(seen, chance, 3)
        asked = preferences(topologySpread=0)
        assert asked.objective(seen) == pytest.approx(missed_in_loops(seen), abs=1e-4)

    check()


def missed_in_loops(seen: Picture) -> float:
    """Return what `SatisfyPreferences` says of terms and nodes, pod by pod."""
    placed = [pod for pod in seen.cluster.placed.values() if pod.row >= 0 and not pod.terminating]
    return sum(_missed_nodes(seen, pod) for pod in placed) + _missed_terms(seen, placed)


def _missed_nodes(seen: Picture, pod: PodRecord) -> float:
    nodes = seen.cluster.nodes
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = [(t.weight, compile_node_term(t.preference)) for t in (affinity.preferred if affinity else ()) if t.weight]
    total = sum(weight for weight, _ in terms)

    def missed(row: int) -> float:
        item = nodes.node(row)
        soft = [t for t in item.spec.taints if t.effect == "PreferNoSchedule"]
        share = sum(w / total for w, t in terms if not t.matches(item.metadata.labels, item.metadata.name))
        return share + any(not _tolerated(pod, taint) for taint in soft)

    def takes(row: int) -> bool:
        item = nodes.node(row)
        required = affinity.required if affinity else None
        hard = [t for t in item.spec.taints if t.effect in ("NoSchedule", "NoExecute")]
        labels, name = item.metadata.labels, item.metadata.name
        selected = required is None or any(
            compile_node_term(term).matches(labels, name) for term in required.node_selector_terms
        )
        return (
            bool(seen.targets[row])
            and selected
            and all(labels.get(key) == value for key, value in pod.spec.node_selector.items())
            and all(_tolerated(pod, taint) for taint in hard)
        )

    possible = [missed(row) for row in sorted(nodes.row_of.values()) if takes(row)]
    return max(0.0, missed(pod.row) - min(possible)) if possible else 0.0


def _tolerated(pod: PodRecord, taint: Any) -> bool:
    return any(
        (not t.effect or t.effect == taint.effect)
        and (not t.key or t.key == taint.key)
        and (t.operator == "Exists" or t.value == taint.value)
        for t in pod.spec.tolerations
    )


def _missed_terms(seen: Picture, placed: list[PodRecord]) -> float:
    """Return what the carriers of each term miss, less what cannot be had."""
    carriers: dict[tuple[AffinityTerm, float, bool], list[PodRecord]] = {}
    for carrier in placed:
        total = sum(abs(w.weight) for w in carrier.pod_class.preferred)
        for w in carrier.pod_class.preferred:
            if w.weight:
                carriers.setdefault((w.term, abs(w.weight) / total, w.weight < 0), []).append(carrier)
    missed = 0.0
    for (term_, share, is_apart), carrying in carriers.items():
        namespaces = seen.cluster.namespaces
        selected = [p for p in placed if term_.selects_for_owner(p.namespace, p.labels, namespaces)]
        missed += share * (_missed_apart if is_apart else _missed_near)(seen, term_.topology_key, carrying, selected)
    return missed


def _others(seen: Picture, key: str, carrier: PodRecord, selected: list[PodRecord]) -> list[PodRecord]:
    own = _domain(seen, key, carrier.row)
    return [p for p in selected if p is not carrier and own is not None and _domain(seen, key, p.row) == own]


def _domain(seen: Picture, key: str, row: int) -> str | None:
    return seen.cluster.nodes.node(row).metadata.labels.get(key)


def _missed_apart(seen: Picture, key: str, carrying: list[PodRecord], selected: list[PodRecord]) -> float:
    found = 0.0
    for carrier in carrying:
        others = len(_others(seen, key, carrier, selected))
        if others:
            found += others / (others + 1) if carrier in selected else 1
    if {p.uid for p in carrying} != {p.uid for p in selected}:
        return found
    domains = {_domain(seen, key, row) for row in seen.cluster.nodes.row_of.values() if seen.targets[row]} - {None}
    return max(0.0, found - max(0, len(selected) - len(domains)))


def _missed_near(seen: Picture, key: str, carrying: list[PodRecord], selected: list[PodRecord]) -> float:
    if not selected:
        return 0.0
    found = sum(not _others(seen, key, carrier, selected) for carrier in carrying)
    return found - (len(selected) == 1 and selected[0] in carrying)
