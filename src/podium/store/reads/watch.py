"""Watching objects: what happens to them from a version on, fetched at the watcher's own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podium.api.meta import Raw
from podium.store.api_resource import APIResource
from podium.store.conversion.conversion import converted
from podium.store.encoding import encoded, framed
from podium.store.errors import invalid_options, too_large
from podium.store.log.watch_event import WatchEvent
from podium.store.reads.listing import ListOptions, read_version
from podium.store.reads.object_selector import ObjectSelector
from podium.store.revisions import Revisions
from podium.store.stored import Stored

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Notice:
    """What a watcher is told: an object after a change to it, or in a BOOKMARK the version up to which it knows all.

    `stored` is what has the encoded bytes of `raw`; None for what is told to this watcher in this form alone.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    raw: Raw
    version: int
    stored: Stored | None = None

    def served_as(self, resource: APIResource, api_version: str) -> Notice:
        """The same in another version of the kind."""
        if self.stored is not None:
            stored = self.stored.served_as(api_version)
            return Notice(self.type, stored.raw, self.version, stored)
        return Notice(self.type, converted(resource, self.raw, api_version), self.version)

    def to_dict(self) -> dict[str, Any]:
        """The event as the API gives it."""
        return {"type": self.type, "object": self.raw}

    def encoded(self) -> bytes:
        """The same as JSON, from the bytes that the object keeps, where they are of the object as it is told."""
        return framed(self.type, encoded(self.raw) if self.stored is None else self.stored.encoded)


class Watch:
    """The events of the objects of one selector, each once and in order.

    An object that comes to be selected is ADDED, and one that is selected no longer is DELETED, as it was before.
    """

    def __init__(self, revisions: Revisions, selector: ObjectSelector, version: int, initial: list[Notice]) -> None:
        """Begin after `version`; `initial` comes first."""
        self._log = revisions.log
        self._events = revisions.log.of(selector.resource.name)
        self._selector = selector
        self._waiting = initial
        self._wake: Callable[[], None] | None = None
        self._api_version = ""
        self.version = version

    def serve_as(self, api_version: str) -> None:
        """Tell everything in that version of the kind; "" is the one that is stored."""
        self._api_version = api_version

    @property
    def is_ended(self) -> bool:
        """Whether no more comes than what was not pulled yet: the kind is served no longer, or in another way."""
        return self._events.is_ended

    def pull(self) -> list[Notice]:
        """Everything since the last call.

        Raises StoreError 410 when some of that is no longer known, which ends the watch.
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
        """Have `wake` called when there may be something to pull: at once, or with the next event of the kind.

        It is called once, and again only after the next pull, so that a watcher that is slow costs nothing meanwhile.
        It is called within the write, which is committed by then; it may set a flag or put a task into a loop, and
        neither raises nor writes. `close` ends it.
        """
        self.close()
        self._wake = wake
        if self._waiting or self._events.last > self.version or self._events.is_ended:
            wake()
        else:
            self._events.wait(self, wake)

    def close(self) -> None:
        """Let nobody be woken any more."""
        self._events.wait_no_longer(self)
        self._wake = None

    def bookmark(self) -> Notice:
        """The version up to which everything was pulled. Raises ValueError before the first pull of initial events."""
        if self._waiting:
            raise ValueError("the watch has initial events that nobody has pulled")
        return self._served(_bookmark(self._selector, self.version))

    def _served(self, notice: Notice) -> Notice:
        return notice.served_as(self._selector.resource, self._api_version) if self._api_version else notice


def open_watch(revisions: Revisions, selector: ObjectSelector, options: ListOptions) -> Watch:
    """The watch that the options ask for.

    With no version, or 0, it begins with the objects that there are, as ADDED; so it does where initial events are
    asked for, and then it tells where they end. Raises StoreError: 400 for a version that is none, 410 for one after
    which something is no longer known, 422 for options that contradict one another, 504 for a version to come.
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
    """That the options go together (apimachinery's internalversion/validation)."""
    if options.send_initial_events is None:
        if options.resource_version_match:
            raise invalid_options("ListOptions", "resourceVersionMatch", "goes with sendInitialEvents alone in a watch")
    elif options.resource_version_match != "NotOlderThan":
        raise invalid_options("ListOptions", "resourceVersionMatch", "must be NotOlderThan with sendInitialEvents")


def _notice(event: WatchEvent, selector: ObjectSelector) -> Iterator[Notice]:
    """What the event means to those who select: nothing, or one notice."""
    was = event.previous is not None and selector.covers(event.previous)
    covered = event.type != "DELETED" and selector.covers(event.stored)
    if covered:
        yield Notice("MODIFIED" if was else "ADDED", event.stored.raw, event.version, event.stored)
    elif was:
        yield _left(event)


def _left(event: WatchEvent) -> Notice:
    """That the object is gone, or selected no longer: as it was when it was selected, at the version of the event."""
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
