"""The API for rescheduling policies.

A policy is a class with a `name`, `objective(picture)` and `proposals(picture)` (`Policy`). It is instantiated with a
`PluginContext` or without arguments, and named in a ReschedulerConfiguration as `module:Class`; see
`docs/rescheduling-policies.md`. Names that are not listed here may change between versions.

- `Picture` is its input: the cluster with the moves planned so far (`picture.cluster`, the columns described in
  `podium.plugin`), measurements of pods and nodes (`signals`), the time (`now`, nanoseconds), the rows that may receive
  pods (`targets`, `[rows]` of bool), pending pods, and movable pods.
- `objective` returns how bad the placement is, depending on the picture alone: 0 is ideal, 1 is the cost of one badly
  placed pod.
- `proposals` yields `Proposal`s, the most valuable first: `Relocation`s that belong together, and a reason. The planner
  decides whether a pod may be evicted, fits elsewhere, and whether the sum of all objectives falls.
- `bound(departures, price)`, optionally, returns an `ObjectiveBound`, so that certificates of plans cover the policy.
- `monthly_cost(picture)`, optionally, returns the `MonthlyCost` of the nodes in use, which a plan then states.
"""

from podium.api.errors import InputError, PodiumError
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU, EPHEMERAL_STORAGE, MEMORY
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.view import View
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.bounds import Departures, NodeState, ObjectiveBound, Reliefs
from podium.framework.rescheduling.policy import (
    Float64s,
    MonthlyCost,
    NodeSignals,
    Picture,
    PodSignals,
    Policy,
    Proposal,
    Relocation,
    Signals,
)
from podium.framework.settings.arguments import Arguments, read_arguments

__all__ = ["CPU", "EPHEMERAL_STORAGE", "MEMORY", "NO_ROW"]
__all__ += ["Arguments", "Bools", "Cluster", "Departures", "Float64s", "InputError", "Int64s", "MonthlyCost"]
__all__ += ["NodeSignals", "NodeState", "ObjectiveBound", "Picture", "PluginContext", "PodRecord", "PodSignals"]
__all__ += ["PodiumError", "Policy", "Proposal", "Reliefs", "Relocation", "Signals", "View", "read_arguments"]
