"""A Kubernetes version with its feature gates, and the behaviors that changed without a gate.

A behavior is asked at one place, when the plugin or rule that has it is built. Sources are named from the directory
of the Kubernetes sources; a number is an upstream pull request, a KEP an enhancement proposal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from podium.api.errors import InputError, shown, suggestion
from podium.api.versions.gates import DEPENDENCIES_SINCE, MINORS, SUCCESSORS, Gate, dependencies, letters, stages

PATCH_LEVELS = {31: 14, 32: 13, 33: 13, 34: 9, 35: 6, 36: 2, 37: 0}
"""The patch level that a version without one means: the one that was measured; that of 1.37 was read."""

READ_ONLY = frozenset({37})
"""Minor versions whose behaviors were read from the source, and not measured."""

_VERSION = re.compile(r"v?1\.([0-9]{1,4})(?:\.([0-9]{1,6}))?(?:[-+.].*)?", re.DOTALL)
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")
_OF_ALL = {"AllAlpha": "alpha", "AllBeta": "beta"}


class Release(Struct, frozen=True):
    """A Kubernetes version, with the feature gates that are set."""

    minor: int
    patch: int
    gates: tuple[tuple[str, bool], ...] = ()

    def __str__(self) -> str:
        """Return the version as Kubernetes writes it: `v1.34.9`."""
        return f"v1.{self.minor}.{self.patch}"

    @property
    def short(self) -> str:
        """The minor version: `1.34`."""
        return f"1.{self.minor}"

    def has(self, behavior: Behavior) -> bool:
        """Return whether the version has a behavior."""
        return behavior.value.version <= (self.minor, self.patch)

    def enabled(self, gate: Gate | str) -> bool:
        """Return whether a feature gate, or the one that took it over, is on; gates that are not known are off."""
        since, successor = SUCCESSORS.get(gate, (self.minor, gate))
        gate = successor if self.minor >= since else gate
        known, chosen = stages(self.minor, self.patch), dict(self.gates)
        if gate not in known or gate in chosen:
            return gate in known and chosen[gate]
        of_all = (value for name, value in self.gates if _OF_ALL.get(name) == known[gate].name)
        return next(of_all, known[gate].default)

    def with_gates(self, gates: Mapping[str, bool]) -> Release:
        """Return this version with further gates set. Raises InputError as kube-scheduler refuses them."""
        known = stages(self.minor, self.patch)
        for name, value in gates.items():
            if name in _OF_ALL:
                continue
            if name not in known:
                raise InputError(f"unrecognized feature gate: {name} ({_where(name, self.short)})")
            if known[name].locked and known[name].default != value:
                default = shown(known[name].default)
                problem = f"cannot set feature gate {name} to {shown(value)}, feature is locked to {default}"
                raise InputError(f"{problem} in {self.short} ({known[name].name})")
        made = Release(self.minor, self.patch, tuple(sorted((dict(self.gates) | dict(gates)).items())))
        for name, needed in dependencies().items() if self.minor >= DEPENDENCIES_SINCE else ():
            missing = [one for one in needed if one in known and not made.enabled(one)]
            if missing and made.enabled(name):
                problem = f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"
                raise InputError(f"{problem}; turn {name} off, too")
        return made


def _where(name: str, short: str) -> str:
    """Return where a gate that ``short`` does not know is known, or which names are like it."""
    cells = letters().get(name, "")
    known = [f"1.{minor}" for minor, letter in zip(MINORS, cells, strict=False) if letter != "-"]
    if known:
        return f"{short} does not know it; {', '.join(known)} do{'es' if len(known) == 1 else ''}"
    return suggestion(name, letters(), f"no version from 1.{MINORS[0]} on knows it")


def default_release(minor: int = 36) -> Release:
    """Return a minor version at the patch level that was measured."""
    return Release(minor, PATCH_LEVELS[minor])


DEFAULT_RELEASE = default_release()
"""The default version."""


def version_in(text: str) -> tuple[int, int] | None:
    """Return the minor version and patch level in a text such as `v1.34.1-gke.5`; None if there is none."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    minor = int(found[1])
    return minor, int(found[2]) if found[2] else PATCH_LEVELS.get(minor, 0)


def is_podium(version: str) -> bool:
    """Return whether an API server of this version is Podium's own.

    Podium's server records eviction hints and counts disruptions; with any other server, the client does that.
    """
    return "+podium" in version


