"""Lists of objects at one version, in pages."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any

from podium.api.errors import InputError, shown
from podium.api.meta import Raw
from podium.api.nested import value_at
from podium.api.selectors import EVERYTHING, FieldSelector, Selector, parse_field_selector, parse_label_selector
from podium.store.api_resource import APIResource
from podium.store.errors import bad_request, invalid_options, too_large
from podium.store.revisions import Revisions
from podium.store.stored import Stored

_EVERY_FIELD = FieldSelector()
_NAMES = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class ObjectSelector:
    """A selection of the objects of a kind; `namespace` "" means all namespaces."""

    resource: APIResource
    namespace: str = ""
    labels: Selector = EVERYTHING
    fields: FieldSelector = _EVERY_FIELD

    @property
    def selects(self) -> bool:
        """Return whether selectors exclude objects."""
        return bool(self.labels.requirements or self.fields.requirements)

    def covers(self, stored: Stored) -> bool:
        """Return whether the object is selected."""
        if stored.resource.name != self.resource.name:
            return False
        metadata = stored.object.metadata
        if self.namespace and metadata.namespace != self.namespace:
            return False
        if not self.labels.matches(metadata.labels):
            return False
        return not self.fields.requirements or self.fields.matches(_fields(stored))


def read_object_selector(
    resource: APIResource, namespace: str, label_selector: str, field_selector: str
) -> ObjectSelector:
    """Return the selection for label and field selectors in text form.

    Raises StoreError 400 for malformed selectors.
    """
    try:
        labels, fields = parse_label_selector(label_selector), parse_field_selector(field_selector)
    except InputError as error:
        raise bad_request(str(error)) from None
    known = (*_NAMES, *(name for name, _ in resource.selectable))
    for requirement in fields.requirements:
        if requirement.key not in known:
            choice = ", ".join(known)
            raise bad_request(f"field label not supported: {shown(requirement.key)}; {resource.kind} has {choice}")
    return ObjectSelector(resource, namespace, labels, fields)


def _fields(stored: Stored) -> dict[str, str]:
    metadata = stored.object.metadata
    values = {"metadata.name": metadata.name, "metadata.namespace": metadata.namespace}
    for path, default in stored.resource.selectable:
        values[path] = _text(stored.raw, path, default)
    if "source" in values and stored.kind == "Event":
        # The field label of both fields, of which newer clients set the second.
        component = _text(stored.raw, "source.component", "")
        values["source"] = component or _text(stored.raw, "reportingComponent", "")
    return values


def _text(raw: Raw, path: str, default: str) -> str:
    value = value_at(raw, *path.split("."))
    if isinstance(value, bool):
        return "true" if value else "false"
    return default if value is None else str(value)


_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - a page's token is no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list or a watch, named as the API's parameters (meta/v1 ListOptions).

    A `limit` of 0 means no limit.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list, by key, all at one version.

    `continue_token` requests the next page, and is "" on the last one. `remaining` is the number of objects after this
    page; None on the last one, and if selectors exclude objects.
    """

    selector: ObjectSelector
    items: tuple[Stored, ...]
    version: int
    continue_token: str
    remaining: int | None

    def served_as(self, api_version: str) -> ListPage:
        """Return the same list in another version of the kind; "" is the storage version."""
        if not api_version:
            return self
        selector = replace(self.selector, resource=self.selector.resource.served_as(api_version))
        items = tuple(stored.served_as(api_version) for stored in self.items)
        return replace(self, selector=selector, items=items)

    def to_dict(self) -> dict[str, Any]:
        """Return the list object of the API."""
        return {**self.head(), "items": [stored.raw for stored in self.items]}

    def head(self) -> dict[str, Any]:
        """Return the list's fields other than its items."""
        resource = self.selector.resource
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining is not None:
            metadata["remainingItemCount"] = self.remaining
        return {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}


def list_page(revisions: Revisions, selector: ObjectSelector, options: ListOptions) -> ListPage:
    """Return the page that the options request.

    Without a version it shows the newest state. Raises StoreError: 400 for malformed options, 410 for a version that is
    no longer known, 422 for contradictory options, 504 for a version in the future.
    """
    _check(options)
    version, start = _place(revisions, options)
    part = PartOfKind(revisions, selector.resource.name, selector.namespace, start, version)
    found = filter(selector.covers, part) if selector.selects else iter(part)
    items = tuple(islice(found, options.limit) if options.limit > 0 else found)
    if selector.selects:
        return ListPage(selector, items, version, _token(version, items[-1].key) if next(found, None) else "", None)
    rest = len(part) - len(items)
    return ListPage(selector, items, version, _token(version, items[-1].key) if rest else "", rest or None)


