"""A cluster of which it is asked what would happen to its pods now, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from types import MappingProxyType

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.errors import InputError, PodiumError
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import PriorityClass
from podium.api.present import newest_time
from podium.api.resource_claims import ResourceClaim
from podium.api.storage import PersistentVolumeClaim
from podium.app.explaining.admission import Defaults, admitted, claim_admitted, group_admitted, with_levels
from podium.app.explaining.decided import explain_decision, explain_with_group
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.made_claims import with_made_claims
from podium.app.explaining.placed import explain_placed
from podium.cluster.cluster import Cluster
from podium.cluster.feed import Feed
from podium.cluster.pods import PodRecord
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.framework.settings.profile_builder import build_profiles
from podium.framework.settings.registry import Registry
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.registry import IN_TREE
from podium.sim.results.disruption_state import DisruptionState, disruption_state
from podium.store.errors import StoreError


def _let_in(pod: Pod, classes: Mapping[str, PriorityClass], defaults: Defaults) -> Pod:
    """The pod as the API server would have stored it. Raises InputError for one that it would have refused."""
    try:
        return admitted(pod, classes, defaults)
    except StoreError as error:
        raise InputError(error.message, object=f"Pod {pod.key}") from None


def _let_group_in(group: PodGroup, classes: Mapping[str, PriorityClass]) -> PodGroup:
    """The same for a PodGroup."""
    try:
        return group_admitted(group, classes)
    except StoreError as error:
        raise InputError(error.message, object=f"PodGroup {group.key}") from None


class Explainer:
    """A loaded cluster that answers for one pod after another."""

    def __init__(
        self,
        objects: Iterable[Kubernetes],
        configuration: Configuration | None = None,
        feature_gates: FeatureGates = FeatureGates(),  # noqa: B008 - an immutable value
        *,
        now_ns: int | None = None,
    ) -> None:
        """Load the objects, as they are at ``now_ns``; None is the newest time in them.

        Raises PodiumError for a pod, or PodGroup, that no API server would have taken.
        """
        objects = self._objects = list(objects)
        self._now_ns = newest_time(objects) if now_ns is None else now_ns
        self.cluster = Cluster(honors_policy=feature_gates.non_preempting_priority)
        self._feed = Feed(self.cluster)
        self._pending: dict[str, PodRecord] = {}
        pods, later, classes, policies = [], [], dict[str, PriorityClass](), []
        defaults = Defaults()
        for item in _in_order(objects):
            if isinstance(item, Pod):
                pods.append(item)
            elif isinstance(item, PodGroup | PersistentVolumeClaim | ResourceClaim):
                later.append(item)
            elif isinstance(item, PriorityClass):
                classes[item.metadata.name] = item
            elif isinstance(item, DisruptionPolicy):
                policies.append(item)
                self._feed.changed(item)
            else:
                defaults.take(item)
                self._feed.changed(item)
        self.cluster.pass_time(self._now_ns)
        given = set(classes)
        for policy in policies:
            classes |= with_levels(policy, classes)
        self._levels = [priority_class for name, priority_class in classes.items() if name not in given]
        profiles = build_profiles(configuration or default_configuration(), Registry(IN_TREE), self.cluster)
        self._runners = {name: Runner(profile, self.cluster) for name, profile in profiles.items()}
        self._disruptions = self._disruptions_among(objects)
        self._let_in = partial(_let_in, classes=classes, defaults=defaults)
        self._let_group_in = partial(_let_group_in, classes=classes)
        self._defaults = defaults
        # By the key of a pod, the claims that were made for it here.
        self._made: dict[str, tuple[Kubernetes, ...]] = {}
        self._feed_all(map(self._let_other_in, later))
        for pod in sorted(pods, key=lambda pod: pod.key):
            self._take_in(self._let_in(pod))
        for plugin in chain.from_iterable(profile.post_filter for profile in profiles.values()):
            if isinstance(plugin, DefaultPreemption):
                plugin.prepare()

    def explain(self, pod: str, scheduler: str = "") -> Explanation:
        """Explain the pod ``namespace/name``: what would become of a pending one, why a placed one is where it is.

        ``scheduler`` names the profile that decides; without it, the one that the pod asks for. Raises PodiumError for
        a pod that is not there.
        """
        record = self._pending.get(pod)
        if record is not None:
            return self._told(explain_with_group(self._runner_of(record, scheduler), record))
        placed = next((record for record in self.cluster.placed.values() if record.key == pod), None)
        if placed is None:
            raise PodiumError(f"pod {pod} is not in the input; pending there: {_some(sorted(self._pending))}")
        pending = [self._pending[key] for key in sorted(self._pending)]
        runner = self._runner_of(placed, scheduler)
        return self._told(explain_placed(runner, placed, pending, self._runners, explain_decision))

    def explain_made(self, pod: Pod, claims: Iterable[PersistentVolumeClaim] = (), scheduler: str = "") -> Explanation:
        """Explain a pod that is not in the input, with claims that would be made for it; none of them stays."""
        pod, made = self.made(pod)
        as_decided = partial(self._with_claims, (*map(self._let_claim_in, claims), *made))
        with as_decided():
            record = self.cluster.read(pod)
            explanation = explain_with_group(self._runner_of(record, scheduler), record)
            if explanation.gang is not None:
                return self._told(explanation)
        return self._told(replace(explanation, as_decided=as_decided))

    def is_pod(self, key: str) -> bool:
        """Whether there is such a pod that has not ended."""
        return key in self._pending or any(record.key == key for record in self.cluster.placed.values())

    def _let_claim_in(self, claim: Kubernetes) -> Kubernetes:
        if isinstance(claim, PersistentVolumeClaim):
            return claim_admitted(claim, self._defaults.storage_classes)
        return claim_admitted(claim, ()) if isinstance(claim, ResourceClaim) else claim

    def _let_other_in(self, item: Kubernetes) -> Kubernetes:
        return self._let_group_in(item) if isinstance(item, PodGroup) else self._let_claim_in(item)

    def _is_there(self, claim: Kubernetes) -> bool:
        return self.cluster.find(claim) is not None

    def _feed_all(self, objects: Iterable[Kubernetes]) -> None:
        for item in objects:
            self._feed.changed(item)

    @contextmanager
    def _with_claims(self, claims: tuple[Kubernetes, ...]) -> Iterator[None]:
        """The cluster as it is with the claims that are not there yet."""
        added = [claim for claim in claims if not self._is_there(claim)]
        for claim in added:
            self.cluster.put(claim)
        try:
            yield
        finally:
            for claim in added:
                self.cluster.remove(claim)

    def change(self, objects: list[Kubernetes], gone: Iterable[Kubernetes], come: Iterable[Kubernetes]) -> None:
        """The cluster is another from now on: ``objects``, of which ``come`` were not there, without ``gone``.

        What all pods get something from, such as PriorityClasses, is not among these, nor is there later news. Raises
        PodiumError, as the constructor does, before anything is changed.
        """
        arriving = list(come)
        staying = {(item.kind, item.key) for item in arriving}
        pods = [self._let_in(item) for item in arriving if isinstance(item, Pod)]
        others = [self._let_other_in(item) for item in _in_order(arriving) if not isinstance(item, Pod)]
        self._objects, self._disruptions = objects, self._disruptions_among(objects)
        for item in gone:
            if isinstance(item, Pod):
                self._pending.pop(item.key, None)
                self._feed.settle(self._feed.pod_gone(item))
                for claim in self._made.pop(item.key, ()):
                    self._feed.gone(claim)
            elif (item.kind, item.key) not in staying:
                self._feed.gone(self._let_claim_in(item))
        self._feed_all(others)
        for pod in sorted(pods, key=lambda pod: pod.key):
            self._take_in(pod)
        for record in self._pending.values():
            # Whether a pod is gated may hang on other objects, such as its claims.
            self._nominate(record)

    @property
    def can_change(self) -> bool:
        """Whether pods may go again: who replaces an evicted one hangs on those that have come and gone before."""
        return not self.cluster.replacements.awaited

    def _disruptions_among(self, objects: list[Kubernetes]) -> Callable[[], DisruptionState]:
        return cache(lambda: disruption_state([*objects, *self._levels], self._now_ns))

    def _told(self, explanation: Explanation) -> Explanation:
        return replace(explanation, disruptions_found=self._disruptions)

    def _runner_of(self, record: PodRecord, scheduler: str) -> Runner:
        """The profile that decides about a pod. Raises PodiumError for one that is not configured."""
        wanted = scheduler or record.scheduler_name
        runner = self._runners.get(wanted)
        if runner is None:
            known = ", ".join(sorted(self._runners))
            raise PodiumError(f"pod {record.key} is for scheduler {wanted}, which is not configured; there is: {known}")
        return runner

    @property
    def disruptions(self) -> DisruptionState:
        """What holds for disruptions in the cluster: budgets, caps, quotas and avoid lists."""
        return self._disruptions()

    @property
    def schedulers(self) -> list[str]:
        """The names of the profiles that decide."""
        return sorted(self._runners)

    @property
    def pending(self) -> list[str]:
        """The keys of the pods that can be explained."""
        return sorted(self._pending)

    @property
    def objects(self) -> Sequence[Kubernetes]:
        """What was loaded, budgets with a status."""
        return self._objects

    @property
    def waiting(self) -> list[PodRecord]:
        """The pods without a node, by key."""
        return [self._pending[key] for key in sorted(self._pending)]

    @property
    def runners(self) -> Mapping[str, Runner]:
        """Who decides, by the name of the profile."""
        return MappingProxyType(self._runners)

    def made(self, pod: Pod) -> tuple[Pod, tuple[Kubernetes, ...]]:
        """A pod as the API server would have stored it, and the claims that are made for it, none of which is there.

        Raises InputError for one that no API server would have taken.
        """
        pod, claims = with_made_claims(self._let_in(pod), self._defaults.claim_templates, self._is_there)
        return pod, tuple(map(self._let_claim_in, claims))

    def _take_in(self, pod: Pod) -> None:
        pod, claims = with_made_claims(pod, self._defaults.claim_templates, self._is_there)
        if claims:
            self._made[pod.key] = tuple(map(self._let_claim_in, claims))
            self._feed_all(self._made[pod.key])
        change = self._feed.pod_changed(pod)
        record = change.after
        if record is None:
            return
        if record.node_name:
            self._feed.settle(change)
            return
        self._pending[record.key] = record
        self._nominate(record)

    def _nominate(self, record: PodRecord) -> None:
        """Let a pending pod's nomination be known, or no more, as the scheduler knows it."""
        nominations, node = self.cluster.nominations, record.nominated_node_name
        if not node:
            return
        is_known = nominations.node_of(record.uid) == node
        if is_known == self._is_queued(record):
            return
        if not is_known:
            nominations.put(record, node)
        else:
            nominations.remove(record.uid)
            # It says so all the same.
            record.nominated_node_name = node

    def _is_queued(self, record: PodRecord) -> bool:
        """Whether the pod is in the queue, and not gated: the nominations of others are not known to the scheduler.

        Source: pkg/scheduler/eventhandlers.go (addPod) and backend/queue/scheduling_queue.go (moveToActiveQ).
        """
        runner = self._runners.get(record.scheduler_name)
        return runner is not None and runner.pre_enqueue(record).is_success


def _in_order(objects: Iterable[Kubernetes]) -> list[Kubernetes]:
    """Nodes by name, as a scheduler that starts is shown them: an image is as large as its first node says."""
    return sorted(objects, key=lambda object_: object_.metadata.name if isinstance(object_, Node) else "")


def _some(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most]) or "none"
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
