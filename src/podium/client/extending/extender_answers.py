"""What extenders answer, read as kube-scheduler reads it: names of fields in any case, null as nothing.

Source: staging/src/k8s.io/kube-scheduler/extender/v1/types.go; pkg/scheduler/extender.go; encoding/json of Go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.framework.extenders import ExtenderError, FilterAnswer, VictimIds

Fields = Mapping[str, Any]
_MOST_INTEGER = 1 << 63


def read_filter(answer: object, *, takes_names: bool) -> FilterAnswer:
    """An ExtenderFilterResult. Raises ExtenderError for the extender's own error, and for what is no such result."""
    fields = _fields(answer, "its answer")
    _raise_told(fields)
    names, nodes = fields.get("nodenames"), fields.get("nodes")
    left: list[str] = []
    if takes_names and names is not None:
        left = [_text(name, "NodeNames") for name in _list(names, "NodeNames")]
    elif nodes is not None:
        items = _list(_fields(nodes, "Nodes").get("items"), "Nodes.items")
        left = [_name(item) for item in items]
    failed, unresolvable = fields.get("failednodes"), fields.get("failedandunresolvablenodes")
    return FilterAnswer(left, _texts(failed, "FailedNodes"), _texts(unresolvable, "FailedAndUnresolvableNodes"))


def read_priorities(answer: object) -> dict[str, int]:
    """A HostPriorityList; scores of one host add up."""
    scores: dict[str, int] = {}
    for item in _list(answer, "its answer"):
        fields = _fields(item, "a HostPriority")
        host = _text(fields.get("host"), "Host")
        scores[host] = scores.get(host, 0) + _integer(fields.get("score"), "Score")
    return scores


def read_victims(answer: object) -> dict[str, VictimIds]:
    """An ExtenderPreemptionResult."""
    nodes = _map(_fields(answer, "its answer").get("nodenametometavictims"), "NodeNameToMetaVictims")
    found = {}
    for name, victims in nodes.items():
        fields = _fields(victims, "MetaVictims")
        pods = _list(fields.get("pods"), "Pods")
        uids = tuple(_text(_fields(pod, "a MetaPod").get("uid"), "UID") for pod in pods)
        found[name] = VictimIds(uids, _integer(fields.get("numpdbviolations"), "NumPDBViolations"))
    return found


def read_binding(answer: object) -> None:
    """An ExtenderBindingResult. Raises ExtenderError for the error that it tells."""
    _raise_told(_fields(answer, "its answer"))


def _raise_told(fields: Fields) -> None:
    problem = _text(fields.get("error"), "Error")
    if problem:
        raise ExtenderError(problem)


def _name(node: object) -> str:
    return _text(_fields(_fields(node, "a Node").get("metadata"), "metadata").get("name"), "metadata.name")


def _fields(value: object, what: str) -> Fields:
    """The fields of an object by their names in lower case."""
    return {name.lower(): field for name, field in _map(value, what).items()}


def _map(value: object, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ExtenderError(f"{what} is no object")
    return value


def _texts(value: object, what: str) -> dict[str, str]:
    return {name: _text(text, what) for name, text in _map(value, what).items()}


def _list(value: object, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ExtenderError(f"{what} is no list")
    return value


def _text(value: object, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ExtenderError(f"{what} is no string")
    return value


def _integer(value: object, what: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not -_MOST_INTEGER <= value < _MOST_INTEGER:
        raise ExtenderError(f"{what} is no integer of 64 bits")
    return value
