"""Pods that are on their nodes for as long as a decision about a group lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType

from podium.cluster.pods import PodRecord
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling, PluginError
from podium.framework.plugin import ReservePlugin
from podium.framework.runner import Runner
from podium.framework.status import SUCCESS, Status


class AssumedPods:
    """Puts pods on nodes, so that those behind them see the room as taken, and takes all back when its block ends.

    Plugins reserve what each pod needs beside room, such as volumes and devices, and give it back in the same way.

    Source: pkg/scheduler/schedule_one_podgroup.go (assumeAndReserve, unreserveAndForget).
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> AssumedPods:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._undo:
            self._undo.pop()()

    def put(self, pod: PodRecord, state: CycleState, node_name: str) -> Status:
        """Let a pending pod be on a node; success, or why a plugin does not let it. Then it is not there."""
        mark = len(self._undo)
        cluster = self._runner.cluster
        self._end_nomination(pod)
        cluster.add_pod(pod.on_node(node_name))
        self._undo.append(lambda: cluster.remove_pod(pod.uid))
        status = self._reserve(pod, state, node_name)
        if not status.is_success:
            while len(self._undo) > mark:
                self._undo.pop()()
        return status

    def end_nominations(self, pods: Iterable[PodRecord]) -> None:
        """No room is kept for some pods, as they are about to be put elsewhere."""
        for pod in pods:
            self._end_nomination(pod)

    def _end_nomination(self, pod: PodRecord) -> None:
        """Whoever is on a node waits for none; what it waited for comes back with the rest."""
        nominations = self._runner.cluster.nominations
        victims = nominations.victims_of(pod.uid)
        node_name = nominations.remove(pod.uid)
        if node_name:
            self._undo.append(lambda: nominations.put(pod, node_name, victims))

    def _reserve(self, pod: PodRecord, state: CycleState, node_name: str) -> Status:
        for plugin in self._runner.profile.reserve:
            self._undo.append(lambda plugin=plugin: _unreserve(plugin, state, pod, node_name))  # type: ignore[misc]
            with Calling(plugin.name, "Reserve", pod):
                status = plugin.reserve(state, pod, node_name)
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS


def _unreserve(plugin: ReservePlugin, state: CycleState, pod: PodRecord, node_name: str) -> None:
    """Let a plugin give back what it reserved; one that raises keeps nobody else from it."""
    try:
        with Calling(plugin.name, "Unreserve", pod):
            plugin.unreserve(state, pod, node_name)
    except PluginError:
        return
