"""What a controller has asked for and has yet to see, so that it does not ask for it twice.

Source: pkg/controller/controller_utils.go (ControllerExpectations).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from podium.machines.parts.deadlines import NEVER, Deadline

Owner = TypeVar("Owner")

_SECOND = 10**9
# After this an effect that was never seen is not waited for any longer.
_TIMEOUT_NS = 300 * _SECOND


@dataclass(slots=True)
class _Expected:
    """How many objects are to appear whose names nobody knows, and what else is to be seen."""

    expires_ns: int
    creations: int = 0
    changes: dict[str, None] = field(default_factory=dict)


class Expectations(Generic[Owner]):
    """By owner, what its controller waits to see; what is not seen within five minutes is given up."""

    def __init__(self) -> None:
        # In the order of their ends, since all last equally long.
        self._expected: dict[Owner, _Expected] = {}

    def expect_creations(self, owner: Owner, count: int, now: int) -> None:
        """Wait to see ``count`` more objects of the owner."""
        if count > 0:
            self._renewed(owner, now).creations += count

    def expect(self, owner: Owner, change: str, now: int) -> None:
        """Wait to see a change, named as the caller likes."""
        self._renewed(owner, now).changes[change] = None

    def see_creation(self, owner: Owner) -> None:
        """One more object of the owner has appeared, or will not."""
        expected = self._expected.get(owner)
        if expected is not None:
            expected.creations = max(0, expected.creations - 1)
            self._drop_if_met(owner, expected)

    def see(self, owner: Owner, change: str) -> bool:
        """A change was seen, or will not come; returns whether it was waited for."""
        expected = self._expected.get(owner)
        if expected is None or change not in expected.changes:
            return False
        del expected.changes[change]
        self._drop_if_met(owner, expected)
        return True

    def are_met(self, owner: Owner) -> bool:
        """Whether nothing is waited for."""
        return owner not in self._expected

    def is_expected(self, owner: Owner, change: str) -> bool:
        """Whether that change is waited for."""
        expected = self._expected.get(owner)
        return expected is not None and change in expected.changes

    def creations(self, owner: Owner) -> int:
        """How many objects of the owner are yet to appear."""
        expected = self._expected.get(owner)
        return expected.creations if expected is not None else 0

    def forget(self, owner: Owner) -> None:
        """Wait for nothing of the owner."""
        self._expected.pop(owner, None)

    def take_expired(self, now: int) -> Owner | None:
        """Give up the next owner's expectations that have lasted too long, and return it; None when there are none."""
        owner, expected = next(iter(self._expected.items()), (None, None))
        if owner is None or expected is None or expected.expires_ns > now:
            return None
        del self._expected[owner]
        return owner

    def deadline(self) -> Deadline:
        """When the next expectations are given up."""
        for expected in self._expected.values():
            return Deadline(expected.expires_ns, True)
        return NEVER

    def _renewed(self, owner: Owner, now: int) -> _Expected:
        expected = self._expected.pop(owner, None) or _Expected(0)
        expected.expires_ns = now + _TIMEOUT_NS
        self._expected[owner] = expected
        return expected

    def _drop_if_met(self, owner: Owner, expected: _Expected) -> None:
        if not expected.creations and not expected.changes:
            del self._expected[owner]
