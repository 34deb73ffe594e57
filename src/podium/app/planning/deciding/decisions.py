"""Decisions about many pods, one after another, on a cluster whose what-if changes are rolled back.

Time does not advance: placed pods stay, victims leave at once, and their replacements come only on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import count, islice
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace

from podium.api import storage
from podium.api.basis import MOST_NAMES, Caveat
from podium.api.input.codec import Document
from podium.api.meta import Kubernetes, plain
from podium.api.pod import Pod
from podium.app.cluster import Cluster as LoadedCluster
from podium.app.console.cells import by_key, counted
from podium.app.console.page import Section
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.gang import GangDecision, decide_gang, gang_plugin
from podium.app.explaining.obstacles import Obstacle
from podium.app.explaining.workload import next_pods
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.deciding.attempts import FailedAttempts, PodKind, kind_of, note_shared_kind, preemption_of
from podium.app.planning.outcomes import SampledOutcomes, SampledRun, TieBreaks, WorkloadLoss, sampled
from podium.app.planning.scenarios import scenario_of_spec
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.controllers.scheduling.queue.hints import Rejections, registrations_of
from podium.controllers.volumes import provisioned
from podium.decide.placement import Placement, full_outcome, place, rejecting_plugins
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING
from podium.decide.transaction import ClusterTransaction
from podium.framework.handle import CycleState
from podium.framework.plugin import ClaimBinding, is_own
from podium.framework.runner import Runner
from podium.framework.verdicts import Outcome, PluginError, Status
from podium.sim.run_options import RunOptions

DAEMON_SET = "DaemonSet"
_OF_NODES = (DAEMON_SET, "Node")
CAPPED, VICTIMS = "capped", "victims"
"""The types of obstacles to a preemption that would help: a cap on disruptions, and victims that terminate."""

AGAIN = "/again"
"""What a replacement has at the end of its uid."""

Claims = Sequence[storage.PersistentVolumeClaim]

# A CronJob owns Jobs, a Deployment ReplicaSets.
_MAX_OWNERS = 2


class PlacedPod(Struct, frozen=True):
    """A pod that gets a node, and the pods that it preempts there, the most important first."""

    pod: PodRecord
    node: str
    victims: tuple[PodRecord, ...] = ()


class QueueResult(Struct, frozen=True):
    """The pods that get a node, in that order, and those that wait.

    ``postponed`` has by kind what a helpful preemption waits for: a cap on disruptions, or victims that terminate.
    """

    placed: tuple[PlacedPod, ...]
    waiting: tuple[PodRecord, ...]
    postponed: Mapping[PodKind, Obstacle] = {}

    @property
    def preemptors(self) -> dict[str, PlacedPod]:
        """The preemptor of each victim, by the victim's uid."""
        return {victim.uid: each for each in self.placed for victim in each.victims}

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """The caveat about pods that get a node on which earlier ones preempt; a gang preempts once for all of it."""
        preempting, pods = set[str](), list[str]()
        for each in self.placed:
            if each.node in preempting and not each.pod.pod_class.pod_group:
                pods.append(each.pod.key)
            if each.victims:
                preempting.add(each.node)
        what = f"{counted(len(pods), 'pod', 'gets')} the room of other pods' victims, which are assumed to end at once"
        message = f"{what}; while they end, kube-scheduler may preempt more, as podium simulate shows"
        return (Caveat("room-of-victims", message, len(pods), tuple(pods[:MOST_NAMES])),) if pods else ()

    def victims_by(self, workloads: Workloads) -> Counter[str]:
        return Counter(workloads.of(victim) for each in self.placed for victim in each.victims)


