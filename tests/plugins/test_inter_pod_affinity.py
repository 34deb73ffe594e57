"""Rules of inter-pod affinity and anti-affinity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.api.meta import Kubernetes
from podium.api.pod import Pod, PodAffinityTerm
from podium.cluster.view import View
from podium.decide.placement import place
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext
from podium.plugins.inter_pod_affinity import InterPodAffinity
from tests.builders import HOSTNAME, ZONE, cluster_of, explain, namespace, node, plain_runner, pod, term

NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
THEIRS = "node(s) didn't satisfy existing pods anti-affinity rules"
ZONES = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("bare")]
WEB = {"app": "web"}
HOSTS = [node(name, labels={HOSTNAME: name}) for name in ("a1", "a2", "b1")]


def refusals(*objects: Kubernetes) -> dict[str, str]:
    """Why each node of the zones refuses `default/p`; nodes where it fits are left out."""
    found = explain([*ZONES, *objects]).nodes
    return {name: status.message for name, status in found.items() if not status.is_success}


def feasible(*objects: Kubernetes) -> list[str]:
    return sorted({node.metadata.name for node in ZONES} - refusals(*objects).keys())


# Required affinity


def test_a_pod_goes_where_a_pod_that_it_needs_is_in_the_domain() -> None:
    objects = [pod("db", on="a1", labels={"app": "db"}), pod("p", near=[term("app=db", ZONE)])]

    assert refusals(*objects) == {"b1": NEAR, "bare": NEAR}


def test_preemption_cannot_lift_missing_affinity() -> None:
    found = explain([*ZONES, pod("q", on="a1"), pod("p", priority=5, near=[term("app=db", ZONE)])])

    assert {status.code.value for status in found.nodes.values()} == {"UnschedulableAndUnresolvable"}
    assert found.outcome == "unschedulable"


def test_the_first_pod_of_a_group_starts_anywhere_that_has_the_label() -> None:
    assert feasible(pod("p", labels=WEB, near=[term("app=web", ZONE)])) == ["a1", "a2", "b1"]


def test_only_a_pod_that_selects_itself_is_the_first_of_its_group() -> None:
    assert feasible(pod("p", labels={"app": "db"}, near=[term("app=web", ZONE)])) == []
    assert feasible(pod("p", labels=WEB, near=[term("app=web", ZONE), term("app=db", ZONE)])) == []


@pytest.mark.parametrize(
    ("others", "labels", "keys", "fits"),
    [
        ([], WEB, [ZONE], ["a1", "a2", "b1"]),
        ([], {"app": "db"}, [ZONE], []),
        ([], WEB, [ZONE, "rack"], ["b1"]),
        ([pod("q", on="b1", labels=WEB)], WEB, [ZONE], ["b1"]),
        ([pod("q", on="bare", labels=WEB)], WEB, [ZONE], ["a1", "a2", "b1"]),
        ([pod("q", on="a1", labels=WEB)], WEB, [ZONE, "rack"], []),
    ],
)
def test_one_node_of_each_domain_gets_the_answer_of_all_nodes_for_the_first_pod_of_a_group(
    others: list[Pod], labels: dict[str, str], keys: list[str], fits: list[str]
) -> None:
    racked = node("b1", zone="b", labels={"rack": "r"})
    cluster = cluster_of(*ZONES[:2], racked, ZONES[3], *others)
    target = pod("p", labels=labels, near=[term("app=web", key) for key in keys])
    runner, record = plain_runner(cluster, "InterPodAffinity"), cluster.read(target)
    refused = place(runner, record).outcome.refused > 0
    cells = InterPodAffinity(PluginContext({}, cluster)).filter_cells(record)
    assert cells is not None

    rows = cluster.nodes.row_of
    assert [name for name, row in rows.items() if not refused[row]] == fits
    assert [name for name, row in rows.items() if cells.fits(record, [row])[0]] == fits


def test_the_second_pod_of_a_group_goes_to_the_first() -> None:
    first = pod("first", on="b1", labels=WEB)

    assert feasible(first, pod("p", labels=WEB, near=[term("app=web", ZONE)])) == ["b1"]


def test_a_pod_on_a_node_without_the_label_is_in_no_domain_and_not_the_first_either() -> None:
    lost = pod("lost", on="bare", labels=WEB)

    assert feasible(lost, pod("p", labels=WEB, near=[term("app=web", ZONE)])) == ["a1", "a2", "b1"]


def test_a_pod_that_counts_in_any_of_the_domains_is_the_first_of_the_group() -> None:
    """The pod has no rack. It matches in its zone, so that no other pod may start a group."""
    racked = node("racked", labels={ZONE: "a", "rack": "r"})
    first = pod("first", on="a1", labels=WEB)
    second = pod("p", labels=WEB, near=[term("app=web", ZONE), term("app=web", "rack")])

    assert refusals(racked, second).keys() == {"a1", "a2", "b1", "bare"}
    assert refusals(racked, first, second).keys() == {"a1", "a2", "b1", "bare", "racked"}


def test_every_term_must_be_met_by_pods_that_all_the_terms_select() -> None:
    """A pod for each term is not enough; one that both select is."""
    both = [term("app=web", ZONE), term("tier=x", ZONE)]
    one_each = [pod("q", on="a1", labels=WEB), pod("r", on="a1", labels={"tier": "x"})]
    whole = pod("s", on="b1", labels={**WEB, "tier": "x"})

    assert feasible(*one_each, pod("p", near=both)) == []
    assert feasible(*one_each, whole, pod("p", near=both)) == ["b1"]


def test_terms_over_different_keys_must_hold_in_both_domains() -> None:
    objects = [pod("q", on="a1", labels=WEB), pod("r", on="b1", labels={"app": "db"})]

    assert feasible(*objects, pod("p", near=[term("app=web", ZONE), term("app=web")])) == ["a1"]


def test_a_terminating_pod_still_counts() -> None:
    leaving = pod("q", on="a1", labels=WEB, terminating=True)

    assert feasible(leaving, pod("p", near=[term("app=web")])) == ["a1"]
    assert "a1" not in feasible(leaving, pod("p", apart=[term("app=web")]))


# Required anti-affinity


def test_a_pod_keeps_out_of_the_domains_of_pods_that_it_avoids() -> None:
    objects = [pod("q", on="a1", labels=WEB), pod("p", apart=[term("app=web", ZONE)])]

    assert refusals(*objects) == {"a1": APART, "a2": APART}


def test_any_of_the_terms_is_enough_to_keep_out() -> None:
    objects = [pod("q", on="a1", labels=WEB), pod("r", on="b1", labels={"app": "db"})]

    assert feasible(*objects, pod("p", apart=[term("app=web"), term("app=db")])) == ["a2", "bare"]


def test_anti_affinity_is_symmetric() -> None:
    """A placed pod with anti-affinity to the new pod keeps it out of its domain."""
    minding = pod("q", on="a1", apart=[term("app=web", ZONE)])

    assert refusals(minding, pod("p", labels=WEB)) == {"a1": THEIRS, "a2": THEIRS}
    assert refusals(minding, pod("p", labels={"app": "db"})) == {}


def test_affinity_comes_before_anti_affinity_and_the_pods_own_before_that_of_others() -> None:
    there = pod("q", on="a1", labels=WEB, apart=[term("app=p", ZONE)])
    labels = {"app": "p"}

    own = pod("p", labels=labels, apart=[term("app=web", ZONE)])
    both = pod("p", labels=labels, apart=[term("app=web", ZONE)], near=[term("app=db", ZONE)])

    assert refusals(there, own)["a1"] == APART
    assert refusals(there, both)["a1"] == NEAR


# The pods that a term selects


@pytest.mark.parametrize(
    ("one", "meant"),
    [
        (term("app=web"), {"default"}),
        (term("app=web", namespaces=["shop"]), {"shop"}),
        (term("app=web", in_namespaces="team=red"), {"shop"}),
        (term("app=web", in_namespaces="team=red", namespaces=["default"]), {"shop", "default"}),
        (term("app=web", in_namespaces=""), {"shop", "default", "other"}),
        (term("app=web", in_namespaces="kubernetes.io/metadata.name=other"), {"other"}),
        (term("", in_namespaces=""), {"shop", "default", "other"}),
        (term(None, in_namespaces=""), set()),
    ],
)
def test_namespaces_and_their_selector_add_up_and_without_both_the_pods_own_is_meant(
    one: PodAffinityTerm, meant: set[str]
) -> None:
    """A namespace without an object has its name as a label."""
    described = [namespace("shop", team="red"), namespace("default", team="blue")]
    for name in ("default", "shop", "other"):
        there = pod("q", on="a1", namespace=name, labels=WEB)

        kept_out = "a1" not in feasible(*described, there, pod("p", apart=[one]))

        assert kept_out is (name in meant)


def test_a_namespace_selector_follows_the_labels_of_the_namespace() -> None:
    cluster = cluster_of(*ZONES, namespace("shop", team="red"), pod("q", on="a1", namespace="shop", labels=WEB))
    runner = plain_runner(cluster)
    record = cluster.read(pod("p", apart=[term("app=web", in_namespaces="team=red")]))

    def fits() -> bool:
        state = CycleState()
        runner.pre_filter(state, record)
        return cluster.nodes.row_of["a1"] in runner.filter(state, record).feasible

    assert not fits()
    cluster.put(namespace("shop", team="blue"))
    assert fits()
    cluster.put(namespace("shop", team="red"))
    assert not fits()
    cluster.remove(namespace("shop"))
    assert fits()


# Scores


def raw_scores(target: Pod, *objects: Kubernetes, **args: Any) -> dict[str, int] | None:
    """Return the scores of the zones' nodes before they are normalized; None where the plugin says nothing."""
    cluster = cluster_of(*ZONES, *objects)
    runner = plain_runner(cluster, "InterPodAffinity", args=args)
    state, record, view = CycleState(), cluster.read(target), View(cluster)
    runner.scoring.prepare(state, record, view)
    if "InterPodAffinity" in state.skip_score:
        return None
    (plugin,) = runner.profile.score
    found = plugin.score_rows(state, record, view)  # type: ignore[union-attr]
    return {name: int(found[row]) for name, row in cluster.nodes.row_of.items()}


