"""The pods of a DaemonSet: which nodes they are for, and which nodes are fit for them.

Source: pkg/controller/daemon (NodeShouldRunDaemonPod), pkg/controller/daemon/util/daemonset_util.go.
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod, PodSpec, Toleration
from podium.api.requirement import NAME_FIELD
from podium.api.selectors import compile_node_selector, node_selector_matches, selector_from_labels
from podium.cluster.taints import KEEPS_OFF, tolerated

# What every daemon pod tolerates, by the key's last part.
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = ("network-unavailable", "NoSchedule")


class NodeFitness:
    """Which nodes are fit for the pods of a template: by name, selector, required affinity and taints."""

    def __init__(self, spec: PodSpec) -> None:
        self._node_name = spec.node_name
        self._selector = selector_from_labels(spec.node_selector)
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        required = affinity.required if affinity is not None else None
        self._terms = None if required is None else compile_node_selector(required)
        added = (Toleration(key=key, operator="Exists", effect=effect) for key, effect in _added(spec.host_network))  # type: ignore[arg-type]
        self._tolerations = (*spec.tolerations, *added)

    def of(self, node: Node) -> tuple[bool, bool]:
        """Whether a pod is to be made for the node, and whether one that is there may stay."""
        meta = node.metadata
        if self._node_name not in ("", meta.name) or not self._selector.matches(meta.labels):
            return False, False
        if self._terms is not None and not node_selector_matches(self._terms, meta.labels, meta.name):
            return False, False
        effects = {taint.effect for taint in node.spec.taints if not tolerated(self._tolerations, taint)}
        return not effects.intersection(KEEPS_OFF), "NoExecute" not in effects


def target_node(pod: Pod) -> str:
    """The node that a pod is on, or for which it was made; "" where it does not say."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    terms = required.node_selector_terms if required is not None else ()
    named = (
        field.values[0]
        for term in terms
        for field in term.match_fields
        if field.key == NAME_FIELD and field.operator == "In" and len(field.values) == 1
    )
    return pod.spec.node_name or next(named, "")


def daemon_spec(spec: Raw, node_name: str) -> Raw:
    """The template's pod specification for one node: only it will do, whatever nodes the template requires."""
    affinity = spec.get("affinity", {})
    only = {"nodeSelectorTerms": [{"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node_name]}]}]}
    node_affinity = {
        **affinity.get("nodeAffinity", {}),
        "requiredDuringSchedulingIgnoredDuringExecution": only,
    }
    tolerations = list(spec.get("tolerations", ()))
    for key, effect in _added(spec.get("hostNetwork", False)):
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}, "tolerations": tolerations}


def _added(is_on_host_network: bool) -> list[tuple[str, str]]:
    """Keys and effects of the taints that a daemon pod tolerates without saying so."""
    taints = [*_TOLERATED, _TOLERATED_ON_HOST_NETWORK] if is_on_host_network else _TOLERATED
    return [(f"node.kubernetes.io/{name}", effect) for name, effect in taints]
