"""Watching objects: what happens to them from a version on, fetched at the watcher's own pace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podium.api.meta import Raw
from podium.store.errors import invalid_options, too_large
from podium.store.listing import ListOptions, read_version
from podium.store.revisions import Revisions
from podium.store.scope import Scope
from podium.store.watch_log import WatchEvent

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Notice:
    """What a watcher is told: an object after a change to it, or in a BOOKMARK the version up to which it knows all."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    raw: Raw
    version: int

    def to_dict(self) -> dict[str, Any]:
        """The event as the API gives it."""
        return {"type": self.type, "object": self.raw}


class Watch:
    """The events of one scope, each once and in order.

    An object that comes to be selected is ADDED, and one that is selected no longer is DELETED, as it was before.
    """

    def __init__(self, revisions: Revisions, scope: Scope, version: int, initial: list[Notice]) -> None:
        """Begin after `version`; `initial` comes first."""
        self._revisions = revisions
        self._scope = scope
        self._waiting = initial
        self.version = version

    def pull(self) -> list[Notice]:
        """Everything since the last call.

        Raises StoreError 410 when some of that is no longer known, which ends the watch.
        """
        notices, self._waiting = self._waiting, []
        log = self._revisions.log
        if self.version != log.version:
            for event in log.since(self.version):
                notices.extend(_notice(event, self._scope))
            self.version = log.version
        return notices

    def bookmark(self) -> Notice:
        """The version up to which everything was pulled. Raises ValueError before the first pull of initial events."""
        if self._waiting:
            raise ValueError("the watch has initial events that nobody has pulled")
        return _bookmark(self._scope, self.version)


def open_watch(revisions: Revisions, scope: Scope, options: ListOptions) -> Watch:
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
        log.check(begin)
        return Watch(revisions, scope, begin, [])
    if version > log.version:
        raise too_large(version, log.version)
    objects = sorted(revisions.of(scope.resource.name).items())
    initial = [Notice("ADDED", stored.raw, stored.version) for _, stored in objects if scope.covers(stored)]
    if options.send_initial_events:
        initial.append(_bookmark(scope, log.version, {"annotations": {_INITIAL_EVENTS_END: "true"}}))
    return Watch(revisions, scope, log.version, initial)


def _check(options: ListOptions) -> None:
    """That the options go together (apimachinery's internalversion/validation)."""
    if options.send_initial_events is None:
        if options.resource_version_match:
            raise invalid_options("ListOptions", "resourceVersionMatch", "goes with sendInitialEvents alone in a watch")
    elif options.resource_version_match != "NotOlderThan":
        raise invalid_options("ListOptions", "resourceVersionMatch", "must be NotOlderThan with sendInitialEvents")


def _notice(event: WatchEvent, scope: Scope) -> Iterator[Notice]:
    """What the event means to the scope: nothing, or one notice."""
    if event.stored.resource.name != scope.resource.name:
        return
    was = event.previous is not None and scope.covers(event.previous)
    covered = event.type != "DELETED" and scope.covers(event.stored)
    if covered:
        yield Notice("MODIFIED" if was else "ADDED", event.stored.raw, event.version)
    elif was:
        yield Notice("DELETED", _left(event), event.version)


def _left(event: WatchEvent) -> Raw:
    """The object that is gone, or as it was when it was selected, at the version of the event."""
    if event.type == "DELETED" or event.previous is None:
        return event.stored.raw
    raw = event.previous.raw
    return {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(event.version)}}


def _bookmark(scope: Scope, version: int, metadata: Raw | None = None) -> Notice:
    resource = scope.resource
    raw = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(version), **(metadata or {})},
    }
    return Notice("BOOKMARK", raw, version)
