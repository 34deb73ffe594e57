"""Invariants of requests to the API server, and of its watches.

The letters are those of the list of invariants that the project holds to.
"""

from podium.api.meta import Raw
from podium.controllers.actions import Action
from podium.controllers.observations import ActionFinished
from podium.sim.simulation import Simulation
from podium.store.store import Store


class Replay:
    """The pods by the events of a watch that was opened at the start."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.watch = store.watch("Pod")
        # It begins with what there is.
        self.seen: dict[str, Raw] = {}

    def check(self) -> None:
        """A4, A5: check that the events of the watch add up to the stored pods."""
        for notice in self.watch.pull():
            uid = notice.raw["metadata"]["uid"]
            assert (notice.type == "ADDED") == (uid not in self.seen)
            if notice.type == "DELETED":
                del self.seen[uid]
            else:
                self.seen[uid] = notice.raw
        assert self.seen == {one.uid: one.raw for one in self.store.objects("Pod")}


def check_requests(simulation: Simulation) -> None:
    """Watch over every request of a simulation from now on."""
    server, store = simulation.server, simulation.store
    carry_out = server.carry_out

    def checked(action: Action, now: int, by: str = "") -> ActionFinished:
        version = store.version
        finished = carry_out(action, now, by)
        # A14, F6, F7: what is refused has changed nothing.
        assert finished.problem is None or store.version == version, finished
        return finished

    server.carry_out = checked  # type: ignore[method-assign]
