"""Admission of PriorityClasses (plugin/pkg/admission/priority, pkg/apis/scheduling/validation)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise

import msgspec

from podium.api.disruption_policy import POLICY_NAME, DisruptionPolicy, PriorityRule
from podium.api.errors import likely, suggestion
from podium.api.meta import NAMESPACE_NAME_LABEL, Raw
from podium.api.pod import PodSpec
from podium.api.policy import HIGHEST_USER_PRIORITY, PRIORITY_RULE_ANNOTATION, SYSTEM_CLASSES, PriorityClass
from podium.api.resource_requests import qos_class
from podium.api.selectors import EVERYTHING, LabelSelector, Selector, compile_label_selector
from podium.api.workloads import PodTemplate
from podium.store.api_resources import BUILT_IN, POD, POD_GROUP, APIResource
from podium.store.errors import StoreError, forbidden, invalid
from podium.store.revisions import Revisions
from podium.store.stored import Stored

_NO_POLICY = DisruptionPolicy()

LEVEL_OF = "A level of "
"""How the description of a class begins that exists because a DisruptionPolicy has a level of its name."""

_RESERVED = "system-"
# New classes get values between these; values beyond both ends stay free for others.
_TOP, _BOTTOM = 1_000_000_000, -1_000_000_000
_RESOURCE = BUILT_IN["podium.dev", "DisruptionPolicy"]

NamespaceLabels = Callable[[str], Mapping[str, str]]
"""A function that returns the labels of a namespace by its name; no labels if the namespace does not exist."""


def current_policy(revisions: Revisions) -> tuple[Stored | None, DisruptionPolicy]:
    """Return the cluster's DisruptionPolicy in both forms; without one, the defaults."""
    stored = revisions.of("DisruptionPolicy").get(POLICY_NAME)
    if stored is None or not isinstance(stored.object, DisruptionPolicy):
        return None, _NO_POLICY
    return stored, stored.object


def check_priority_class(resource: APIResource, new: PriorityClass) -> None:
    """Raise StoreError 422 for a name with the system prefix that is not a system class."""
    name = new.metadata.name
    if name.startswith(_RESERVED) and (new.value != SYSTEM_CLASSES.get(name) or new.global_default):
        known = ", ".join(f"{known} ({value})" for known, value in SYSTEM_CLASSES.items())
        problem = f"priority class names with 'system-' prefix are reserved for system use only: {known}, no default"
        raise invalid(resource, name, problem, "metadata.name", "FieldValueForbidden")


def check_default_class(resource: APIResource, new: PriorityClass, classes: Iterable[PriorityClass]) -> None:
    """Raise StoreError 403 for a second default class among the cluster's `classes`."""
    default = default_class(classes)
    if new.global_default and default is not None and default.metadata.name != new.metadata.name:
        problem = f"PriorityClass {default.metadata.name} is the default already; only one can exist"
        raise forbidden(resource, new.metadata.name, problem)


