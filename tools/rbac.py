"""The rights that Podium's programs need, made from what they watch and what they ask for.

`python3 tools/rbac.py` writes the files of `deploy/` that grant them; with `--check` it says which are not as they
should be. It needs Podium's packages: run it with the Python in `.venv`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.api.disruption_policy import POLICY_NAME, SCHEDULER
from podium.api.disruption_rate import DISRUPTION_RATE as RATE
from podium.api.kinds import KINDS
from podium.api.meta import Raw
from podium.api.pod import PodCondition
from podium.api.replacements import ForReplacement
from podium.client.measuring import METRICS_GROUP
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.machines import actions
from podium.machines.actions import (
    Action,
    Bind,
    BindClaim,
    DeleteObject,
    Evict,
    Nominate,
    PatchObject,
    Record,
    ReleaseClaim,
    ReportStatus,
    ReportUnschedulable,
    ReserveClaim,
)
from podium.machines.disruption.avoid_lists import AvoidLists
from podium.machines.disruption.disruption_counts import DisruptionCounts
from podium.machines.rescheduling.rescheduler import Rescheduler
from podium.machines.scheduling.scheduler import Scheduler
from podium.requests.actions import conversation_of
from podium.requests.conversation import hold
from podium.requests.request import Request, Response
from podium.requests.router import Router
from podium.store.api_resources import BUILT_IN
from podium.store.store import Store

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
_MACHINES = ROOT / "src" / "podium" / "machines"
# What acts in a program: the scheduler or the rescheduler, and who counts disruptions where the API server does not.
_COUNTING = _MACHINES / "disruption" / "disruption_counts.py"
SCHEDULING = (*sorted((_MACHINES / "scheduling").rglob("*.py")), _COUNTING)
RESCHEDULING = (*sorted((_MACHINES / "rescheduling").rglob("*.py")), _COUNTING)
_NOW = 1_767_225_600 * 10**9

SEE = ("get", "list", "watch")
# What is asked for only where pods are preempted.
_PREEMPTING = (DeleteObject, Evict, PatchObject)
_HEADER = "# Made by tools/rbac.py from what the scheduler watches and asks for; run it after a change.\n"
_RESCHEDULER_HEADER = _HEADER.replace("the scheduler", "the rescheduler")


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """What may be done with the objects of a kind: `resource` is its plural, with a subresource behind a slash."""

    group: str
    resource: str
    verb: str


# Reads and writes


def watch_rights(kinds: Iterable[str]) -> set[Right]:
    """To see the objects of some kinds, and what happens to them."""
    by_name = {kind.name: kind for kind in KINDS.values()}
    return {Right(by_name[name].group, by_name[name].plural, verb) for name in kinds for verb in SEE}


def reader_rights() -> set[Right]:
    """What `podium snapshot` and `podium record` need, and every command with `--context`."""
    return {right for right in watch_rights(kind.name for kind in KINDS.values()) if right.verb != "get"}


def preemption_rights() -> set[Right]:
    """What comes on top where the scheduler may have pods go, notes in pods what was futile, and counts disruptions."""
    return requested_rights(action for action in _examples() if isinstance(action, _PREEMPTING))


def avoid_list_rights() -> set[Right]:
    """What comes on top where it takes off nodes' avoid lists what is over."""
    trimmed = PatchObject("Node", "node", _UID, {"metadata": {"annotations": {PREFER_AVOID_PODS: None}}}, "")
    return (watch_rights(AvoidLists.watches) | requested_rights([trimmed])) - scheduler_rights()


def scheduler_rights() -> set[Right]:
    """What a scheduler needs that does not preempt."""
    asked = requested_rights(action for action in _examples() if not isinstance(action, _PREEMPTING))
    # Who records the same again counts it in the Event that is there.
    counted = {Right("", "events", "patch")}
    return watch_rights(Scheduler.watches | DisruptionCounts.watches) | asked | counted


