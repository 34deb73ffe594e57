"""The story that a simulation plays: who is there beside the objects, and what happens at which time.

apiVersion: podium.dev/v1alpha1
kind: Scenario
metadata: {name: example}
spec:
  until: 2m
  steps:
  - at: 0s
    apply: [ ...objects... ]
  - at: 30s
    delete: {kind: Pod, namespace: default, name: a}
  - at: 60s
    drain: {name: node-1, timeout: 5m}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from podium.api.errors import InputError, shown
from podium.api.input.codec import Document
from podium.api.meta import Raw
from podium.api.quantity import whole_value
from podium.api.snapshot import is_snapshot
from podium.decide.pressure import EVICTION_ORDERS
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.nodes.node_lifecycle import NodeLifecycleSettings
from podium.sim.recording.tape import is_recording
from podium.sim.scenario.autoscaling import Autoscaling, read_autoscaling
from podium.sim.scenario.fields import Fields
from podium.sim.scenario.repeating import MOST_STEPS
from podium.sim.scenario.steps import Step, label_of, located, read_steps

API_VERSION = "podium.dev/v1alpha1"
_GROUP = API_VERSION.partition("/")[0]


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """One of several schedulers: the `schedulerName` it answers to, and how long a binding takes it, where given."""

    name: str
    bind_delay_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """The steps by time, then as written; `until_ns` after the start the story ends, None for when all is quiet.

    Of one that `is_recorded` steps that cannot be played are skipped: what they are about may have gone otherwise here.
    Without `schedulers` there is one, with the profiles of its configuration; without `autoscaling` no autoscaler, and
    without `rescheduling` no rescheduler.
    """

    name: str = ""
    until_ns: int | None = None
    steps: tuple[Step, ...] = ()
    kubelets: KubeletSettings = field(default_factory=KubeletSettings)
    node_lifecycle: NodeLifecycleSettings = field(default_factory=NodeLifecycleSettings)
    schedulers: tuple[SchedulerSettings, ...] = ()
    autoscaling: Autoscaling | None = None
    is_recorded: bool = False
    rescheduling: ReschedulerSettings | None = None


def split_documents(documents: Iterable[Document]) -> tuple[list[Document], Scenario]:
    """The cluster's objects and the scenario; Snapshots, Recordings, and kinds that Podium does not read, are left out.

    Raises InputError for a second scenario and for anything wrong in one.
    """
    objects: list[Document] = []
    scenarios: list[Document] = []
    for document in documents:
        if document.object is not None:
            objects.append(document)
        elif str(document.raw.get("apiVersion", "")).partition("/")[0] == _GROUP and not _is_about(document.raw):
            scenarios.append(document)
    if len(scenarios) > 1:
        first = scenarios[0]
        problem = (
            f"is a second scenario; the first is in {first.source or 'document'} {first.index}; play one at a time"
        )
        raise located(scenarios[1], "", problem)
    return objects, read_scenario(scenarios[0]) if scenarios else Scenario()


def _is_about(raw: Raw) -> bool:
    """Whether a document only tells of the others."""
    return is_snapshot(raw) or is_recording(raw)


def read_scenario(document: Document) -> Scenario:
    """The scenario of a document. Raises InputError with the field's path for what is wrong or unknown."""
    try:
        return _scenario(document)
    except InputError as error:
        raise error.located(source=document.source, document=document.index, object=label_of(document)) from None


def _scenario(document: Document) -> Scenario:
    root = Fields(document.raw, "")
    for key, right in (("apiVersion", API_VERSION), ("kind", "Scenario")):
        value = root.take(key)
        if value != right:
            raise InputError(f"{shown(value)} is not {right}", path=f".{key}")
    metadata = root.fields("metadata") if root.has("metadata") else Fields({}, "")
    name = metadata.text("name", "")
    spec = root.fields("spec")
    until_ns = spec.duration_ns("until") if spec.has("until") else None
    kubelets = _kubelets(spec.fields("kubelets")) if spec.has("kubelets") else KubeletSettings()
    lifecycle = _node_lifecycle(spec.fields("nodeLifecycle")) if spec.has("nodeLifecycle") else NodeLifecycleSettings()
    schedulers = _schedulers(spec.list_of_fields("schedulers"))
    autoscaling = read_autoscaling(spec.fields("autoscaler")) if spec.has("autoscaler") else None
    rescheduling = _rescheduling(spec.fields("rescheduler")) if spec.has("rescheduler") else None
    is_recorded = spec.boolean("recorded", default=False)
    steps: list[Step] = []
    for step in spec.list_of_fields("steps"):
        steps.extend(read_steps(step, document, until_ns))
        if len(steps) > MOST_STEPS:
            raise InputError(f"more than {MOST_STEPS:,} things happen, repeats included", path=step.path)
    spec.refuse_others()
    root.refuse_others()
    in_order = tuple(sorted(steps, key=lambda step: step.at_ns))
    return Scenario(
        name=name,
        until_ns=until_ns,
        steps=in_order,
        kubelets=kubelets,
        node_lifecycle=lifecycle,
        schedulers=schedulers,
        autoscaling=autoscaling,
        is_recorded=is_recorded,
        rescheduling=rescheduling,
    )


def _rescheduling(given: Fields) -> ReschedulerSettings:
    # Few scenarios have one, and its reader brings along all policies.
    from podium.sim.scenario.rescheduling import read_rescheduling  # noqa: PLC0415

    return read_rescheduling(given)


def _kubelets(given: Fields) -> KubeletSettings:
    plain = KubeletSettings()
    threshold = plain.memory_threshold_bytes
    if given.has("memoryThreshold"):
        threshold = whole_value(given.memory("memoryThreshold"))
    settings = KubeletSettings(
        memory_threshold_bytes=threshold,
        pressure_transition_ns=given.duration_ns("pressureTransition", plain.pressure_transition_ns),
        waits_for_victims=given.boolean("waitForVictims", plain.waits_for_victims),
        eviction_order=given.choice("evictionOrder", EVICTION_ORDERS, plain.eviction_order),
    )
    given.refuse_others()
    return settings


def _node_lifecycle(given: Fields) -> NodeLifecycleSettings:
    settings = NodeLifecycleSettings(given.duration_ns("gracePeriod", NodeLifecycleSettings().grace_ns))
    given.refuse_others()
    return settings


def _schedulers(listed: Sequence[Fields]) -> tuple[SchedulerSettings, ...]:
    found: dict[str, SchedulerSettings] = {}
    for fields in listed:
        name = fields.text("name")
        if name in found:
            raise InputError(f"{shown(name)} is given twice", path=f"{fields.path}.name")
        found[name] = SchedulerSettings(name, fields.duration_ns("bindDelay") if fields.has("bindDelay") else None)
        fields.refuse_others()
    return tuple(found.values())