def default_class(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """Return the default class; of several defaults, which a cluster can end up with, the one with the lowest value."""
    defaults = (class_ for class_ in classes if class_.global_default)
    return min(defaults, key=lambda priority_class: (priority_class.value, priority_class.metadata.name), default=None)


def priority_of(name: str, classes: Mapping[str, PriorityClass]) -> int | None:
    """Return the priority of a class, including the system classes; None for a class that does not exist."""
    found = classes.get(name)
    return SYSTEM_CLASSES.get(name) if found is None else found.value


def unknown_class(resource: APIResource, key: str, name: str, classes: Mapping[str, PriorityClass]) -> StoreError:
    """Return the refusal of an object that names a PriorityClass that does not exist."""
    refused = forbidden(resource, key, f"no PriorityClass with name {name} was found")
    message = f"{refused.message}; {class_hint(name, classes.values())}"
    return StoreError(refused.code, refused.reason, message, refused.details, refused.status_message)


def class_hint(name: str, classes: Iterable[PriorityClass]) -> str:
    """Return what to try instead of a class that does not exist.

    A class that a DisruptionPolicy created for one of its levels is suggested only for the same name in other letters:
    otherwise the level itself may be misspelled.
    """
    known = {found.metadata.name: found for found in classes}
    levels = {each for each, found in known.items() if found.description.startswith(LEVEL_OF)} - {name.lower()}
    names = sorted({*known.keys() - levels, *SYSTEM_CLASSES})
    if likely(name, names):
        return suggestion(name, names)
    if near := likely(name, sorted(levels)):
        owner = known[near[0]].description.removeprefix(LEVEL_OF)
        return f"{owner} has the level {near[0]}: correct the name that is misspelled"
    return suggestion(name, sorted({*known, *SYSTEM_CLASSES}))


def admit_group(raw: Raw, key: str, classes: Mapping[str, PriorityClass]) -> Raw:
    """Return the group with the priority of the PriorityClass that it names.

    A group that was in a cluster before (it has a uid) keeps its priority. Raises StoreError 403 for a class that does
    not exist and for a priority that differs from its class's, and 422 for a system class, whose priority no group may
    have. A group that names no class has the priority of its pods, and may state a priority itself; upstream sets the
    priority of the default class, or 0, and refuses any other.
    """
    spec = raw.get("spec") or {}
    name, given = spec.get("priorityClassName", ""), spec.get("priority")
    if not name or (given is not None and raw["metadata"].get("uid")):
        return raw
    priority = priority_of(name, classes)
    if priority is None:
        raise unknown_class(POD_GROUP, key, name, classes)
    if given not in (None, priority):
        raise differs_from_class(POD_GROUP, key, "priority", given, name, priority)
    if priority > HIGHEST_USER_PRIORITY:
        problem = f"must be less than or equal to {HIGHEST_USER_PRIORITY}, and {name} has {priority}"
        raise invalid(POD_GROUP, key, problem, "spec.priority")
    return {**raw, "spec": {**spec, "priority": priority}}


def differs_from_class(
    resource: APIResource, key: str, field: str, given: object, name: str, right: object
) -> StoreError:
    """Return the refusal of a field that differs from that of the object's PriorityClass."""
    return forbidden(resource, key, f"{field} {given} is not that of PriorityClass {name}, {right}; leave it out")


def readmit_group(raw: Raw, previous: Raw) -> Raw:
    """Return the updated group; a priority that the update omits keeps the value that admission set."""
    given, before = raw.get("spec"), previous["spec"]
    if not isinstance(given, dict) or "priority" in given or "priority" not in before:
        return raw
    if given.get("priorityClassName") != before.get("priorityClassName"):
        return raw
    return {**raw, "spec": {**given, "priority": before["priority"]}}


def missing_classes(policy: DisruptionPolicy, classes: Mapping[str, PriorityClass]) -> list[Raw]:
    """Return the PriorityClasses that the policy's levels lack, highest first.

    Existing classes keep their values. New ones are spread evenly between two existing ones, or between one and an end.
    The ends are 1000000000 and 0, or -1000000000 if there is no room above 0. Raises StoreError 422 for levels whose
    values are in a different order, and for two levels with too little room between them.
    """
    values = _values(policy, {**SYSTEM_CLASSES, **{name: one.value for name, one in classes.items()}})
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"{LEVEL_OF}DisruptionPolicy {policy.key}",
        }
        for name, value in values.items()
        if name not in classes and name not in SYSTEM_CLASSES
    ]


def _values(policy: DisruptionPolicy, known: Mapping[str, int]) -> dict[str, int]:
    """Return the values of all levels, highest first."""
    levels = policy.spec.levels
    for above, below in pairwise(name for name in levels if name in known):
        if known[above] <= known[below]:
            problem = f"{above} ({known[above]}) stands above {below} ({known[below]}), whose value is not less"
            raise _refused(policy, f"{problem}; change the order")
    values: dict[str, int] = {}
    for is_known, run in groupby(levels, known.__contains__):
        names = list(run)
        if is_known:
            values |= {name: known[name] for name in names}
            continue
        first, end = len(values), len(values) + len(names)
        between = (levels[first - 1] if first else "", levels[end] if end < len(levels) else "")
        values |= _spread(policy, names, between, known)
    return values


