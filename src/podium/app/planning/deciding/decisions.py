"""Decisions about many pods, one after the other, each on what those before it have left; all of it is taken back.

Time stands still: pods that are placed stay, victims are gone at once, and whoever replaces them comes back only where
that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.app.cluster import Cluster as LoadedCluster
from podium.app.explaining.gang import decide_gang, gang_plugin
from podium.app.planning.chances.draws import Draws
from podium.app.planning.deciding.fates import Settled, note_likeness
from podium.app.planning.deciding.settling import Settling
from podium.app.planning.deciding.supposed_cluster import SupposedCluster
from podium.app.planning.deciding.workloads import Workloads
from podium.cluster.pods import PodRecord


class Decisions(SupposedCluster):
    """A loaded cluster on which many decisions are made."""

    def __init__(self, loaded: LoadedCluster) -> None:
        """Raises InputError for a pod that no API server would have taken."""
        explainer = loaded.explainer
        super().__init__(explainer.cluster, explainer.runners, explainer.objects)
        self.loaded = loaded
        self._made = explainer.made
        # By uid, how pods are written that are not there, and for which claims are made.
        self._written: dict[str, Pod] = {}
        self._seed = 0
        self._draws: Draws | None = None
        self.pending = self.in_order(explainer.waiting)
        self.workloads = Workloads(self.objects, self.cluster, self.pending)
        for pod in self.pending:
            note_likeness(pod, self.runners.get(pod.scheduler_name))

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        """The pods that were read, by key."""
        return {item.key: item for item in self.objects if isinstance(item, Pod)}

    def read(self, pod: Pod) -> PodRecord:
        """A pod that is not there, as the API server would have stored it, without its claims. Raises InputError."""
        return self._known(pod, *self._made(pod))

    def bring(self, pod: Pod) -> PodRecord:
        """The same, with the claims that are made for it, which are supposed to be there."""
        stored, claims = self._made(pod)
        for claim in claims:
            self.put(claim)
        return self._known(pod, stored, claims)

    def _known(self, pod: Pod, stored: Pod, claims: Sequence[Kubernetes]) -> PodRecord:
        record = self.cluster.read(stored)
        if claims:
            self._written[record.uid] = pod
        return record

    def copies(self, pod: PodRecord, number: int) -> Iterator[PodRecord]:
        """So many pods that differ in nothing but their names, and the claims that are made for each."""
        written = self._written.get(pod.uid)
        for place in range(1, number + 1):
            name = f"{pod.name}-{place}"
            if written is None:
                yield replace(pod, name=name, uid=f"{pod.uid}/{place}")
            else:
                yield self.bring(replace(written, metadata=replace(written.metadata, name=name)))

    def changed(self, record: PodRecord, change: Callable[[Pod], Pod]) -> PodRecord:
        """The pod as it would be if it were written otherwise. Raises InputError where no API server would take it."""
        pod = self.pods.get(record.key)
        if pod is None:
            return record
        written = change(pod)
        if written is pod:
            return record
        found = self.cluster.read(self._made(written)[0])
        return replace(
            record,
            pod_class=found.pod_class,
            priority=found.priority,
            preemption_policy=found.preemption_policy,
            gates=found.gates,
            scheduler_name=found.scheduler_name,
        )

    def is_of_gang(self, pod: PodRecord) -> bool:
        """Whether the pod's scheduler places it with others of its group, or not at all."""
        runner = self.runners.get(pod.scheduler_name)
        return runner is not None and bool(pod.pod_class.pod_group) and gang_plugin(runner) is not None

    def told_of_gang(self, pod: PodRecord) -> str:
        """How much the gang of a pod that waits lacks, in words to be followed by others; "" where it is not tried."""
        runner = self.runners[pod.scheduler_name]
        decision = decide_gang(runner, pod, preempts=False) if runner.pre_enqueue(pod).is_success else None
        return "" if decision is None or decision.placement.problem else f"its gang {decision.headline}; "

    def least_of_gang(self, pod: PodRecord) -> int:
        """How many pods of the pod's group get nodes together or not at all; 0 where there is no such group."""
        group = self.cluster.pod_groups.of(pod)
        return 0 if group is None else group.min_count

    def is_in_one_domain(self, pod: PodRecord) -> bool:
        """Whether all pods of the pod's group are to be in one topology domain."""
        group = self.cluster.pod_groups.of(pod)
        return group is not None and bool(group.topology_key)

    @contextmanager
    def drawing(self, seed: int, draws: Draws | None = None) -> Iterator[None]:
        """What is decided within draws among equals by a seed; ``draws`` notes the draws."""
        before = self._seed, self._draws
        self._seed, self._draws = seed, draws
        try:
            yield
        finally:
            self._seed, self._draws = before

    def settle(self, pods: Iterable[PodRecord], *, preempts: bool = False, comes_back: bool = False) -> Settled:
        """Let pods get nodes, each as its scheduler decides on what those before it have left, and gangs as a whole.

        With ``preempts`` they preempt where they may; whoever is preempted leaves at once, and with ``comes_back`` the
        pod that its controller makes in its place waits with the others. They are tried in the order of the queue,
        again and again until nobody finds a place any more.
        """
        settling = Settling(self, self._seed, self._draws, preempts=preempts)
        return settling.settle(pods, comes_back=comes_back)
