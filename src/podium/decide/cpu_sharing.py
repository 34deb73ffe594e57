"""What pods get of a node's cpu where they want more than there is.

Source: the kernel's fair scheduler by cgroup weight; pkg/kubelet/cm/helpers_linux.go (MilliCPUToShares) for weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_SHARES_PER_CPU = 1_024
_LEAST_SHARES = 2


@dataclass(frozen=True, slots=True)
class CPUWant:
    """What a pod would use if it were alone, what it requests, and the limit it is held to (None: to none)."""

    wanted_milli: int
    requested_milli: int
    limit_milli: int | None = None

    @property
    def shares(self) -> int:
        """Its weight: 1024 for each cpu that it requests, hardly any for a pod without a request."""
        return max(self.requested_milli * _SHARES_PER_CPU // 1_000, _LEAST_SHARES)

    @property
    def usable_milli(self) -> int:
        """What it would use on a node of its own."""
        return self.wanted_milli if self.limit_milli is None else min(self.wanted_milli, self.limit_milli)


def shared_cpu(wants: Sequence[CPUWant], capacity_milli: int) -> list[int]:
    """What each gets: all it wants where there is enough, else by weight; what one does not need is the others'.

    Of whole thousandths those get the last one that are listed last.
    """
    usable = [want.usable_milli for want in wants]
    if sum(usable) <= capacity_milli:
        return usable
    left, shares = max(capacity_milli, 0), sum(want.shares for want in wants)
    got = [0] * len(wants)
    # Whoever wants least for its weight is content first.
    for index in sorted(range(len(wants)), key=lambda index: (usable[index] / wants[index].shares, index)):
        got[index] = min(usable[index], left * wants[index].shares // shares)
        left -= got[index]
        shares -= wants[index].shares
    return got


def cpu_pressure(want: CPUWant, got_milli: int) -> float:
    """The share of the time in which a pod could run and had no cpu (pressure stall information)."""
    return (want.wanted_milli - got_milli) / want.wanted_milli if want.wanted_milli > got_milli else 0.0
