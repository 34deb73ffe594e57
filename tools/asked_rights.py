"""The API rights that each action needs, found by carrying out an example of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from podium.api.avoid_list import EvictionHints
from podium.api.disruption_policy import DISRUPTION_RATE as RATE
from podium.api.disruption_policy import POLICY_NAME, SCHEDULER
from podium.api.kinds import group_of
from podium.api.meta import Raw
from podium.api.pod import PodCondition
from podium.apirequests.actions import conversation_of
from podium.apirequests.request import Request, Response, run_conversation
from podium.apirequests.router import Router
from podium.controllers.actions import (
    Action,
    Bind,
    BindClaim,
    DeleteObject,
    Evict,
    Nominate,
    PatchObject,
    Record,
    ReleaseClaim,
    ReportStatus,
    ReportUnschedulable,
    ReserveClaim,
)
from podium.store.api_resources import BUILT_IN
from podium.store.store import Store

_NOW = 1_767_225_600 * 10**9


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on the objects of a kind; `resource` is the plural, followed by a slash and a subresource if any."""

    group: str
    resource: str
    verb: str


def implied_rights(request: Request, store: Store) -> set[Right]:
    """Return the rights that kube-apiserver checks besides that to the request itself.

    They come from the strategy of ResourceClaims (granular status authorization, on since v1.36) and the admission
    plugin OwnerReferencesPermissionEnforcement, which some clusters enable. Source:
    pkg/registry/resource/resourceclaim/strategy.go, plugin/pkg/admission/gc.
    """
    body = request.written_body if request.verb in ("create", "update", "patch") else None
    if not isinstance(body, dict):
        return set()
    found: set[Right] = set()
    stored = store.find(request.kind, request.key) if request.key else None
    before: Raw = {} if stored is None else stored.raw
    if request.kind == "ResourceClaim" and request.subresource == "status":
        # An update replaces the status; a patch changes the named fields.
        default = {} if request.verb == "update" else before.get("status", {})
        status = {**default, **body.get("status", {})}
        changed = {field for field in _CLAIM_STATUS if status.get(field) != before.get("status", {}).get(field)}
        if changed & {"allocation", "reservedFor"}:
            found.add(Right("resource.k8s.io", "resourceclaims/binding", request.verb))
        if "devices" in changed:
            found.add(Right("resource.k8s.io", "resourceclaims/driver", f"arbitrary-node:{request.verb}"))
    references = body.get("metadata", {}).get("ownerReferences")
    known = before.get("metadata", {}).get("ownerReferences", [])
    if references is not None and not request.subresource:
        resource = BUILT_IN[next(key for key in BUILT_IN if key[1] == request.kind)]
        if before and references != known:
            found.add(Right(resource.group, resource.plural, "delete"))
        for reference in references:
            if reference.get("blockOwnerDeletion") and reference not in known:
                owner = BUILT_IN[group_of(reference["apiVersion"]), reference["kind"]]
                found.add(Right(owner.group, f"{owner.plural}/finalizers", "update"))
    return found


def requested_rights(wanted: Iterable[Action], *, is_podium_server: bool = True) -> set[Right]:
    """Return the rights that these actions need; ``is_podium_server``: at Podium's own API server."""
    found: set[Right] = set()
    for action in wanted:
        store = _store()
        router = Router(store)

        def ask(request: Request, now: int, router: Router = router, store: Store = store) -> Response:
            resource = BUILT_IN[next(key for key in BUILT_IN if key[1] == request.kind)]
            name = f"{resource.plural}/{request.subresource}" if request.subresource else resource.plural
            found.add(Right(resource.group, name, request.verb))
            found.update(implied_rights(request, store))
            return router.answer(request, now)

        run_conversation(
            conversation_of(_with_uid(action, store), "scheduler", _NOW, is_podium_server=is_podium_server), ask, _NOW
        )
    return found


_CLAIM_STATUS = ("allocation", "reservedFor", "devices")
UID = "UID"
"""A placeholder for the uid of an object in that cluster."""
_DEVICES = {"devices": {"results": [{"request": "gpu", "driver": "d", "pool": "p", "device": "a"}]}}


