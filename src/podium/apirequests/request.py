"""A request to the API server and its response, independent of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Literal

import msgspec

from podium.api.avoid_list import AwaitedPod, EvictionHints
from podium.api.errors import shown
from podium.api.meta import Kubernetes, Raw
from podium.api.names import subdomain_problem
from podium.api.times import SECOND, format_duration, parse_duration
from podium.apirequests.authorization import User
from podium.controllers.observations import Problem
from podium.store.errors import StoreError, bad_request
from podium.store.listing import DEFAULT_LIST_OPTIONS, ListOptions, ListPage, Watch
from podium.store.patching import PatchType, wire_patch
from podium.store.stored import Stored

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
FieldValidation = Literal["", "Ignore", "Warn", "Strict"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the API server.

    `kind` is the store's name of the kind, such as Pod. `key` names the object (`namespace/name`, or the name alone),
    `namespace` the objects of a collection; "" means all namespaces, or the namespace in the `body`. The body is the
    wire form of the HTTP body: an object, a patch of `patch_type`, a Binding, an Eviction, or DeleteOptions.
    Preconditions are in it as in Kubernetes: `metadata.uid` and `metadata.resourceVersion` of objects and patches,
    `preconditions` of DeleteOptions. Instead, the body may be a `Binding` or a `MadePatch`, which are used directly;
    `written_body` has their wire form. `options` select what is listed, watched, or deleted as a collection.

    `dry_run` computes the response and leaves no trace. `field_validation` says how unknown fields are handled.
    `api_version` is the version of the objects in request and response, "" for the storage version. `reading` is the
    typed reading of the body, if the caller has it: the response is the same without it. `field_manager` is the manager
    of the written fields, "" if ownership is not recorded; `force` lets an apply patch take fields from other managers.
    `identity` is the user, with the name "" if unknown. `repeated` are the problems of fields that the body has twice.
    Source: apimachinery (pkg/apis/meta/v1/types.go), apiserver (pkg/endpoints/handlers).
    """

    verb: Verb
    kind: str
    key: str = ""
    namespace: str = ""
    subresource: str = ""
    body: Any = None
    patch_type: PatchType = "merge"
    options: ListOptions = DEFAULT_LIST_OPTIONS
    dry_run: bool = False
    field_validation: FieldValidation = ""
    api_version: str = ""
    field_manager: str = ""
    force: bool = False
    identity: User = User("")
    reading: Kubernetes | None = None
    repeated: tuple[str, ...] = ()

    @property
    def user(self) -> str:
        return self.identity.name

    @property
    def written_body(self) -> Any:
        """The body in the wire form."""
        body = self.body
        if not isinstance(body, Binding):
            return wire_patch(body)
        namespace, _, name = self.key.rpartition("/")
        metadata = {"name": name, "namespace": namespace, "uid": body.uid}
        if body.resource_version:
            metadata["resourceVersion"] = body.resource_version
        target = {"kind": body.target_kind, "name": body.node_name}
        return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A response of the API server: an object or a Status, a page of a list, a watch, or an error.

    `code` is the HTTP status. `stored` has the encoded bytes of `object`, if it is a stored object. `warnings` are for
    people, one header each. `audited` are annotations of the audit Event.
    """

    code: int = 200
    object: Raw | None = None
    stored: Stored | None = None
    page: ListPage | None = None
    watch: Watch | None = None
    error: StoreError | None = None
    warnings: tuple[str, ...] = ()
    audited: Mapping[str, str] = {}

    def objects(self) -> list[Raw]:
        if self.page is not None:
            return [stored.raw for stored in self.page.items]
        return list((self.object or {}).get("items", ()))

    def to_dict(self) -> Raw:
        """Return the body as in the API. Raises ValueError for a watch, which has no end."""
        if self.error is not None:
            return self.error.to_dict()
        if self.page is not None:
            return self.page.to_dict()
        if self.object is None:
            raise ValueError("a watch has no body; its events are pulled")
        return self.object


# The annotations of an Eviction.
COMPONENT = "podium.dev/component"
"""The component whose disruption cap counts."""
AVOID_NODE = "podium.dev/avoid-node"
"""Whether the pod's controller is added to its node's avoid list: "true"."""
AVOID_FOR = "podium.dev/avoid-for"
"""The duration of the avoid list entry, such as "30m"."""
AVOID_UNTIL_SCHEDULED = "podium.dev/avoid-until-scheduled"
"""The pod (`namespace/name`) that the room is reserved for."""
AVOID_UNTIL_REPLACED = "podium.dev/avoid-until-replaced"
"""The pod whose replacement the room is reserved for: `namespace/name`, or `namespace/name/uid` if it may be gone."""
REPLACEMENT_AWAITED = "podium.dev/replacement-awaited"
"""Whether entries wait for the pod's replacement: "true"."""
REPLACEMENT_FIRST = "podium.dev/replacement-first"
"""Whether the pod's replacement moves to the front of the scheduling queue: "true"."""
REPLACEMENT_NODE = "podium.dev/replacement-node"
"""The node that the scheduler tries first for the replacement."""


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a deletion; "" and None mean unset."""

    grace_seconds: int | None = None
    propagation: Any = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a binding, and the uid and version as preconditions; "" matches any.

    The pod gets the `labels` and `annotations` in `marks`.
    """

    node_name: str
    target_kind: str = "Node"
    uid: str = ""
    resource_version: str = ""
    marks: Mapping[str, Mapping[str, str]] = {}


class EvictionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an eviction, including Podium's extensions."""

    delete: DeleteOptions
    component: str = ""
    hints: EvictionHints = EvictionHints()


def delete_options_body(uid: str, grace_seconds: int | None = None, propagation: str = "") -> Raw:
    """Return the body of a deletion with a uid precondition."""
    body: Raw = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    if grace_seconds is not None:
        body["gracePeriodSeconds"] = grace_seconds
    if propagation:
        body["propagationPolicy"] = propagation
    return body


def read_delete_options(body: Any) -> DeleteOptions:
    """Return the options in the body of a deletion; None has none. Raises StoreError 400 for a malformed body."""
    if body is None:
        return DeleteOptions()
    raw = _object(body, "DeleteOptions")
    preconditions = _object(raw.get("preconditions") or {}, "preconditions")
    grace = raw.get("gracePeriodSeconds")
    if grace is not None and (type(grace) is not int or not -(2**63) <= grace < 2**63):
        raise bad_request(f"gracePeriodSeconds: {shown(grace)} is not a whole number of 64 bits")
    propagation = raw.get("propagationPolicy")
    if raw.get("orphanDependents") is not None and not propagation:
        propagation = "Orphan" if raw["orphanDependents"] else "Background"
    if (dry_run := raw.get("dryRun")) not in (None, "", [], "All", ["All"]):
        raise bad_request(f"dryRun: {shown(dry_run)}: the only value is All")
    return DeleteOptions(
        grace_seconds=grace,
        propagation=_text(propagation, "propagationPolicy"),
        uid=_text(preconditions.get("uid"), "preconditions.uid"),
        resource_version=_text(preconditions.get("resourceVersion"), "preconditions.resourceVersion"),
        dry_run=bool(dry_run),
    )


def eviction_body(key: str, delete: Raw, component: str = "", hints: EvictionHints | None = None) -> Raw:
    """Return the Eviction of a pod, with Podium's extensions in its annotations."""
    extensions = {COMPONENT: component}
    if hints is not None:
        lasts_ns, replaced = hints.avoid_for_ns, hints.until_replaced
        extensions |= {
            AVOID_NODE: "true" if hints.avoid_node else "",
            AVOID_FOR: "" if lasts_ns is None else format_duration(lasts_ns),
            AVOID_UNTIL_SCHEDULED: hints.until_scheduled,
            AVOID_UNTIL_REPLACED: "" if replaced is None else f"{replaced.key}/{replaced.uid}".rstrip("/"),
            REPLACEMENT_AWAITED: "true" if hints.is_awaited else "",
            REPLACEMENT_FIRST: "true" if hints.first else "",
            REPLACEMENT_NODE: hints.node_name,
        }
    annotations = {name: value for name, value in extensions.items() if value}
    namespace, _, name = key.rpartition("/")
    metadata: Raw = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": delete}


