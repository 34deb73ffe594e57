"""Feature gates of Kubernetes 1.31 to 1.37: their stage and default in each minor version.

Sources: pkg/features/kube_features.go and the gates of k8s.io/apiserver, client-go and component-base that its binaries
register. For 1.37 the gates of the scheduler are those of kube-scheduler/pkg/features; the others follow its changelog.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import NamedTuple

MINORS = range(31, 38)
"""The minor versions of the table."""


class Gate(StrEnum):
    """The gates that Podium evaluates. Others may be set, and have no effect."""

    ASYNC_PREEMPTION = "SchedulerAsyncPreemption"
    CLEARED_NOMINATION = "ClearingNominatedNodeNameAfterBinding"
    DRA = "DynamicResourceAllocation"
    DRA_EXTENDED_RESOURCES = "DRAExtendedResource"
    GANGS = "GangScheduling"
    GROUP_VICTIMS = "WorkloadAwarePreemption"
    IN_PLACE_RESIZE = "InPlacePodVerticalScaling"
    IN_PLACE_RESIZE_OF_PODS = "InPlacePodLevelResourcesVerticalScaling"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    OBSERVED_GENERATION = "PodObservedGenerationTracking"
    POD_LEVEL_RESOURCES = "PodLevelResources"
    NON_PREEMPTING_PRIORITY = "NonPreemptingPriority"
    """Podium's own in these versions: off, every pod preempts, and can be preempted, by priority alone."""
    NOMINATION_FOR_EXPECTATION = "NominatedNodeNameForExpectation"
    RESIZES_PREEMPT = "InPlacePodVerticalScalingSchedulerPreemption"
    POP_FROM_BACKOFF = "SchedulerPopFromBackoffQ"
    QUEUEING_HINTS = "SchedulerQueueingHints"
    MUTABLE_JOB_DIRECTIVES = "MutableSchedulingDirectivesForSuspendedJobs"
    MUTABLE_JOB_RESOURCES = "MutablePodResourcesForSuspendedJobs"
    MAX_UNAVAILABLE_STATEFUL = "MaxUnavailableStatefulSet"
    SPREAD_KEYS_MERGED = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
    STORAGE_SCORED = "StorageCapacityScoring"
    TERMINATING_REPLICAS = "DeploymentReplicaSetTerminatingReplicas"
    TOPOLOGY_LABELS = "PodTopologyLabelsAdmission"
    VOLUME_LIMIT_SCALING = "VolumeLimitScaling"


class Stage(NamedTuple):
    """A gate in one version: its stage, its default, and whether it is locked to that."""

    name: str
    default: bool
    locked: bool


ABSENT = "-"
"""The letter for a version that does not know the gate."""

STAGES = {
    "a": Stage("alpha", False, False),
    "A": Stage("alpha", True, False),
    "b": Stage("beta", False, False),
    "B": Stage("beta", True, False),
    "g": Stage("GA", True, False),
    "G": Stage("GA", True, True),
    "d": Stage("deprecated", False, False),
    "D": Stage("deprecated", True, False),
    "x": Stage("deprecated", False, True),
    "X": Stage("deprecated", True, True),
}
"""The stages by letter: capital if the gate is on by default; a `g` may still be turned off."""

PATCHES = {("SchedulerAsyncAPICalls", 34): (("B", 2),), ("SchedulerAsyncAPICalls", 35): (("B", 1),)}
"""Letters of earlier patch levels: each holds below a patch level, and the table's letter from the last one on."""

SUCCESSORS = {"GangScheduling": (37, "GenericWorkload"), "WorkloadAwarePreemption": (37, "GenericWorkload")}
"""The gates that took over others, with the first minor version in which they decide about the features of both."""

DEPENDENCIES_SINCE = 35
"""The first minor version that refuses a gate whose dependencies are off."""

# The text file has the gates by their letters in the minor versions from 1.31 on; after an empty line, the gates that
# need others, by these.
_TEXT = resources.files("podium.api.versions").joinpath("gates.txt").read_text(encoding="utf-8")
_TABLE, _DEPENDENCIES = _TEXT.split("\n\n")


@cache
def letters() -> dict[str, str]:
    """Return the letters of each gate, one for each minor version."""
    return {name: cells for cells, names in _groups(_TABLE) for name in names}


@cache
def stages(minor: int, patch: int) -> dict[str, Stage]:
    """Return the gates that a version knows."""
    column = MINORS.index(minor)
    found = {name: cells[column] for name, cells in letters().items()}
    for (name, of_minor), earlier in PATCHES.items():
        if of_minor == minor:
            found[name] = next((letter for letter, below in earlier if patch < below), found[name])
    return {name: STAGES[letter] for name, letter in found.items() if letter != ABSENT}


@cache
def dependencies() -> dict[str, tuple[str, ...]]:
    """Return the gates that each gate needs."""
    needed = {name: tuple(others.split()) for others, names in _groups(_DEPENDENCIES) for name in names}
    return dict(sorted(needed.items()))


def _groups(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the groups of a table, each with its gates; indented lines continue a group."""
    for group in table.strip().replace("\n ", "").splitlines():
        about, _, names = group.partition(":")
        yield about, names.split()
