"""Shared pod specifications: a cluster has few distinct ones, and each is read, validated and admitted once.

Pods of one class share the reading and the wire form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.pod import PodSpec
from podium.api.validation.findings import Findings, Place
from podium.api.validation.objects import check_usable

_CACHE = 1_024
_NODE = "nodeName"
_ENCODER = msgspec.msgpack.Encoder()
# The most recently found specifications, by the identity of their wire form.
_SHARED: dict[int, SharedSpec] = {}


class SharedSpec:
    """A valid specification in both forms, and its last admission result.

    `admitted` contains its context, which is compared by identity, since admission may depend on it.
    """

    __slots__ = ("admitted", "raw", "spec")

    def __init__(self, raw: Raw, spec: PodSpec) -> None:
        self.raw = raw
        self.spec = spec
        self.admitted: tuple[object, SharedSpec] | None = None

    def on(self, node: str, raw: Raw) -> SharedSpec:
        """Return the same specification with a node's name, with the fields in the order of ``raw``."""
        own = {name: node if name == _NODE else self.raw[name] for name in raw}
        return SharedSpec(own, msgspec.structs.replace(self.spec, node_name=node))

    def has_label_keys(self) -> bool:
        """Return whether the result depends on the pod's labels (matchLabelKeys, mismatchLabelKeys)."""
        return b"atchLabelKeys" in _ENCODER.encode(self.raw)


def shared_spec(raw: object) -> SharedSpec | None:
    """Return the specification that is shared with all equal ones; None for an invalid one.

    Pods on different nodes share everything except the node's name. Reading and validation report the problems of an
    invalid one (`podium.store.verbs.readings`).
    """
    # A shared wire form is recognized by its identity, which stays unique because it is kept alive.
    shared = _SHARED.get(id(raw))
    if shared is not None and shared.raw is raw:
        return shared
    node = raw.get(_NODE) if isinstance(raw, dict) else None
    try:
        if isinstance(raw, dict) and isinstance(node, str):
            node.encode()
            found = _equal({name: value for name, value in raw.items() if name != _NODE})
            return None if found is None else found.on(node, raw)
        return _equal(raw)
    except (InputError, msgspec.ValidationError, OverflowError, RecursionError, TypeError, UnicodeEncodeError):
        return None


def _equal(raw: object) -> SharedSpec | None:
    # Equal encodings mean equal JSON values; unlike JSON, this encoding distinguishes null from NaN.
    found = _known(_ENCODER.encode(raw))
    return found if found.raw == raw else None


@lru_cache(maxsize=_CACHE)
def _known(packed: bytes) -> SharedSpec:
    raw = msgspec.msgpack.decode(packed)
    spec = msgspec.convert(raw, PodSpec)
    check_usable(Place(raw, Findings()), "PodSpec")
    # Pods of a DaemonSet differ only in the affinity that names their node, and share the rest.
    shared = SharedSpec({name: _part(_ENCODER.encode(value)) for name, value in raw.items()}, spec)
    if len(_SHARED) >= _CACHE:
        _SHARED.clear()
    _SHARED[id(shared.raw)] = shared
    return shared


@lru_cache(maxsize=_CACHE)
def _part(packed: bytes) -> Any:
    return msgspec.msgpack.decode(packed)
