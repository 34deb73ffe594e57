"""Groups of pods, and the workloads that have templates for them.

The rules that the fields of k8s.io/api/scheduling/v1alpha2 are marked with (`+k8s:required` and so on).
"""

from __future__ import annotations

from podium.api.names import label_key_problem, label_name_problem, subdomain_problem
from podium.api.pod_group import DISRUPTION_MODES, HIGHEST_PRIORITY
from podium.api.validation.place import Place

_MOST_TEMPLATES = 8
_MOST_CLAIMS = 4
_MOST_TOPOLOGIES = 1


def check_pod_group(group: Place) -> None:
    """A group of pods: how they are scheduled, where they may be together, and how they are disrupted."""
    spec = group.child_or_empty("spec")
    reference = spec.child("podGroupTemplateRef")
    if reference is not None:
        workload = reference.child("workload")
        if workload is None:
            reference.invalid("", reference.value, "must specify one of: `workload`")
        else:
            name = workload.text("workloadName")
            if name:
                workload.check("workloadName", subdomain_problem(name))
            else:
                workload.required("workloadName")
            _check_short_names(workload, "podGroupTemplateName")
    _check_scheduling(spec)


def check_workload(workload: Place) -> None:
    """Templates for groups of pods."""
    spec = workload.child_or_empty("spec")
    controller = spec.child("controllerRef")
    if controller is not None:
        controller.require("kind", "name")
    templates = spec.objects("podGroupTemplates")
    if not templates:
        spec.required("podGroupTemplates")
    _check_number(spec, "podGroupTemplates", len(templates), _MOST_TEMPLATES)
    names: set[str] = set()
    for template in templates:
        _check_short_names(template, "name")
        name = template.text("name")
        if name in names:
            template.duplicate("name", name)
        names.add(name)
        _check_scheduling(template)


def _check_scheduling(spec: Place) -> None:
    """What a group and a template for one have in common."""
    policy = spec.child("schedulingPolicy")
    if policy is None:
        spec.required("schedulingPolicy")
    else:
        _check_policy(policy)
    constraints = spec.child("schedulingConstraints")
    if constraints is not None:
        topologies = constraints.objects("topology")
        _check_number(constraints, "topology", len(topologies), _MOST_TOPOLOGIES)
        for topology in topologies:
            key = topology.text("key")
            if key:
                topology.check("key", label_key_problem(key))
            else:
                topology.required("key")
    claims = spec.objects("resourceClaims")
    _check_number(spec, "resourceClaims", len(claims), _MOST_CLAIMS)
    for claim in claims:
        _check_short_names(claim, "name")
        if claim.has("resourceClaimName") == claim.has("resourceClaimTemplateName"):
            claim.invalid(
                "", claim.value, "exactly one of `resourceClaimName`, `resourceClaimTemplateName` is required"
            )
    spec.check_one_of("disruptionMode", DISRUPTION_MODES)
    priority = spec.number("priority")
    if priority is not None and priority > HIGHEST_PRIORITY:
        spec.invalid("priority", priority, f"must be less than or equal to {HIGHEST_PRIORITY}")


def _check_policy(policy: Place) -> None:
    if policy.has("basic") == policy.has("gang"):
        policy.invalid("", policy.value, "must specify exactly one of: `basic`, `gang`")
    gang = policy.child("gang")
    if gang is None:
        return
    least = gang.number("minCount")
    if not least:
        gang.required("minCount")
    elif least < 1:
        gang.invalid("minCount", least, "must be greater than or equal to 1")


def _check_short_names(place: Place, *names: str) -> None:
    for name in names:
        text = place.text(name)
        if text:
            place.check(name, label_name_problem(text))
        else:
            place.required(name)


def _check_number(place: Place, name: str, number: int, most: int) -> None:
    if number > most:
        place.invalid(name, number, f"must have at most {most} items")
