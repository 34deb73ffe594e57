"""Lists of objects as they were at one version, in pages."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from podium.api.errors import shown
from podium.store.encoding import spliced
from podium.store.errors import bad_request, invalid_options, too_large
from podium.store.reads.object_selector import ObjectSelector
from podium.store.reads.part_of_kind import PartOfKind
from podium.store.revisions import Revisions
from podium.store.stored import Stored

_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - a page's token is no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """What a list or a watch asks for, as the API's parameters of these names give it (meta/v1 ListOptions).

    `limit` 0 is without limit.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, by key, all of one version.

    `continue_token` asks for the next part, and is "" on the last one. `remaining` is the number of objects after this
    part; None on the last one, and where selectors leave objects out.
    """

    selector: ObjectSelector
    items: tuple[Stored, ...]
    version: int
    continue_token: str
    remaining: int | None

    def served_as(self, api_version: str) -> Page:
        """The same list in another version of the kind; "" is the one that is stored."""
        if not api_version:
            return self
        selector = replace(self.selector, resource=self.selector.resource.served_as(api_version))
        items = tuple(stored.served_as(api_version) for stored in self.items)
        return replace(self, selector=selector, items=items)

    def to_dict(self) -> dict[str, Any]:
        """The list as the API gives it."""
        return {**self.head(), "items": [stored.raw for stored in self.items]}

    def encoded(self) -> bytes:
        """The same as JSON, from the bytes that the objects keep."""
        return spliced(self.head(), "items", [stored.encoded for stored in self.items])

    def head(self) -> dict[str, Any]:
        """What the list says before its items."""
        resource = self.selector.resource
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining is not None:
            metadata["remainingItemCount"] = self.remaining
        return {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}


def list_page(revisions: Revisions, selector: ObjectSelector, options: ListOptions) -> Page:
    """The page that the options ask for.

    Without a version it is of the newest state. Raises StoreError: 400 for options that cannot be read, 410 for a
    version that is no longer known, 422 for options that contradict one another, 504 for a version to come.
    """
    _check(options)
    version, start = _place(revisions, options)
    part = PartOfKind(revisions, selector.resource.name, selector.namespace, start, version)
    found = filter(selector.covers, part) if selector.selects else iter(part)
    items = tuple(islice(found, options.limit) if options.limit > 0 else found)
    if selector.selects:
        return Page(selector, items, version, _token(version, items[-1].key) if next(found, None) else "", None)
    rest = len(part) - len(items)
    return Page(selector, items, version, _token(version, items[-1].key) if rest else "", rest or None)


def read_version(text: str) -> int:
    """The version that a parameter names; 0 for "", which names none. Raises StoreError 400."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise bad_request(f"resourceVersion: Invalid value: {shown(text)}: it is a number that the API has given out")
    return int(text)


def check_version(revisions: Revisions, text: str) -> int:
    """The version that a parameter names, if there was it. Raises StoreError 400, and 504 for one that is to come."""
    version = read_version(text)
    if version > revisions.version:
        raise too_large(version, revisions.version)
    return version


def _check(options: ListOptions) -> None:
    """That the options go together (apimachinery's internalversion/validation)."""
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
    """The version to list, and the key after which the page begins."""
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
    """The version and key of a token. Raises StoreError 400 for what is none."""
    try:
        decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        decoded = None
    if isinstance(decoded, dict) and decoded.get("v") == _TOKEN_VERSION:
        version, start = decoded.get("rv"), decoded.get("start")
        if type(version) is int and version >= 0 and isinstance(start, str):
            return version, start
    raise bad_request("continue is not a token that a list has given out")
