"""Services have EndpointSlices and Endpoints with the addresses of the pods that they select."""

from typing import Any

from podium.controllers.actions import CreateObject, DeleteObject, PatchObject
from podium.controllers.endpoints import MANAGED_BY, SERVICE_NAME, ServiceEndpoints
from tests.controllers.store_rig import CONFLICT, NO_ANSWER, Rig, pod
from tests.store.objects import Raw
from tests.store.objects import node as node_of

HTTP: Raw = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}


def service(name: str = "web", **spec: Any) -> Raw:
    filled = {"selector": {"app": "web"}, "ports": [HTTP], "type": "ClusterIP", "sessionAffinity": "None", **spec}
    metadata = {"name": name, "namespace": "default", "labels": {"team": "a"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": filled}


def web(name: str, ip: str, *, ready: bool = True, **more: Any) -> Raw:
    raw = pod(name, ready=ready, **more)
    return {**raw, "status": {**raw["status"], "podIP": ip}}


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(ServiceEndpoints, *objects)
    rig.settle()
    return rig


def slices(rig: Rig) -> list[Raw]:
    return [one.raw for one in rig.store.objects("EndpointSlice")]


def conditions(rig: Rig) -> dict[str, tuple[bool, bool, bool]]:
    """Return by address whether it is ready, serving and terminating."""
    found = (endpoint for slice_ in slices(rig) for endpoint in slice_.get("endpoints") or ())
    return {
        endpoint["addresses"][0]: (
            endpoint["conditions"]["ready"],
            endpoint["conditions"]["serving"],
            endpoint["conditions"]["terminating"],
        )
        for endpoint in found
    }


def subsets(rig: Rig, name: str = "web") -> list[tuple[list[str], list[str], list[int]]]:
    """Return the ready addresses, the others, and the ports of each subset."""
    return [
        (
            [one["ip"] for one in subset.get("addresses", ())],
            [one["ip"] for one in subset.get("notReadyAddresses", ())],
            [one["port"] for one in subset.get("ports", ())],
        )
        for subset in rig.get("Endpoints", name).get("subsets", ())
    ]


def test_a_service_has_a_slice_and_endpoints_of_the_pods_that_it_selects() -> None:
    zone: Any = {"topology.kubernetes.io/zone": "z1"}
    other = web("other", "10.0.0.9", labels={"app": "other"})
    rig = rig_of(node_of("n1", **zone), web("a", "10.0.0.1"), other, service())

    (slice_,) = slices(rig)
    meta = slice_["metadata"]
    assert meta["labels"] == {"team": "a", SERVICE_NAME: "web", MANAGED_BY: "endpointslice-controller.k8s.io"}
    assert meta["ownerReferences"][0]["name"] == "web"
    assert slice_["addressType"] == "IPv4"
    assert slice_["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    (endpoint,) = slice_["endpoints"]
    assert endpoint["addresses"] == ["10.0.0.1"]
    assert (endpoint["nodeName"], endpoint["zone"]) == ("n1", "z1")
    assert endpoint["targetRef"]["name"] == "a"
    assert subsets(rig) == [(["10.0.0.1"], [], [8080])]
    labels = rig.get("Endpoints", "web")["metadata"]["labels"]
    assert labels == {"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}


def test_endpoints_follow_readiness_and_termination() -> None:
    rig = rig_of(service(), web("a", "10.0.0.1"), web("b", "10.0.0.2", ready=False))
    assert conditions(rig) == {"10.0.0.1": (True, True, False), "10.0.0.2": (False, False, False)}
    assert subsets(rig) == [(["10.0.0.1"], ["10.0.0.2"], [8080])]

    rig.delete("Pod", "a", grace_seconds=30)
    rig.wait(1)
    assert conditions(rig)["10.0.0.1"] == (False, True, True)
    assert subsets(rig) == [([], ["10.0.0.2"], [8080])]

    rig.delete("Pod", "a")
    rig.wait(1)
    assert list(conditions(rig)) == ["10.0.0.2"]


def test_a_pod_that_has_ended_or_has_no_address_is_no_endpoint() -> None:
    ended = web("ended", "10.0.0.1")
    rig = rig_of({**ended, "status": {**ended["status"], "phase": "Succeeded"}}, pod("new"), service())

    assert conditions(rig) == {}
    assert subsets(rig) == []


def test_published_addresses_are_ready_even_if_the_pod_is_not() -> None:
    rig = rig_of(web("a", "10.0.0.1", ready=False), service(publishNotReadyAddresses=True))

    assert conditions(rig) == {"10.0.0.1": (True, False, False)}
    assert subsets(rig) == [(["10.0.0.1"], [], [8080])]


def test_ports_by_name_are_those_of_each_pods_containers() -> None:
    def with_port(name: str, ip: str, number: int) -> Raw:
        raw = web(name, ip)
        ports = [{"name": "web", "containerPort": number, "protocol": "TCP"}]
        container = {**raw["spec"]["containers"][0], "ports": ports}
        return {**raw, "spec": {**raw["spec"], "containers": [container]}}

    named = service(ports=[{**HTTP, "targetPort": "web"}])
    rig = rig_of(with_port("a", "10.0.0.1", 8080), with_port("b", "10.0.0.2", 9090), web("c", "10.0.0.3"), named)

    found = {slice_["ports"][0]["port"]: slice_["endpoints"][0]["addresses"] for slice_ in slices(rig)}
    assert found == {8080: ["10.0.0.1"], 9090: ["10.0.0.2"]}
    assert subsets(rig) == [(["10.0.0.1"], [], [8080]), (["10.0.0.2"], [], [9090])]


def test_a_headless_service_is_labelled_and_needs_no_ports() -> None:
    named = web("a", "10.0.0.1", spec={"hostname": "first", "subdomain": "web"})
    rig = rig_of(named, service(clusterIP="None", ports=[]))

    (slice_,) = slices(rig)
    assert slice_["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert slice_["endpoints"][0]["hostname"] == "first"
    assert slice_["ports"] == []
    assert subsets(rig) == [(["10.0.0.1"], [], [])]


def test_a_service_without_pods_has_an_empty_slice_and_one_without_selector_has_none() -> None:
    rig = rig_of(service(), service("bare", selector={}), service("far", type="ExternalName", externalName="x.example"))

    (slice_,) = slices(rig)
    assert slice_["metadata"]["labels"][SERVICE_NAME] == "web"
    assert (slice_["endpoints"], slice_["ports"]) == ([], [])
    assert rig.names("Endpoints") == ["web"]


def test_an_endpoint_stays_in_its_slice_and_new_ones_fill_up_slices_of_a_hundred() -> None:
    rig = rig_of(service(), *(web(f"p{number:03}", f"10.0.1.{number}") for number in range(101)))
    rig.wait(1)
    sizes = {one["metadata"]["name"]: len(one["endpoints"]) for one in slices(rig)}
    assert sorted(sizes.values()) == [1, 100]
    first = max(sizes, key=lambda name: sizes[name])

    rig.delete("Pod", "p000")
    rig.wait(1)
    rig.sync(web("new", "10.0.2.1"))
    rig.wait(1)

    full = rig.get("EndpointSlice", first)["endpoints"]
    assert len(full) == 100
    assert full[-1]["addresses"] == ["10.0.2.1"]


def test_a_changed_selector_or_label_changes_the_endpoints() -> None:
    rig = rig_of(service(), web("a", "10.0.0.1"), web("b", "10.0.0.2", labels={"app": "api"}))

    rig.sync(service(selector={"app": "api"}))
    rig.wait(1)
    assert list(conditions(rig)) == ["10.0.0.2"]

    rig.sync(web("a", "10.0.0.1", labels={"app": "api"}))
    rig.wait(1)
    assert sorted(conditions(rig)) == ["10.0.0.1", "10.0.0.2"]


def test_a_slice_that_others_change_or_delete_is_restored() -> None:
    rig = rig_of(service(), web("a", "10.0.0.1"))
    (slice_,) = slices(rig)
    name = slice_["metadata"]["name"]

    rig.store.patch("EndpointSlice", f"default/{name}", {"endpoints": []}, "merge")
    rig.wait(1)
    assert list(conditions(rig)) == ["10.0.0.1"]

    rig.delete("EndpointSlice", name)
    rig.delete("Endpoints", "web")
    rig.wait(1)
    assert list(conditions(rig)) == ["10.0.0.1"]
    assert subsets(rig) == [(["10.0.0.1"], [], [8080])]


def test_endpoints_go_with_their_service() -> None:
    rig = rig_of(service(), web("a", "10.0.0.1"))

    rig.delete("Service", "web")
    rig.settle()

    # The garbage collector deletes the slice.
    assert rig.names("Endpoints") == []


def test_failed_writes_are_repeated_and_nothing_is_created_twice() -> None:
    rig = Rig(ServiceEndpoints, service(), web("a", "10.0.0.1"))
    rig.problems = [NO_ANSWER, CONFLICT]
    rig.settle()
    rig.wait(10)

    assert len(slices(rig)) == 1
    assert subsets(rig) == [(["10.0.0.1"], [], [8080])]


def test_nothing_is_written_when_nothing_has_changed_or_after_a_restart() -> None:
    rig = rig_of(service(), web("a", "10.0.0.1"), service("empty", selector={"app": "none"}))
    rig.log.clear()

    rig.restart()
    rig.wait(10)

    assert not [one for one, _ in rig.log if isinstance(one, CreateObject | PatchObject | DeleteObject)]


def test_writes_of_a_large_service_are_spaced() -> None:
    rig = rig_of(service(), *(web(f"p{number:03}", f"10.0.1.{number}", ready=False) for number in range(200)))
    rig.wait(1)
    rig.log.clear()

    for number in range(20):
        rig.sync(web(f"p{number:03}", f"10.0.1.{number}"))
    rig.wait(1)

    assert sum(ready for ready, _, _ in conditions(rig).values()) == 20
    assert len(rig.log) < 10
