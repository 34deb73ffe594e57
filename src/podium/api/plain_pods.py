"""Pods as people and traces write them by the thousand: of few sorts, and with nothing to say about any of them.

What pods of one sort share is read and judged once: their specification, their labels, and which annotations they have.
What each has for itself is its name, and what its annotations say. Of every other pod `podium.api.objects` finds what
there is to say.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from podium.api.errors import InputError
from podium.api.meta import ObjectMeta, Raw
from podium.api.names import subdomain_problem
from podium.api.pod import Pod
from podium.api.pod_specs import SharedSpec, shared_spec
from podium.api.reading import read
from podium.api.schemas.slips import slips
from podium.api.schemas.structure import findings
from podium.api.soundness.objects import validate
from podium.api.validation.metadata import JUDGED_ANNOTATIONS
from podium.api.validation.objects import find_problems

_SORTS = 2_048
_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec"))
_METADATA = frozenset(("name", "namespace", "labels", "annotations"))
_ANY = "any"
# What is larger is no sort of pod of which there are many; and it is far from how much all annotations may be.
_SMALL = 10_000
_ENCODER = msgspec.msgpack.Encoder()


def plain_pod(raw: Raw) -> tuple[Raw, Pod] | None:
    """The pod with its namespace, and its reading, where it is right in every respect; None for any other object.

    Pods of one sort share the wire form and the reading of their specification.
    """
    if raw.get("kind") != "Pod" or raw.get("apiVersion") != "v1" or raw.keys() != _FIELDS:
        return None
    metadata = raw["metadata"]
    if not isinstance(metadata, dict) or not metadata.keys() <= _METADATA:
        return None
    name, annotations = metadata.get("name"), metadata.get("annotations", {})
    if not isinstance(name, str) or not name or subdomain_problem(name) is not None:
        return None
    shared = shared_spec(raw["spec"])
    if shared is None:
        return None
    if not metadata.get("namespace"):
        metadata = {**metadata, "namespace": "default"}
    try:
        if not _are_plain(annotations):
            return None
        sort = _ENCODER.encode((metadata["namespace"], metadata.get("labels", {}), list(annotations)))
        if len(sort) > _SMALL or not _is_right(shared, sort):
            return None
        reading = Pod(api_version="v1", kind="Pod", metadata=msgspec.convert(metadata, ObjectMeta), spec=shared.spec)
    except (msgspec.ValidationError, OverflowError, RecursionError, TypeError, UnicodeEncodeError):
        return None
    return {**raw, "metadata": metadata, "spec": shared.raw}, reading


def _are_plain(annotations: object) -> bool:
    """Whether it makes no difference what the annotations say."""
    if not isinstance(annotations, dict) or not JUDGED_ANNOTATIONS.isdisjoint(annotations):
        return False
    length = 0
    for name, said in annotations.items():
        if not isinstance(said, str):
            return False
        length += len(name) + len(said)
    return length < _SMALL


@lru_cache(maxsize=_SORTS)
def _is_right(shared: SharedSpec, sort: bytes) -> bool:
    """Whether there is nothing to say about pods of this sort, whatever their names."""
    namespace, labels, names = msgspec.msgpack.decode(sort)
    if any("ephemeral" in volume for volume in shared.raw.get("volumes", ())):
        # Its claim is named after the pod.
        return False
    metadata = {"name": _ANY, "namespace": namespace, "labels": labels, "annotations": dict.fromkeys(names, "")}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": shared.raw}
    if findings(raw) or find_problems(raw):
        return False
    try:
        pod = read(raw, Pod)
        validate(pod)
    except InputError:
        return False
    return not any(slips(pod))
