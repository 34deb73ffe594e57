"""A loaded cluster that explains what would happen to its pods now, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import count
from typing import TypeVar

import msgspec

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.errors import InputError, PodiumError
from podium.api.meta import Kubernetes
from podium.api.node import Namespace, Node, RuntimeClass
from podium.api.pod import Pod, PodResourceClaimStatus
from podium.api.pod_group import PodGroup
from podium.api.policy import LimitRange, PriorityClass
from podium.api.present import newest_time
from podium.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from podium.api.storage import PersistentVolumeClaim, StorageClass
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.app.console.cells import listed
from podium.app.explaining.attempts import explain_placed, explain_with_group
from podium.app.explaining.pod_decision import PodDecision
from podium.app.explaining.workload import Explanation
from podium.cluster.cluster import Cluster, ClusterUpdater
from podium.cluster.pods import PodRecord
from podium.controllers.workloads.claims import device_claim, volume_claims
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.plugins.registry import IN_TREE
from podium.sim.results.disruption_state import DisruptionState, disruption_state
from podium.store.admission.admission_control import with_default_class
from podium.store.admission.pod_admission import admit_pod
from podium.store.admission.priorities import NO_RULES, PriorityRules, admit_group, check_rule_classes, missing_classes
from podium.store.errors import StoreError

Item = TypeVar("Item")
Claim = TypeVar("Claim", PersistentVolumeClaim, ResourceClaim)

SHAPING_KINDS = (PriorityClass, DisruptionPolicy, LimitRange, RuntimeClass, StorageClass, ResourceClaimTemplate)
"""The kinds from which pods and claims get defaults at admission, or that add classes."""


def _checked(label: str, admit: Callable[[], Item]) -> Item:
    """Return the admitted object. Raises InputError for one that the API server would refuse."""
    try:
        return admit()
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
            classes |= _checked(f"DisruptionPolicy {policy.key}", partial(with_levels, policy, classes))
            defaults = defaults.with_rules(policy)
        self._levels = [priority_class for name, priority_class in classes.items() if name not in given]
        configuration = configuration or default_configuration()
        profiles = build_profiles(configuration, Registry(IN_TREE), self.cluster, examines_all=True)
        self.runners = {name: Runner(profile, self.cluster) for name, profile in profiles.items()}
        self._disruptions = self._disruptions_among(objects)
        self._classes = classes
        self._defaults = defaults
        # The claims that were created here for a pod, by its key.
        self._made: dict[str, tuple[Kubernetes, ...]] = {}
        for item in later:
            self._feed.changed(self._admitted_other(item))
        for pod in sorted(pods, key=lambda pod: pod.key):
            self._add_pod(self._admitted_pod(pod))

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
            raise PodiumError(f"pod {pod} is not in the input; pending there: {pending}")
        runner = self._runner_of(placed, scheduler)
        return self._explanation(explain_placed(runner, placed, self.waiting, self.runners))

    def explain_made(self, pod: Pod, claims: Iterable[PersistentVolumeClaim] = (), scheduler: str = "") -> Explanation:
        """Explain a pod that is not in the input, with claims that would be created for it; nothing is kept."""
        pod, made = self.made(pod)
        as_decided = partial(self._with_claims, (*map(self._admitted_other, claims), *made))
        with as_decided():
            record = self.cluster.read(pod)
            explanation = explain_with_group(self._runner_of(record, scheduler), record)
            if explanation.gang is not None:
                return self._explanation(explanation)
        return self._explanation(replace(explanation, as_decided=as_decided))

    def is_pod(self, key: str) -> bool:
        """Return whether a live pod has this key."""
        return key in self._pending or any(record.key == key for record in self.cluster.placed.values())

    def _admitted_pod(self, pod: Pod) -> Pod:
        return _checked(f"Pod {pod.key}", lambda: admitted(pod, self._classes, self._defaults))

    def _admitted_other(self, item: Kubernetes) -> Kubernetes:
        if isinstance(item, PodGroup):
            return _checked(f"PodGroup {item.key}", partial(group_admitted, item, self._classes))
        if isinstance(item, PersistentVolumeClaim):
            return claim_admitted(item, self._defaults.storage_classes)
        return claim_admitted(item, ()) if isinstance(item, ResourceClaim) else item

    @contextmanager
    def _with_claims(self, claims: tuple[Kubernetes, ...]) -> Iterator[None]:
        """Add the claims that do not exist inside the context."""
        added = [claim for claim in claims if self.cluster.find(claim) is None]
        for claim in added:
            self.cluster.put(claim)
        try:
            yield
        finally:
            for claim in added:
                self.cluster.remove(claim)

    def change(self, objects: list[Kubernetes], gone: Iterable[Kubernetes], come: Iterable[Kubernetes]) -> None:
        """Replace the cluster's objects by ``objects``; ``come`` are new among them, ``gone`` are missing.

        Neither contains objects of `shaping_kinds`, nor later times. Raises PodiumError as the constructor does, before
        anything changes.
        """
        arriving = list(come)
        staying = {(item.kind, item.key) for item in arriving}
        pods = [self._admitted_pod(item) for item in arriving if isinstance(item, Pod)]
        others = [self._admitted_other(item) for item in _in_order(arriving) if not isinstance(item, Pod)]
        self.objects, self._disruptions = objects, self._disruptions_among(objects)
        for item in gone:
            if isinstance(item, Pod):
                self._pending.pop(item.key, None)
                self._feed.settle(self._feed.pod_gone(item))
                for claim in self._made.pop(item.key, ()):
                    self._feed.gone(claim)
            elif (item.kind, item.key) not in staying:
                self._feed.gone(self._admitted_other(item))
        for item in others:
            self._feed.changed(item)
        for pod in sorted(pods, key=lambda pod: pod.key):
            self._add_pod(pod)
        for record in self._pending.values():
            # The gates of a pod may depend on other objects, such as its claims.
            self._nominate(record)

    @property
    def can_change(self) -> bool:
        """Return whether pods may be removed: replacements of evicted pods depend on earlier arrivals."""
        return not self.cluster.replacements.awaited

    @property
    def shaping_kinds(self) -> tuple[type[Kubernetes], ...]:
        """The kinds that change other objects at admission; Namespaces only if priority rules refer to them."""
        return (*SHAPING_KINDS, Namespace) if self._defaults.rules else SHAPING_KINDS

    def _disruptions_among(self, objects: list[Kubernetes]) -> Callable[[], DisruptionState]:
        return cache(lambda: disruption_state([*objects, *self._levels], self._now_ns))

    def _explanation(self, decision: PodDecision) -> Explanation:
        return Explanation.of(decision, self._disruptions)

    def _runner_of(self, record: PodRecord, scheduler: str) -> Runner:
        """Return the runner of a pod's profile. Raises PodiumError for one that is not configured."""
        wanted = scheduler or record.scheduler_name
        runner = self.runners.get(wanted)
        if runner is None:
            known = ", ".join(sorted(self.runners))
            raise PodiumError(f"pod {record.key} is for scheduler {wanted}, which is not configured; there is: {known}")
        return runner

    @property
    def disruptions(self) -> DisruptionState:
        """The state of disruptions in the cluster: budgets, caps, quotas and avoid lists."""
        return self._disruptions()

    @property
    def pending(self) -> list[str]:
        """The keys of the pending pods."""
        return sorted(self._pending)

    @property
    def waiting(self) -> list[PodRecord]:
        """The pods without a node, by key."""
        return [self._pending[key] for key in sorted(self._pending)]

    def made(self, pod: Pod) -> tuple[Pod, tuple[Kubernetes, ...]]:
        """Return a pod as the API server would store it, and the claims to create for it.

        Raises InputError for one that no API server would accept.
        """
        pod, claims = with_made_claims(self._admitted_pod(pod), self._defaults.claim_templates, self.cluster)
        return pod, tuple(map(self._admitted_other, claims))

    def _add_pod(self, pod: Pod) -> None:
        pod, claims = with_made_claims(pod, self._defaults.claim_templates, self.cluster)
        if claims:
            self._made[pod.key] = tuple(map(self._admitted_other, claims))
        for claim in self._made.get(pod.key, ()) if claims else ():
            self._feed.changed(claim)
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
        """Add or remove a pending pod's nomination, as the scheduler does."""
        nominations, node = self.cluster.nominations, record.nominated_node_name
        if not node:
            return
        is_known = nominations.node_of(record.uid) == node
        if is_known == self._is_counted(record):
            return
        if not is_known:
            nominations.put(record, node)
        else:
            nominations.remove(record.uid)
            # The record keeps what the pod's status says.
            record.nominated_node_name = node

    def _is_counted(self, record: PodRecord) -> bool:
        """Return whether the pod's nomination counts: it is in the queue, and not gated up to 1.36.

        Source: pkg/scheduler/eventhandlers.go (addPod) and backend/queue/scheduling_queue.go (moveToActiveQ).
        """
        runner = self.runners.get(record.scheduler_name)
        if runner is None:
            return False
        return self.cluster.nominations.counts_gated or runner.pre_enqueue(record).is_success


