"""Who may be disrupted, who goes first, and what a container runtime takes.

The rules of pkg/apis/policy/validation, pkg/apis/scheduling/validation and pkg/apis/node/validation. Podium takes
further preemption policies than kube-apiserver does.
"""

from __future__ import annotations

from podium.api.names import label_name_problem
from podium.api.policy import PREEMPTION_POLICIES
from podium.api.validation.amounts import check_amounts, container_resource_problem
from podium.api.validation.place import Place
from podium.api.validation.placement import check_tolerations
from podium.api.validation.selectors import check_label_selector, check_labels
from podium.api.validation.workloads import check_share

_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_HIGHEST_OF_USERS = 1_000_000_000


def check_budget(budget: Place) -> None:
    """A disruption budget: how many pods must stay, or may go, not both."""
    spec = budget.child_or_empty("spec")
    if spec.has("minAvailable") and spec.has("maxUnavailable"):
        spec.invalid("", {}, "minAvailable and maxUnavailable cannot be both set")
    check_share(spec, "minAvailable")
    check_share(spec, "maxUnavailable")
    spec.check_one_of("unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"))
    check_label_selector(spec, "selector")
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    budget.child_or_empty("status").check_not_negative(*counts)


def check_priority_class(priority_class: Place) -> None:
    """A name for a priority; the highest values and the names with `system-` are the system's."""
    name = priority_class.child_or_empty("metadata").text("name")
    value = priority_class.number("value") or 0
    if name.startswith("system-"):
        if value != _SYSTEM_CLASSES.get(name) or priority_class.flag("globalDefault"):
            detail = "priority class names with 'system-' prefix are reserved for system use only"
            priority_class.child_or_empty("metadata").forbidden("name", detail)
    elif value > _HIGHEST_OF_USERS:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_OF_USERS}"
        priority_class.forbidden("value", detail)
    priority_class.check_one_of("preemptionPolicy", PREEMPTION_POLICIES)


def check_runtime_class(runtime_class: Place) -> None:
    """How pods of a runtime class run, what that takes, and on which nodes they can."""
    handler = runtime_class.text("handler")
    if handler:
        runtime_class.check("handler", label_name_problem(handler))
    else:
        runtime_class.required("handler")
    overhead = runtime_class.child("overhead")
    if overhead is not None:
        check_amounts(overhead, "podFixed", container_resource_problem, counts_pages=True)
    scheduling = runtime_class.child("scheduling")
    if scheduling is not None:
        check_labels(scheduling, "nodeSelector")
        check_tolerations(scheduling)