def _spread(
    policy: DisruptionPolicy, names: list[str], between: tuple[str, str], known: Mapping[str, int]
) -> dict[str, int]:
    """Return values for new classes between two others; "" is the top or the bottom."""
    above, below = between
    upper = min(known[above], _TOP) if above else _TOP
    lower = known[below] if below else (0 if upper > len(names) else _BOTTOM)
    if upper - lower <= len(names):
        problem = (
            f"there is no room for {', '.join(names)} between {above or 'the highest value'} ({upper}) and "
            f"{below or 'the lowest'} ({lower})"
        )
        raise _refused(policy, problem)
    steps = len(names) + 1
    return {name: upper - (upper - lower) * (index + 1) // steps for index, name in enumerate(names)}


def _refused(policy: DisruptionPolicy, problem: str) -> StoreError:
    return invalid(_RESOURCE, policy.key, problem, "spec.priorities")


class PriorityRules:
    """The compiled rules of one policy. The first rule whose conditions a pod meets decides."""

    def __init__(self, rules: Sequence[PriorityRule] = (), labels_of: NamespaceLabels | None = None) -> None:
        self._labels_of = labels_of
        self._rules = [(rule, _selector(rule.pod_selector), _selector(rule.namespace_selector)) for rule in rules]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def deciding(
        self, namespace: str, labels: Mapping[str, str], specification: Callable[[], PodSpec]
    ) -> PriorityRule | None:
        """Return the first rule that matches a pod, or None.

        `specification` is called only if a rule tests the QoS class.
        """
        for rule, pods, namespaces in self._rules:
            if (
                pods.matches(labels)
                and (namespaces is EVERYTHING or namespaces.matches(self._namespace_labels(namespace)))
                and (not rule.qos_classes or qos_class(specification()) in rule.qos_classes)
            ):
                return rule
        return None

    def apply(self, raw: Raw, key: str) -> Raw:
        """Return a new pod with the class that a rule assigns, and an annotation that names the rule.

        If no rule changes the pod, a stale annotation is removed. Raises StoreError 403 if a rule refuses the class or
        the priority that the pod states.
        """
        metadata, spec = raw["metadata"], raw["spec"]
        rule = self.deciding(
            metadata.get("namespace", ""), metadata.get("labels", {}), lambda: msgspec.convert(spec, PodSpec)
        )
        name = spec.get("priorityClassName", "")
        states_other = bool(name or "priority" in spec) and (rule is None or name != rule.class_name)
        if rule is None or name == rule.class_name or (states_other and rule.when_stated == "Keep"):
            return {**raw, "metadata": _annotated(metadata, None)}
        if states_other and rule.when_stated == "Refuse":
            stated = f"priorityClassName {name}" if name else f"priority {spec['priority']} without a priorityClassName"
            problem = f"{stated} is not allowed; priority rule {rule.name} requires {rule.class_name}"
            raise forbidden(POD, key, problem)
        # Admission fills in priority and policy from the class.
        kept = {field: value for field, value in spec.items() if field not in ("priority", "preemptionPolicy")}
        spec = {**kept, "priorityClassName": rule.class_name}
        return {**raw, "metadata": _annotated(metadata, rule.name), "spec": spec}

    def template_priority(self, template: PodTemplate, namespace: str, classes: Mapping[str, PriorityClass]) -> int:
        """Return the priority that admission gives to pods of a template.

        LimitRanges, which may change a pod's QoS class, are not applied.
        """
        spec = template.spec
        name, priority = spec.priority_class_name, spec.priority
        rule = self.deciding(namespace, template.metadata.labels, lambda: spec)
        if rule is not None and ((not name and priority is None) or rule.when_stated == "Replace"):
            name, priority = rule.class_name, None
        known = priority_of(name, classes) if name else None
        if known is not None:
            return known
        default = None if name else default_class(classes.values())
        if priority is not None:
            return priority
        return 0 if default is None else default.value

    def _namespace_labels(self, namespace: str) -> Mapping[str, str]:
        labels = self._labels_of(namespace) if self._labels_of is not None else {}
        return {**labels, NAMESPACE_NAME_LABEL: namespace}


NO_RULES = PriorityRules()
"""The rules of a cluster without a policy."""


def check_rule_classes(policy: DisruptionPolicy, classes: Mapping[str, PriorityClass]) -> None:
    """Raise StoreError 422 for a rule that names a PriorityClass that neither exists nor is a level of the policy."""
    for index, rule in enumerate(policy.spec.priority_rules):
        if priority_of(rule.class_name, classes) is None:
            hint = class_hint(rule.class_name, classes.values())
            problem = f"no PriorityClass with name {rule.class_name} was found; {hint}"
            field = f"spec.priorityRules[{index}].priorityClassName"
            raise invalid(BUILT_IN["podium.dev", "DisruptionPolicy"], policy.key, problem, field)


def _selector(selector: LabelSelector | None) -> Selector:
    return EVERYTHING if selector is None else compile_label_selector(selector)


def _annotated(metadata: Raw, rule: str | None) -> Raw:
    """Return the metadata with the annotation that names a rule, or without it."""
    annotations = metadata.get("annotations") or {}
    if rule is None:
        if PRIORITY_RULE_ANNOTATION not in annotations:
            return metadata
        kept = {name: value for name, value in annotations.items() if name != PRIORITY_RULE_ANNOTATION}
        return {**metadata, "annotations": kept}
    return {**metadata, "annotations": {**annotations, PRIORITY_RULE_ANNOTATION: rule}}
