"""Volume claims of pods in simulations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.played import instantly
from tests.store.objects import Raw, node, pod

ASKED = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks", "resources": {"requests": {"storage": "1Gi"}}}


def disks(mode: str = "WaitForFirstConsumer") -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disks"},
        "provisioner": "disks",
        "volumeBindingMode": mode,
    }


def with_cache(name: str, **more: Any) -> Raw:
    """Return a pod with a volume of its own."""
    own = {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": ASKED}}}
    return pod(name, spec={"volumes": [own]}, **more)


def deleting(name: str) -> Raw:
    steps = [{"at": "1m", "delete": {"kind": "Pod", "name": name, "outright": True}}]
    return {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "s"},
        "spec": {"until": "5m", "steps": steps},
    }


def test_a_pod_with_a_volume_of_its_own_is_placed_with_the_claim_that_is_made_for_it() -> None:
    result = instantly([node("n1"), disks(), with_cache("web")])

    assert [(one["pod"], one["node"]) for one in result.pods] == [("default/web", "n1")]
    assert result.caveats == ()


def test_the_volume_of_a_pod_that_is_gone_is_another_ones_room() -> None:
    driver = {"name": "disks", "nodeID": "n1", "topologyKeys": [], "allocatable": {"count": 1}}
    limited = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [driver]},
    }
    result = instantly([node("n1"), disks(), limited, with_cache("a"), with_cache("b"), deleting("a")])

    placed = [(event.time, event.pod) for event in result.events if event.reason == "Scheduled"]
    assert placed == [(0, "default/a"), (90, "default/b")]


@pytest.mark.parametrize("classes", [[disks("Immediate")], []])
def test_a_waiting_pod_names_its_claim_that_no_controller_binds(classes: list[Raw]) -> None:
    result = instantly([node("n1"), *classes, with_cache("web")])

    (caveat,) = result.caveats
    assert (caveat.about, caveat.names) == ("claims-unbound", ("default/web-cache",))
