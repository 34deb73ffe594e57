"""Who fails where, and who is well: what tells a node's trouble from a workload's own.

Source: controlled-rescheduling.md, Example use cases ("anomalous crashlooping or other mysterious incompatibility
between the pod and the node", "repeated out-of-resource killing").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_entries
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture
from podium.plugins.rescheduling.parts.row_changes import RowChanges


@dataclass(frozen=True, slots=True)
class _Row:
    """How the pods on one row fare: those that fail, and by owner the number of those that are well."""

    failing: tuple[PodRecord, ...] = ()
    well: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Owner:
    """How many pods of an owner are well, wherever they are, and how many fail on which row.

    ``left`` are the rows that pods of it were evicted from of late, as the avoid lists of their nodes tell: a pod that
    failed there and fails again elsewhere brings its trouble along.
    """

    well: int = 0
    failing: Counter[int] = field(default_factory=Counter)
    left: frozenset[int] = frozenset()

    def failing_elsewhere(self, row: int) -> int:
        """How many fail on other rows, or left them of late."""
        gone = len(self.left.difference(self.failing, (row,)))
        return self.failing.total() - self.failing[row] + gone

    @property
    def only_row(self) -> int | None:
        """The one row where some fail; None where there are several, or none."""
        rows = {*self.failing, *self.left}
        return next(iter(self.failing)) if len(rows) == 1 and self.failing else None

    def misplaced(self) -> int:
        """How many of those that fail are outnumbered by others that are well: more than fail on other rows."""
        return sum(number for row, number in self.failing.items() if self.well > self.failing_elsewhere(row))


_NOBODY = Owner()


class Fortunes:
    """Pods that fail and pods that are well, of the owners of whom some pod fails, by row and owner.

    ``fails`` says whether a pod fails where it is, ``is_well`` whether it has run there long enough to say that it does
    not. A replacement, of which nothing is known yet, is neither. ``misplaced`` is how many pods fail that others of
    their owner outnumber which are well. ``lonely`` are, by row, the owners of whom pods fail there and nowhere else,
    each with the number of its pods that fail while none is well.
    """

    def __init__(
        self, fails: Callable[[Picture, PodRecord], bool], is_well: Callable[[Picture, PodRecord], bool]
    ) -> None:
        self._fails = fails
        self._is_well = is_well
        self._changes = RowChanges()
        self._picture: Picture | None = None
        self._begin()

    def _begin(self) -> None:
        self._rows: dict[int, _Row] = {}
        self._owners: dict[str, Owner] = {}
        self.misplaced = 0
        self.lonely: dict[int, dict[str, int]] = {}

    def look(self, picture: Picture) -> None:
        """Take in what has changed. What is kept of a picture holds for that one alone, since time passes."""
        if picture is not self._picture:
            self._changes.forget()
            self._picture = picture
            self._begin()
        rows = self._changes.since_last(picture.cluster)
        if rows is None:
            # Whose pod fails stays known: it may be off its node just then, for a trial.
            known = tuple(self._owners)
            self._begin()
            self._read_all(picture, known)
        elif self._owners:
            self._put({row: self._read(picture, picture.cluster.pods_on(row)) for row in rows.tolist()})

    def failing(self) -> list[PodRecord]:
        """The pods that fail."""
        return [pod for row in sorted(self._rows) for pod in self._rows[row].failing]

    def of(self, owner: str) -> Owner:
        """How the pods of an owner fare."""
        return self._owners.get(owner, _NOBODY)

    def rows(self) -> list[int]:
        """The rows where some pod fails."""
        return sorted(row for row, read in self._rows.items() if read.failing)

    def _read_all(self, picture: Picture, known: Iterable[str]) -> None:
        placed = picture.cluster.placed
        told = (placed.get(uid) for uid in picture.signals.pods)
        failing = (pod.owner_uid for pod in told if pod is not None and self._fails(picture, pod))
        self._owners = {owner: Owner() for owner in (*known, *failing)}
        if not self._owners:
            return
        for name, left in _left_of_late(picture.cluster, self._owners).items():
            self._owners[name].left = frozenset(left)
        concerned: dict[int, list[PodRecord]] = {}
        for pod in placed.values():
            if pod.row >= 0 and pod.owner_uid in self._owners:
                concerned.setdefault(pod.row, []).append(pod)
        self._put({row: self._read(picture, pods) for row, pods in concerned.items()})

    def _read(self, picture: Picture, pods: Iterable[PodRecord]) -> _Row:
        failing, well = list[PodRecord](), Counter[str]()
        for pod in pods:
            if pod.owner_uid not in self._owners or pod.terminating:
                continue
            if self._fails(picture, pod):
                failing.append(pod)
            elif self._is_well(picture, pod):
                well[pod.owner_uid] += 1
        return _Row(tuple(failing), well)

    def _put(self, read: Mapping[int, _Row]) -> None:
        """Let rows be as they were read, and count anew the owners concerned."""
        nothing = _Row()
        before = {row: self._rows.get(row, nothing) for row in read}
        concerned = {pod.owner_uid for each in (*before.values(), *read.values()) for pod in each.failing}
        concerned.update(owner for each in (*before.values(), *read.values()) for owner in each.well)
        for owner in concerned:
            self._count_owner(owner, -1)
        for row, found in read.items():
            self._count_row(row, before[row], -1)
            self._count_row(row, found, 1)
            self._rows.pop(row, None)
            if found.failing or found.well:
                self._rows[row] = found
        for owner in concerned:
            self._count_owner(owner, 1)

    def _count_row(self, row: int, read: _Row, sign: int) -> None:
        for owner, number in read.well.items():
            self._owners[owner].well += sign * number
        for pod in read.failing:
            failing = self._owners[pod.owner_uid].failing
            failing[row] += sign
            if not failing[row]:
                del failing[row]

    def _count_owner(self, name: str, sign: int) -> None:
        owner = self._owners[name]
        self.misplaced += sign * owner.misplaced()
        row = owner.only_row
        if row is None:
            return
        if sign > 0:
            self.lonely.setdefault(row, {})[name] = 0 if owner.well else owner.failing[row]
        else:
            del self.lonely[row][name]
            if not self.lonely[row]:
                del self.lonely[row]


def _left_of_late(cluster: Cluster, owners: Container[str]) -> dict[str, set[int]]:
    """By owner, the rows of the nodes whose avoid lists name it."""
    found: dict[str, set[int]] = {}
    for row in cluster.nodes.row_of.values():
        text = cluster.nodes.node(row).metadata.annotations.get(PREFER_AVOID_PODS)
        for entry in avoid_entries(text) if text else ():
            if entry.controller.uid in owners:
                found.setdefault(entry.controller.uid, set()).add(row)
    return found
