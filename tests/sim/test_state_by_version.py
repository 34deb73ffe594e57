"""State over time by Kubernetes version: the outcome before and after each change."""

from __future__ import annotations

from typing import Any

import pytest

import podium
from tests.sim.objects import scenario
from tests.sim.test_volume_claims import disks, with_cache
from tests.store.objects import Raw, node, pod, priority_class

HOST = "kubernetes.io/hostname"
START = "2026-01-01T00:00:00Z"
AT_ONCE = {"terminationGracePeriodSeconds": 0}
HIGH = pod("high", cpu=4, priority=10, spec={"priorityClassName": "high"})


def played(version: str, *objects: Raw, latency: str = "0", gates: str = "", **spec: Any) -> podium.SimulationResult:
    given = [*objects, scenario(*spec.pop("steps", ()), until="1m", **spec)]
    return podium.simulate(given, kubernetes_version=version, feature_gates=gates, latency=latency, start=START)


def events(result: podium.SimulationResult, *reasons: str, pod: str = "") -> list[tuple[float, str, str | None]]:
    """Return the events of these reasons: their times, reasons and pods."""
    return [
        (event.time, event.reason, event.pod)
        for event in result.events
        if event.reason in reasons and pod in ("", event.pod)
    ]


def low(name: str, **more: Any) -> Raw:
    return pod(name, cpu=2, node="n1", priority=0, spec=AT_ONCE, **more)


@pytest.mark.parametrize(
    ("version", "gates", "attempts"),
    [("1.31", "", 3), ("1.31", "SchedulerQueueingHints=true", 2), ("1.32", "", 2)],
)
def test_a_pod_is_retried_only_on_a_hint_in_versions_with_queueing_hints(
    version: str, gates: str, attempts: int
) -> None:
    """1.31 retries a pod held back by its spread constraint whenever a pod of its namespace gets a node."""
    spread = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    waiting = pod("w2", cpu=2, labels={"app": "web"}, spec={"topologySpreadConstraints": [spread]})
    names: list[dict[str, Any]] = [{HOST: "n1"}, {HOST: "n2"}]
    nodes = [node("n1", **names[0]), node("n2", cpu=1, **names[1])]
    placed = pod("w1", node="n1", labels={"app": "web"})

    result = played(version, *nodes, placed, waiting, gates=gates, steps=[{"at": "30s", "apply": [pod("other")]}])

    assert result.summary["attempts"] == attempts


def test_without_hints_a_node_wakes_only_pods_that_may_fit_it() -> None:
    """1.31 checks requests, affinity, name, ports and taints of a node before it retries a pod there."""
    objects = [node("n1", cpu=1), pod("big", cpu=8), pod("small", cpu=2)]

    result = played("1.31", *objects, steps=[{"at": "30s", "apply": [node("n2", cpu=4)]}])

    assert result.summary["attempts"] == 3
    assert events(result, "Scheduled") == [(30, "Scheduled", "default/small")]


@pytest.mark.parametrize(("version", "bound"), [("1.32", 1), ("1.33", 0.5)])
def test_a_backoff_ends_early_if_no_pod_is_active_since_1_33(version: str, bound: float) -> None:
    steps = [{"at": "500ms", "delete": {"kind": "Pod", "name": "low", "outright": True}}]
    objects = [node("n1", cpu=2), low("low"), pod("waiting", cpu=2)]

    assert events(played(version, *objects, steps=steps), "Scheduled") == [(bound, "Scheduled", "default/waiting")]


def test_victims_are_deleted_before_the_nomination_until_1_32_and_in_the_background_since() -> None:
    objects = [node("n1", cpu=4), priority_class("high", 10), low("a"), low("b"), HIGH, pod("next", cpu=9)]

    before, after = (played(version, *objects, latency="5ms") for version in ("1.32", "1.33"))

    # 1.32 deletes both at once, then nominates, and makes no other attempt meanwhile. The preemptor backs off.
    ended = [(0.01, "Terminated", "default/a"), (0.01, "Terminated", "default/b")]
    assert events(before, "Terminated") == ended
    assert events(before, "FailedScheduling") == [
        (0.01, "FailedScheduling", "default/high"),
        (0.01, "FailedScheduling", "default/next"),
    ]
    assert events(before, "Nominated") == [(0.015, "Nominated", "default/high")]
    # 1.33 nominates at once, deletes the last victim after the others, and retries the preemptor then.
    assert events(after, "FailedScheduling")[:2] == [
        (0, "FailedScheduling", "default/high"),
        (0, "FailedScheduling", "default/next"),
    ]
    assert events(after, "Nominated") == [(0.005, "Nominated", "default/high")]
    assert [time for time, _, _ in events(after, "Terminated")] == [0.01, 0.02]
    assert [time for time, _, _ in events(after, "Scheduled")] == [0.025]
    assert [time for time, _, _ in events(before, "Scheduled")] == [1.015]


