"""What the bodies of deletions, bindings and evictions ask for.

Source: apimachinery (pkg/apis/meta/v1/types.go, DeleteOptions), k8s.io/api (core/v1 Binding, policy/v1 Eviction).
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.avoid_list import AvoidFor, AwaitedPod
from podium.api.errors import shown
from podium.api.left_behind import Wishes
from podium.api.meta import Raw
from podium.api.names import subdomain_problem
from podium.api.replacements import ForReplacement
from podium.api.times import format_duration, parse_duration
from podium.store.errors import bad_request

COMPONENT = "podium.dev/component"
"""The annotation of an Eviction that names the component whose cap on disruptions counts."""

AVOID_NODE = "podium.dev/avoid-node"
"""The annotation of an Eviction that asks for the pod's controller to be put on its node's avoid list: "true"."""

AVOID_FOR = "podium.dev/avoid-for"
"""The annotation of an Eviction that says how long that lasts, such as "30m"."""

AVOID_UNTIL_SCHEDULED = "podium.dev/avoid-until-scheduled"
"""The annotation of an Eviction that names the pod (`namespace/name`) which is to have the room."""

AVOID_UNTIL_REPLACED = "podium.dev/avoid-until-replaced"
"""The annotation of an Eviction that names a pod whose replacement is to have the room.

It is `namespace/name`, or `namespace/name/uid` of one that may be gone already.
"""

REPLACEMENT_AWAITED = "podium.dev/replacement-awaited"
"""The annotation of an Eviction that has the pod's replacement known to entries that last until it comes: "true"."""

REPLACEMENT_FIRST = "podium.dev/replacement-first"
"""The annotation of an Eviction that sends the pod's replacement to the front of the scheduler's queue: "true"."""

REPLACEMENT_NODE = "podium.dev/replacement-node"
"""The annotation of an Eviction that names the node which the scheduler is to try first for the replacement."""


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an object is to be deleted; "" and None stand for what is not said."""

    grace_seconds: int | None = None
    propagation: Any = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod is bound to, and the uid and version that it is to have; "" for any."""

    node_name: str
    target_kind: str = "Node"
    uid: str = ""
    resource_version: str = ""


class EvictionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a pod is to be evicted, with what Podium adds to it."""

    delete: DeleteOptions
    component: str = ""
    avoid_node: bool = False
    avoid_for: AvoidFor = AvoidFor()
    for_replacement: ForReplacement = ForReplacement()


_PLAIN = DeleteOptions()


def delete_options_body(uid: str, grace_seconds: int | None = None, propagation: str = "") -> Raw:
    """The body of a deletion, for an object of that uid alone."""
    body: Raw = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    if grace_seconds is not None:
        body["gracePeriodSeconds"] = grace_seconds
    if propagation:
        body["propagationPolicy"] = propagation
    return body


def read_delete_options(body: Any) -> DeleteOptions:
    """What the body of a deletion says; None says nothing. Raises StoreError 400 for what cannot be read."""
    if body is None:
        return _PLAIN
    raw = _object(body, "DeleteOptions")
    preconditions = _object(raw.get("preconditions") or {}, "preconditions")
    grace = raw.get("gracePeriodSeconds")
    if grace is not None and (type(grace) is not int or not -(2**63) <= grace < 2**63):
        raise bad_request(f"gracePeriodSeconds: {shown(grace)} is not a whole number of 64 bits")
    propagation = raw.get("propagationPolicy")
    if raw.get("orphanDependents") is not None and not propagation:
        propagation = "Orphan" if raw["orphanDependents"] else "Background"
    return DeleteOptions(
        grace_seconds=grace,
        propagation=_text(propagation, "propagationPolicy"),
        uid=_text(preconditions.get("uid"), "preconditions.uid"),
        resource_version=_text(preconditions.get("resourceVersion"), "preconditions.resourceVersion"),
        dry_run=is_dry_run(raw.get("dryRun")),
    )


def is_dry_run(value: Any) -> bool:
    """Whether `dryRun` asks for a dry run. Raises StoreError 400 for anything but nothing and All."""
    if not value:
        return False
    if value in (["All"], "All"):
        return True
    raise bad_request(f"dryRun: {shown(value)}: All is the only value that there is")


def eviction_body(key: str, delete: Raw, component: str = "", wishes: Wishes | None = None) -> Raw:
    """The Eviction of a pod; what Podium adds stands in its annotations."""
    annotations = {COMPONENT: component} if component else {}
    if wishes is not None:
        annotations |= _annotations(wishes)
    namespace, _, name = key.rpartition("/")
    metadata: Raw = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": delete}


def _annotations(wishes: Wishes) -> dict[str, str]:
    """What is to be left behind, as an Eviction says it."""
    avoid_for, for_replacement = wishes.avoid_for, wishes.for_replacement
    lasts_ns = avoid_for.expire_after_ns
    said = {
        AVOID_NODE: "true" if wishes.avoid_node else "",
        AVOID_FOR: "" if lasts_ns is None else format_duration(lasts_ns),
        AVOID_UNTIL_SCHEDULED: avoid_for.until_scheduled,
        AVOID_UNTIL_REPLACED: _written_pod(avoid_for.until_replaced),
        REPLACEMENT_AWAITED: "true" if for_replacement.is_awaited else "",
        REPLACEMENT_FIRST: "true" if for_replacement.first else "",
        REPLACEMENT_NODE: for_replacement.node_name,
    }
    return {name: value for name, value in said.items() if value}


def _written_pod(pod: AwaitedPod | None) -> str:
    return "" if pod is None else f"{pod.key}/{pod.uid}".rstrip("/")


def read_eviction(body: Any, key: str) -> EvictionOptions:
    """What an Eviction asks for. Raises StoreError 400 for one that cannot be read, or is another pod's."""
    raw = _object(body, "Eviction")
    metadata = _object(raw.get("metadata") or {}, "metadata")
    check_name(metadata, key)
    annotations = _object(metadata.get("annotations") or {}, "metadata.annotations")
    return EvictionOptions(
        delete=read_delete_options(raw.get("deleteOptions")),
        component=_text(annotations.get(COMPONENT), COMPONENT),
        avoid_node=annotations.get(AVOID_NODE) == "true",
        avoid_for=_avoid_for(annotations),
        for_replacement=_for_replacement(annotations),
    )


