"""Admission control: the defaults and refusals that depend on other objects.

Source: the admission plugins Priority, LimitRanger, RuntimeClass, DefaultStorageClass and PersistentVolumeClaimResize;
pkg/registry/resource for claims of administrators; for budgets controlled-rescheduling.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

import msgspec

from podium.api.budget_limits import annotated_rate, strictness_problem
from podium.api.devices import ResourceClaim, ResourceClaimTemplate
from podium.api.disruption_policy import MAX_DISRUPTIONS, PriorityRule
from podium.api.errors import shown
from podium.api.meta import Kubernetes, Raw, object_at, objects_at, value_at
from podium.api.node import Node, RuntimeClass
from podium.api.objects import SharedSpec, shared_spec
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import LimitRange, PodDisruptionBudget, PriorityClass
from podium.api.quantity import CPU, MEMORY
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.api.selectors import compile_label_selector
from podium.api.storage import PersistentVolumeClaim, StorageClass, default_class, marked_default
from podium.api.validation import findings
from podium.api.versions.apis import as_kept
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.api.workloads import PodTemplate, Replicated
from podium.store.admission import priorities
from podium.store.admission.pod_admission import admit_pod, check_claim_limits, check_pod_limits
from podium.store.api_resources import POD, POD_GROUP, APIResource
from podium.store.errors import forbidden, invalid_fields
from podium.store.revisions import Revisions
from podium.store.stored import Stored
from podium.store.verbs.readings import filled_in

_ADMITTING = ("LimitRange", "PriorityClass", "RuntimeClass")
_NO_GROWTH = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
_ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_NO_ADMIN_ACCESS = f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
TOO_STRICT = "stricter than the DisruptionPolicy allows"
"""The text by which the message of a refusal can be recognized."""


class Admission:
    """The admission chain, which applies the cluster's classes, limit ranges and policy to objects that are written.

    Fields that the ``release`` does not know are dropped.
    """

    def __init__(self, revisions: Revisions, release: Release = DEFAULT_RELEASE) -> None:
        self._revisions = revisions
        self._release = release
        # The change counters of the kinds that admission reads, and the token that represents their state.
        self._seen: tuple[int | None, ...] = ()
        self._where = object()
        # The policy's rules as last compiled, and what they were compiled from.
        self._rules = priorities.NO_RULES
        self._rules_of: tuple[PriorityRule, ...] = ()

    def admit(
        self, resource: APIResource, raw: Raw, object_: Kubernetes, shared: SharedSpec | None, *, was_there: bool
    ) -> tuple[Raw, Kubernetes]:
        """Return both forms of an object to be created, with defaults filled in.

        A pod may have a `shared` specification. A budget that has a uid, or that existed before (`was_there`), may be
        stricter than the policy's bounds. Raises StoreError as `admit_pod`, `admit_group`, `check_claim_limits`,
        `check_priority_class`, `check_default_class` and `_check_bounds` do.
        """
        is_new = not object_.metadata.uid
        if isinstance(object_, Pod):
            return self._admit_pod(resource, raw, object_, shared)
        if is_new and (kept := as_kept(raw, resource.name, self._release)) is not raw:
            raw, object_ = filled_in(resource, object_, raw, kept)
        if isinstance(object_, PodGroup):
            return filled_in(resource, object_, raw, priorities.admit_group(raw, object_.key, self.priority_classes()))
        if resource.name == "Ingress" and is_new:
            return filled_in(resource, object_, raw, self._with_ingress_class(raw))
        if isinstance(object_, PersistentVolumeClaim) and is_new:
            ranges = self._revisions.typed(LimitRange, object_.metadata.namespace)
            check_claim_limits(resource, object_.key, object_.spec.resources.requests, ranges)
            default = default_class(object_, self._revisions.typed(StorageClass))
            spec = {**raw.get("spec", {}), "storageClassName": default}
            return filled_in(resource, object_, raw, {**raw, "spec": spec} if default else raw)
        if isinstance(object_, PriorityClass):
            priorities.check_priority_class(resource, object_)
            # A cluster dump may contain several defaults.
            if is_new:
                priorities.check_default_class(resource, object_, self.priority_classes().values())
        if isinstance(object_, PodDisruptionBudget) and is_new and not was_there:
            self._check_bounds(resource, object_)
        return raw, object_

    def _with_ingress_class(self, raw: Raw) -> Raw:
        """Return an Ingress with the default class if it names none (DefaultIngressClass)."""
        annotation = value_at(raw, "metadata", "annotations", "kubernetes.io/ingress.class")
        classes = (stored.object.metadata for stored in self._revisions.in_order("IngressClass"))
        name = marked_default(classes, ("ingressclass.kubernetes.io/is-default-class",))
        if not name or annotation is not None or value_at(raw, "spec", "ingressClassName") is not None:
            return raw
        return {**raw, "spec": {**object_at(raw, "spec"), "ingressClassName": name}}

    def without_dropped_fields(self, previous: Stored, raw: Raw) -> Raw:
        """Return an update without the fields that the version drops."""
        return as_kept(raw, previous.resource.name, self._release, previous.raw)

    def check_new(self, raw: Raw, object_: Kubernetes) -> None:
        """Raise StoreError 403 for a client's new pod without a class that states another priority than the default's.

        A rule that decides about the pod also decides about the stated priority. Raises it also for a new group whose
        template does not exist, as `_template_problem` describes.
        """
        if isinstance(object_, PodGroup) and (problem := self._template_problem(raw, object_.metadata.namespace)):
            raise forbidden(POD_GROUP, object_.key, f"PodGroup rejected: {problem}")
        if not isinstance(object_, Pod) or object_.spec.priority is None or object_.spec.priority_class_name:
            return
        meta, spec = object_.metadata, object_.spec
        if self.priority_rules().deciding(meta.namespace, meta.labels, lambda: spec) is not None:
            return
        default = priorities.default_class(self.priority_classes().values())
        computed = 0 if default is None else default.value
        if spec.priority != computed:
            problem = f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
            how = f"priority admission controller computed {computed} from the given PriorityClass name"
            raise forbidden(POD, object_.key, problem + how)

    def _template_problem(self, group: Raw, namespace: str) -> str:
        """Return why a group cannot be made from the template of a Workload that it names; "" if it can, or names none.

        Source: plugin/pkg/admission/podgroup.
        """
        named = object_at(group, "spec", "podGroupTemplateRef", "workload")
        name, template = named.get("workloadName", ""), named.get("podGroupTemplateName", "")
        workload = self._revisions.of("Workload").get(f"{namespace}/{name}")
        if workload is None:
            return f'Workload "{name}" not found' if named else ""
        if workload.object.metadata.deletion_timestamp is not None:
            return f'Workload "{name}" is being deleted'
        templates = [one["name"] for one in objects_at(workload.raw, "spec", "podGroupTemplates")]
        return "" if template in templates else f'PodGroupTemplate "{template}" not found in Workload "{name}"'

    def check_admin_access(self, resource: APIResource, object_: Kubernetes) -> None:
        """Raise StoreError 422 for a new claim or template for administrators in a namespace without their label."""
        if isinstance(object_, ResourceClaim):
            spec, place = object_.spec, "spec"
        elif isinstance(object_, ResourceClaimTemplate):
            spec, place = object_.spec.spec, "spec.spec"
        else:
            return
        exact = (request.exactly for request in spec.devices.requests)
        asked = next((index for index, one in enumerate(exact) if one is not None and one.admin_access), None)
        if asked is not None and self._namespace_labels(object_.metadata.namespace).get(_ADMIN_LABEL) != "true":
            path = f".{place}.devices.requests[{asked}].exactly.adminAccess"
            raise invalid_fields(resource, object_.key, [findings.forbidden(path, _NO_ADMIN_ACCESS)])

    def check_update(self, previous: Stored, object_: Kubernetes) -> None:
        """Check an update of a PriorityClass, a claim or a budget.

        Raises StoreError as `check_default_class` does, as `_check_bounds` does for a budget that becomes stricter, and
        403 for a claim that grows although its class does not let it.
        """
        before = previous.object
        if isinstance(object_, PriorityClass):
            priorities.check_default_class(previous.resource, object_, self.priority_classes().values())
        elif isinstance(object_, PersistentVolumeClaim) and isinstance(before, PersistentVolumeClaim):
            classes = self._revisions.typed(StorageClass)
            growing = {class_.metadata.name for class_ in classes if class_.allow_volume_expansion}
            if object_.size > before.size and object_.class_name not in growing:
                raise forbidden(previous.resource, object_.key, _NO_GROWTH)
        if not isinstance(object_, PodDisruptionBudget):
            return
        if not isinstance(before, PodDisruptionBudget) or _strictness(before) != _strictness(object_):
            self._check_bounds(previous.resource, object_)

    def check_resize(self, previous: Stored, pod: Kubernetes) -> None:
        """Raise StoreError 403 if the limit ranges or the node do not allow the new resources of a pod.

        Source: LimitRanger, and plugin/pkg/admission/podresize.
        """
        if not isinstance(pod, Pod) or not isinstance(before := previous.object, Pod):
            return
        if pod.spec.containers == before.spec.containers and pod_requests(pod.spec) == pod_requests(before.spec):
            return
        check_pod_limits(POD, pod.key, pod.spec, self._revisions.typed(LimitRange, pod.metadata.namespace))
        if not pod.spec.node_name:
            return
        stored = self._revisions.of("Node").get(pod.spec.node_name)
        node = None if stored is None else stored.object
        if not isinstance(node, Node):
            raise forbidden(POD, pod.key, f"node {shown(pod.spec.node_name)} not found")
        system = node.metadata.labels.get("kubernetes.io/os", "linux")
        if system != "linux":
            problem = f"pod resize is only supported on linux nodes, node {shown(node.key)} is {shown(system)}"
            raise forbidden(POD, pod.key, problem, "UnsupportedPlatform")
        requests, has = pod_requests(pod.spec), node_allocatable(node.status)
        lacking = [resource for resource in (CPU, MEMORY) if requests.get(resource, 0) > has.get(resource, 0)]
        if lacking:
            listed = (f"{each}, requested: {requests[each]}, allocatable: {has.get(each, 0)}" for each in lacking)
            problem = f"node didn't have enough allocatable resources: {'; '.join(listed)}"
            raise forbidden(POD, pod.key, problem, "NodeCapacity")

    def _admit_pod(
        self, resource: APIResource, raw: Raw, pod: Pod, shared: SharedSpec | None
    ) -> tuple[Raw, Kubernetes]:
        """Return both forms of an admitted pod.

        The result for a specification is cached while the classes are unchanged.
        """
        seen = self._revisions.changes_of(_ADMITTING)
        if seen != self._seen:
            self._seen, self._where = seen, object()
        where, rules = self._where, self.priority_rules()
        # With rules, the class also depends on labels and namespaces.
        if not rules and shared is not None and shared.admitted is not None and shared.admitted[0] is where:
            known = None if pod.metadata.uid else shared.admitted[1]
            if known is not None:
                status = {"phase": "Pending", **raw.get("status", {})}
                return {**raw, "spec": known.raw, "status": status}, msgspec.structs.replace(pod, spec=known.spec)
        ranges = self._revisions.typed(LimitRange, pod.metadata.namespace)
        runtimes = {found.key: found for found in self._revisions.typed(RuntimeClass)}
        if shared is not None:
            # The same values for all such pods, which `filled_in` recognizes.
            raw = {**raw, "spec": shared.raw}
        admitted = admit_pod(*(raw, pod.key, self.priority_classes(), ranges, runtimes, rules), release=self._release)
        is_by_itself = admitted["metadata"] is raw["metadata"] and not self._revisions.of("LimitRange")
        if shared is not None and is_by_itself and not rules and not pod.metadata.uid and not shared.has_label_keys():
            known_spec = shared_spec(admitted["spec"])
            if known_spec is not None:
                shared.admitted = (where, known_spec)
        return filled_in(resource, pod, raw, admitted, shared)

    def priority_classes(self) -> Mapping[str, PriorityClass]:
        """Return the cluster's PriorityClasses, by name."""
        return {found.key: found for found in self._revisions.typed(PriorityClass)}

    def priority_rules(self) -> priorities.PriorityRules:
        """Return the rules of the current DisruptionPolicy."""
        rules = priorities.current_policy(self._revisions)[1].spec.priority_rules
        if rules is not self._rules_of:
            self._rules, self._rules_of = priorities.PriorityRules(rules, self._namespace_labels), rules
        return self._rules

    def _namespace_labels(self, namespace: str) -> Mapping[str, str]:
        stored = self._revisions.of("Namespace").get(namespace)
        return {} if stored is None else stored.object.metadata.labels

    def _check_bounds(self, resource: APIResource, budget: PodDisruptionBudget) -> None:
        """Raise StoreError 403 for a budget that is stricter than the policy allows.

        The bound is that of the lowest priority among its pods: existing pods, and pods that workloads will create.
        While the budget covers no pods, it is refused if it is too strict for pods of every priority.
        """
        spec = priorities.current_policy(self._revisions)[1].spec
        if not spec.budget_bounds:
            return
        covered, expected = self._covered(budget)
        bounds = [spec.budget_bound(min(covered))] if covered else spec.possible_bounds
        rate = annotated_rate(budget)
        problems = [bound and strictness_problem(budget.spec, rate, bound, expected) for bound in bounds]
        if all(problems):
            subject = f"pods of priority {min(covered)}" if covered else "pods of any priority"
            raise forbidden(resource, budget.key, f"{TOO_STRICT} for {subject}: {problems[0]}")

    def _covered(self, budget: PodDisruptionBudget) -> tuple[set[int], int | None]:
        """Return the priorities of the pods that the budget covers, and their expected number, None for no pods."""
        selector, namespace = compile_label_selector(budget.spec.selector), budget.metadata.namespace
        classes, rules = self.priority_classes(), self.priority_rules()
        found, wanted = set[int](), 0
        for template, replicas in _templates(self._revisions, namespace):
            if selector.matches(template.metadata.labels):
                found.add(rules.template_priority(template, namespace, classes))
                wanted += replicas
        existing = (pod for pod in self._revisions.typed(Pod, namespace) if not pod.is_terminal)
        pods = [pod for pod in existing if selector.matches(pod.metadata.labels)]
        found |= {pod.priority for pod in pods}
        wanted += sum(pod.metadata.controller is None for pod in pods)
        return found, max(wanted, len(pods)) if found else None


def _strictness(budget: PodDisruptionBudget) -> tuple[object, ...]:
    return budget.spec, budget.metadata.annotations.get(MAX_DISRUPTIONS)


def _templates(revisions: Revisions, namespace: str) -> Iterator[tuple[PodTemplate, int]]:
    """Yield the pod templates of workloads that no other workload owns, each with its replica count."""
    for type_ in get_args(Replicated):
        for workload in revisions.typed(type_, namespace):
            if workload.metadata.controller is None:
                yield workload.spec.template, workload.spec.replicas
