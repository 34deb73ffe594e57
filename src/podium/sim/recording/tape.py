"""The format of recordings: steps of a Scenario, and events of a Recording.

The steps are requests of users, which are played again. The events are actions of schedulers and controllers, which are
compared with the simulation and give the cluster's state at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from podium.api.checks import check_duration, check_format
from podium.api.input.codec import Document
from podium.api.input.documents import API_VERSION, read_among
from podium.api.kinds import KINDS, group_of
from podium.api.meta import APIStruct, Kubernetes, Raw
from podium.api.pod import MIRROR_ANNOTATION, Pod
from podium.api.reading import read
from podium.api.storage import PROVISIONED_BY, PersistentVolume, PersistentVolumeClaim
from podium.api.times import parse_duration
from podium.api.workloads import WORKLOADS, StatefulSet
from podium.controllers.disruption.default_budgets import DEFAULT_BUDGET

RECORDING = "Recording"
"""The kind of recordings."""

FORMAT = 1
"""The version of the format."""

What = Literal[
    "created", "changed", "gone", "nominated", "bound", "preempted", "evicted", "disrupted", "finished", "failed"
]


class RecordedEvent(APIStruct, frozen=True, kw_only=True):
    """An event ``at`` a time after the start.

    ``object`` is the whole object if a controller created or changed it. ``node`` is the one to which a pod was bound,
    or for which it is nominated, ``reason`` that of its condition DisruptionTarget; "" if they do not apply.
    """

    at: str
    what: What
    kind: str
    key: str
    uid: str = ""
    node: str = ""
    reason: str = ""
    object: Raw | None = None

    @property
    def at_ns(self) -> int:
        return parse_duration(self.at)


class Recording(Kubernetes, frozen=True, kw_only=True):
    """The recorded effects of the accompanying steps, for ``length`` from the start (podium.dev/v1alpha1).

    ``termination`` is how long pods usually took to end, None if that was their whole grace period.
    """

    format: int = FORMAT
    length: str = "0s"
    termination: str | None = None
    events: tuple[RecordedEvent, ...] = ()

    @property
    def length_ns(self) -> int:
        return parse_duration(self.length)

    @property
    def termination_ns(self) -> int | None:
        return None if self.termination is None else parse_duration(self.termination)


class RecordingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an observation: steps and events."""

    steps: tuple[Raw, ...] = ()
    events: tuple[RecordedEvent, ...] = ()


def is_recording(raw: Raw) -> bool:
    """Return whether an object is a Recording."""
    return raw.get("kind") == RECORDING and group_of(str(raw.get("apiVersion"))) == group_of(API_VERSION)


def recordings_of(documents: Iterable[Document]) -> Iterator[tuple[Recording, Document]]:
    """Return the Recordings among the documents. Raises InputError for invalid ones."""
    return read_among(documents, is_recording, _read)


def _read(raw: Raw) -> Recording:
    check_format(raw.get("format"), FORMAT)
    found = read(raw, Recording)
    times = ((f".events[{index}].at", event.at) for index, event in enumerate(found.events))
    for path, text in ((".length", found.length), (".termination", found.termination or "0s"), *times):
        check_duration(text, path)
    return found


Finder = Callable[[str, str], Kubernetes | None]
"""Returns an object by kind and key."""

# Claims belong to pods, everything else to workloads.
_OWNERS = frozenset((*WORKLOADS, "Pod"))
_NAMESPACED = {kind.name: kind.namespaced for kind in KINDS.values()}


def is_made_by_controller(object_: Kubernetes, find: Finder) -> bool:
    """Return whether a simulated controller creates the object."""
    if _owner(object_, find) is not None or object_.metadata.labels.get(DEFAULT_BUDGET) == "true":
        return True
    if isinstance(object_, PersistentVolume):
        return PROVISIONED_BY in object_.metadata.annotations
    if isinstance(object_, Pod):
        # A kubelet creates it from a file, as long as its node exists.
        return MIRROR_ANNOTATION in object_.metadata.annotations
    return isinstance(object_, PersistentVolumeClaim) and _is_of_stateful_set(object_, find)


def workload_of(object_: Kubernetes, find: Finder) -> Kubernetes | None:
    """Return the topmost workload that owns an object; None without one."""
    found = None
    owner = _owner(object_, find)
    while owner is not None and owner is not found:
        found, owner = owner, _owner(owner, find)
    return found


def _owner(object_: Kubernetes, find: Finder) -> Kubernetes | None:
    """Return the controller of the object, if it is simulated."""
    of_pod = (reference for reference in object_.metadata.owner_references if reference.kind == "Pod")
    controller = object_.metadata.controller or next(of_pod, None)
    if controller is None or controller.kind not in _OWNERS:
        return None
    namespace = object_.metadata.namespace if _NAMESPACED.get(controller.kind) else ""
    owner = find(controller.kind, f"{namespace}/{controller.name}" if namespace else controller.name)
    return owner if owner is not None and owner.metadata.uid == controller.uid else None


def _is_of_stateful_set(claim: PersistentVolumeClaim, find: Finder) -> bool:
    """Return whether the claim is named like those of a StatefulSet's templates: TEMPLATE-SET-NUMBER."""
    stem, _, number = claim.metadata.name.rpartition("-")
    places = [place for place, letter in enumerate(stem) if letter == "-" and number.isdecimal()]
    for named, name in ((stem[:place], stem[place + 1 :]) for place in places):
        owner = find("StatefulSet", f"{claim.metadata.namespace}/{name}")
        templates = owner.spec.volume_claim_templates if isinstance(owner, StatefulSet) else ()
        if any(template.metadata.name == named for template in templates):
            return True
    return False
