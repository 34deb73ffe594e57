"""How priorities, groups of pods, budgets, quotas and DisruptionPolicies are shown.

Budgets have two columns more than Kubernetes gives them: the rate that holds for their disruptions, and how many it
allows. What a DisruptionPolicy and a PodGroup show is Podium's own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.budget_rate import full_ns, rate_of
from podium.api.meta import Raw
from podium.api.pod_group import SCHEDULED
from podium.api.policy import POLICY_ANNOTATION, PREEMPTION_POLICIES, PodDisruptionBudget
from podium.server.tables.cells import NONE, age, condition, count, entries, name, number, shown, text, value
from podium.server.tables.column import AGE, NAME, Cells, Column, Printer

_NOT_GIVEN = "N/A"
_LIMITS = "limits."

_BUDGET_COLUMNS = (
    NAME,
    Column("Min Available", "How many of the pods must stay up."),
    Column("Max Unavailable", "How many of the pods may be down."),
    Column("Allowed Disruptions", "How many more pods may be disrupted, as far as their number goes.", "integer"),
    AGE,
    Column("Rate", "How often the pods may be disrupted: so many in a period."),
    Column("Rate Left", "How many disruptions the rate allows for now."),
)
_CLASS_COLUMNS = (
    NAME,
    Column("Value", "The priority of the pods of the class.", "integer"),
    Column("Global-Default", "Whether pods that name no class are of this one.", "boolean"),
    AGE,
    Column("PreemptionPolicy", "Whether pods of the class preempt others, and are preempted."),
)
_QUOTA_COLUMNS = (
    NAME,
    AGE,
    Column("Request", "What is used of each amount, and how much may be."),
    Column("Limit", "What is used of the limits of containers, and how much may be."),
)
_POLICY_COLUMNS = (
    NAME,
    Column("Priorities", "The priority classes, highest first."),
    Column("Several-Budgets", "What becomes of pods with several budgets."),
    Column("Caps", "How often components may disrupt pods."),
    AGE,
    Column("Default-Budgets", "How many budgets there are for workloads without one.", "integer", priority=1),
    Column("Budget-Bounds", "How many bounds there are for how strict budgets may be.", "integer", priority=1),
    Column("Avoid-For", "How long a controller stays on the avoid list of a node.", priority=1),
)


_GROUP_COLUMNS = (
    NAME,
    Column("Policy", "Whether the pods are scheduled all or none (Gang)."),
    Column("Min Count", "How many pods are placed together, or none."),
    Column("Workload", "The workload that has the template of the group."),
    Column("Template", "The template of the group."),
    Column("Scheduled", "Whether the group was scheduled."),
    AGE,
)


def _budget(raw: Raw, now: int) -> Cells:
    return (
        name(raw),
        text(raw, "spec", "minAvailable", default=_NOT_GIVEN),
        text(raw, "spec", "maxUnavailable", default=_NOT_GIVEN),
        number(raw, "status", "disruptionsAllowed"),
        age(raw, now),
        *_rate(raw, now),
    )


def _rate(raw: Raw, now: int) -> tuple[str, str]:
    """The rate that holds, and how many disruptions it allows."""
    try:
        budget = msgspec.convert(raw, PodDisruptionBudget)
        rate = rate_of(budget)
        return (NONE, NONE) if rate is None else (str(rate), str(max(0, rate.tokens(full_ns(budget, rate), now))))
    except (ValueError, msgspec.ValidationError):
        return "<invalid>", NONE


def _class(raw: Raw, now: int) -> Cells:
    annotated = text(raw, "metadata", "annotations", POLICY_ANNOTATION)
    policy = annotated if annotated in PREEMPTION_POLICIES else text(raw, "preemptionPolicy")
    is_default = value(raw, "globalDefault") is True
    return name(raw), number(raw, "value"), is_default, age(raw, now), policy or PREEMPTION_POLICIES[0]


def _quota(raw: Raw, now: int) -> Cells:
    hard, used = value(raw, "status", "hard"), value(raw, "status", "used")
    limits: list[str] = []
    requests: list[str] = []
    for resource, most in sorted(hard.items() if isinstance(hard, dict) else ()):
        written = f"{resource}: {shown(_amount(used, resource))}/{shown(most)}"
        (limits if resource.startswith(_LIMITS) else requests).append(written)
    return name(raw), age(raw, now), ", ".join(requests), ", ".join(limits)


def _amount(used: Any, resource: str) -> Any:
    return used.get(resource, 0) if isinstance(used, dict) else 0


def _policy(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    caps = map(_cap, entries(spec, "caps"))
    return (
        name(raw),
        _priorities(value(spec, "priorities")),
        text(spec, "severalBudgets", default="Refuse"),
        ",".join(caps) or NONE,
        age(raw, now),
        count(spec, "defaultBudgets"),
        count(spec, "budgetBounds"),
        text(spec, "avoidLists", "expireAfter", default="1h"),
    )


def _cap(raw: Raw) -> str:
    each = " per namespace" if text(raw, "per") == "Namespace" else ""
    return f"{text(raw, 'component', default='*')}={text(raw, 'max')}{each}"


def _priorities(found: Any) -> str:
    given = found.split(">") if isinstance(found, str) else found if isinstance(found, list) else []
    return ">".join(shown(one).strip() for one in given) or NONE


def _pod_group(raw: Raw, now: int) -> Cells:
    policy = value(raw, "spec", "schedulingPolicy")
    is_gang = value(policy, "gang") is not None
    template = text(raw, "spec", "podGroupTemplateRef", "workload", "podGroupTemplateName", default=NONE)
    workload = text(raw, "spec", "podGroupTemplateRef", "workload", "workloadName", default=NONE)
    least = str(value(policy, "gang", "minCount")) if is_gang else NONE
    scheduled = condition(raw, SCHEDULED) or NONE
    return name(raw), "Gang" if is_gang else "Basic", least, workload, template, scheduled, age(raw, now)


def _workload(raw: Raw, now: int) -> Cells:
    return name(raw), age(raw, now)


PRINTERS = {
    ("", "ResourceQuota"): Printer(_QUOTA_COLUMNS, _quota),
    ("podium.dev", "DisruptionPolicy"): Printer(_POLICY_COLUMNS, _policy),
    ("policy", "PodDisruptionBudget"): Printer(_BUDGET_COLUMNS, _budget),
    ("scheduling.k8s.io", "PodGroup"): Printer(_GROUP_COLUMNS, _pod_group),
    ("scheduling.k8s.io", "PriorityClass"): Printer(_CLASS_COLUMNS, _class),
    ("scheduling.k8s.io", "Workload"): Printer((NAME, AGE), _workload),
}
