"""Random small clusters for property tests: hypothesis strategies of typed objects.

Amounts, labels and names come from small pools, so that pods and nodes get into one another's way. What is generated
would be accepted by an API server, and no two pods of one node hold conflicting host ports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from podium.api.meta import Kubernetes
from podium.api.node import Namespace, Node
from podium.api.pod import ContainerPort, Pod, PodAffinityTerm, TopologySpreadConstraint
from podium.api.policy import PodDisruptionBudget
from podium.api.versions.gates import MINORS
from podium.api.versions.release import default_release
from tests.builders import HOSTNAME, ZONE, budget, namespace, node, node_term, pod, spread_over, term, tolerate

GPU = "example.com/gpu"
KEYS = (ZONE, HOSTNAME, "rack")
NAMESPACES = ("default", "shop")
PRIORITIES = (-1, 0, 0, 1, 2)
MEBIBYTE = 1024 * 1024

# cpu, memory, most pods, GPUs
NODE_SIZES = tuple(
    (cpu, memory, most, gpus)
    for cpu, memory in ((0, "1Gi"), (2, "3Gi"), (3, "6Gi"), (4, "4Gi"), (6, "8Gi"))
    for most, gpus in ((110, 0), (110, 2), (3, 0))
)
# The hostname stands for the node's own name.
NODE_LABELS = tuple(
    {ZONE: zone, "rack": rack, HOSTNAME: hostname, "size": size, "disk": disk}
    for zone, rack in (("za", "r0"), ("za", "r1"), ("zb", "r0"), ("zb", "r1"), ("zc", None), (None, "r1"))
    for hostname, size, disk in (("own", "1", "ssd"), ("own", "2", None), ("own", None, "ssd"), (None, "x", None))
)
TAINTS = (
    (),
    (),
    (),
    ("gpu=yes:NoSchedule",),
    ("gpu=no:PreferNoSchedule",),
    ("flaky:NoExecute", "gpu=no:PreferNoSchedule"),
    ("flaky:PreferNoSchedule", "gpu=yes:PreferNoSchedule"),
)
OWNERS = ("ReplicaSet/web", "ReplicaSet/db", "Job/web")
IMAGES = ("web:v1", "big", "registry:5000/small")

# cpu, memory, GPUs
SIZES = (
    (None, None, 0),
    (1, None, 0),
    (None, "1Gi", 0),
    ("500m", "500Mi", 0),
    (1, "1Gi", 1),
    (2, "1Gi", 0),
    (2, "2Gi", 2),
    (4, "2Gi", 0),
)
FULL_SIZES = tuple(size for size in SIZES if None not in size)
EQUAL_SIZES = ((1, "1Gi", 0),)
LARGE_SIZES = ((2, "1Gi", 0), (2, "2Gi", 1), (3, "2Gi", 0), (3, "3Gi", 0))
LABELS: tuple[dict[str, str], ...] = (
    {"app": "a"},
    {"app": "a", "tier": "x"},
    {"app": "a", "tier": "y"},
    {"app": "b"},
    {"app": "b", "tier": "x"},
    {"app": "c"},
    {},
)
LIVES = ("", "", "", "", "deleted", "preempted")
SELECTORS = ("app=a", "app=a", "app in (a,b)", "app", "app!=a", "tier", "!tier", "app=a,tier=x", "")
NODE_SELECTORS = ("rack=r0", "rack in (r0,r1)", "!rack", "disk", "size>1", "size<2")
TOLERATIONS = ("gpu", "gpu=yes:NoSchedule", "gpu=no", "flaky:NoExecute", "flaky", ":PreferNoSchedule", "")
TOLERATING = st.builds(tolerate, st.sampled_from(TOLERATIONS))
PORTS: tuple[tuple[int | str, ...], ...] = (
    (),
    (),
    (80,),
    (81,),
    ("10.0.0.1/TCP/80",),
    ("10.0.0.2/TCP/80", 81),
    ("0.0.0.0/UDP/80",),
)
# The namespaces of a term, and its selector of namespaces.
WHERE: tuple[tuple[tuple[str, ...], str | None], ...] = (
    ((), None),
    ((), None),
    ((), None),
    ((), None),
    (("shop",), None),
    (NAMESPACES, None),
    ((), "team=red"),
    ((), ""),
    (("shop",), "team!=red"),
    ((), "!team"),
)

# Strategies are made once: making one, and finding out which values it has, takes as long as several draws.
RARELY = st.sampled_from((False, False, False, True))
ONCE_IN_A_WHILE = st.sampled_from((False,) * 7 + (True,))
_ONE_OR_TWO, _WHETHER = st.integers(1, 2), st.booleans()
_A_NODE_SIZE, _SOME_NODE_LABELS = st.sampled_from(NODE_SIZES), st.sampled_from(NODE_LABELS)
_SOME_TAINTS = st.sampled_from(TAINTS)
_SOME_IMAGES = st.lists(st.sampled_from(IMAGES), unique=True)
_SOME_OWNERS = st.lists(st.sampled_from(OWNERS), max_size=2)
_A_SIZE = {sizes: st.sampled_from(sizes) for sizes in (SIZES, FULL_SIZES, EQUAL_SIZES, LARGE_SIZES)}
_SOME_LABELS, _A_LIFE, _SOME_PORTS = st.sampled_from(LABELS), st.sampled_from(LIVES), st.sampled_from(PORTS)
_SOME_NAMESPACES, _A_KEY = st.sampled_from(WHERE), st.sampled_from(KEYS)
_A_PRIORITY, _A_PRIORITY_OF_A_TARGET = st.sampled_from(PRIORITIES), st.sampled_from((1, 2, 3))
_A_NAMESPACE = st.sampled_from((*NAMESPACES, "default", "default"))
_A_START = st.sampled_from((None, 0, 1, 2))
_AN_IMAGE, _AN_OWNER = st.sampled_from((*IMAGES, "")), st.sampled_from((*OWNERS, ""))
_SOME_TOLERATIONS = st.lists(TOLERATING, max_size=2)
_A_NODE_SELECTOR = st.sampled_from(({}, {}, {"rack": "r0"}))
_A_WEIGHT = st.integers(1, 5)
_A_SELECTOR = st.sampled_from((*SELECTORS, None))
_LEAST_DOMAINS = st.sampled_from((None, 1, 2, 3))
_SOME_LABEL_KEYS = st.sampled_from(((), (), ("tier",), ("app", "none")))
_NODE_TERMS = st.lists(
    st.builds(
        node_term,
        st.sampled_from((*NODE_SELECTORS, "")),
        name=st.sampled_from((None, None, None, "node-0", "node-1")),
    ),
    min_size=1,
    max_size=2,
)
_WEIGHTED_NODE_TERMS = st.lists(
    st.tuples(st.integers(1, 9), st.builds(node_term, st.sampled_from(NODE_SELECTORS))), max_size=2
)
_A_RATE = st.sampled_from((("", 0), ("", 0), ("2/2s", 0), ("2/2s", 1), ("1/3s", 1)))
_A_BUDGETS_NAME, _A_BUDGETS_NAMESPACE = st.sampled_from(("one", "two")), st.sampled_from(NAMESPACES)
_SOME_DISRUPTED = st.sampled_from(((), (), ("pod-0", "pod-1")))
_FEW = st.integers(0, 2)
_A_TEAM = st.sampled_from(("red", "blue"))
_sampled, _whole_number = cache(st.sampled_from), cache(st.integers)


@dataclass(frozen=True, slots=True)
class Objects:
    """A generated cluster. ``target`` is pending, and what the test asks about; it is not among ``pods``."""

    nodes: list[Node]
    pods: list[Pod]
    target: Pod
    namespaces: list[Namespace] = field(default_factory=list)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)

    @property
    def all(self) -> list[Kubernetes]:
        """Every object, the target last."""
        return [*self.surroundings, self.target]

    @property
    def surroundings(self) -> list[Kubernetes]:
        """Every object but the target."""
        return [*self.namespaces, *self.nodes, *self.budgets, *self.pods]

    def without(self, uids: set[str]) -> list[Kubernetes]:
        """Return the surroundings without some pods."""
        pods = [one for one in self.pods if one.metadata.uid not in uids]
        return [*self.namespaces, *self.nodes, *self.budgets, *pods]


@dataclass(frozen=True, slots=True)
class Traits:
    """The features of generated pods beyond requests, labels and priorities.

    With ``equals`` all pods have one priority and size, and belong to few owners.
    """

    affinity: bool = False
    preferences: bool = False
    spread: bool = False
    soft_spread: bool = False
    ports: bool = False
    node_affinity: bool = False
    tolerations: bool = False
    terminating: bool = False
    nominated: bool = False
    budgets: bool = False
    images: bool = False
    same_sizes: bool = False
    avoid_lists: bool = False
    equals: bool = False
    always_requests: bool = False
    heavy_target: bool = False


EVERYTHING = Traits(
    affinity=True,
    preferences=True,
    spread=True,
    soft_spread=True,
    ports=True,
    node_affinity=True,
    tolerations=True,
    terminating=True,
    nominated=True,
    budgets=True,
    images=True,
    avoid_lists=True,
)


RELEASES = st.sampled_from([default_release(minor) for minor in MINORS])
"""The Kubernetes versions, each with its usual patch level."""


@st.composite
def clusters(
    draw: st.DrawFn, traits: Traits = EVERYTHING, *, most_nodes: int = 4, least_pods: int = 0, most_pods: int = 8
) -> Objects:
    """Draw a cluster with a pending pod ``default/target`` of any priority."""
    made = [draw(nodes(f"node-{number}", traits)) for number in range(draw(_whole_number(1, most_nodes)))]
    names = [one.metadata.name for one in made]
    placed: list[Pod] = []
    for number in range(draw(_whole_number(least_pods, most_pods))):
        placed.append(draw(pods(f"pod-{number}", names, traits, placed)))
    target = draw(targets(names, traits))
    described = [namespace("shop", team=draw(_A_TEAM))] if draw(_WHETHER) else []
    found = draw(_SOME_BUDGETS) if traits.budgets else []
    by_name = {one.metadata.name: one for one in found}
    return Objects(made, placed, target, described, list(by_name.values()))


@st.composite
def nodes(draw: st.DrawFn, name: str, traits: Traits = EVERYTHING) -> Node:
    """Draw a node with a little room, sometimes without some of the labels."""
    labels = {key: value for key, value in draw(_SOME_NODE_LABELS).items() if value}
    if labels.get(HOSTNAME):
        labels[HOSTNAME] = name
    cpu, memory, most_pods, gpus = draw(_A_NODE_SIZE)
    extra: dict[str, Any] = {"example_com__gpu": gpus} if gpus else {}
    held = draw(_SOME_IMAGES) if traits.images else []
    return node(
        name,
        cpu=cpu,
        memory=memory,
        pods=most_pods,
        labels=labels,
        taints=draw(_SOME_TAINTS) if traits.tolerations else (),
        unschedulable=traits.tolerations and draw(ONCE_IN_A_WHILE),
        images={_with_tag(image): _image_size(draw, image, traits) * MEBIBYTE for image in held},
        avoids=draw(_SOME_OWNERS) if traits.avoid_lists else (),
        **extra,
    )


@st.composite
def pods(draw: st.DrawFn, name: str, names: Sequence[str], traits: Traits, others: Sequence[Pod] = ()) -> Pod:
    """Draw a pod on one of the nodes, now and then on one that does not exist; or a nominated one, where they may
    be.
    """
    nominated = traits.nominated and draw(ONCE_IN_A_WHILE)
    where = draw(_sampled((*names, *names, *names, "nowhere")))
    made = _pod(draw, name, "" if nominated else where, traits, nominated=where if nominated else "")
    held = [port for other in others if other.spec.node_name == where for port in other.spec.containers[0].ports]
    if made.spec.node_name and any(_conflict(one, port) for one in made.spec.containers[0].ports for port in held):
        return _pod(draw, name, where, replace(traits, ports=False))
    return made


def _conflict(one: ContainerPort, other: ContainerPort) -> bool:
    same = (one.host_port, one.protocol) == (other.host_port, other.protocol)
    return same and (one.host_ip == other.host_ip or not {one.host_ip, other.host_ip}.isdisjoint({"", "0.0.0.0"}))


@st.composite
def targets(draw: st.DrawFn, names: Sequence[str], traits: Traits) -> Pod:
    """Draw a pending pod of some priority, sometimes nominated."""
    wanted = draw(_sampled(("", "", *names))) if traits.nominated else ""
    return _pod(draw, "target", "", traits, nominated=wanted, is_target=True)


def _pod(draw: st.DrawFn, name: str, on: str, traits: Traits, *, nominated: str = "", is_target: bool = False) -> Pod:
    sizes = EQUAL_SIZES if traits.equals else FULL_SIZES if traits.always_requests else SIZES
    cpu, memory, gpus = draw(_A_SIZE[LARGE_SIZES if traits.heavy_target and is_target else sizes])
    extra: dict[str, Any] = {"example_com__gpu": gpus} if gpus else {}
    life = draw(_A_LIFE) if on and traits.terminating else ""
    picky = is_target or draw(RARELY)
    return pod(
        name,
        namespace="default" if is_target else draw(_A_NAMESPACE),
        on=on,
        nominated=nominated,
        priority=1 if traits.equals else draw(_A_PRIORITY_OF_A_TARGET if is_target else _A_PRIORITY),
        cpu=cpu,
        memory=memory,
        labels=draw(_SOME_LABELS),
        started=draw(_A_START) if on else None,
        ready=bool(on) and traits.budgets and draw(_WHETHER),
        terminating=bool(life),
        preempted=life == "preempted",
        ports=draw(_SOME_PORTS) if traits.ports else (),
        image=draw(_AN_IMAGE) if traits.images and is_target else "",
        owner=draw(_AN_OWNER) if traits.equals or (traits.avoid_lists and is_target) else "",
        tolerations=draw(_SOME_TOLERATIONS) if traits.tolerations and is_target else (),
        node_selector=draw(_A_NODE_SELECTOR) if traits.node_affinity and is_target else None,
        needs_nodes=draw(_NODE_TERMS) if traits.node_affinity and is_target and draw(RARELY) else None,
        likes_nodes=draw(_WEIGHTED_NODE_TERMS) if traits.node_affinity and is_target else (),
        spread=_spread(draw, traits) if picky and (traits.spread or traits.soft_spread) else (),
        **_affinity(draw, traits, is_target=is_target),
        **extra,
    )


def _affinity(draw: st.DrawFn, traits: Traits, *, is_target: bool) -> dict[str, Any]:
    """One or two terms for the target, one or none for others, by the name that `pod` has for their kind."""
    kinds = (*(("near", "apart") if traits.affinity else ()), *(("likes", "dislikes") if traits.preferences else ()))
    if not kinds:
        return {}
    found: dict[str, Any] = {}
    for kind in draw(_some_kinds(kinds, is_target)):
        one = draw(_A_TERM)
        found.setdefault(kind, []).append(one if kind in ("near", "apart") else (draw(_A_WEIGHT), one))
    if "near" in found and draw(RARELY):
        found["near"].append(found["near"][0])
    return found


@cache
def _some_kinds(kinds: tuple[str, ...], is_target: bool) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(kinds), min_size=int(is_target), max_size=1 + is_target)


@st.composite
def terms(draw: st.DrawFn) -> PodAffinityTerm:
    """Draw a pod affinity term over one of the keys."""
    namespaces, in_namespaces = draw(_SOME_NAMESPACES)
    match, key = draw(_A_SELECTOR), draw(_A_KEY)
    return term(match, key, namespaces=namespaces, in_namespaces=in_namespaces)


_A_TERM = terms()


def _spread(draw: st.DrawFn, traits: Traits) -> list[TopologySpreadConstraint]:
    kinds = tuple(soft for soft, wanted in ((False, traits.spread), (True, traits.soft_spread)) if wanted)
    return [
        spread_over(
            key,
            draw(_A_SELECTOR),
            draw(_ONE_OR_TWO),
            soft=soft,
            min_domains=None if soft else draw(_LEAST_DOMAINS),
            honors_affinity=draw(_WHETHER),
            honors_taints=draw(_WHETHER),
            match_label_keys=draw(_SOME_LABEL_KEYS),
        )
        for soft, key in draw(_kinds_and_keys(kinds))
    ]


@cache
def _kinds_and_keys(kinds: tuple[bool, ...]) -> st.SearchStrategy[list[tuple[bool, str]]]:
    each = st.sampled_from([(soft, key) for soft in kinds for key in KEYS])
    return st.lists(each, min_size=1, max_size=2, unique=True)


@st.composite
def budgets(draw: st.DrawFn) -> PodDisruptionBudget:
    """Draw a budget that covers some pods and allows few disruptions, sometimes at a low rate."""
    rate, used = draw(_A_RATE)
    return budget(
        draw(_A_BUDGETS_NAME),
        draw(_A_SELECTOR),
        draw(_FEW),
        disrupted=draw(_SOME_DISRUPTED),
        namespace=draw(_A_BUDGETS_NAMESPACE),
        rate=rate,
        used=used,
    )


_SOME_BUDGETS = st.lists(budgets(), max_size=2)


def _image_size(draw: st.DrawFn, image: str, traits: Traits) -> int:
    """Return what a node says that an image takes, in megabytes: any node something else, or all the same."""
    sizes = (10, 300, 900)
    return sizes[IMAGES.index(image) % len(sizes)] if traits.same_sizes else draw(_sampled(sizes))


def _with_tag(image: str) -> str:
    return image if image.startswith("web") else f"{image}:latest"
