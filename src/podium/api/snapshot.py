"""Snapshots: the origin of a cluster's objects, and their omissions.

A file of `podium snapshot` contains a Snapshot among its objects, and objects read from a cluster get one. Answers
repeat its limitations, since they depend on the input's completeness.
"""

from __future__ import annotations

import msgspec

from podium.api.checks import check_time
from podium.api.errors import InputError
from podium.api.kinds import group_of
from podium.api.meta import Kubernetes, Narrow, Raw
from podium.api.reading import read
from podium.api.times import parse_time

API_VERSION = "podium.dev/v1alpha1"

SNAPSHOT = "Snapshot"
"""The name of the kind."""

FORMAT = 2
"""The version of the snapshot format. A higher number is for one that this Podium would misunderstand.

Since 2, pods may be in tables (`podium.api.input.pod_table`). Files of format 1 are read, too."""


class HiddenKind(Narrow, frozen=True, kw_only=True):
    """A kind whose objects could not be read for lack of permission, with the server's reason."""

    api_version: str = ""
    kind: str = ""
    message: str = ""


class KindCount(Narrow, frozen=True, kw_only=True):
    """The number of skipped objects of a kind that Podium does not read."""

    api_version: str = ""
    kind: str = ""
    count: int = 0


class Snapshot(Kubernetes, frozen=True, kw_only=True):
    """The origin of a cluster's objects (podium.dev/v1alpha1).

    `left_out` are descriptions of the omitted parts of objects; `not_served` are the kinds, as `Kind (apiVersion)`,
    that the cluster does not serve.
    """

    format: int = FORMAT
    context: str = ""
    server_version: str = ""
    taken_at: str = ""
    hidden: tuple[HiddenKind, ...] = ()
    not_served: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    passed_over: tuple[KindCount, ...] = ()

    @property
    def taken_ns(self) -> int | None:
        """The time when the objects were read, None if unknown."""
        return parse_time(self.taken_at) if self.taken_at else None

    @property
    def origin(self) -> str:
        """A text with the cluster and the time."""
        where = f"of {self.context}" if self.context else "of files"
        version = f" ({self.server_version})" if self.server_version else ""
        return f"{where}{version}" + (f" at {self.taken_at}" if self.taken_at else "")

    def to_dict(self) -> Raw:
        found: Raw = msgspec.json.decode(msgspec.json.encode(self))
        return {"apiVersion": API_VERSION, "kind": SNAPSHOT, "format": self.format, **found}


def is_snapshot(raw: Raw) -> bool:
    """Return whether an object is a Snapshot."""
    return raw.get("kind") == SNAPSHOT and group_of(str(raw.get("apiVersion"))) == group_of(API_VERSION)


def read_snapshot(raw: Raw) -> Snapshot:
    """Return the content of a Snapshot. Raises InputError for an unreadable one, and for an unknown format."""
    number = raw.get("format", FORMAT)
    if isinstance(number, int) and number > FORMAT:
        problem = f"{number} is written by a newer Podium; this one reads {FORMAT}: take the snapshot with this one"
        raise InputError(problem, path=".format")
    found = read(raw, Snapshot)
    check_time(found.taken_at or None, ".takenAt")
    return found
