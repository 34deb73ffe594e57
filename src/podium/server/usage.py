"""What metrics.k8s.io answers: what the nodes and pods of a backend use at the moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.requests.request import Request
from podium.requests.wire.parameters import Query, read_parameters
from podium.server.backend import Backend
from podium.server.metrics import Uses, node_metrics_list, pod_metrics, pod_metrics_list
from podium.store.errors import StoreError
from podium.store.reads.listing import ListOptions

_Type = TypeVar("_Type", bound=Kubernetes)


class Usage:
    """Asks a backend for nodes and pods, and tells what they use."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def at(self, path: Sequence[str], query: Query) -> Raw | None:
        """What is at a path within the group; None where there is nothing.

        Raises StoreError 404 for a node that there is not and for a pod that does not run, and 400 for selectors that
        cannot be read.
        """
        asked = read_parameters(query).options
        options = ListOptions(label_selector=asked.label_selector, field_selector=asked.field_selector)
        match path:
            case ["nodes"]:
                return self._nodes(options)
            case ["nodes", name]:
                return self._one(self._nodes(_of_name(name)), "nodes", name)
            case ["pods"]:
                return pod_metrics_list(self._all(Pod, options), self._uses(), self._backend.now())
            case ["namespaces", namespace, "pods"]:
                return pod_metrics_list(self._all(Pod, options, namespace), self._uses(), self._backend.now())
            case ["namespaces", namespace, "pods", name]:
                return self._pod(namespace, name)
        return None

    def _nodes(self, options: ListOptions) -> Raw:
        return node_metrics_list(self._all(Node, options), self._uses(), self._backend.now())

    def _pod(self, namespace: str, name: str) -> Raw:
        for pod in self._all(Pod, _of_name(name), namespace):
            metrics = pod_metrics(pod, self._uses(), self._backend.now())
            if metrics is not None:
                return metrics
        raise _not_found("pods", f"{namespace}/{name}")

    def _uses(self) -> Uses:
        # What a pod gets of its node's cpu depends on all others there.
        return Uses(self._all(Node, ListOptions()), self._all(Pod, ListOptions()))

    def _one(self, found: Raw, plural: str, name: str) -> Raw:
        for item in found["items"]:
            only: Raw = item
            return only
        raise _not_found(plural, name)

    def _all(self, type_: type[_Type], options: ListOptions, namespace: str = "") -> Iterator[_Type]:
        """The objects of a kind. Raises StoreError as the backend answers."""
        response = self._backend.answer(Request(verb="list", kind=type_.__name__, namespace=namespace, options=options))
        if response.error is not None:
            raise response.error
        for stored in response.page.items if response.page is not None else ():
            if isinstance(stored.object, type_):
                yield stored.object


def _of_name(name: str) -> ListOptions:
    return ListOptions(field_selector=f"metadata.name={name}")


def _not_found(plural: str, name: str) -> StoreError:
    details = {"name": name.rpartition("/")[2], "group": "metrics.k8s.io", "kind": plural}
    return StoreError(404, "NotFound", f'{plural}.metrics.k8s.io "{name}" not found', details)
