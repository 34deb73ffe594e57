"""The placement of replacements: where their schedulers put them, capacity kept for others, and device claims.

Source: controlled-rescheduling.md, Rescheduler ("we expect future versions of the rescheduler ... will only evict if
the rescheduler determines that the pod can reschedule somewhere").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from podium.api.avoid_list import avoid_list, avoid_list_text
from podium.api.devices import ConsumerReference, ResourceClaimStatus
from podium.api.node import Node, Taint
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import NO_ROW, PodRecord
from podium.decide.placement import Placement, nodes_to_find, place
from podium.decide.rescheduling.guards import PastMove
from podium.decide.transaction import ClusterTransaction
from podium.framework.handle import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, DeviceGiver
from podium.framework.rescheduling.policy import Picture, Relocation, replacement
from podium.framework.rescheduling.settings import Guidance, ReschedulerSettings, Steering
from podium.framework.verdicts import PluginError

AVOIDING = "NodePreferAvoidPods"
"""The scheduler plugin that respects avoid lists."""

SOFT_TAINT = Taint(key="podium.dev/moving-pods-away", effect="PreferNoSchedule")
"""The taint on a node while a pod is moved off it, if its scheduler does not respect avoid lists."""


class ReplacementRows(Struct, frozen=True, eq=False):
    """The rows where a replacement may be placed, or ``why`` no replacement should be created.

    ``fits`` is False if no node accepts the pod, so that it would wait. ``is_sure``: the scheduler considers all nodes,
    so that there are no other rows.
    """

    rows: Int64s
    why: str = ""
    fits: bool = True
    is_sure: bool = True

    def or_else(self, other: ReplacementRows) -> ReplacementRows:
        if self.why or not other.fits:
            return self
        if other.why:
            return other
        return ReplacementRows(np.union1d(self.rows, other.rows), is_sure=self.is_sure and other.is_sure)


def as_replacement(pod: PodRecord, now: int) -> PodRecord:
    """Return a running pod as its controller will recreate it: without a node, and with a uid that is not known yet."""
    return pod.without_node(
        uid=replacement(pod.uid),
        created_ns=now,
        start_ns=now,
        terminating=False,
        preempted=False,
        made_claims=tuple((name, claim and f"{claim}{MADE_ANEW}") for name, claim in pod.made_claims),
    )


class ReplacementPlacer:
    """Finds where replacements would land after the pods that they replace have left."""

    def __init__(self, transaction: ClusterTransaction, picture: Picture, settings: ReschedulerSettings) -> None:
        self._transaction = transaction
        self._picture = picture
        self._guidance = settings.guidance
        self._steering = settings.steering
        # The rows of nodes that are being emptied; no pod is placed there.
        self.closed: set[int] = set()

    def leave(self, row: int) -> None:
        """Evict a pod from a node: taint the node if that is how its replacement is kept away."""
        node = self._picture.cluster.nodes.node(row)
        is_tainted = any(taint.key == SOFT_TAINT.key for taint in node.spec.taints)
        if self._steering is Steering.SOFT_TAINT and self._guidance is Guidance.EVICT and not is_tainted:
            spec = replace(node.spec, taints=(*node.spec.taints, SOFT_TAINT))
            self._transaction.put(replace(node, spec=spec))

    def find(
        self, pod: PodRecord, leaver: MovingPod, leaving: Collection[MovingPod], hinted: int | None = None
    ) -> ReplacementRows:
        """Return where the replacement ``pod`` of ``leaver`` would land while the pods of ``leaving`` leave.

        If replacements are directed, the row is chosen here, or is ``hinted`` if it was chosen before.
        """
        picture = self._picture
        runner, source, relocation = picture.runner_of(pod), leaver.row, leaver.relocation
        is_known = runner is not picture.kubelet
        allowed, is_chosen_here = self._allowed(source, relocation), self.is_sent(pod) and hinted is None
        # Most often one of the preferred rows takes it, so that all others need not be filtered.
        among = _preferred(picture.cluster.nodes.all_rows(), allowed, relocation) if is_chosen_here else None
        try:
            placement = place(runner, pod, nominated_first=False, among=among)
            if among is not None and not len(placement.feasible):
                placement = place(runner, pod, nominated_first=False)
        except PluginError as error:
            return _nowhere(str(error))
        rows = placement.feasible
        if placement.error:
            return _nowhere(placement.error)
        if not len(rows) or (len(rows) == 1 and rows[0] == source):
            status = placement.pre_filter.status
            known = "" if status.is_success else f": {status.message}"
            return _nowhere(f"no other node takes it{known}", fits=len(rows) > 0)
        if is_chosen_here:
            return self._best(placement, allowed, relocation)
        if self.is_sent(pod) and hinted in rows:
            return ReplacementRows(np.array([hinted], dtype=np.int64))
        if is_known and placement.totals is not None:
            avoided = {other.row for other in leaving if other.pod.owner_uid == pod.owner_uid}
            totals = self._totals_with_avoid_lists(
                pod, runner.profile.weights.get(AVOIDING, 0), rows, placement.totals, avoided
            )
            rows = rows[totals == totals.max()]
        number = len(picture.cluster.nodes)
        is_sure = not is_known or nodes_to_find(runner.profile.percentage_of_nodes_to_score, number) == number
        return self._left_to_scheduler(pod, source, rows, allowed, is_known=is_known, is_sure=is_sure)

    def is_sent(self, pod: PodRecord) -> bool:
        """Return whether the rescheduler directs the replacement of a pod to a node."""
        is_known = self._picture.runner_of(pod) is not self._picture.kubelet
        return self._guidance is Guidance.BIND or (self._guidance is Guidance.HINT and is_known)

    def _allowed(self, source: int, relocation: Relocation) -> Bools:
        allowed = self._picture.targets.copy()
        if relocation.targets is not None:
            allowed &= relocation.targets
        allowed[[source, *self.closed]] = False
        return allowed

    def _best(self, placement: Placement, allowed: Bools, relocation: Relocation) -> ReplacementRows:
        """Return the row that the policy ranks best; ties are broken by the scheduler's score, then by node name."""
        places = _preferred(placement.feasible, allowed, relocation)
        if not len(places):
            return _nowhere("none of the nodes that take it may take pods in, or is better than where it is")
        rows = placement.feasible[places]
        if placement.totals is not None:
            totals = placement.totals[places]
            rows = rows[totals == totals.max()]
        return ReplacementRows(np.array([min(rows.tolist(), key=self._picture.node_name)], dtype=np.int64))

    def _totals_with_avoid_lists(
        self, pod: PodRecord, weight: int, rows: Int64s, totals: Int64s, avoided: Collection[int]
    ) -> Int64s:
        """Return the totals after the pod's controller has been added to the avoid lists of the rows ``avoided``."""
        if self._steering is not Steering.AVOID_LIST or pod.controller is None or not weight:
            return totals
        nodes = self._picture.cluster.nodes
        further = [row for row in avoided if not avoids(nodes.node(row), pod)]
        steered: Int64s = totals - weight * MAX_NODE_SCORE * np.isin(rows, np.array(further, dtype=np.int64))
        return steered

    def _left_to_scheduler(
        self, pod: PodRecord, source: int, rows: Int64s, allowed: Bools, *, is_known: bool, is_sure: bool
    ) -> ReplacementRows:
        """Return the rows that the scheduler may choose.

        Return the reason instead if it may choose a row that the pod should not go to.
        """
        name = self._picture.node_name
        if source in rows:
            chooser = (
                "its scheduler rates no node higher than" if is_known else f"{pod.scheduler_name} may choose again"
            )
            return _nowhere(f"{chooser} {name(source)}, where it is")
        outside = rows[~allowed[rows]]
        if len(outside):
            first = min(map(name, outside.tolist()))
            choice = "its scheduler would choose" if len(rows) == 1 else "its scheduler might choose"
            return _nowhere(f"{choice} {first}, which may take no pods in, or is no better")
        return ReplacementRows(rows, is_sure=is_sure)


