"""What simulated kubelets have to say about the annotations of a pod or a node that is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from podium.machines.kubelets import node_trouble, pod_annotations
from podium.requests.request import Request, Response

# By kind, what finds what is wrong with annotations that say how simulated objects fare.
_PROBLEMS: Mapping[str, Callable[[Mapping[str, str]], list[str]]] = {
    "Node": node_trouble.problems,
    "Pod": pod_annotations.problems,
}
_WRITES = ("create", "update", "patch")


def with_warnings(request: Request, response: Response) -> Response:
    """The answer, with what simulated kubelets have to say about a pod or a node that was written."""
    problems_of = _PROBLEMS.get(request.kind)
    if problems_of is None or request.subresource or request.verb not in _WRITES or response.object is None:
        return response
    annotations = response.object.get("metadata", {}).get("annotations")
    found = problems_of(annotations) if annotations else []
    return msgspec.structs.replace(response, warnings=(*response.warnings, *found)) if found else response
