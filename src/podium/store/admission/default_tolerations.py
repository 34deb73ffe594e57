"""How long pods stay on nodes that fail, where they do not say themselves.

The rules of plugin/pkg/admission/defaulttolerationseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.api.meta import Raw

TOLERATION_SECONDS = 300
"""How long a pod tolerates that its node is not ready, or unreachable."""

DEFAULTS: tuple[Raw, ...] = tuple(
    {
        "key": f"node.kubernetes.io/{name}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": TOLERATION_SECONDS,
    }
    for name in ("not-ready", "unreachable")
)


def with_defaults(spec: Raw) -> Raw:
    """The spec of a new pod with a toleration for each of the two taints; `spec` itself where it has them already."""
    return _with(spec, [one for one in DEFAULTS if not any(_covers(given, one) for given in _given(spec))])


def with_kept_defaults(spec: Raw, previous: Raw) -> Raw:
    """The spec of an update with the default tolerations that the previous one has, where the update leaves them out.

    An update can take no toleration away.
    """
    left_out = [one for one in DEFAULTS if not any(given.get("key") == one["key"] for given in _given(spec))]
    return _with(spec, [one for one in left_out if one in _given(previous)])


def _with(spec: Raw, added: Sequence[Raw]) -> Raw:
    given = spec.get("tolerations") or ()
    # Where it is no list, validation will say so.
    return {**spec, "tolerations": [*given, *added]} if added and isinstance(given, list | tuple) else spec


def _given(spec: Raw) -> list[Raw]:
    """The tolerations of a spec that nobody may have validated yet, as far as they are any."""
    given: Any = spec.get("tolerations")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list | tuple) else []


def _covers(toleration: Raw, default: Raw) -> bool:
    """Whether a toleration speaks of the taint of a default one, for however long."""
    return toleration.get("key", "") in ("", default["key"]) and toleration.get("effect", "") in ("", "NoExecute")
