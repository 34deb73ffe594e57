"""A builder for the tables of functions and methods."""

from __future__ import annotations

from collections.abc import Callable

from podium.api.cel.overloads import Overload, constant
from podium.api.cel.values import Value


class Table:
    """Overloads by name: of functions, of methods, and of operators under cel-go's names."""

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
        """Add an overload of a global function."""
        self.functions.setdefault(name, []).append(Overload(takes, gives, call, cost))

    def method(
        self,
        name: str,
        takes: tuple[str, ...],
        gives: str,
        call: Callable[..., Value],
        cost: Callable[..., int] = constant,
    ) -> None:
        """Add an overload of a method; its target is the first argument."""
        self.methods.setdefault(name, []).append(Overload(takes, gives, call, cost))

    def operator(self, name: str, takes: tuple[str, ...], gives: str, call: Callable[..., Value]) -> None:
        """Add an overload of an operator."""
        self.operators.setdefault(name, []).append(Overload(takes, gives, call, constant))
