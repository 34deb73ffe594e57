"""The questions of `podium plan` for programs: one method each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.api.errors import InputError
from podium.api.input.files import FileName
from podium.app.given import Given, Objects, read_objects, several
from podium.app.plain import as_document, assignments_of
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.nodes import chosen_nodes
from podium.app.planning.patches import read_patches
from podium.app.planning.question import PlanProgress, Played, Question, play_question
from podium.app.planning.questions.change import change_answer, change_question, changes_patched, changes_set
from podium.app.planning.questions.deploy import deploy_answer, deploy_question, deployed
from podium.app.planning.questions.diff import diff_answer, play_diff
from podium.app.planning.questions.drain import DrainWishes, drain_answer, drain_question
from podium.app.planning.questions.fail import fail_answer, fail_question
from podium.app.planning.questions.fit import asked_for, fit_answer
from podium.app.planning.questions.fit_scenario import FitWishes
from podium.app.planning.questions.nodes import NodeChange, nodes_answer, nodes_from, nodes_like, nodes_question
from podium.app.planning.questions.pending import pending_answer
from podium.app.planning.questions.reschedule import report_of, reschedule_answer, reschedule_question
from podium.app.planning.questions.survive import survive_answer
from podium.app.planning.settings import Setting, read_setting
from podium.framework.rescheduling.configuration import (
    ReschedulerConfiguration,
    default_rescheduler,
    load_rescheduler,
    read_rescheduler,
)
from podium.sim.run_options import Duration, RunOptions, duration_ns_of

if TYPE_CHECKING:
    from podium.app.cluster import Cluster


class Plans:
    """What would happen to a cluster if something were done to it; nothing is changed anywhere.

    Each question is played in virtual time, and so is what would happen without it; the answer is the difference, by
    workload (`PlanAnswer`). Durations are text such as "90s", or seconds. Each raises PodiumError for what cannot be
    asked, and for a run beyond its limits.
    """

    def __init__(
        self, cluster: Cluster, options: RunOptions, progress: PlanProgress | None = None, *, stories: int = 0
    ) -> None:
        self._cluster = cluster
        self._read = cluster.read
        self._options = options
        self._progress = progress
        self._stories = stories

    def __repr__(self) -> str:
        questions = (name for name in vars(type(self)) if not name.startswith("_"))
        return f"<Plans: {', '.join(questions)}>"

    def deploy(self, *objects: Given) -> PlanAnswer:
        """Create these objects: where each pod goes, whom it preempts, where those go, and so on to the end."""
        found = read_objects(objects).documents
        return deploy_answer(self._play(deploy_question(found)), deployed(found))

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
        """Drain the nodes of these names, and those with labels, one after another or all at once.

        The answer says how long it takes, which budget holds whom, what blocks it and how to unblock that. The
        arguments are those of `kubectl drain`.
        """
        timeout_ns = None if timeout is None else duration_ns_of("timeout", timeout)
        wishes = DrainWishes(parallel, timeout_ns, grace_period_seconds, force, delete_emptydir_data, disable_eviction)
        chosen = chosen_nodes(self._read, nodes, selector)
        return drain_answer(self._play(drain_question(chosen, wishes)), chosen, "" if nodes else selector)

    def fail(self, *nodes: str, selector: str = "", for_: Duration | None = None) -> PlanAnswer:
        """Let the machines of nodes stop without a word: those of these names, and those with labels, such as a zone's.

        After `for_` they come back; without it they stay down.
        """
        chosen = chosen_nodes(self._read, nodes, selector)
        question = fail_question(chosen, None if for_ is None else duration_ns_of("for_", for_))
        return fail_answer(self._play(question), chosen, "" if nodes else selector)

    def nodes(
        self,
        *objects: Given,
        add: int = 0,
        like: str = "",
        remove: str | Iterable[str] = (),
        selector: str = "",
    ) -> PlanAnswer:
        """Add nodes, remove nodes, or both: who finds a place then, and who loses one.

        `add` so many that are `like` a node of the cluster, or of each of the `objects`, which come once if it is left
        out. Those that go, by name or by labels, are drained first, within budgets.
        """
        if add < 0:
            raise InputError(f"add: {add} is negative")
        if like and not add:
            raise InputError("like: say with add how many")
        if add and not like and not objects:
            raise InputError("add: say which with like, or with nodes as objects")
        added = nodes_like(self._read, chosen_nodes(self._read, [like])[0], add) if like else []
        if objects:
            added += nodes_from(self._read, read_objects(objects).documents, add or 1)
        removed = chosen_nodes(self._read, several(remove), selector) if remove or selector else []
        change = NodeChange(tuple(added), tuple(removed))
        return nodes_answer(self._play(nodes_question(change)), change)

    def set(self, target: str, fields: Mapping[str, Any], namespace: str = "") -> PlanAnswer:
        """Change fields of an object: `plan.set("deployment/web", {"replicas": 5, "requests.cpu": "2"})`.

        A field is one of the object, of its spec, of its pods, or (requests, limits) of their container, with dots
        between the names; of several containers the one is named first: `main:requests.cpu`. None takes it away.
        """
        return self._changed("set", changes_set(self._read, target, assignments_of(fields), namespace))

    def patch(self, *patches: dict[str, Any] | FileName) -> PlanAnswer:
        """Patch objects of any kind: each a strategic merge patch with the kind and name of its object, or a file."""
        written = [patch for patch in patches if isinstance(patch, dict)]
        files = [str(patch) for patch in patches if not isinstance(patch, dict)]
        if not patches:
            raise InputError("no patch is given")
        found = [*written, *(read_patches(files) if files else ())]
        return self._changed("patch", changes_patched(self._read, found))

    def reschedule(self, rescheduler: ReschedulerConfiguration | dict[str, Any] | FileName | None = None) -> PlanAnswer:
        """Put the cluster in order: which pods a rescheduler would move where and why, and what that does to workloads.

        `rescheduler` is a ReschedulerConfiguration or a DeschedulerPolicy, as a dictionary or its file; without one a
        cautious rescheduler is asked.
        """
        report = report_of(self._read, _rescheduler(rescheduler), self._options)
        return reschedule_answer(report, self._play(reschedule_question(report)) if report.moves else None)

    def pending(self, namespace: str = "") -> PlanAnswer:
        """Why pods wait for a node, each cause once, and which one change would let most of them in.

        `namespace` is that of the pods that are told of; the others are decided about as well.
        """
        return pending_answer(self._cluster, namespace, stories=self._stories)

    def fit(
        self, *objects: Given, replicas: int | None = None, preempts: bool = False, after_pending: bool = False
    ) -> PlanAnswer:
        """How many pods such as this one fit, where, and what ends it, by the shape of nodes.

        The objects are one that makes pods, and what it needs beside the cluster. With `replicas` it is whether so many
        fit. `preempts` lets them preempt, `after_pending` lets those that wait go first.
        """
        asked, others = asked_for(read_objects(objects).documents)
        return fit_answer(
            self._cluster.with_(*others), asked, FitWishes(replicas, preempts, after_pending, self._stories)
        )

    def survive(self, target: str, namespace: str = "default") -> PlanAnswer:
        """Who could preempt a pod now, or those of a workload (`deploy/web`), and what would spare it.

        Of the changes that would, each is verified by deciding again.
        """
        return survive_answer(self._cluster, target, namespace, stories=self._stories)

    def diff(
        self,
        before: Objects = (),
        after: Objects = (),
        *,
        renew_priorities: bool = False,
    ) -> PlanAnswer:
        """Compare two settings over the cluster: which workloads gain, lose or move.

        A setting is objects such as priority classes, budgets and policies, which take the place of those of the
        cluster; a KubeSchedulerConfiguration; a ReschedulerConfiguration; a Scenario, for its autoscaler and all else
        in its spec. Without one it is the cluster as it is. With `renew_priorities` pods have the priority that their
        class has then.
        """
        first, second = _setting("before", before), _setting("after", after)
        played = play_diff(
            self._read,
            first,
            second,
            self._options,
            renews_priorities=renew_priorities,
            progress=self._progress,
            stories=self._stories,
        )
        return diff_answer(played, first, second)

    def _changed(self, name: str, changes: Sequence[Any]) -> PlanAnswer:
        return change_answer(self._play(change_question(name, changes)), changes)

    def _play(self, question: Question) -> Played:
        return play_question(self._read, question, self._options, self._progress, stories=self._stories)


def _rescheduler(given: ReschedulerConfiguration | dict[str, Any] | FileName | None) -> ReschedulerConfiguration:
    if given is None:
        return default_rescheduler()
    if isinstance(given, dict):
        return read_rescheduler(as_document(given, "rescheduler").raw, "rescheduler")
    return given if isinstance(given, ReschedulerConfiguration) else load_rescheduler(str(given))


def _setting(name: str, given: Objects) -> Setting:
    documents = read_objects(given).documents
    return read_setting(name if documents else "the cluster as it is", documents)