@pytest.mark.parametrize(("version", "nominations"), [("1.34", []), ("1.35", ["default/web"])])
def test_a_pod_is_nominated_while_its_volumes_are_bound_since_1_35(version: str, nominations: list[str]) -> None:
    result = played(version, node("n1"), disks(), with_cache("web"))

    assert [pod for _, _, pod in events(result, "Nominated")] == nominations
    assert [pod for _, _, pod in events(result, "Scheduled")] == ["default/web"]


@pytest.mark.parametrize(("version", "preempted"), [("1.34", ["default/low"]), ("1.35", [])])
def test_victims_that_terminate_already_are_left_alone_since_1_35(version: str, preempted: list[str]) -> None:
    metadata = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
    ending = pod("low", cpu=4, node="n1", priority=0, metadata=metadata, status={"phase": "Running"})

    result = played(version, node("n1", cpu=4), priority_class("high", 10), ending, HIGH)

    assert [pod for _, _, pod in events(result, "Preempted")] == preempted
    assert events(result, "Scheduled") == [(30, "Scheduled", "default/high")]


@pytest.mark.parametrize(("version", "placed"), [("1.34", "n1"), ("1.35", "n2")])
def test_selectors_see_the_zone_of_bound_pods_since_1_35(version: str, placed: str) -> None:
    """A pod that must not share a node with pods of zone a: only the API server puts the zone into their labels."""
    zone = "topology.kubernetes.io/zone"
    names: list[dict[str, Any]] = [{HOST: "n1", zone: "a"}, {HOST: "n2", zone: "b"}]
    nodes = [node("n1", cpu=10, **names[0]), node("n2", cpu="1500m", **names[1])]
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {zone: "a"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    steps = [{"at": "10s", "apply": [pod("second", cpu=1, spec={"affinity": apart})]}]
    result = played(version, *nodes, pod("first", cpu=4), steps=steps)

    where = {event.pod: event.node for event in result.events if event.reason == "Scheduled"}
    assert where == {"default/first": "n1", "default/second": placed}


@pytest.mark.parametrize(("version", "placed"), [("1.36", ["default/low"]), ("1.37", [])])
def test_nominations_of_gated_pods_keep_their_place_since_1_37(version: str, placed: list[str]) -> None:
    """By reading: kube-scheduler 1.37, #139057."""
    spec = {"schedulingGates": [{"name": "wait"}], "priorityClassName": "high"}
    gated = pod("gated", cpu=4, priority=10, spec=spec, status={"phase": "Pending", "nominatedNodeName": "n1"})

    result = played(version, node("n1", cpu=4), priority_class("high", 10), gated, pod("low", cpu=2))

    assert [pod for _, _, pod in events(result, "Scheduled")] == placed


@pytest.mark.parametrize(("version", "phase"), [("1.33.5", "Running"), ("1.33.6", "Failed")])
def test_kubelets_count_host_ports_of_sidecars_since_1_33_6(version: str, phase: str) -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    sidecar = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always", "ports": port}
    first, second = (pod(name, node="n1", spec={"initContainers": [sidecar]}) for name in ("first", "second"))

    result = played(version, node("n1"), first, steps=[{"at": "10s", "apply": [second]}])

    assert next(each["phase"] for each in result.pods if each["pod"] == "default/second") == phase


@pytest.mark.parametrize(("version", "phase"), [("1.32", "Running"), ("1.33", "Failed")])
def test_kubelets_count_resources_of_resized_pods_since_1_33(version: str, phase: str) -> None:
    running: Raw = {"name": "main", "resources": {"requests": {"cpu": "3"}}, "state": {"running": {}}}
    status: Raw = {"phase": "Running", "containerStatuses": [running]}
    resized = pod("resized", cpu=1, node="n1", status=status)

    steps = [{"at": "10s", "apply": [pod("second", cpu=2, node="n1")]}]
    result = played(version, node("n1", cpu=4), resized, steps=steps)

    assert next(each["phase"] for each in result.pods if each["pod"] == "default/second") == phase


OF_1_36 = "GenericWorkload=true,GangScheduling=true"
WITH_VICTIMS = f"{OF_1_36},WorkloadAwarePreemption=true"
OF_1_37 = "GenericWorkload=true"
GROUP: Raw = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}