def test_a_preference_counts_once_for_each_pod_that_it_means_in_the_domain() -> None:
    there = [pod(f"q{n}", on="a1", labels=WEB) for n in range(2)] + [pod("r", on="b1", labels=WEB)]

    assert raw_scores(pod("p", likes=[(5, term("app=web", ZONE))]), *there) == {"a1": 10, "a2": 10, "b1": 5, "bare": 0}
    assert raw_scores(pod("p", dislikes=[(5, term("app=web"))]), *there) == {"a1": -10, "a2": 0, "b1": -5, "bare": 0}


def test_the_preferences_of_the_pods_already_there_count_too() -> None:
    there = [
        pod("q", on="a1", likes=[(3, term("app=p", ZONE))]),
        pod("r", on="b1", dislikes=[(4, term("app=p"))]),
        pod("s", on="b1", near=[term("app=p", ZONE)], labels={"app": "p"}),
    ]

    assert raw_scores(pod("p", labels={"app": "p"}), *there) == {"a1": 3, "a2": 3, "b1": 1 - 4, "bare": 0}


def test_terms_that_a_pod_carries_twice_count_twice() -> None:
    twice = [(3, term("app=p")), (3, term("app=p"))]
    there = pod("q", on="a1", labels=WEB, likes=twice)

    assert raw_scores(pod("p", labels={"app": "p"}), there) == {"a1": 6, "a2": 0, "b1": 0, "bare": 0}
    own = pod("p", likes=[(3, term("app=web")), (3, term("app=web"))])
    assert raw_scores(own, pod("q", on="a1", labels=WEB)) == {"a1": 6, "a2": 0, "b1": 0, "bare": 0}