class Workloads:
    """The topmost owners of pods: of those on nodes when this is made, and of the ``pending`` ones."""

    def __init__(self, objects: Sequence[Kubernetes], cluster: Cluster, pending: Iterable[PodRecord]) -> None:
        self._objects = objects
        self._cluster = cluster
        self._records = (*cluster.placed.values(), *pending)

    def of(self, pod: PodRecord) -> str:
        """Return the pod's topmost owner, as in `Deployment shop/web`; the pod itself if it has no controller."""
        controller = pod.controller
        if controller is None:
            return f"Pod {pod.key}"
        label = f"{controller.kind} {pod.namespace}/{controller.name}"
        for _ in range(_MAX_OWNERS):
            label = self._owners.get(label, label)
        return label

    def of_kind(self, pods: Sequence[PodRecord]) -> str:
        """Return the workload of pods of one kind; pods without a controller are counted."""
        workloads = list(dict.fromkeys(map(self.of, pods)))
        return workloads[0] if len(workloads) == 1 else f"{workloads[0]} and {len(workloads) - 1:,} like it"

    def placed(self, workload: str) -> list[PodRecord]:
        """Return the pods of a workload that have a node, by key."""
        found = (self._cluster.placed.get(uid) for uid in self._uids.get(workload, ()))
        return sorted(filter(None, found), key=lambda record: record.key)

    @cached_property
    def daemons(self) -> tuple[PodRecord, ...]:
        """One pod of each DaemonSet, by key: the pods that a new node gets."""
        found: dict[str, PodRecord] = {}
        for record in sorted(self._cluster.placed.values(), key=lambda record: record.key):
            if record.controller is not None and record.controller.kind == DAEMON_SET:
                found.setdefault(record.owner_uid, record)
        return tuple(record.without_node() for record in found.values())

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        """The owner of each controller that has one, such as a Deployment's ReplicaSet."""
        return {
            f"{item.kind} {item.key}": f"{controller.kind} {item.metadata.namespace}/{controller.name}"
            for item in self._objects
            if not isinstance(item, Pod) and (controller := item.metadata.controller) is not None
        }

    @cached_property
    def _uids(self) -> Mapping[str, dict[str, None]]:
        found: dict[str, dict[str, None]] = {}
        for record in self._records:
            found.setdefault(self.of(record), {})[record.uid] = None
        return found