def eviction_rights(*, knows_ours: bool) -> set[Right]:
    """What is needed to evict pods so that their nodes are avoided; ``knows_ours``: at Podium's own API server.

    Of another one the nodes are written by whoever evicts.
    """
    eviction = Evict(
        "default/owned", _UID, "", "rescheduler", avoid_node=True, for_replacement=ForReplacement(first=True)
    )
    return requested_rights([eviction], knows_ours=knows_ours)


def rescheduler_rights() -> set[Right]:
    """What a rescheduler needs that evicts, writes to no node, and leaves replacements to their schedulers."""
    counted = {Right("", "events", "patch")}
    # What pods and nodes use nobody can watch.
    measured = {Right(METRICS_GROUP, plural, "list") for plural in ("nodes", "pods")}
    watched = rescheduler_watches() | DisruptionCounts.watches
    return watch_rights(watched) | requested_rights(_rescheduler_examples()) | counted | measured


def rescheduler_watches() -> frozenset[str]:
    """The kinds that a rescheduler is shown; a ConfigMap that it reads is one of one namespace."""
    settings = ReschedulerSettings(policies=())
    return frozenset(Rescheduler(settings).watches)


def node_marking_rights() -> set[Right]:
    """What comes on top where it keeps replacements off nodes: by avoid lists, or by taints."""
    avoided = PatchObject("Node", "node", _UID, {"metadata": {"annotations": {PREFER_AVOID_PODS: "{}"}}}, "")
    marked = PatchObject("Node", "node", _UID, {"spec": {"taints": []}}, "")
    return requested_rights([avoided, marked])


def guidance_rights() -> set[Right]:
    """What comes on top where it nominates or binds replacements."""
    return requested_rights(_guidance_examples())


def configuration_rights() -> set[Right]:
    """What it needs, by the name of the ConfigMap alone, to read its configuration of one."""
    return {Right("", "configmaps", verb) for verb in SEE}


def requested_rights(wanted: Iterable[Action], *, knows_ours: bool = True) -> set[Right]:
    """What is asked of the API server when these are carried out; ``knows_ours``: it is Podium's own."""
    found: set[Right] = set()
    for action in wanted:
        store = _store()
        router = Router(store)

        def ask(request: Request, now: int, router: Router = router) -> Response:
            resource = BUILT_IN[next(key for key in BUILT_IN if key[1] == request.kind)]
            name = f"{resource.plural}/{request.subresource}" if request.subresource else resource.plural
            found.add(Right(resource.group, name, request.verb))
            return router.answer(request, now)

        hold(conversation_of(_with_uid(action, store), "scheduler", _NOW, knows_ours=knows_ours), ask, _NOW)
    return found


def emitted(files: Iterable[Path]) -> set[str]:
    """The names of the actions that some modules speak of."""
    names: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == actions.__name__:
                names |= {alias.name for alias in node.names}
    return names - {"Action"}


# One of each action, and a cluster in which it can be done

_UID = "UID"
_DEVICES = {"devices": {"results": [{"request": "gpu", "driver": "d", "pool": "p", "device": "a"}]}}


def _examples() -> list[Action]:
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": "pod-",
            "namespace": "default",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": _UID, "controller": True}],
        },
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    return [
        Bind("default/pod", _UID, "node"),
        ReportUnschedulable("default/pod", _UID, "Unschedulable", "0/1 nodes are available", ""),
        Nominate("default/pod", _UID, "node"),
        ReportStatus(
            "Pod", "default/pod", _UID, "", (PodCondition(type="DisruptionTarget", status="True", reason="A"),)
        ),
        Record("default/pod", _UID, "Normal", "Scheduled", "it was"),
        BindClaim("default/claim", _UID, "volume", "", _UID),
        BindClaim("default/claim", _UID, "", "node", _UID),
        ReserveClaim("default/devices", _UID, "default/pod", _UID, _DEVICES),
        ReserveClaim("default/made", _UID, "default/pod", _UID, _DEVICES, claim),
        ReleaseClaim("default/used", _UID, "default/pod", "somebody"),
        ReleaseClaim("", "", "default/pod", "owner"),
        DeleteObject("Pod", "default/pod", _UID, ""),
        Evict("default/pod", _UID, "default/preemptor", SCHEDULER),
        PatchObject(
            "Pod", "default/pod", _UID, {"metadata": {"annotations": {"podium.dev/futile-preemptions": "{}"}}}, ""
        ),
        PatchObject("PodDisruptionBudget", "default/budget", _UID, {"metadata": {"annotations": {RATE: "{}"}}}, ""),
        PatchObject("DisruptionPolicy", POLICY_NAME, _UID, {"status": {"caps": []}}, "", "status"),
    ]


