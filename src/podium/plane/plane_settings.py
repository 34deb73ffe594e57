"""What a control plane consists of, and how its parts work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from podium.api.node import Node
from podium.decide.scaling.node_groups import NodeGroup
from podium.driver.component import Component
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.settings.configuration import Configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.machines.autoscaling.autoscaler import AutoscalerSettings
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.nodes.node_lifecycle import NodeLifecycleSettings
from podium.plane.component_names import RESCHEDULER_CONFIG_MAP, SCHEDULER
from podium.plane.components import ComponentSettings, autoscaler, controllers, rescheduler, scheduler
from podium.requests.answering.rules import PLAIN, Rules


@dataclass(frozen=True, slots=True)
class PlaneSettings:
    """What a control plane consists of, and how its parts work.

    ``configuration`` is the scheduler's, None for that of a default kube-scheduler; with ``autoscaling`` there is a
    cluster autoscaler, of these groups, and with ``rescheduling`` a rescheduler, which reads its settings from the
    ConfigMap `RESCHEDULER_CONFIG_MAP` once there is one. ``without`` are names of components that are left out
    (`podium.plane.component_names.SWITCHABLE`). ``rules`` are how requests are answered where that is a choice.
    ``absent_is_gone``: an owner that was never there is gone, as Kubernetes has it; false where the objects come from a
    cluster that is known in part.
    """

    seed: int = 0
    configuration: Configuration | None = None
    feature_gates: FeatureGates = FeatureGates()  # noqa: RUF009 - an immutable value
    kubelets: KubeletSettings = field(default_factory=KubeletSettings)
    node_lifecycle: NodeLifecycleSettings = field(default_factory=NodeLifecycleSettings)
    autoscaling: tuple[tuple[NodeGroup, ...], AutoscalerSettings] | None = None
    rescheduling: ReschedulerSettings | None = None
    without: frozenset[str] = frozenset()
    absent_is_gone: bool = True
    rules: Rules = PLAIN


def components_of(settings: PlaneSettings, nodes: Mapping[str, Node]) -> list[Component]:
    """The components of a control plane that begins with these nodes, by uid."""
    honors_policy = settings.feature_gates.non_preempting_priority
    kubelets = replace(settings.kubelets, honors_policy=honors_policy, reports_all=True)
    made = controllers(ComponentSettings(kubelets, settings.node_lifecycle, nodes, reports_all=True), settings.without)
    if SCHEDULER not in settings.without:
        made.append(
            scheduler(SCHEDULER, settings.configuration, seed=settings.seed, feature_gates=settings.feature_gates)
        )
    if settings.autoscaling is not None:
        groups, wanted = settings.autoscaling
        made.append(autoscaler(groups, wanted, settings.configuration, seed=settings.seed))
    if settings.rescheduling is not None:
        made.append(
            rescheduler(
                settings.rescheduling,
                settings.configuration,
                seed=settings.seed,
                config_map=RESCHEDULER_CONFIG_MAP,
            )
        )
    return made
