"""The reflector state machine: which request keeps a cache of a kind's objects current.

It requests the objects and their changes in one watch (WatchList); if the server does not support that, a paginated
list and then a watch. An interrupted watch resumes at the last seen version; if that is too old, or newer than all that
the server has, everything is listed again, and missing objects are reported as deleted.

This is a state machine without I/O: `ask` returns the next request, and the caller passes in the result.

Source: k8s.io/client-go/tools/cache (reflector.go, reflector_data_consistency_detector.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from random import Random
from typing import Any, Literal

from podium.api.errors import InputError
from podium.api.kinds import SERVED_KINDS
from podium.api.meta import Raw, key_of, object_at, objects_at, value_at
from podium.api.times import SECOND
from podium.apirequests.http_mapping import error_of
from podium.apirequests.observations import ObjectObservation, arrived, differences, received
from podium.apirequests.request import Request
from podium.client.session import PAGE, Send, Wait
from podium.store import api_resources, errors, listing, version_conversion
from podium.store.stored import Stored

_ABSENT_WAIT_NS = 60 * SECOND
# The maximum wait, even if a server asks for more.
_LONGEST_ASKED_WAIT_NS = 300 * SECOND
# The responses of a server that does not support WatchList or these options.
_NOT_WATCHED_SO = frozenset((400, 405, 415, 422))
# Versions that are too old, or newer than what this server knows.
_NOT_SERVED = frozenset(("Expired", "Gone", "ResourceVersionTooLarge"))

FIRST_WAIT_NS, LONGEST_WAIT_NS = 800_000_000, 30 * SECOND
# The backoff is reset after two minutes without a failure.
_FORGET_NS = 120 * SECOND


class ReflectorStage(Enum):
    """The next request."""

    WATCH_LIST = "the objects, and then what happens to them, in one watch"
    LIST = "the objects, in pages"
    WATCH = "what happens to them"


@dataclass(slots=True)
class Counts:
    """Counters of the deviations from the normal sequence."""

    lists: int = 0
    watches: int = 0
    broken: int = 0
    expired: int = 0


@dataclass(slots=True, eq=False)
class ReflectorState:
    """The cache of the objects of one kind.

    ``known`` are the objects by key, ``version`` the version that they reflect. ``is_synced``: the initial list was
    complete. ``is_absent``: the server does not serve the kind; with ``is_hidden``, it does not allow this client to
    list it. ``problem`` is the current problem, "" for none, and ``reader`` lists the unreadable objects. ``seed``
    randomizes waits and watch durations, so that clients do not synchronize. A kind that ``is_optional`` may not be
    served, or not be listable; if the server only has another version of it, that one is used. ``namespace`` restricts
    the objects, "" means all namespaces.
    """

    resource: api_resources.APIResource
    _: KW_ONLY
    seed: int = 0
    namespace: str = ""
    field_selector: str = ""
    is_optional: bool = False
    known: dict[str, Stored] = field(default_factory=dict)
    version: int = 0
    is_synced: bool = False
    is_absent: bool = False
    is_hidden: bool = False
    problem: str = ""
    counts: Counts = field(default_factory=Counts)
    stage: ReflectorStage = ReflectorStage.WATCH_LIST
    reader: ObjectReader = field(init=False)
    _random: Random = field(init=False)
    _waits: RetryWaits = field(init=False)
    _knows_watch_list: bool = True
    # The objects so far of a list, or of a watch's initial events, and the start of the next page.
    _there: dict[str, Stored] = field(default_factory=dict)
    _continue: str = ""
    _least_version: int = 0
    # Whether a new list was requested since the last request: its results are then ignored.
    _is_overtaken: bool = False

    def __post_init__(self) -> None:
        self.reader = ObjectReader(self.resource, is_any_version=self.is_optional)
        self._random = Random(f"{self.resource.name} {self.seed}")  # noqa: S311 - a wait is no secret
        self._waits = RetryWaits(self._random)

    def ask(self, now: int) -> Send | Wait:
        if now < self._waits.until_ns:
            return Wait(self._waits.until_ns)
        self._is_overtaken = False
        if self.stage is ReflectorStage.LIST:
            if not self._continue:
                self.reader.unreadable = {}
            # Without a version the list is as new as the request.
            return Send(self._request("list", limit=PAGE, continue_token=self._continue))
        timeout_seconds = self._random.randrange(300, 600)
        if self.stage is ReflectorStage.WATCH:
            version = str(self.version) if self.version else ""
            return Send(self._request("watch", resource_version=version), timeout_seconds)
        self._there, self.reader.unreadable = {}, {}
        version = str(self._least_version) if self._least_version else ""
        request = self._request(
            "watch", resource_version=version, resource_version_match="NotOlderThan", send_initial_events=True
        )
        return Send(request, timeout_seconds)

    # Results

    def began(self) -> None:
        self.counts.watches += 1

    def page(self, body: Raw, now: int) -> list[ObjectObservation]:
        """Process a page of a list; return the observations after the last page."""
        if self._is_overtaken:
            return []
        self._take_in(objects_at(body, "items"))
        metadata = object_at(body, "metadata")
        more = metadata.get("continue")
        self._continue = more if isinstance(more, str) else ""
        if self._continue:
            return []
        return self._on_list(_version(metadata.get("resourceVersion")))

    def events(self, events: Sequence[Raw], now: int) -> tuple[list[ObjectObservation], bool]:
        """Process watch events; return the observations, and whether the watch continues."""
        observed: list[ObjectObservation] = []
        if self._is_overtaken:
            return observed, False
        self.problem = ""
        for event in events:
            type_, raw = event["type"], event["object"]
            if type_ == "ERROR":
                code = raw.get("code")
                refusal = error_of(code if isinstance(code, int) else 500, raw)
                return observed + self.on_refused(refusal, now), False
            if type_ == "BOOKMARK":
                observed += self._bookmark(raw, now)
            elif self.stage is ReflectorStage.WATCH_LIST:
                self._take_in((raw,))
            else:
                observed += self._event(type_, raw)
        return observed, True

    def on_watch_end(self, now: int, began_ns: int) -> None:
        """Record the normal end of a watch; watches that repeatedly end at once cause a backoff."""
        self.problem = ""
        if now - began_ns < SECOND or self.stage is ReflectorStage.WATCH_LIST:
            self._fail(now)

    def on_refused(self, error: errors.StoreError, now: int) -> list[ObjectObservation]:
        """Process a refusal; return the resulting observations."""
        code = error.code
        if code == 404 and self.reader.try_next_version():
            # The server may serve the kind in another version, so this is not a problem yet.
            self._relist()
            return []
        self.problem = f"{code} {error.reason}: {error.message}"
        reasons = {error.reason, *(str(cause.get("reason")) for cause in objects_at(error.details, "causes"))}
        if code == 410 or reasons & _NOT_SERVED:
            # A list without a version is consistent, also if the store has been restored and never had this version.
            self.counts.expired += 1
            self._least_version = 0
            self._relist()
            self._fail(now)
            return []
        if self.stage is ReflectorStage.WATCH_LIST and code in _NOT_WATCHED_SO:
            self._knows_watch_list = False
            self._relist()
            return []
        if code == 404 or (code == 403 and self.is_optional):
            self.is_hidden = code == 403
            # The server has no version of the kind: all known objects are reported as deleted.
            observed = [arrived(self.known, type_, stored) for type_, stored in differences(self.known, {})]
            self._relist()
            self.is_synced = self.is_absent = True
            self._waits.until_ns = now + _ABSENT_WAIT_NS
            return observed
        self._fail(now, min(error.details.get("retryAfterSeconds", 0) * SECOND, _LONGEST_ASKED_WAIT_NS))
        return []

    def on_broken(self, message: str, now: int) -> None:
        """Record a lost connection or an unintelligible answer."""
        self.problem = message
        self.counts.broken += 1
        self._fail(now)

    def relist(self, least_version: int = 0) -> None:
        """List everything again, at least as new as a version."""
        self._least_version = least_version
        self._relist()
        self._is_overtaken = True
        self._waits.until_ns = 0

    # Requests

    def _request(self, verb: Literal["list", "watch"], **options: Any) -> Request:
        return Request(
            verb=verb,
            kind=self.resource.name,
            namespace=self.namespace,
            options=listing.ListOptions(field_selector=self.field_selector, **options),
            api_version=self.reader.api_version,
        )

    def _relist(self) -> None:
        self.stage = ReflectorStage.WATCH_LIST if self._knows_watch_list else ReflectorStage.LIST
        self._there, self._continue = {}, ""

    def _take_in(self, items: Iterable[Raw]) -> None:
        for raw in items:
            # The items of a list have no type; the list's `kind` implies it.
            stored = self.reader.read(raw, self.known)
            if stored is not None:
                self._there[stored.key] = stored

    def _bookmark(self, raw: Raw, now: int) -> list[ObjectObservation]:
        metadata = object_at(raw, "metadata")
        version = _version(metadata.get("resourceVersion"))
        if self.stage is not ReflectorStage.WATCH_LIST:
            self.version = max(self.version, version)
            return []
        return self._on_list(version) if value_at(metadata, "annotations", listing.INITIAL_EVENTS_END) == "true" else []

    def _on_list(self, version: int) -> list[ObjectObservation]:
        """Process the complete list at a version; return the differences from the known objects."""
        there, self._there = self._there, {}
        self.counts.lists += 1
        for key in self.reader.unreadable:
            # An unreadable object keeps its last readable state.
            if key in self.known:
                there[key] = self.known[key]
        observed = [arrived(self.known, type_, stored) for type_, stored in differences(self.known, there)]
        self.version, self.stage = version, ReflectorStage.WATCH
        self.is_synced, self.is_absent, self.is_hidden, self.problem = True, False, False, ""
        self._least_version = 0
        return observed

    def _event(self, type_: str, raw: Raw) -> list[ObjectObservation]:
        self.version = max(self.version, _version(value_at(raw, "metadata", "resourceVersion")))
        if type_ not in ("ADDED", "MODIFIED", "DELETED"):
            return []
        stored = self.reader.read(raw, self.known, is_gone=type_ == "DELETED")
        return [] if stored is None else [arrived(self.known, type_, stored)]

    def _fail(self, now: int, least_ns: int = 0) -> None:
        if self.stage is ReflectorStage.LIST:
            self._there, self._continue = {}, ""
        self._waits.fail(now, least_ns)


def _version(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else 0


@dataclass(slots=True)
class RetryWaits:
    """An exponential backoff with jitter: each wait is twice the one before, times a random factor of up to two.

    No request is sent before ``until_ns``.
    """

    random: Random
    until_ns: int = 0
    _failures: int = 0
    _failed_ns: int = 0

    def fail(self, now: int, least_ns: int = 0) -> None:
        """Wait before the next request, for at least ``least_ns``."""
        if now - self._failed_ns > _FORGET_NS:
            self._failures = 0
        wait_ns = min(FIRST_WAIT_NS << min(self._failures, 10), LONGEST_WAIT_NS)
        self._failures += 1
        self._failed_ns = now
        wait_ns += int(self.random.random() * wait_ns)
        self.until_ns = now + max(wait_ns, least_ns)


class ObjectReader:
    """A reader of objects of one kind; ``unreadable`` holds the problems of unreadable objects, by key.

    With ``is_any_version``, the kind may be served only in another of its versions (`try_next_version`). ``failed`` is
    the number of reads that failed.
    """

    def __init__(self, resource: api_resources.APIResource, *, is_any_version: bool) -> None:
        self._resource = resource
        # The server may be of another version, which serves the kind in other API versions.
        kind = SERVED_KINDS.get((resource.group, resource.kind)) if is_any_version else None
        self._versions = (resource.api_version, *(() if kind is None else kind.other_versions))
        self._tried = 0
        self.unreadable: dict[str, str] = {}
        self.failed = 0

    @property
    def api_version(self) -> str:
        """The version to request, "" for the kind's own."""
        return self._versions[self._tried] if self._tried else ""

    def try_next_version(self) -> bool:
        """Switch to the next version of the kind; return False after the last one, and start over."""
        self._tried = (self._tried + 1) % len(self._versions)
        return bool(self._tried)

    def read(self, raw: Raw, known: Mapping[str, Stored], *, is_gone: bool = False) -> Stored | None:
        """Return the object; for an unreadable one that is deleted its known state, otherwise None."""
        resource, version = self._resource, self._versions[self._tried]
        if "kind" not in raw:
            raw = {"apiVersion": version, "kind": resource.kind, **raw}
        # Controllers do not need managed fields, which often are most of an object.
        object_at(raw, "metadata").pop("managedFields", None)
        try:
            stored = received(resource, version_conversion.as_stored(resource, raw, version) if self._tried else raw)
        except (InputError, ValueError) as error:
            return self._fail(raw, str(error), known, is_gone=is_gone)
        if self.unreadable:
            self.unreadable.pop(stored.key, None)
        return stored

    def _fail(self, raw: Raw, problem: str, known: Mapping[str, Stored], *, is_gone: bool) -> Stored | None:
        key = key_of(object_at(raw, "metadata"))
        self.failed += 1
        if is_gone:
            self.unreadable.pop(key, None)
            return known.get(key)
        self.unreadable[key] = problem
        return None
