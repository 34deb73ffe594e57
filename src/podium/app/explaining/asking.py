"""What is asked about a cluster, a pod or a workload, and who answers."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.errors import PodiumError, shown
from podium.api.input.codec import Document
from podium.api.meta import Kubernetes
from podium.api.schemas.suggestion import likely
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.target import KIND_OF_WORD, POD, Target, read_target
from podium.app.explaining.workload import (
    WorkloadExplanation,
    find_workload,
    maker_of,
    next_pod,
    pods_of,
    wanted_of,
)


def ask(
    documents: Sequence[Document],
    explainer: Explainer,
    text: str,
    namespace: str,
    scheduler: str,
) -> Explanation | WorkloadExplanation:
    """The answer about whomever ``text`` means (`podium.app.explaining.target.read_target`). Raises PodiumError."""
    target = read_target(text, namespace, explainer.is_pod)
    if target.kind == POD:
        _refuse_slip(text, documents, explainer.is_pod(target.key))
        return explainer.explain(target.key, scheduler)
    return _explain_workload(documents, explainer, target, scheduler)


def _explain_workload(
    documents: Sequence[Document], explainer: Explainer, target: Target, scheduler: str
) -> WorkloadExplanation:
    document = find_workload(documents, target)
    if document is None or document.object is None:
        objects = [document.object for document in documents if document.object is not None]
        raise _missing(target, objects)
    workload = document.object
    objects = [found.object for found in documents if found.object is not None]
    pods = pods_of(objects, workload)
    pending = next((pod.key for pod in pods if not pod.spec.node_name), None)
    if pending is not None:
        explanation = explainer.explain(pending, scheduler)
    else:
        made = next_pod(maker_of(documents, document), pods)
        explanation = explainer.explain_made(made.pod, made.claims, scheduler)
    return WorkloadExplanation(target.kind, target.key, wanted_of(workload), pods, explanation, pending is None)


def _refuse_slip(text: str, documents: Sequence[Document], is_there: bool) -> None:
    """Raise PodiumError for `dploy/web`, which is no pod of a namespace `dploy`."""
    first, slash, name = text.partition("/")
    if is_there or not slash:
        return
    namespaces = {found.object.metadata.namespace for found in documents if found.object is not None}
    near = [] if first in namespaces else likely(first.lower(), KIND_OF_WORD)
    if near:
        raise PodiumError(f"{shown(text)} is no pod in the input; did you mean {near[0]}/{name}?")


def _missing(target: Target, objects: Sequence[Kubernetes]) -> PodiumError:
    known = sorted(found.key for found in objects if found.kind == target.kind)
    near = likely(target.key, known) or known[:3]
    hint = f"; there is: {', '.join(near)}" if near else ""
    return PodiumError(f"{target.kind} {target.key} is not in the input{hint}")