def read_version(text: str) -> Release:
    """Return the version in a text such as `1.34`, `1.34.1` or `v1.34.1-gke.5`.

    Raises InputError for other texts, and for versions that are not supported, with those that are.
    """
    found = version_in(text)
    supported = ", ".join(f"1.{minor}" for minor in MINORS)
    if found is None:
        raise InputError(
            f"Kubernetes version {shown(text)} is not understood; write one of {supported}, or a patch "
            "level such as 1.34.1"
        )
    minor, patch = found
    if minor not in PATCH_LEVELS:
        raise InputError(f"Kubernetes version {shown(text)} is not supported; supported are {supported}")
    return Release(minor, patch)


def read_gates(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the gates in a text such as `NonPreemptingPriority=false,AllAlpha=true`, by name; the last value counts.

    Raises InputError for a name that no version knows, and for a value that is not a boolean.
    """
    chosen: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not name and not equals:
            continue
        if not equals:
            raise InputError(f"missing bool value for {shown(name)}; write {name}=true or {name}=false")
        if value not in (*_TRUE, *_FALSE):
            raise InputError(f"invalid value of {name}={shown(value)}; it must be true or false")
        if name not in letters() and name not in _OF_ALL:
            raise InputError(f"unrecognized feature gate: {name} ({_where(name, '')})")
        chosen[name] = value in _TRUE
    return tuple(sorted(chosen.items()))


def shown_gates(gates: Iterable[tuple[str, bool]]) -> str:
    """Return gates in the format of `read_gates`."""
    return ",".join(f"{name}={shown(value)}" for name, value in gates)


class Change(NamedTuple):
    """A change of behavior: its first version, the new and the old behavior, and the upstream source.

    ``since`` is "1.34", or "1.34.2" for a patch level; later minors have it from their first release on.
    """

    since: str
    area: str
    now: str
    before: str
    source: str

    @property
    def version(self) -> tuple[int, int]:
        _, minor, *patch = self.since.split(".")
        return int(minor), int(patch[0]) if patch else 0


def _change(text: str) -> Change:
    """Return a change from its lines: version and area, new behavior, old behavior, source. Indented ones continue."""
    head, now, before, source = text.replace("\n          ", " ").splitlines()
    since, _, area = head.partition(" ")
    return Change(since, area, now.strip(), before.strip(), source.strip())


class Behavior(Enum):
    """A behavior of newer versions. `Release.has` says whether a version has it."""

    # Each is asked once, and identity is enough.
    __hash__ = object.__hash__

    UNMATCHED_NODES_COUNTED = _change("""1.32 FailedScheduling
        counts the nodes that a PreFilter result left out: `2 node(s) didn't satisfy plugin(s) [NodeAffinity]`
        does not count them
        pkg/scheduler/schedule_one.go, #125197""")
    NODE_LIMITS_IGNORED = _change("""1.32 NodeVolumeLimits
        takes limits from CSINodes only
        takes limits from the node's allocatable `attachable-volumes-csi-*`, too
        pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, #124003""")
    SIDECAR_DEFAULTS_SUMMED = _change("""1.32 NodeResourcesFit, score
        adds default requests (100m, 200Mi) of sidecars to those of containers
        takes the largest of all init containers
        pkg/scheduler/framework/types.go, KEP-2837""")
    VOLUME_AFFINITY_NAMED = _change("""1.33 VolumeBinding
        says `node(s) didn't match PersistentVolume's node affinity`
        says `node(s) had volume node affinity conflict`
        pkg/scheduler/framework/plugins/volumebinding/binder.go, #129887""")
    BALANCE_NEEDS_REQUESTS = _change("""1.33 NodeResourcesBalancedAllocation
        skips pods without requests
        scores them
        pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, #130260""")
    GROUPS_POLICY_CHECKED = _change("""1.33 kubelet
        rejects pods with the supplementalGroupsPolicy Strict on nodes whose status does not say that they support it
        does not check that
        pkg/kubelet/lifecycle/predicate.go, KEP-3619""")
    SIDECAR_PORTS = _change("""1.33.6 NodePorts, kubelet
        counts host ports of restartable init containers
        counts those of containers only
        pkg/scheduler/util/utils.go, #132040, #133390""")
    TOO_SMALL_IS_UNRESOLVABLE = _change("""1.34 NodeResourcesFit
        a node that offers less in total than requested is UnschedulableAndUnresolvable: preemption leaves it out
        it is Unschedulable
        pkg/scheduler/framework/plugins/noderesources/fit.go""")
    NEGATIVE_NAMESPACES_MATCH_ALL = _change("""1.34 InterPodAffinity
        a negative namespaceSelector of the incoming pod's own terms matches every namespace (an upstream bug)
        it matches the namespaces that it selects
        pkg/scheduler/framework/plugins/interpodaffinity/plugin.go""")
    BACKOFF_COUNTS_REJECTIONS = _change("""1.34 scheduling queue
        the backoff of a pod doubles with each rejection, or with each error in a row
        it doubles with each attempt
        pkg/scheduler/backend/queue/backoff_queue.go""")
    CLAIM_IN_USE_NAMED = _change("""1.34 VolumeRestrictions
        says `node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by
          another pod`
        says `node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode`
        pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go""")
    TAINT_UNNAMED = _change("""1.34.2 TaintToleration
        says `node(s) had untolerated taint(s)`
        names the taint: `node(s) had untolerated taint {key: value}`
        pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, #134740, #135023""")
    ALTERNATIVES_SCORED = _change("""1.35 DynamicResources
        scores nodes by the place of the alternatives that they would get (weight 2)
        does not score
        pkg/scheduler/framework/plugins/dynamicresources, KEP-4816""")
    INCOMPLETE_POOLS_SKIPPED = _change("""1.35 DynamicResources
        takes no devices of a pool that lacks slices, or has newer ones on another node
        takes those in the slices of the node; a pool with other slices than the node's counts as incomplete for the
          mode All
        k8s.io/dynamic-resource-allocation/structured, GatherPools""")
    ENDING_VICTIMS_LEFT_ALONE = _change("""1.35 preemption
        victims that terminate already get no further request; with no other victims, lower nominations remain
        they are marked and deleted once more, and lower nominations are cleared in any case
        pkg/scheduler/framework/preemption/preemption.go (prepareCandidate)""")
    EVICTION_CAUSE_BY_CONDITION = _change("""1.35 eviction API
        a refused eviction says that the budget needs more healthy pods only if that is so, else why it allows none
        it always says `The disruption budget X needs N healthy pods and has M currently`
        pkg/registry/core/pod/storage/eviction.go""")
    PREEMPTED_IN_MEMORY = _change("""1.36 preemption
        victims that wait at Permit or in PreBind go back to the queue, and are retried after their backoff
        victims that wait at Permit are unschedulable until an event wakes them, those in PreBind are deleted
        pkg/scheduler/framework/preemption/executor.go (PreemptPod), #135502, #135719""")
    CLAIM_OWNERS_CAPITALIZED = _change("""1.36 DynamicResources
        says `was not created for Pod a/b (Pod is not owner)`
        says `was not created for pod a/b (pod is not owner)`
        k8s.io/dynamic-resource-allocation/resourceclaim""")
    ALTERNATIVE_KEPT_FOR_ALL = _change("""1.36 DynamicResources
        takes all devices for an alternative with the mode All
        takes the first device for it, and the others for the first alternative (an upstream bug)
        k8s.io/dynamic-resource-allocation/structured, allocateOne""")
    ALTERNATIVES_MATCHED_APART = _change("""1.36 DynamicResources
        matches devices with each alternative of a request by itself
        if the first two alternatives have the mode All, the second gets the devices of the first (an upstream bug)
        k8s.io/dynamic-resource-allocation/structured, validateDeviceRequest""")
    BALANCE_GAIN_SCORED = _change("""1.36 NodeResourcesBalancedAllocation
        scores how the pod changes the balance of a node
        scores the balance of the node with the pod
        pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, #135573""")
    IMAGE_VOLUMES_SCORED = _change("""1.36 ImageLocality
        counts the images of image volumes
        counts those of containers only
        pkg/scheduler/framework/plugins/imagelocality/image_locality.go, #130231""")
    CAPACITY_RATIO_CHECKED = _change("""1.36 NodeResourcesFitArgs
        refuses requestedToCapacityRatio beside another type of strategy, and that type without it
        ignores the one, and crashes at the other
        pkg/scheduler/apis/config/validation/validation_pluginargs.go, #132120""")
    GATED_NOMINATIONS_COUNT = _change("""1.37 nominations
        the nomination of a pod with scheduling gates keeps less important pods off its place at once
        it does so from the pod's first update on
        pkg/scheduler/backend/queue/scheduling_queue.go, #139057""")
    GANG_SHORTFALL_COUNTED = _change("""1.37 GangScheduling
        says of a pod that would fit: `minCount (4) cannot be satisfied: 3 scheduled, 0 remaining`
        says `waiting for minCount pods from a gang to be scheduled`
        pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go (PlacementFeasible)""")


def own_version() -> str:
    """Return the version of this Podium; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - it takes a while

    try:
        return version("podium")
    except PackageNotFoundError:
        return ""
