"""Random settings of preemption beyond kube-scheduler's, and fleets in which they matter."""

from collections.abc import Mapping
from random import Random
from typing import Any, get_args

from podium.decide.preempting.criteria import CriterionName
from tests.sim.fleet_stories import FleetStory
from tests.store.objects import Raw

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS = ("web", "db", "cache", "other", "batch")


def drawn_preemption(seed: int) -> Mapping[str, Any]:
    """Arguments of DefaultPreemption, each named more often than not."""
    random = Random(f"preemption:{seed}")
    args: dict[str, Any] = {
        name: True
        for name, share in (
            ("acrossNodes", 0.7),
            ("keepAffinityPartners", 0.6),
            ("includeDependents", 0.6),
            ("bindFirst", 0.3),
        )
        if random.random() < share
    }
    if random.random() < 0.7:
        # Past disruptions are known to the scheduler alone, not from the objects that judges see.
        names = [name for name in get_args(CriterionName) if name != "DisruptedLately"]
        args["victimCost"] = random.sample(names, random.randint(1, 4))
    if random.random() < 0.5:
        args["budgets"] = "Require"
    if random.random() < 0.4:
        args["minimumRunningTime"] = random.choice(("5s", "60s"))
    if random.random() < 0.2:
        args["maxSearchSteps"] = random.choice((1, 20, 200))
    if random.random() < 0.4:
        args["wholeGroups"] = True
    return args or {"acrossNodes": True}


class NeighbourStory(FleetStory):
    """A fleet whose pods ask for, or keep off, one another on nodes and in whole zones more often than otherwise."""

    def _template(self, app: str) -> Raw:
        template = super()._template(app)
        self._ask(template)
        return template

    def _pod(self) -> Raw:
        raw = super()._pod()
        self._ask(raw)
        return raw

    def _ask(self, raw: Raw) -> None:
        if self.chance(0.5):
            app, key = self.random.choice(APPS), self.random.choice((ZONE, ZONE, HOST))
            term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
            kind = self.random.choice(("podAffinity", "podAntiAffinity", "podAntiAffinity"))
            raw["spec"]["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if self.chance(0.2):
            own = {"labelSelector": {"matchLabels": dict(raw["metadata"]["labels"])}}
            spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **own}
            raw["spec"]["topologySpreadConstraints"] = [spread]
