"""Watches: the changes of objects from a version on, pulled at the watcher's own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podium.api.meta import Raw
from podium.store.api_resource import APIResource
from podium.store.errors import invalid_options, too_large
from podium.store.listing import ListOptions, ObjectSelector, read_version
from podium.store.revisions import Revisions
from podium.store.stored import Stored, encoded, framed
from podium.store.version_conversion import converted
from podium.store.watch_log import WatchEvent

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Notice:
    """A watch event: an object after a change, or a BOOKMARK with the version up to which all events were delivered.

    `stored` has the encoded bytes of `raw`; None if only this watcher gets the object in this form.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    raw: Raw
    version: int
    stored: Stored | None = None

    def served_as(self, resource: APIResource, api_version: str) -> Notice:
        """Return the event in another version of the kind."""
        if self.stored is not None:
            stored = self.stored.served_as(api_version)
            return Notice(self.type, stored.raw, self.version, stored)
        return Notice(self.type, converted(resource, self.raw, api_version), self.version)

    def to_dict(self) -> dict[str, Any]:
        """Return the event object of the API."""
        return {"type": self.type, "object": self.raw}

    def encoded(self) -> bytes:
        """Return the event as JSON, from the cached bytes of the object if they match."""
        return framed(self.type, encoded(self.raw) if self.stored is None else self.stored.encoded)


class Watch:
    """The events of the objects of one selector, each once and in order.

    An object that starts to match is ADDED. One that no longer matches is DELETED, with its state before.
    """

    def __init__(self, revisions: Revisions, selector: ObjectSelector, version: int, initial: list[Notice]) -> None:
        """Begin after `version`; `initial` is delivered first."""
        self._log = revisions.log
        self._events = revisions.log.of(selector.resource.name)
        self._selector = selector
        self._waiting = initial
        self._wake: Callable[[], None] | None = None
        self._api_version = ""
        self.version = version

    def serve_as(self, api_version: str) -> None:
        """Deliver all events in that version of the kind; "" is the storage version."""
        self._api_version = api_version

    @property
    def is_ended(self) -> bool:
        """Return whether no further events will occur: the kind is no longer served, or is served differently."""
        return self._events.is_ended

    def pull(self) -> list[Notice]:
        """Return all events since the last call.

        Raises StoreError 410 if some of them are no longer known, which ends the watch.
        """
        notices, self._waiting = self._waiting, []
        if self._events.last > self.version:
            if not self._events.is_ended:
                self._log.check(self.version, self._selector.resource.name)
            for event in self._events.since(self.version):
                notices.extend(_notice(event, self._selector))
        self.version = self._log.version
        if self._wake is not None and not self._events.is_ended:
            self._events.wait(self, self._wake)
        return [self._served(notice) for notice in notices] if self._api_version else notices

    def wake_by(self, wake: Callable[[], None]) -> None:
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
            self._events.wait(self, wake)

    def close(self) -> None:
        """Cancel the pending wake-up."""
        self._events.wait_no_longer(self)
        self._wake = None

    def bookmark(self) -> Notice:
        """Return a bookmark with the version up to which events were pulled.

        Raises ValueError before the first pull of initial events.
        """
        if self._waiting:
            raise ValueError("the watch has initial events that nobody has pulled")
        return self._served(_bookmark(self._selector, self.version))

    def _served(self, notice: Notice) -> Notice:
        return notice.served_as(self._selector.resource, self._api_version) if self._api_version else notice


def open_watch(revisions: Revisions, selector: ObjectSelector, options: ListOptions) -> Watch:
    """Return the watch that the options request.

    Without a version, or with 0, it begins with the existing objects as ADDED. It also does so if initial events are
    requested, and then marks their end. Raises StoreError: 400 for a malformed version, 410 for a version after which
    events are no longer known, 422 for contradictory options, 504 for a version in the future.
    """
    _check(options)
    log = revisions.log
    version = read_version(options.resource_version)
    wants_initial = options.send_initial_events or (options.send_initial_events is None and not version)
    if not wants_initial:
        begin = version or log.version
        log.check(begin, selector.resource.name)
        return Watch(revisions, selector, begin, [])
    if version > log.version:
        raise too_large(version, log.version)
    objects = filter(selector.covers, revisions.in_order(selector.resource.name, selector.namespace))
    initial = [Notice("ADDED", stored.raw, stored.version, stored) for stored in objects]
    if options.send_initial_events:
        initial.append(_bookmark(selector, log.version, {"annotations": {_INITIAL_EVENTS_END: "true"}}))
    return Watch(revisions, selector, log.version, initial)


def _check(options: ListOptions) -> None:
    """Check that the options are compatible (apimachinery's internalversion/validation)."""
    if options.send_initial_events is None:
        if options.resource_version_match:
            raise invalid_options("ListOptions", "resourceVersionMatch", "goes with sendInitialEvents alone in a watch")
    elif options.resource_version_match != "NotOlderThan":
        raise invalid_options("ListOptions", "resourceVersionMatch", "must be NotOlderThan with sendInitialEvents")


def _notice(event: WatchEvent, selector: ObjectSelector) -> Iterator[Notice]:
    """Yield the event as the selector's watchers see it: no notice or one."""
    was = event.previous is not None and selector.covers(event.previous)
    covered = event.type != "DELETED" and selector.covers(event.stored)
    if covered:
        yield Notice("MODIFIED" if was else "ADDED", event.stored.raw, event.version, event.stored)
    elif was:
        yield _left(event)


def _left(event: WatchEvent) -> Notice:
    """Return the DELETED notice for an object that is gone or no longer selected, with its last matching state."""
    if event.type == "DELETED" or event.previous is None:
        return Notice("DELETED", event.stored.raw, event.version, event.stored)
    raw = event.previous.raw
    metadata = {**raw["metadata"], "resourceVersion": str(event.version)}
    return Notice("DELETED", {**raw, "metadata": metadata}, event.version)


def _bookmark(selector: ObjectSelector, version: int, metadata: Raw | None = None) -> Notice:
    resource = selector.resource
    raw = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(version), **(metadata or {})},
    }
    return Notice("BOOKMARK", raw, version)
