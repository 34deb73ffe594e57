"""The rights that Podium's programs need, derived from what they watch and request.

`python -m tools.rbac` writes the role files in `deploy/`; `--check` lists outdated ones. It needs Podium's packages:
run it with the Python in `.venv`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from podium.api.avoid_list import PREFER_AVOID_PODS, EvictionHints
from podium.api.kinds import KINDS, group_of
from podium.app.admission.webhook import WATCHES as ADMISSION_WATCHES
from podium.app.live.followed_cluster import WATCHES as EXPORTER_WATCHES
from podium.client.live_cluster import METRICS_GROUP
from podium.controllers import actions
from podium.controllers.actions import Action, DeleteObject, Evict, PatchObject
from podium.controllers.disruption.avoid_lists import AvoidListController
from podium.controllers.disruption.disruption_counts import DisruptionCounter
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.rescheduling.settings import ReschedulerSettings
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
_CONTROLLERS = ROOT / "src" / "podium" / "controllers"
# The components of a program: scheduler or rescheduler, and the counter of disruptions if the API server does not
# count.
_COUNTING = _CONTROLLERS / "disruption" / "disruption_counts.py"
SCHEDULING = (*sorted((_CONTROLLERS / "scheduling").rglob("*.py")), _COUNTING)
RESCHEDULING = (*sorted((_CONTROLLERS / "rescheduling").rglob("*.py")), _COUNTING)

SEE = ("get", "list", "watch")
# Actions that only preemption needs.
_PREEMPTING = (DeleteObject, Evict, PatchObject)
_HEADER = "# Made by tools/rbac.py from what the scheduler watches and asks for; run it after a change.\n"
_RESCHEDULER_HEADER = _HEADER.replace("the scheduler", "the rescheduler")


# Reads and writes


def watch_rights(kinds: Iterable[str]) -> set[Right]:
    """Return the rights to list and watch some kinds."""
    by_name = {kind.name: kind for kind in KINDS.values()}
    return {
        Right(group, by_name[name].plural, verb)
        for name in kinds
        for group in (by_name[name].group, *map(group_of, by_name[name].other_versions))
        for verb in SEE
    }


def reader_rights() -> set[Right]:
    """Return the rights of `podium snapshot`, `podium record`, `podium ledger`, and commands with `--context`."""
    kinds = {right for right in watch_rights(kind.name for kind in KINDS.values()) if right.verb != "get"}
    # Only Events show the disruption of deleted pods.
    return kinds | {Right("", "events", verb) for verb in ("list", "watch")}


def exporter_rights() -> set[Right]:
    """Return the rights of the exporter, which writes nothing."""
    return {right for right in watch_rights(EXPORTER_WATCHES) if right.verb != "get"}


def admission_rights() -> set[Right]:
    """Return the rights of the webhook in all namespaces; it writes only to its own configuration."""
    return {right for right in watch_rights(ADMISSION_WATCHES) if right.verb != "get"}


def preemption_rights() -> set[Right]:
    """Return the further rights for preemption, notes of futile ones, and counts of disruptions."""
    return requested_rights(filter(_is_for_preemption, scheduler_examples()))


def _is_for_preemption(action: Action) -> bool:
    """Return whether only preemption needs an action. Groups' conditions are also written without it."""
    return isinstance(action, _PREEMPTING) and not (isinstance(action, PatchObject) and action.kind == "PodGroup")


def avoid_list_rights() -> set[Right]:
    """Return the further rights for removing expired entries from avoid lists."""
    trimmed = PatchObject("Node", "node", UID, {"metadata": {"annotations": {PREFER_AVOID_PODS: None}}}, "")
    return (watch_rights(AvoidListController.watches) | requested_rights([trimmed])) - scheduler_rights()


