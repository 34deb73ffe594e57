"""Factories of the components around the store, for simulations and served clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import Struct

from podium.api.node import Node
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.apirequests.context import DEFAULT_RULES, RequestRules
from podium.controllers.autoscaling.autoscaler import Autoscaler, AutoscalerSettings
from podium.controllers.controller import Controller
from podium.controllers.disruption import avoid_lists, default_budgets, disruption_controller
from podium.controllers.endpoints import ServiceEndpoints
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.nodes import pod_deletion
from podium.controllers.nodes.node_lifecycle import NodeLifecycle, NodeLifecycleSettings
from podium.controllers.protection import ClaimProtection, GroupProtection, VolumeProtection
from podium.controllers.scheduling.attempts import OnAttempt
from podium.controllers.scheduling.scheduler import Scheduler
from podium.controllers.volumes import PersistentVolumes
from podium.controllers.workloads import claims, cron_jobs, daemon_sets, deployments, jobs, replica_sets, stateful_sets
from podium.controlplane import component_names as names
from podium.decide.autoscaling import NodeGroup
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.runtime.runtime import Component


class ComponentSettings(Struct, frozen=True):
    """The settings of kubelets and controllers; ``given`` are the initial nodes by uid.

    With ``reports_all``, controllers also write status and Events for people, not only what other components need, and
    workloads adopt and release objects by their labels.
    """

    kubelets: KubeletSettings = field(default_factory=KubeletSettings)
    node_lifecycle: NodeLifecycleSettings = field(default_factory=NodeLifecycleSettings)
    given: Mapping[str, Node] = {}
    reports_all: bool = False


def _counts_terminating(settings: ComponentSettings) -> bool:
    """Return whether the status of workloads has the number of terminating pods; no component needs it."""
    return settings.reports_all and settings.kubelets.release.enabled(Gate.TERMINATING_REPLICAS)


_MACHINES: Mapping[str, Callable[[ComponentSettings], Controller]] = {
    names.KUBELET: lambda settings: Kubelet(settings.kubelets),
    names.NODE_LIFECYCLE: lambda settings: NodeLifecycle(
        settings.node_lifecycle, settings.given, reports_all=settings.reports_all
    ),
    "taint-eviction-controller": lambda _: pod_deletion.TaintEviction(),
    "pod-garbage-collector": lambda _: pod_deletion.PodGarbageCollector(),
    "deployment-controller": lambda settings: deployments.Deployments(
        reports_all=settings.reports_all, counts_terminating=_counts_terminating(settings)
    ),
    "replicaset-controller": lambda settings: replica_sets.ReplicaSets(
        counts_terminating=_counts_terminating(settings), adopts=settings.reports_all
    ),
    "statefulset-controller": lambda settings: stateful_sets.StatefulSets(
        settings.kubelets.release, adopts=settings.reports_all
    ),
    "daemonset-controller": lambda settings: daemon_sets.DaemonSets(adopts=settings.reports_all),
    "job-controller": lambda settings: jobs.Jobs(settings.kubelets.release, adopts=settings.reports_all),
    "cronjob-controller": lambda _: cron_jobs.CronJobs(),
    "resource-claim-controller": lambda _: claims.ResourceClaims(),
    "ephemeral-volume-controller": lambda _: claims.EphemeralVolumes(),
    "persistentvolume-controller": lambda settings: PersistentVolumes(reports_all=settings.reports_all),
    ClaimProtection.name: lambda settings: ClaimProtection(reports_all=settings.reports_all),
    VolumeProtection.name: lambda settings: VolumeProtection(reports_all=settings.reports_all),
    GroupProtection.name: lambda _: GroupProtection(),
    "default-budget-controller": lambda _: default_budgets.DefaultBudgets(),
    "disruption-controller": lambda _: disruption_controller.DisruptionController(),
    "avoid-list-controller": lambda _: avoid_lists.AvoidListController(),
    names.ENDPOINTS: lambda _: ServiceEndpoints(),
}


def controllers(settings: ComponentSettings, without: Iterable[str] = ()) -> list[Component]:
    """Return the kubelets and controllers, all stopped, except for those in ``without``."""
    left_out = frozenset(without)
    left_out |= frozenset() if settings.reports_all else names.SERVING
    wanted = (name for name in (names.KUBELET, *names.CONTROLLERS) if name not in left_out)
    return [Component(name, partial(_MACHINES[name], settings)) for name in wanted]


def scheduler(
    name: str, configuration: Configuration | None, *, seed: int, release: Release, on_attempt: OnAttempt | None = None
) -> Component:
    """Return a scheduler with the profiles of a configuration; None means those of a default kube-scheduler.

    ``on_attempt`` is called for each pod right before its scheduling attempt.
    """

    def make() -> Scheduler:
        made = Scheduler(configuration, seed=seed, release=release)
        made.attempts.on_attempt = on_attempt
        return made

    profiles = (configuration or default_configuration()).profiles
    author = profiles[0].scheduler_name if len(profiles) == 1 else ""
    return Component(name, make, waits=True, author=author)


def rescheduler(
    settings: ReschedulerSettings,
    configuration: Configuration | None,
    *,
    seed: int,
    release: Release,
    config_map: str = "",
) -> Component:
    """Return a rescheduler, which simulates the scheduler with this configuration.

    With a ``config_map`` (`namespace/name`) it reads its settings from there at run time.
    """

    def make() -> Controller:
        # Imported on demand, because it imports all policies and few clusters use it.
        from podium.controllers.rescheduling.rescheduler import Rescheduler  # noqa: PLC0415

        return Rescheduler(settings, configuration, config_map=config_map, seed=seed, release=release)

    return Component(names.RESCHEDULER, make)


@dataclass(frozen=True, slots=True)
class ControlPlaneSettings:
    """The components of a control plane, and their settings.

    ``configuration`` is the scheduler's, None for that of a default kube-scheduler. ``autoscaling`` adds a cluster
    autoscaler for these node groups. ``rescheduling`` adds a rescheduler, which reads its settings from the ConfigMap
    `RESCHEDULER_CONFIG_MAP` if that exists. ``authority`` and ``client_authority`` are certificates in PEM: those by
    which clients verify the server, and the server its clients. ``without`` are the names of components that are left
    out (`podium.controlplane.component_names.SWITCHABLE`). ``rules`` are the administrator's rules for requests;
    with ``authorizes_by_roles``, users may do what their roles allow.
    ``absent_is_gone``: an owner that never existed counts as deleted, as in Kubernetes; false if the objects come from
    a partially known cluster.
    """

    seed: int = 0
    configuration: Configuration | None = None
    release: Release = DEFAULT_RELEASE
    kubelets: KubeletSettings = field(default_factory=KubeletSettings)
    node_lifecycle: NodeLifecycleSettings = field(default_factory=NodeLifecycleSettings)
    autoscaling: tuple[tuple[NodeGroup, ...], AutoscalerSettings] | None = None
    rescheduling: ReschedulerSettings | None = None
    without: frozenset[str] = frozenset()
    absent_is_gone: bool = True
    rules: RequestRules = DEFAULT_RULES
    authorizes_by_roles: bool = False
    authority: str = ""
    client_authority: str = ""


def components_of(settings: ControlPlaneSettings, nodes: Mapping[str, Node]) -> list[Component]:
    """Return the components of a control plane that begins with these nodes, by uid."""
    kubelets = replace(settings.kubelets, release=settings.release, reports_all=True)
    kubelets = replace(kubelets, awaits_references=settings.absent_is_gone)
    made = controllers(ComponentSettings(kubelets, settings.node_lifecycle, nodes, reports_all=True), settings.without)
    if names.SCHEDULER not in settings.without:
        made.append(scheduler(names.SCHEDULER, settings.configuration, seed=settings.seed, release=settings.release))
    if settings.autoscaling is not None:
        make = partial(Autoscaler, *settings.autoscaling, settings.configuration)
        made.append(Component(names.AUTOSCALER, partial(make, seed=settings.seed, release=settings.release)))
    if settings.rescheduling is not None:
        made.append(
            rescheduler(
                settings.rescheduling,
                settings.configuration,
                seed=settings.seed,
                release=settings.release,
                config_map=names.RESCHEDULER_CONFIG_MAP,
            )
        )
    return made
