"""What a scheduler is put together from, and how its parts are joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.cluster.cluster import Cluster
from podium.cluster.feed import Feed
from podium.cluster.pods import PodRecord
from podium.framework.errors import Calling, PluginError
from podium.framework.events import EVERY_EVENT, EventToRegister
from podium.framework.extenders import EXTENDER, Extenders
from podium.framework.plugin import is_own
from podium.framework.registrations import registrations
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.framework.settings.profile_builder import build_profiles
from podium.framework.settings.registry import Registry
from podium.framework.status import SUCCESS, Status, unresolvable
from podium.framework.waiting_pods import WaitingPods
from podium.machines.scheduling.binding.cycles import BindingCycles
from podium.machines.scheduling.cap_waits import CapWaits
from podium.machines.scheduling.futile_preemptions import FutilePreemptions
from podium.machines.scheduling.gangs.gang_parts import GangParts
from podium.machines.scheduling.gangs.gangs import Gangs
from podium.machines.scheduling.known_failures import KnownFailures
from podium.machines.scheduling.pod_reports import PodReports
from podium.machines.scheduling.preemptions import Preemptions
from podium.machines.scheduling.queue.front import QueueFront
from podium.machines.scheduling.queue.queue import SchedulingQueue
from podium.machines.scheduling.queue.queued_pod import QueueSettings
from podium.machines.scheduling.room import Room
from podium.plugins.registry import IN_TREE

PREEMPTION_GATE = "DefaultPreemption"
_HELD = unresolvable("waiting for the preemption for this pod to be finished").by(PREEMPTION_GATE)


class Parts:
    """The parts of one scheduler, which share them; each belongs to it alone."""

    def __init__(
        self, configuration: Configuration, seed: int, feature_gates: FeatureGates, extenders: Extenders | None = None
    ) -> None:
        self.cluster = Cluster(honors_policy=feature_gates.non_preempting_priority)
        self.feed = Feed(self.cluster)
        self.waiting_pods = WaitingPods()
        profiles = build_profiles(
            configuration, Registry(IN_TREE), self.cluster, waiting_pods=self.waiting_pods, seed=seed
        )
        self.runners = {name: Runner(profile, self.cluster) for name, profile in profiles.items()}
        for runner in self.runners.values():
            runner.extenders = extenders
        # Extenders say nothing of what might help: any event wakes the pods that they turned down.
        of_extenders: dict[str, tuple[EventToRegister, ...]] = {} if extenders is None else {EXTENDER: EVERY_EVENT}
        self.front = QueueFront(self.cluster.replacements)
        self.queue = SchedulingQueue(
            {name: _sort_key(runner) for name, runner in self.runners.items()},
            self._pre_enqueue,
            {name: registrations(profile) | of_extenders for name, profile in profiles.items()},
            QueueSettings(configuration.pod_initial_backoff_ns, configuration.pod_max_backoff_ns),
            self.front.first,
        )
        self.bindings = BindingCycles(self.cluster, self.waiting_pods)
        self.preemptions = Preemptions(self.cluster)
        self.futile = FutilePreemptions(self.cluster, configuration.max_futile_preemptions)
        self.cap = CapWaits(self.cluster)
        self.reports = PodReports()
        self.known = KnownFailures(self.runners)
        self.gangs = Gangs(
            GangParts(self.cluster, self.runners, self.queue, self.bindings, self.preemptions, self.cap, self.known)
        )
        self.room = Room(
            self.cluster,
            self.runners,
            self.queue,
            self.reports,
            configuration.nomination_clearing,
            self.gangs.concerns,
        )

    def _pre_enqueue(self, pod: PodRecord) -> Status:
        status = self.runners[pod.scheduler_name].pre_enqueue(pod)
        if status is not SUCCESS:
            return status
        group = pod.pod_class.pod_group
        if self.preemptions.holds(pod.uid) or (group and self.gangs.preemptions.holds(group)):
            return _HELD
        return SUCCESS


def _sort_key(runner: Runner) -> Callable[[PodRecord, int], tuple[int, ...]]:
    """The order that the profile's QueueSort gives. It raises PluginError where that fails, or cannot be compared."""
    plugin = runner.profile.queue_sort
    name = "" if plugin is None else plugin.name
    if plugin is not None and is_own(plugin):
        return plugin.sort_key

    def sort_key(pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        with Calling(name, "QueueSort", pod):
            key: Any = runner.sort_key(pod, queued_ns)
        if isinstance(key, tuple):
            for part in key:
                if not isinstance(part, int):
                    break
            else:
                return key
        raise PluginError(f"plugin {name} answered at QueueSort for pod {pod.key} with {key!r}, not with integers")

    return sort_key
