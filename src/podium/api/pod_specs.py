"""The specifications of pods, of which a cluster has few sorts: each is read, judged and admitted once.

Pods of one sort share what was read, and the wire form of what is written.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.pod import PodSpec
from podium.api.soundness.pod import check_pod_spec

_CACHE = 1_024
_ENCODER = msgspec.msgpack.Encoder()
# By the identity of their wire forms, the specifications that were found last.
_SHARED: dict[int, SharedSpec] = {}


class SharedSpec:
    """A specification that is right, in both forms, and what admission last made of it.

    `admitted` holds where, which is compared by identity, since the same sort of pod may become another elsewhere.
    """

    __slots__ = ("admitted", "raw", "spec")

    def __init__(self, raw: Raw, spec: PodSpec) -> None:
        self.raw = raw
        self.spec = spec
        self.admitted: tuple[object, SharedSpec] | None = None

    def has_label_keys(self) -> bool:
        """Whether something in it follows from the labels of the pod (matchLabelKeys, mismatchLabelKeys)."""
        return b"atchLabelKeys" in _ENCODER.encode(self.raw)


def shared_spec(raw: object) -> SharedSpec | None:
    """The specification that is shared with all that are equal; None for one that is not right.

    What is wrong with such a one is found by reading and judging it (`podium.store.verbs.readings`).
    """
    # A wire form that is shared already is told by its identity: what is kept cannot be that of anything else.
    shared = _SHARED.get(id(raw))
    if shared is not None and shared.raw is raw:
        return shared
    try:
        # What is packed alike is equal, as far as it can be JSON; unlike JSON, this tells null from what is no number.
        found = _known(_ENCODER.encode(raw))
        return found if found.raw == raw else None
    except (InputError, msgspec.ValidationError, OverflowError, RecursionError, TypeError, UnicodeEncodeError):
        return None


@lru_cache(maxsize=_CACHE)
def _known(packed: bytes) -> SharedSpec:
    raw = msgspec.msgpack.decode(packed)
    spec = msgspec.convert(raw, PodSpec)
    check_pod_spec(spec, ".spec")
    shared = SharedSpec(raw, spec)
    if len(_SHARED) >= _CACHE:
        _SHARED.clear()
    _SHARED[id(raw)] = shared
    return shared
