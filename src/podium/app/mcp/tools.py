"""The tools of `podium mcp`: questions of an assistant about one cluster. None of them changes anything."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Any, cast, get_args

import msgspec

from podium.api.errors import PodiumError, shown
from podium.api.input.codec import Document, load_text, objects_in
from podium.api.pod import Pod
from podium.api.times import format_time
from podium.app.accounting.account import LedgerQuery, answer_of, dumped_account
from podium.app.accounting.text import headline_of, write_ledger
from podium.app.cluster import Cluster
from podium.app.console.page import Page, counted
from podium.app.explaining.on_node import answer_on
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.planning.plans import Plans
from podium.controllers.ledger.disruption import Cause

MOST_CHARACTERS = 6_000
"""The longest text of one answer, some 2,000 tokens; `read_more` returns the rest."""
MOST_ANSWERS = 16
"""The number of answers that can be read on; older ones have to be asked for again."""
MOST_MANIFEST = 1 << 20
"""The largest manifest, in characters."""


@dataclass(frozen=True)
class ToolAnswer:
    """The answer of a tool.

    ``headline`` is the answer in one line, ``text`` (a part of) what the command line prints. ``caveats`` is what the
    answer rests on. ``answer`` names it for `read_more` and `read_json`; ``next_offset`` is where the rest of
    ``total_characters`` begins, None if nothing is left.
    """

    headline: str
    text: str
    caveats: list[str]
    answer: str
    next_offset: int | None
    total_characters: int


@dataclass(frozen=True, slots=True)
class _Answered:
    headline: str
    text: str
    caveats: list[str]
    to_dict: Callable[[], dict[str, Any]]


class Tools:
    """The tools; ``load`` reads the cluster, at first and at each `reload`, and ``now_ns`` is the time.

    One question is answered at a time, since a cluster is not thread-safe. All raise PodiumError for wrong arguments.
    """

    def __init__(self, load: Callable[[], Cluster], now_ns: Callable[[], int]) -> None:
        self._load = load
        self._now_ns = now_ns
        self._cluster, self._read_ns = load(), now_ns()
        self._lock = Lock()
        self._answers: OrderedDict[str, _Answered] = OrderedDict()
        self._numbers = count(1)

    def functions(self) -> list[Callable[..., ToolAnswer]]:
        """Return the tools, all public methods but this one, in the order in which they are listed."""
        names = (name for name in vars(Tools) if not name.startswith("_") and name != "functions")
        return [getattr(self, name) for name in names]

    def overview(self) -> ToolAnswer:
        """Describe the cluster: its version, nodes, pods by namespace and phase, pending pods, and what is missing.

        Call this first. It costs little.
        """
        with self._lock:
            return self._overview()

    def _overview(self) -> ToolAnswer:
        cluster = self._cluster
        pods = [each.object for each in cluster.read.documents if isinstance(each.object, Pod)]
        namespaces = Counter(pod.metadata.namespace for pod in pods)
        facts = {
            "kubernetesVersion": str(cluster.release),
            "readAt": format_time(self._read_ns),
            "nodes": cluster.nodes,
            "podsByNamespace": dict(namespaces.most_common()),
            "podsByPhase": dict(Counter(pod.status.phase for pod in pods).most_common()),
            "pendingPods": cluster.pending,
        }
        lines = [f"Kubernetes {cluster.release}, read at {facts['readAt']}"]
        lines += [f"{counted(number, 'pod')} in {name}" for name, number in namespaces.most_common()]
        lines += [f"pending: {pod}" for pod in cluster.pending]
        lines += [f"warning: {warning}" for warning in cluster.warnings]
        headline = f"{counted(len(cluster.nodes), 'node')}, {counted(len(pods), 'pod')}, {len(cluster.pending)} pending"
        caveats = [caveat.message for caveat in cluster.caveats]
        return self._keep(_Answered(headline, "\n".join(lines), caveats, lambda: facts))

    def explain(self, target: str, namespace: str = "default", node: str = "") -> ToolAnswer:
        """Explain why a pod is pending or where it goes, which pods it preempts, and what would have to change.

        `target` is a pod (`web-1`, `shop/web-1`) or a workload (`deploy/web`): then the first of its pending pods, or
        one more that it would create. With `node`: the verdict of every plugin on that node, and its scores.
        """

        def ask(cluster: Cluster) -> Any:
            answer = cluster.ask(target, namespace)
            if not node:
                return answer
            explanation = answer.explanation if isinstance(answer, WorkloadExplanation) else answer
            return answer_on(explanation, node)

        return self._ask(ask)

    def pending(self, namespace: str = "") -> ToolAnswer:
        """List the pending pods by workload: what is missing, and the smallest change that would help."""
        return self._plan(lambda plans: plans.pending(namespace))

    def fit(self, manifest: str, replicas: int | None = None, preempts: bool = False) -> ToolAnswer:
        """Count how many pods of a manifest (YAML or JSON of a Pod or a workload) fit into the cluster now.

        `replicas` asks whether so many fit. `preempts` lets them preempt pods of lower priority.
        """
        return self._plan(lambda plans: plans.fit(*_objects(manifest), replicas=replicas, preempts=preempts))

    def survive(self, target: str, namespace: str = "default") -> ToolAnswer:
        """Find the pods of a workload that pending pods would preempt, and changes that would protect them.

        The answer lists what new pods of each priority class would preempt.
        """
        return self._plan(lambda plans: plans.survive(target, namespace))

    def plan_deploy(self, manifest: str) -> ToolAnswer:
        """Predict what happens if a manifest (YAML or JSON) is applied: placements, preemptions, and what follows."""
        return self._plan(lambda plans: plans.deploy(*_objects(manifest)))

    def plan_drain(
        self, nodes: list[str] | None = None, selector: str = "", force: bool = False, timeout: str = ""
    ) -> ToolAnswer:
        """Predict the drain of nodes, by name or label selector: duration, blocking budgets, workloads short of pods.

        `force` and `timeout` (such as `10m`) are those of kubectl drain; emptyDir data may be deleted.
        """
        return self._plan(
            lambda plans: plans.drain(
                *(nodes or ()), selector=selector, force=force, timeout=timeout or None, delete_emptydir_data=True
            )
        )

    def plan_fail(self, nodes: list[str] | None = None, selector: str = "", duration: str = "") -> ToolAnswer:
        """Predict the failure of nodes at once, by name or label selector (`topology.kubernetes.io/zone=a`).

        With `duration` (such as `20m`) they come back after it. A zone of a large cluster can take minutes.
        """
        return self._plan(lambda plans: plans.fail(*(nodes or ()), selector=selector, for_=duration or None))

    def plan_nodes(self, add: int = 0, like: str = "", remove: list[str] | None = None) -> ToolAnswer:
        """Predict what happens if `add` copies of the node `like` are added, or nodes are removed."""
        return self._plan(lambda plans: plans.nodes(add=add, like=like, remove=remove or ()))

    def plan_change(
        self, target: str = "", fields: dict[str, Any] | None = None, namespace: str = "", patch: str = ""
    ) -> ToolAnswer:
        """Predict what happens if objects change: fields of `target`, such as `deploy/web` with `{"replicas": 5}`.

        Short names such as `requests.cpu` are known; null removes a field. `patch` (YAML or JSON) changes any fields of
        any object, such as `image`: it names kind, name and the changed fields.
        """
        patches = objects_in(_checked(patch).encode(), "patch") if patch else []
        return self._plan(lambda plans: plans.change(target, fields, namespace, patches=patches))

    def plan_diff(self, before: str = "", after: str = "", renew_priorities: bool = False) -> ToolAnswer:
        """Compare two settings (YAML or JSON) over the cluster: which workloads gain, lose or move.

        A setting has objects such as priority classes and budgets, or a KubeSchedulerConfiguration; "" is the cluster
        as it is. With `renew_priorities` pods get the priority that their class then has.
        """
        settings = [_objects(text) if text else [] for text in (before, after)]
        return self._plan(lambda plans: plans.diff(*settings, renew_priorities=renew_priorities))

    def plan_reschedule(self) -> ToolAnswer:
        """Predict what the rescheduler would move with its default policies, and what that gains."""
        return self._plan(lambda plans: plans.reschedule())

    def plan_upgrade(self, to: str) -> ToolAnswer:
        """Predict what an upgrade to another Kubernetes version (such as `1.36`) changes for this cluster's pods."""
        return self._plan(lambda plans: plans.upgrade(to))

    def ledger(self, namespace: str = "", cause: str = "") -> ToolAnswer:
        """List past disruptions of pods, as far as the cluster's objects and Events show them: victims, causes, cost.

        `cause` is one of preemption, eviction, drain, taint and others.
        """
        if cause and cause not in get_args(Cause):
            raise PodiumError(f"cause: {shown(cause)} is not one of {', '.join(get_args(Cause))}")
        query = LedgerQuery(namespaces=(namespace,) if namespace else (), causes=(cast(Cause, cause),) if cause else ())
        with self._lock:
            account = dumped_account([each.raw for each in self._cluster.read.documents], "the cluster")
            found, page = answer_of(account, query), Page()
            write_ledger(page, found, every=False)
            caveats = ["only what the objects and Events of the cluster show; Events are kept for an hour or so"]
            return self._keep(_Answered(headline_of(found), page.text, caveats, found.to_dict))

    def read_more(self, answer: str, offset: int) -> ToolAnswer:
        """Return the next part of the text of an earlier answer, from its `next_offset`."""
        with self._lock:
            return _part(answer, self._find(answer), offset)

    def read_json(self, answer: str, path: str = "", offset: int = 0) -> ToolAnswer:
        """Return (a part of) an earlier answer as JSON, as `podium ... -o json` prints it.

        `path` chooses a part of it, such as `impact` or `impact.0.workload`; without it the fields are listed if the
        whole is long.
        """
        with self._lock:
            known = self._find(answer)
            value: Any = known.to_dict()
            for step in filter(None, path.split(".")):
                value = _within(value, step, path)
            text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
            if not path and len(text) > MOST_CHARACTERS and isinstance(value, dict) and not offset:
                text = "\n".join(f"{name}: {_size_of(part)}" for name, part in value.items())
            return _part(answer, _Answered(known.headline, text, known.caveats, known.to_dict), offset)

    def reload(self) -> ToolAnswer:
        """Read the cluster (or the files) again, and describe it; earlier answers are about the earlier state."""
        with self._lock:
            self._cluster, self._read_ns = self._load(), self._now_ns()
            return self._overview()

    def _plan(self, ask: Callable[[Plans], Any]) -> ToolAnswer:
        return self._ask(lambda cluster: ask(cluster.plan()))

    def _ask(self, ask: Callable[[Cluster], Any]) -> ToolAnswer:
        with self._lock:
            found = ask(self._cluster)
            caveats = [caveat.message for caveat in getattr(found, "caveats", None) or self._cluster.caveats]
            return self._keep(_Answered(found.headline, found.text, caveats, found.to_dict))

    def _keep(self, answered: _Answered) -> ToolAnswer:
        name = f"a{next(self._numbers)}"
        self._answers[name] = answered
        if len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)
        return _part(name, answered, 0)

    def _find(self, answer: str) -> _Answered:
        found = self._answers.get(answer)
        if found is None:
            known = ", ".join(self._answers) or "none yet"
            raise PodiumError(f"answer: {shown(answer)} is not kept (kept: {known}); ask its question again")
        return found


def _part(name: str, answered: _Answered, offset: int) -> ToolAnswer:
    total = len(answered.text)
    if not 0 <= offset <= total:
        raise PodiumError(f"offset: {offset} is not within 0 and {total}, the length of answer {name}")
    end = offset + MOST_CHARACTERS
    text, next_offset = answered.text[offset:end], end if end < total else None
    return ToolAnswer(answered.headline, text, answered.caveats, name, next_offset, total)


def _checked(text: str) -> str:
    if len(text) > MOST_MANIFEST:
        raise PodiumError(f"a manifest of {len(text):,} characters is longer than {MOST_MANIFEST:,}")
    return text


def _objects(manifest: str) -> list[Document]:
    return load_text(_checked(manifest), "manifest")


def _within(value: Any, step: str, path: str) -> Any:
    if isinstance(value, dict) and step in value:
        return value[step]
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    known = f"its fields are {', '.join(value)}" if isinstance(value, dict) else _size_of(value)
    raise PodiumError(f"path: {shown(path)} has nothing at {shown(step)}; {known}")


def _size_of(value: Any) -> str:
    if isinstance(value, list | dict):
        return counted(len(value), "item" if isinstance(value, list) else "field")
    return shown(value)