def test_required_affinity_of_pods_already_there_counts_by_the_configured_weight() -> None:
    there = pod("q", on="a1", labels={"app": "p"}, near=[term("app=p", ZONE)])
    target = pod("p", labels={"app": "p"})

    assert raw_scores(target, there, hardPodAffinityWeight=7) == {"a1": 7, "a2": 7, "b1": 0, "bare": 0}
    assert raw_scores(target, there, hardPodAffinityWeight=0) is None


def test_pods_without_preferences_are_not_rated_where_those_of_others_are_ignored() -> None:
    """ignorePreferredTermsOfExistingPods says so; with a preference of its own a pod is rated by all of them."""
    there = [
        pod("q", on="a1", likes=[(3, term("app=p"))]),
        pod("r", on="a2", labels={"app": "p"}, near=[term("app=p")]),
        pod("s", on="b1", labels=WEB),
    ]
    plain, liking = pod("p", labels={"app": "p"}), pod("p", labels={"app": "p"}, likes=[(2, term("app=web"))])

    assert raw_scores(plain, *there, ignorePreferredTermsOfExistingPods=True) is None
    assert raw_scores(plain, *there) == {"a1": 3, "a2": 1, "b1": 0, "bare": 0}
    expected = {"a1": 3, "a2": 1, "b1": 2, "bare": 0}
    assert raw_scores(liking, *there, ignorePreferredTermsOfExistingPods=True) == expected


