"""What is asked of `podium plan fit`, and the scenario that shows the answer when it is played."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.api.input.codec import Input
from podium.api.kinds import KIND_OF
from podium.api.meta import Raw, plain
from podium.api.policy import POLICY_ANNOTATION
from podium.app.explaining.workload import MadePod
from podium.app.planning.bounds import MOST_PLACED
from podium.app.planning.question import applied, scenario_of_spec

_NAME = "plan-fit"
_LABELS = {"podium.dev/plan": "fit"}
# Those that are pending have got their nodes by then.
_LATER = "1m"


@dataclass(frozen=True, slots=True)
class FitWishes:
    """How it is asked: for so many `replicas` (None: as many as fit), with preemption, after those that are pending.

    With `stories` so many pods are placed so often, with other draws.
    """

    replicas: int | None = None
    preempts: bool = False
    after_pending: bool = False
    stories: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about: its `label`, a pod of it, and how many it wants, None where it does not say so."""

    label: str
    made: MadePod
    wanted: int | None


def fit_scenario(read: Input, asked: Asked, wishes: FitWishes, number: int) -> Raw:
    """The scenario in which so many of the pods come: a ReplicaSet of them, so that whoever is preempted comes back."""
    pod = asked.made.pod
    namespace = pod.metadata.namespace or "default"
    template: dict[str, Any] = {
        "metadata": {"labels": {**pod.metadata.labels, **_LABELS}},
        "spec": plain(pod.spec),
    }
    annotations = dict(pod.metadata.annotations)
    if not wishes.preempts:
        annotations[POLICY_ANNOTATION] = "Never"
    if annotations:
        template["metadata"]["annotations"] = annotations
    maker = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": _NAME, "namespace": namespace},
        "spec": {
            "replicas": min(number, MOST_PLACED),
            "selector": {"matchLabels": _LABELS},
            "template": template,
        },
    }
    claims = [
        {"apiVersion": KIND_OF[type(claim)].api_version, "kind": KIND_OF[type(claim)].name, **plain(claim)}
        for claim in asked.made.claims
    ]
    at = _LATER if wishes.after_pending else "0s"
    return scenario_of_spec(read, "fit", {}, [applied([*claims, maker], at)])
