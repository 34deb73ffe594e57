"""Moves of pods with devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace as changed

from podium.api.input.codec import decode
from podium.api.meta import Kubernetes
from podium.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from podium.cluster.cluster import Cluster
from tests.builders import node
from tests.decide.rescheduling.planning import KeepOff, Proposes, given, moves, places, plan, web, why
from tests.devices import allocated, claim, device, device_class, devices_of, request
from tests.store.objects import Raw


def made(*raws: Raw) -> list[Kubernetes]:
    return [item for raw in raws if (item := decode(raw)) is not None]


def claiming(name: str, at: str, **named: str) -> Pod:
    """Return a pod on a node with a claim that was made for it, or one that it names."""
    pod = web(name, at, cpu=1, owner=f"ReplicaSet/{name}")
    if "names" in named:
        asked = PodResourceClaim(name="gpu", resource_claim_name=named["names"])
        return changed(pod, spec=changed(pod.spec, resource_claims=(asked,)))
    asked = PodResourceClaim(name="gpu", resource_claim_template_name="gpu")
    report = PodResourceClaimStatus(name="gpu", resource_claim_name=f"{name}-gpu")
    return changed(
        pod,
        spec=changed(pod.spec, resource_claims=(asked,)),
        status=changed(pod.status, resource_claim_statuses=(report,)),
    )


def made_for(pod: str, at: str, *devices: str, **more: Any) -> Raw:
    raw = claim(f"{pod}-gpu", request("r", count=len(devices)), status=allocated(at, *devices, to=[pod]))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"default/{pod}", "controller": True}
    return {**raw, "metadata": {**raw["metadata"], "ownerReferences": [owner]}, **more}


def offers(**gpus: int) -> list[Raw]:
    return [
        device_class(),
        *[devices_of(at, *[device(f"gpu-{n}") for n in range(count)]) for at, count in gpus.items()],
    ]


def held(cluster: Cluster) -> Mapping[Any, int]:
    return dict(cluster.devices.allocated.dedicated)


def test_a_pod_goes_where_its_replacement_would_get_devices() -> None:
    here = given(
        *[node(name) for name in "abc"], *made(*offers(a=1, b=0, c=1), made_for("w", "a", "gpu-0")), claiming("w", "a")
    )

    assert moves(plan(here, KeepOff(("a",)))) == {"w": "c"}


def test_allocated_devices_are_not_shared_and_those_of_moved_pods_are_free() -> None:
    here = given(
        node("a"),
        node("b"),
        *made(*offers(a=1, b=1), made_for("w", "a", "gpu-0"), made_for("x", "b", "gpu-0")),
        claiming("w", "a"),
        claiming("x", "b"),
    )

    assert why(plan(here, KeepOff(("a",)))) == {"w": "no other node takes it"}
    swapped = {"w": "b", "x": "a"}
    both = plan(here, Proposes([["w", "x"]], lambda picture: 2.0 * (places(picture.cluster) != swapped)))
    assert moves(both) == swapped


def test_two_pods_that_move_do_not_get_the_same_device() -> None:
    here = given(
        node("a"),
        node("b"),
        *made(*offers(a=2, b=1), made_for("v", "a", "gpu-0"), made_for("w", "a", "gpu-1")),
        claiming("v", "a"),
        claiming("w", "a"),
    )

    found = plan(here, KeepOff(("a",)))

    assert moves(found) == {"v": "b"}
    assert why(found) == {"w": "no other node takes it"}


def test_a_claim_that_a_pod_names_ties_it_to_where_its_devices_are() -> None:
    here = given(
        node("a"),
        node("b"),
        *made(*offers(a=1, b=1), claim("shared", status=allocated("a", "gpu-0", to=["w"]))),
        claiming("w", "a", names="shared"),
    )

    assert why(plan(here, KeepOff(("a",)))) == {"w": "no other node takes it"}


def test_a_waiting_pod_gets_the_devices_that_are_left_before_any_replacement() -> None:
    here = given(node("a"), node("b"), *made(*offers(a=1, b=1), made_for("w", "a", "gpu-0")), claiming("w", "a"))
    unserved = made_for("x", "a", "gpu-0")
    here.cluster.put(made({key: value for key, value in unserved.items() if key != "status"})[0])
    waiting = changed(claiming("x", "a"), spec=changed(claiming("x", "a").spec, node_name=""))

    found = plan(here, KeepOff(("a",)), waiting=[waiting])

    assert moves(found) == {"w": "b"}


def test_an_extended_resource_that_a_class_stands_for_moves_with_its_pod() -> None:
    backed = device_class(extendedResourceName="example.com/gpu")
    pod = web("w", "a", cpu=1, example_com__gpu=1)
    own = made_for("w", "a", "gpu-0")
    own["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    here = given(*[node(name) for name in "abc"], *made(backed, *offers(a=1, b=0, c=1)[1:], own), pod)

    assert moves(plan(here, KeepOff(("a",)))) == {"w": "c"}


@pytest.mark.parametrize("stays", [True, False])
def test_when_all_is_taken_back_every_claim_is_as_it_was(*, stays: bool) -> None:
    objects = made(*offers(a=1, b=0 if stays else 1), made_for("w", "a", "gpu-0"))
    here = given(node("a"), node("b"), *objects, claiming("w", "a"))
    claims, devices = dict(here.cluster.devices.claims), held(here.cluster)

    assert bool(moves(plan(here, KeepOff(("a",))))) is not stays

    assert here.cluster.devices.claims == claims
    assert held(here.cluster) == devices
