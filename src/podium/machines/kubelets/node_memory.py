"""Whether a node is short of memory, and when it may evict a pod.

Source: pkg/kubelet/eviction (synchronize).
"""

from __future__ import annotations

from dataclasses import dataclass

_SECOND = 10**9
# How often a pod is evicted (housekeeping interval upstream).
_CYCLE_NS = 10 * _SECOND


@dataclass(slots=True, eq=False)
class NodeMemory:
    """A node is short of memory below a threshold, and until that has been over for the transition period.

    ``is_short`` is what the node's condition says. A kubelet that starts while it does has seen memory short just now.
    ``is_at_rest``: it neither is short nor was when it was last looked at; more memory then changes nothing.
    """

    threshold_bytes: int
    transition_ns: int
    is_short: bool = False
    is_at_rest: bool = True
    _is_below: bool = False
    _short_ns: int = 0
    _next_cycle_ns: int = 0

    def begin(self, now: int, *, is_short: bool) -> None:
        """The kubelet starts; ``is_short`` is what the API shows."""
        self.is_short, self._short_ns = is_short, now
        self.is_at_rest = not (is_short or self._is_below)
        self._next_cycle_ns = now + _CYCLE_NS if is_short else now

    def look(self, available: int, now: int) -> bool:
        """Take in how many bytes are left; whether the condition has changed."""
        was_short, was_below = self.is_short, self._is_below
        self._is_below = available < self.threshold_bytes
        if self._is_below or was_below:
            self._short_ns = now
        self.is_short = self._is_below or (was_short and now < self._short_ns + self.transition_ns)
        self.is_at_rest = not self.is_short
        return self.is_short != was_short

    def may_evict(self, available: int, now: int) -> bool:
        """Whether a pod is to be evicted now."""
        return available < self.threshold_bytes and self._next_cycle_ns <= now

    def evict(self, now: int) -> None:
        """A pod is evicted; the next after a cycle, so that what this one used is seen to be free."""
        self._next_cycle_ns = now + _CYCLE_NS

    def due_ns(self, available: int, now: int) -> int | None:
        """When to look again, if nothing changes."""
        if available < self.threshold_bytes:
            return self._next_cycle_ns if self._next_cycle_ns > now else None
        return self._short_ns + self.transition_ns if self.is_short else None
