"""A loaded cluster that explains what would happen to its pods now, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import count
from typing import TypeVar

import msgspec

from podium.api.clock_inference import newest_time
from podium.api.devices import ResourceClaim, ResourceClaimTemplate
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.errors import InputError, PodiumError
from podium.api.meta import Kubernetes
from podium.api.node import Namespace, Node, RuntimeClass
from podium.api.pod import Pod, PodResourceClaimStatus
from podium.api.pod_group import PodGroup
from podium.api.policy import LimitRange, PriorityClass
from podium.api.storage import PersistentVolumeClaim, StorageClass, default_class
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.api.workloads import WORKLOADS
from podium.app.console.cells import listed
from podium.app.explaining.attempts import explain_placed, explain_with_group
from podium.app.explaining.explanation import Explanation
from podium.cluster.cluster import Cluster, ClusterUpdater
from podium.cluster.pods import PodRecord
from podium.controllers.workloads.claims import device_claim, volume_claims
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.plugins.registry import IN_TREE
from podium.sim.results.disruption_state import DisruptionState, disruption_state
from podium.store.admission.pod_admission import admit_pod
from podium.store.admission.priorities import NO_RULES, PriorityRules, admit_group, check_rule_classes, missing_classes
from podium.store.errors import StoreError

Item = TypeVar("Item", bound=Kubernetes)

SHAPING_KINDS = (PriorityClass, DisruptionPolicy, LimitRange, RuntimeClass, StorageClass, ResourceClaimTemplate)
"""The kinds from which pods and claims get defaults at admission, or that add classes."""


@contextmanager
def _refusals(label: str) -> Iterator[None]:
    """Raise InputError inside the context for an object that the API server would refuse."""
    try:
        yield
    except StoreError as error:
        raise InputError(error.message, object=label) from None


class Explainer:
    """A loaded cluster that explains one pod after another."""

    def __init__(
        self,
        objects: Iterable[Kubernetes],
        configuration: Configuration | None = None,
        release: Release = DEFAULT_RELEASE,
        *,
        now_ns: int | None = None,
    ) -> None:
        """Load the objects as of ``now_ns``; None is the newest time in them.

        Raises PodiumError for a pod or PodGroup that no API server would have accepted.
        """
        objects = self.objects = list(objects)
        self._now_ns = newest_time(objects) if now_ns is None else now_ns
        self.cluster = Cluster(release)
        self._feed = ClusterUpdater(self.cluster)
        self._pending: dict[str, PodRecord] = {}
        later: list[Kubernetes] = []
        for item in _in_order(objects):
            if isinstance(item, Pod | PodGroup | PersistentVolumeClaim | ResourceClaim):
                later.append(item)
            elif not isinstance(item, PriorityClass):
                self._feed.update_object(item)
        self.cluster.pass_time(self._now_ns)
        self._admission = ObjectAdmission(objects)
        configuration = configuration or default_configuration()
        profiles = build_profiles(configuration, Registry(IN_TREE), self.cluster, examines_all=True)
        self.runners = {name: Runner(profile, self.cluster) for name, profile in profiles.items()}
        self.disruptions = self._disruptions_among(objects)
        # The claims that were created here for a pod, by its key.
        self._made: dict[str, tuple[Kubernetes, ...]] = {}
        pods = [item for item in later if isinstance(item, Pod)]
        for item in later:
            if not isinstance(item, Pod):
                self._feed.update_object(self._admission.admitted(item))
        for pod in sorted(pods, key=lambda pod: pod.key):
            self._add_pod(self._admission.admitted(pod))

    def explain(self, pod: str, scheduler: str = "") -> Explanation:
        """Explain the pod ``namespace/name``: the outcome for a pending one, the reasons of a placed one.

        ``scheduler`` names the profile that decides; the default is the pod's own. Raises PodiumError for an unknown
        pod.
        """
        record = self._pending.get(pod)
        if record is not None:
            return self._explanation(explain_with_group(self._runner_of(record, scheduler), record))
        placed = next((record for record in self.cluster.placed.values() if record.key == pod), None)
        if placed is None:
            pending = listed(self.pending, 5) or "none"
            raise self.unknown_pod(pod, f"; pending there: {pending}")
        return self._explanation(explain_placed(self._runner_of(placed, scheduler), placed, self.waiting, self.runners))

    def unknown_pod(self, key: str, hint: str) -> PodiumError:
        """Return the error for a pod that neither waits nor has a node: it has ended, or is not in the input."""
        pods = [item for item in self.objects if isinstance(item, Pod)]
        ended = next((pod for pod in pods if pod.key == key), None)
        if ended is not None:
            return PodiumError(f"pod {key} has ended ({ended.status.phase}), and is not scheduled again")
        named = (f"{item.kind.lower()}/{key}" for item in self.objects if item.key == key and item.kind in WORKLOADS)
        elsewhere = [pod.key for pod in pods if pod.metadata.name == key.partition("/")[2]]
        hint = f"; there is {listed(elsewhere, 3)}" if elsewhere else hint
        hint = next((f"; for the pods of that workload write {name}" for name in named), hint)
        return PodiumError(f"pod {key} is not in the input{hint}")

    def explain_made(self, pod: Pod, claims: Iterable[PersistentVolumeClaim] = (), scheduler: str = "") -> Explanation:
        """Explain a pod that is not in the input, with claims that would be created for it; nothing is kept."""
        pod, needed = self.made(pod, claims)

        @contextmanager
        def as_decided() -> Iterator[None]:
            """Add the claims that do not exist, for the duration of the context."""
            for claim in needed:
                self.cluster.put(claim)
            try:
                yield
            finally:
                for claim in needed:
                    self.cluster.remove(claim)

        with as_decided():
            record = self.cluster.read(pod)
            explanation = explain_with_group(self._runner_of(record, scheduler), record)
            if explanation.gang is not None:
                return self._explanation(explanation)
        return self._explanation(replace(explanation, as_decided=as_decided))

    def is_pod(self, key: str) -> bool:
        return key in self._pending or any(record.key == key for record in self.cluster.placed.values())

    def change(self, objects: list[Kubernetes], gone: Iterable[Kubernetes], come: Iterable[Kubernetes]) -> None:
        """Replace the cluster's objects by ``objects``; ``come`` are new among them, ``gone`` are missing.

        `can_change` allows both, and neither has later times. Raises PodiumError as the constructor does, before
        anything changes.
        """
        arriving = list(come)
        staying = {(item.kind, item.key) for item in arriving}
        pods = [self._admission.admitted(item) for item in arriving if isinstance(item, Pod)]
        others = [self._admission.admitted(item) for item in _in_order(arriving) if not isinstance(item, Pod)]
        self.objects, self.disruptions = objects, self._disruptions_among(objects)
        for item in gone:
            if isinstance(item, Pod):
                self._pending.pop(item.key, None)
                self._feed.settle(self._feed.pod_gone(item))
                for claim in self._made.pop(item.key, ()):
                    self._feed.delete_object(claim)
            elif (item.kind, item.key) not in staying:
                self._feed.delete_object(self._admission.admitted(item))
        for item in others:
            self._feed.update_object(item)
        for pod in sorted(pods, key=lambda pod: pod.key):
            self._add_pod(pod)
        for record in self._pending.values():
            # The gates of a pod may depend on other objects, such as its claims.
            self._nominate(record)

    def can_change(self, items: Iterable[Kubernetes]) -> bool:
        """Return whether these objects may come or go: none of them changes others at admission.

        Namespaces do so if priority rules refer to them. While replacements of evicted pods are awaited nothing may,
        since they depend on earlier arrivals.
        """
        shaping = (*SHAPING_KINDS, Namespace) if self._admission.rules else SHAPING_KINDS
        return not self.cluster.replacements.awaited and not any(isinstance(item, shaping) for item in items)

    def _disruptions_among(self, objects: list[Kubernetes]) -> Callable[[], DisruptionState]:
        return cache(lambda: disruption_state([*objects, *self._admission.levels], self._now_ns))

    def _explanation(self, decision: Explanation) -> Explanation:
        return replace(decision, disruptions_found=self.disruptions)

    def _runner_of(self, record: PodRecord, scheduler: str) -> Runner:
        """Return the runner of a pod's profile. Raises PodiumError for one that is not configured."""
        wanted = scheduler or record.scheduler_name
        runner = self.runners.get(wanted)
        if runner is None:
            known = ", ".join(sorted(self.runners))
            raise PodiumError(f"pod {record.key} is for scheduler {wanted}, which is not configured; there is: {known}")
        return runner

    @property
    def pending(self) -> list[str]:
        """The keys of the pending pods."""
        return sorted(self._pending)

    @property
    def waiting(self) -> list[PodRecord]:
        """The pods without a node, by key."""
        return [self._pending[key] for key in sorted(self._pending)]

    def made(self, pod: Pod, claims: Iterable[PersistentVolumeClaim] = ()) -> tuple[Pod, tuple[Kubernetes, ...]]:
        """Return a pod as the API server would store it, and the claims to create for it, with those that do not exist.

        Raises InputError for one that no API server would accept.
        """
        pod, made = self._with_made_claims(self._admission.admitted(pod))
        missing = (claim for claim in claims if self.cluster.find(claim) is None)
        return pod, (*map(self._admission.admitted, missing), *made)

    def _with_made_claims(self, pod: Pod) -> tuple[Pod, tuple[Kubernetes, ...]]:
        """Return the pod with the names of its claims, and the claims to create for it: for devices and for volumes.

        A pod that was in a cluster gets none, and no claim gets a name that is taken.
        """
        if pod.metadata.uid or pod.spec.node_name:
            return pod, ()
        find = self.cluster.find
        volumes = (msgspec.convert(raw, PersistentVolumeClaim) for raw in volume_claims(pod, pod.key))
        claims: list[Kubernetes] = [claim for claim in volumes if find(claim) is None]
        statuses = {status.name: status for status in pod.status.resource_claim_statuses}
        for named in pod.spec.resource_claims:
            key = f"{pod.metadata.namespace}/{named.resource_claim_template_name}"
            template = self._admission.claim_templates.get(key)
            if template is not None and named.name not in statuses:
                raw = device_claim(pod, pod.key, named, msgspec.to_builtins(template))
                generated = raw["metadata"].pop("generateName")
                names = ({**raw["metadata"], "name": f"{generated}{number}"} for number in count(1))
                candidates = (msgspec.convert({**raw, "metadata": metadata}, ResourceClaim) for metadata in names)
                claim = next(claim for claim in candidates if find(claim) is None)
                claims.append(claim)
                statuses[named.name] = PodResourceClaimStatus(name=named.name, resource_claim_name=claim.metadata.name)
        status = msgspec.structs.replace(pod.status, resource_claim_statuses=tuple(statuses.values()))
        return msgspec.structs.replace(pod, status=status), tuple(map(self._admission.admitted, claims))

    def _add_pod(self, pod: Pod) -> None:
        pod, claims = self._with_made_claims(pod)
        if claims:
            self._made[pod.key] = claims
        for claim in claims:
            self._feed.update_object(claim)
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
        """Add or remove a pending pod's nomination, which counts in the queue, and up to 1.36 only without gates.

        Source: pkg/scheduler/eventhandlers.go (addPod) and backend/queue/scheduling_queue.go (moveToActiveQ).
        """
        nominations, node = self.cluster.nominations, record.nominated_node_name
        if not node:
            return
        runner = self.runners.get(record.scheduler_name)
        counts = runner is not None and (nominations.counts_gated or runner.pre_enqueue(record).is_success)
        is_known = nominations.node_of(record.uid) == node
        if counts and not is_known:
            nominations.put(record, node)
        elif is_known and not counts:
            nominations.remove(record.uid)
            # The record keeps what the pod's status says.
            record.nominated_node_name = node


