"""What simulated kubelets have to say about the annotations of a pod, of a template for pods, or of a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from podium.machines.kubelets import node_trouble, pod_annotations
from podium.requests.request import Request, Response

_Judge = Callable[[Mapping[str, str]], list[str]]
_WORKLOADS = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
# By kind, where the annotations are that say how simulated objects fare, and what finds what is wrong with them.
_JUDGED: Mapping[str, tuple[tuple[str, ...], _Judge]] = {
    "Node": ((), node_trouble.problems),
    "Pod": ((), pod_annotations.problems),
    **dict.fromkeys(_WORKLOADS, (("spec", "template"), pod_annotations.problems)),
    "CronJob": (("spec", "jobTemplate", "spec", "template"), pod_annotations.problems),
}
_WRITES = ("create", "update", "patch")


def with_warnings(request: Request, response: Response) -> Response:
    """The answer, with what simulated kubelets have to say about what was written."""
    judged = _JUDGED.get(request.kind)
    if judged is None or request.subresource or request.verb not in _WRITES or response.object is None:
        return response
    path, problems_of = judged
    annotated = response.object
    for name in path:
        annotated = annotated.get(name) or {}
    annotations = (annotated.get("metadata") or {}).get("annotations")
    found = [".".join((*path, problem)) for problem in problems_of(annotations)] if annotations else []
    return msgspec.structs.replace(response, warnings=(*response.warnings, *found)) if found else response