def _in_order(objects: Iterable[Kubernetes]) -> list[Kubernetes]:
    """Return the objects with nodes in name order, as a starting scheduler lists them (image sizes depend on it)."""
    return sorted(objects, key=lambda object_: object_.metadata.name if isinstance(object_, Node) else "")


def with_made_claims(
    pod: Pod, templates: Mapping[str, ResourceClaimTemplate], cluster: Cluster
) -> tuple[Pod, tuple[Kubernetes, ...]]:
    """Return the pod with the names of its claims, and the claims to create: for devices by `templates`, for volumes.

    A pod that was in a cluster gets none, and no claim gets a name that is taken.
    """
    if pod.metadata.uid or pod.spec.node_name:
        return pod, ()
    volumes = (msgspec.convert(raw, PersistentVolumeClaim) for raw in volume_claims(pod, pod.key))
    claims: list[Kubernetes] = [claim for claim in volumes if cluster.find(claim) is None]
    statuses = {status.name: status for status in pod.status.resource_claim_statuses}
    for named in pod.spec.resource_claims:
        template = templates.get(f"{pod.metadata.namespace}/{named.resource_claim_template_name}")
        if template is not None and named.name not in statuses:
            raw = device_claim(pod, pod.key, named, msgspec.to_builtins(template))
            generated = raw["metadata"].pop("generateName")
            names = ({**raw["metadata"], "name": f"{generated}{number}"} for number in count(1))
            candidates = (msgspec.convert({**raw, "metadata": metadata}, ResourceClaim) for metadata in names)
            claim = next(claim for claim in candidates if cluster.find(claim) is None)
            claims.append(claim)
            statuses[named.name] = PodResourceClaimStatus(name=named.name, resource_claim_name=claim.metadata.name)
    status = msgspec.structs.replace(pod.status, resource_claim_statuses=tuple(statuses.values()))
    return msgspec.structs.replace(pod, status=status), tuple(claims)


