"""Statuses and errors of plugins, and the verdicts of filters on many nodes at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from traceback import walk_tb
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from podium.api.errors import PodiumError
from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord


class Code(Enum):
    """The status codes, named as kube-scheduler prints them."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"


# Kept as globals, since looking up an enumeration's member takes longer than a function call.
_SUCCESS, _UNSCHEDULABLE = Code.SUCCESS, Code.UNSCHEDULABLE


class Status(msgspec.Struct, frozen=True):
    """A status with its reasons. ``plugin`` is filled in by the runner.

    ``SKIP`` from PreFilter or PreScore skips the plugin's Filter or Score for this pod; ``WAIT`` from Permit delays the
    pod; ``PENDING`` waits for something that the plugin itself will announce.
    """

    code: Code = _SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """Return whether the pod may continue."""
        return self.code is _SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """Return whether the pod was rejected, rather than an error having occurred."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    def by(self, plugin: str) -> Status:
        """Return the same status, from ``plugin``."""
        return self if self.plugin == plugin else Status(self.code, self.reasons, plugin)

    @property
    def message(self) -> str:
        """The reasons in one line."""
        return ", ".join(self.reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return a status for a pod that does not fit now, and for which preemption might help."""
    return Status(_UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return a status for a pod that does not fit, and for which preemption cannot help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


class Verdicts(msgspec.Struct, frozen=True):
    """One filter's verdict for each position of a view.

    ``codes`` is ``[n]`` non-negative; 0 means that the pod fits. ``status`` turns any other code into its reasons, so
    that text is built only for codes that are looked up. Codes are below 2**32. ``has_errors``: some codes may be
    errors, which end the attempt, rather than rejections.
    """

    codes: Int64s
    status: Callable[[int], Status]
    has_errors: bool = False

    @classmethod
    def none(cls, size: int) -> Verdicts:
        return cls(np.zeros(size, dtype=np.int64), lambda _: SUCCESS)

    @classmethod
    def where(cls, refused: npt.NDArray[np.bool_], status: Status) -> Verdicts:
        """Return verdicts that reject with one status where ``refused`` is true."""
        return cls(refused.astype(np.int64), lambda _: status)

    @classmethod
    def choose(cls, codes: npt.NDArray[Any], statuses: tuple[Status, ...]) -> Verdicts:
        """Return verdicts in which code k means ``statuses[k]``; ``statuses[0]`` is success."""
        return cls(codes.astype(np.int64), statuses.__getitem__)


_NO_POSITIONS: Int64s = np.empty(0, dtype=np.int64)

Decoders = dict[int, tuple[str, Callable[[int], Status]]]


class Counted(msgspec.Struct, eq=False):
    """The shared part of outcomes with the same entries: the number of rows of each, and what was derived from it.

    ``numbers`` is None if rows are not counted; the rest is then computed for one outcome alone.
    """

    numbers: Mapping[int, int] | None = None
    tally: list[tuple[int, int]] | None = None
    summary: tuple[list[str], dict[str, int], list[str]] | None = None


class Outcome:
    """The combined verdict of all filters on each position of a view.

    It is the first plugin that rejected, with its reasons. ``refused`` is ``[n]``: 0 if the pod fits, otherwise a
    number that `status_of` decodes. The plugin's position in the profile (from 1) is its upper half, so the smallest
    number belongs to the first plugin that rejected. `ABSENT` marks rows without a node. ``position`` is a position in
    the log of row changes: if two outcomes for one pod class, priority and set of filters have one, an entry differs
    only if its row changed between them, or if one of the pods is nominated to it. It is -1 if that does not hold.
    """

    __slots__ = ("_counted", "decoders", "has_errors", "position", "refused")

    SHIFT = 32
    ABSENT = -1

    def __init__(self, size: int) -> None:
        self.refused: Int64s = np.zeros(size, dtype=np.int64)
        self.decoders: Decoders = {}
        self.has_errors = False
        self.position = -1
        self._counted = Counted()

    @classmethod
    def of(cls, refused: Int64s, decoders: Decoders, counted: Counted | None = None) -> Outcome:
        """Return an outcome from its entries; ``counted`` is shared with other outcomes if entries are counted.

        ``refused`` must then not be written to.
        """
        outcome = cls.__new__(cls)
        outcome.refused, outcome.decoders = refused, decoders
        outcome.has_errors, outcome.position = False, -1
        outcome._counted = Counted() if counted is None else counted
        return outcome

    def add(self, index: int, plugin: str, verdicts: Verdicts) -> None:
        """Add the verdict of the plugin at ``index`` (counted from 1, in the profile's order)."""
        if not verdicts.codes.any():
            return
        self.decoders[index] = (plugin, verdicts.status)
        self.has_errors |= verdicts.has_errors
        self.merge(np.where(verdicts.codes != 0, verdicts.codes + (index << self.SHIFT), 0))

    def merge(self, refused: Int64s) -> None:
        """Add rejections that were computed before; of two for one position the first plugin's is kept."""
        mine = self.refused
        np.copyto(mine, refused, where=(mine == 0) | ((refused != 0) & (refused < mine)))

    def override(self, positions: Int64s, other: Outcome) -> None:
        """Replace the verdict wherever ``other``, an outcome for ``positions``, has a rejection."""
        refused = other.refused != 0
        self.refused[positions[refused]] = other.refused[refused]
        self.decoders.update(other.decoders)
        self.has_errors |= other.has_errors

    def refuse_all(self, status: Status, present: npt.NDArray[np.bool_]) -> None:
        """Reject every node that is ``present`` with one status, before any filter was called."""
        self.refused = np.where(present, 1, Outcome.ABSENT)
        self.decoders[0] = (status.plugin, lambda _: status)

    def undecided(self, index: int) -> Int64s:
        """Return the positions that no plugin before ``index`` rejected."""
        return np.flatnonzero((self.refused == 0) | (self.refused >> self.SHIFT > index))

    def tally(self) -> list[tuple[int, int]]:
        """Return each different rejection with its number of rows, in the order of plugins; computed once."""
        counted = self._counted
        if counted.tally is None:
            if counted.numbers is not None:
                found = [(refused, number) for refused, number in counted.numbers.items() if refused > 0]
            else:
                values, counts = np.unique(self.refused[self.refused > 0], return_counts=True)
                found = list(zip(values.tolist(), counts.tolist(), strict=True))
            counted.tally = sorted(found)
        return counted.tally

    def summary(self) -> tuple[list[str], dict[str, int], list[str]]:
        """Return the plugins that rejected, in order, the number of rows by reason, and these in words; cached."""
        counted = self._counted
        if counted.summary is None:
            numbers: dict[str, int] = {}
            refusals = [(self.status_of(refused), number) for refused, number in self.tally()]
            for refusal, number in refusals:
                for reason in refusal.reasons:
                    numbers[reason] = numbers.get(reason, 0) + number
            plugins = list(dict.fromkeys([refusal.plugin for refusal, _ in refusals]))
            counted.summary = plugins, numbers, in_words(numbers)
        return counted.summary

    def error(self) -> Status | None:
        """Return the error of the first node, by row, that has one; None if there is none."""
        failed = self.failed if self.has_errors else ()
        return self.status(failed[0]) if failed else None

    @property
    def failed(self) -> list[int]:
        """Return the positions, ascending, where a filter failed."""
        if not self.has_errors:
            return []
        entries = {refused for refused, _ in self.tally() if self.status_of(refused).code is Code.ERROR}
        return [position for position, refused in enumerate(self.refused.tolist()) if refused in entries]

    def resolvable(self) -> Int64s:
        """Return the positions, ascending, whose rejection preemption might resolve.

        These are Unschedulable rather than UnschedulableAndUnresolvable.
        """
        resolvable = np.zeros(len(self.refused), dtype=np.bool_)
        for refused, _ in self.tally():
            if self.status_of(refused).code is _UNSCHEDULABLE:
                resolvable |= self.refused == refused
        return np.flatnonzero(resolvable)

    def is_resolvable(self, position: int) -> bool:
        """Return whether preemption might resolve the rejection at a position."""
        refused: int = self.refused.item(position)
        return refused > 0 and self.status_of(refused).code is _UNSCHEDULABLE

    @property
    def examined_nodes(self) -> int:
        """Return how many nodes there are at the positions."""
        numbers = self._counted.numbers
        if numbers is None:
            return int((self.refused != Outcome.ABSENT).sum())
        return sum(numbers.values()) - numbers.get(Outcome.ABSENT, 0)

    @property
    def feasible(self) -> Int64s:
        """Return the positions where the pod fits, ascending."""
        numbers = self._counted.numbers
        if numbers is not None and 0 not in numbers:
            return _NO_POSITIONS
        return np.flatnonzero(self.refused == 0)

    def status(self, position: int) -> Status:
        return self.status_of(self.refused.item(position))

    def status_of(self, refused: int) -> Status:
        """Return the status of an entry of ``refused``. Raises KeyError for a row without a node."""
        return SUCCESS if refused == 0 else decoded(refused, self.decoders)


def in_words(numbers: Mapping[str, int]) -> list[str]:
    """Return reasons, each with its number of rows, as in `3 Insufficient cpu`."""
    return sorted([f"{number} {reason}" for reason, number in numbers.items()])


def decoded(refused: int, decoders: Decoders) -> Status:
    """Return the status of an outcome's entry that is a rejection."""
    plugin, status = decoders[refused >> Outcome.SHIFT]
    return status(refused & ((1 << Outcome.SHIFT) - 1)).by(plugin)


# The folder of Podium's own files; this file is in a subpackage.
_OWN = __file__.rpartition("/")[0].rpartition("/")[0] + "/"
_NOT_PEOPLE_S = frozenset(("dist-packages", "site-packages"))


class PluginError(PodiumError):
    """A plugin broke its contract or failed; the message names the plugin, the extension point and the pod."""


def is_failure(error: BaseException | None) -> bool:
    """Return whether an exception from a plugin's code is a failure: everything but Ctrl-C.

    Code that ends the program, such as `sys.exit`, has failed too: only users end the program.
    """
    return error is not None and not isinstance(error, KeyboardInterrupt)


def failure(error: BaseException, plugin: str, point: str, pod: PodRecord) -> PluginError:
    """Return an exception from a plugin's code as a PluginError."""
    message = f"plugin {plugin} failed at {point} for pod {pod.key}: {type(error).__name__}: {error}"
    place = place_of(error)
    return PluginError(f"{message} ({place})" if place else message)


def blame(error: BaseException, plugin: str, point: str, pod: PodRecord) -> None:
    """Raise PluginError if an exception from a plugin's code is a failure."""
    if is_failure(error) and not isinstance(error, PluginError):
        raise failure(error, plugin, point, pod) from error


def place_of(error: BaseException) -> str:
    """Return the file and line that raised an error: the innermost outside Podium and libraries.

    Returns "" if there is none. The file has no folders, so that an answer is the same on every machine.
    """
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        # Code that was compiled in memory has no file.
        if not file.startswith((_OWN, "<")) and _NOT_PEOPLE_S.isdisjoint(file.split("/")):
            place = f"{file.rpartition('/')[2]}, line {line}"
    return place


class Calling(msgspec.Struct):
    """A context around a call of a plugin that turns exceptions into a PluginError.

    The original exception is its cause.
    """

    plugin: str
    point: str
    pod: PodRecord

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is not None:
            blame(error, self.plugin, self.point, self.pod)
