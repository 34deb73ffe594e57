"""Scenarios: the components that a simulation runs, and what happens when.

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

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from podium.api.errors import InputError, shown
from podium.api.input.codec import Document, decode
from podium.api.meta import Raw
from podium.api.quantity import whole_value
from podium.api.snapshot import API_VERSION, is_snapshot
from podium.api.versions.release import read_version
from podium.controllers.autoscaling.autoscaler import AutoscalerSettings
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.nodes.node_lifecycle import NodeLifecycleSettings
from podium.decide.autoscaling import NodeGroup
from podium.decide.kubelet import EVICTION_ORDERS
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.sim.recording.tape import is_recording
from podium.sim.scenario.fields import MOST_STEPS, Fields
from podium.sim.scenario.steps import ScenarioStep, label_of, located, read_steps


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """The node groups and settings of an autoscaler."""

    groups: tuple[NodeGroup, ...]
    settings: AutoscalerSettings


def read_autoscaling(given: Fields) -> Autoscaling:
    """Return a scenario's autoscaler settings. Raises InputError with the field's path."""
    plain = AutoscalerSettings()
    groups = tuple(_group(name, fields) for name, fields in given.named_fields("nodeGroups"))
    if not groups:
        raise InputError("is missing; name at least one group of nodes", path=f"{given.path}.nodeGroups")
    cutoff = given.number("priorityCutoff", plain.priority_cutoff)
    scan_ns = given.duration_ns("scanInterval", plain.scan_interval_ns)
    down = given.fields("scaleDown", is_optional=True)
    settings = AutoscalerSettings(
        scan_interval_ns=scan_ns,
        priority_cutoff=cutoff,
        utilisation_threshold=down.share("utilizationThreshold", plain.utilisation_threshold),
        unneeded_ns=down.duration_ns("unneededTime", plain.unneeded_ns),
        delay_after_add_ns=down.duration_ns("delayAfterAdd", plain.delay_after_add_ns),
        max_drains=down.number("maxDrains", plain.max_drains, least=1),
        max_eviction_ns=down.duration_ns("maxEvictionTime", plain.max_eviction_ns),
        max_graceful_termination_ns=down.duration_ns("maxGracefulTermination", plain.max_graceful_termination_ns),
    )
    down.refuse_others()
    given.refuse_others()
    return Autoscaling(groups, settings)


def _group(name: str, fields: Fields) -> NodeGroup:
    least = fields.number("min", 0, least=0)
    return NodeGroup(
        name=name,
        minimum=least,
        maximum=fields.number("max", least=max(1, least)),
        start_up_ns=fields.duration_ns("startUp", 0),
        template=_template(fields.take("template"), f"{fields.path}.template", name),
    )


def _template(given: object, path: str, group: str) -> Raw:
    """Return the template of a group's nodes: a Node without a name."""
    if not isinstance(given, dict):
        raise InputError(f"{shown(given)} is not an object", path=path)
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InputError(f"{shown(metadata)} is not an object", path=f"{path}.metadata")
    node: Raw = {"apiVersion": "v1", "kind": "Node", **given}
    try:
        decode({**node, "metadata": {**metadata, "name": f"{group}-0"}})
    except InputError as error:
        # The name is derived from the group's.
        place = path.replace(".template", ".name") if error.path == ".metadata.name" else path + error.path
        raise InputError(error.problem, path=place) from None
    return node


_GROUP = API_VERSION.partition("/")[0]


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """One of several schedulers: its `schedulerName`, and how long its bindings take, if given."""

    name: str
    bind_delay_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario; `until_ns` is the end after the start, None: when nothing is left to do.

    `steps` are by time, then as written. `latency_ns` is the duration of requests, if given. Impossible steps of a
    scenario that `is_recorded` are skipped, since their objects may have fared differently. Without `schedulers` there
    is one, with the profiles of its configuration; autoscaler and rescheduler are optional.
    """

    name: str = ""
    until_ns: int | None = None
    latency_ns: int | None = None
    steps: tuple[ScenarioStep, ...] = ()
    kubelets: KubeletSettings = field(default_factory=KubeletSettings)
    node_lifecycle: NodeLifecycleSettings = field(default_factory=NodeLifecycleSettings)
    schedulers: tuple[SchedulerSettings, ...] = ()
    autoscaling: Autoscaling | None = None
    is_recorded: bool = False
    rescheduling: ReschedulerSettings | None = None


def split_documents(documents: Iterable[Document]) -> tuple[list[Document], Scenario]:
    """Return the cluster's objects and the scenario. Raises InputError for a second or invalid scenario."""
    objects: list[Document] = []
    scenarios: list[Document] = []
    for document in documents:
        if document.object is not None:
            objects.append(document)
        elif str(document.raw.get("apiVersion", "")).partition("/")[0] == _GROUP and not (
            is_snapshot(document.raw) or is_recording(document.raw)
        ):
            scenarios.append(document)
    if len(scenarios) > 1:
        place = f"{scenarios[0].source or 'document'} {scenarios[0].index}"
        raise located(scenarios[1], "", f"is a second scenario; the first is in {place}; play one at a time")
    return objects, read_scenario(scenarios[0]) if scenarios else Scenario()


def read_scenario(document: Document) -> Scenario:
    """Return the scenario of a document. Raises InputError with the field's path."""
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
    name = root.fields("metadata", is_optional=True).text("name", "")
    spec = root.fields("spec")
    until_ns = spec.optional("until", spec.duration_ns)
    latency_ns = spec.optional("latency", spec.duration_ns)
    if spec.has("kubernetesVersion"):
        # `ReleaseChoice` finds it in the document.
        try:
            read_version(spec.text("kubernetesVersion"))
        except InputError as error:
            raise InputError(error.problem, path=".spec.kubernetesVersion") from None
    scenario = Scenario(
        name=name,
        until_ns=until_ns,
        latency_ns=latency_ns,
        kubelets=_kubelets(spec.fields("kubelets", is_optional=True)),
        node_lifecycle=_node_lifecycle(spec.fields("nodeLifecycle", is_optional=True)),
        schedulers=tuple(
            SchedulerSettings(scheduler, fields.optional("bindDelay", fields.duration_ns))
            for scheduler, fields in spec.named_fields("schedulers")
        ),
        autoscaling=read_autoscaling(spec.fields("autoscaler")) if spec.has("autoscaler") else None,
        rescheduling=_rescheduling(spec.fields("rescheduler")) if spec.has("rescheduler") else None,
        is_recorded=spec.boolean("recorded", default=False),
    )
    steps: list[ScenarioStep] = []
    for step in spec.list_of_fields("steps"):
        steps.extend(read_steps(step, document, until_ns))
        if len(steps) > MOST_STEPS:
            raise InputError(f"more than {MOST_STEPS:,} things happen, repeats included", path=step.path)
    spec.refuse_others()
    root.refuse_others()
    return replace(scenario, steps=tuple(sorted(steps, key=lambda step: step.at_ns)))


def _rescheduling(given: Fields) -> ReschedulerSettings:
    # Imported here, since few scenarios have one and its reader imports all policies.
    from podium.sim.scenario.rescheduling import read_rescheduling  # noqa: PLC0415

    return read_rescheduling(given)


def _kubelets(given: Fields) -> KubeletSettings:
    plain = KubeletSettings()
    threshold = given.optional("memoryThreshold", given.memory)
    settings = KubeletSettings(
        memory_threshold_bytes=plain.memory_threshold_bytes if threshold is None else whole_value(threshold),
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
