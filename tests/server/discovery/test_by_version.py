"""The API versions that each Kubernetes version serves, in discovery and by path."""

from __future__ import annotations

import pytest

from podium.api.versions.release import read_version
from podium.apirequests.http_mapping import place_of
from podium.server.discovery import group, served_kinds
from podium.store.api_resources import APIResources

GATE = {"DynamicResourceAllocation": True}


def resources(version: str, **gates: bool) -> APIResources:
    found = APIResources()
    found.serve_as(read_version(version).with_gates(gates))
    return found


def versions(version: str, name: str, **gates: bool) -> list[str]:
    found = group(served_kinds(resources(version, **gates).all()), name)
    return [] if found is None else [each["version"] for each in found["versions"]]


@pytest.mark.parametrize(
    ("version", "served"),
    [("1.31", []), ("1.33", []), ("1.34", ["v1"]), ("1.36", ["v1"]), ("1.37", ["v1"])],
)
def test_devices_are_served_by_default_since_1_34(version: str, served: list[str]) -> None:
    assert versions(version, "resource.k8s.io") == served


@pytest.mark.parametrize(
    ("version", "served"),
    [("1.31", ["v1alpha3"]), ("1.32", ["v1beta1", "v1alpha3"]), ("1.33", ["v1beta2", "v1beta1", "v1alpha3"])],
)
def test_older_versions_serve_devices_in_older_api_versions_with_the_gate(version: str, served: list[str]) -> None:
    assert versions(version, "resource.k8s.io", **GATE) == served


@pytest.mark.parametrize(("version", "served"), [("1.36", ["v1", "v1alpha2"]), ("1.37", ["v1", "v1beta1", "v1alpha3"])])
def test_pod_groups_are_served_in_newer_api_versions_since_1_37(version: str, served: list[str]) -> None:
    assert versions(version, "scheduling.k8s.io") == served


@pytest.mark.parametrize(
    ("path", "since"),
    [
        ("/apis/networking.k8s.io/v1/ipaddresses", "1.33"),
        ("/apis/storage.k8s.io/v1/volumeattributesclasses", "1.34"),
        ("/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies", "1.36"),
        ("/apis/resource.k8s.io/v1/devicetaintrules", "1.37"),
    ],
)
def test_kinds_are_found_by_path_in_the_versions_that_serve_them(path: str, since: str) -> None:
    minors = [f"1.{minor}" for minor in range(31, 38)]

    found = [version for version in minors if place_of(path, resources(version)) is not None]

    assert found == [version for version in minors if version >= since]


@pytest.mark.parametrize(("version", "has_resize"), [("1.32", False), ("1.33", True)])
def test_pods_have_the_subresource_resize_since_1_33(version: str, has_resize: bool) -> None:
    assert (resources(version).named("Pod").subresource("resize") is not None) is has_resize
