"""Reads of a store: objects, lists at one version in pages, and watches, pulled at the watcher's own pace."""

from __future__ import annotations

import base64
import binascii
import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any, Literal

from msgspec import Struct

from podium.api.errors import InputError, shown
from podium.api.meta import Kubernetes, Raw, value_at
from podium.api.selectors import EVERYTHING, FieldSelector, Selector, parse_field_selector, parse_label_selector
from podium.api.times import SECOND
from podium.store import api_resources, watch_log
from podium.store.errors import StoreError, bad_request, invalid_options, not_found, too_large
from podium.store.revisions import NO_OBJECTS, Revisions
from podium.store.stored import Reading, Stored, convert_all, encoded, framed

_EVERY_FIELD = FieldSelector()
_NAMES = ("metadata.name", "metadata.namespace")
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_MATCH = "resourceVersionMatch"
_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - a page's token is no secret
# The version in a token that continues a list at the newest version (pkg/storage/continue.go).
_NEWEST = -1
_LISTED_NS, _MARKED_NS = 300 * SECOND, 60 * SECOND
_TOO_OLD = "The resourceVersion for the provided list is too old."
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class ObjectSelector:
    """A selection of the objects of a kind; `namespace` "" means all namespaces.

    It is about the objects in that `api_version`, "" for the one that they are stored in.
    """

    resource: api_resources.APIResource
    namespace: str = ""
    labels: Selector = EVERYTHING
    fields: FieldSelector = _EVERY_FIELD
    api_version: str = ""

    @property
    def is_selective(self) -> bool:
        """Whether it excludes objects of the namespace."""
        return bool(self.labels.requirements or self.fields.requirements)

    def covers(self, stored: Stored) -> bool:
        if stored.resource.name != self.resource.name:
            return False
        metadata = stored.object.metadata
        if self.namespace and metadata.namespace != self.namespace:
            return False
        if self.api_version and self.is_selective:
            stored = stored.served_as(self.api_version)
            metadata = stored.object.metadata
        if not self.labels.matches(metadata.labels):
            return False
        return not self.fields.requirements or self.fields.matches(_fields(stored))


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
        convert_all(self.items, api_version)
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


DEFAULT_LIST_OPTIONS = ListOptions()