def scheduler_rights() -> set[Right]:
    """Return the rights of a scheduler that does not preempt."""
    asked = requested_rights(action for action in scheduler_examples() if not _is_for_preemption(action))
    # A repeated Event updates the existing one.
    counted = {Right("", "events", "patch")}
    return watch_rights(Scheduler.watches | DisruptionCounter.watches) | asked | counted


def eviction_rights(*, is_podium_server: bool) -> set[Right]:
    """Return the rights to evict pods and to avoid their nodes; ``is_podium_server``: at Podium's own API server.

    At other API servers the evicting program writes the nodes itself.
    """
    hints = EvictionHints(avoid_node=True, first=True)
    eviction = Evict("default/owned", UID, "", "rescheduler", hints=hints)
    return requested_rights([eviction], is_podium_server=is_podium_server)


def rescheduler_rights() -> set[Right]:
    """Return the rights of a rescheduler that evicts and neither writes to nodes nor guides replacements."""
    counted = {Right("", "events", "patch")}
    # Metrics cannot be watched.
    measured = {Right(METRICS_GROUP, plural, "list") for plural in ("nodes", "pods")}
    watched = rescheduler_watches() | DisruptionCounter.watches
    return watch_rights(watched) | requested_rights(rescheduler_examples()) | counted | measured


def rescheduler_watches() -> frozenset[str]:
    """Return the kinds that a rescheduler watches; its ConfigMap is in one namespace."""
    settings = ReschedulerSettings(policies=())
    return frozenset(Rescheduler(settings).watches)


def node_marking_rights() -> set[Right]:
    """Return the further rights for excluding nodes by avoid lists or taints."""
    avoided = PatchObject("Node", "node", UID, {"metadata": {"annotations": {PREFER_AVOID_PODS: "{}"}}}, "")
    marked = PatchObject("Node", "node", UID, {"spec": {"taints": []}}, "")
    return requested_rights([avoided, marked])


def guidance_rights() -> set[Right]:
    """Return the further rights for nominating or binding replacements."""
    return requested_rights(guidance_examples())


def configuration_rights() -> set[Right]:
    """Return the rights to read the configuration from a ConfigMap of that name."""
    return {Right("", "configmaps", verb) for verb in SEE}


def emitted(files: Iterable[Path]) -> set[str]:
    """Return the names of the actions that some modules import."""
    names: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == actions.__name__:
                names |= {alias.name for alias in node.names}
    return names & {action.__name__ for action in get_args(actions.Action)}


EXAMPLES = frozenset(type(action).__name__ for action in scheduler_examples())
"""The actions of a scheduler whose rights are known."""

RESCHEDULER_EXAMPLES = frozenset(type(action).__name__ for action in (*rescheduler_examples(), *guidance_examples()))
"""The actions of a rescheduler whose rights are known."""


# As Kubernetes writes them


def rules(rights: Iterable[Right]) -> str:
    """Return the rules of a role, with the resources of a group that have the same verbs together."""
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
    """Return a ClusterRole of that name."""
    return (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
        f"metadata:\n  name: {name}\nrules:\n{rules(rights)}"
    )


def files() -> dict[Path, str]:
    """Return the role files and their contents."""
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
        **_reading_files("exporter", exporter_rights()),
        **_reading_files("admission", admission_rights()),
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


def _reading_files(name: str, rights: set[Right]) -> dict[Path, str]:
    """Return the roles of a program that watches alone."""
    program = "webhook" if name == "admission" else name
    header = _HEADER.replace("the scheduler watches and asks for", f"the {program} watches")
    chart = cluster_role(f"{{{{ .Release.Name }}}}-{name}", rights)
    templates = DEPLOY / "helm" / "podium" / "templates"
    return {
        DEPLOY / name / "cluster-role.yaml": header + cluster_role(f"podium-{name}", rights),
        templates
        / f"{name}-cluster-role.yaml": f"{header}{{{{- if .Values.{name}.enabled }}}}\n{chart}{{{{- end }}}}\n",
    }


def main(arguments: list[str]) -> int:
    """Write the files, or check whether they are current."""
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
