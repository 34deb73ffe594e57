"""Which Lease a scheduler wants, and how long things take: by its options, else its configuration, else as usual."""

from __future__ import annotations

import socket
import uuid
from dataclasses import dataclass

from podium.api.errors import InputError, shown
from podium.api.times import parse_duration
from podium.client.leading.leader_election import LeaseSettings
from podium.framework.settings.configuration import Configuration

_USUAL = LeaseSettings(identity="")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseOptions:
    """What the command line says; None where it says nothing."""

    elects: bool | None = None
    namespace: str | None = None
    name: str | None = None
    duration_ns: int | None = None
    renew_deadline_ns: int | None = None
    retry_period_ns: int | None = None


def own_identity() -> str:
    """Who this process is, as kube-scheduler says it: another one than any other on the machine, and any before."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def lease_of(
    identity: str, options: LeaseOptions, configuration: Configuration, usual_name: str = _USUAL.name
) -> LeaseSettings | None:
    """The Lease, None where no leader is to be elected. Raises InputError for what does not go together."""
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
        duration_ns=_either(options.duration_ns, said.lease_duration, "leaseDuration", configuration)
        or _USUAL.duration_ns,
        renew_deadline_ns=_either(options.renew_deadline_ns, said.renew_deadline, "renewDeadline", configuration)
        or _USUAL.renew_deadline_ns,
        retry_period_ns=_either(options.retry_period_ns, said.retry_period, "retryPeriod", configuration)
        or _USUAL.retry_period_ns,
    )
    if lease.problem():
        raise InputError(f"leader election: {lease.problem()}", source=configuration.source)
    return lease


def _either(option: int | None, text: str, field: str, configuration: Configuration) -> int | None:
    if option is not None or not text:
        return option
    try:
        return parse_duration(text)
    except ValueError as error:
        raise _wrong(configuration, field, str(error)) from None


def _wrong(configuration: Configuration, field: str, problem: str) -> InputError:
    return InputError(problem, path=f".leaderElection.{field}", source=configuration.source)
