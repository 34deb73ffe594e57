"""What became of the reservations of devices that pods on their way have asked for.

A reservation without an answer may have been carried out. While its pod is on its way the same is asked for again. Once
it is on its way no more, it is taken off the claim, which is asked for after the reservation and looks at the claim: so
that answer tells what became of both.
"""

from __future__ import annotations

from podium.api.errors import InputError
from podium.api.reading import read
from podium.api.resource_claims import ResourceClaim
from podium.api.resource_version import is_comparable
from podium.cluster.claim_book import ClaimBook
from podium.machines.actions import Action, ReleaseClaim, ReserveClaim
from podium.machines.answers import Answer
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import Deadlines
from podium.machines.scheduling.binding.cycle import BindingCycle
from podium.machines.scheduling.queue.queued_pod import SECOND_NS

# How long after a release that had no answer, or was put off, it is asked for again.
RELEASE_RETRY_NS = SECOND_NS
_AGAIN = (Answer.UNKNOWN, Answer.PASSING, Answer.STALE)


class Reservations:
    """Keeps the book of claims by the answers to reservations and releases.

    Devices of a reservation that may have been carried out count as taken after its pod is on its way no more, and the
    release is asked for again, until it is known what became of it.
    """

    def __init__(self, book: ClaimBook) -> None:
        self._book = book
        # The releases that will tell, by the uid of what the book has in flight, or of a claim that nobody has seen.
        self._releases: dict[str, ReleaseClaim] = {}
        self.doubted = self._releases.keys()
        """Those uids, as things are."""
        self._retries: Deadlines[str] = Deadlines()

    def is_in_doubt(self, action: ReserveClaim, answer: Answer) -> bool:
        """Whether a reservation may have been carried out that had no answer at first and then this one."""
        if answer is not Answer.STALE:
            return answer is Answer.PASSING
        book = self._book
        claim = book.made_for(action.pod_uid) if action.made is not None else book.claims.get(action.claim)
        if claim is None or (action.uid and claim.metadata.uid != action.uid):
            return claim is None and action.made is not None
        if claim.metadata.deletion_timestamp is not None:
            return False
        return claim.is_reserved_for(action.pod_uid) or claim.is_allocated is (action.allocation is None)

    def answered(self, cycle: BindingCycle, answered: Answered, told: ResourceClaim | None) -> None:
        """Take note of what is known of a reservation by its answer, which has ``told`` the claim or not.

        An answer that puts it off does not say that nothing was done, nor does one about a claim that is made for it,
        after which more is written. One that does not tell the claim leaves that to what will be seen.
        """
        action = answered.action
        if not isinstance(action, ReserveClaim):
            raise TypeError(f"{type(action).__name__} is no reservation")
        if answered.problem is None:
            self._book.reserved(action.uid, action.pod_uid)
            if told is None:
                self._book.expect(_uid(action))
            else:
                self._book.confirm(_uid(action))
                cycle.settled |= {action}
        elif answered.answer is not Answer.PASSING and action.made is None:
            cycle.settled |= {action}

    def give_up(self, cycle: BindingCycle) -> list[Action]:
        """The pod is on its way no more: what takes it off its claims."""
        pod = cycle.queued.record
        releases: list[Action] = []
        for reservation in cycle.reservations:
            release = ReleaseClaim(reservation.claim, reservation.uid, pod.key, pod.uid)
            self._book.let_go(reservation.uid, pod.uid)
            uid = _uid(reservation)
            if reservation not in cycle.settled:
                self._book.doubt(uid)
                if self._book.is_doubted(uid):
                    self._releases[uid] = release
            releases.append(release)
        return releases

    def forget_pod(self, pod: str, pod_uid: str) -> list[Action]:
        """A pod is gone, or not to be bound: what takes it off claims that were made for it and never seen.

        They may have come and gone while nobody watched. The answer tells.
        """
        releases: list[Action] = []
        if not self._book.may_know(pod_uid):
            return releases
        self._book.forget_pod(pod_uid)
        for claim in self._book.unseen_of(pod_uid):
            uid = claim.metadata.uid
            if uid not in self._releases:
                release = self._releases[uid] = ReleaseClaim(claim.key, uid, pod, pod_uid)
                releases.append(release)
        return releases

    def released(self, answered: Answered, now: int) -> ResourceClaim | None:
        """A release has ended. The claim, as it was known, whose devices now count as taken no more; None for none.

        Only the very release that was asked for last tells of what came before it.
        """
        action = answered.action
        if not isinstance(action, ReleaseClaim):
            raise TypeError(f"{type(action).__name__} is no release")
        uid = action.uid or action.pod_uid
        is_told = self._releases.get(uid) is action
        if is_told and answered.answer in _AGAIN:
            self._retries.set(uid, now + RELEASE_RETRY_NS)
            return None
        gone = None
        if answered.problem is None and answered.written is None:
            gone = self._book.forget_unseen(action.claim, action.uid)
        if not is_told:
            return gone
        self._retries.set(uid, None)
        del self._releases[uid]
        return self._book.settle(uid) or gone

    def retries(self, now: int) -> list[Action]:
        """The releases to ask for again: not those of claims of which it was seen meanwhile what became of them."""
        due: list[Action] = []
        while (uid := self._retries.take_due(now)) is not None:
            if self._book.is_doubted(uid) or self._book.is_unseen(uid):
                due.append(self._releases[uid])
            else:
                del self._releases[uid]
        return due

    def next_time(self) -> int | None:
        """When the next release is asked for again; None for never."""
        return self._retries.next_time()


def told_claim(answered: Answered) -> ResourceClaim | None:
    """The claim for devices that an answer tells; None for none, or one of which nobody can say how old it is."""
    action = answered.action
    if answered.written is None or not isinstance(action, ReserveClaim | ReleaseClaim):
        return None
    try:
        claim = read(answered.written, ResourceClaim)
    except InputError:
        # Whoever watches claims is told of it.
        return None
    is_asked = action.uid in ("", claim.metadata.uid)
    return claim if is_asked and is_comparable(claim.metadata.resource_version) else None


def _uid(reservation: ReserveClaim) -> str:
    """By what the book knows a claim that is being reserved: one that is yet to be made, by its pod."""
    return reservation.uid or reservation.pod_uid
