"""A scheduler and its clock, for tests that send events and check the requested actions.

Nothing happens by itself: the test delivers all observations and answers of the API.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.versions.release import read_gates, read_version
from podium.controllers.actions import Action, Bind, BindClaim, DeleteObject, Record, ReportStatus
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation, Problem, Tick
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.settings.configuration import Configuration, NominationClearing, default_configuration
from tests.builders import PREEMPTED, at, configuration
from tests.controllers.queue_checks import check_queue

SECOND = 1_000_000_000

REFUSED = Problem(429, "TooManyRequests", "the API server stumbled")
NO_ANSWER = Problem(0, "Timeout", "no answer came")
NOT_FOUND = Problem(404, "NotFound", "there is no such pod")
CONFLICT = Problem(409, "Conflict", "it is not as you think")

OneAction = TypeVar("OneAction", bound=Action)


class Driver:
    """A scheduler, with what the test has shown it so far at time ``now`` (nanoseconds)."""

    def __init__(
        self, *objects: Kubernetes, settings: Configuration | None = None, version: str = "1.36", gates: str = ""
    ) -> None:
        release = read_version(version).with_gates(dict(read_gates(gates)))
        self.scheduler = Scheduler(settings, release=release)
        self.now = 0
        self.see(*objects)

    def deliver(self, observation: Observation) -> list[Action]:
        actions = self.scheduler.handle(observation, self.now)
        check_queue(self.scheduler.queue)
        return actions

    def see(self, *objects: Kubernetes) -> list[Action]:
        """Show objects as the API has them now."""
        return [action for one in objects for action in self.deliver(Changed(one))]

    def miss(self, *objects: Kubernetes) -> list[Action]:
        """Objects are gone from the API."""
        return [action for one in objects for action in self.deliver(Deleted(one))]

    def tick(self) -> list[Action]:
        return self.deliver(Tick())

    def attempts(self) -> list[Action]:
        """Return what is asked for by the attempts that are due now: ticks until nothing more is due at once."""
        actions: list[Action] = []
        while self.deadline_seconds == 0:
            actions += self.tick()
        return actions

    def wait(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    def answer(self, action: Action, problem: Problem | None = None) -> list[Action]:
        return self.deliver(ActionFinished(action, problem))

    def carry_out(self, actions: Sequence[Action]) -> list[Action]:
        """Answer that actions were carried out, and so on with those that follow. Returns them all, in their order."""
        done: list[Action] = []
        coming = list(actions)
        while coming:
            action = coming.pop(0)
            done.append(action)
            coming += self.answer(action)
        return done

    def place(self, *pods: Pod) -> None:
        """Let pods be attempted one after the other, and have each bound, answered and seen."""
        for pod in pods:
            self.see(pod)
            bind = the(Bind, self.tick())
            assert bind.pod == pod.key
            self.answer(bind)
            self.see(on(pod, bind.node_name))

    def place_group(self, pods: Sequence[Pod]) -> list[Pod]:
        """Let pods be attempted together, and have each bound, answered and seen; as they are then."""
        self.see(*pods)
        binds = {bind.uid: bind for bind in all_of(Bind, self.tick())}
        placed = [on(pod, binds[pod.metadata.uid].node_name) for pod in pods]
        for bind in binds.values():
            self.answer(bind)
        self.see(*placed)
        return placed

    def where(self, pod: Pod) -> QueuePlace | None:
        """Return the pod's place in the queue, None where it is not in it."""
        return self.scheduler.queue.where(pod.metadata.uid)

    def nominated(self, pod: Pod) -> str:
        """Return the node that the scheduler has the pod nominated to, "" for none."""
        return self.scheduler.cluster.nominations.node_of(pod.metadata.uid)

    def holds(self, pod: Pod) -> str:
        """Return the node on which the pod takes room as far as the scheduler knows, "" for none."""
        record = self.scheduler.cluster.placed.get(pod.metadata.uid)
        return "" if record is None else record.node_name

    def plugin(self, name: str) -> Any:
        """Return a plugin of the first profile."""
        profile = next(iter(self.scheduler.runners.values())).profile
        return next(one for one in profile.plugins() if one.name == name)

    @property
    def deadline_seconds(self) -> float | None:
        """In how many seconds the scheduler next wants a tick; None for never."""
        deadline = self.scheduler.deadline().time_ns
        return None if deadline is None else max(deadline - self.now, 0) / SECOND


def all_of(kind: type[OneAction], actions: Sequence[Action]) -> list[OneAction]:
    """Return the actions of one kind."""
    return [one for one in actions if isinstance(one, kind)]


def the(kind: type[OneAction], actions: Sequence[Action]) -> OneAction:
    """Return the only action of its kind."""
    found = all_of(kind, actions)
    assert len(found) == 1, actions
    return found[0]


def events(actions: Sequence[Action]) -> list[tuple[str, str]]:
    """Return the events that are recorded: reason and pod."""
    return [(one.reason, one.pod) for one in all_of(Record, actions)]


def deletions(actions: Sequence[Action]) -> list[str]:
    """Return what is marked and deleted, in order: `mark default/a`, `delete default/a`."""
    verbs: dict[type[Action], str] = {ReportStatus: "mark", DeleteObject: "delete"}
    return [f"{verbs[type(one)]} {one.key}" for one in actions if isinstance(one, ReportStatus | DeleteObject)]


def uids(actions: Sequence[Action]) -> list[str]:
    """Return the uid of the pod that each action is about."""
    return [one.pod_uid if isinstance(one, BindClaim) else getattr(one, "uid", "") for one in actions]


def on(pod: Pod, node: str) -> Pod:
    """Return the pod as the API shows it once it is bound."""
    status = replace(pod.status, phase="Running", nominated_node_name="")
    return replace(pod, spec=replace(pod.spec, node_name=node), status=status)


def nominated(pod: Pod, node: str) -> Pod:
    """Return the pod as the API shows it with a nomination ("" for none)."""
    return replace(pod, status=replace(pod.status, nominated_node_name=node))


def terminating(pod: Pod, *, preempted: bool = True) -> Pod:
    """Return the pod as the API shows it once it is deleted, by a scheduler's preemption or else."""
    conditions = (*pod.status.conditions, PREEMPTED) if preempted else pod.status.conditions
    metadata = replace(pod.metadata, deletion_timestamp=at(10**6))
    return replace(pod, metadata=metadata, status=replace(pod.status, conditions=conditions))


def clearing(which: NominationClearing) -> Configuration:
    """Return the default configuration but for which nominations end for a more important pod."""
    return replace(default_configuration(), nomination_clearing=which)


def with_plugins(*names: str, disabled: Mapping[str, Sequence[str]] | None = None) -> Configuration:
    """Return the default profile with plugins of `tests.controllers.plugins`, without those ``disabled`` by point."""
    without = {point: {"disabled": found} for point, found in (disabled or {}).items()}
    enabled = [f"tests.controllers.plugins:{name}" for name in names]
    return configuration(plugins={"multiPoint": {"enabled": enabled}, **without})