def _rescheduler_examples() -> list[Action]:
    return [
        Evict("default/pod", _UID, "rescheduler", "rescheduler", avoid_node=True),
        Record("default/pod", _UID, "Normal", "Descheduled", "it was"),
        PatchObject("PodDisruptionBudget", "default/budget", _UID, {"metadata": {"annotations": {RATE: "{}"}}}, ""),
        PatchObject("DisruptionPolicy", POLICY_NAME, _UID, {"status": {"caps": []}}, "", "status"),
    ]


def _guidance_examples() -> list[Action]:
    return [Bind("default/pod", _UID, "node"), Nominate("default/pod", _UID, "node")]


EXAMPLES = frozenset(type(action).__name__ for action in _examples())
"""The actions of a scheduler of which the rights are known."""

RESCHEDULER_EXAMPLES = frozenset(type(action).__name__ for action in (*_rescheduler_examples(), *_guidance_examples()))
"""The same of a rescheduler."""


def _store() -> Store:
    store = Store()
    for raw in _objects():
        store.create(raw, now=_NOW, was_there=True)
    return store


def _objects() -> Iterator[Raw]:
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}
    yield _object("v1", "Pod", "pod", spec={"containers": [{"name": "main", "image": "i"}]})
    owned_pod = _object("v1", "Pod", "owned", spec={"nodeName": "node", "containers": [{"name": "main", "image": "i"}]})
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner", "controller": True}
    yield {**owned_pod, "metadata": {**owned_pod["metadata"], "ownerReferences": [replica_set]}}
    yield _object("v1", "PersistentVolumeClaim", "claim", spec=claim_spec)
    yield _object("policy/v1", "PodDisruptionBudget", "budget", spec={"maxUnavailable": 1})
    yield {"apiVersion": "podium.dev/v1alpha1", "kind": "DisruptionPolicy", "metadata": {"name": POLICY_NAME}}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "volume"},
        "spec": {**claim_spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}},
    }
    for name in ("devices", "used"):
        yield _object("resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": {"requests": requests}})
    owned = _object("resource.k8s.io/v1", "ResourceClaim", "owned", spec={"devices": {"requests": requests}})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "owner", "controller": True}
    about = {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}, "ownerReferences": [owner]}
    yield {**owned, "metadata": {**owned["metadata"], **about}}


def _object(version: str, kind: str, name: str, **body: Any) -> Raw:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **body}


def _with_uid(action: Action, store: Store) -> Action:
    """The action about the objects that are in the store."""
    changes: dict[str, str] = {}
    kind, key = _subject(action)
    stored = store.find(kind, key) if key else None
    if stored is not None and getattr(action, "uid", "") == _UID:
        changes["uid"] = stored.uid
    if getattr(action, "pod_uid", "") == _UID:
        changes["pod_uid"] = store.get("Pod", "default/pod").uid
    if isinstance(action, ReserveClaim | ReportStatus):
        return replace(action, **changes)  # type: ignore[arg-type]
    return msgspec.structs.replace(action, **changes)


