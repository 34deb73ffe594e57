"""The Lease of a program: by its options, else its configuration, else as kube-scheduler's."""

from __future__ import annotations

import re
import socket
import uuid

from podium.api.errors import InputError, shown
from podium.api.times import parse_duration
from podium.app.live.options import LeaseOptions
from podium.client.leader_election import LeaseSettings
from podium.framework.settings.configuration import Configuration

_USUAL = LeaseSettings(identity="")
# The durations of a Lease, and their fields in a configuration.
_TIMES = {
    "duration_ns": "lease_duration",
    "renew_deadline_ns": "renew_deadline",
    "retry_period_ns": "retry_period",
}


def own_identity() -> str:
    """Return an identity of this process in kube-scheduler's form, different from all others."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def lease_of(
    identity: str, options: LeaseOptions, configuration: Configuration, usual_name: str = _USUAL.name
) -> LeaseSettings | None:
    """Return the Lease, None if no leader is to be elected. Raises InputError for what does not go together."""
    said = configuration.leader_election
    elects = said.leader_elect if options.elects is None else options.elects
    if said.resource_lock not in ("", "leases"):
        raise _wrong(configuration, "resourceLock", f"{shown(said.resource_lock)} is not served any more; write leases")
    if elects is False:
        return None
    lease = LeaseSettings(
        identity=identity,
        namespace=options.namespace or said.resource_namespace or _USUAL.namespace,
        name=options.name or said.resource_name or usual_name,
        **{name: _time(name, field, options, configuration) for name, field in _TIMES.items()},
    )
    if lease.problem():
        raise InputError(f"leader election: {lease.problem()}", source=configuration.source)
    return lease


def _time(name: str, field: str, options: LeaseOptions, configuration: Configuration) -> int:
    """Return a duration of the Lease: of the options, the configuration, or kube-scheduler's default."""
    option, text = getattr(options, name), getattr(configuration.leader_election, field)
    if option is not None or not text:
        return int(option or getattr(_USUAL, name))
    try:
        return parse_duration(text) or int(getattr(_USUAL, name))
    except ValueError as error:
        camel = re.sub("_(.)", lambda found: found[1].upper(), field)
        raise _wrong(configuration, camel, str(error)) from None


def _wrong(configuration: Configuration, field: str, problem: str) -> InputError:
    return InputError(problem, path=f".leaderElection.{field}", source=configuration.source)
