"""The columns for decisions about a cluster and its changed copies, which share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podium.api import basis, collector, disruption_policy, policy, reading
from podium.api.clock_inference import DEFAULT_START_NS, last_time
from podium.api.errors import InputError
from podium.api.input.codec import Document, refuse_empty_pods
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod, PodCondition
from podium.api.selectors import compile_label_selector
from podium.api.workloads import Replicated
from podium.app.explaining.explainer import Explainer

# If more than this fraction of the objects differ, the columns are rebuilt.
_ONE_IN = 4


class ClusterVersion(Struct, frozen=True, eq=False):
    """A cluster as read or changed: its documents, and the newest time in its objects (None: no times).

    With `has_open_budgets` some budgets have no status: it then depends on all pods and their controllers.
    """

    documents: Sequence[Document]
    last_ns: int | None
    has_open_budgets: bool

    @classmethod
    def of(cls, documents: Sequence[Document]) -> ClusterVersion:
        """Return the version with these documents."""
        return cls(documents, last_time(_objects(documents)), any(map(basis.lacks_status, documents)))

    @property
    def now_ns(self) -> int:
        return DEFAULT_START_NS if self.last_ns is None else self.last_ns

    def changed(
        self, documents: Sequence[Document], gone: Sequence[Document], come: Sequence[Document]
    ) -> ClusterVersion:
        """Return the version with ``documents``: this one's without ``gone``, with ``come``."""
        has_open_budgets = any(map(basis.lacks_status, documents if self.has_open_budgets else come))
        times = (self.last_ns, last_time(_objects(come)))
        last_ns = max((time for time in times if time is not None), default=None)
        if last_ns is not None and last_ns == last_time(_objects(gone)):
            # Another object may be as new; if many are, the search soon finds one.
            last_ns = last_time(_objects(documents), enough_ns=last_ns)
        return ClusterVersion(documents, last_ns, has_open_budgets)


class ClusterSession:
    """Shows versions of a cluster, one after another, on columns built for the first one.

    It shows another version by the objects in which the two differ, if explanations are then the same as on columns of
    its own. Not to be used by several threads at once.
    """

    def __init__(self, make: Callable[[Iterable[Kubernetes], int], Explainer]) -> None:
        self._make = make
        self._shown: tuple[ClusterVersion, Explainer] | None = None
        # The sizes of images by name, worked out when nodes come or go.
        self._image_sizes: dict[str, set[int]] | None = None

    def show(self, version: ClusterVersion) -> Explainer | None:
        """Return the explainer of decisions in a version; None if it needs columns of its own. Raises PodiumError."""
        if self._shown is None:
            self._shown = (version, self._made(version))
        shown, explainer = self._shown
        if shown is version:
            return explainer
        gone, come = _differing(shown, version)
        if not gone and not come:
            self._shown = (version, explainer)
            return explainer
        if not self._can_show(version, gone, come):
            return None
        self._move(version, gone, come)
        return explainer

    def show_again(self, version: ClusterVersion) -> None:
        """Show an earlier version again."""
        if self._shown is not None and self._shown[0] is not version:
            self._move(version, *_differing(self._shown[0], version))

    def _made(self, version: ClusterVersion) -> Explainer:
        refuse_empty_pods(version.documents)
        try:
            with collector.collector_paused(keeps_objects=True):
                return self._make(with_budget_statuses(version.documents), version.now_ns)
        except InputError as error:
            raise _located(error, version.documents) from None

    def _move(self, version: ClusterVersion, gone: Sequence[Document], come: Sequence[Document]) -> None:
        if self._shown is None:
            raise AssertionError("nothing is shown that could be another version")
        explainer = self._shown[1]
        refuse_empty_pods(come)
        try:
            explainer.change(_objects(version.documents), _objects(gone), _objects(come))
        except InputError as error:
            raise _located(error, come) from None
        self._shown = (version, explainer)

    def _can_show(self, version: ClusterVersion, gone: Sequence[Document], come: Sequence[Document]) -> bool:
        if self._shown is None:
            return False
        shown, explainer = self._shown
        leaving, arriving = _objects(gone), _objects(come)
        return (
            (len(gone) + len(come)) * _ONE_IN <= len(version.documents)
            and shown.now_ns == version.now_ns
            and not shown.has_open_budgets
            and not version.has_open_budgets
            and explainer.can_change((*leaving, *arriving))
            and self._agree_on_images(shown, leaving, arriving)
        )

    def _agree_on_images(
        self, shown: ClusterVersion, leaving: Sequence[Kubernetes], arriving: Sequence[Kubernetes]
    ) -> bool:
        """Return whether images have equal sizes on all nodes; otherwise the size on the first node would count."""
        sizes = list(_images((*leaving, *arriving)))
        if not sizes:
            return True
        known = _images(_objects(shown.documents)) if self._image_sizes is None else ()
        self._image_sizes = self._image_sizes or {}
        for name, size in (*known, *sizes):
            self._image_sizes.setdefault(name, set()).add(size)
        return all(len(self._image_sizes[name]) == 1 for name, _ in sizes)


