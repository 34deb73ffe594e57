"""The record of one disruption: a value that says all there is to know of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from podium.api.meta import Raw, plain

Cause = Literal[
    "preemption",
    "eviction",
    "drain",
    "autoscaler",
    "rescheduler",
    "gang-release",
    "pressure",
    "taint",
    "node-gone",
    "deletion",
]
"""What brought the disruption about: a pod that needed room, an eviction by a client, a drain, the autoscaler, the
rescheduler, a gang that is not whole and gives its nodes back, a node's pressure as its kubelet saw it, a taint that is
not tolerated, a node that is gone, and a deletion."""

Outcome = Literal["waiting", "placed", "elsewhere", "gone", "again"]

Seconds = int | float

_SECOND = 10**9


def seconds(ns: int) -> Seconds:
    """Seconds, as a whole number where they are one."""
    return ns // _SECOND if ns % _SECOND == 0 else ns / _SECOND


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of what a record is made of; its fields in camelCase are its JSON."""


class Beneficiary(Entry, frozen=True, kw_only=True):
    """The pod for whom another went. ``room`` is the node where it was to run.

    ``outcome``: it is waiting still, was placed there, was placed elsewhere, is gone without having run, or, again,
    more pods had to go for it after this one had gone. ``node`` is where it was placed, and ``placed_after`` how long
    after the disruption began, in seconds.
    """

    pod: str
    uid: str = ""
    owner: str = ""
    priority: int = 0
    room: str = ""
    outcome: Outcome = "waiting"
    node: str | None = None
    placed_after: Seconds | None = None


class Replacement(Entry, frozen=True, kw_only=True):
    """The pod that came in a victim's place; times in seconds after the disruption began, None for what has not been.

    ``ready_after`` is when it was ready: for so long there was less of the workload than before.
    """

    pod: str
    uid: str
    node: str | None = None
    placed_after: Seconds | None = None
    ready_after: Seconds | None = None


class Loss(Entry, frozen=True, kw_only=True):
    """What a disruption cost.

    ``ran`` is for how long the pod had run, in seconds, and ``lost`` how much of that is lost: all, or what came after
    its last checkpoint (annotation podium.dev/checkpoint-time or -interval). ``requests`` are what it asked for: cpu in
    cores, all else in units; ``work`` is both multiplied, such as core-seconds. ``grace`` is how long it may take to
    end, and ``ended_after`` how long it took, None while it has not ended.
    """

    ran: Seconds = 0
    lost: Seconds = 0
    requests: dict[str, int | float] = {}
    work: dict[str, int | float] = {}
    grace: Seconds | None = None
    ended_after: Seconds | None = None


class Alternatives(Entry, frozen=True, kw_only=True):
    """What else there was to choose.

    ``candidates`` is how many ways out there were, the chosen one included, and ``equals`` are the first of the other
    nodes that would have cost the same.
    """

    candidates: int
    equals: tuple[str, ...] = ()


class Disruption(Entry, frozen=True, kw_only=True):
    """One pod that was made to end.

    ``time`` is when that began, in seconds: from the start of a simulation, or since 1970. ``id`` is its place among
    all of a ledger. ``owner`` is the workload as in `Deployment default/web`, "" for a pod on its own. ``by`` is who
    did it, ``rule`` why it was this pod, and ``plan`` what it was part of; "" for what is not known.
    """

    id: int
    time: Seconds
    pod: str
    uid: str
    node: str
    cause: Cause
    priority: int = 0
    owner: str = ""
    by: str = ""
    rule: str = ""
    plan: str = ""
    alternatives: Alternatives | None = None
    beneficiary: Beneficiary | None = None
    loss: Loss = Loss()
    replacement: Replacement | None = None

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.pod.partition("/")[0]

    @property
    def in_vain(self) -> str:
        """Why the disruption was in vain, "" where it was not, or that is not known yet.

        It was where the pod that it was for ran elsewhere or never; and where it was for no pod, and what came in the
        victim's place came back to the same node. Pods of DaemonSets always do, pods that somebody deletes may be meant
        to, and for whom a preemption was may not be known.
        """
        whom = self.beneficiary
        if whom is not None:
            if whom.outcome == "elsewhere":
                return f"{whom.pod} was placed on {whom.node}"
            if whom.outcome == "again":
                return f"{whom.pod} needed further victims"
            return f"{whom.pod} was gone before it ran" if whom.outcome == "gone" else ""
        came = self.replacement
        if came is None or came.node != self.node or self.owner.startswith("DaemonSet "):
            return ""
        if self.cause in ("deletion", "preemption"):
            return ""
        return f"{came.pod} came back to {self.node}"

    def to_dict(self) -> Raw:
        """The record as JSON shows it; `disruption_of` reads it."""
        return {**plain(self), "inVain": self.in_vain or None}


class Trail(Entry, frozen=True, kw_only=True):
    """What is needed, beside a record, to go on with it after a new start.

    ``began_ns`` is when it began, ``controller`` the uid of the victim's, "" for none. ``is_followed``: what comes in
    the victim's place is yet to come, or to be ready.
    """

    began_ns: int
    controller: str = ""
    is_followed: bool = True


class Earlier(NamedTuple):
    """What an earlier life of a ledger has left: records of which something is yet to come, in their order.

    ``replacements`` are the uids of pods that are known to have come in a victim's place.
    """

    followed: tuple[tuple[Disruption, Trail], ...] = ()
    replacements: frozenset[str] = frozenset()


def disruption_of(raw: object) -> Disruption:
    """The record that `to_dict` has made. Raises msgspec.ValidationError for what is none."""
    return msgspec.convert(raw, Disruption)
