"""Quotas: what a namespace may hold, enforced when objects are written, and counted in the same transaction.

The rules of apiserver's admission/plugin/resourcequota (CheckRequest). Unlike there, no controller is needed for
`status.used` to be right at every version.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.quota import ResourceQuota
from podium.store.admission.usage import Amounts, is_counted, read_amount, unnamed, usage_of, written_amount
from podium.store.errors import StoreError, forbidden
from podium.store.revisions import Revisions
from podium.store.stored import Stored, reread


class Quotas:
    """The quotas among the objects."""

    def __init__(self, revisions: Revisions) -> None:
        self._revisions = revisions

    def counted(self, candidate: Stored, quota: ResourceQuota) -> Raw:
        """A quota that is to be written, with a status that says what its namespace uses then."""
        used = dict.fromkeys(quota.spec.hard, 0)
        _add(used, usage_of(candidate) if is_counted(quota, candidate) else {}, 1)
        for kind in self._revisions.kinds():
            for stored in self._revisions.in_namespace(kind, quota.metadata.namespace):
                if stored.uid != candidate.uid and is_counted(quota, stored):
                    _add(used, usage_of(stored), 1)
        return {
            **candidate.raw,
            "status": {"hard": candidate.raw.get("spec", {}).get("hard", {}), "used": _written(used)},
        }

    def charge(self, previous: Stored | None, after: Stored | None) -> None:
        """Count an object as it is after a write, in the place of what it was before; None is none.

        Raises StoreError 403 where the write makes more use of something than a quota has left, or where a new pod does
        not say how much of it it uses.
        """
        about = after or previous
        if not self._revisions.of("ResourceQuota") or about is None or _uses_the_same(previous, after):
            return
        for stored in self._revisions.in_namespace("ResourceQuota", about.object.metadata.namespace):
            quota = stored.object
            if not isinstance(quota, ResourceQuota):
                raise TypeError(f"{stored.kind} {stored.key} is no ResourceQuota")
            if stored.uid != about.uid:
                self._charge(stored, quota, previous, after)

    def _charge(self, stored: Stored, quota: ResourceQuota, previous: Stored | None, after: Stored | None) -> None:
        change = dict.fromkeys(quota.spec.hard, 0)
        if after is not None and is_counted(quota, after):
            if previous is None and isinstance(after.object, Pod):
                _check_named(quota, after, after.object)
            _add(change, usage_of(after), 1)
        if previous is not None and is_counted(quota, previous):
            _add(change, usage_of(previous), -1)
        if not any(change.values()):
            return
        used = {name: read_amount(name, quota.status.used.get(name, 0)) for name in quota.spec.hard}
        if after is not None:
            _check_room(quota, used, change, after)
        _add(used, change, 1)
        raw = {**stored.raw, "status": {**stored.raw.get("status", {}), "used": _written(used)}}
        read: Kubernetes = reread(quota, stored.raw, raw)
        self._revisions.write(stored.resource, stored, raw, read, is_gone=False)


def _uses_the_same(previous: Stored | None, after: Stored | None) -> bool:
    """Whether a write changes nothing that counts: what an object uses follows from its spec, and whether it ended."""
    if previous is None or after is None:
        return False
    before, now = (stored.raw.get("status", {}).get("phase") for stored in (previous, after))
    return previous.raw.get("spec") == after.raw.get("spec") and bool(before == now)


def _add(used: dict[str, int], amounts: Amounts, factor: int) -> None:
    for name, amount in amounts.items():
        if name in used:
            used[name] += factor * amount


def _check_named(quota: ResourceQuota, after: Stored, pod: Pod) -> None:
    missing = unnamed(pod.spec, quota.spec.hard)
    if missing:
        asked = "; ".join(f"{name} for: {','.join(containers)}" for name, containers in missing.items())
        raise forbidden(after.resource, after.key, f"failed quota: {quota.metadata.name}: must specify {asked}")


def _check_room(quota: ResourceQuota, used: Amounts, change: Amounts, after: Stored) -> None:
    hard = {name: read_amount(name, quantity) for name, quantity in quota.spec.hard.items()}
    exceeded = sorted(name for name in change if change[name] > 0 and used[name] + change[name] > hard[name])
    if exceeded:
        raise _exceeded(quota, after, exceeded, (change, used, hard))


def _exceeded(quota: ResourceQuota, after: Stored, names: list[str], amounts: tuple[Amounts, ...]) -> StoreError:
    requested, used, limited = (
        ",".join(f"{name}={written_amount(name, amount[name])}" for name in names) for amount in amounts
    )
    problem = f"exceeded quota: {quota.metadata.name}, requested: {requested}, used: {used}, limited: {limited}"
    return forbidden(after.resource, after.key, problem)


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: written_amount(name, amount) for name, amount in sorted(amounts.items())}
