"""What a data directory holds beside the data for the next start of `podium up`: the version, and the key of tokens.

A control plane is upgraded by one minor version at a time and not downgraded, as Kubernetes supports it; patch levels
may change in both directions. Source: the version skew policy (kubernetes.io/releases/version-skew-policy).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from podium.api.errors import InputError
from podium.api.versions.choice import ReleaseChoice
from podium.api.versions.gates import stages
from podium.api.versions.release import Release, read_gates, read_version, shown_gates
from podium.app.console.output import write_private

FILE = "version"
"""The name of the file with the version: the version, and the feature gates that are set, if any, after a space."""

_KEY_BYTES = 32


def release_of(directory: Path, chosen: ReleaseChoice, found: Release, report: Callable[[str], None]) -> Release:
    """Return the version for a data directory, and store it there.

    A new directory gets the version that was ``found``. Otherwise, the directory's own counts, with its gates, unless
    others are ``chosen``; gates that the chosen version does not know are reported. Raises InputError for a version
    that the data cannot change to.
    """
    kept = _read(directory / FILE)
    release = found if kept is None else _changed(kept, chosen, directory, report)
    file, text = directory / FILE, " ".join(filter(None, (str(release), shown_gates(release.gates))))
    try:
        write_private(file, f"{text}\n")
    except OSError as error:
        raise InputError(f"the version cannot be kept: {error.strerror}", source=str(file)) from None
    return release


def token_key_of(directory: Path) -> bytes:
    """Return the key that signs the tokens of a data directory, which is made at its first use. Raises InputError."""
    file = directory / "token-key"
    try:
        if not file.exists():
            write_private(file, f"{secrets.token_hex(_KEY_BYTES)}\n")
        key = bytes.fromhex(file.read_text(encoding="ascii"))
        if len(key) != _KEY_BYTES:
            raise ValueError(f"it has {len(key)} bytes and not {_KEY_BYTES}")
    except (OSError, ValueError) as error:
        problem = f"the key of tokens cannot be used: {error}; delete the file to get a new one"
        raise InputError(problem, source=str(file)) from None
    return key


def _changed(kept: Release, chosen: ReleaseChoice, directory: Path, report: Callable[[str], None]) -> Release:
    asked = read_version(chosen.version) if chosen.version else Release(kept.minor, kept.patch)
    if asked.minor not in (kept.minor, kept.minor + 1):
        problem = f"the data is of Kubernetes {kept}, and cannot be used with {asked}: "
        if asked.minor < kept.minor:
            problem += "a cluster cannot be downgraded to another minor version"
        else:
            problem += f"upgrade by one minor version at a time, next to 1.{kept.minor + 1}"
        raise InputError(problem, source=str(directory))
    if asked.minor != kept.minor:
        report(f"{directory}: the cluster is upgraded from Kubernetes {kept} to {asked}")
    if chosen.gates:
        return asked.with_gates(dict(chosen.gates))
    known = stages(asked.minor, asked.patch)
    gates = {name: value for name, value in kept.gates if name in known or name.startswith("All")}
    lost = [name for name, _ in kept.gates if name not in gates]
    if lost:
        report(f"{directory}: {asked} does not know the feature gates {', '.join(lost)}: they are left out")
    return asked.with_gates(gates)


def _read(file: Path) -> Release | None:
    """Return the version in the file, None if there is no file. Raises InputError."""
    try:
        version, _, gates = file.read_text(encoding="utf-8").strip().partition(" ")
        return read_version(version).with_gates(dict(read_gates(gates)))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the version of the data cannot be read: {error}", source=str(file)) from None
    except InputError as error:
        raise error.located(source=str(file)) from None