def test_a_pod_that_no_preference_concerns_is_not_rated() -> None:
    there = [pod("q", on="a1", likes=[(3, term("app=web"))]), pod("r", on="bare", labels={"app": "db"})]

    assert raw_scores(pod("p"), *there) is None
    # The only pod that is liked is on a node without the label.
    assert raw_scores(pod("p", likes=[(3, term("app=db", ZONE))]), *there) is None


def test_scores_spread_from_the_worst_node_to_the_best() -> None:
    cluster = cluster_of(*ZONES)
    (plugin,) = plain_runner(cluster, "InterPodAffinity").profile.score
    state, record, view = CycleState(), cluster.read(pod("p")), View(cluster)

    def normalized(*scores: int) -> list[int]:
        found = plugin.normalize(state, record, np.array(scores, dtype=np.int64), view)  # type: ignore[union-attr]
        return [int(one) for one in found]

    assert normalized(-10, 0, 20, 5) == [0, 33, 100, 50]
    assert normalized(7, 7, 7, 7) == [0, 0, 0, 0]


# Surprising behavior of kube-scheduler


@pytest.mark.parametrize("in_namespaces", ["team!=red", "!team", "team notin (red,blue)"])
def test_a_namespace_selector_that_asks_for_nothing_to_be_there_means_every_namespace(in_namespaces: str) -> None:
    """In the terms of the pod that is to be scheduled, required and preferred."""
    red = namespace("shop", team="red")
    web = pod("web", namespace="shop", on="a1", labels=WEB)
    own = term("app=web", ZONE, in_namespaces=in_namespaces)

    assert feasible(red, web, pod("p", near=[own])) == ["a1", "a2"]
    assert refusals(red, web, pod("p", apart=[own])) == {"a1": APART, "a2": APART}
    assert explain([*ZONES, red, web, pod("p", likes=[(1, own)])]).scores["a1"]["InterPodAffinity"] == 200


def test_a_namespace_selector_with_a_further_requirement_does_not_match() -> None:
    red = namespace("shop", team="red", kind="prod")
    own = term("app=web", ZONE, in_namespaces="team!=red,kind")

    assert refusals(red, pod("web", namespace="shop", on="a1", labels=WEB), pod("p", apart=[own])) == {}


def test_the_anti_affinity_of_a_placed_pod_applies_only_in_selected_namespaces() -> None:
    red = namespace("default", team="red")
    theirs = pod("web", namespace="shop", on="a1", apart=[term("app=web", ZONE, in_namespaces="team!=red")])

    assert refusals(red, theirs, pod("p", labels=WEB)) == {}
    assert refusals(namespace("default", team="blue"), theirs, pod("p", labels=WEB)) == {"a1": THEIRS, "a2": THEIRS}


def test_a_term_that_a_pod_requires_twice_counts_twice_for_those_it_wants_near() -> None:
    """Beside a preference of weight 3: two terms lie half way between one and it."""
    objects = [
        pod("once", on="a1", near=[term("app=web", HOSTNAME)]),
        pod("twice", on="b1", near=[term("app=web", HOSTNAME)] * 2),
        pod("liking", on="a2", likes=[(3, term("app=web", HOSTNAME))]),
        pod("p", labels=WEB),
    ]

    scores = {name: one["InterPodAffinity"] for name, one in explain([*HOSTS, *objects]).scores.items()}
    assert scores == {"a1": 0, "a2": 200, "b1": 100}


@pytest.mark.parametrize("repels", [False, True])
def test_nominated_pods_keep_others_off_by_themselves_only_where_that_is_wanted(repels: bool) -> None:
    """kube-scheduler skips the filter where no placed pod's anti-affinity selects the pod."""
    waiting = pod("waiting", priority=5, nominated="a1", apart=[term("app=web", ZONE)])
    cluster = cluster_of(*ZONES, waiting)
    runner = plain_runner(cluster, "InterPodAffinity", args={"nominatedPodsRepel": repels})

    refused = place(runner, cluster.read(pod("p", labels=WEB))).outcome.refused > 0

    assert [name for name, row in cluster.nodes.row_of.items() if refused[row]] == (["a1"] if repels else [])
