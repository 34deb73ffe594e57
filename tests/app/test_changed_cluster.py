"""A changed copy of a cluster answers as if its objects had been loaded."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.app import cluster as clusters
from podium.app import cluster_session
from podium.app.cluster import Cluster
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.on_node import answer_on
from podium.framework.settings.configuration import Configuration
from tests.builders import namespace, node, pod, replica_set, service, term
from tests.fuzzing import usual
from tests.generators import EVERYTHING, Objects, Traits, budgets, nodes, pods
from tests.generators import clusters as generated


def answers(cluster: Cluster) -> dict[str, Any]:
    """Return what is said of each pod, pending or placed; or why nothing is."""
    found: dict[str, Any] = {}
    for key in cluster.pods:
        try:
            found[key] = cluster.explain(key).to_dict()
        except podium.PodiumError as error:
            found[key] = str(error)
    return found


def name_of(item: Kubernetes) -> str:
    kind = KIND_OF[type(item)]
    return f"{kind.name}/{item.key}"


@st.composite
def changes(draw: st.DrawFn, objects: Objects, traits: Traits) -> tuple[list[Kubernetes], list[str]]:
    """Objects that come or change, and the names of some that go."""
    names = [item.metadata.name for item in objects.nodes]
    come: list[Kubernetes] = []
    for name in draw(st.lists(st.sampled_from([*names, "node-9"]), max_size=2, unique=True)):
        come.append(draw(nodes(name, traits)))
    for name in draw(st.lists(st.sampled_from(("pod-0", "pod-1", "pod-7")), max_size=2, unique=True)):
        come.append(draw(pods(name, names, replace(traits, ports=False))))
    if draw(st.booleans()):
        come.append(namespace("shop", team="green"))
    come += draw(st.sampled_from(([], [service("s", app="a")], [replica_set("r", "app=a")])))
    come += draw(st.lists(budgets(), max_size=1))
    known = [name_of(item) for item in objects.surroundings]
    gone = draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
    return come, [name for name in gone if name not in {name_of(item) for item in come}]


@given(data=st.data())
@settings(max_examples=usual(25), deadline=None)
@patch.object(cluster_session, "_ONE_IN", 0)
def test_a_copy_says_what_its_objects_say_when_they_are_loaded(data: st.DataObject) -> None:
    # With images of any size, and where replacements are awaited, columns are made anew.
    plain = data.draw(st.sampled_from((True, True, False)))
    traits = replace(EVERYTHING, same_sizes=plain, avoid_lists=not plain)
    objects = data.draw(generated(traits))
    cluster = podium.load(objects.all)
    versions = [cluster]
    for _ in range(data.draw(st.integers(1, 3))):
        come, gone = data.draw(changes(objects, traits))
        gone = [name for name in gone if name in {name_of(item) for item in objects.surroundings}]
        try:
            versions.append(data.draw(st.sampled_from(versions)).with_(*come, without=gone))
        except podium.PodiumError:
            # Another version has no such object.
            continue

    fresh = [podium.load(list(version.read.documents)) for version in versions]
    order = data.draw(st.permutations(range(len(versions))))
    for place in (*order, 0):
        assert answers(versions[place]) == answers(fresh[place])


LARGE = [
    *(node(f"n-{number}", cpu=4, pods=20, images={f"image-{number % 3}": 100}) for number in range(6)),
    *(pod(f"p-{number}", on=f"n-{number % 6}", cpu=1, priority=number % 4) for number in range(24)),
    *(pod(f"w-{number}", cpu=2, priority=5) for number in range(4)),
]


def test_the_order_of_obstacles_does_not_depend_on_history() -> None:
    # Each has a term of its own, and an address of its own on the port that is wanted.
    holders = [
        pod(f"p-{rack}", on="n", ports=[f"10.0.0.{rack}/TCP/80"], apart=[term("app=web", f"rack-{rack}")])
        for rack in range(3)
    ]
    there = [
        node("n", labels={f"rack-{rack}": "r" for rack in range(3)}),
        *(node(f"n-{number}") for number in range(20)),
        pod("web", labels={"app": "web"}, ports=[80], node_selector={"rack-0": "r"}),
    ]
    cluster = podium.load([*there, *holders])
    assert cluster.explain("web").outcome == "unschedulable"

    without = cluster.with_(without=["pod/p-0"])
    assert without.explain("web").outcome == "unschedulable"

    again = without.with_(holders[0]).explain("web").to_dict()["remedies"]
    assert again == podium.load([*there, *holders]).explain("web").to_dict()["remedies"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Explainer]:
    """Those that were made, each with columns of its own."""
    found: list[Explainer] = []

    class Counted(Explainer):
        def __init__(self, *given: Any, **named: Any) -> None:
            found.append(self)
            super().__init__(*given, **named)

    monkeypatch.setattr(clusters, "Explainer", Counted)
    return found


def test_copies_share_the_columns_of_the_cluster(made: list[Explainer]) -> None:
    cluster = podium.load(LARGE)
    smaller = cluster.with_(without=["node/n-3"])
    fuller = smaller.with_(pod("p-new", on="n-1", cpu=2))

    for version in (cluster, smaller, fuller, cluster, fuller):
        assert version.explain("w-0").outcome == "preempts"

    assert len(made) == 1
    assert "n-3" not in smaller.nodes
    assert "n-3" in cluster.nodes


@pytest.mark.parametrize(
    "item",
    [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 9},
        node("n-9", images={"image-0": 7}),
        pod("p-0", on="n-0", started=86_400),
    ],
    ids=["a class", "an image of another size", "a later time"],
)
def test_cluster_wide_changes_rebuild_the_columns(item: Any, made: list[Explainer]) -> None:
    cluster = podium.load(LARGE)
    changed = cluster.with_(item)

    assert answers(changed) == answers(podium.load(list(changed.read.documents)))
    assert answers(cluster) == answers(podium.load(LARGE))
    for version in (cluster, changed, cluster, changed):
        version.explain("w-0")

    # Two for the versions, two for what they are compared with.
    assert len(made) == 4


def test_other_settings_have_columns_of_their_own() -> None:
    cluster = podium.load(LARGE)
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}

    changed = cluster.with_(configuration={**configuration, "profiles": [profile]})

    assert changed.explain("w-0").scores.keys() == set(cluster.nodes)
    assert cluster.explain("w-0").outcome == "preempts"
    assert isinstance(changed.settings.configuration, Configuration)


def test_an_explanation_stays_what_it_was_whichever_copy_is_asked_then() -> None:
    full = [*LARGE, *(pod(f"f-{number}", on=f"n-{number}", cpu=2, priority=number) for number in range(6))]
    cluster = podium.load(full)
    expected = {key: podium.load(full).explain(key).to_dict() for key in ("w-0", "p-1")}
    on_node = answer_on(podium.load(full).explain("w-0"), "n-2").to_dict()
    report = {key: cluster.explain(key) for key in expected}

    smaller = cluster.with_(without=["node/n-2", "pod/p-1"])
    smaller.explain("w-0").to_dict()

    assert answer_on(report["w-0"], "n-2").to_dict() == on_node
    smaller.explain("w-0")
    assert {key: explanation.to_dict() for key, explanation in report.items()} == expected


def test_a_rejected_pod_is_reported_and_leaves_the_cluster_unchanged() -> None:
    cluster = podium.load(LARGE)
    before = answers(cluster)
    bad = msgspec.structs.replace(pod("bad"), spec=msgspec.structs.replace(pod("bad").spec, priority_class_name="gone"))

    with pytest.raises(podium.PodiumError, match=r"Pod default/bad is forbidden: no PriorityClass with name gone"):
        cluster.with_(bad, without=["node/n-1"]).explain("w-0")

    assert answers(cluster) == before


def test_objects_are_named_as_for_kubectl(made: list[Explainer]) -> None:
    cluster = podium.load([*LARGE, pod("far", namespace="shop"), service("far", namespace="shop", app="a")])

    assert cluster.get("po/shop/far")["metadata"]["namespace"] == "shop"
    assert cluster.get("svc/far")["kind"] == "Service"
    assert cluster.get("nodes/n-1")["metadata"]["name"] == "n-1"
    assert "shop/far" not in cluster.with_(without=["pod/shop/far"]).pods
    assert "shop/far" not in cluster.with_(without="pod/shop/far").pods
    for name, says in {"pod/nobody": "no Pod nobody", "plant/tree": "no kind plant", "web": "not an object"}.items():
        with pytest.raises(podium.PodiumError, match=says):
            cluster.get(name)
    assert not made


def test_fields_are_set_as_a_plan_sets_them() -> None:
    cluster = podium.load(LARGE)

    changed = cluster.with_(fields={"pod/w-0": {"nodeSelector.disk": "ssd"}, "node/n-2": {"labels.disk": "ssd"}})

    assert changed.explain("w-0").node == "n-2"
    assert changed.get("pod/w-0")["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert "nodeSelector" not in cluster.get("pod/w-0")["spec"]
    cleared = changed.with_(fields={"pod/w-0": {"nodeSelector": None}})
    assert "nodeSelector" not in cleared.get("pod/w-0")["spec"]


def test_objects_returned_by_get_may_be_modified_and_put_back() -> None:
    cluster = podium.load(LARGE)
    changed = cluster.get("node/n-1")
    changed["spec"]["unschedulable"] = True

    assert cluster.with_(changed).explain("w-0").nodes["n-1"].reasons == ("node(s) were unschedulable",)
    assert cluster.explain("w-0").nodes["n-1"].reasons == ("Insufficient cpu",)


def test_a_simulation_of_a_copy_is_that_of_its_objects() -> None:
    changed = podium.load(LARGE).with_(pod("more", cpu=1), without=["pod/w-1"])

    assert changed.simulate().to_dict() == podium.simulate(list(changed.read.documents)).to_dict()


def test_a_pod_that_waits_for_its_claim_is_nominated_once_the_claim_is_there() -> None:
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "device"}, "spec": {}}
    waiting = pod("holder", nominated="n-1", cpu=3, priority=9)
    raw = msgspec.to_builtins(waiting)
    raw["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": "device"}]
    without = podium.load([*LARGE, {"apiVersion": "v1", "kind": "Pod", **raw}])
    with_claim = without.with_(claim)

    for _ in range(2):
        assert answers(without) == answers(podium.load(list(without.read.documents)))
        assert answers(with_claim) == answers(podium.load(list(with_claim.read.documents)))
    assert without.explain("holder").outcome == "gated"
    assert with_claim.explain("holder").outcome != "gated"


def test_copies_leave_nothing_behind() -> None:
    cluster = podium.load(LARGE)
    cluster.explain("w-0")
    copy = cluster
    gone = []
    for number in range(5):
        copy = copy.with_(pod(f"again-{number}", on="n-1", cpu=1))
        copy.explain("w-0")
        gone.append(weakref.ref(copy))
    cluster.explain("w-0")
    del copy
    gc.collect()

    assert not any(reference() for reference in gone)
    assert isinstance(cluster.get("pod/w-0"), dict)
    assert not any(isinstance(item, Pod) and item.metadata.name.startswith("again") for item in gc.get_objects())