@dataclass(frozen=True, slots=True)
class Defaults:
    """The sources of defaults for pods and claims, and the rules that give pods their PriorityClass.

    LimitRanges are by namespace, RuntimeClasses and the labels of namespaces by name, ResourceClaimTemplates by key.
    """

    limit_ranges: dict[str, list[LimitRange]] = field(default_factory=dict)
    runtime_classes: dict[str, RuntimeClass] = field(default_factory=dict)
    storage_classes: list[StorageClass] = field(default_factory=list)
    claim_templates: dict[str, ResourceClaimTemplate] = field(default_factory=dict)
    namespace_labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    rules: PriorityRules = NO_RULES

    def take(self, item: Kubernetes) -> None:
        """Add a source of defaults."""
        if isinstance(item, LimitRange):
            self.limit_ranges.setdefault(item.metadata.namespace, []).append(item)
        elif isinstance(item, RuntimeClass):
            self.runtime_classes[item.metadata.name] = item
        elif isinstance(item, StorageClass):
            self.storage_classes.append(item)
        elif isinstance(item, ResourceClaimTemplate):
            self.claim_templates[item.key] = item
        elif isinstance(item, Namespace):
            self.namespace_labels[item.metadata.name] = item.metadata.labels

    def with_rules(self, policy: DisruptionPolicy) -> Defaults:
        """Return a copy with the rules of a policy."""
        rules = PriorityRules(policy.spec.priority_rules, lambda name: self.namespace_labels.get(name, {}))
        return replace(self, rules=rules)


