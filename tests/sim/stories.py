"""Random clusters and events, as files for `podium simulate`, from a seed.

Amounts, labels and names come from small pools, so that pods get into one another's way.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from podium.api.pod import NOMINATED_NODE_ANNOTATION
from tests.sim.drawn_story import DrawnStory
from tests.sim.holding import HELD
from tests.sim.objects import budget, scenario, workload
from tests.store.objects import Raw, node, pod

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PRIORITIES = (0, 0, 10, 100, 1000)
APPS = ("web", "db", "batch")
STEPS_LAST_S = 120
STORAGE_CLASS: Raw = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "late"},
    "provisioner": "example.com/disks",
    "volumeBindingMode": "WaitForFirstConsumer",
}


class Story(DrawnStory):
    """Draws one story. ``objects`` are there from the start; ``steps`` come in the order of their time.

    With ``apart_in_zones`` pods keep others off whole zones, more of them than otherwise keep others off nodes.
    """

    def __init__(self, seed: int, *, apart_in_zones: bool = False) -> None:
        self.apart_in_zones = apart_in_zones
        self.random = Random(f"story:{seed}")
        self.nodes: dict[str, Raw] = {}
        self.gone: list[str] = []
        self.pods: dict[str, Raw] = {}
        self.room: dict[str, int] = {}
        self.budgets: dict[str, Raw] = {}
        self.scales: dict[str, Raw] = {}
        self.claims: list[Raw] = []
        self.objects: list[Raw] = self._beginning()
        self.steps: list[Raw] = self._steps()

    @property
    def files(self) -> list[Raw]:
        """Everything, the scenario included."""
        return [*self.objects, scenario(*self.steps)]

    def _beginning(self) -> list[Raw]:
        for _ in range(self.random.randint(2, 5)):
            self._new_node()
        for _ in range(self.random.randint(3, 8)):
            self._new_pod(placed=True)
        claims_and_pods = self._new_pods(self.random.randint(2, 6))
        for app in self.random.sample(APPS, self.random.randint(0, 2)):
            self._new_budget(app)
        if self.chance(0.6):
            self._scale("app-1")
        placed = [raw for raw in self.pods.values() if raw not in claims_and_pods]
        others = [*self.budgets.values(), *self.scales.values()]
        return [STORAGE_CLASS, *self.nodes.values(), *placed, *claims_and_pods, *others]

    def _steps(self) -> list[Raw]:
        times = sorted(self.random.randint(0, STEPS_LAST_S) for _ in range(self.random.randint(10, 22)))
        changes: list[tuple[Callable[[], Raw | None], int]] = [
            (lambda: {"apply": self._new_pods(1)}, 8),
            (lambda: {"apply": self._new_pods(3)}, 2),
            (self._delete_pod, 4),
            (self._finish_pod, 2),
            (self._change_pod, 2),
            (lambda: {"apply": [self._new_node()]}, 1),
            (self._remove_node, 1),
            (self._change_node, 4),
            (lambda: {"apply": [self._new_budget(self.random.choice(APPS))]}, 2),
            (lambda: {"apply": [self._scale("app-1")]}, 1),
            (lambda: {"apply": [self._scale("app-2")]}, 1),
        ]
        draws = self.random.choices([one for one, _ in changes], [weight for _, weight in changes], k=len(times))
        made = ((at, change()) for at, change in zip(times, draws, strict=True))
        return [{"at": f"{at}s", **change} for at, change in made if change is not None]

    def _new_node(self) -> Raw:
        """Return a node; now and then one that was removed comes back under its name."""
        name = self.gone.pop() if self.gone and self.chance(0.6) else f"n{len(self.nodes) + len(self.gone) + 1}"
        cpu = self.random.randint(4, 10)
        places = 3 if self.chance(0.15) else 20
        self.nodes[name] = node(name, cpu=cpu, pods=places)
        self.room[name] = cpu if places == 20 else -1
        self._label(name)
        if self.chance(0.15):
            self.nodes[name]["spec"] = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
        return self.nodes[name]

    def _label(self, name: str) -> None:
        labels = {HOSTNAME: name, ZONE: self.random.choice(("za", "zb"))}
        if self.chance(0.3):
            labels["disk"] = "ssd"
        self.nodes[name] = {**self.nodes[name], "metadata": {"name": name, "labels": labels}}

    def _new_pod(self, *, placed: bool = False) -> Raw:
        name = f"p{len(self.pods) + 1:02}"
        raw = self._plain_pod(name)
        if placed:
            cpu = raw["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            home = next((one for one, left in self.room.items() if left >= cpu), None)
            if home is not None:
                self.room[home] -= cpu
                raw["spec"]["nodeName"] = home
        if not raw["spec"].get("nodeName"):
            self._constrain(raw)
        self.pods[name] = raw
        return raw

    def _new_pods(self, count: int) -> list[Raw]:
        """Pending pods, with the claims that they mount."""
        pods = [self._new_pod() for _ in range(count)]
        claims, self.claims = self.claims, []
        return [*claims, *pods]

    def _plain_pod(self, name: str) -> Raw:
        annotations = {}
        if self.chance(0.35):
            annotations["podium.dev/duration"] = f"{self.random.randint(1, 90)}s"
        if self.chance(0.2):
            annotations["podium.dev/termination"] = f"{self.random.randint(0, 20)}s"
        if self.chance(0.15):
            annotations[HELD] = f"{self.random.randint(1, 9)}"
        return pod(
            name,
            cpu=self.random.randint(0, 5),
            priority=self.random.choice(PRIORITIES),
            labels={"app": self.random.choice(APPS)},
            annotations=annotations,
            spec={
                "terminationGracePeriodSeconds": self.random.choice((0, 1, 5, 30)),
                "preemptionPolicy": "Never" if self.chance(0.1) else "PreemptLowerPriority",
            },
        )

    def _constrain(self, raw: Raw) -> None:
        """Add constraints besides cpu to a pending pod."""
        spec = raw["spec"]
        hints: list[tuple[float, Callable[[], Raw]]] = [
            (0.1, lambda: {"affinity": {"podAffinity": self._term(self.random.choice((ZONE, HOSTNAME)))}}),
            # Apart from the pods of a node, not of a zone, unless a nomination is known to other nodes: or else pods
            # which are replaced elsewhere in the zone would be preempted for ever.
            (0.15, lambda: {"affinity": {"podAntiAffinity": self._term(HOSTNAME)}}),
            (0.15, lambda: {"topologySpreadConstraints": [self._spread()]}),
            (0.1, lambda: {"nodeSelector": {"disk": "ssd"}}),
            (0.2, lambda: {"tolerations": [{"key": "gpu", "operator": "Exists"}]}),
            (0.05, lambda: {"schedulingGates": [{"name": "example.com/wait"}]}),
            (0.04, lambda: {"schedulerName": "another"}),
        ]
        if self.apart_in_zones:
            hints.append((0.4, lambda: {"affinity": {"podAntiAffinity": self._term(ZONE)}}))
        for share, wish in hints:
            if self.chance(share):
                spec |= wish()
        if self.chance(0.15):
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": self.random.choice((80, 81))}]
        if self.chance(0.05):
            raw["metadata"]["finalizers"] = ["example.com/keep"]
        if self.chance(0.05):
            raw["metadata"]["annotations"][NOMINATED_NODE_ANNOTATION] = self.random.choice(list(self.nodes))
        if self.chance(0.05):
            raw["status"] = {"nominatedNodeName": self.random.choice(list(self.nodes))}
        if self.chance(0.1):
            self._mount(raw)

    def _mount(self, raw: Raw) -> None:
        """Let a pod mount a claim of its own, which is bound once the pod has a node."""
        name = raw["metadata"]["name"]
        raw["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        spec = {
            "storageClassName": "late",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        meta = {"name": name, "namespace": "default"}
        self.claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})

    def _selector(self) -> Raw:
        return {"matchLabels": {"app": self.random.choice(APPS)}}

    def _term(self, key: str) -> Raw:
        term = {"topologyKey": key, "labelSelector": self._selector()}
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}

    def _spread(self) -> Raw:
        return {
            "maxSkew": self.random.randint(1, 2),
            "topologyKey": self.random.choice((ZONE, HOSTNAME)),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": self._selector(),
        }

    def _new_budget(self, app: str) -> Raw:
        limits: list[Raw] = [{"minAvailable": 1}, {"minAvailable": 2}, {"maxUnavailable": 0}, {"maxUnavailable": 1}]
        limit = self.random.choice([*limits, {"minAvailable": "50%"}])
        self.budgets[app] = budget(app, selector={"matchLabels": {"app": app}}, **limit)
        return self.budgets[app]

    def _scale(self, name: str) -> Raw:
        old = self.scales.get(name)
        if old is None:
            labels = {"app": self.random.choice(APPS), "set": name}
            spec = {**self._plain_pod("")["spec"], "priority": self.random.choice(PRIORITIES)}
            made = workload("Deployment", name, 0, template={"metadata": {"labels": labels}, "spec": spec})
            made["spec"]["selector"] = {"matchLabels": {"set": name}}
        else:
            made = {**old, "spec": {**old["spec"]}}
        made["spec"]["replicas"] = self.random.randint(0, 4)
        self.scales[name] = made
        return made

    def _delete_pod(self) -> Raw:
        return {"delete": {"kind": "Pod", "name": self.random.choice(list(self.pods))}}

    def _finish_pod(self) -> Raw:
        return {"finish": {"name": self.random.choice(list(self.pods))}}

    def _change_pod(self) -> Raw:
        """Take the gates or the finalizers off a pod, or give it another label."""
        name = self.random.choice(list(self.pods))
        old = self.pods[name]
        metadata: Raw = {**old["metadata"], "labels": {"app": self.random.choice(APPS)}}
        spec: Raw = {"schedulingGates": []} if "schedulingGates" in old["spec"] else {}
        if "finalizers" in metadata and self.chance(0.7):
            metadata["finalizers"] = []
        changed: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return {"apply": [{**changed, "spec": {"containers": old["spec"]["containers"], **spec}}]}

    def _remove_node(self) -> Raw | None:
        if len(self.nodes) < 3:
            return None
        name = self.random.choice(list(self.nodes))
        del self.nodes[name]
        self.gone.append(name)
        return {"delete": {"kind": "Node", "name": name}}

    def _change_node(self) -> Raw:
        """Relabel, taint, cordon, or free a node of its taints and cordon."""
        name = self.random.choice(list(self.nodes))
        taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
        spec = self.random.choice(({}, {"taints": [taint]}, {"unschedulable": True}, None))
        if spec is None:
            self._label(name)
        else:
            self.nodes[name] = {**self.nodes[name], "spec": spec}
        return {"apply": [self.nodes[name]]}