class ReadableStore:
    """Objects of the kinds in `resources`, each at its newest version, and the log of their changes."""

    def __init__(self, resources: api_resources.APIResources, revisions: Revisions) -> None:
        self.resources = resources
        self.log = revisions.log
        """The log of committed writes."""
        self._revisions = revisions
        self._objects = revisions.objects
        # Versions that were the newest at some time, and the oldest one that lists can still show.
        self._marks: deque[tuple[int, int]] = deque()
        self._oldest_listed = 0

    @property
    def version(self) -> int:
        """The last committed version; 0 before the first."""
        return self._revisions.version

    def get(self, kind: str, key: str) -> Stored:
        """Return the object. Raises StoreError 404."""
        try:
            return self._objects[kind][key]
        except KeyError:
            raise not_found(self.resources.named(kind), key) from None

    def find(self, kind: str, key: str) -> Stored | None:
        return self._objects.get(kind, NO_OBJECTS).get(key)

    def reading(self, kind: str, key: str) -> Kubernetes | None:
        """Return the typed reading of an object, or None."""
        stored = self.find(kind, key)
        return None if stored is None else stored.object

    def objects(self, kind: str, namespace: str = "") -> list[Stored]:
        """Return the objects of a kind in a namespace (all for ""), by key.

        Raises StoreError 404 for an unknown kind.
        """
        self.resources.named(kind)
        return self._revisions.in_order(kind, namespace)

    def typed(self, type_: type[Reading], namespace: str = "") -> list[Reading]:
        """Return the readings of a kind's objects in a namespace (all for ""), by key."""
        return self._revisions.typed(type_, namespace)

    def changes(self, kind: str) -> int:
        """Return a counter of the changes of a kind's objects; undone changes count twice."""
        return self._revisions.changes(kind)

    def count(self) -> int:
        """Return the number of objects, of all kinds."""
        return sum(len(self._revisions.of(kind)) for kind in self._revisions.kinds())

    def events_since(self, version: int, kind: str = "") -> list[watch_log.WatchEvent]:
        """Return the events after `version`, of one kind (all for ""), in order.

        Raises StoreError 410 and 504 as `WatchLog.check` does.
        """
        return self.log.since(version, kind)

    def forget_lists(self, now: int) -> None:
        """Forget versions for lists after 5 minutes, as etcd does when kube-apiserver compacts it; watches remain."""
        if not self._marks or now - self._marks[-1][0] >= _MARKED_NS:
            self._marks.append((now, self.version))
        while now - self._marks[0][0] >= _LISTED_NS:
            self._oldest_listed = self._marks.popleft()[1]

    def check_version(self, text: str) -> int:
        """Return the version that a parameter names. Raises StoreError 400, and 504 for a version in the future."""
        version = _read_version(text)
        if version > self.version:
            raise too_large(version, self.version)
        return version

    def page(
        self, kind: str, namespace: str = "", options: ListOptions = DEFAULT_LIST_OPTIONS, api_version: str = ""
    ) -> ListPage:
        """Return the page of a kind's objects, of one namespace (all for ""), that the options request.

        Without a version it shows the newest state. Of a custom kind, the objects in that `api_version` are selected.
        Raises StoreError: 400 for malformed options, 410 for a version that is no longer known, 422 for contradictory
        options, 504 for a version in the future. The refusal of a continue token has another one, which continues the
        list at the newest version.
        """
        selector = self._selector(kind, namespace, options, api_version)
        _check_list_options(options)
        version, start = self._place(options)
        if version < max(self.log.of(selector.resource.name).begin, self._oldest_listed) and version != self.version:
            error = StoreError(410, "Expired", _CONTINUE_TOO_OLD if options.continue_token else _TOO_OLD)
            error.continue_token = _token(_NEWEST, start) if options.continue_token else ""
            raise error
        part = PartOfKind(self._revisions, selector.resource.name, namespace, start, version)
        if selector.is_selective:
            convert_all(part, selector.api_version)
        found = filter(selector.covers, part) if selector.is_selective else iter(part)
        # Lists at version 0 come from kube-apiserver's watch cache, without a limit.
        is_limited = options.limit > 0 and (options.resource_version != "0" or options.continue_token)
        items = tuple(islice(found, options.limit) if is_limited else found)
        rest = None if selector.is_selective else len(part) - len(items) or None
        has_more = next(found, None) is not None
        return ListPage(selector, items, version, _token(version, items[-1].key) if has_more else "", rest)

    def watch(
        self, kind: str, namespace: str = "", options: ListOptions = DEFAULT_LIST_OPTIONS, api_version: str = ""
    ) -> Watch:
        """Return the watch of a kind's objects in a version, "" for the stored ones, that the options request.

        Without a version, or with 0, it begins with the existing objects as ADDED. It also does so if initial events
        are requested, and then marks their end. Raises StoreError: 400 for a malformed version, 410 for a version after
        which events are no longer known, 422 for contradictory options, 504 for a version in the future.
        """
        selector = self._selector(kind, namespace, options, api_version)
        if options.send_initial_events is None:
            if options.resource_version_match:
                problem = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
                raise invalid_options("ListOptions", _MATCH, problem)
        elif options.resource_version_match != "NotOlderThan":
            raise invalid_options("ListOptions", _MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan")
        log, version = self.log, _read_version(options.resource_version)
        if not (options.send_initial_events or (options.send_initial_events is None and not version)):
            begin = version or log.version
            log.check(begin, selector.resource.name)
            return Watch(self._revisions, selector, begin, [], api_version)
        if version > log.version:
            raise too_large(version, log.version)
        objects = self._revisions.in_order(selector.resource.name, namespace)
        convert_all(objects, api_version)
        served = [stored.served_as(api_version) for stored in filter(selector.covers, objects)]
        initial = [Notice("ADDED", stored.raw, stored.version, stored) for stored in served]
        watch = Watch(self._revisions, selector, log.version, initial, api_version)
        if options.send_initial_events:
            initial.append(watch.bookmark_of({"annotations": {INITIAL_EVENTS_END: "true"}}))
        return watch

    def _selector(self, kind: str, namespace: str, options: ListOptions, api_version: str) -> ObjectSelector:
        """Return the selection of the options. Raises StoreError 404 for an unknown kind, 400 for a malformed one."""
        resource = self.resources.named(kind)
        if not resource.is_custom:
            # Built-in kinds are selected by the fields of their stored objects.
            api_version = ""
        elif api_version:
            resource = resource.served_as(api_version)
        try:
            labels, fields = parse_label_selector(options.label_selector), parse_field_selector(options.field_selector)
        except InputError as error:
            raise bad_request(str(error)) from None
        known = (*_NAMES, *(name for name, _ in resource.selectable))
        for requirement in fields.requirements:
            if requirement.key not in known:
                choice = f"{resource.kind} has {', '.join(known)}"
                raise bad_request(f"field label not supported: {shown(requirement.key)}; {choice}")
        return ObjectSelector(resource, namespace, labels, fields, api_version)

    def _place(self, options: ListOptions) -> tuple[int, str]:
        """Return the version to list, and the key after which the page begins."""
        if options.continue_token:
            stated = _read_version(options.resource_version)
            try:
                token = options.continue_token
                decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            except (binascii.Error, ValueError, RecursionError):
                decoded = None
            found = decoded if isinstance(decoded, dict) and decoded.get("v") == _TOKEN_VERSION else {}
            version, start = found.get("rv"), found.get("start")
            if type(version) is not int or version < _NEWEST or not isinstance(start, str):
                raise bad_request("continue key is not valid: no list has given it out")
            if stated:
                raise bad_request("specifying resource version is not allowed when using continue")
            if version > self.version:
                raise bad_request("the continue token is not one of this store")
            return (self.version if version == _NEWEST else version), start
        version = self.check_version(options.resource_version)
        return (version if options.resource_version_match == "Exact" else self.version), ""


def _check_list_options(options: ListOptions) -> None:
    """Check that the options of a list are compatible (apimachinery's internalversion/validation)."""
    match, version = options.resource_version_match, options.resource_version
    if options.send_initial_events is not None:
        raise invalid_options("ListOptions", "sendInitialEvents", "sendInitialEvents is forbidden for list")
    if not match:
        return
    if not version:
        raise invalid_options("ListOptions", _MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided")
    if options.continue_token:
        raise invalid_options("ListOptions", _MATCH, f"{_MATCH} is forbidden when continue is provided")
    if match not in ("Exact", "NotOlderThan"):
        problem = f'Unsupported value: {shown(match)}: supported values: "Exact", "NotOlderThan"'
        raise invalid_options("ListOptions", _MATCH, problem, "FieldValueNotSupported")
    if match == "Exact" and version == "0":
        raise invalid_options("ListOptions", _MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"')


def _read_version(text: str) -> int:
    """Return the version that a parameter names; 0 for "", which names none. Raises StoreError 400."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise bad_request(f"resourceVersion: Invalid value: {shown(text)}: it is a number that the API has given out")
    return int(text)


def _token(version: int, key: str) -> str:
    text = json.dumps({"v": _TOKEN_VERSION, "rv": version, "start": key})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


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
        # The objects that changed since, in their state then; None for absent ones.
        self._was: dict[str, Stored | None] = {}
        if version != revisions.version:
            for event in revisions.log.since(version, kind):
                key = event.stored.key
                if key > after and key.startswith(prefix):
                    self._was.setdefault(key, event.previous)
        self._restored = sorted(key for key, was in self._was.items() if was is not None and key not in self._objects)

    def __len__(self) -> int:
        added = sum(was is None and key in self._objects for key, was in self._was.items())
        return self._end - self._begin - added + len(self._restored)

    def __iter__(self) -> Iterator[Stored]:
        keys = self._keys.walk(self._begin, self._end)
        if not self._was:
            return map(self._objects.__getitem__, keys)
        found = (self._was.get(key, self._objects.get(key)) for key in merge(keys, self._restored))
        return (stored for stored in found if stored is not None)


class Notice(Struct, frozen=True):
    """A watch event: an object after a change, or a BOOKMARK with the version up to which all events were delivered.

    `stored` has the encoded bytes of `raw`; None if only this watcher gets the object in this form.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    raw: Raw
    version: int
    stored: Stored | None = None

    def encoded(self) -> bytes:
        """Return the event as JSON, from the cached bytes of the object if they match."""
        return framed(self.type, encoded(self.raw) if self.stored is None else self.stored.encoded)


class Watch:
    """The events of the objects of one selector, each once and in order.

    An object that starts to match is ADDED. One that no longer matches is DELETED, with its state before.
    """

    def __init__(
        self,
        revisions: Revisions,
        selector: ObjectSelector,
        version: int,
        initial: list[Notice],
        api_version: str = "",
    ) -> None:
        """Begin after `version`; `initial` is delivered first. Events are in that `api_version`, "" as stored."""
        self._log = revisions.log
        self._events = revisions.log.of(selector.resource.name)
        self._selector = selector
        self._waiting = initial
        self._wake: Callable[[], object] | None = None
        # The events that were taken from the log and whose objects are not converted yet.
        self._taken: list[watch_log.WatchEvent] = []
        self._api_version = api_version
        self.version = version

    @property
    def is_ended(self) -> bool:
        """Return whether no further events will occur: the kind is no longer served, or is served differently."""
        return self._events.is_ended

    def pull(self) -> list[Notice]:
        """Return all events since the last call.

        Raises StoreError 410 if some of them are no longer known, and as the kind's converter does; StoreError ends the
        watch, and after a CallNeededError the next call returns the same events first.
        """
        if not self._taken:
            if self._events.last > self.version:
                if not self._events.is_ended:
                    self._log.check(self.version, self._selector.resource.name)
                self._taken = self._events.since(self.version)
            self.version = self._log.version
        events, version = self._taken, self._api_version
        if version and events:
            convert_all((event.stored for event in events), version)
            convert_all((event.previous for event in events if event.previous is not None), version)
        self._taken = []
        notices, self._waiting, covers = self._waiting, [], self._selector.covers
        for event in events:
            was = event.previous is not None and covers(event.previous)
            if event.type != "DELETED" and covers(event.stored):
                type_: Literal["MODIFIED", "ADDED"] = "MODIFIED" if was else "ADDED"
                stored = event.stored.served_as(version)
                notices.append(Notice(type_, stored.raw, event.version, stored))
            elif was:
                notices.append(_deleted_notice(event, version))
        if self._wake is not None and not self._events.is_ended:
            self.wake_by(self._wake)
        return notices

    def wake_by(self, wake: Callable[[], object]) -> None:
        """Call `wake` when events may be available: immediately, or with the next event of the kind.

        It is called once, and again only after the next pull, so that a slow watcher costs nothing in between. The call
        happens within the write, which is committed by then. `wake` may set a flag or schedule a task; it must neither
        raise nor write. `close` ends it.
        """
        self.close()
        self._wake = wake
        if self._waiting or self._events.last > self.version or self._events.is_ended:
            wake()
        else:
            self._events.waiting[self] = wake

    def close(self) -> None:
        """Cancel the pending wake-up."""
        self._events.waiting.pop(self, None)
        self._wake = None

    def bookmark(self) -> Notice:
        """Return a bookmark with the version up to which events were pulled.

        Raises ValueError before the first pull of initial events.
        """
        if self._waiting:
            raise ValueError("the watch has initial events that were not pulled")
        return self.bookmark_of({})

    def bookmark_of(self, metadata: Raw) -> Notice:
        """Return a bookmark with the current version, and further metadata."""
        resource = self._selector.resource
        raw = {
            "kind": resource.kind,
            "apiVersion": self._api_version or resource.api_version,
            "metadata": {"resourceVersion": str(self.version), **metadata},
        }
        return Notice("BOOKMARK", raw, self.version)


def _deleted_notice(event: watch_log.WatchEvent, api_version: str) -> Notice:
    """Return the DELETED notice for an object that is gone or no longer selected, with its last matching state."""
    if event.type == "DELETED" or event.previous is None:
        stored = event.stored.served_as(api_version)
        return Notice("DELETED", stored.raw, event.version, stored)
    raw = event.previous.served_as(api_version).raw
    metadata = {**raw["metadata"], "resourceVersion": str(event.version)}
    return Notice("DELETED", {**raw, "metadata": metadata}, event.version)
