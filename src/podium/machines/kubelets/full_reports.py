"""What a kubelet says of a pod beside what schedulers and controllers need: for people, and programs that look at it.

Source: pkg/kubelet/status/generate.go, pkg/kubelet/kubelet_pods.go (generateAPIPodStatus).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from podium.api.meta import Raw
from podium.api.pod import PodCondition
from podium.api.times import format_time
from podium.machines.kubelets.host import PodAddresses
from podium.machines.kubelets.pod_run import PodRun

_STARTED = "PodReadyToStartContainers"


def all_conditions(phase: str, conditions: Sequence[PodCondition]) -> tuple[PodCondition, ...]:
    """The conditions of a pod that follow from its phase and from Ready, which comes first, before those given."""
    ready = conditions[0]
    containers = PodCondition(type="ContainersReady", status=ready.status, reason=ready.reason, message=ready.message)
    initialized = PodCondition(type="Initialized", status="True", reason="PodCompleted" if phase == "Succeeded" else "")
    can_start = PodCondition(type=_STARTED, status="True" if phase == "Running" else "False")
    return (can_start, initialized, ready, containers, *conditions[1:])


def address_fields(addresses: PodAddresses, *, is_placed: bool) -> Raw:
    """The addresses in a pod's status; of one that never started only the host's."""
    fields: Raw = {}
    if addresses.host_ip:
        fields |= {"hostIP": addresses.host_ip, "hostIPs": [{"ip": addresses.host_ip}]}
    if addresses.pod_ip and is_placed:
        fields |= {"podIP": addresses.pod_ip, "podIPs": [{"ip": addresses.pod_ip}]}
    return fields


def told_containers(run: PodRun, statuses: Sequence[Raw]) -> list[Raw]:
    """The statuses of containers with what tells one from another, and whether each has started."""
    return [
        {
            **status,
            "imageID": status.get("imageID") or status["image"],
            "containerID": f"podium://{_identity(run.uid, status['name'], run.restarts)}",
            "started": "running" in status["state"],
        }
        for status in statuses
    ]


def init_containers(run: PodRun, started_ns: int) -> list[Raw]:
    """The statuses of init containers, all of which have done their work when the others start."""
    time = format_time(started_ns)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": time, "finishedAt": time}
    return [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": container.get("image", ""),
            "containerID": f"podium://{_identity(run.uid, container['name'], 0)}",
            "ready": True,
            "restartCount": 0,
            "started": container.get("restartPolicy") == "Always",
            "state": {"running": {"startedAt": time}}
            if container.get("restartPolicy") == "Always"
            else {"terminated": ended},
        }
        for container in run.raw.get("spec", {}).get("initContainers", ())
    ]


def _identity(uid: str, name: str, restarts: int) -> str:
    return blake2b(f"{uid}/{name}/{restarts}".encode(), digest_size=32).hexdigest()
