"""The exporter: follows a cluster by watches, evaluates it again and again, and serves the last evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import Any

from msgspec.structs import replace

from podium.api.basis import Caveat
from podium.api.collector import collector_paused
from podium.api.errors import PodiumError
from podium.api.input.codec import Input
from podium.api.meta import Kubernetes
from podium.api.versions.choice import ReleaseChoice
from podium.app.cluster import Cluster
from podium.app.explaining.explainer import Explainer
from podium.app.exporter.evaluation import Evaluation, EvaluationSettings, evaluate
from podium.app.exporter.metrics import ExporterMetrics
from podium.app.inputs import DecisionSettings
from podium.app.live.caveats import hidden_kinds, of_access
from podium.app.live.live_program import OPTIONAL, LiveProgram, ProgramSettings
from podium.app.live.logs import Log
from podium.app.planning.question import forked
from podium.client.credentials import ClusterAccess
from podium.client.live_cluster import LiveCluster, Watched
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.settings.configuration import Configuration
from podium.runtime.clock import SystemClock
from podium.runtime.component import Component

WATCHES = Scheduler.watches | {"PriorityClass"}
"""The kinds that the exporter watches."""

_ACTIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"
_SECOND = 10**9
_LEAST_PAUSE_S = 0.5


class ExporterSettings(ProgramSettings, frozen=True, kw_only=True):
    """The settings of an exporter. ``configuration`` is that of the cluster's schedulers.

    An evaluation begins ``interval_s`` after the last one began, or when that one ends; ``processes`` share its work.
    """

    configuration: Configuration
    evaluation: EvaluationSettings = EvaluationSettings()
    interval_s: float = 30.0
    processes: int = 2


class FollowedCluster(Cluster):
    """A cluster whose columns follow objects as they are observed."""

    def __init__(self, settings: DecisionSettings) -> None:
        super().__init__(Input([]), settings)
        self._known: dict[tuple[str, str], Kubernetes] = {}
        self._followed: Explainer | None = None

    @property
    def explainer(self) -> Explainer:
        """The explainer of the objects that were observed last."""
        if self._followed is None:
            raise AssertionError("no objects have been observed")
        return self._followed

    def observe(self, objects: Sequence[Kubernetes], now: int) -> bool:
        """Follow the objects, which are all that exist; return whether anything has changed."""
        known = {(item.kind, item.key): item for item in objects}
        before, self._known = self._known, known
        gone = [item for key, item in before.items() if known.get(key) is not item]
        come = [item for key, item in known.items() if before.get(key) is not item]
        found = self._followed
        if found is not None and not gone and not come:
            return False
        if found is None or not found.can_change or any(isinstance(x, found.shaping_kinds) for x in (*gone, *come)):
            with collector_paused(keeps_objects=True):
                self._followed = Explainer(objects, self.settings.deciding(), self.release, now_ns=now)
        else:
            found.change(list(objects), gone, come)
            found.cluster.pass_time(now)
        return True


class LiveExporter(LiveProgram):
    """The exporter as a program. It writes nothing."""

    user_agent = "podium-exporter"
    noun = "the exporter"

    def __init__(self, access: ClusterAccess, settings: ExporterSettings, log: Log) -> None:
        self.latest: Evaluation | None = None
        self.metrics = ExporterMetrics(SystemClock().now, lambda: self.latest)
        super().__init__(access, settings, log, self.metrics)
        self._settings = settings

    def watched(self) -> Watched:
        return Watched(kinds=WATCHES, field_selectors={"Pod": _ACTIVE_PODS}, optional=OPTIONAL, seed=self._settings.seed)

    def components(self, *, is_podium_server: bool) -> list[Component]:
        return []

    def caveats(self, absent: Sequence[str], hidden: Sequence[str], *, is_podium_server: bool) -> list[Caveat]:
        return [*of_access(self._access), *hidden_kinds(hidden)]

    def on_started(self) -> None:
        self._problems["evaluation"] = "the cluster has not been evaluated yet"
        self._log.info("evaluating", version=str(self.release), interval_s=self._settings.interval_s)

    async def open(self, cluster: LiveCluster, ending: AsyncExitStack) -> None:
        evaluating = asyncio.ensure_future(self._evaluate_repeatedly(cluster))
        ending.callback(evaluating.cancel)

    async def _evaluate_repeatedly(self, cluster: LiveCluster) -> None:
        await self.leads.wait()
        settings = DecisionSettings(self._settings.configuration, ReleaseChoice.exactly(self.release))
        followed = FollowedCluster(settings)
        while True:
            began_ns = self.now()
            try:
                await self._evaluate(cluster, followed, began_ns)
                self._problems.pop("evaluation", None)
            except PodiumError as error:
                self.metrics.failures.inc()
                self._log.error("the evaluation failed", problem=str(error))
                followed = FollowedCluster(settings)
            await asyncio.sleep(max(self._settings.interval_s - (self.now() - began_ns) / _SECOND, _LEAST_PAUSE_S))

    async def _evaluate(self, cluster: LiveCluster, followed: FollowedCluster, began_ns: int) -> None:
        """Evaluate the cluster as it is now. Raises PodiumError if that fails."""
        known = [stored.object for each in cluster.reflectors.values() for stored in each.machine.known.values()]
        if not followed.observe(known, began_ns) and self.latest is not None:
            # The answers hold for the present state, too.
            self.latest = replace(self.latest, at_ns=began_ns)
            return
        shares = await _in_processes(partial(_share, followed, self._settings), self._settings.processes)
        self.latest = shares[0].joined(shares[1:], began_ns, (self.now() - began_ns) / _SECOND)
        self.metrics.evaluations.inc()


def _share(followed: FollowedCluster, settings: ExporterSettings, place: int, report: object) -> Evaluation | str:
    """Return a share of the evaluation, or why there is none."""
    try:
        return evaluate(followed, settings.evaluation, place, settings.processes)
    except Exception as error:  # The parent reports it
        return f"{type(error).__name__}: {error}"


async def _in_processes(work: Callable[[int, Any], Evaluation | str], number: int) -> list[Evaluation]:
    """Return the shares that so many copies of this process work out. Raises PodiumError if one of them fails."""
    loop = asyncio.get_running_loop()
    with ExitStack() as copies, ThreadPoolExecutor(number) as waiting:
        # All are forked before a thread exists.
        finish = [copies.enter_context(forked(work)) for _ in range(number)]
        tasks = [loop.run_in_executor(waiting, each, place, None) for place, each in enumerate(finish)]
        found = await asyncio.gather(*tasks)
    problems = [each or "its process ended" for each in found if not isinstance(each, Evaluation)]
    if problems:
        raise PodiumError(problems[0])
    return found