class Decisions:
    """A loaded cluster on which many decisions are made. Only its owner may use it inside `what_if`."""

    def __init__(self, source: LoadedCluster | Explainer) -> None:
        """Raise InputError for a pod that no API server would have accepted.

        An explainer suffices for decisions, but not for answers about the input.
        """
        explainer = source if isinstance(source, Explainer) else source.explainer
        self._source = source
        self.cluster, self.runners, self.objects = explainer.cluster, explainer.runners, explainer.objects
        self.scratch = ClusterTransaction(self.cluster, self.runners)
        self.added: list[Kubernetes] = []
        """The objects of `put`, in order."""
        self._made = explainer.made
        # The copies of what-if pods with claims of their own, by uid, with claims for volumes.
        self._copies: dict[str, Callable[[], Iterator[tuple[Pod, Claims]]]] = {}
        self._seed = 0
        self._ties: TieBreaks | None = None
        self.pending = self.in_order(explainer.waiting)
        self.workloads = Workloads(self.objects, self.cluster, self.pending)
        mounted = Counter(f"{pod.namespace}/{name}" for pod in self.pending for name in pod.pod_class.claims)
        # The volume claims that several pods may use; only these have to be bound when the first one is placed.
        self._shared = {claim for claim, pods in mounted.items() if pods > 1}
        for pod in self.pending:
            note_shared_kind(pod, self.runners.get(pod.scheduler_name))

    @property
    def loaded(self) -> LoadedCluster:
        """The loaded input."""
        if isinstance(self._source, Explainer):
            raise AssertionError("these decisions are about no loaded input")
        return self._source

    def in_order(self, pods: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
        """Return the pods in queue order."""
        return tuple(sorted(pods, key=self.order_of))

    def order_of(self, pod: PodRecord) -> tuple[object, ...]:
        """Return the pod's sort key in the queue: by importance, then age, then key, then uid."""
        runner = next(iter(self.runners.values()))
        return *runner.sort_key(pod, pod.created_ns), pod.key, pod.uid

    @contextmanager
    def what_if(self) -> Iterator[ClusterTransaction]:
        """Roll back all changes and decisions made inside the context."""
        with self.scratch.temporarily():
            yield self.scratch

    def put(self, item: Kubernetes) -> None:
        """Add or replace a node, a budget, or a storage or device object."""
        self.scratch.put(item)
        self.added.append(item)
        self.scratch.on_roll_back(self.added.pop)

    def reserve(self, runner: Runner, state: CycleState, pod: PodRecord, node: str) -> bool:
        """Reserve volumes and devices for the pod as its scheduler does. Return whether that succeeds.

        Claims that other pods may use as well have their volume or devices then, as after the pod is bound.
        """
        mark = self.scratch.savepoint()
        for plugin in runner.profile.reserve:
            self.scratch.on_roll_back(partial(plugin.unreserve, state, pod, node))
            if not plugin.reserve(state, pod, node).is_success:
                self.scratch.roll_back(mark)
                return False
        for binder in filter(is_own, runner.profile.pre_bind):
            requests = binder.pre_bind(state, pod, node)
            for request in () if isinstance(requests, Status) else requests:
                allocated = self.cluster.devices.in_flight.get(request.uid)
                if allocated is not None:
                    self.put(allocated)
                elif isinstance(request, ClaimBinding) and request.claim in self._shared:
                    known = self.cluster.storage
                    claim, volume = known.claims[request.claim], known.volumes.get(request.volume)
                    self.bind(claim, volume or self._provisioned(claim, node))
        return True

    def bind(self, claim: storage.PersistentVolumeClaim, volume: storage.PersistentVolume) -> None:
        """Bind the claim and the volume to each other."""
        meta = claim.metadata
        owner = storage.ClaimReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
        self.put(replace(volume, spec=replace(volume.spec, claim_ref=owner)))
        bound = replace(meta, annotations={**meta.annotations, storage.BIND_COMPLETED: "yes"})
        spec, status = replace(claim.spec, volume_name=volume.metadata.name), replace(claim.status, phase="Bound")
        self.put(replace(claim, metadata=bound, spec=spec, status=status))

    def _provisioned(self, claim: storage.PersistentVolumeClaim, node_name: str) -> storage.PersistentVolume:
        """Return the volume that the claim's driver makes for a node."""
        known, nodes = self.cluster.storage, self.cluster.nodes
        node, csi_node = nodes.node(nodes.row_of[node_name]), known.csi_nodes.get(node_name)
        made = provisioned(claim, plain(claim), known.classes[claim.class_name], node, csi_node)
        return convert(made, storage.PersistentVolume)

    def place(self, pod: PodRecord, node: str) -> None:
        """Put the pod on a node and end its nomination."""
        self.end_nomination(pod)
        self.scratch.place(pod, self.cluster.nodes.row_of[node])

    def nominate(self, pod: PodRecord, node: str, victims: Sequence[PodRecord]) -> None:
        """Nominate the pod to the node that its victims leave."""
        self.end_nomination(pod)
        nominations = self.cluster.nominations
        nominations.put(pod, node, [victim.uid for victim in victims])
        self.scratch.on_roll_back(partial(nominations.remove, pod.uid))

    def end_nomination(self, pod: PodRecord) -> bool:
        """End the pod's nomination; return whether it had one."""
        nominations = self.cluster.nominations
        victims, node = nominations.victims_of(pod.uid), nominations.remove(pod.uid)
        if node:
            self.scratch.on_roll_back(partial(nominations.put, pod, node, victims))
        return bool(node)

    @staticmethod
    def is_replaced(pod: PodRecord) -> bool:
        """Return whether a controller replaces the pod if it is preempted, on whatever node."""
        return pod.controller is not None and pod.controller.kind not in _OF_NODES

    def preempt(self, victims: Sequence[PodRecord]) -> None:
        """Remove the victims, and count them against the schedulers' caps and the budgets."""
        caps, budgets = self.cluster.caps, self.cluster.budgets
        before = dict(caps.full)
        counted = Counter(
            victim.namespace for victim in victims if victim.is_healthy and budgets.counts(victim.pod_class)
        )
        needs = caps.needs(counted)
        if needs and caps.shortage(needs) is None:
            caps.take(needs)
            self.scratch.on_roll_back(lambda: caps.assume(before))
        for victim in victims:
            for budget in list(budgets.over(victim.pod_class)):
                known = budgets.objects[budget.key]
                if victim.ready and known.status.disruptions_allowed > 0:
                    status = replace(known.status, disruptions_allowed=known.status.disruptions_allowed - 1)
                    self.put(replace(known, status=status))
        for victim in victims:
            self.scratch.take_off(victim.uid)
            self.scratch.leave_group(victim)
            self.scratch.release_devices(victim, (each.resource_claim_name for each in victim.spec.resource_claims))

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        """The pods of the input, by key."""
        return {item.key: item for item in self.objects if isinstance(item, Pod)}

    def admitted(self, pod: Pod) -> Pod:
        """Return a new pod as the API server would store it, without its claims. Raises InputError."""
        return self._made(pod)[0]

    def create(self, pod: Pod) -> PodRecord:
        """Return a new pod as the API server would store it, and add the claims that are made for it."""
        meta = pod.metadata
        return self._created(
            pod, (), lambda: ((replace(pod, metadata=replace(meta, name=f"{meta.name}-{n}")), ()) for n in count(1))
        )

    def create_next(self, document: Document, known: Collection[str] = ()) -> PodRecord:
        """Return the pod that a workload would create next beside those of ``known`` names, with its claims.

        The pods of a StatefulSet return to claims that exist.
        """
        return self._created(*next(next_pods(document, known)), partial(next_pods, document, known))

    def _created(self, pod: Pod, volumes: Claims, copies: Callable[[], Iterator[tuple[Pod, Claims]]]) -> PodRecord:
        """Return a new pod, and add its claims for devices and volumes; with such, it has these copies."""
        stored, claims = self._made(pod, volumes)
        for claim in claims:
            self.put(claim)
        record = self.cluster.read(stored)
        if (claims or volumes) and record.uid not in self._copies:
            self._copies[record.uid] = copies
            self.scratch.on_roll_back(partial(self._copies.pop, record.uid, None))
        return record

    def copies(self, pod: PodRecord, number: int) -> Iterator[PodRecord]:
        """Yield pods that differ only in their names and in the claims that are made for each."""
        copies = self._copies.get(pod.uid)
        if copies is not None:
            yield from (self._created(*made, copies) for made in islice(copies(), number))
            return
        self._shared |= {f"{pod.namespace}/{name}" for name in pod.pod_class.claims}
        for index in range(1, number + 1):
            yield replace(pod, name=f"{pod.name}-{index}", uid=f"{pod.uid}/{index}")

    def rewritten(self, record: PodRecord, change: Callable[[Pod], Pod]) -> PodRecord:
        """Return the pod with a changed manifest. Raises InputError if no API server would accept that."""
        pod = self.pods.get(record.key)
        manifest = None if pod is None else change(pod)
        if manifest is None or manifest is pod:
            return record
        # Its claims exist already.
        return replace(self.cluster.read(self.admitted(manifest)), made_claims=record.made_claims)

    @cached_property
    def rejections(self) -> Rejections:
        """The events for which pods wait that plugins have rejected."""
        return Rejections(registrations_of(self.cluster, self.runners)[0])

    def rejecting_plugins(self, pod: PodRecord) -> tuple[str, ...]:
        """Return the plugins that reject the pod, sorted; none if another attempt may succeed, as after an error."""
        runner = self.runners.get(pod.scheduler_name)
        if runner is None or self.is_of_gang(pod):
            return ()
        gate = runner.pre_enqueue(pod)
        if not gate.is_success:
            return (gate.plugin,)
        try:
            return _plugins_of(place(runner, pod, self._seed, detailed=False))
        except PluginError:
            return ()

    def is_of_gang(self, pod: PodRecord) -> bool:
        """Return whether the pod's scheduler places it with others of its group or not at all."""
        runner = self.runners.get(pod.scheduler_name)
        return runner is not None and bool(pod.pod_class.pod_group) and gang_plugin(runner) is not None

    def schedule(
        self,
        pods: Iterable[PodRecord],
        *,
        preempts: bool = False,
        replaces: bool = False,
        seed: int = 0,
        ties: TieBreaks | None = None,
        failed: FailedAttempts | None = None,
    ) -> QueueResult:
        """Place the pods in queue order, gangs as a whole, each beside those before it.

        With ``preempts`` they preempt where they may; victims leave at once, and with ``replaces`` the replacements
        that their controllers make join the queue. Waiting pods are tried again until no further pod finds a node.
        Ties are broken by a ``seed``, and recorded by ``ties``. ``failed`` has attempts that have failed before.
        """
        failed = FailedAttempts(self.cluster, {}, preempts=preempts) if failed is None else failed
        self._seed, self._ties = seed, ties
        placed: list[PlacedPod] = []
        postponed: dict[PodKind, Obstacle] = {}
        left = list(self.in_order(pods))
        while left:
            for pod in left:
                self.scratch.join_group(pod)
            tried, left = left, []
            hopeless: set[PodKind] = set()
            number = len(placed)
            replacements: list[PodRecord] = []
            done: set[str] = set()
            for pod in tried:
                if pod.uid in done:
                    continue
                attempt = partial(self.attempt, pod, failed=failed, postponed=postponed)
                found = () if kind_of(pod) in hopeless else failed.attempt(pod, attempt)
                if not found:
                    hopeless.add(kind_of(pod))
                    left.append(pod)
                    continue
                placed += found
                done.update(each.pod.uid for each in found)
                if pod.uid not in done:
                    # Only others of its gang fit.
                    left.append(pod)
                victims = [victim for each in found for victim in each.victims]
                if victims:
                    hopeless.clear()
                    failed.leave(victims)
                    replacements += map(replacement, filter(self.is_replaced, victims)) if replaces else ()
            if len(placed) == number:
                break
            left = list(self.in_order([*(pod for pod in left if pod.uid not in done), *replacements]))
        return QueueResult(tuple(placed), tuple(left), postponed)

    def attempt(
        self,
        pod: PodRecord,
        *,
        failed: FailedAttempts | None = None,
        nominates: bool = False,
        postponed: dict[PodKind, Obstacle] | None = None,
    ) -> tuple[PlacedPod, ...]:
        """Place the pod, or its whole gang; () if it waits, for what ``postponed`` then says.

        It may preempt others if ``failed`` says so. With ``nominates`` a single pod that preempts is nominated, and
        placed otherwise.
        """
        runner, ties = self.runners.get(pod.scheduler_name), self._ties
        preempts = failed is not None and failed.preempts
        if runner is None or pod.terminating or not runner.pre_enqueue(pod).is_success:
            return ()
        detailed = ties is not None
        try:
            gang = decide_gang(runner, pod, preempts=preempts, alike=kind_of, seed=self._seed, detailed=detailed)
            if gang is not None:
                if ties is not None:
                    ties.record_group(runner, gang.placement)
                return self._place_gang(runner, gang)
            if ties is not None:
                ties.record(runner, pod, preempts=preempts)
            placement = place(runner, pod, self._seed, detailed=False)
            if placement.row is None:
                if failed is None or placement.error:
                    return ()
                failed.plugins[kind_of(pod)] = _plugins_of(placement)
                outcome = full_outcome(self.cluster, placement) if preempts else None
                if outcome is None or not failed.may_preempt(pod, outcome.resolvable()):
                    return ()
                return self._preempt(runner, placement, outcome, {} if postponed is None else postponed, nominates)
            name = self.cluster.nodes.name(placement.row)
            if self.reserve(runner, placement.state, pod, name):
                self.place(pod, name)
                return (PlacedPod(pod, name),)
        except PluginError:
            pass
        return ()

    def _preempt(
        self,
        runner: Runner,
        placement: Placement,
        outcome: Outcome,
        postponed: dict[PodKind, Obstacle],
        nominates: bool,
    ) -> tuple[PlacedPod, ...]:
        pod, plugin = placement.pod, preemption_of(runner)
        if plugin is None:
            return ()
        plan = plugin.plan(placement.state, pod, runner, outcome, seed=self._seed)
        if plan.chosen is not None:
            victims, node = plan.chosen.victims, plan.chosen.node_name
            self.preempt(victims)
            if nominates:
                self.nominate(pod, node, victims)
            else:
                self.reserve(runner, placement.state, pod, node)
                self.place(pod, node)
            return (PlacedPod(pod, node, victims),)
        if plan.put_off is not None:
            postponed[kind_of(pod)] = Obstacle(CAPPED, f"preemption is put off: {plan.put_off.cap}")
        elif plan.reason == NOT_ELIGIBLE_TERMINATING:
            text = f"the pods that it preempted on {pod.nominated_node_name} still terminate"
            postponed[kind_of(pod)] = Obstacle(VICTIMS, text)
        return ()

    def _place_gang(self, runner: Runner, gang: GangDecision) -> tuple[PlacedPod, ...]:
        """Place the gang's pods, those that fit now or those that do after their common victims have left.

        Victims on other nodes than the members' count for the first member.
        """
        placements = () if gang.way_out is None else gang.way_out.placements
        if gang.placement.is_enough:
            members = [member for member in gang.placement.members if member.fits]
            for member in members:
                self.reserve(runner, member.placement.state, member.pod, member.node_name)
                self.place(member.pod, member.node_name)
            return tuple(PlacedPod(member.pod, member.node_name) for member in members)
        if gang.way_out is None or not placements:
            return ()
        self.preempt(gang.way_out.victims)
        nodes, first = {node for _, node in placements}, placements[0][1]
        for pod, node in placements:
            state = CycleState()
            runner.pre_filter(state, pod)
            self.reserve(runner, state, pod, node)
            self.place(pod, node)
        victims = by_key((each.node_name if each.node_name in nodes else first, each) for each in gang.way_out.victims)
        # The first of several members on one node is the preemptor.
        return tuple(PlacedPod(pod, node, tuple(victims.pop(node, ()))) for pod, node in placements)


def _plugins_of(placement: Placement) -> tuple[str, ...]:
    """Return the plugins that reject a pod, sorted; none after an error, since another attempt may succeed."""
    return () if placement.error else tuple(sorted(rejecting_plugins(placement)))


def replacement(pod: PodRecord, **others: Any) -> PodRecord:
    """Return the pod that a controller makes in place of one that leaves; ``others`` are fields of it."""
    fields = {"start_ns": NOT_STARTED_NS, "ready": False, "terminating": False, "preempted": False}
    return pod.without_node(**{"uid": f"{pod.uid}{AGAIN}", **fields, **others})


def sampled_decisions(
    decisions: Decisions, pods: Sequence[PodRecord], samples: int, *, preempts: bool = True, replaces: bool = False
) -> SampledOutcomes | None:
    """Schedule the pods ``samples`` times with different tie-breaks; None for no samples."""
    if not samples:
        return None

    def run(seed: int, ties: TieBreaks | None = None) -> SampledRun:
        with decisions.what_if():
            result = decisions.schedule(pods, preempts=preempts, replaces=replaces, seed=seed, ties=ties)
            disrupted = result.victims_by(decisions.workloads)
            missing = Counter(map(decisions.workloads.of, result.waiting))
        names = sorted({*disrupted, *missing})
        losses = tuple(WorkloadLoss(name, disrupted[name], missing[name]) for name in names)
        return SampledRun(losses, frozenset((each.pod.key, each.node) for each in result.placed))

    ties = TieBreaks(0)
    return sampled(run(0, ties), ties, run, samples, decisions.cluster.now)


def decided_answer(
    decisions: Decisions,
    question: str,
    headline: str,
    sections: Sequence[Section],
    outcomes: SampledOutcomes | None = None,
    **others: Any,
) -> PlanAnswer:
    """Return the answer to a question that is decided; its scenario is by default that of the input."""
    loaded, settings = decisions.loaded, decisions.loaded.settings
    options = RunOptions(
        configuration=settings.configuration, release=settings.release, ignore_extenders=settings.ignore_extenders
    )
    given = {"caveats": loaded.caveats, "scenario": scenario_of_spec(loaded.read, question, {}), **others}
    shown = (*sections, *(() if outcomes is None else outcomes.sections()))
    return PlanAnswer(question, headline, read=loaded.read, options=options, sections=shown, **given)
