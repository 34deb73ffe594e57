"""What is said of a cluster's objects beside themselves: where they are from, and what is not among them.

A file of `podium snapshot` has a Snapshot among its objects, and what is read from a cluster gets one. Answers carry on
what it says, since an answer is no better than what it was made from.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podium.api.errors import InputError
from podium.api.kinds import group_of, may_create_pods
from podium.api.meta import Kubernetes, Narrow, Raw
from podium.api.reading import read
from podium.api.times import parse_time
from podium.api.warnings import PassedOver

API_VERSION = "podium.dev/v1alpha1"

SNAPSHOT = "Snapshot"
"""The kind."""

FORMAT = 1
"""Which form of snapshots is written. A higher number is for one that this Podium would misunderstand."""


class HiddenKind(Narrow, frozen=True, kw_only=True):
    """A kind whose objects nobody let us read, and what was said for a reason."""

    api_version: str = ""
    kind: str = ""
    message: str = ""


class KindCount(Narrow, frozen=True, kw_only=True):
    """How many objects of a kind that Podium does not read were not taken in."""

    api_version: str = ""
    kind: str = ""
    count: int = 0


class Snapshot(Kubernetes, frozen=True, kw_only=True):
    """What there is to know of where a cluster's objects are from (podium.dev/v1alpha1).

    `left_out` are the parts of objects that were left out, in words; `not_served` the kinds, as `Kind (apiVersion)`,
    that the cluster does not have.
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
        """When the objects were read, None where nobody has said."""
        return parse_time(self.taken_at) if self.taken_at else None

    @property
    def origin(self) -> str:
        """The cluster and the time, in words."""
        where = f"of {self.context}" if self.context else "of files"
        version = f" ({self.server_version})" if self.server_version else ""
        return f"{where}{version}" + (f" at {self.taken_at}" if self.taken_at else "")

    def to_dict(self) -> Raw:
        """The Snapshot as it is written."""
        found: Raw = msgspec.json.decode(msgspec.json.encode(self))
        return {"apiVersion": API_VERSION, "kind": SNAPSHOT, "format": self.format, **found}

    def passed_over_kinds(self, source: str) -> Iterator[PassedOver]:
        """The kinds that were passed over when the snapshot was made."""
        for one in self.passed_over:
            may_make_pods = may_create_pods(group_of(one.api_version), one.kind)
            yield PassedOver(one.kind, one.api_version, one.count, may_make_pods, (source,))


def is_snapshot(raw: Raw) -> bool:
    """Whether an object is a Snapshot."""
    return raw.get("kind") == SNAPSHOT and group_of(str(raw.get("apiVersion"))) == group_of(API_VERSION)


def read_snapshot(raw: Raw) -> Snapshot:
    """What a Snapshot says. Raises InputError for what cannot be read, and for one in a form that is not known."""
    number = raw.get("format", FORMAT)
    if isinstance(number, int) and number > FORMAT:
        problem = f"{number} is written by a newer Podium; this one reads {FORMAT}: take the snapshot with this one"
        raise InputError(problem, path=".format")
    found = read(raw, Snapshot)
    if found.taken_at:
        try:
            parse_time(found.taken_at)
        except ValueError as error:
            raise InputError(str(error), path=".takenAt") from None
    return found