def read_version(text: str) -> int:
    """Return the version that a parameter names; 0 for "", which names none. Raises StoreError 400."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise bad_request(f"resourceVersion: Invalid value: {shown(text)}: it is a number that the API has given out")
    return int(text)


def check_version(revisions: Revisions, text: str) -> int:
    """Return the version that a parameter names. Raises StoreError 400, and 504 for a version in the future."""
    version = read_version(text)
    if version > revisions.version:
        raise too_large(version, revisions.version)
    return version


def _check(options: ListOptions) -> None:
    """Check that the options are compatible (apimachinery's internalversion/validation)."""
    match, version = options.resource_version_match, options.resource_version
    if options.send_initial_events is not None:
        raise invalid_options("ListOptions", "sendInitialEvents", "goes with a watch alone")
    if not match:
        return
    if not version:
        raise invalid_options("ListOptions", "resourceVersionMatch", "goes with resourceVersion alone")
    if options.continue_token:
        raise invalid_options("ListOptions", "resourceVersionMatch", "does not go with continue")
    if match not in ("Exact", "NotOlderThan"):
        problem = f"{shown(match)} is neither Exact nor NotOlderThan"
        raise invalid_options("ListOptions", "resourceVersionMatch", problem, "FieldValueNotSupported")
    if match == "Exact" and version == "0":
        raise invalid_options("ListOptions", "resourceVersionMatch", "Exact does not go with resourceVersion 0")


def _place(revisions: Revisions, options: ListOptions) -> tuple[int, str]:
    """Return the version to list, and the key after which the page begins."""
    if options.continue_token:
        if options.resource_version not in ("", "0"):
            raise bad_request("a continue token has its own version; leave resourceVersion out")
        version, start = _read_token(options.continue_token)
        if version > revisions.version:
            raise bad_request("the continue token is not one of this store")
        return version, start
    version = check_version(revisions, options.resource_version)
    return (version if options.resource_version_match == "Exact" else revisions.version), ""


def _token(version: int, key: str) -> str:
    text = json.dumps({"v": _TOKEN_VERSION, "rv": version, "start": key})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    """Return the version and key of a token. Raises StoreError 400 for a malformed token."""
    try:
        decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        decoded = None
    if isinstance(decoded, dict) and decoded.get("v") == _TOKEN_VERSION:
        version, start = decoded.get("rv"), decoded.get("start")
        if type(version) is int and version >= 0 and isinstance(start, str):
            return version, start
    raise bad_request("continue is not a token that a list has given out")


class PartOfKind:
    """The objects of a kind by key, of one namespace (all for ""), with keys after `after`.

    An earlier version is reconstructed from the newest state and the log, at a cost proportional to the events since.
    Do not write during the iteration. Raises StoreError 410 and 504 as `WatchLog.check` does.
    """

    def __init__(self, revisions: Revisions, kind: str, namespace: str, after: str, version: int) -> None:
        self._objects = revisions.of(kind)
        self._keys = revisions.keys(kind)
        self._begin, self._end = self._keys.span(namespace, after)
        prefix = f"{namespace}/" if namespace else ""
        self._was: dict[str, Stored | None] = {}
        if version != revisions.version:
            changed = revisions.changed_since(kind, version)
            self._was = {key: was for key, was in changed.items() if key > after and key.startswith(prefix)}
        self._restored = sorted(key for key, was in self._was.items() if was is not None and key not in self._objects)

    def __len__(self) -> int:
        """Return the number of objects."""
        added = sum(was is None and key in self._objects for key, was in self._was.items())
        return self._end - self._begin - added + len(self._restored)

    def __iter__(self) -> Iterator[Stored]:
        """Return an iterator over the objects, by key."""
        keys = self._keys.walk(self._begin, self._end)
        if not self._was:
            return map(self._objects.__getitem__, keys)
        found = (self._was.get(key, self._objects.get(key)) for key in merge(keys, self._restored))
        return (stored for stored in found if stored is not None)
