"""Who manages which fields of an object (`metadata.managedFields`).

That is the API server's own business: whoever writes an object leaves it alone, whether it sends the list back or not,
so that it is no change of the object. Who keeps the books is the writer of a request that names a manager
(`podium.store.ownership`); without one, an object keeps those that it was created with.
"""

from __future__ import annotations

from podium.api.meta import Raw

_FIELD = "managedFields"


def with_kept_managers(metadata: Raw, before: Raw) -> Raw:
    """The metadata of an update with the managers that it had before."""
    if metadata.get(_FIELD) == before.get(_FIELD):
        return metadata
    without = {name: value for name, value in metadata.items() if name != _FIELD}
    return {**without, _FIELD: before[_FIELD]} if _FIELD in before else without