def scheduler_examples() -> list[Action]:
    """Return an example of each action of a scheduler."""
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": "pod-",
            "namespace": "default",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": UID, "controller": True}],
        },
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    return [
        Bind("default/pod", UID, "node"),
        ReportUnschedulable("default/pod", UID, "Unschedulable", "0/1 nodes are available", ""),
        Nominate("default/pod", UID, "node"),
        ReportStatus(
            "Pod", "default/pod", UID, "", (PodCondition(type="DisruptionTarget", status="True", reason="A"),)
        ),
        Record("default/pod", UID, "Normal", "Scheduled", "it was"),
        BindClaim("default/claim", UID, "volume", "", UID),
        BindClaim("default/claim", UID, "", "node", UID),
        ReserveClaim("default/devices", UID, "default/pod", UID, _DEVICES),
        ReserveClaim("default/made", UID, "default/pod", UID, _DEVICES, claim),
        ReleaseClaim("default/used", UID, "default/pod", "other"),
        ReleaseClaim("", "", "default/pod", "owner"),
        DeleteObject("Pod", "default/pod", UID, ""),
        Evict("default/pod", UID, "default/preemptor", SCHEDULER),
        PatchObject(
            "Pod", "default/pod", UID, {"metadata": {"annotations": {"podium.dev/futile-preemptions": "{}"}}}, ""
        ),
        PatchObject("PodDisruptionBudget", "default/budget", UID, {"metadata": {"annotations": {RATE: "{}"}}}, ""),
        PatchObject("DisruptionPolicy", POLICY_NAME, UID, {"status": {"caps": []}}, "", "status"),
        PatchObject("PodGroup", "default/group", UID, {"status": {"conditions": []}}, "", "status"),
    ]


def rescheduler_examples() -> list[Action]:
    """Return an example of each action of a rescheduler that leaves replacements to their schedulers."""
    return [
        Evict("default/pod", UID, "rescheduler", "rescheduler", hints=EvictionHints(avoid_node=True)),
        Record("default/pod", UID, "Normal", "Descheduled", "it was"),
        PatchObject("PodDisruptionBudget", "default/budget", UID, {"metadata": {"annotations": {RATE: "{}"}}}, ""),
        PatchObject("DisruptionPolicy", POLICY_NAME, UID, {"status": {"caps": []}}, "", "status"),
    ]


def guidance_examples() -> list[Action]:
    """Return an example of each further action of a rescheduler that guides replacements."""
    return [Bind("default/pod", UID, "node"), Nominate("default/pod", UID, "node")]


def _store() -> Store:
    store = Store()
    for raw in _objects():
        store.create(raw, now=_NOW, was_there=True)
    return store


def _objects() -> Iterator[Raw]:
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}
    yield _object("v1", "Pod", "pod", spec={"containers": [{"name": "main", "image": "i"}]})
    owned_pod = _object("v1", "Pod", "owned", spec={"nodeName": "node", "containers": [{"name": "main", "image": "i"}]})
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner", "controller": True}
    yield {**owned_pod, "metadata": {**owned_pod["metadata"], "ownerReferences": [replica_set]}}
    yield _object("v1", "PersistentVolumeClaim", "claim", spec=claim_spec)
    yield _object("policy/v1", "PodDisruptionBudget", "budget", spec={"maxUnavailable": 1})
    yield {"apiVersion": "podium.dev/v1alpha1", "kind": "DisruptionPolicy", "metadata": {"name": POLICY_NAME}}
    policy: Raw = {"schedulingPolicy": {"basic": {}}}
    yield _object("scheduling.k8s.io/v1alpha2", "PodGroup", "group", spec=policy)
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "volume"},
        "spec": {**claim_spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}},
    }
    for name in ("devices", "used"):
        yield _object("resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": {"requests": requests}})
    owned = _object("resource.k8s.io/v1", "ResourceClaim", "owned", spec={"devices": {"requests": requests}})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "owner", "controller": True}
    about = {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}, "ownerReferences": [owner]}
    yield {**owned, "metadata": {**owned["metadata"], **about}}


def _object(version: str, kind: str, name: str, **body: Any) -> Raw:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **body}


def _with_uid(action: Action, store: Store) -> Action:
    """Return the action for the objects in the store."""
    changes: dict[str, str] = {}
    kind, key = _subject(action)
    stored = store.find(kind, key) if key else None
    if stored is not None and getattr(action, "uid", "") == UID:
        changes["uid"] = stored.uid
    if getattr(action, "pod_uid", "") == UID:
        changes["pod_uid"] = store.get("Pod", "default/pod").uid
    if isinstance(action, ReserveClaim):
        return replace(action, **changes)  # type: ignore[arg-type]
    return msgspec.structs.replace(action, **changes)


def _subject(action: Action) -> tuple[str, str]:
    match action:
        case BindClaim(claim=key):
            return "PersistentVolumeClaim", key
        case ReserveClaim(claim=key) | ReleaseClaim(claim=key):
            return "ResourceClaim", key
        case Evict(pod=key):
            return "Pod", key
        case DeleteObject(kind=kind, key=key) | PatchObject(kind=kind, key=key) | ReportStatus(kind=kind, key=key):
            return kind, key
    return "Pod", str(getattr(action, "pod", ""))
