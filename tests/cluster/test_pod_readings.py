"""A new version of a bound pod is compared with the old one without building a record."""

from __future__ import annotations

from weakref import ref

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from podium.api.meta import OwnerReference
from podium.api.pod import (
    Affinity,
    Container,
    ContainerStatus,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodCondition,
    PodResourceClaimStatus,
    PodSchedulingGate,
    ResourceRequirements,
    Toleration,
    Volume,
)
from podium.api.policy import POLICY_ANNOTATION
from podium.api.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.api.times import parse_time
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import (
    NO_ROW,
    differs_by_node_alone,
    differs_by_nomination_alone,
    has_same_class,
)
from tests.builders import at, pod, term

BIGGER = ResourceRequirements(requests={"cpu": "2"})
OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", uid="r", controller=True)
METADATA: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {},
    optional={
        "resource_version": st.just("2"),
        "labels": st.just({"app": "other"}),
        "annotations": st.sampled_from([{}, {POLICY_ANNOTATION: "Never"}]),
        "deletion_timestamp": st.just(at(9)),
        "creation_timestamp": st.just(at(1)),
        "owner_references": st.sampled_from([(), (OWNER,)]),
    },
)
SPEC: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.sampled_from([0, 7]),
        "preemption_policy": st.just("Never"),
        "scheduling_gates": st.just((PodSchedulingGate(name="g"),)),
        "tolerations": st.sampled_from([(), (Toleration(key="k", operator="Exists"),)]),
        "containers": st.just((Container(name="c", resources=BIGGER),)),
    },
)
CONDITIONS = st.lists(
    st.sampled_from(
        [
            PodCondition(type="PodScheduled", status="True"),
            PodCondition(type="Ready", status="True"),
            PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler"),
        ]
    ),
    unique_by=lambda condition: condition.type,
).map(tuple)
STATUS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.just("Running"),
        "conditions": CONDITIONS,
        "start_time": st.just(at(3)),
        "nominated_node_name": st.just("n"),
        "resource_claim_statuses": st.just((PodResourceClaimStatus(name="x", resource_claim_name="y"),)),
        "container_statuses": st.just((ContainerStatus(name="c", resources=BIGGER),)),
        "resources": st.just(BIGGER),
    },
)


def changed(item: Pod, metadata: dict[str, object], spec: dict[str, object], status: dict[str, object]) -> Pod:
    return replace(
        item,
        metadata=replace(item.metadata, **metadata),
        spec=replace(item.spec, **spec),
        status=replace(item.status, **status),
    )


@st.composite
def pods(draw: st.DrawFn, name: str = "p") -> Pod:
    return changed(pod(name, cpu=1, labels={"app": "a"}), draw(METADATA), draw(SPEC), draw(STATUS))


@st.composite
def of_one_spec(draw: st.DrawFn) -> tuple[Pod, Pod]:
    """Two readings of a pod that share their spec."""
    before = draw(pods())
    return before, replace(changed(before, draw(METADATA), {}, draw(STATUS)), spec=before.spec)


@given(pods(), METADATA, SPEC, STATUS)
def test_readings_that_differ_by_the_node_alone_make_records_that_do(
    before: Pod, new_metadata: dict[str, object], new_spec: dict[str, object], new_status: dict[str, object]
) -> None:
    after = changed(before, new_metadata, {**new_spec, "node_name": "n"}, new_status)
    cluster = Cluster()
    old, new = cluster.read(before), cluster.read(after)

    if differs_by_node_alone(before, after):
        for field in fields(old):
            if field.name not in ("node_name", "nominated_node_name", "read_from"):
                assert getattr(old, field.name) == getattr(new, field.name), field.name
        assert not new.nominated_node_name


def test_a_plain_binding_is_distinguished_from_other_writes() -> None:
    before = pod("p", cpu=1, labels={"app": "a"})
    scheduled = (PodCondition(type="PodScheduled", status="True"),)

    assert differs_by_node_alone(before, changed(before, {}, {"node_name": "n"}, {}))
    assert differs_by_node_alone(
        before, changed(before, {"resource_version": "8"}, {"node_name": "n"}, {"conditions": scheduled})
    )
    assert not differs_by_node_alone(before, changed(before, {"labels": {}}, {"node_name": "n"}, {}))


@given(of_one_spec())
def test_readings_that_differ_by_the_nomination_alone_make_records_that_do(readings: tuple[Pod, Pod]) -> None:
    before, after = readings
    cluster = Cluster()
    old, new = cluster.read(before), cluster.read(after)

    if differs_by_nomination_alone(before, after):
        for field in fields(old):
            if field.name != "nominated_node_name":
                assert getattr(old, field.name) == getattr(new, field.name), field.name


def test_a_plain_nomination_is_distinguished_from_other_writes() -> None:
    before = pod("p", cpu=1, labels={"app": "a"})
    unscheduled = (PodCondition(type="PodScheduled", status="False"),)
    after = replace(before, status=replace(before.status, nominated_node_name="n", conditions=unscheduled))

    assert differs_by_nomination_alone(before, after)
    assert not differs_by_nomination_alone(before, replace(after, status=replace(after.status, phase="Running")))
    assert not differs_by_nomination_alone(before, changed(after, {"labels": {}}, {}, {}))
    assert not differs_by_nomination_alone(before, changed(after, {}, {"priority": 3}, {}))