def read_eviction(body: Any, key: str) -> EvictionOptions:
    """Return the options of an Eviction. Raises StoreError 400 for one that is malformed or names another pod."""
    raw, metadata = _about(body, "Eviction", key)
    annotations = _object(metadata.get("annotations") or {}, "metadata.annotations")
    delete, component = read_delete_options(raw.get("deleteOptions")), _text(annotations.get(COMPONENT), COMPONENT)
    lasts, replaced = annotations.get(AVOID_FOR), _text(annotations.get(AVOID_UNTIL_REPLACED), AVOID_UNTIL_REPLACED)
    try:
        avoid_for_ns = None if lasts is None else parse_duration(_text(lasts, AVOID_FOR))
    except ValueError as error:
        raise bad_request(f"metadata.annotations[{AVOID_FOR}]: {error}") from None
    hints = EvictionHints(
        avoid_node=annotations.get(AVOID_NODE) == "true",
        avoid_for_ns=avoid_for_ns,
        until_scheduled=_text(annotations.get(AVOID_UNTIL_SCHEDULED), AVOID_UNTIL_SCHEDULED),
        until_replaced=_read_pod(replaced) if replaced else None,
        first=annotations.get(REPLACEMENT_FIRST) == "true",
        node_name=_text(annotations.get(REPLACEMENT_NODE), REPLACEMENT_NODE),
        is_awaited=annotations.get(REPLACEMENT_AWAITED) == "true",
    )
    if hints.until_scheduled and replaced:
        raise bad_request(f"metadata.annotations[{AVOID_UNTIL_REPLACED}]: excludes {AVOID_UNTIL_SCHEDULED}")
    if hints.node_name and (problem := subdomain_problem(hints.node_name)):
        raise bad_request(f"metadata.annotations[{REPLACEMENT_NODE}]: {problem}")
    return EvictionOptions(delete=delete, component=component, hints=hints)


def _read_pod(text: str) -> AwaitedPod:
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        problem = f"{shown(text)} is not namespace/name or namespace/name/uid of a pod"
        raise bad_request(f"metadata.annotations[{AVOID_UNTIL_REPLACED}]: {problem}")
    return AwaitedPod(namespace=parts[0], name=parts[1], uid="".join(parts[2:]))


def read_binding(body: Any, key: str) -> Binding:
    """Return the content of a Binding. Raises StoreError 400 for one that is malformed or names another pod."""
    raw, metadata = _about(body, "Binding", key)
    target = _object(raw.get("target") or {}, "target")
    return Binding(
        uid=_text(metadata.get("uid"), "metadata.uid"),
        resource_version=_text(metadata.get("resourceVersion"), "metadata.resourceVersion"),
        target_kind=_text(target.get("kind"), "target.kind"),
        node_name=_text(target.get("name"), "target.name"),
        marks={name: _texts(metadata.get(name) or {}, f"metadata.{name}") for name in ("annotations", "labels")},
    )


def _texts(value: Any, what: str) -> dict[str, str]:
    return {key: _text(text, f"{what}[{key}]") for key, text in _object(value, what).items()}


def _about(body: Any, what: str, key: str) -> tuple[Raw, Raw]:
    """Return an object about another one, and its metadata. Raises StoreError 400 if it names a different object."""
    raw = _object(body, what)
    metadata = _object(raw.get("metadata") or {}, "metadata")
    check_name(metadata, key)
    return raw, metadata


def check_name(metadata: Raw, key: str) -> None:
    """Raise StoreError 400 if metadata names another object than the request does."""
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


Conversation = Generator[Request, Response, Raw | None]
Answer = Callable[[Request, int], Response]
"""A function that answers one request, as `Router.answer` does."""


def run_conversation(conversation: Conversation, ask: Answer, now: int) -> Raw | None:
    """Run a conversation to its end, and return its result. Raises StoreError for a refusal that it does not catch."""
    try:
        request = next(conversation)
        while True:
            response = ask(request, now)
            error = response.error
            request = conversation.send(response) if error is None else conversation.throw(error)
    except StopIteration as end:
        written: Raw | None = end.value
        return written


def problem_of(error: StoreError) -> Problem:
    """Return a refusal in the form that controllers receive."""
    seconds = error.details.get("retryAfterSeconds")
    wait_ns = None if seconds is None else int(seconds) * SECOND
    causes = error.details.get("causes") or [{}]
    return Problem(error.code, error.reason, error.message, wait_ns, causes[0].get("reason", ""))
