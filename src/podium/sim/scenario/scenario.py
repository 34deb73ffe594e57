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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from podium.api.errors import InputError, locating, shown
from podium.api.input.codec import Document, decode
from podium.api.input.documents import API_VERSION, is_snapshot
from podium.api.meta import Raw
from podium.api.objects import label_of
from podium.api.quantity import whole_value
from podium.api.reading import Duration, Text
from podium.api.versions.release import read_version
from podium.controllers.autoscaling.autoscaler import AutoscalerSettings
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.nodes.node_lifecycle import NodeLifecycleSettings
from podium.decide.autoscaling import NodeGroup
from podium.decide.kubelet import EvictionOrder
from podium.decide.node_reports import NodeReport, reporter
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.settings.arguments import Strict, read_strictly
from podium.framework.settings.configuration import require_kind
from podium.sim.recording.tape import is_recording
from podium.sim.scenario.actions import MOST_STEPS, Amount, Count, Step, played_steps
from podium.sim.scenario.steps import ScenarioStep

_KUBELETS = KubeletSettings()


class SchedulerSettings(Strict, frozen=True, kw_only=True):
    """One of several schedulers: its `schedulerName`, and how long its bindings take, if given."""

    name: Text
    bind_delay_ns: Duration | None = None


class WrittenKubelets(Strict, frozen=True, kw_only=True):
    """The settings of kubelets; see `KubeletSettings`."""

    memory_threshold: Amount | None = None
    pressure_transition: Duration = _KUBELETS.pressure_transition_ns
    wait_for_victims: bool = _KUBELETS.waits_for_victims
    eviction_order: EvictionOrder = _KUBELETS.eviction_order

    def settings(self) -> KubeletSettings:
        return KubeletSettings(
            memory_threshold_bytes=0 if self.memory_threshold is None else whole_value(self.memory_threshold),
            pressure_transition_ns=self.pressure_transition,
            waits_for_victims=self.wait_for_victims,
            eviction_order=self.eviction_order,
        )


class WrittenNodeGroup(Strict, frozen=True, kw_only=True):
    """A group of nodes; see `NodeGroup`."""

    name: Text
    min: Count = 0
    max: Annotated[int, Meta(ge=1)]
    start_up: Duration = 0
    template: dict[str, Any]
    reports: tuple[dict[str, Any], ...] = ()


class WrittenAutoscaler(AutoscalerSettings, frozen=True, kw_only=True):
    """The settings of an autoscaler, and its groups of nodes."""

    node_groups: tuple[WrittenNodeGroup, ...] = ()


class WrittenSpec(Strict, frozen=True, kw_only=True):
    """The components of a simulation, and what happens when."""

    until: Duration | None = None
    latency: Duration | None = None
    kubernetes_version: Text | None = None
    kubelets: WrittenKubelets = WrittenKubelets()
    node_lifecycle: NodeLifecycleSettings = NodeLifecycleSettings()
    schedulers: tuple[SchedulerSettings, ...] = ()
    autoscaler: WrittenAutoscaler | None = None
    rescheduler: dict[str, Any] | None = None
    recorded: bool = False
    steps: tuple[Step, ...] = ()


class WrittenMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a scenario."""

    name: str = ""


class WrittenScenario(Strict, frozen=True, kw_only=True):
    """A Scenario of podium simulate."""

    api_version: Literal["podium.dev/v1alpha1"]
    kind: Literal["Scenario"]
    metadata: WrittenMetadata = WrittenMetadata()
    spec: WrittenSpec


Autoscaling = tuple[tuple[NodeGroup, ...], AutoscalerSettings]
"""The node groups and settings of an autoscaler."""


def read_autoscaling(raw: Raw, path: str) -> Autoscaling:
    """Return the autoscaler settings in an object at a path. Raises InputError with the field's path."""
    with locating(path):
        return _autoscaling(read_strictly(raw, WrittenAutoscaler), "")


def _autoscaling(written: WrittenAutoscaler, path: str) -> Autoscaling:
    if not written.node_groups:
        raise InputError("is missing; name at least one group of nodes", path=f"{path}.nodeGroups")
    _require_distinct_names(written.node_groups, f"{path}.nodeGroups")
    groups = (_group(group, f"{path}.nodeGroups[{index}]") for index, group in enumerate(written.node_groups))
    return tuple(groups), written


