"""In which order proposals are looked at: policies take turns, and so do owners that no budget protects.

Source: controlled-rescheduling.md, Disruption budget (pods without one are "not unduly victimized").
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from podium.api.errors import shown
from podium.decide.rescheduling.policy_errors import CallingPolicy, PolicyError
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Policy, Proposal, Relocation

MOST_PROPOSALS = 20_000
"""So many proposals are looked at in all, most of which are of pods that may not be touched."""

Told = tuple[str, Proposal]


class Turns:
    """The proposals of some policies, with the names of these, as they take turns; each policy's in its own order.

    ``late`` says of a proposal how often the owners of its pods that no budget protects were moved of late. Who was is
    looked at after all who were not, the least moved ones first. ``errors`` are those of policies that failed
    meanwhile: they propose nothing more.
    """

    def __init__(self, policies: Sequence[Policy], picture: Picture, late: Callable[[Proposal], int]) -> None:
        self._policies = policies
        self._picture = picture
        self._late = late
        self.errors: list[str] = []
        self.is_cut = False

    def __iter__(self) -> Generator[Told]:
        # Whoever waits, by how often they were moved when they were last looked at, then as they were proposed.
        waiting: list[tuple[int, int, Told]] = []
        for number, told in enumerate(self._by_turns()):
            late = self._late(told[1])
            if late:
                heappush(waiting, (late, number, told))
            else:
                yield told
        while waiting:
            late, number, told = heappop(waiting)
            # It only grows: who was moved meanwhile has to wait for the others.
            by_now = self._late(told[1])
            if by_now > late:
                heappush(waiting, (by_now, number, told))
            else:
                yield told

    def _by_turns(self) -> Generator[Told]:
        streams = [_Stream(policy, self._picture, self.errors) for policy in self._policies]
        left = MOST_PROPOSALS
        try:
            while streams:
                for stream in list(streams):
                    if not left:
                        self.is_cut = True
                        return
                    proposal = stream.next()
                    if proposal is None:
                        streams.remove(stream)
                    else:
                        left -= 1
                        yield stream.name, proposal
        finally:
            for stream in streams:
                stream.close()


class _Stream:
    """What one policy proposes."""

    def __init__(self, policy: Policy, picture: Picture, errors: list[str]) -> None:
        self.name = policy.name
        self._policy = policy
        self._picture = picture
        self._errors = errors
        self._iterator: Iterator[Proposal] | None = None

    def next(self) -> Proposal | None:
        """The next proposal; None after the last one, and once the policy has failed."""
        try:
            with CallingPolicy(self.name, "proposals"):
                if self._iterator is None:
                    self._iterator = iter(self._policy.proposals(self._picture))
                proposal = next(self._iterator, None)
            if proposal is not None:
                _check(self.name, proposal, self._picture)
        except PolicyError as error:
            self._errors.append(str(error))
            self.close()
            return None
        return proposal

    def close(self) -> None:
        """Let a generator end where it stands."""
        close = getattr(self._iterator, "close", None)
        if close is None:
            return
        try:
            with CallingPolicy(self.name, "proposals"):
                close()
        except PolicyError as error:
            self._errors.append(str(error))


def _check(policy: str, proposed: object, picture: Picture) -> None:
    """Raise PolicyError for what is no proposal of moves in the cluster that the picture shows."""
    reason: object = getattr(proposed, "reason", None)
    if not isinstance(proposed, Proposal) or not isinstance(reason, str):
        raise PolicyError(policy, f"it proposed {shown(proposed)}, which is no Proposal with a reason")
    relocations: object = proposed.relocations
    if not isinstance(relocations, tuple) or not all(isinstance(each, Relocation) for each in relocations):
        raise PolicyError(policy, "the relocations of a proposal are no tuple of Relocations")
    uids = [relocation.pod.uid for relocation in relocations]
    if not uids or len(set(uids)) < len(uids):
        raise PolicyError(policy, "a proposal moves no pod" if not uids else "a proposal moves a pod twice")
    shape = (picture.cluster.nodes.count,)
    for relocation in relocations:
        targets, preferred = relocation.targets, relocation.preferred
        if targets is not None and (np.shape(targets) != shape or np.asarray(targets).dtype != np.bool_):
            raise PolicyError(policy, f"the targets of {relocation.pod.key} are no array of {shape[0]} booleans")
        if preferred is not None and (np.shape(preferred) != shape or not np.isfinite(preferred).all()):
            raise PolicyError(policy, f"the preferences of {relocation.pod.key} are no array of {shape[0]} numbers")
