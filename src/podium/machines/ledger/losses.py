"""What a pod loses that has to go."""

from __future__ import annotations

from podium.api.pod import Pod
from podium.api.resize import effective_spec
from podium.api.resource_requests import pod_requests
from podium.api.resources import CPU
from podium.api.times import parse_time
from podium.decide.lost_work import unsaved_ns
from podium.machines.ledger.disruption import Loss, seconds

_MILLI = 1_000


def loss_of(pod: Pod, now: int) -> Loss:
    """What a pod that begins to end now loses: its running time, but for what it has saved, times its requests."""
    start = pod.status.start_time
    start_ns = parse_time(start) if start else None
    ran_ns = 0 if start_ns is None else max(now - start_ns, 0)
    lost_ns = min(_unsaved(pod, start_ns, now, ran_ns), ran_ns)
    requests = {name: _amount(name, amount) for name, amount in pod_requests(effective_spec(pod)).items() if amount}
    grace = pod.metadata.deletion_grace_period_seconds
    lost = seconds(lost_ns)
    work = {name: _rounded(amount * lost) for name, amount in requests.items()} if lost_ns else {}
    return Loss(ran=seconds(ran_ns), lost=lost, requests=requests, work=work, grace=grace)


def _unsaved(pod: Pod, start_ns: int | None, now: int, ran_ns: int) -> int:
    try:
        unsaved = unsaved_ns(pod.metadata.annotations, start_ns, now)
    except ValueError:
        # What the pod says of its checkpoints cannot be read: nothing is known to be saved.
        return ran_ns
    return ran_ns if unsaved is None else unsaved


def _amount(name: str, amount: int) -> int | float:
    if name != CPU:
        return amount
    return amount // _MILLI if amount % _MILLI == 0 else amount / _MILLI


def _rounded(number: float) -> int | float:
    found = round(number, 3)
    return int(found) if found == int(found) else found
