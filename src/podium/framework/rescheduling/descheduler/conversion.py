"""What a part of a DeschedulerPolicy comes to, and what of it has no counterpart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from podium.api.basis import Caveat
from podium.framework.rescheduling.settings import Limits
from podium.framework.rescheduling.written_scope import WrittenSelector
from podium.framework.settings.strict import Strict, read_strictly

T = TypeVar("T", bound=Strict)

_TYPE = ("apiVersion", "kind")


class Namespaces(Strict, frozen=True, kw_only=True):
    """Namespaces by name, those that are meant or those that are not."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(slots=True)
class Conversion:
    """The policies, by name with their arguments, and what holds for all of them.

    ``namespaces`` and ``selectors`` are those of each plugin that takes part, in their order, None where it has none.
    ``unprotected_stay``: pods that no budget protects are left alone. ``caveats`` say what is not done, or not as it
    was asked for.
    """

    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    namespaces: list[Namespaces | None] = field(default_factory=list)
    selectors: list[WrittenSelector | None] = field(default_factory=list)
    limits: list[Limits] = field(default_factory=list)
    caveats: list[Caveat] = field(default_factory=list)
    unprotected_stay: bool = False

    def note(self, plugin: str, why: str, argument: str = "") -> None:
        """Something about a plugin, or one of its arguments, is not as it was asked for."""
        of_argument = f", {argument}" if argument else ""
        self.caveats.append(Caveat("descheduler", f"DeschedulerPolicy, {plugin}{of_argument}: {why}", 1, (plugin,)))

    def add(self, policy: str, args: Mapping[str, Any] | None = None) -> None:
        """A policy is on, with some arguments; what was said of it before stays."""
        self.policies[policy] = {**(args or {}), **self.policies.get(policy, {})}


def read_known(conversion: Conversion, plugin: str, args: Mapping[str, Any], type_: type[T]) -> T:
    """The arguments of a plugin that have a counterpart; of all others it is noted that they have none.

    Raises InputError with the path within the arguments.
    """
    names = {each.encode_name for each in msgspec.structs.fields(type_)}
    known = {key: value for key, value in args.items() if key in names}
    for key in others(args, names):
        conversion.note(plugin, "has no counterpart, and is not heeded", key)
    return read_strictly(known, type_)


def others(args: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """The arguments that are not known, in their order."""
    names = {*known, *_TYPE}
    return [key for key in args if key not in names]
