"""What a pod must be like (pkg/apis/core/validation, ValidatePodSpec), as far as Podium reads it."""

from __future__ import annotations

from podium.api.checks import check, check_count, check_not_negative, check_one_of, check_time, check_weight
from podium.api.errors import InputError, field_path
from podium.api.names import label_key_problem, label_value_problem, subdomain_problem
from podium.api.pod import (
    Affinity,
    Container,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from podium.api.policy import PREEMPTION_POLICIES
from podium.api.requirement import parse_int64
from podium.api.validate_resources import (
    check_amounts,
    check_limits,
    check_pod_level,
    check_quantity,
    check_requirements,
)
from podium.api.validate_selection import (
    check_label_keys,
    check_label_selector,
    check_labels,
    check_names,
    check_node_selector,
    check_node_selector_term,
    check_topology_key,
)

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_MAX_PORT = 65_535


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
        check_pod_level(spec.resources, f"{path}.resources")
    _check_life(spec, path)
    _check_placement(spec, path)
    _check_attachments(spec, path)


def check_pod_limits(spec: PodSpec, path: str) -> None:
    """That no container, nor the pod as a whole, requests more than its limit."""
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            check_limits(container.resources, f"{path}.{field}[{index}].resources")
    if spec.resources is not None:
        check_limits(spec.resources, f"{path}.resources")


def check_pod_status(status: PodStatus) -> None:
    """What was observed of a pod."""
    check_one_of(status.phase, _PHASES, ".status.phase")
    check_time(status.start_time, ".status.startTime")
    if status.nominated_node_name:
        check(subdomain_problem(status.nominated_node_name), ".status.nominatedNodeName")
    for field, listed in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for index, one in enumerate(listed):
            _check_observed(one.resources, one.allocated_resources, f".status.{field}[{index}]")
    _check_observed(status.resources, status.allocated_resources, ".status")


def _check_observed(resources: ResourceRequirements | None, allocated: ResourceList, path: str) -> None:
    """The amounts that a kubelet reports, whatever the resources are called."""
    if resources is not None:
        for name, amount in resources.requests.items():
            check_quantity(amount, field_path(f"{path}.resources.requests", name))
    for name, amount in allocated.items():
        check_quantity(amount, field_path(f"{path}.allocatedResources", name))


def _check_life(spec: PodSpec, path: str) -> None:
    """Priority, restarts and the end."""
    if spec.priority_class_name:
        check(subdomain_problem(spec.priority_class_name), f"{path}.priorityClassName")
    if spec.preemption_policy is not None:
        check_one_of(spec.preemption_policy, PREEMPTION_POLICIES, f"{path}.preemptionPolicy")
    check_one_of(spec.restart_policy, _RESTART_POLICIES, f"{path}.restartPolicy")
    check_not_negative(spec.termination_grace_period_seconds, f"{path}.terminationGracePeriodSeconds")


def _check_placement(spec: PodSpec, path: str) -> None:
    """Everything that says on which nodes the pod may run."""
    if spec.node_name:
        check(subdomain_problem(spec.node_name), f"{path}.nodeName")
    check_labels(spec.node_selector, f"{path}.nodeSelector")
    if spec.affinity is not None:
        _check_affinity(spec.affinity, f"{path}.affinity")
    check_count(spec.tolerations, f"{path}.tolerations")
    for index, toleration in enumerate(spec.tolerations):
        _check_toleration(toleration, f"{path}.tolerations[{index}]")
    check_count(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    for index, constraint in enumerate(spec.topology_spread_constraints):
        _check_spread(constraint, f"{path}.topologySpreadConstraints[{index}]")


def _check_attachments(spec: PodSpec, path: str) -> None:
    """Volumes and scheduling gates."""
    check_count(spec.volumes, f"{path}.volumes")
    for index, volume in enumerate(spec.volumes):
        claim = volume.persistent_volume_claim
        if claim is not None:
            place = f"{path}.volumes[{index}].persistentVolumeClaim.claimName"
            check(subdomain_problem(claim.claim_name), place)
    check_count(spec.scheduling_gates, f"{path}.schedulingGates")
    for index, gate in enumerate(spec.scheduling_gates):
        check(label_key_problem(gate.name), f"{path}.schedulingGates[{index}].name")


def _check_container(container: Container, path: str) -> None:
    check_requirements(container.resources, f"{path}.resources")
    if container.restart_policy:
        check_one_of(container.restart_policy, _RESTART_POLICIES, f"{path}.restartPolicy")
    check_count(container.ports, f"{path}.ports")
    for index, port in enumerate(container.ports):
        place = f"{path}.ports[{index}]"
        for field, number in (("hostPort", port.host_port), ("containerPort", port.container_port)):
            if not 0 <= number <= _MAX_PORT:
                raise InputError(f"{number} is no port; it must be 1 to {_MAX_PORT}", path=f"{place}.{field}")
        check_one_of(port.protocol, _PROTOCOLS, f"{place}.protocol")


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
    check_topology_key(term.topology_key, path)
    check_label_selector(term.label_selector, f"{path}.labelSelector")
    check_label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    check_count(term.namespaces, f"{path}.namespaces")
    check_names(term.namespaces, f"{path}.namespaces")
    check_label_keys(term.match_label_keys, f"{path}.matchLabelKeys")
    check_label_keys(term.mismatch_label_keys, f"{path}.mismatchLabelKeys")


def _check_toleration(toleration: Toleration, path: str) -> None:
    operator = toleration.operator or "Equal"
    if toleration.key:
        check(label_key_problem(toleration.key), f"{path}.key")
    elif operator != "Exists":
        raise InputError("must be Exists when there is no key", path=f"{path}.operator")
    if operator == "Exists":
        if toleration.value:
            raise InputError("must be empty when the operator is Exists", path=f"{path}.value")
    elif operator == "Equal":
        check(label_value_problem(toleration.value), f"{path}.value")
    elif parse_int64(toleration.value) is None:
        raise InputError(f"must be a 64-bit integer when the operator is {operator}", path=f"{path}.value")
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        raise InputError("must be NoExecute when tolerationSeconds is given", path=f"{path}.effect")


def _check_spread(constraint: TopologySpreadConstraint, path: str) -> None:
    if constraint.max_skew < 1:
        raise InputError(f"{constraint.max_skew} is out of range; it must be 1 or more", path=f"{path}.maxSkew")
    check_topology_key(constraint.topology_key, path)
    domains = constraint.min_domains
    if domains is not None and domains < 1:
        raise InputError(f"{domains} is out of range; it must be 1 or more", path=f"{path}.minDomains")
    if domains is not None and constraint.when_unsatisfiable != "DoNotSchedule":
        raise InputError("counts only with whenUnsatisfiable: DoNotSchedule", path=f"{path}.minDomains")
    check_label_selector(constraint.label_selector, f"{path}.labelSelector")
    check_label_keys(constraint.match_label_keys, f"{path}.matchLabelKeys")
