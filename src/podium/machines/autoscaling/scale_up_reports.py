"""What pods that need a node are told about it, as events."""

from __future__ import annotations

from collections.abc import Mapping

from podium.cluster.pods import PodRecord
from podium.decide.scaling.scale_up import Option, ScaleUpPlan
from podium.machines.actions import Record


class ScaleUpReports:
    """Tells each pod what is new to it.

    Source: autoscaler cluster-autoscaler/processors/status/eventing_scale_up_processor.go, for the reasons and wording.
    """

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def report(self, plan: ScaleUpPlan, sizes: Mapping[str, int]) -> list[Record]:
        """The events of a plan. ``sizes`` is how many nodes each group has before it is carried out."""
        told, self._told = self._told, {}
        records = [_not_triggered(plan, pod) for pod in plan.unhelped]
        if plan.chosen is not None:
            records += [_triggered(plan, plan.chosen, pod, sizes) for pod in plan.chosen.pods]
        self._told = {record.uid: record.message for record in records}
        return [record for record in records if told.get(record.uid) != record.message]


def _triggered(plan: ScaleUpPlan, chosen: Option, pod: PodRecord, sizes: Mapping[str, int]) -> Record:
    group, size = chosen.group, sizes[chosen.group.name]
    others = dict(plan.refusals[pod.uid])
    for option in plan.options:
        if option is not chosen and option.group.name not in others:
            others[option.group.name] = f"wastes {float(option.waste):.0%} instead of {float(chosen.waste):.0%}"
    message = f"pod triggered scale-up: {group.name} {size}->{size + len(chosen.names)} (max: {group.maximum})"
    return Record(pod.key, pod.uid, "Normal", "TriggeredScaleUp", "; ".join([message, *_listed(others)]))


def _not_triggered(plan: ScaleUpPlan, pod: PodRecord) -> Record:
    reasons = "; ".join(_listed(plan.refusals[pod.uid])) or "there is no node group"
    return Record(pod.key, pod.uid, "Normal", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {reasons}")


def _listed(reasons: Mapping[str, str]) -> list[str]:
    return [f"{group}: {reasons[group]}" for group in sorted(reasons)]
