"""How somebody far away comes to know all objects of a kind, and goes on knowing them: what to ask for next.

It asks for the objects and for what happens to them in one watch (WatchList); where a server does not do that, for a
list in pages and then for a watch. A watch that breaks is taken up at the last version that was seen, and where that is
too old everything is listed anew: whatever is not there any more is told as gone.

This is a machine without connections: `ask` says what to ask for, and whoever asks hands in what came of it.

Source: k8s.io/client-go/tools/cache (reflector.go, reflector_data_consistency_detector.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from podium.api.meta import Raw
from podium.client.asking import Ask, Wait
from podium.client.reflecting.object_reader import ObjectReader, part_of
from podium.client.reflecting.retry_waits import RetryWaits
from podium.requests.observations import Seen, arrived, differences
from podium.requests.request import Request
from podium.requests.wire.outgoing import error_of
from podium.store.api_resource import APIResource
from podium.store.errors import StoreError
from podium.store.reads.listing import ListOptions
from podium.store.stored import Stored

_SECOND = 10**9
_ABSENT_WAIT_NS = 60 * _SECOND
# However long a server asks to wait.
_LONGEST_ASKED_WAIT_NS = 300 * _SECOND
PAGE = 500
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
# What a server says that does not know WatchList, or not these options.
_NOT_WATCHED_SO = frozenset((400, 405, 415, 422))
_TOO_OLD = frozenset(("Expired", "Gone"))


class Stage(Enum):
    """What is asked for next."""

    WATCH_LIST = "the objects, and then what happens to them, in one watch"
    LIST = "the objects, in pages"
    WATCH = "what happens to them"


@dataclass(slots=True)
class Counts:
    """How often things went another way than the straight one."""

    lists: int = 0
    watches: int = 0
    broken: int = 0
    expired: int = 0


class Reflecting:
    """What is known of the objects of one kind.

    ``known`` are the objects by key, ``version`` the version up to which that holds. ``is_synced``: they were all there
    once. ``is_absent``: the server has no such kind, so that there is nothing to know. ``problem`` says what is wrong
    at present, "" for nothing, and ``reader`` which objects cannot be read. ``seed`` spreads waits and the ends of
    watches, so that not everybody comes at once.
    """

    def __init__(
        self,
        resource: APIResource,
        *,
        seed: int = 0,
        namespace: str = "",
        field_selector: str = "",
        is_optional: bool = False,
    ) -> None:
        """A kind that ``is_optional`` may be one that the server does not have, or shows to nobody.

        Where the server has it in another of its versions alone, it is taken from there.

        ``namespace`` is where the objects are that are wanted, "" for those of all namespaces.
        """
        self.resource = resource
        self.known: dict[str, Stored] = {}
        self.version = 0
        self.is_synced = False
        self.is_absent = False
        self.problem = ""
        self.counts = Counts()
        self._namespace = namespace
        self._field_selector = field_selector
        self._is_optional = is_optional
        self.reader = ObjectReader(resource, is_any_version=is_optional)
        self._random = Random(f"{resource.name} {seed}")  # noqa: S311 - a wait is no secret
        self._waits = RetryWaits(self._random)
        self._stage = Stage.WATCH_LIST
        self._knows_watch_list = True
        # What a list, or the first part of a watch, has brought so far, and where its next page begins.
        self._there: dict[str, Stored] = {}
        self._continue = ""
        self._least_version = 0
        # Whether all is to be listed anew since something was asked for: what still comes of that counts no more.
        self._is_overtaken = False

    @property
    def stage(self) -> Stage:
        """What is asked for next."""
        return self._stage

    def ask(self, now: int) -> Ask | Wait:
        """What to do next."""
        if now < self._waits.until_ns:
            return Wait(self._waits.until_ns)
        self._is_overtaken = False
        if self._stage is Stage.LIST:
            if not self._continue:
                self.reader.unreadable = {}
            return Ask(self._request("list", self._list_options()))
        timeout_seconds = self._random.randrange(300, 600)
        if self._stage is Stage.WATCH:
            version = str(self.version) if self.version else ""
            return Ask(self._request("watch", self._options(resource_version=version)), timeout_seconds)
        self._there, self.reader.unreadable = {}, {}
        version = str(self._least_version) if self._least_version else ""
        options = self._options(
            resource_version=version, resource_version_match="NotOlderThan", send_initial_events=True
        )
        return Ask(self._request("watch", options), timeout_seconds)

    # What came of it

    def began(self) -> None:
        """The watch is open."""
        self.counts.watches += 1

    def page(self, body: Raw, now: int) -> list[Seen]:
        """A page of a list came; what is to be told, once it was the last."""
        if self._is_overtaken:
            return []
        items = body.get("items")
        self._take_in(item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))
        metadata = part_of(body, "metadata")
        more = metadata.get("continue")
        self._continue = more if isinstance(more, str) else ""
        if self._continue:
            return []
        return self._listed(_version(metadata.get("resourceVersion")), now)

    def events(self, events: Sequence[Raw], now: int) -> tuple[list[Seen], bool]:
        """Events of the watch came: what is to be told, and whether the watch goes on."""
        told: list[Seen] = []
        if self._is_overtaken:
            return told, False
        self.problem = ""
        for event in events:
            type_, raw = event["type"], event["object"]
            if type_ == "ERROR":
                return told + self.refused(_error(raw), now), False
            if type_ == "BOOKMARK":
                told += self._bookmark(raw, now)
            elif self._stage is Stage.WATCH_LIST:
                self._take_in((raw,))
            else:
                told += self._event(type_, raw)
        return told, True

    def ended(self, now: int, began_ns: int) -> None:
        """The watch ended as watches do; one that ends at once, and again and again, is left alone for a while."""
        self.problem = ""
        if now - began_ns < _SECOND or self._stage is Stage.WATCH_LIST:
            self._fail(now)

    def refused(self, error: StoreError, now: int) -> list[Seen]:
        """What was asked for is refused; what follows from that for what is known."""
        self.problem = f"{error.code} {error.reason}: {error.message}"
        code = error.code
        if code == 410 or error.reason in _TOO_OLD:
            self.counts.expired += 1
            self._list_anew()
            self._fail(now)
            return []
        if self._stage is Stage.WATCH_LIST and code in _NOT_WATCHED_SO:
            self._knows_watch_list = False
            self._list_anew()
            return []
        if code == 404 or (code == 403 and self._is_optional):
            return self._absent(now)
        if code == 504 and _is_too_large(error):
            # A server that lags behind the one which was asked before.
            self._fail(now, _SECOND)
            return []
        asked_ns = error.details.get("retryAfterSeconds", 0) * _SECOND
        self._fail(now, min(asked_ns, _LONGEST_ASKED_WAIT_NS))
        return []

    def broke(self, message: str, now: int) -> None:
        """The connection was lost, or nothing that can be understood came."""
        self.problem = message
        self.counts.broken += 1
        self._fail(now)

    def list_anew(self, least_version: int = 0) -> None:
        """Nothing counts that is older than a version: list everything again, as new as that."""
        self._least_version = least_version
        self._list_anew()
        self._is_overtaken = True
        self._waits.until_ns = 0

    # How

    def _request(self, verb: str, options: ListOptions) -> Request:
        return Request(
            verb="list" if verb == "list" else "watch",
            kind=self.resource.name,
            namespace=self._namespace,
            options=options,
            api_version=self.reader.api_version,
        )

    def _options(
        self, *, resource_version: str, resource_version_match: str = "", send_initial_events: bool | None = None
    ) -> ListOptions:
        return ListOptions(
            field_selector=self._field_selector,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            send_initial_events=send_initial_events,
        )

    def _list_options(self) -> ListOptions:
        # Without a version the list is as new as the request.
        return ListOptions(field_selector=self._field_selector, limit=PAGE, continue_token=self._continue)

    def _list_anew(self) -> None:
        self._stage = Stage.WATCH_LIST if self._knows_watch_list else Stage.LIST
        self._there, self._continue = {}, ""

    def _take_in(self, items: Iterable[Raw]) -> None:
        for raw in items:
            # What a list holds does not say what it is (its `kind` says it for all).
            stored = self.reader.read(raw, self.known)
            if stored is not None:
                self._there[stored.key] = stored

    def _bookmark(self, raw: Raw, now: int) -> list[Seen]:
        metadata = part_of(raw, "metadata")
        version = _version(metadata.get("resourceVersion"))
        if self._stage is not Stage.WATCH_LIST:
            self.version = max(self.version, version)
            return []
        return self._listed(version, now) if part_of(metadata, "annotations").get(_INITIAL_EVENTS_END) == "true" else []

    def _listed(self, version: int, now: int) -> list[Seen]:
        """All objects have come, as they were at a version: what is to be told, beside what was known."""
        there, self._there = self._there, {}
        self.counts.lists += 1
        for key in self.reader.unreadable:
            # What cannot be read stays what it was when it last could.
            if key in self.known:
                there[key] = self.known[key]
        told = [arrived(self.known, type_, stored) for type_, stored in differences(self.known, there)]
        self.version, self._stage = version, Stage.WATCH
        self.is_synced, self.is_absent, self.problem = True, False, ""
        self._least_version = 0
        return told

    def _event(self, type_: str, raw: Raw) -> list[Seen]:
        self.version = max(self.version, _version(part_of(raw, "metadata").get("resourceVersion")))
        if type_ not in ("ADDED", "MODIFIED", "DELETED"):
            return []
        stored = self.reader.read(raw, self.known, is_gone=type_ == "DELETED")
        return [] if stored is None else [arrived(self.known, type_, stored)]

    def _absent(self, now: int) -> list[Seen]:
        """The server has no such kind: what there was is gone. It may have it in another version."""
        if self.reader.try_next_version():
            self._list_anew()
            return []
        told = [arrived(self.known, type_, stored) for type_, stored in differences(self.known, {})]
        self._list_anew()
        self.is_synced = self.is_absent = True
        self._waits.until_ns = now + _ABSENT_WAIT_NS
        return told

    def _fail(self, now: int, least_ns: int = 0) -> None:
        if self._stage is Stage.LIST:
            self._there, self._continue = {}, ""
        self._waits.fail(now, least_ns)


def _version(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else 0


def _error(status: Raw) -> StoreError:
    """The refusal that a watch ends with."""
    code = status.get("code")
    return error_of(code if isinstance(code, int) else 500, status)


def _is_too_large(error: StoreError) -> bool:
    causes = error.details.get("causes")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "ResourceVersionTooLarge" for cause in causes
    )