def test_a_new_status_leaves_a_waiting_pod_its_class_and_labels_or_an_owner_or_a_node_do_not() -> None:
    before = pod("p", cpu=1, labels={"app": "a"})
    record = Cluster().read(before)

    assert has_same_class(record, replace(before, status=replace(before.status, nominated_node_name="n")))
    others: tuple[dict[str, object], ...] = ({"labels": {}}, {"owner_references": (OWNER,)})
    for metadata in others:
        assert not has_same_class(record, replace(before, metadata=replace(before.metadata, **metadata)))
    assert not has_same_class(record, replace(before, spec=replace(before.spec, node_name="n")))


@given(pods(), METADATA, SPEC, STATUS, st.sampled_from(["", "n"]))
def test_a_reading_declared_to_be_of_a_records_class_is_of_that_class(
    plain: Pod,
    new_metadata: dict[str, object],
    new_spec: dict[str, object],
    new_status: dict[str, object],
    node_name: str,
) -> None:
    before = changed(plain, {}, {"node_name": node_name}, {})
    after = changed(before, new_metadata, new_spec, new_status)
    if not new_spec:
        after = replace(after, spec=before.spec)

    record = Cluster().read(before)

    if has_same_class(record, after):
        assert known_anew(before, after)


@given(pods(), METADATA, STATUS)
def test_pods_with_a_shared_spec_are_of_one_class_if_all_else_agrees(
    first: Pod, other_metadata: dict[str, object], other_status: dict[str, object]
) -> None:
    second = replace(changed(pod("q", cpu=1, labels={"app": "a"}), other_metadata, {}, other_status), spec=first.spec)
    cluster = Cluster()

    is_one = cluster.read(first).pod_class is cluster.read(second).pod_class

    assert is_one is known_anew(first, second)


def known_anew(first: Pod, second: Pod) -> bool:
    """Return whether two pods are of one class by all that they say, with no spec in common."""
    cluster = Cluster()
    apart = replace(second, spec=replace(second.spec))
    return cluster.read(first).pod_class is cluster.read(apart).pod_class


def test_a_record_holds_under_each_name_what_the_pod_says_there() -> None:
    whole = changed(
        pod("p", cpu=1, labels={"app": "a"}),
        {
            "namespace": "team",
            "uid": "u",
            "annotations": {POLICY_ANNOTATION: "Never"},
            "creation_timestamp": at(1),
            "deletion_timestamp": at(9),
            "owner_references": (OWNER,),
        },
        {
            "priority": 7,
            "node_name": "n",
            "scheduler_name": "other",
            "scheduling_gates": (PodSchedulingGate(name="g"),),
        },
        {
            "start_time": at(3),
            "nominated_node_name": "m",
            "conditions": (PodCondition(type="Ready", status="True"),),
            "resource_claim_statuses": (PodResourceClaimStatus(name="x", resource_claim_name="y"),),
        },
    )

    record = Cluster().read(whole)

    assert {field.name: getattr(record, field.name) for field in fields(record)} == {
        "namespace": "team",
        "name": "p",
        "key": "team/p",
        "uid": "u",
        "pod_class": record.pod_class,
        "priority": 7,
        "preemption_policy": "Never",
        "created_ns": parse_time(at(1)),
        "start_ns": parse_time(at(3)),
        "ready": True,
        "terminating": True,
        "preempted": False,
        "node_name": "n",
        "nominated_node_name": "m",
        "annotations": {POLICY_ANNOTATION: "Never"},
        "gates": ("g",),
        "scheduler_name": "other",
        "controller": OWNER,
        "made_claims": (("x", "y"),),
        "read_from": ref(whole.spec),
        "row": NO_ROW,
        "slot": -1,
    }
    assert replace(record, name="q").key == "team/q"
    assert record != replace(record)


def for_node(name: str, *, near: bool = False) -> Affinity:
    """Return the affinity of a DaemonSet's pod, or of one that also keeps near others."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    others = PodAffinity(required=(term("app=web", "zone"),)) if near else None
    return Affinity(node_affinity=NodeAffinity(required=required), pod_affinity=others)


SIMILAR: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {"node_name": st.sampled_from(["n1", "n2", "n3"])},
    optional={
        "affinity": st.builds(for_node, st.sampled_from(["n1", "n2", "n3"]), near=st.booleans()),
        "tolerations": st.sampled_from([(), (Toleration(key="k", operator="Exists"),)]),
        "volumes": st.sampled_from([(), (Volume(name="a"),), (Volume(name="b"),)]),
        "host_network": st.booleans(),
    },
)
NAMED = st.fixed_dictionaries({}, optional={"labels": st.just({"app": "other"}), "owner_references": st.just((OWNER,))})
RESIZED = st.sampled_from([(), (ContainerStatus(name="c", resources=BIGGER),)])


@given(st.lists(st.tuples(SIMILAR, NAMED, RESIZED), min_size=2, max_size=6))
def test_pods_that_share_containers_are_of_the_classes_that_each_has_by_itself(
    differences: list[tuple[dict[str, object], dict[str, object], tuple[ContainerStatus, ...]]],
) -> None:
    one, cluster = pod("p", cpu="1"), Cluster()
    for number, (spec, metadata, statuses) in enumerate(differences):
        similar = replace(
            one,
            metadata=replace(one.metadata, uid=f"u{number}", **metadata),
            spec=replace(one.spec, **spec),
            status=replace(one.status, container_statuses=statuses),
        )
        found, alone = cluster.read(similar).pod_class, Cluster().read(similar).pod_class
        for field in fields(PodClass):
            if field.name not in ("id", "memo"):
                assert getattr(found, field.name) == getattr(alone, field.name), field.name