def _preferred(rows: Int64s, allowed: Bools, relocation: Relocation) -> Int64s:
    """Return the places in ``rows`` of the allowed ones that the policy prefers; of all these without preferences."""
    places = np.flatnonzero(allowed[rows])
    if relocation.preferred is None or not len(places):
        return places
    preference = relocation.preferred[rows[places]]
    return np.asarray(places[preference == preference.max()])


def _nowhere(why: str, *, fits: bool = True) -> ReplacementRows:
    return ReplacementRows(np.empty(0, dtype=np.int64), why, fits=fits)


def avoids(node: Node, pod: PodRecord) -> bool:
    """Return whether a node's avoid list already names a pod's controller."""
    text, controller = avoid_list_text(node), pod.controller
    if not text or controller is None:
        return False
    if controller.uid:
        return any(entry.controller.uid == controller.uid for entry in avoid_list(text).entries)
    wanted = (controller.kind, controller.name)
    return any((entry.controller.kind, entry.controller.name) == wanted for entry in avoid_list(text).entries)


MOST_WAITING = 16
"""The most pending pods that are considered, the most important first."""

Seats = tuple[tuple[PodRecord, int], ...]
"""Pending pods, with the rows that have room for them."""


def let_go(transaction: ClusterTransaction, under_way: Iterable[PastMove]) -> list[MovingPod]:
    """Remove evicted pods that are still terminating, so that no pod is moved for capacity that they hold.

    The pods are identified by their owners and nodes.
    """
    pods, left = transaction.cluster.pods, Counter((move.owner_uid, move.source) for move in under_way)
    slots = np.flatnonzero(pods.terminating[: pods.count] & (pods.row[: pods.count] != NO_ROW))
    going = [pods.record(slot) for slot in slots.tolist()]
    gone = list[MovingPod]()
    for pod in sorted(going, key=lambda pod: (pod.owner_uid, pod.node_name, pod.key, pod.uid)):
        if left[pod.owner_uid, pod.node_name] > 0:
            left[pod.owner_uid, pod.node_name] -= 1
            gone.append(MovingPod(Relocation(pod), pod.row))
            transaction.take_off(pod.uid)
    return gone


