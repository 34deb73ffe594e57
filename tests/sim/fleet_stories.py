"""Random clusters with every component that decides about disruptions, from a seed.

Each story has some of the features below, so that rare combinations come up. Names and amounts come from small pools.
"""

from collections.abc import Callable
from enum import StrEnum
from random import Random

from tests.devices import claim, claim_template, device, device_class, devices_of, using
from tests.sim.drawn_story import DrawnStory
from tests.sim.gang_stories import gangs, later
from tests.sim.objects import scenario
from tests.store.objects import Raw, node, pod, priority_class

STEPS_LAST_S = 240
LEAVE_BAD = "tests.controllers.rescheduling.policies:LeaveBad"
POLICIES = (
    *("Consolidate", "LeavePoorService", "MoveToUnderusedNodes", "RepairViolations", "SatisfyPreferences"),
    *("SeparateInterfering", "SpreadDuplicates"),
)
CLASSES = {"low": 10, "middle": 100, "high": 1000}


class Feature(StrEnum):
    """A feature of a story besides nodes, pods and workloads."""

    BUDGETS = "budgets"
    EVICTIONS = "single evictions and bursts of them"
    DRAINS = "drains"
    FAILURES = "nodes that fail and come back"
    REPLACED_NODES = "nodes that are removed and come again under their names"
    SCALING = "workloads that are scaled and rolled out"
    DELETIONS = "pods that are deleted outright"
    PRESSURE = "memory that runs short"
    SECOND_SCHEDULER = "a second scheduler"
    AUTOSCALER = "a cluster autoscaler"
    ENDLESS = "pods that never end by themselves"
    CRASHING = "containers that crash"
    POLICIES = "preemption policies"
    QUOTA = "a quota by priority"
    DEFAULTS = "default budgets, rates and caps"
    DEVICES = "claims for devices"
    RESCHEDULER = "a rescheduler"
    GANGS = "gangs"


CALM = frozenset(
    (
        *(Feature.BUDGETS, Feature.EVICTIONS, Feature.DRAINS, Feature.AUTOSCALER, Feature.ENDLESS, Feature.DEFAULTS),
        Feature.RESCHEDULER,
    )
)
"""Where there is nothing else, pods are disrupted by evictions alone: all are equally important, and nothing fails."""


