"""When nodes were cordoned, as far as Events tell: whoever drains a node does that first.

Source: pkg/kubelet/kubelet_node_status.go (recordNodeSchedulableEvent).
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.app.accounting.traces.told_events import ToldEvent

_CORDONED = {"NodeNotSchedulable": True, "NodeSchedulable": False}
# A kubelet notices it when it next reports how its node is, and whoever drains does not wait for that.
_NOTICED_WITHIN_NS = 10 * 10**9


class Cordons:
    """Which nodes were cordoned at a time, by what their kubelets have said last."""

    def __init__(self, events: Iterable[ToldEvent]) -> None:
        """``events`` come by time."""
        self._said: dict[str, list[tuple[int, bool]]] = {}
        for event in events:
            if event.kind == "Node" and event.host and event.reason in _CORDONED:
                is_cordoned = _CORDONED[event.reason]
                since_ns = event.time_ns - (_NOTICED_WITHIN_NS if is_cordoned else 0)
                self._said.setdefault(event.host, []).append((since_ns, is_cordoned))

    def was_cordoned(self, node: str, time_ns: int) -> bool:
        """Whether a node was cordoned at a time; False where nobody says so."""
        said = [is_cordoned for since_ns, is_cordoned in self._said.get(node, ()) if since_ns <= time_ns]
        return bool(said) and said[-1]