def group(name: str, number: int, **spec: Any) -> Raw:
    return GROUP | {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": number}}, **spec}}


def member(name: str, of: str, **more: Any) -> Raw:
    return pod(name, cpu=2, spec={"schedulingGroup": {"podGroupName": of}, **AT_ONCE, **more})


@pytest.mark.parametrize(
    ("version", "gates", "victims"),
    [
        ("1.36", "", {"default/a-1"}),
        ("1.36", OF_1_36, {"default/a-1"}),
        ("1.36", WITH_VICTIMS, {"default/a-1", "default/a-2"}),
        ("1.37", "", {"default/a-1"}),
        ("1.37", OF_1_37, {"default/a-1", "default/a-2"}),
    ],
)
def test_groups_are_victims_as_a_whole_with_the_gate(version: str, gates: str, victims: set[str]) -> None:
    """By reading: kube-scheduler 1.37 (WorkloadAwarePreemption of 1.36, which GenericWorkload took over)."""
    nodes = [node("n1", cpu=2), node("n2", cpu=2)]
    members = [member(f"a-{number}", "a", nodeName=f"n{number}") for number in (1, 2)]
    high = pod("high", cpu=2, priority=10, spec={"priorityClassName": "high", "nodeSelector": {HOST: "n1"}})
    labeled = [{**each, "metadata": {**each["metadata"], "labels": {HOST: each["metadata"]["name"]}}} for each in nodes]

    result = played(
        version, *labeled, group("a", 2, disruptionMode={"all": {}}), *members, priority_class("high", 10), high,
        gates=gates,
    )  # fmt: skip

    assert {victim for _, _, victim in events(result, "Preempted")} == victims


@pytest.mark.parametrize(
    ("version", "gates", "says"),
    [
        ("1.36", OF_1_36, "waiting for minCount pods from a gang to be scheduled"),
        ("1.37", OF_1_37, "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"),
    ],
)
def test_gangs_are_scheduled_with_the_gate_and_their_messages_have_counts_since_1_37(
    version: str, gates: str, says: str
) -> None:
    """By reading: kube-scheduler 1.37 (GangScheduling, PlacementFeasible)."""
    objects = [node("n1", cpu=4), group("a", 3), *(member(f"a-{number}", "a") for number in (1, 2, 3))]

    result = played(version, *objects, gates=gates)

    said = {event.pod: event.message for event in result.events if event.reason == "FailedScheduling"}
    assert said["default/a-1"] == said["default/a-2"] == f"pod group is unschedulable, {says}"
    assert (said["default/a-3"] or "").startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert [pod for _, _, pod in events(played(version, *objects), "Scheduled")] == ["default/a-1", "default/a-2"]


@pytest.mark.parametrize(("version", "waves"), [("1.36", [1, 1, 1, 1]), ("1.37", [2, 2])])
def test_a_stateful_set_replaces_as_many_pods_at_a_time_as_may_be_unavailable_since_1_37(
    version: str, waves: list[int]
) -> None:
    """By reading: MaxUnavailableStatefulSet is on by default since 1.37."""

    def of(image: str) -> Raw:
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": image}], "terminationGracePeriodSeconds": 1},
        }
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
        spec = {"replicas": 4, "podManagementPolicy": "Parallel", "updateStrategy": rolling, "template": template}
        labels = {"matchLabels": {"app": "web"}}
        head = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}}
        return {**head, "spec": {**spec, "selector": labels, "serviceName": "web"}}

    result = played(version, node("n1"), of("app:1"), steps=[{"at": "20s", "apply": [of("app:2")]}])

    times = [time for time, _, _ in events(result, "Scheduled") if time > 20]
    assert [times.count(time) for time in dict.fromkeys(times)] == waves
