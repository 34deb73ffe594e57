"""A full node and a preemptor, and a scheduler that has seen the preemption up to some point."""

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.controllers.actions import Action
from podium.framework.settings.configuration import Configuration
from tests.builders import node, pod
from tests.controllers.driving import Driver, nominated, terminating

N1 = node("n1", cpu=10)
N2 = node("n2", cpu=10)
A = pod("a", cpu=5, priority=100, on="n1")
B = pod("b", cpu=5, priority=50, on="n1")
HIGH = pod("high", cpu=10, priority=1000)
LOW = pod("low", cpu=2, priority=10)


def preempting(
    *others: Kubernetes, preemptor: Pod = HIGH, driver: Driver | None = None, settings: Configuration | None = None
) -> tuple[Driver, list[Action]]:
    """n1 is full of a and b, and the preemptor has been attempted; nothing of what it asked for is answered yet."""
    driver = driver or Driver(N1, A, B, *others, settings=settings)
    driver.see(preemptor)
    actions = driver.tick()
    driver.see(nominated(preemptor, driver.nominated(preemptor)))
    return driver, actions


def preempted(*others: Kubernetes, preemptor: Pod = HIGH, settings: Configuration | None = None) -> Driver:
    """Return the same once a and b terminate and all deletions are answered."""
    driver, actions = preempting(*others, preemptor=preemptor, settings=settings)
    driver.carry_out(actions)
    driver.see(terminating(A), terminating(B))
    return driver