class FleetStory(DrawnStory):
    """Draws one story. ``objects`` are there from the start; ``steps`` come in the order of their time.

    At a ``pace`` of 1 they come within `STEPS_LAST_S`; at another it takes as many times as long, and the fleet sleeps
    between them.
    """

    def __init__(self, seed: int, features: frozenset[Feature], pace: int = 1) -> None:
        self.seed = seed
        self.pace = pace
        self.waits_for_victims = False
        self.random = Random(f"fleet:{seed}")
        self.features = features
        self.nodes: dict[str, Raw] = {}
        self.down: set[str] = set()
        self.generation = 0
        self.pods: list[str] = []
        self.workloads: list[tuple[str, str]] = []
        self.objects = self._beginning()
        self.steps = self._steps()
        if Feature.GANGS in features:
            self.steps = sorted([*self.steps, *later(seed)], key=lambda step: int(step["at"].removesuffix("s")))
        self.rescheduler = self._rescheduler() if Feature.RESCHEDULER in features else {}

    @property
    def files(self) -> list[Raw]:
        """Everything, the scenario included."""
        spec: Raw = {}
        if Feature.SECOND_SCHEDULER in self.features:
            spec["schedulers"] = [{"name": "default-scheduler"}, {"name": "second", "bindDelay": "100ms"}]
        if Feature.AUTOSCALER in self.features:
            template = node("template", cpu=6)
            group = {"name": "pool", "min": 0, "max": 2, "startUp": "30s", "template": template}
            spec["autoscaler"] = {"nodeGroups": [group], "scaleDown": {"unneededTime": "60s", "delayAfterAdd": "60s"}}
        if Feature.RESCHEDULER in self.features:
            spec["rescheduler"] = self.rescheduler
        if Feature.PRESSURE in self.features:
            spec["kubelets"] = {"memoryThreshold": "256Mi", "pressureTransition": "30s"}
        if self.waits_for_victims:
            spec["kubelets"] = {**spec.get("kubelets", {}), "waitForVictims": True}
        return [*self.objects, scenario(*self.steps, **spec)]

    # The beginning

    def _beginning(self) -> list[Raw]:
        # An autoscaler has something to do where there are too few nodes.
        fewest = 1 if Feature.AUTOSCALER in self.features else 3
        for _ in range(fewest + self.random.randint(0, 2)):
            self._new_node()
        objects: list[Raw] = [priority_class(name, value) for name, value in CLASSES.items()]
        makers: list[Callable[[], Raw]] = [
            lambda: self._replicated("Deployment", "web", self.random.randint(2, 4)),
            lambda: self._replicated("StatefulSet", "db", self.random.randint(2, 3)),
            lambda: self._replicated("ReplicaSet", "cache", self.random.randint(1, 3)),
            self._daemon_set,
            self._job,
        ]
        objects += [make() for make in self.random.sample(makers, self.random.randint(2, len(makers)))]
        if Feature.BUDGETS in self.features:
            objects += [self._budget(app) for app in ("web", "db", "cache") if self.chance(0.7)]
        if Feature.DEFAULTS in self.features:
            objects.append(self._policy())
        if Feature.QUOTA in self.features:
            objects.append(self._quota())
        if Feature.DEVICES in self.features:
            objects += [device_class(), claim_template("gpu"), claim("shared")]
            objects += [self._devices(name) for name in self.nodes if self.chance(0.7)]
        found = [*self.nodes.values(), *objects, *(self._pod() for _ in range(self.random.randint(1, 4)))]
        return [*found, *gangs(self.seed)] if Feature.GANGS in self.features else found

    def _new_node(self) -> Raw:
        name = f"n{len(self.nodes) + 1}"
        zone = self.random.choice(("za", "zb"))
        self.nodes[name] = node(name, cpu=self.random.randint(4, 8))
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
        self.nodes[name]["metadata"]["labels"] = labels
        self.nodes[name]["status"]["allocatable"]["memory"] = "4Gi"
        return self.nodes[name]

    def _spec(self, cpu: int) -> Raw:
        """Return a pod's spec, of any class and policy."""
        spec: Raw = pod("", cpu=cpu)["spec"]
        if self.chance(0.7) and not self.features <= CALM:
            spec["priorityClassName"] = self.random.choice(list(CLASSES))
        if Feature.SECOND_SCHEDULER in self.features and self.chance(0.4):
            spec["schedulerName"] = "second"
        spec["terminationGracePeriodSeconds"] = self.random.choice((0, 2, 10, 30))
        return spec

    def _devices(self, name: str) -> Raw:
        """Return the GPUs of a node, as they are published last."""
        self.generation += 1
        gpus = [device(f"g{number}") for number in range(self.random.randint(1, 2))]
        return devices_of(name, *gpus, generation=self.generation)

    def _claiming(self, raw: Raw, *, shared: bool) -> Raw:
        """Return the pod, or the template, that may use devices; schedulers do not see what others are about to
        give.
        """
        is_seconds = raw["spec"].get("schedulerName") == "second"
        if Feature.DEVICES not in self.features or is_seconds or not self.chance(0.4):
            return raw
        return using(raw, "shared") if shared and self.chance(0.4) else using(raw, template="gpu")

    def _annotations(self) -> Raw:
        found: Raw = {}
        if self.chance(0.3):
            found["podium.dev/ready-after"] = f"{self.random.randint(1, 10)}s"
        if self.chance(0.4):
            found["podium.dev/termination"] = f"{self.random.randint(0, 20)}s"
        elif Feature.ENDLESS in self.features and self.chance(0.2):
            found["podium.dev/termination"] = "never"
        if Feature.PRESSURE in self.features and self.chance(0.5):
            found["podium.dev/memory-usage"] = self.random.choice(("256Mi", "1Gi"))
        if Feature.CRASHING in self.features and self.chance(0.3):
            found["podium.dev/crash-after"] = f"{self.random.randint(5, 40)}s"
        if Feature.POLICIES in self.features and self.chance(0.3):
            found["podium.dev/preemption-policy"] = self.random.choice(
                ("Never", "NonPreemptible", "NonPreemptiblePreemptNever")
            )
        return found

    def _template(self, app: str) -> Raw:
        spec = self._spec(self.random.randint(0, 3))
        if self.chance(0.2):
            spec["affinity"] = {"podAntiAffinity": _apart(app)}
        template = {"metadata": {"labels": {"app": app}, "annotations": self._annotations()}, "spec": spec}
        return self._claiming(template, shared=False)

    def _replicated(self, kind: str, app: str, replicas: int) -> Raw:
        self.workloads.append((kind, app))
        spec: Raw = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": self._template(app),
        }
        if kind == "StatefulSet" and self.chance(0.5):
            spec["podManagementPolicy"] = "Parallel"
        if kind == "Deployment" and self.chance(0.3):
            spec["strategy"] = {"type": "Recreate"}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": _named(app), "spec": spec}

    def _daemon_set(self) -> Raw:
        template = {"metadata": {"labels": {"app": "agent"}}, "spec": pod("", cpu="100m")["spec"]}
        spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": _named("agent"), "spec": spec}

    def _job(self) -> Raw:
        template = self._template("batch")
        template["spec"]["restartPolicy"] = "Never"
        template["metadata"]["annotations"]["podium.dev/duration"] = f"{self.random.randint(5, 60)}s"
        template["metadata"]["annotations"].pop("podium.dev/crash-after", None)
        spec = {"completions": self.random.randint(1, 5), "parallelism": 2, "template": template}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _named("batch"), "spec": spec}

    def _pod(self) -> Raw:
        name = f"p{len(self.pods) + 1:02}"
        self.pods.append(name)
        annotations = self._annotations()
        if self.chance(0.5) and not self.features <= CALM:
            annotations["podium.dev/duration"] = f"{self.random.randint(1, 90)}s"
        labels = {"app": self.random.choice(("web", "db", "other"))}
        raw = pod(name, labels=labels, annotations=annotations, spec=self._spec(self.random.randint(0, 4)))
        raw["spec"]["containers"] = pod("", cpu=self.random.randint(0, 4))["spec"]["containers"]
        return self._claiming(raw, shared=True)

    def _budget(self, app: str) -> Raw:
        limits: list[Raw] = [
            {"minAvailable": 1},
            {"minAvailable": "50%"},
            {"maxUnavailable": 1},
            {"maxUnavailable": "40%"},
            {"maxUnavailable": 0},
        ]
        metadata = _named(app)
        if Feature.DEFAULTS in self.features and self.chance(0.4):
            metadata["annotations"] = {"podium.dev/max-disruptions": self.random.choice(("1/30s", "2/1m"))}
        spec = {"selector": {"matchLabels": {"app": app}}, **self.random.choice(limits)}
        if self.chance(0.3):
            spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}

    def _policy(self) -> Raw:
        spec: Raw = {"defaultBudgets": [{"minPriority": 500, "maxUnavailable": 1}, {"maxUnavailable": "50%"}]}
        if self.chance(0.5):
            spec["caps"] = [
                {"component": "drain", "max": "2/1m"},
                {"component": "scheduler", "max": "3/1m"},
                {"max": "4/1m", "per": "Namespace"},
            ]
        if self.chance(0.5):
            spec["severalBudgets"] = "RequireAll"
        return {"apiVersion": "podium.dev/v1alpha1", "kind": "DisruptionPolicy", "metadata": {"name": "default"}} | {
            "spec": spec
        }

    @staticmethod
    def _quota() -> Raw:
        scope = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
        spec = {"hard": {"pods": "2"}, "scopeSelector": scope}
        return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": _named("few"), "spec": spec}

    def _rescheduler(self) -> Raw:
        """Return an eager one, with some of the policies and limits of its own."""
        others = self.random.sample(POLICIES, self.random.randint(0, 3))
        limits = {
            "inFlight": {"total": self.random.randint(1, 4), "owner": self.random.randint(1, 2)},
            "hourly": {"total": self.random.choice((5, "Unlimited")), "owner": self.random.randint(1, 4)},
        }
        return {
            "aggressiveness": self.random.choice(("Moderate", "Bold")),
            "policies": [{"name": LEAVE_BAD}, *({"name": name} for name in others)],
            "interval": "15s",
            "scope": {"minimumAge": f"{self.random.randint(1, 30)}s"},
            "limits": limits,
            "budgets": {"reserve": self.random.randint(0, 1), "reserveShare": 0},
            "guidance": self.random.choice(("Evict", "Evict", "Hint", "Bind")),
            "judgement": self.random.choice(("Placement", "Placement", "Placement", "Blind")),
            "steering": self.random.choice(("AvoidList", "AvoidList", "SoftTaint")),
            "goesFirst": self.chance(0.5),
            "moveTimeout": f"{self.random.randint(30, 120)}s",
            "coolDown": f"{self.random.randint(30, 600)}s",
        }

    # What happens

    def _steps(self) -> list[Raw]:
        times = sorted(self.random.randint(1, STEPS_LAST_S) for _ in range(self.random.randint(8, 20)))
        changes: list[tuple[Feature | None, Callable[[int], list[Raw]], int]] = [
            (None, lambda at: [{"apply": [self._pod()]}], 4),
            (Feature.DELETIONS, lambda at: [{"finish": self._some_pod()}], 1),
            (Feature.EVICTIONS, lambda at: [{"evict": self._some_pod()}], 3),
            (Feature.EVICTIONS, self._burst, 2),
            (Feature.DRAINS, self._drain, 6),
            (Feature.FAILURES, self._fail_node, 3),
            (Feature.REPLACED_NODES, self._replace_node, 2),
            (Feature.SCALING, self._scale, 3),
            (Feature.SCALING, self._roll_out, 2),
            (Feature.DELETIONS, lambda at: [{"delete": {"kind": "Pod", "outright": True, **self._some_pod()}}], 3),
            (Feature.PRESSURE, lambda at: [{"usage": {**self._some_pod(), "memory": "3Gi"}}], 3),
            (Feature.DEVICES, lambda at: [{"apply": [self._devices(self._some_node())]}], 2),
            (Feature.RESCHEDULER, self._spoil, 5),
            (Feature.CRASHING, self._trouble, 2),
            (Feature.FAILURES, self._maintain, 1),
            (Feature.SCALING, lambda at: [{"apply": [self._budget(self.random.choice(("web", "db")))]}], 2),
        ]
        possible = [(make, weight) for feature, make, weight in changes if feature is None or feature in self.features]
        draws = self.random.choices([make for make, _ in possible], [weight for _, weight in possible], k=len(times))
        steps: list[tuple[int, Raw]] = []
        for at, draw in zip(times, draws, strict=True):
            steps += [(at * self.pace + change.pop("after", 0), change) for change in draw(at)]
        return [{"at": f"{at}s", **change} for at, change in sorted(steps, key=lambda step: step[0])]

    def _some_pod(self) -> Raw:
        return {"name": self.random.choice(self.pods)}

    def _burst(self, _: int) -> list[Raw]:
        return [{"evict": self._some_pod()} for _ in range(3)]

    def _some_node(self) -> str:
        return self.random.choice(list(self.nodes))

    def _drain(self, _: int) -> list[Raw]:
        name = self._some_node()
        drain: Raw = {"name": name, "timeout": f"{self.random.randint(30, 120)}s", "force": self.chance(0.8)}
        return [{"drain": drain}, {"uncordon": {"name": name}, "after": self.random.randint(20, 150)}]

    def _fail_node(self, _: int) -> list[Raw]:
        name = {"name": self._some_node()}
        return [{"nodeDown": name}, {"nodeUp": dict(name), "after": self.random.randint(1, 400)}]

    def _trouble(self, _: int) -> list[Raw]:
        name = self._some_node()
        trouble: Raw = {"name": name, "crashAfter": f"{self.random.randint(1, 40)}s"}
        if self.chance(0.5):
            trouble["pods"] = f"app={self.random.choice(('web', 'db'))}"
        return [{"trouble": trouble}, {"trouble": {"name": name}, "after": self.random.randint(10, 200)}]

    def _maintain(self, _: int) -> list[Raw]:
        lasts = {"in": f"{self.random.randint(1, 120)}s", "for": f"{self.random.randint(1, 300)}s"}
        return [{"maintenance": {"name": self._some_node(), **lasts}}]

    def _replace_node(self, _: int) -> list[Raw]:
        name = self._some_node()
        return [
            {"delete": {"kind": "Node", "name": name}},
            {"apply": [self.nodes[name]], "after": self.random.randint(1, 100)},
        ]

    def _spoil(self, _: int) -> list[Raw]:
        """Return a node that pods are to leave, for a while."""
        name = self._some_node()
        raw = self.nodes[name]
        labels = {**raw["metadata"]["labels"], "bad": "yes"}
        spoiled = {**raw, "metadata": {**raw["metadata"], "labels": labels}}
        well = {**raw, "metadata": {**raw["metadata"], "labels": {**labels, "bad": "no"}}}
        return [{"apply": [spoiled]}, {"apply": [well], "after": self.random.randint(20, 300)}]

    def _scale(self, _: int) -> list[Raw]:
        able = [(kind, name) for kind, name in self.workloads]
        if not able:
            return []
        kind, name = self.random.choice(able)
        return [{"scale": {"kind": kind, "name": name, "replicas": self.random.randint(0, 4)}}]

    def _roll_out(self, _: int) -> list[Raw]:
        """Return a new template, with as many replicas as were wanted at the start."""
        able = [(kind, name) for kind, name in self.workloads if kind == "Deployment"]
        if not able:
            return []
        kind, name = able[0]
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": self._template(name)}
        return [{"apply": [{"apiVersion": "apps/v1", "kind": kind, "metadata": _named(name), "spec": spec}]}]


def _named(name: str) -> Raw:
    return {"name": name, "namespace": "default"}


def _apart(app: str) -> Raw:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
