"""What a plugin answers: whether a pod may go on, and if not, why and whether preemption could help.

Source: staging/src/k8s.io/kube-scheduler/framework (Status, Code).
"""

from __future__ import annotations

from enum import Enum

import msgspec


class Code(Enum):
    """The kinds of answers, named as kube-scheduler prints them."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"


# At hand, as asking an enumeration for a member takes longer than calling a function does.
_SUCCESS, _UNSCHEDULABLE = Code.SUCCESS, Code.UNSCHEDULABLE


class Status(msgspec.Struct, frozen=True):
    """An answer with its reasons. ``plugin`` is filled in by the runner.

    ``SKIP`` from PreFilter or PreScore means that the plugin has nothing to say about this pod at Filter or Score;
    ``WAIT`` from Permit holds the pod; ``PENDING`` waits for something that the plugin itself will announce.
    """

    code: Code = _SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the pod may go on."""
        return self.code is _SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether the plugin has nothing to say."""
        return self.code is Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """Whether the pod was turned down, as opposed to something having gone wrong."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    def by(self, plugin: str) -> Status:
        """The same answer, given by ``plugin``."""
        return self if self.plugin == plugin else Status(self.code, self.reasons, plugin)

    @property
    def message(self) -> str:
        """The reasons in one line."""
        return ", ".join(self.reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """The pod does not fit now; preempting others might help."""
    return Status(_UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """The pod does not fit, and no preemption can change that."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)
