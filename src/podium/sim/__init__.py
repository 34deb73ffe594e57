"""A cluster in virtual time: scenarios, controllers, kubelets, traces and history around the real scheduler."""

from podium.sim.result import Result
from podium.sim.run import simulate

__all__ = ["Result", "simulate"]
