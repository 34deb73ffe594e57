"""Claims for devices: as they were seen, as an answer told them, and as they will be once a decision is written.

Source: pkg/scheduler/framework/plugins/dynamicresources (dra_manager.go), pkg/scheduler/util/assumecache.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.api.resource_claims import ResourceClaim
from podium.api.resource_version import is_older
from podium.cluster.allocated_devices import Allocated, PoolID


class ClaimBook:
    """The claims that a scheduler knows, and which devices they hold.

    ``claims`` are by key as they were seen last, or as the API server has answered that they are: what is seen after
    that of an earlier version is late, and counts for nothing. ``in_flight`` are those to which an allocation is being
    written, as they will be, by uid; one that is yet to be made, by that of the pod which it is made for. Their devices
    count as taken until the claim is seen or told with devices, or is known to have none.
    """

    def __init__(self, pool_changed: Callable[[PoolID], None]) -> None:
        """``pool_changed`` is told of pools of which other devices are free than before."""
        self.claims: dict[str, ResourceClaim] = {}
        self.in_flight: dict[str, ResourceClaim] = {}
        self.allocated = Allocated()
        self._pool_changed = pool_changed
        self._made_for: dict[str, dict[str, None]] = {}
        # The uids of claims that are known from an answer, and have not been seen since.
        self._unseen: dict[str, None] = {}
        # The newest version of any claim that was seen.
        self._newest = ""
        # Those in flight of which nobody has said whether they were written, and those that were and are not told.
        self._doubted: set[str] = set()
        self._untold: set[str] = set()
        # By the uid of a pod, the uids of claims that it was taken off; readings from before that may still come.
        self._let_go: dict[str, set[str]] = {}

    def made_for(self, pod_uid: str) -> ResourceClaim | None:
        """The claim that a scheduler made for a pod's extended resources, or None."""
        keys = self._made_for.get(pod_uid)
        return self.claims[min(keys)] if keys else None

    # What the API shows

    def is_late(self, claim: ResourceClaim) -> bool:
        """Whether what is seen of a claim is from before what an answer has told of it."""
        known = self.claims.get(claim.key)
        return (
            known is not None
            and known.metadata.uid in self._unseen
            and is_older(claim.metadata.resource_version, known.metadata.resource_version)
        )

    def see(self, claim: ResourceClaim) -> None:
        """A claim was added or changed."""
        if not self.is_late(claim):
            self._put(claim)
        self._pass(claim.metadata.resource_version)

    def remove(self, claim: ResourceClaim) -> None:
        """A claim is no more."""
        uid = claim.metadata.uid
        known = self.claims.get(claim.key)
        # A namesake may have been told that was not seen yet.
        if known is not None and (known.metadata.uid == uid or known.metadata.uid not in self._unseen):
            self._forget(claim.key)
        self._end(uid)
        self._pass(claim.metadata.resource_version)

    # What is written

    def assume(self, claim: ResourceClaim) -> None:
        """Count an allocation that is decided and yet to be written; ``claim`` is what it will be."""
        uid = claim.metadata.uid
        if uid in self._doubted:
            raise AssertionError(f"claim {claim.key} may have devices already")
        self._end(uid)
        self.in_flight[uid] = claim
        self._count(claim, 1)

    def tell(self, claim: ResourceClaim) -> bool:
        """The API server has answered that a claim is as it has been written; whether that is news.

        An answer may come late as well: after the claim was seen as it became later, or was seen to go. Of one that was
        made only now, and is not known, that is told by what was seen of other claims: a watch tells of all of a kind
        in the order of their versions.
        """
        known, version = self.claims.get(claim.key), claim.metadata.resource_version
        if known is None:
            is_news = claim.for_extended_resources and is_older(self._newest, version)
        else:
            is_same = known.metadata.uid == claim.metadata.uid
            is_news = is_same and is_older(known.metadata.resource_version, version)
        if is_news:
            self._put(claim)
            self._unseen[claim.metadata.uid] = None
        return is_news

    def confirm(self, uid: str) -> None:
        """What was in flight was written, and is told: it counts as the claim's."""
        self._end(uid)

    def expect(self, uid: str) -> None:
        """What was in flight was written, and no answer tells it: it counts until it is seen."""
        if uid in self.in_flight:
            self._untold.add(uid)

    def give_back(self, uid: str) -> None:
        """Let go of what `assume` counted, unless it may have been written."""
        if uid not in self._doubted:
            self._end(uid)

    def doubt(self, uid: str) -> None:
        """What is in flight is given up, and may have been written: it counts until `settle`, or until that is seen."""
        if uid in self.in_flight:
            self._doubted.add(uid)

    def is_doubted(self, uid: str) -> bool:
        """Whether something in flight may have been written."""
        return uid in self._doubted

    def settle(self, uid: str) -> ResourceClaim | None:
        """It is known what became of what was in doubt: it counts no more. What it was; None where it was over."""
        return self._end(uid) if uid in self._doubted else None

    # Who uses claims

    def let_go(self, uid: str, pod_uid: str) -> None:
        """A pod is taken off a claim. What is read of that claim does not say any more that the pod may use it."""
        self._let_go.setdefault(pod_uid, set()).add(uid)

    def reserved(self, uid: str, pod_uid: str) -> None:
        """A pod was put on a claim."""
        self._let_go.get(pod_uid, set()).discard(uid)

    def is_reserved_for(self, claim: ResourceClaim, pod_uid: str) -> bool:
        """Whether the pod may surely use the claim."""
        return claim.is_reserved_for(pod_uid) and claim.metadata.uid not in self._let_go.get(pod_uid, ())

    def forget_unseen(self, key: str, uid: str) -> ResourceClaim | None:
        """A claim is no more, as was answered. One that was not seen need not be seen to go: it counts no more.

        That one, None where it counts until it is seen to go.
        """
        claim = self.claims.get(key)
        if claim is None or claim.metadata.uid != uid or uid not in self._unseen:
            return None
        self._forget(key)
        return claim

    @property
    def knows_users(self) -> bool:
        """Whether there are claims in flight, given up or made for any pods: without them pods come and go unheeded."""
        return bool(self.in_flight or self._let_go or self._made_for)

    def forget_pod(self, uid: str) -> None:
        """A pod is gone, or not to be bound."""
        self.give_back(uid)
        self._let_go.pop(uid, None)

    def unseen_of(self, pod_uid: str) -> list[ResourceClaim]:
        """The claims that were made for a pod, as was answered, and have not been seen yet; by name."""
        made = (self.claims[key] for key in sorted(self._made_for.get(pod_uid, ())))
        return [claim for claim in made if claim.metadata.uid in self._unseen]

    def is_unseen(self, uid: str) -> bool:
        """Whether a claim is known from an answer alone."""
        return uid in self._unseen

    def _put(self, claim: ResourceClaim) -> None:
        self._forget(claim.key)
        self.claims[claim.key] = claim
        self._count(claim, 1)
        if claim.is_allocated:
            self._end(claim.metadata.uid)
        owner = claim.metadata.controller
        if claim.for_extended_resources and owner is not None:
            self._made_for.setdefault(owner.uid, {})[claim.key] = None
            # What is seen may be one that was made for the pod before, and was given up: an answer tells which it is.
            made = self.in_flight.get(owner.uid) if owner.uid in self._untold else None
            if made is not None and claim.is_allocated and claim.devices == made.devices:
                self._end(owner.uid)

    def _forget(self, key: str) -> None:
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        self._unseen.pop(claim.metadata.uid, None)
        self._count(claim, -1)
        owner = claim.metadata.controller
        if owner is not None and key in self._made_for.get(owner.uid, ()):
            del self._made_for[owner.uid][key]
            if not self._made_for[owner.uid]:
                del self._made_for[owner.uid]

    def _pass(self, version: str) -> None:
        """What has a version was seen, and so all that was written before it."""
        if is_older(self._newest, version):
            self._newest = version

    def _end(self, uid: str) -> ResourceClaim | None:
        claim = self.in_flight.pop(uid, None)
        if claim is not None:
            self._doubted.discard(uid)
            self._untold.discard(uid)
            self._count(claim, -1)
        return claim

    def _count(self, claim: ResourceClaim, sign: int) -> None:
        allocation = claim.status.allocation
        if allocation is None:
            return
        self.allocated.count(allocation, sign)
        for pool in {(result.driver, result.pool) for result in allocation.devices.results}:
            self._pool_changed(pool)