def _subject(action: Action) -> tuple[str, str]:
    match action:
        case BindClaim(claim=key):
            return "PersistentVolumeClaim", key
        case ReserveClaim(claim=key) | ReleaseClaim(claim=key):
            return "ResourceClaim", key
        case Evict(pod=key):
            return "Pod", key
        case DeleteObject(kind=kind, key=key) | PatchObject(kind=kind, key=key) | ReportStatus(kind=kind, key=key):
            return kind, key
    return "Pod", str(getattr(action, "pod", ""))


# As Kubernetes writes them


def rules(rights: Iterable[Right]) -> str:
    """The rules of a role, each group's resources with the same verbs together."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for right in sorted(rights):
        verbs.setdefault((right.group, right.resource), []).append(right.verb)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), found in verbs.items():
        together.setdefault((group, tuple(sorted(found))), []).append(resource)
    return "".join(
        f'- apiGroups: ["{group}"]\n  resources: {_listed(resources)}\n  verbs: {_listed(found)}\n'
        for (group, found), resources in sorted(together.items())
    )


def _listed(names: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{name}"' if "/" in name else name for name in names) + "]"


def cluster_role(name: str, rights: Iterable[Right]) -> str:
    """A ClusterRole of that name."""
    return (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
        f"metadata:\n  name: {name}\nrules:\n{rules(rights)}"
    )


def files() -> dict[Path, str]:
    """The files of roles, and what is to be in them."""
    base = DEPLOY / "base"
    templates = DEPLOY / "helm" / "podium" / "templates"
    named = "{{ .Release.Name }}"
    roles = {"": scheduler_rights(), "-preemption": preemption_rights()}
    plain = {suffix: cluster_role(f"podium-scheduler{suffix}", rights) for suffix, rights in roles.items()}
    chart = {suffix: cluster_role(f"{named}-scheduler{suffix}", rights) for suffix, rights in roles.items()}
    return {
        base / "cluster-role.yaml": _HEADER + plain[""],
        base / "cluster-role-preemption.yaml": _HEADER + plain["-preemption"],
        templates / "cluster-role.yaml": _HEADER + chart[""],
        templates / "cluster-role-preemption.yaml": (
            f"{_HEADER}{{{{- if .Values.preemption }}}}\n{chart['-preemption']}{{{{- end }}}}\n"
        ),
        DEPLOY / "avoid-lists" / "cluster-role.yaml": _HEADER
        + cluster_role("podium-scheduler-avoid-lists", avoid_list_rights()),
        **_rescheduler_files(),
        DEPLOY / "reader" / "cluster-role.yaml": _HEADER.replace("the scheduler watches and asks for", "is read")
        + cluster_role("podium-reader", reader_rights()),
    }


def _rescheduler_files() -> dict[Path, str]:
    folder = DEPLOY / "rescheduler"
    name, named = "podium-rescheduler", "{{ .Release.Name }}-rescheduler"
    roles = {"": rescheduler_rights(), "-nodes": node_marking_rights()}
    made = {
        folder / f"cluster-role{suffix}.yaml": _RESCHEDULER_HEADER + cluster_role(f"{name}{suffix}", rights)
        for suffix, rights in roles.items()
    }
    guiding = cluster_role(f"{name}-guidance", guidance_rights())
    made[DEPLOY / "rescheduler-guidance" / "cluster-role.yaml"] = _RESCHEDULER_HEADER + guiding
    chart = "---\n".join(cluster_role(f"{named}{suffix}", rights) for suffix, rights in roles.items())
    made[DEPLOY / "helm" / "podium" / "templates" / "rescheduler-cluster-roles.yaml"] = (
        f"{_RESCHEDULER_HEADER}{{{{- if .Values.rescheduler.enabled }}}}\n{chart}{{{{- end }}}}\n"
    )
    return made


def main(arguments: list[str]) -> int:
    """Write the files, or look whether they are as they should be."""
    wrong = [path for path, text in files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if arguments == ["--check"]:
        for path in wrong:
            print(f"{path.relative_to(ROOT)} is not what tools/rbac.py makes")
        return 1 if wrong else 0
    for path in wrong:
        path.write_text(files()[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
