"""The results of device reservations for pods in binding cycles.

A reservation without an answer may have been carried out. During the cycle it is sent again. After the cycle, a release
follows it, whose answer shows the result of both.
"""

from __future__ import annotations

from podium.api.devices import ResourceClaim
from podium.api.errors import InputError
from podium.api.meta import is_comparable
from podium.api.reading import read
from podium.cluster.devices import ClaimCache
from podium.controllers.actions import Action, ReleaseClaim, ReserveClaim
from podium.controllers.deadlines import Deadlines
from podium.controllers.observations import ActionFinished, Answer
from podium.controllers.scheduling.binding_stages import BindingCycle
from podium.controllers.scheduling.queue.queued_pod import SECOND_NS

# The wait before an unanswered or postponed release is sent again.
RELEASE_RETRY_NS = SECOND_NS
_AGAIN = (Answer.UNKNOWN, Answer.PASSING, Answer.STALE)


class Reservations:
    """Updates the claim book with the answers to reservations and releases.

    After a failed cycle, devices of a doubtful reservation count as taken, and the release is repeated, until its
    result is known.
    """

    def __init__(self, claim_cache: ClaimCache) -> None:
        self._claim_cache = claim_cache
        # The decisive releases, by the uid of the claim in the book, or of a claim that was never observed.
        self._releases: dict[str, ReleaseClaim] = {}
        self.doubted = self._releases.keys()
        """Those uids; a live view."""
        self._retries: Deadlines[str] = Deadlines()
        self.next_time = self._retries.next_time

    def is_in_doubt(self, action: ReserveClaim, answer: Answer) -> bool:
        """Return whether a reservation without an answer may have been carried out, given its next answer."""
        if answer is not Answer.STALE:
            return answer is Answer.PASSING
        cache = self._claim_cache
        claim = cache.made_for(action.pod_uid) if action.made is not None else cache.claims.get(action.claim)
        if claim is None or (action.uid and claim.metadata.uid != action.uid):
            return claim is None and action.made is not None
        if claim.metadata.deletion_timestamp is not None:
            return False
        return claim.is_reserved_for(action.pod_uid) or claim.is_allocated is (action.allocation is None)

    def on_finished(
        self, action: ReserveClaim, finished: ActionFinished, cycle: BindingCycle, claim: ResourceClaim | None
    ) -> None:
        """Note the result of a reservation; ``claim`` is the claim in the answer, if any.

        A PASSING answer is inconclusive, as is any failure for a claim that is created first, after which more is
        written.
        """
        if finished.problem is None:
            self._claim_cache.on_reserved(action.uid, action.pod_uid)
            if claim is None:
                self._claim_cache.expect(_uid(action))
            else:
                self._claim_cache.end(_uid(action))
                cycle.settled |= {action}
        elif finished.answer is not Answer.PASSING and action.made is None:
            cycle.settled |= {action}

    def give_up(self, cycle: BindingCycle) -> list[Action]:
        """Return the releases for a failed cycle."""
        pod = cycle.queued.record
        releases: list[Action] = []
        for reservation in cycle.reservations:
            release = ReleaseClaim(reservation.claim, reservation.uid, pod.key, pod.uid)
            self._claim_cache.unreserve(reservation.uid, pod.uid)
            uid = _uid(reservation)
            if reservation not in cycle.settled:
                self._claim_cache.mark_uncertain(uid)
                if uid in self._claim_cache.uncertain:
                    self._releases[uid] = release
            releases.append(release)
        return releases

    def forget_pod(self, pod: str, pod_uid: str) -> list[Action]:
        """Return the releases of unobserved claims that were created for a pod that is gone or not to be bound."""
        releases: list[Action] = []
        if not self._claim_cache.may_track(pod_uid):
            return releases
        self._claim_cache.forget_pod(pod_uid)
        for claim in self._claim_cache.unobserved_of(pod_uid):
            uid = claim.metadata.uid
            if uid not in self._releases:
                release = self._releases[uid] = ReleaseClaim(claim.key, uid, pod, pod_uid)
                releases.append(release)
        return releases

    def released(self, action: ReleaseClaim, finished: ActionFinished, now: int) -> ResourceClaim | None:
        """Handle the answer to a release; return the claim whose devices are free now, None for none.

        Only the last requested release is conclusive for the reservation before it.
        """
        uid = action.uid or action.pod_uid
        is_last = self._releases.get(uid) is action
        if is_last and finished.answer in _AGAIN:
            self._retries.set(uid, now + RELEASE_RETRY_NS)
            return None
        gone = None
        if finished.problem is None and finished.written is None:
            gone = self._claim_cache.forget_unobserved(action.claim, action.uid)
        if not is_last:
            return gone
        self._retries.set(uid, None)
        del self._releases[uid]
        return self._claim_cache.settle(uid) or gone

    def retries(self, now: int) -> list[Action]:
        """Return the releases to send again, without those whose result was observed meanwhile."""
        due: list[Action] = []
        while (uid := self._retries.take_due(now)) is not None:
            if uid in self._claim_cache.uncertain or uid in self._claim_cache.unobserved:
                due.append(self._releases[uid])
            else:
                del self._releases[uid]
        return due


def claim_in_answer(finished: ActionFinished) -> ResourceClaim | None:
    """Return the ResourceClaim in an answer; None without one, or if its version cannot be compared."""
    action = finished.action
    if finished.written is None or not isinstance(action, ReserveClaim | ReleaseClaim):
        return None
    try:
        claim = read(finished.written, ResourceClaim)
    except InputError:
        # The watch reports it.
        return None
    is_asked = action.uid in ("", claim.metadata.uid)
    return claim if is_asked and is_comparable(claim.metadata.resource_version) else None


def _uid(reservation: ReserveClaim) -> str:
    """Return the key of a reservation in the book: the claim's uid, or the pod's if the claim does not exist yet."""
    return reservation.uid or reservation.pod_uid