def keep_expected(transaction: ClusterTransaction, under_way: Iterable[PastMove], now: int) -> None:
    """Place the replacements that are under way where they are expected, so that no other pod gets that capacity.

    The evicted pod, which may still exist, represents a replacement that has not been observed yet. Nominated
    replacements keep their capacity by their nomination.
    """
    cluster = transaction.cluster
    for move in under_way:
        pod, row = move.waiting, cluster.nodes.row_of.get(move.target)
        if pod is None or row is None or pod.uid in cluster.nominations:
            continue
        placed = cluster.placed.get(pod.uid)
        if placed is not None and placed.node_name != move.source:
            continue
        expected = pod if placed is None else as_replacement(pod, now)
        if expected.uid not in cluster.placed:
            transaction.place(expected, row)


class PendingPodSeats:
    """The pending pods, and the rows in which moves have made room for some of them."""

    def __init__(self, transaction: ClusterTransaction, picture: Picture) -> None:
        self._transaction = transaction
        cluster = picture.cluster
        self._pods = [
            pod
            for pod in picture.waiting
            if not pod.gates and pod.uid not in cluster.placed and pod.uid not in cluster.nominations
        ][:MOST_WAITING]
        self._seats: dict[str, int] = {}

    def seats(self, left: Collection[int], priority: int) -> Seats:
        """Return the pending pods of at least a priority that take capacity freed in some rows.

        Pods that are already seated are not among them.
        """
        rows = np.array(sorted(left), dtype=np.int64)
        # A replacement that is expected on another node (`keep_expected`) is placed.
        waiting = [pod for pod in self._pods if pod.uid not in self._transaction.cluster.placed]
        if all(pod.uid in self._seats or pod.priority < priority for pod in waiting):
            return tuple((pod, self._seats[pod.uid]) for pod in waiting if pod.uid in self._seats)
        seats: list[tuple[PodRecord, int]] = []
        with self._transaction.temporarily():
            for pod in waiting:
                row = self._seats.get(pod.uid)
                if row is None and pod.priority >= priority:
                    fitting = self._transaction.fitting(pod, rows)
                    row = int(fitting[0]) if len(fitting) else None
                if row is not None:
                    self._transaction.place(pod, row)
                    seats.append((pod, row))
        return tuple(seats)

    def keep(self, seats: Seats) -> None:
        """Keep the seats for the rest of the plan."""
        self._seats = {pod.uid: row for pod, row in seats}