def _require_distinct_names(named: Sequence[WrittenNodeGroup | SchedulerSettings], path: str) -> None:
    found: set[str] = set()
    for index, each in enumerate(named):
        if each.name in found:
            raise InputError(f"{shown(each.name)} is given twice", path=f"{path}[{index}].name")
        found.add(each.name)


def _group(written: WrittenNodeGroup, path: str) -> NodeGroup:
    """Return a group of nodes, with a Node without a name as its template."""
    if written.max < written.min:
        raise InputError(f"{written.max} is less than {written.min}, which is min", path=f"{path}.max")
    template = written.template
    metadata = template.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InputError(f"{shown(metadata)} is not an object", path=f"{path}.template.metadata")
    node: Raw = {"apiVersion": "v1", "kind": "Node", **template}
    try:
        decode({**node, "metadata": {**metadata, "name": f"{written.name}-0"}})
    except InputError as error:
        # The name is derived from the group's.
        place = ".name" if error.path == ".metadata.name" else f".template{error.path}"
        raise InputError(error.problem, path=path + place) from None
    reports = tuple(_report(raw, f"{path}.reports[{index}]") for index, raw in enumerate(written.reports))
    return NodeGroup(written.name, written.min, written.max, written.start_up, node, reports)


def _report(raw: Raw, path: str) -> NodeReport:
    """Return what some node of a group reports."""
    with locating(path):
        report = decode(raw)
        if isinstance(report, NodeReport) and reporter(report):
            return report
        raise InputError("is neither a CSINode nor a ResourceSlice with .spec.nodeName")


_GROUP = API_VERSION.partition("/")[0]


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
        for each in scenarios:
            with locating(source=each.source, document=each.index, object=label_of(each.raw)):
                require_kind(each.raw, "Scenario", API_VERSION)
        place = f"{scenarios[0].source or 'document'} {scenarios[0].index}"
        raise scenarios[1].located(InputError(f"is a second scenario; the first is in {place}; play one at a time"))
    return objects, read_scenario(scenarios[0]) if scenarios else Scenario()


def read_scenario(document: Document) -> Scenario:
    """Return the scenario of a document. Raises InputError with the field's path."""
    with locating(source=document.source, document=document.index, object=label_of(document.raw)):
        return _scenario(document)


def _scenario(document: Document) -> Scenario:
    require_kind(document.raw, "Scenario", API_VERSION)
    written = read_strictly(document.raw, WrittenScenario)
    spec = written.spec
    if spec.kubernetes_version is not None:
        # `ReleaseChoice` finds it in the document.
        try:
            read_version(spec.kubernetes_version)
        except InputError as error:
            raise InputError(error.problem, path=".spec.kubernetesVersion") from None
    _require_distinct_names(spec.schedulers, ".spec.schedulers")
    rescheduling = None
    if spec.rescheduler is not None:
        # Imported here, since few scenarios have one and its reader imports all policies.
        from podium.controllers.rescheduling.planning import read_rescheduling  # noqa: PLC0415

        rescheduling = read_rescheduling(spec.rescheduler, ".spec.rescheduler")
    steps: list[ScenarioStep] = []
    for index, step in enumerate(spec.steps):
        path = f".spec.steps[{index}]"
        steps.extend(played_steps(step, path, document, spec.until))
        if len(steps) > MOST_STEPS:
            raise InputError(f"more than {MOST_STEPS:,} things happen, repeats included", path=path)
    return Scenario(
        name=written.metadata.name,
        until_ns=spec.until,
        latency_ns=spec.latency,
        kubelets=spec.kubelets.settings(),
        node_lifecycle=spec.node_lifecycle,
        schedulers=spec.schedulers,
        autoscaling=None if spec.autoscaler is None else _autoscaling(spec.autoscaler, ".spec.autoscaler"),
        rescheduling=rescheduling,
        is_recorded=spec.recorded,
        steps=tuple(sorted(steps, key=lambda step: step.at_ns)),
    )
