"""What the tables of functions and methods are put together with."""

from __future__ import annotations

from collections.abc import Callable

from podium.api.cel.overloads import Overload, constant
from podium.api.cel.values import Value


class Table:
    """Collects overloads by name: of functions, of methods, and of operators under cel-go's names for them."""

    def __init__(self) -> None:
        self.functions: dict[str, list[Overload]] = {}
        self.methods: dict[str, list[Overload]] = {}
        self.operators: dict[str, list[Overload]] = {}

    def function(
        self,
        name: str,
        takes: tuple[str, ...],
        gives: str,
        call: Callable[..., Value],
        cost: Callable[..., int] = constant,
    ) -> None:
        """Something that is called by its name alone."""
        self.functions.setdefault(name, []).append(Overload(takes, gives, call, cost))

    def method(
        self,
        name: str,
        takes: tuple[str, ...],
        gives: str,
        call: Callable[..., Value],
        cost: Callable[..., int] = constant,
    ) -> None:
        """Something that is called on a value, which is the first that it takes."""
        self.methods.setdefault(name, []).append(Overload(takes, gives, call, cost))

    def operator(self, name: str, takes: tuple[str, ...], gives: str, call: Callable[..., Value]) -> None:
        """One more form of an operator."""
        self.operators.setdefault(name, []).append(Overload(takes, gives, call, constant))
