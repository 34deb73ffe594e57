"""The specifications of pods, of which a cluster has few sorts: each is read and judged once.

Pods of one sort share what was read, and the wire form of what is written.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.pod import PodSpec
from podium.api.validate_pod import check_pod_spec

_CACHE = 1_024
_ENCODER = msgspec.msgpack.Encoder()


def shared_spec(raw: object) -> tuple[Raw, PodSpec] | None:
    """A specification and its reading, both shared with all that are equal; None for one that is not right.

    What is wrong with such a one is found by reading and judging it (`podium.store.readings`).
    """
    try:
        # What is packed alike is equal, as far as it can be JSON; unlike JSON, this tells null from what is no number.
        found = _known(_ENCODER.encode(raw))
        return found if found[0] == raw else None
    except (InputError, msgspec.ValidationError, OverflowError, RecursionError, TypeError, UnicodeEncodeError):
        return None


@lru_cache(maxsize=_CACHE)
def _known(packed: bytes) -> tuple[Raw, PodSpec]:
    raw = msgspec.msgpack.decode(packed)
    spec = msgspec.convert(raw, PodSpec)
    check_pod_spec(spec, ".spec")
    return raw, spec
