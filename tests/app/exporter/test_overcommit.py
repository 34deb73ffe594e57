"""Clusters about which KubeCPUOvercommit and the exporter differ; docs/exporter.md lists them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.exporter.clusters import HOST, Raw, Workload, cluster_of, node
from tests.app.exporter.test_failures import outcomes


def overcommit_fires(objects: Raw) -> bool:
    """Return whether the alert's expression holds: requests above the capacity without the largest node, above 0."""
    items = objects["items"]
    allocatable = [int(each["status"]["allocatable"]["cpu"]) * 1000 for each in items if each["kind"] == "Node"]
    requested = sum(
        int(container["resources"]["requests"]["cpu"].removesuffix("m"))
        for each in items
        if each["kind"] == "Pod"
        for container in each["spec"]["containers"]
    )
    return requested > sum(allocatable) - max(allocatable) > 0


def _apart(name: str) -> Raw:
    term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": HOST}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


_TAINT = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
_CASES: dict[str, tuple[list[Raw], list[Workload], bool, dict[tuple[str, str], str]]] = {
    "no node has room for a large pod": (
        [node("n1"), node("n2"), node("n3"), node("n4")],
        [Workload("big", ["n1"], milli=3000), Workload("small", ["n2", "n3", "n4"], milli=1500)],
        False,
        {("node", "n1"): "unplaced"},
    ),
    "anti-affinity": (
        [node("n1"), node("n2")],
        [Workload("web", ["n1", "n2"], milli=500, spec=_apart("web"))],
        False,
        {("node", "n1"): "unplaced"},
    ),
    "tainted nodes": (
        [node("n1"), node("n2", taints=_TAINT)],
        [Workload("web", ["n1", "n1"])],
        False,
        {("node", "n1"): "unplaced"},
    ),
    "cordoned nodes": (
        [node("n1"), node("n2", unschedulable=True)],
        [Workload("web", ["n1", "n1"])],
        False,
        {("node", "n1"): "unplaced"},
    ),
    "a zone": (
        [node("n1", "a"), node("n2", "a"), node("n3", "b")],
        [Workload("web", ["n1", "n1", "n1", "n2", "n2", "n3"])],
        False,
        {("node", "n1"): "fits", ("zone", "a"): "unplaced"},
    ),
    "daemons": (
        [node("n1"), node("n2")],
        [Workload("agent", ["n1", "n2"], "DaemonSet", 3000), Workload("web", ["n1"], milli=500)],
        True,
        {("node", "n1"): "fits", ("node", "n2"): "fits"},
    ),
    "pending pods": (
        [node("n1"), node("n2")],
        [Workload("web", ["n1"]), Workload("huge", ["", ""], milli=9000)],
        True,
        {("node", "n1"): "fits", ("node", "n2"): "fits"},
    ),
    "pods that need no place": (
        [node("n1"), node("n2", cpu=8)],
        [Workload("db", ["n2"] * 6, "StatefulSet"), Workload("web", ["n1"])],
        True,
        {("node", "n1"): "fits", ("node", "n2"): "fits"},
    ),
    "preemption": (
        [node("n1"), node("n2")],
        [Workload("web", ["n1"] * 3, priority="high"), Workload("batch", ["n2"] * 3, "")],
        True,
        {("node", "n1"): "preempts"},
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_the_exporter_differs_from_sums(case: str) -> None:
    nodes, workloads, fires, expected = _CASES[case]
    objects: Any = cluster_of(nodes, *workloads)
    found = outcomes(objects)
    assert overcommit_fires(objects) is fires
    assert {key: found[key].outcome for key in expected} == expected
