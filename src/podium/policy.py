"""All that a policy of a rescheduler may use: what it is shown, and what it proposes.

A policy is a class with a `name`, `objective(picture)` and `proposals(picture)` (`Policy`). It is made with a
`PluginContext` or with nothing, and named in a ReschedulerConfiguration by its place, `module:Class`, as
`docs/rescheduling-policies.md` shows. What is not named here may change from one version to the next.

- `Picture` is what it looks at: the cluster as it would be with the moves planned so far (`picture.cluster`, the
  columns that `podium.plugin` tells of), how pods and nodes fare (`signals`), what time it is (`now`, nanoseconds),
  which rows take in pods (`targets`, `[rows]` of bool), who waits, and who may be touched.
- `objective` says how bad things are, as a number that depends on the picture alone: 0 is as good as can be, 1 as bad
  as one pod in quite the wrong place.
- `proposals` yields `Proposal`s, the worst first: `Relocation`s that make sense together, and a reason in words.
  Whether a pod may go, has somewhere to go, and whether the sum of all objectives falls, is decided by others.
"""

from podium.api.errors import InputError, PodiumError
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU, EPHEMERAL_STORAGE, MEMORY
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.view import View
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s, Policy, Proposal, Relocation
from podium.framework.rescheduling.signals import NodeSignals, PodSignals, Signals
from podium.framework.settings.arguments import Arguments, read_arguments

__all__ = [
    "CPU",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "NO_ROW",
    "Arguments",
    "Bools",
    "Cluster",
    "Float64s",
    "InputError",
    "Int64s",
    "NodeSignals",
    "Picture",
    "PluginContext",
    "PodRecord",
    "PodSignals",
    "PodiumError",
    "Policy",
    "Proposal",
    "Relocation",
    "Signals",
    "View",
    "read_arguments",
]
