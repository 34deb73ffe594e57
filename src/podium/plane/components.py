"""How the components around the store are made, for whoever plays or serves a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from podium.api.node import Node
from podium.decide.scaling.node_groups import NodeGroup
from podium.driver.component import Component, MakeMachine
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.settings.configuration import Configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.machines.autoscaling.autoscaler import Autoscaler, AutoscalerSettings
from podium.machines.disruption.avoid_lists import AvoidLists
from podium.machines.disruption.default_budgets import DefaultBudgets
from podium.machines.disruption.disruption_controller import DisruptionController
from podium.machines.kubelets.kubelet import Kubelet
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.machine import Machine
from podium.machines.nodes.node_lifecycle import NodeLifecycle, NodeLifecycleSettings
from podium.machines.nodes.pod_garbage import PodGarbageCollector
from podium.machines.nodes.taint_eviction import TaintEviction
from podium.machines.scheduling.attempts import OnAttempt
from podium.machines.scheduling.scheduler import Scheduler
from podium.machines.volumes.persistent_volumes import PersistentVolumes
from podium.machines.workloads.claims.ephemeral_volumes import EphemeralVolumes
from podium.machines.workloads.claims.resource_claims import ResourceClaims
from podium.machines.workloads.cron.cron_jobs import CronJobs
from podium.machines.workloads.daemons.daemon_sets import DaemonSets
from podium.machines.workloads.jobs.jobs import Jobs
from podium.machines.workloads.rolling.deployments import Deployments
from podium.machines.workloads.rolling.replica_sets import ReplicaSets
from podium.machines.workloads.stateful.stateful_sets import StatefulSets
from podium.plane.component_names import AUTOSCALER, CONTROLLERS, KUBELET, NODE_LIFECYCLE, RESCHEDULER


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """What kubelets and controllers are told; ``given`` are the nodes by uid that are there from the start.

    ``reports_all``: controllers say and record all that people look for, not only what others need.
    """

    kubelets: KubeletSettings = field(default_factory=KubeletSettings)
    node_lifecycle: NodeLifecycleSettings = field(default_factory=NodeLifecycleSettings)
    given: Mapping[str, Node] = field(default_factory=dict)
    reports_all: bool = False


_MACHINES: Mapping[str, Callable[[ComponentSettings], Machine]] = {
    KUBELET: lambda settings: Kubelet(settings.kubelets),
    NODE_LIFECYCLE: lambda settings: NodeLifecycle(settings.node_lifecycle, settings.given),
    "taint-eviction-controller": lambda _: TaintEviction(),
    "pod-garbage-collector": lambda _: PodGarbageCollector(),
    "deployment-controller": lambda settings: Deployments(reports_all=settings.reports_all),
    "replicaset-controller": lambda _: ReplicaSets(),
    "statefulset-controller": lambda _: StatefulSets(),
    "daemonset-controller": lambda _: DaemonSets(),
    "job-controller": lambda _: Jobs(),
    "cronjob-controller": lambda _: CronJobs(),
    "resource-claim-controller": lambda _: ResourceClaims(),
    "ephemeral-volume-controller": lambda _: EphemeralVolumes(),
    "persistentvolume-controller": lambda settings: PersistentVolumes(reports_all=settings.reports_all),
    "default-budget-controller": lambda _: DefaultBudgets(),
    "disruption-controller": lambda _: DisruptionController(),
    "avoid-list-controller": lambda _: AvoidLists(),
}


def controllers(settings: ComponentSettings, without: Iterable[str] = ()) -> list[Component]:
    """The kubelets and controllers, each down, but for those ``without`` whom a cluster is to be."""
    left_out = frozenset(without)
    return [Component(name, _maker(name, settings)) for name in (KUBELET, *CONTROLLERS) if name not in left_out]


def scheduler(
    name: str,
    configuration: Configuration | None,
    *,
    seed: int,
    feature_gates: FeatureGates,
    on_attempt: OnAttempt | None = None,
) -> Component:
    """A scheduler with the profiles of a configuration, None for that of a default kube-scheduler.

    ``on_attempt`` is shown each pod right before its attempt.
    """

    def make() -> Scheduler:
        made = Scheduler(configuration, seed=seed, feature_gates=feature_gates)
        made.attempts.on_attempt = on_attempt
        return made

    return Component(name, make, waits=True)


def autoscaler(
    groups: tuple[NodeGroup, ...], settings: AutoscalerSettings, configuration: Configuration | None, *, seed: int
) -> Component:
    """A cluster autoscaler, which knows from the configuration what its scheduler would do."""

    def make() -> Autoscaler:
        return Autoscaler(groups, settings, configuration, seed=seed)

    return Component(AUTOSCALER, make)


def rescheduler(
    settings: ReschedulerSettings, configuration: Configuration | None, *, seed: int, config_map: str = ""
) -> Component:
    """A rescheduler, which knows from the configuration what its scheduler would do.

    With a ``config_map`` (`namespace/name`) its settings are read from there while it runs.
    """

    def make() -> Machine:
        # Few want one, and it brings along all policies.
        from podium.machines.rescheduling.rescheduler import Rescheduler  # noqa: PLC0415

        return Rescheduler(settings, configuration, config_map=config_map, seed=seed)

    return Component(RESCHEDULER, make)


def _maker(name: str, settings: ComponentSettings) -> MakeMachine:
    return lambda: _MACHINES[name](settings)
