"""What plugins remember during one scheduling attempt.

Source: staging/src/k8s.io/kube-scheduler/framework (CycleState).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Cloneable(Protocol):
    """State that changes during preemption, and so must be copied for each world."""

    def clone(self) -> Any:
        """An independent copy."""
        ...


_NONE: frozenset[str] = frozenset()


class CycleState:
    """A store of values by key. Values with a ``clone`` method are copied with the state, others are shared.

    ``skip_filter`` and ``skip_score`` are the plugins that are not asked at Filter and Score, ``never_run`` those whose
    PreFilter was not reached, as one before it turned the pod down.
    """

    __slots__ = ("_values", "never_run", "skip_filter", "skip_score")

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.skip_filter: frozenset[str] = _NONE
        self.never_run: frozenset[str] = _NONE
        self.skip_score: set[str] = set()

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = value

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str, default: Any = None) -> Any:
        """The value under ``key``, or ``default``."""
        return self._values.get(key, default)

    def has_any(self, keys: Iterable[str]) -> bool:
        """Whether there is a value other than None under any of some keys."""
        values = self._values
        for key in keys:  # noqa: SIM110 - a generator would cost more than all that it asks
            if values.get(key) is not None:
                return True
        return False

    def skipping(self, names: Iterable[str]) -> CycleState:
        """The same state, of which further Filter plugins are not asked."""
        copy = self._like()
        copy.skip_filter = self.skip_filter.union(names)
        copy._values = self._values
        return copy

    def clone(self) -> CycleState:
        """A copy in which cloneable values are independent."""
        copy = self._like()
        copy._values = {
            key: value.clone() if isinstance(value, Cloneable) else value for key, value in self._values.items()
        }
        return copy

    def _like(self) -> CycleState:
        """A state without values, for which the same plugins are not asked."""
        copy = CycleState()
        copy.skip_filter, copy.skip_score, copy.never_run = self.skip_filter, self.skip_score, self.never_run
        return copy
