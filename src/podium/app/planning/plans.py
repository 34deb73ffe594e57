"""The questions of `podium plan` as a library: one method each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from podium.api.input.codec import objects_in
from podium.api.input.files import FileName, read_bytes, shown_name
from podium.app.inputs import Given, Objects, as_document, assignments_of, read_objects, several
from podium.app.planning.answer import PlanAnswer, PlanProgress
from podium.app.planning.question import PlanRun
from podium.app.planning.questions.change import change
from podium.app.planning.questions.deploy import deploy
from podium.app.planning.questions.diff import UNCHANGED, diff, read_setting, upgrade
from podium.app.planning.questions.fit import FitOptions, fit_answer, fit_target
from podium.app.planning.questions.nodes import PlannedDrain, change_nodes, drain, fail
from podium.app.planning.questions.pending import pending_answer
from podium.app.planning.questions.reschedule import reschedule
from podium.app.planning.questions.survive import survive_answer
from podium.framework.rescheduling import configuration
from podium.sim.run_options import Duration, RunOptions, duration_ns_of

if TYPE_CHECKING:
    from podium.app.cluster import Cluster


class Plans:
    """Questions about what a change would do to a cluster; nothing is changed anywhere.

    Each question is played in virtual time with the change and without it; the answer is the difference by workload
    (`PlanAnswer`). Durations are text such as "90s", or seconds. All raise PodiumError for wrong arguments, and for a
    run beyond its limits.
    """

    def __init__(
        self, cluster: Cluster, options: RunOptions, progress: PlanProgress | None = None, *, samples: int = 0
    ) -> None:
        self._cluster = cluster
        self._run = PlanRun(cluster.read, options, progress, samples)

    def __repr__(self) -> str:
        return f"<Plans: {', '.join(name for name in vars(type(self)) if not name.startswith('_'))}>"

    def deploy(self, *objects: Given) -> PlanAnswer:
        """Create objects: where each pod goes, which pods it preempts, where those go, and so on."""
        return deploy(self._run, read_objects(objects).documents)

    def drain(
        self,
        *nodes: str,
        selector: str = "",
        parallel: bool = False,
        timeout: Duration | None = None,
        grace_period_seconds: int | None = None,
        force: bool = False,
        delete_emptydir_data: bool = False,
        disable_eviction: bool = False,
    ) -> PlanAnswer:
        """Drain nodes, by name and by labels, one after another or all at once.

        The answer says how long that takes, which budget holds which pods, what blocks it and how to unblock that. The
        arguments are those of `kubectl drain`.
        """
        timeout_ns = None if timeout is None else duration_ns_of("timeout", timeout)
        options = PlannedDrain(
            parallel, timeout_ns, grace_period_seconds, force, delete_emptydir_data, disable_eviction
        )
        return drain(self._run, nodes, selector, options)

    def fail(self, *nodes: str, selector: str = "", for_: Duration | None = None) -> PlanAnswer:
        """Let nodes fail at once, by name and by labels, such as a zone's.

        After `for_` they come back; without it they stay down.
        """
        return fail(self._run, nodes, selector, None if for_ is None else duration_ns_of("for_", for_))

    def nodes(
        self, *objects: Given, add: int = 0, like: str = "", remove: str | Iterable[str] = (), selector: str = ""
    ) -> PlanAnswer:
        """Add nodes, remove nodes, or both.

        `add` is the number of nodes `like` one of the cluster, or of copies of each of the `objects`; without it each
        of these comes once. Removed nodes, by name or by labels, are drained first, within budgets.
        """
        documents = read_objects(objects).documents if objects else []
        return change_nodes(self._run, documents, add=add, like=like, remove=several(remove), selector=selector)

    def change(
        self,
        target: str = "",
        fields: Mapping[str, Any] | None = None,
        namespace: str = "",
        *,
        patches: Iterable[dict[str, Any] | FileName] = (),
    ) -> PlanAnswer:
        """Change fields of an object: `plan.change("deployment/web", {"replicas": 5, "requests.cpu": "2"})`.

        A field is one of the object, of its spec, of its pods, or (requests, limits) of their container, with dots
        between the names; of several containers the one is named first: `main:requests.cpu`. None removes it. The
        `patches`, dictionaries or files, are strategic merge patches of any objects, which they name by kind and name;
        one that names none is for the target.
        """
        read = [
            patch
            for each in patches
            for patch in ([each] if isinstance(each, dict) else objects_in(read_bytes(each), shown_name(each)))
        ]
        return change(self._run, target, assignments_of(fields or {}), read, namespace)

    def reschedule(
        self, rescheduler: configuration.ReschedulerConfiguration | dict[str, Any] | FileName | None = None
    ) -> PlanAnswer:
        """Reschedule pods: which pods a rescheduler would move where and why, and what that does to workloads.

        `rescheduler` is a ReschedulerConfiguration or a DeschedulerPolicy, as a dictionary or its file; the default is
        a cautious rescheduler.
        """
        if rescheduler is None:
            rescheduler = configuration.default_rescheduler()
        elif isinstance(rescheduler, dict):
            rescheduler = configuration.read_rescheduler(as_document(rescheduler, "rescheduler").raw, "rescheduler")
        elif not isinstance(rescheduler, configuration.ReschedulerConfiguration):
            rescheduler = configuration.load_rescheduler(str(rescheduler))
        return reschedule(self._run, rescheduler)

    def pending(self, namespace: str = "") -> PlanAnswer:
        """Explain why pods wait for a node, each cause once, and which one change would place most of them.

        The answer is about the pods of `namespace`, or about all; the others are decided about as well.
        """
        return pending_answer(self._cluster, namespace, samples=self._run.samples)

    def fit(
        self, *objects: Given, replicas: int | None = None, preempts: bool = False, after_pending: bool = False
    ) -> PlanAnswer:
        """Count how many pods like this one fit, where, and what limits their number, by the shape of nodes.

        The objects are one that makes pods, and what it needs besides the cluster. With `replicas` the answer is
        whether so many fit. `preempts` lets them preempt, `after_pending` places the pending pods first.
        """
        target, others = fit_target(read_objects(objects).documents)
        return fit_answer(
            self._cluster.with_(*others), target, FitOptions(replicas, preempts, after_pending, self._run.samples)
        )

    def survive(self, target: str, namespace: str = "default") -> PlanAnswer:
        """Find the pods that could preempt a pod or workload (`deploy/web`) now, and what would protect it.

        Each change is verified by deciding again.
        """
        return survive_answer(self._cluster, target, namespace, samples=self._run.samples)

    def diff(self, before: Objects = (), after: Objects = (), *, renew_priorities: bool = False) -> PlanAnswer:
        """Compare two settings of the cluster: which workloads gain, lose or move.

        A setting consists of objects that replace those of the cluster, such as priority classes, budgets and policies;
        a KubeSchedulerConfiguration; a ReschedulerConfiguration; or a Scenario, of which everything in its spec counts.
        An empty setting is the cluster as it is. With `renew_priorities`, pods get the present priority of their class.
        """
        read = {name: read_objects(given).documents for name, given in (("before", before), ("after", after))}
        settings = (read_setting(name if documents else UNCHANGED, documents) for name, documents in read.items())
        return diff(self._run, *settings, renews_priorities=renew_priorities)

    def upgrade(self, to: str) -> PlanAnswer:
        """Upgrade the control plane to a Kubernetes version: which pods run, wait or go elsewhere, and what is new."""
        return upgrade(self._run, to)