def _avoid_for(annotations: Raw) -> AvoidFor:
    lasts = annotations.get(AVOID_FOR)
    try:
        expire_after_ns = None if lasts is None else parse_duration(_text(lasts, AVOID_FOR))
    except ValueError as error:
        raise bad_request(f"metadata.annotations[{AVOID_FOR}]: {error}") from None
    until_scheduled = _text(annotations.get(AVOID_UNTIL_SCHEDULED), AVOID_UNTIL_SCHEDULED)
    replaced = _text(annotations.get(AVOID_UNTIL_REPLACED), AVOID_UNTIL_REPLACED)
    if until_scheduled and replaced:
        raise bad_request(f"metadata.annotations[{AVOID_UNTIL_REPLACED}]: {AVOID_UNTIL_SCHEDULED} stands there as well")
    return AvoidFor(expire_after_ns, until_scheduled, _read_pod(replaced) if replaced else None)


def _read_pod(text: str) -> AwaitedPod:
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        problem = f"{shown(text)} is no namespace/name or namespace/name/uid of a pod"
        raise bad_request(f"metadata.annotations[{AVOID_UNTIL_REPLACED}]: {problem}")
    return AwaitedPod(namespace=parts[0], name=parts[1], uid="".join(parts[2:]))


def _for_replacement(annotations: Raw) -> ForReplacement:
    node_name = _text(annotations.get(REPLACEMENT_NODE), REPLACEMENT_NODE)
    problem = subdomain_problem(node_name) if node_name else None
    if problem:
        raise bad_request(f"metadata.annotations[{REPLACEMENT_NODE}]: {problem}")
    return ForReplacement(
        annotations.get(REPLACEMENT_FIRST) == "true", node_name, annotations.get(REPLACEMENT_AWAITED) == "true"
    )


def binding_body(key: str, binding: Binding) -> Raw:
    """The Binding of a pod."""
    namespace, _, name = key.rpartition("/")
    metadata = {"name": name, "namespace": namespace, "uid": binding.uid}
    if binding.resource_version:
        metadata["resourceVersion"] = binding.resource_version
    target = {"kind": binding.target_kind, "name": binding.node_name}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def read_binding(body: Any, key: str) -> Binding:
    """What a Binding asks for. Raises StoreError 400 for one that cannot be read, or is another pod's."""
    raw = _object(body, "Binding")
    metadata = _object(raw.get("metadata") or {}, "metadata")
    check_name(metadata, key)
    target = _object(raw.get("target") or {}, "target")
    return Binding(
        uid=_text(metadata.get("uid"), "metadata.uid"),
        resource_version=_text(metadata.get("resourceVersion"), "metadata.resourceVersion"),
        target_kind=_text(target.get("kind"), "target.kind"),
        node_name=_text(target.get("name"), "target.name"),
    )


def check_name(metadata: Raw, key: str) -> None:
    """Raise StoreError 400 where metadata names another object than the request does."""
    namespace, _, name = key.rpartition("/")
    for field, wanted in (("name", name), ("namespace", namespace)):
        given = metadata.get(field)
        if given and given != wanted:
            what = f"the {field} of the object ({shown(given)}) does not match the {field} of the request"
            raise bad_request(f"{what} ({shown(wanted)})")


def _object(value: Any, what: str) -> Raw:
    if not isinstance(value, dict):
        raise bad_request(f"{what}: {shown(value)} is not an object")
    return value


def _text(value: Any, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise bad_request(f"{what}: {shown(value)} is not text")
    return value
