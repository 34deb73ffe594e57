"""Short constructors of devices and claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.store.objects import Raw

DRIVER = "gpu.example.com"
GROUP = "resource.k8s.io/v1"
IS_GPU = f'device.driver == "{DRIVER}"'


def device(name: str, memory: str = "40Gi", **more: Any) -> Raw:
    """Return a GPU; `more` are further fields, and attributes under `attributes`."""
    return {"name": name, "capacity": {"memory": {"value": memory}}, **more}


def attributes(**values: str | int | bool) -> Raw:
    """Return the attributes of a device; text that begins with v is a version."""

    def written(value: str | int | bool) -> Raw:
        if isinstance(value, bool):
            return {"bool": value}
        if isinstance(value, int):
            return {"int": value}
        return {"version": value[1:]} if value[:2] in ("v1", "v2") else {"string": value}

    return {"attributes": {name: written(value) for name, value in values.items()}}


def devices_of(node: str, *devices: Raw, name: str = "", pool: str = "", generation: int = 1, count: int = 1) -> Raw:
    """Return a slice of a node's own devices; its pool is named after the node."""
    return resource_slice(
        name or f"{node}-gpus",
        *devices,
        pool={"name": pool or node, "generation": generation, "resourceSliceCount": count},
        nodeName=node,
    )


def resource_slice(name: str, *devices: Raw, pool: Raw | None = None, **spec: Any) -> Raw:
    return {
        "apiVersion": GROUP,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "pool": pool or {"name": name, "generation": 1, "resourceSliceCount": 1},
            **({"devices": list(devices)} if devices else {}),
            **spec,
        },
    }


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> Raw:
    """Return a class; without expressions, that of all GPUs."""
    selectors = [{"cel": {"expression": one}} for one in expressions or (IS_GPU,)]
    return {
        "apiVersion": GROUP,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def request(name: str = "r", *expressions: str, of: str = "gpu", count: int = 1, **more: Any) -> Raw:
    """Return a request for devices of a class that expressions select."""
    exactly: Raw = {"deviceClassName": of, "allocationMode": "ExactCount", "count": count, **more}
    if expressions:
        exactly["selectors"] = [{"cel": {"expression": one}} for one in expressions]
    return {"name": name, "exactly": exactly}


def first_of(name: str, *alternatives: Raw) -> Raw:
    """Return a request for the first of several alternatives, each written as a request."""
    return {"name": name, "firstAvailable": [{"name": one["name"], **one["exactly"]} for one in alternatives]}


def claim(name: str, *requests: Raw, status: Raw | None = None, **devices: Any) -> Raw:
    """Return a claim; `devices` are its constraints and config."""
    raw: Raw = {
        "apiVersion": GROUP,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests or (request(),)), **devices}},
    }
    return raw if status is None else {**raw, "status": status}


def allocated(node: str, *devices: str, to: Sequence[str] = (), **result: Any) -> Raw:
    """Return the status of a claim with some of a node's devices, reserved for pods `to` with the uids uid-NAME."""
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": one, **result} for one in devices]
    selector = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [selector]}},
        "reservedFor": [{"resource": "pods", "name": one, "uid": f"uid-{one}"} for one in to],
    }


def claim_template(name: str, *requests: Raw) -> Raw:
    return {
        "apiVersion": GROUP,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "metadata": {"labels": {"made": "yes"}},
            "spec": {"devices": {"requests": list(requests or (request(),))}},
        },
    }


def using(pod: Raw, *claims: str, template: str = "") -> Raw:
    """Return the pod, which uses claims, or one that is made for it from a template."""
    named = [{"name": one, "resourceClaimName": one} for one in claims]
    made = [{"name": "gpu", "resourceClaimTemplateName": template}] if template else []
    return {**pod, "spec": {**pod["spec"], "resourceClaims": [*named, *made]}}
