"""Details of a decision that are written out only when somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class Deferred(Mapping[str, Value]):
    """A mapping that is built when it is first read.

    What ``build`` reads must be captured when the decision is made, so that reading late gives the same answer.
    """

    def __init__(self, build: Callable[[], dict[str, Value]]) -> None:
        self._build = build
        self._built: dict[str, Value] | None = None

    def __getitem__(self, key: str) -> Value:
        return self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def items(self) -> ItemsView[str, Value]:
        """Those of what was built: a mapping's own take several times as long."""
        return self._all.items()

    @property
    def _all(self) -> dict[str, Value]:
        if self._built is None:
            self._built = self._build()
        return self._built