def _in_order(objects: Iterable[Kubernetes]) -> list[Kubernetes]:
    """Return the objects with nodes in name order, as a starting scheduler lists them (image sizes depend on it)."""
    return sorted(objects, key=lambda object_: object_.metadata.name if isinstance(object_, Node) else "")


class ObjectAdmission:
    """The API server's admission of pods, groups and claims, by the classes, defaults and rules among some objects."""

    def __init__(self, objects: Iterable[Kubernetes]) -> None:
        """Raise InputError for a policy's levels in another order, and for a rule with an unknown class."""
        self.rules = NO_RULES
        self.claim_templates: dict[str, ResourceClaimTemplate] = {}
        self._classes: dict[str, PriorityClass] = {}
        self._limit_ranges: dict[str, list[LimitRange]] = {}
        self._runtime_classes: dict[str, RuntimeClass] = {}
        self._storage_classes: list[StorageClass] = []
        labels: dict[str, Mapping[str, str]] = {}
        policies = []
        for item in objects:
            match item:
                case PriorityClass():
                    self._classes[item.metadata.name] = item
                case LimitRange():
                    self._limit_ranges.setdefault(item.metadata.namespace, []).append(item)
                case RuntimeClass():
                    self._runtime_classes[item.metadata.name] = item
                case StorageClass():
                    self._storage_classes.append(item)
                case ResourceClaimTemplate():
                    self.claim_templates[item.key] = item
                case Namespace():
                    labels[item.metadata.name] = item.metadata.labels
                case DisruptionPolicy():
                    policies.append(item)
        self.levels: list[PriorityClass] = []
        """The priority classes that only policies state."""
        for policy in policies:
            with _refusals(f"DisruptionPolicy {policy.key}"):
                added = [msgspec.convert(raw, PriorityClass) for raw in missing_classes(policy, self._classes)]
                self._classes |= {priority_class.metadata.name: priority_class for priority_class in added}
                self.levels += added
                check_rule_classes(policy, self._classes)
            self.rules = PriorityRules(policy.spec.priority_rules, lambda name: labels.get(name, {}))

    def admitted(self, item: Item) -> Item:
        """Return a pod, group or claim as the API server would store it; other objects are as they were.

        Pods and claims with a uid were admitted before: such a pod gets at most a priority. Raises InputError for an
        object that would be refused, such as for an unknown class.
        """
        if isinstance(item, Pod) and not self._is_raw(item):
            return item
        with _refusals(f"{item.kind} {item.key}"):
            if isinstance(item, Pod):
                ranges = self._limit_ranges.get(item.metadata.namespace, [])
                raw = msgspec.to_builtins(item)
                filled = admit_pod(raw, item.key, self._classes, ranges, self._runtime_classes, self.rules)
                return msgspec.convert(filled, type(item))
            if isinstance(item, PodGroup) and item.spec.priority_class_name:
                return msgspec.convert(admit_group(msgspec.to_builtins(item), item.key, self._classes), type(item))
        if isinstance(item, PersistentVolumeClaim | ResourceClaim) and not item.metadata.uid:
            named = msgspec.structs.replace(item.metadata, uid=f"{item.kind} {item.key}")
            item = msgspec.structs.replace(item, metadata=named)
            if isinstance(item, PersistentVolumeClaim) and (default := default_class(item, self._storage_classes)):
                spec = msgspec.structs.replace(item.spec, storage_class_name=default)
                return msgspec.structs.replace(item, spec=spec)
        return item

    def _is_raw(self, pod: Pod) -> bool:
        """Return whether admission would change how the pod is scheduled."""
        if not pod.metadata.uid:
            # Some affinity term of the pod may select by label keys of its own.
            terms = [] if pod.spec.affinity is None else pod.spec.affinity.pod_terms
            has_label_keys = any(term.match_label_keys or term.mismatch_label_keys for term in terms)
            if self.rules or not pod.spec.node_name or has_label_keys:
                return True
        if pod.spec.priority is not None:
            return False
        return bool(pod.spec.priority_class_name) or any(each.global_default for each in self._classes.values())
