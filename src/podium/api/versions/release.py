"""A Kubernetes version with its feature gates: which of the scheduler's behaviors hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podium.api.errors import InputError, shown
from podium.api.schemas.suggestion import likely
from podium.api.versions.behaviors import Behavior
from podium.api.versions.gates import DEPENDENCIES_SINCE, MINORS, SUCCESSORS, Gate, dependencies, letters, stages

PATCH_LEVELS = {31: 14, 32: 13, 33: 13, 34: 9, 35: 6, 36: 2, 37: 0}
"""The patch level that a version without one means: the one that was measured; that of 1.37 was read."""

READ_ONLY = frozenset({37})
"""Minor versions whose behaviors were read from the source, and not measured."""

_VERSION = re.compile(r"v?1\.([0-9]{1,4})(?:\.([0-9]{1,6}))?(?:[-+.].*)?", re.DOTALL)
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")
_OF_ALL = {"AllAlpha": "alpha", "AllBeta": "beta"}


@dataclass(frozen=True, slots=True)
class Release:
    """A Kubernetes version, with the feature gates that are set."""

    minor: int
    patch: int
    gates: tuple[tuple[str, bool], ...] = ()

    def __str__(self) -> str:
        """Return the version as Kubernetes writes it: `v1.34.9`."""
        return f"v1.{self.minor}.{self.patch}"

    @property
    def short(self) -> str:
        """The minor version: `1.34`."""
        return f"1.{self.minor}"

    def has(self, behavior: Behavior) -> bool:
        """Return whether the version has a behavior."""
        return behavior.value.version <= (self.minor, self.patch)

    def enabled(self, gate: Gate | str) -> bool:
        """Return whether a feature gate, or the one that took it over, is on; gates that are not known are off."""
        since, successor = SUCCESSORS.get(gate, (self.minor, gate))
        gate = successor if self.minor >= since else gate
        known, chosen = stages(self.minor, self.patch), dict(self.gates)
        if gate not in known or gate in chosen:
            return gate in known and chosen[gate]
        of_all = (value for name, value in self.gates if _OF_ALL.get(name) == known[gate].name)
        return next(of_all, known[gate].default)

    def with_gates(self, gates: Mapping[str, bool]) -> Release:
        """Return this version with further gates set. Raises InputError as kube-scheduler refuses them."""
        known = stages(self.minor, self.patch)
        for name, value in gates.items():
            if name in _OF_ALL:
                continue
            if name not in known:
                raise InputError(f"unrecognized feature gate: {name} ({_where(name, self.short)})")
            if known[name].locked and known[name].default != value:
                default = shown(known[name].default)
                problem = f"cannot set feature gate {name} to {shown(value)}, feature is locked to {default}"
                raise InputError(f"{problem} in {self.short} ({known[name].name})")
        made = Release(self.minor, self.patch, tuple(sorted((dict(self.gates) | dict(gates)).items())))
        for name, needed in dependencies().items() if self.minor >= DEPENDENCIES_SINCE else ():
            missing = [one for one in needed if one in known and not made.enabled(one)]
            if missing and made.enabled(name):
                problem = f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"
                raise InputError(f"{problem}; turn {name} off, too")
        return made


def _where(name: str, short: str) -> str:
    """Return where a gate that ``short`` does not know is known, or which names are like it."""
    cells = letters().get(name, "")
    known = [f"1.{minor}" for minor, letter in zip(MINORS, cells, strict=False) if letter != "-"]
    if known:
        return f"{short} does not know it; {', '.join(known)} do{'es' if len(known) == 1 else ''}"
    near = likely(name, letters())
    return f"did you mean {' or '.join(near)}?" if near else f"no version from 1.{MINORS[0]} on knows it"


def default_release(minor: int = 36) -> Release:
    """Return a minor version at the patch level that was measured."""
    return Release(minor, PATCH_LEVELS[minor])


DEFAULT_RELEASE = default_release()
"""The default version."""


def version_in(text: str) -> tuple[int, int] | None:
    """Return the minor version and patch level in a text such as `v1.34.1-gke.5`; None if there is none."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    minor = int(found[1])
    return minor, int(found[2]) if found[2] else PATCH_LEVELS.get(minor, 0)


def is_podium(version: str) -> bool:
    """Return whether an API server of this version is Podium's own.

    Podium's server records eviction hints and counts disruptions; with any other server, the client does that.
    """
    return "+podium" in version


def read_version(text: str) -> Release:
    """Return the version in a text such as `1.34`, `1.34.1` or `v1.34.1-gke.5`.

    Raises InputError for other texts, and for versions that are not supported, with those that are.
    """
    found = version_in(text)
    supported = ", ".join(f"1.{minor}" for minor in MINORS)
    if found is None:
        raise InputError(
            f"Kubernetes version {shown(text)} is not understood; write one of {supported}, or a patch "
            "level such as 1.34.1"
        )
    minor, patch = found
    if minor not in PATCH_LEVELS:
        raise InputError(f"Kubernetes version {shown(text)} is not supported; supported are {supported}")
    return Release(minor, patch)


def read_gates(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the gates in a text such as `NonPreemptingPriority=false,AllAlpha=true`, by name; the last value counts.

    Raises InputError for a name that no version knows, and for a value that is not a boolean.
    """
    chosen: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not name and not equals:
            continue
        if not equals:
            raise InputError(f"missing bool value for {shown(name)}; write {name}=true or {name}=false")
        if value not in (*_TRUE, *_FALSE):
            raise InputError(f"invalid value of {name}={shown(value)}; it must be true or false")
        if name not in letters() and name not in _OF_ALL:
            raise InputError(f"unrecognized feature gate: {name} ({_where(name, '')})")
        chosen[name] = value in _TRUE
    return tuple(sorted(chosen.items()))


def shown_gates(gates: Iterable[tuple[str, bool]]) -> str:
    """Return gates in the format of `read_gates`."""
    return ",".join(f"{name}={shown(value)}" for name, value in gates)