def _differing(shown: ClusterVersion, version: ClusterVersion) -> tuple[list[Document], list[Document]]:
    """Return the documents only in the first version, and those only in the second, each in its order."""
    # Identity distinguishes documents while both versions exist.
    before, after = ({id(each): each for each in some.documents} for some in (shown, version))
    gone = [before[each] for each in before if each not in after]
    return gone, [after[each] for each in after if each not in before]


def _objects(documents: Iterable[Document]) -> list[Kubernetes]:
    return [document.object for document in documents if document.object is not None]


def _images(objects: Iterable[Kubernetes]) -> Iterator[tuple[str, int]]:
    for node in objects:
        if isinstance(node, Node):
            for image in node.status.images:
                yield from ((name, image.size_bytes) for name in image.names)


def _located(error: InputError, documents: Iterable[Document]) -> InputError:
    """Return the error with the location of the object that it names."""
    for document in documents:
        if document.object is not None and error.object == f"{document.raw.get('kind')} {document.object.key}":
            return error.located(source=document.source, document=document.index)
    return error


# Of what the controller watches, the kinds that Podium reads; pods and budgets apart.
_WATCHED = disruption_policy.DisruptionPolicy | Replicated


def with_budget_statuses(documents: Sequence[Document]) -> list[Kubernetes]:
    """Return the objects of the documents; each budget without a status gets the one that follows from the pods."""
    open_budgets = [document for document in documents if basis.lacks_status(document)]
    statuses = dict(_computed(documents, open_budgets)) if open_budgets else {}
    return [
        replace(each, status=statuses[each.key])
        if isinstance(each, policy.PodDisruptionBudget) and each.key in statuses
        else each
        for each in _objects(documents)
    ]


def _computed(
    documents: Sequence[Document], budgets: Sequence[Document]
) -> Iterator[tuple[str, policy.PodDisruptionBudgetStatus]]:
    """Yield, by key, the status that a disruption controller writes when it first sees these objects.

    Only budgets are decoded here; the controller decodes the other objects, and gets only relevant ones.
    """
    from podium.controllers.actions import ReplaceStatus
    from podium.controllers.disruption.disruption_controller import DisruptionController
    from podium.controllers.observations import Changed, Tick

    controller = DisruptionController()
    open_budgets = [(document.object, document.raw) for document in budgets if document.object is not None]
    for item in _followed(documents, budgets):
        controller.handle(Changed(item), 0)
    # Last: a budget finds its pods faster than each pod its budgets.
    for budget, written in open_budgets:
        # The controller compares generations, and a budget that was never stored has none.
        raw = {**written, "metadata": {"generation": 1, **written["metadata"]}}
        metadata = replace(budget.metadata, generation=raw["metadata"]["generation"])
        controller.handle(Changed(replace(budget, metadata=metadata), raw), 0)
    for action in controller.handle(Tick(), 0):
        if isinstance(action, ReplaceStatus) and action.raw["kind"] == "PodDisruptionBudget":
            found = reading.read(action.raw, policy.PodDisruptionBudget)
            yield found.key, found.status


def _followed(documents: Sequence[Document], budgets: Sequence[Document]) -> Iterator[Kubernetes]:
    """Yield the pods that some of the budgets cover, and the other objects on which their status depends."""
    from podium.controllers.indexes import SelectorIndex

    selectors: SelectorIndex[str] = SelectorIndex()
    for budget in _objects(budgets):
        if isinstance(budget, policy.PodDisruptionBudget):
            selectors.put(budget.key, compile_label_selector(budget.spec.selector), budget.metadata.namespace)
    # Pods of one owner share their labels, which exist as long as the documents.
    covered: dict[tuple[int, str], bool] = {}
    for document in documents:
        item = document.object
        if isinstance(item, Pod):
            labels, namespace = item.metadata.labels, item.metadata.namespace
            is_covered = covered.get((id(labels), namespace))
            if is_covered is None:
                is_covered = covered[id(labels), namespace] = bool(selectors.matching(labels, namespace))
            if is_covered:
                yield _as_running(item, document)
        elif isinstance(item, _WATCHED):
            yield item


def _as_running(pod: Pod, document: Document) -> Pod:
    """Return the pod with the health that `podium.controlplane.population.as_running` gives it."""
    status = pod.status
    if not pod.spec.node_name or status.condition("Ready") is not None:
        return pod
    # A typed pod without a phase is Pending; only the document shows whether a phase was set.
    phase = document.raw.get("status", {}).get("phase", "Running") if status.phase == "Pending" else status.phase
    if phase != "Running":
        return pod
    ready = PodCondition(type="Ready", status="True")
    return replace(pod, status=replace(status, conditions=(*status.conditions, ready)))
