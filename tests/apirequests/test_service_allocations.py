"""The addresses and ports of Services: free ones are found, stated ones may conflict, deleted ones return."""

from __future__ import annotations

from typing import Any

import pytest

from podium.apirequests.request import Response
from tests.apirequests.asking import API
from tests.store.objects import Raw


def asked(api: API, name: str, *, type_: str = "ClusterIP", **spec: Any) -> Response:
    """Create a Service."""
    spec = {"type": type_, "ports": [{"port": 80}], "selector": {"app": "x"}, **spec}
    raw = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
    return api.ask("create", "Service", namespace="default", body=raw)


def created(api: API, name: str, **spec: Any) -> Raw:
    response = asked(api, name, **spec)
    assert response.code == 201, response.to_dict()
    found: Raw = response.to_dict()["spec"]
    return found


def test_a_stated_address_that_another_service_has_is_refused_until_that_is_deleted() -> None:
    api = API()
    created(api, "a", clusterIP="10.96.7.7")

    refused = asked(api, "b", clusterIP="10.96.7.7").to_dict()
    assert (refused["code"], refused["details"]["causes"][0]["field"]) == (422, "spec.clusterIPs")
    assert (
        'Invalid value: ["10.96.7.7"]: failed to allocate IP 10.96.7.7: provided IP is already allocated'
        in (refused["message"])
    )
    api.ask("delete", "Service", "default/a")
    assert created(api, "b", clusterIP="10.96.7.7")["clusterIPs"] == ["10.96.7.7"]


@pytest.mark.parametrize("address", ["10.97.0.1", "fd00::1"])
def test_an_address_of_no_range_is_refused(address: str) -> None:
    message = asked(API(), "a", clusterIP=address).to_dict()["message"]

    assert f"failed to allocate IP {address}: the provided network does not match the current range" in message


@pytest.mark.parametrize("address", ["10.96.0.0", "10.96.255.255"])
def test_the_first_and_the_last_address_of_a_range_are_refused(address: str) -> None:
    message = asked(API(), "a", clusterIP=address).to_dict()["message"]

    assert f"the provided IP ({address}) is not in the valid range. The range of valid IPs is 10.96.0.0/16" in message


def test_headless_services_take_no_address() -> None:
    api = API()

    assert created(api, "a", clusterIP="None")["clusterIPs"] == ["None"]
    assert created(api, "b", clusterIP="None")["clusterIP"] == "None"


def test_a_stated_node_port_that_another_service_has_is_refused_and_a_free_one_is_kept() -> None:
    api = API()
    created(api, "a", type_="NodePort", ports=[{"port": 80, "nodePort": 30_080}])

    refused = asked(api, "b", type_="NodePort", ports=[{"port": 80, "nodePort": 30_080}]).to_dict()
    assert refused["details"]["causes"][0]["field"] == "spec.ports[0].nodePort"
    assert "Invalid value: 30080: provided port is already allocated" in refused["message"]
    change = {"metadata": {"labels": {"x": "y"}}}
    assert api.ask("patch", "Service", "default/a", body=change).to_dict()["spec"]["ports"][0]["nodePort"] == 30_080
    api.ask("delete", "Service", "default/a")
    assert created(api, "b", type_="NodePort", ports=[{"port": 80, "nodePort": 30_080}])["ports"][0]["nodePort"]


def test_a_node_port_outside_the_range_is_refused() -> None:
    message = asked(API(), "a", type_="NodePort", ports=[{"port": 80, "nodePort": 80}]).to_dict()["message"]

    assert "provided port is not in the valid range. The range of valid ports is 30000-32767" in message


def test_a_free_node_port_is_none_that_the_service_states_and_is_shared_by_protocols() -> None:
    ports = [
        *({"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}),
        {"name": "c", "port": 80, "nodePort": 30_000},
    ]

    found = created(API(), "a", type_="NodePort", ports=ports)["ports"]

    assert [port["nodePort"] for port in found] == [30_086, 30_086, 30_000]


def test_the_first_addresses_and_node_ports_are_kept_for_services_that_state_theirs() -> None:
    api = API()
    spec = created(api, "a", type_="NodePort")
    cidr = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "kubernetes"}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}

    def addresses(prefix: int, count: int) -> list[str]:
        small = API({**cidr, "spec": {"cidrs": [f"10.1.0.0/{prefix}"]}, "status": ready})
        return [created(small, str(number))["clusterIP"] for number in range(count)]

    assert (spec["clusterIP"], spec["ports"][0]["nodePort"]) == ("10.96.1.1", 30_086)
    assert addresses(27, 16)[-3:] == ["10.1.0.30", "10.1.0.2", "10.1.0.3"]
    assert addresses(28, 14)[:2] == ["10.1.0.2", "10.1.0.3"]


def test_a_load_balancer_may_do_without_node_ports() -> None:
    spec = created(API(), "a", type_="LoadBalancer", allocateLoadBalancerNodePorts=False)

    assert "nodePort" not in spec["ports"][0]


def test_a_load_balancer_of_local_traffic_has_a_port_for_health_checks() -> None:
    api = API()
    spec = created(api, "a", type_="LoadBalancer", externalTrafficPolicy="Local")

    assert spec["healthCheckNodePort"] == 30_087
    assert created(api, "b", type_="NodePort")["ports"][0]["nodePort"] == 30_088


def test_the_port_for_health_checks_ends_with_local_traffic() -> None:
    api = API()
    spec = created(api, "a", type_="LoadBalancer", externalTrafficPolicy="Local")
    raw = api.raw("Service", "default/a")

    changed = {**raw, "spec": {**spec, "externalTrafficPolicy": "Cluster"}}
    after = api.ask("update", "Service", "default/a", body=changed).to_dict()

    assert "healthCheckNodePort" not in after["spec"]


def test_external_names_have_no_policy_of_internal_traffic() -> None:
    spec = created(API(), "a", type_="ExternalName", externalName="x.example.com", internalTrafficPolicy="Cluster")

    assert "internalTrafficPolicy" not in spec


@pytest.mark.parametrize("change", [{"externalIPs": []}, {"type": "ExternalName", "externalName": "x.example.com"}])
def test_the_policy_of_external_traffic_ends_with_the_external_addresses(change: Raw) -> None:
    api = API()
    spec = created(api, "a", externalIPs=["192.0.2.1"])
    changed = {**api.raw("Service", "default/a"), "spec": {**spec, **change}}

    after = api.ask("update", "Service", "default/a", body=changed).to_dict()["spec"]

    assert (spec["externalTrafficPolicy"], after.get("externalTrafficPolicy")) == ("Cluster", None)


def test_an_ingress_gets_the_default_class_and_keeps_the_one_that_it_names() -> None:
    """Of several defaults it is the newest, and of equally old ones the first by name."""
    api = API()
    for name in ("b", "a"):
        metadata = {"name": name, "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
        body = {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": metadata}
        body["spec"] = {"controller": "example.com/controller"}
        assert api.ask("create", "IngressClass", body=body).code == 201

    def class_of(name: str, **fields: str) -> str:
        spec = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}, **fields}
        body = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name}, "spec": spec}
        found: Raw = api.ask("create", "Ingress", namespace="default", body=body).to_dict()
        return str(found["spec"]["ingressClassName"])

    assert class_of("x") == "a"
    assert class_of("y", ingressClassName="mine") == "mine"
