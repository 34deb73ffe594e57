"""Measures what a rescheduler takes to look at a cluster."""

from __future__ import annotations

import gc
from time import perf_counter_ns

from podium.api.collector import collector_paused
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.times import parse_time
from podium.app.bench.drifted import drifted
from podium.app.bench.measurement import Measurement, Stopwatch, peak_memory_mib, percentiles_us, rate
from podium.cluster.cluster import Cluster
from podium.decide.eviction_budgets import EvictionBudgets
from podium.decide.rescheduling.plan import Plan
from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.standing import Standing
from podium.decide.scratch import Scratch
from podium.framework.rescheduling.kubelet_profile import kubelet_runner
from podium.framework.rescheduling.policy_registry import PolicyRegistry, make_policies
from podium.framework.rescheduling.settings import PolicySettings, ReschedulerSettings
from podium.framework.runner import Runner
from podium.framework.settings.configuration import default_configuration
from podium.framework.settings.profile_builder import build_profiles
from podium.framework.settings.registry import Registry
from podium.plugins.registry import IN_TREE
from podium.plugins.rescheduling.registry import IN_TREE as POLICIES

LOOKS = 5
"""So many are measured."""

_NOW = parse_time("2026-02-01T00:00:00Z")
_ARGUMENTS = {"ReplaceOldPods": {"maxAge": "9000h"}}


class _Subject:
    """A drifted cluster, and a planner with all policies and cautious numbers."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.cluster, self._budgets = Cluster(), EvictionBudgets()
        for item in drifted(nodes, pods):
            if isinstance(item, Pod):
                self.cluster.add_pod(self.cluster.read(item))
                continue
            self.cluster.put(item)
            if isinstance(item, PodDisruptionBudget):
                self._budgets.put(item)
        registry = Registry(IN_TREE)
        profiles = build_profiles(default_configuration(), registry, self.cluster)
        self._runners = {name: Runner(profile, self.cluster) for name, profile in profiles.items()}
        self._kubelet = kubelet_runner(self.cluster, registry)
        policies = tuple(PolicySettings(name, args=_ARGUMENTS.get(name, {})) for name in sorted(POLICIES))
        settings = ReschedulerSettings(policies)
        self._planner = Planner(make_policies(policies, PolicyRegistry(POLICIES), self.cluster), settings)

    def look(self) -> Plan:
        """What it would move; nothing is changed by it."""
        standing = Standing((), self._budgets)
        picture = self._planner.picture(self.cluster, self._runners, self._kubelet, _NOW, standing=standing)
        with Scratch(self.cluster, self._runners) as scratch:
            return self._planner.plan(scratch, picture, standing)


def measure_rescheduling(nodes: int, pods: int) -> Measurement:
    """Look at a drifted cluster over and over, by CPU seconds a look. The first one, which takes longer, goes before.

    The wall times are those of all looks, the first among them.
    """
    watch = Stopwatch()
    with collector_paused():
        subject = _Subject(nodes, pods)
    times: list[int] = []

    def look() -> Plan:
        began = perf_counter_ns()
        plan = subject.look()
        times.append(perf_counter_ns() - began)
        return plan

    plan = look()
    gc.collect()
    gc.freeze()
    load_seconds = watch.lap()
    for _ in range(LOOKS):
        look()
    seconds = watch.lap() / LOOKS
    gc.unfreeze()
    return Measurement(
        workload="reschedule",
        nodes=nodes,
        placed=pods,
        pods=pods,
        counts={
            "moved": sum(len(group.moves) for group in plan.planned),
            "tried": plan.trials,
            "left": len(plan.left_alone),
        },
        load_seconds=round(load_seconds, 3),
        seconds=round(seconds, 3),
        pods_per_second=rate(pods, seconds),
        peak_memory_mib=peak_memory_mib(),
        attempt_us=percentiles_us(times),
    )
