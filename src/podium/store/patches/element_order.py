"""The order of the items of a merged list (apimachinery's util/strategicpatch, normalizeElementOrder)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from podium.store.errors import bad_request


def identities(items: Sequence[Any], key: str) -> list[Hashable]:
    """What tells the items of a list apart: their field `key`, or for "" themselves.

    Raises StoreError 400 for an item that has no identity.
    """
    found: list[Hashable] = []
    for item in items:
        if key and (not isinstance(item, dict) or key not in item):
            raise bad_request(f"an item of a list that is merged by {key} has no {key}")
        identity = item[key] if key else item
        if isinstance(identity, dict | list):
            raise bad_request("objects and lists do not tell items apart")
        found.append(identity)
    return found


def in_order(items: Sequence[Any], asked: Sequence[Any], before: Sequence[Any], key: str) -> list[Any]:
    """The items as a patch wants them.

    Those in `asked` stand in its order. The others keep the order that they had in `before`, and each of them stands
    before the first of those asked for that it stood before there.
    """
    wanted, was = _positions(identities(asked, key)), _positions(identities(before, key))
    places = [was.get(one, -1) for one in wanted]
    if len(items) == len(before) == len(was) and -1 not in places and places == sorted(places):
        # Nothing has come or gone, and what is asked for stands in its old order, as all items do.
        return list(items)
    return _sorted_in(items, wanted, was, key)


def _sorted_in(
    items: Sequence[Any], wanted: Mapping[Hashable, int], was: Mapping[Hashable, int], key: str
) -> list[Any]:
    """The same for any items, given the positions of those asked for and of those before."""
    named = dict(zip(identities(items, key), items, strict=True))
    first = sorted((one for one in named if one in wanted), key=wanted.__getitem__)
    rest = sorted((one for one in named if one not in wanted), key=lambda item: was.get(item, len(was)))
    result: list[Any] = []
    for one in first:
        while rest and one in was and was.get(rest[0], len(was)) < was[one]:
            result.append(named[rest.pop(0)])
        result.append(named[one])
    return result + [named[one] for one in rest]


def _positions(found: Sequence[Hashable]) -> dict[Hashable, int]:
    positions: dict[Hashable, int] = {}
    for position, identity in enumerate(found):
        positions.setdefault(identity, position)
    return positions
