"""The rights that Podium's programs need, made from what they watch and what they ask for.

`python -m tools.rbac` writes the files of `deploy/` that grant them; with `--check` it says which are not as they
should be. It needs Podium's packages: run it with the Python in `.venv`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.api.kinds import KINDS, group_of
from podium.api.replacements import ForReplacement
from podium.client.measuring import METRICS_GROUP
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.machines import actions
from podium.machines.actions import Action, DeleteObject, Evict, PatchObject
from podium.machines.disruption.avoid_lists import AvoidLists
from podium.machines.disruption.disruption_counts import DisruptionCounts
from podium.machines.rescheduling.rescheduler import Rescheduler
from podium.machines.scheduling.scheduler import Scheduler
from tools.asked_rights import (
    UID,
    Right,
    guidance_examples,
    requested_rights,
    rescheduler_examples,
    scheduler_examples,
)

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
_MACHINES = ROOT / "src" / "podium" / "machines"
# What acts in a program: the scheduler or the rescheduler, and who counts disruptions where the API server does not.
_COUNTING = _MACHINES / "disruption" / "disruption_counts.py"
SCHEDULING = (*sorted((_MACHINES / "scheduling").rglob("*.py")), _COUNTING)
RESCHEDULING = (*sorted((_MACHINES / "rescheduling").rglob("*.py")), _COUNTING)

SEE = ("get", "list", "watch")
# What is asked for only where pods are preempted.
_PREEMPTING = (DeleteObject, Evict, PatchObject)
_HEADER = "# Made by tools/rbac.py from what the scheduler watches and asks for; run it after a change.\n"
_RESCHEDULER_HEADER = _HEADER.replace("the scheduler", "the rescheduler")


# Reads and writes


def watch_rights(kinds: Iterable[str]) -> set[Right]:
    """To see the objects of some kinds, and what happens to them."""
    by_name = {kind.name: kind for kind in KINDS.values()}
    return {
        Right(group, by_name[name].plural, verb)
        for name in kinds
        for group in (by_name[name].group, *map(group_of, by_name[name].other_versions))
        for verb in SEE
    }


def reader_rights() -> set[Right]:
    """What `podium snapshot` and `podium record` need, and every command with `--context`."""
    return {right for right in watch_rights(kind.name for kind in KINDS.values()) if right.verb != "get"}


def preemption_rights() -> set[Right]:
    """What comes on top where the scheduler may have pods go, notes in pods what was futile, and counts disruptions."""
    return requested_rights(filter(_is_for_preemption, scheduler_examples()))


def _is_for_preemption(action: Action) -> bool:
    """Whether an action is asked for where pods are preempted alone; groups are told that they were scheduled."""
    return isinstance(action, _PREEMPTING) and not (isinstance(action, PatchObject) and action.kind == "PodGroup")


def avoid_list_rights() -> set[Right]:
    """What comes on top where it takes off nodes' avoid lists what is over."""
    trimmed = PatchObject("Node", "node", UID, {"metadata": {"annotations": {PREFER_AVOID_PODS: None}}}, "")
    return (watch_rights(AvoidLists.watches) | requested_rights([trimmed])) - scheduler_rights()


def scheduler_rights() -> set[Right]:
    """What a scheduler needs that does not preempt."""
    asked = requested_rights(action for action in scheduler_examples() if not _is_for_preemption(action))
    # Who records the same again counts it in the Event that is there.
    counted = {Right("", "events", "patch")}
    return watch_rights(Scheduler.watches | DisruptionCounts.watches) | asked | counted


def eviction_rights(*, knows_ours: bool) -> set[Right]:
    """What is needed to evict pods so that their nodes are avoided; ``knows_ours``: at Podium's own API server.

    Of another one the nodes are written by whoever evicts.
    """
    eviction = Evict(
        "default/owned", UID, "", "rescheduler", avoid_node=True, for_replacement=ForReplacement(first=True)
    )
    return requested_rights([eviction], knows_ours=knows_ours)


def rescheduler_rights() -> set[Right]:
    """What a rescheduler needs that evicts, writes to no node, and leaves replacements to their schedulers."""
    counted = {Right("", "events", "patch")}
    # What pods and nodes use nobody can watch.
    measured = {Right(METRICS_GROUP, plural, "list") for plural in ("nodes", "pods")}
    watched = rescheduler_watches() | DisruptionCounts.watches
    return watch_rights(watched) | requested_rights(rescheduler_examples()) | counted | measured


def rescheduler_watches() -> frozenset[str]:
    """The kinds that a rescheduler is shown; a ConfigMap that it reads is one of one namespace."""
    settings = ReschedulerSettings(policies=())
    return frozenset(Rescheduler(settings).watches)


def node_marking_rights() -> set[Right]:
    """What comes on top where it keeps replacements off nodes: by avoid lists, or by taints."""
    avoided = PatchObject("Node", "node", UID, {"metadata": {"annotations": {PREFER_AVOID_PODS: "{}"}}}, "")
    marked = PatchObject("Node", "node", UID, {"spec": {"taints": []}}, "")
    return requested_rights([avoided, marked])


def guidance_rights() -> set[Right]:
    """What comes on top where it nominates or binds replacements."""
    return requested_rights(guidance_examples())


def configuration_rights() -> set[Right]:
    """What it needs, by the name of the ConfigMap alone, to read its configuration of one."""
    return {Right("", "configmaps", verb) for verb in SEE}


def emitted(files: Iterable[Path]) -> set[str]:
    """The names of the actions that some modules speak of."""
    names: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == actions.__name__:
                names |= {alias.name for alias in node.names}
    return names - {"Action"}


EXAMPLES = frozenset(type(action).__name__ for action in scheduler_examples())
"""The actions of a scheduler of which the rights are known."""

RESCHEDULER_EXAMPLES = frozenset(type(action).__name__ for action in (*rescheduler_examples(), *guidance_examples()))
"""The same of a rescheduler."""


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
