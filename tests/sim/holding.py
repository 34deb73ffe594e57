"""A Permit plugin for simulations that holds pods before their binding."""

from podium.cluster.pods import PodRecord
from podium.framework.handle import CycleState
from podium.framework.plugin import PermitResult, PluginContext
from podium.framework.verdicts import SUCCESS, Code, Status

HELD = "example.com/held"
SECOND = 10**9


class Holding:
    """Holds a pod for the seconds that its annotation says; then it is turned down, once.

    A pod that is not held lets all those go whose seconds are an even number.
    """

    def __init__(self, context: PluginContext) -> None:
        self._waiting = context.waiting_pods
        self._held: set[str] = set()

    def permit(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult | Status:
        seconds = pod.annotations.get(HELD)
        if seconds is not None and pod.uid not in self._held:
            self._held.add(pod.uid)
            return PermitResult(Status(Code.WAIT), int(seconds) * SECOND)
        for waiting in self._waiting.all():
            if int(waiting.pod.annotations[HELD]) % 2 == 0:
                waiting.allow("Holding")
        return SUCCESS