_AFTER_THE_END = ("StatefulSet",)


class MovingPod(Struct, frozen=True, eq=False):
    """A pod that is moved, and the row that it leaves."""

    relocation: Relocation
    row: int

    @property
    def pod(self) -> PodRecord:
        """The pod before the move."""
        return self.relocation.pod

    @property
    def ends_first(self) -> bool:
        """Return whether its replacement is created after the pod is gone."""
        controller = self.pod.controller
        return controller is not None and controller.kind in _AFTER_THE_END


class ReplacementArrival(Struct, frozen=True, eq=False):
    """A replacement, and the row in which it lands."""

    leaver: MovingPod
    pod: PodRecord
    row: int


def bring_back(transaction: ClusterTransaction, leaving: Iterable[MovingPod]) -> None:
    """Restore pods that are terminating but not gone yet."""
    for leaver in leaving:
        transaction.place(replace(leaver.pod, terminating=True, row=NO_ROW, slot=-1), leaver.row)


MADE_ANEW = "/replacement"
"""Suffix of the name of a claim that will be made for a replacement; no real claim can have such a name."""


class MovedClaims:
    """Releases the devices of pods that leave and allocates those of pods that arrive, within ``transaction``."""

    def __init__(self, transaction: ClusterTransaction, picture: Picture) -> None:
        self._transaction = transaction
        self._picture = picture
        self._devices = picture.cluster.devices
        transaction.follower = self

    def make(self, pod: PodRecord, replacement: PodRecord) -> None:
        """Create the claims of a replacement like those that were made for the pod, without devices."""
        for _, name in pod.made_claims:
            if (claim := self._devices.claims.get(f"{pod.namespace}/{name}")) is not None:
                meta = claim.metadata
                owners = tuple(
                    replace(owner, uid=replacement.uid) if owner.uid == pod.uid else owner
                    for owner in meta.owner_references
                )
                anew, uid = f"{meta.name}{MADE_ANEW}", f"{meta.uid}{MADE_ANEW}"
                meta = replace(meta, name=anew, uid=uid, owner_references=owners)
                self._transaction.put(replace(claim, metadata=meta, status=ResourceClaimStatus()))

    def on_pod_left(self, pod: PodRecord) -> None:
        """Release the devices of the claims that were made for a pod that has left its node."""
        self._transaction.release_devices(pod)

    def on_pod_coming(self, pod: PodRecord, row: int) -> None:
        """Allocate the pod's unallocated claims to the devices that they would get in a row."""
        if not pod.made_claims and not self._devices.backed:
            return
        runner, state = self._picture.runner_of(pod), CycleState()
        givers = [plugin for plugin in runner.profile.reserve if isinstance(plugin, DeviceGiver)]
        try:
            if not givers or not runner.pre_filter(state, pod).status.is_success:
                return
            runner.filter(state, pod, np.array([row], dtype=np.int64))
        except PluginError:
            return
        for giver in givers:
            for claim, allocation in giver.allocations(state, self._picture.node_name(row)):
                users = (ConsumerReference(resource="pods", name=pod.name, uid=pod.uid),)
                status = ResourceClaimStatus(allocation=allocation, reserved_for=users)
                meta = claim.metadata
                if claim.for_extended_resources:
                    # Such claims are not written yet and share one name.
                    meta = replace(meta, name=f"{meta.name}/{meta.uid}")
                self._transaction.put(replace(claim, metadata=meta, status=status))