def admitted(
    pod: Pod,
    classes: Mapping[str, PriorityClass],
    defaults: Defaults,
) -> Pod:
    """Return the pod with its priority, policy, resources and selectors filled in.

    A pod with a uid was admitted before, and gets at most a priority. Raises StoreError for one that would be refused,
    such as for an unknown class.
    """
    if not _is_raw(pod, classes, has_rules=bool(defaults.rules)):
        return pod
    raw, ranges = msgspec.to_builtins(pod), defaults.limit_ranges.get(pod.metadata.namespace, [])
    filled = admit_pod(raw, pod.key, classes, ranges, defaults.runtime_classes, defaults.rules)
    return msgspec.convert(filled, Pod)


def group_admitted(group: PodGroup, classes: Mapping[str, PriorityClass]) -> PodGroup:
    """Return the group with its class's priority. Raises StoreError for one that would be refused."""
    if not group.spec.priority_class_name:
        return group
    return msgspec.convert(admit_group(msgspec.to_builtins(group), group.key, classes), PodGroup)


def claim_admitted(claim: Claim, classes: Iterable[StorageClass]) -> Claim:
    """Return the claim with a uid, and with the default storage class if it names none.

    A claim that has a uid was in a cluster, and is unchanged.
    """
    if claim.metadata.uid:
        return claim
    named = msgspec.structs.replace(claim.metadata, uid=f"{claim.kind} {claim.key}")
    claim = msgspec.structs.replace(claim, metadata=named)
    if not isinstance(claim, PersistentVolumeClaim):
        return claim
    return msgspec.convert(with_default_class(msgspec.to_builtins(claim), claim, classes), PersistentVolumeClaim)


def with_levels(policy: DisruptionPolicy, classes: Mapping[str, PriorityClass]) -> dict[str, PriorityClass]:
    """Return the classes by name, with those of a DisruptionPolicy.

    Raises StoreError for levels in another order, and for a rule with an unknown class.
    """
    added = (msgspec.convert(raw, PriorityClass) for raw in missing_classes(policy, classes))
    known = {**classes, **{priority_class.metadata.name: priority_class for priority_class in added}}
    check_rule_classes(policy, known)
    return known


def _is_raw(pod: Pod, classes: Mapping[str, PriorityClass], *, has_rules: bool) -> bool:
    """Return whether admission would change how the pod is scheduled."""
    if not pod.metadata.uid and (has_rules or not pod.spec.node_name or _has_label_keys(pod)):
        return True
    if pod.spec.priority is not None:
        return False
    return bool(pod.spec.priority_class_name) or any(class_.global_default for class_ in classes.values())


def _has_label_keys(pod: Pod) -> bool:
    """Return whether some affinity term of the pod selects by label keys of its own."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    return any(
        term.match_label_keys or term.mismatch_label_keys
        for side in sides
        if side is not None
        for term in (*side.required, *(weighted.pod_affinity_term for weighted in side.preferred))
    )
