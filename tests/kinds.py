"""Facts about kinds that tests ask for."""

from __future__ import annotations

from podium.api.kinds import Kind
from podium.api.versions.apis import versions_in
from podium.api.versions.release import DEFAULT_RELEASE


def is_served(kind: Kind) -> bool:
    """Return whether the default version serves the kind by default."""
    return versions_in(kind.group, kind.name, DEFAULT_RELEASE) != ()
