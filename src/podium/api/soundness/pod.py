"""What a pod must be like so that Podium can do anything with it; all else is found in `podium.api.validation`."""

from __future__ import annotations

from podium.api.checks import check, check_count, check_one_of, check_time, check_weight
from podium.api.errors import field_path
from podium.api.names import subdomain_problem
from podium.api.pod import (
    Affinity,
    Container,
    ContainerStatus,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
)
from podium.api.policy import PREEMPTION_POLICIES
from podium.api.soundness.resources import check_amounts, check_quantity, check_requirements
from podium.api.soundness.selection import check_label_selector, check_node_selector, check_node_selector_term

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")


def check_pod_spec(spec: PodSpec, path: str) -> None:
    """All of a pod's specification, in a pod or in a template."""
    check_count(spec.containers, f"{path}.containers")
    for index, container in enumerate(spec.containers):
        _check_container(container, f"{path}.containers[{index}]")
    check_count(spec.init_containers, f"{path}.initContainers")
    for index, container in enumerate(spec.init_containers):
        _check_container(container, f"{path}.initContainers[{index}]")
    check_amounts(spec.overhead, f"{path}.overhead")
    if spec.resources is not None:
        check_requirements(spec.resources, f"{path}.resources")
    _check_life(spec, path)
    _check_placement(spec, path)


def check_pod_status(status: PodStatus) -> None:
    """What was observed of a pod."""
    check_one_of(status.phase, _PHASES, ".status.phase")
    check_time(status.start_time, ".status.startTime")
    if status.nominated_node_name:
        check(subdomain_problem(status.nominated_node_name), ".status.nominatedNodeName")
    if status.container_statuses:
        _check_statuses(status.container_statuses, ".status.containerStatuses")
    if status.init_container_statuses:
        _check_statuses(status.init_container_statuses, ".status.initContainerStatuses")
    if status.resources is not None or status.allocated_resources:
        _check_observed(status.resources, status.allocated_resources, ".status")


def _check_statuses(statuses: tuple[ContainerStatus, ...], path: str) -> None:
    for index, status in enumerate(statuses):
        if status.resources is not None or status.allocated_resources:
            _check_observed(status.resources, status.allocated_resources, f"{path}[{index}]")


def _check_observed(resources: ResourceRequirements | None, allocated: ResourceList, path: str) -> None:
    """The amounts that a kubelet reports, whatever the resources are called."""
    if resources is not None:
        for name, amount in resources.requests.items():
            check_quantity(amount, field_path(f"{path}.resources.requests", name))
    for name, amount in allocated.items():
        check_quantity(amount, field_path(f"{path}.allocatedResources", name))


def _check_life(spec: PodSpec, path: str) -> None:
    """Priority and restarts."""
    if spec.preemption_policy is not None:
        check_one_of(spec.preemption_policy, PREEMPTION_POLICIES, f"{path}.preemptionPolicy")
    check_one_of(spec.restart_policy, _RESTART_POLICIES, f"{path}.restartPolicy")


def _check_placement(spec: PodSpec, path: str) -> None:
    """How much there is to say about the nodes on which the pod may run, and about what goes with it."""
    if spec.affinity is not None:
        _check_affinity(spec.affinity, f"{path}.affinity")
    check_count(spec.tolerations, f"{path}.tolerations")
    check_count(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    for index, constraint in enumerate(spec.topology_spread_constraints):
        check_label_selector(constraint.label_selector, f"{path}.topologySpreadConstraints[{index}].labelSelector")
    check_count(spec.volumes, f"{path}.volumes")
    check_count(spec.scheduling_gates, f"{path}.schedulingGates")


def _check_container(container: Container, path: str) -> None:
    check_requirements(container.resources, f"{path}.resources")
    check_count(container.ports, f"{path}.ports")


def _check_affinity(affinity: Affinity, path: str) -> None:
    if affinity.node_affinity is not None:
        _check_node_affinity(affinity.node_affinity, f"{path}.nodeAffinity")
    if affinity.pod_affinity is not None:
        _check_pod_affinity(affinity.pod_affinity, f"{path}.podAffinity")
    if affinity.pod_anti_affinity is not None:
        _check_pod_affinity(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def _check_node_affinity(affinity: NodeAffinity, path: str) -> None:
    if affinity.required is not None:
        check_node_selector(affinity.required, f"{path}.requiredDuringSchedulingIgnoredDuringExecution")
    preferred = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    check_count(affinity.preferred, preferred)
    for index, term in enumerate(affinity.preferred):
        check_weight(term.weight, f"{preferred}[{index}]")
        check_node_selector_term(term.preference, f"{preferred}[{index}].preference")


def _check_pod_affinity(affinity: PodAffinity, path: str) -> None:
    required = f"{path}.requiredDuringSchedulingIgnoredDuringExecution"
    check_count(affinity.required, required)
    for index, term in enumerate(affinity.required):
        _check_pod_affinity_term(term, f"{required}[{index}]")
    preferred = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    check_count(affinity.preferred, preferred)
    for index, weighted in enumerate(affinity.preferred):
        check_weight(weighted.weight, f"{preferred}[{index}]")
        _check_pod_affinity_term(weighted.pod_affinity_term, f"{preferred}[{index}].podAffinityTerm")


def _check_pod_affinity_term(term: PodAffinityTerm, path: str) -> None:
    check_label_selector(term.label_selector, f"{path}.labelSelector")
    check_label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    check_count(term.namespaces, f"{path}.namespaces")
