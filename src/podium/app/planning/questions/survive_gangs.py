"""Gangs that are left in part where some of their pods are preempted: of no use are then those that survive, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from podium.api.times import format_duration
from podium.app.explaining.gang import gang_plugin
from podium.app.planning.answer import Finding, Section
from podium.app.planning.answering import pods
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Settled
from podium.cluster.pods import PodRecord


@dataclass(frozen=True, slots=True)
class GangInPart:
    """A gang of which ``left`` pods have nodes in the end, fewer than the ``least`` that it needs.

    It gives those nodes back after ``release_after_ns``; None: it keeps them, as the configuration says or since nobody
    waits who would make it whole. ``survivors`` are those of the pods in question that are among them.
    """

    key: str
    left: int
    least: int
    release_after_ns: int | None
    survivors: tuple[PodRecord, ...]

    @property
    def then(self) -> str:
        """What becomes of those that are left."""
        if self.release_after_ns is None:
            return "they keep their nodes"
        return f"they give their nodes back after {format_duration(self.release_after_ns)}"


def gangs_in_part(decisions: Decisions, targets: Sequence[PodRecord], settled: Settled) -> list[GangInPart]:
    """The gangs of the pods that were whole and are not in the end, though some of the pods survive; by key."""
    placed, victims = decisions.cluster.placed, settled.victims
    came = Counter(fate.pod.pod_class.pod_group for fate in settled.fates)
    waiting = {pod.pod_class.pod_group for pod in (*settled.waiting, *decisions.pending)}
    found = []
    for key in sorted({pod.pod_class.pod_group for pod in targets if decisions.is_of_gang(pod)}):
        whole = [uid for uid, pod in decisions.cluster.pod_groups.members(key).items() if uid in placed]
        survivors = tuple(pod for pod in targets if pod.pod_class.pod_group == key and pod.uid not in victims)
        left = sum(uid not in victims for uid in whole) + came[key]
        least = decisions.least_of_gang(placed[whole[0]])
        if survivors and left < least <= len(whole):
            plugin = gang_plugin(decisions.runners[survivors[0].scheduler_name])
            after_ns = plugin.release_after_ns if plugin is not None and key in waiting else None
            found.append(GangInPart(key, left, least, after_ns, survivors))
    return found


def told_gangs(found: Sequence[GangInPart]) -> Section:
    """Each of the gangs, and what becomes of it."""
    rows = tuple(
        (gang.key, f"{gang.left:,} of the {gang.least:,} that it needs are left: {gang.then}") for gang in found
    )
    data = [
        {
            "group": gang.key,
            "left": gang.left,
            "minCount": gang.least,
            "releasedAfterSeconds": None if gang.release_after_ns is None else gang.release_after_ns / 10**9,
            "survivors": [pod.key for pod in gang.survivors],
        }
        for gang in found
    ]
    return Section("gangs", "Gangs", rows, rest="in part once others of them are preempted", data=data)


def findings_about(found: Sequence[GangInPart]) -> list[Finding]:
    """That survivors are evicted all the same."""
    return [
        Finding(
            "evict",
            f"{pods(len(gang.survivors))} of the gang {gang.key} would survive, and be evicted as it is not whole",
            tuple(pod.key for pod in gang.survivors),
        )
        for gang in found
        if gang.release_after_ns is not None
    ]


def headline_about(found: Sequence[GangInPart]) -> str:
    """What is to be added to the headline, "" for nothing."""
    if not found:
        return ""
    first, others = found[0], len(found) - 1
    more = f", and {others:,} more likewise" if others else ""
    return f"; of the gang {first.key} {first.left:,} of {first.least:,} are left: {first.then}{more}"
