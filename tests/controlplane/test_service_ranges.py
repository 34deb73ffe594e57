"""The ranges from which Services get addresses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from podium.api.meta import Raw
from podium.apirequests.request import Request
from podium.testing import ControlPlane

FINALIZER = "networking.k8s.io/service-cidr-finalizer"


@pytest.fixture
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane() as found:
        yield found


def service_range(name: str, *cidrs: str) -> Raw:
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR"}
    return {**kind, "metadata": {"name": name}, "spec": {"cidrs": list(cidrs)}}


def service(name: str, address: str = "") -> Raw:
    spec = {"ports": [{"port": 80}], **({"clusterIP": address} if address else {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def ready(cluster: ControlPlane, name: str) -> tuple[str, str]:
    """Return the status and the reason of the condition Ready."""
    [condition] = (cluster.get("ServiceCIDR", name) or {})["status"]["conditions"]
    assert condition["type"] == "Ready"
    return condition["status"], condition.get("reason", "")


def create(cluster: ControlPlane, raw: Raw) -> Raw:
    return cluster.plane.answer(Request(verb="create", kind=raw["kind"], body=raw, field_manager="m")).to_dict()


def test_a_range_gets_a_finalizer_and_becomes_ready(cluster: ControlPlane) -> None:
    cluster.apply(service_range("more", "203.0.113.0/24"))

    assert (cluster.get("ServiceCIDR", "more") or {})["metadata"]["finalizers"] == [FINALIZER]
    assert ready(cluster, "more") == ("True", "")


def test_services_get_addresses_of_ready_ranges_alone(cluster: ControlPlane) -> None:
    problem = "failed to allocate IP 203.0.113.10: the provided network does not match the current range"
    assert problem in create(cluster, service("early", "203.0.113.10"))["message"]
    cluster.apply(service_range("more", "203.0.113.0/24"))
    assert create(cluster, service("web", "203.0.113.10"))["spec"]["clusterIPs"] == ["203.0.113.10"]
    assert "10.96." in create(cluster, service("any"))["spec"]["clusterIP"]

    cluster.delete("ServiceCIDR", "more")

    refused = "failed to allocate IP 203.0.113.11: the provided network does not match the current range"
    assert refused in create(cluster, service("late", "203.0.113.11"))["message"]


def test_a_range_stays_while_a_service_has_an_address_of_it(cluster: ControlPlane) -> None:
    cluster.apply(service_range("more", "203.0.113.0/24"))
    cluster.apply(service("web", "203.0.113.10"))

    cluster.delete("ServiceCIDR", "more")
    assert ready(cluster, "more") == ("False", "Terminating")

    cluster.delete("Service", "web")
    assert cluster.get("ServiceCIDR", "more") is None


@pytest.mark.parametrize(
    ("cidr", "stays"), [("203.0.113.0/24", False), ("203.0.0.0/16", False), ("198.51.100.0/24", True)]
)
def test_a_range_goes_if_another_one_holds_its_addresses(cluster: ControlPlane, cidr: str, stays: bool) -> None:
    cluster.apply(service_range("more", "203.0.113.0/24"))
    cluster.apply(service("web", "203.0.113.10"))
    cluster.delete("ServiceCIDR", "more")

    cluster.apply(service_range("other", cidr))

    assert (cluster.get("ServiceCIDR", "more") is not None) is stays
