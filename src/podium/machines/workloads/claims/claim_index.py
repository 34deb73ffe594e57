"""Which claims there are, which pods they name, and which of these have ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podium.api.resource_claims import ResourceClaim


class PodNamed(NamedTuple):
    """A pod that a claim names as its owner."""

    uid: str
    key: str


class ClaimIndex:
    """Claims by key, and by the uids of the pods that may use them, and that they were made for.

    Whether a pod has ended is known of all pods that are there, and of those that are gone while a claim names them.
    """

    def __init__(self) -> None:
        self._claims: dict[str, ResourceClaim] = {}
        self._used_by: dict[str, dict[str, None]] = {}
        self._made_for: dict[str, dict[str, None]] = {}
        # By uid, whether a pod has ended, and those that are gone too.
        self._ended: dict[str, bool] = {}
        self._gone: set[str] = set()
        # When a pod that a claim names was first missed, by claim and uid.
        self._missed: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._claims)

    def get(self, key: str) -> ResourceClaim | None:
        """The claim `namespace/name`."""
        return self._claims.get(key)

    def put(self, claim: ResourceClaim) -> None:
        """A claim is there, or has changed."""
        before = self._take_out(claim.key)
        self._claims[claim.key] = claim
        for consumer in claim.status.reserved_for:
            self._used_by.setdefault(consumer.uid, {})[claim.key] = None
        owner = pod_made_for(claim)
        if owner is not None:
            self._made_for.setdefault(owner.uid, {})[claim.key] = None
        self._forget_pods(before)

    def remove(self, key: str) -> None:
        """A claim is gone."""
        self._forget_pods(self._take_out(key))

    def pod_seen(self, uid: str, *, ended: bool) -> bool:
        """A pod is there; whether it has ended is to be known of it, and is returned if that is news."""
        changed = self._ended.get(uid) is not ended
        self._ended[uid] = ended
        return ended and changed

    def pod_gone(self, uid: str) -> None:
        """A pod is no more."""
        self._ended[uid] = True
        self._gone.add(uid)
        self._forget_pods([uid])

    def has_ended(self, uid: str) -> bool | None:
        """Whether a pod has ended; None for one that was never seen."""
        return self._ended.get(uid)

    def missed_since(self, key: str, uid: str, now: int) -> int:
        """Since when a pod has been missed that a claim names."""
        return self._missed.setdefault((key, uid), now)

    def found(self, key: str, uid: str) -> None:
        """The pod that a claim names is missed no longer."""
        self._missed.pop((key, uid), None)

    def names(self, uid: str) -> bool:
        """Whether a claim names the pod."""
        return uid in self._used_by or uid in self._made_for

    def naming(self, uid: str) -> list[str]:
        """The keys of the claims that name a pod: those that it may use, and those that were made for it."""
        return [*self._used_by.get(uid, ()), *self._made_for.get(uid, ())]

    def made_for(self, uid: str) -> list[ResourceClaim]:
        """The claims that were made for a pod and are to stay, by key."""
        claims = [self._claims[key] for key in sorted(self._made_for.get(uid, ()))]
        return [claim for claim in claims if claim.metadata.deletion_timestamp is None]

    def _take_out(self, key: str) -> list[str]:
        """Forget what a claim says; returns the uids of the pods that it named."""
        claim = self._claims.pop(key, None)
        if claim is None:
            return []
        uids = [consumer.uid for consumer in claim.status.reserved_for]
        for uid in uids:
            drop(self._used_by, uid, key)
        owner = pod_made_for(claim)
        if owner is not None:
            drop(self._made_for, owner.uid, key)
            uids.append(owner.uid)
        return uids

    def _forget_pods(self, uids: Iterable[str]) -> None:
        """Forget pods that have ended, and that no claim names any more."""
        for uid in uids:
            if self.names(uid):
                continue
            for missed in [waiting for waiting in self._missed if waiting[1] == uid]:
                del self._missed[missed]
            if uid in self._gone:
                self._gone.discard(uid)
                del self._ended[uid]


def pod_made_for(claim: ResourceClaim) -> PodNamed | None:
    """The pod that a claim was made for; None where nobody made it for one."""
    owner = claim.metadata.controller
    if owner is None or owner.kind != "Pod":
        return None
    return PodNamed(owner.uid, f"{claim.metadata.namespace}/{owner.name}")


def drop(index: dict[str, dict[str, None]], name: str, key: str) -> None:
    """Take a key from those under a name, and the name with the last of them."""
    keys = index.get(name, {})
    keys.pop(key, None)
    if not keys:
        index.pop(name, None)
